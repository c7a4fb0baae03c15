"""What is published about a release, as one typed model: plans, pages, sentences, checks and readers take its parts as they are.

card       the card and its parts; card.json is its serialised form, card.schema.json its schema
parts      the parts: what is promised, real-valued answers, view.json; and the kinds of values they are made of
problems   what is wrong with a card that somebody else made, in words
"""
