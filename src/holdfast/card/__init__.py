"""What is published about a release, as one typed model: plans, pages, sentences, checks and readers take its parts as they are.

card       the card and its parts; card.json is its serialised form, card.schema.json its schema
promise    the part that is promised; answers: that of real-valued answers
view       the file beside a publication view, view.json
fields     kinds of values on a card
problems   what is wrong with a card that somebody else made, in words
"""
