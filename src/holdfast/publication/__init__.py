"""The way from a table to a folder, and what readers ask of a publication.

order, plan, price         what the office asks for, and what a release would do and cost, before a count is read
answer, pipeline           `hf.answer`, and the one way from a plan to a folder
acknowledged, booking      before a draw: exposed cells that someone allowed; budget that the ledger reserves
release, released          what was drawn, as values that never change; history: what the ledger keeps of it
card_content               the card of a release, part by part
folder, staged, publishing the folder, written whole or not at all; its files (public_files, listings, maps, signing) and leftovers
given_files, rewritten     files that somebody else made, read without harm
reading, sums, plots       what readers do with a publication; view: counts for print
figure_facts, report_facts the facts that figures and reports are drawn from
cellkey, diagnose          tables by the cell key method; how fast chains come to their law

`verify` is a room of its own, `verification`.
"""
