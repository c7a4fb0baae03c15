"""The way from a table to a folder, and what readers ask of a publication.

order, plan, price         what the office asks for, and what a release would do and cost, before a count is read
answer, pipeline           `hf.answer`, and the one way from a plan to a folder
booking                    budget that the ledger reserves before a draw; history: what it keeps of the release
publication                what was drawn or read, as values that never change, and what readers do with it
card_content               the card of a publication, part by part
folder, staged             the folder, written whole or not at all; its files (public_files, listings, maps, signing)
given_files, rewritten     files that somebody else made, read without harm
sums, plots, view          sums of cells, figures, and counts for print
figure_facts, report_facts the facts that figures and reports are drawn from
tables                     several tables by the cell key method as one release
cellkey, diagnose          checks of perturbation tables; how fast chains come to their law

`verify` is a room of its own, `verification`.
"""
