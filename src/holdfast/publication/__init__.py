"""The way from a table to a folder, and what readers ask of a publication.

order, plan                what the office asks for, and what a release would do, before a count is read
answer, pipeline           `hf.answer`, and the one way from a plan to a folder; what a plan would cost
booking                    budget that the ledger reserves before a draw; history: what it keeps of the release
publication                what was drawn or read, as values that never change, its card, and what readers do with it
folder                     the folder, written whole or not at all; its files (public_files, listings, maps, signing)
given_files                files that somebody else made, read without harm
sums, plots, view          sums of cells, figures, and counts for print
rows                       the first rows of a table, for the report and for notebooks
report_facts               the facts that figures and reports are drawn from
tables                     several tables by the cell key method as one release
cellkey                    checks of perturbation tables

`verify` is a room of its own, `verification`.
"""
