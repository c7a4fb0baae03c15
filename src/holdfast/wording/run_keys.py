"""What each key of a run file says, in one sentence: editors show it beside the key, and `holdfast init` writes it behind the line."""

from __future__ import annotations

from collections.abc import Mapping

_WHERE_IT_IS = {
    "source": "The confidential file or database; paths start at the folder of this file.",
    "query": "With a database URL: the SELECT to run, which only reads.",
    "separator": "The character between fields of a text file; left out, its first lines tell.",
    "encoding": 'For a text file, such as "windows-1252"; left out, UTF-8, or UTF-16 where the file begins with its mark.',
    "sheet": "The sheet of an Excel file that has several.",
}
_WHAT_CELLS_ARE = {
    "universe": "A file that lists the cells, zeros included, if the source does not.",
    "public": "The list of cells is public: the same whatever the numbers are, zeros included.",
    "allow_similar_codes": "Accept codes of a column that differ only in blanks, case or Unicode form.",
    "protect": "Whose privacy is promised: person, household, firm.",
    "name": "What the office calls the table.",
    "hierarchies": 'Code trees by column: county = {prefixes = [2], levels = ["state", "county"]}.',
    "labels": 'What pages call columns and codes: sex = {name = "Sex", codes = {F = "women", M = "men"}}.',
}
_BY = "Columns or levels: one sum for each of their codes."
_VALUES = "Under identities: the public value of every sum, or a list with one for each."
_CONSTRAINTS = {
    "subsets": 'Sums of cells that meet a condition or have some codes: {where = "age >= 18", by = ["county"]}.',
    "areas": 'Sums of named sets of codes: {column = "block", sets = {Springfield = ["0101", "0102"]}}.',
    "linear": "Sums with whole coefficients of every cell: {matrix = [[1, 1, 0]]}.",
}

KEYS: Mapping[str, Mapping[str, str]] = {
    "": {
        "table": "The confidential table: where it is, what its cells are, whose privacy is promised.",
        "answer": "Real-valued answers, in place of [table]: where they are, and how far one person can move them.",
        "keep": "What is published exactly, and is not protected.",
        "release": "The mechanism and its budget, and what is written.",
    },
    "table": {
        **_WHERE_IT_IS,
        "query_seconds": "How long the query may take; an hour, if left out.",
        "cells": "The columns whose codes name a cell; for records, the codes of each column.",
        "count": "The column of counts; left out, one row of the source is one record.",
        "cell_key": "For counts: the column with the key of each cell.",
        "public_columns": "For counts: columns of public whole numbers, from which bounds may come.",
        **_WHAT_CELLS_ARE,
        "universe": 'A file that lists the cells, zeros included; for records also "observed", which weakens the promise.',
        "totals": 'For counts: codes of total rows, which are checked against the sums of the cells and left out: {sex = "_T"}.',
        "allow_total_names": "Accept codes that are named like totals, such as _T or All, as codes of cells.",
        "max_records": "The most records that one person (or what is protected) may have.",
        "id": "For records: the column that identifies the person (or what is protected), so that max_records is checked.",
        "over": 'For records, if somebody has more than max_records: "refuse" the table, or count a "sample" of max_records of them.',
        "sample_key": 'With over = "sample": a file with a secret that decides which records are counted; left out, HOLDFAST_KEY.',
        "sample_by": 'With over = "sample": columns that tell the records of one person apart, such as the number of a visit.',
        "record_key": "For records: the column with the key of each record.",
    },
    "answer": {
        **_WHERE_IT_IS,
        "cells": "The columns whose codes name an answer.",
        "value": "The column of answers: decimals, fractions or whole numbers, read exactly.",
        "sensitivity": "How far one person can move the answers, exact: l1 distance for Laplace noise, l2 distance for Gaussian noise.",
        "step": 'Values are published as multiples of this step, such as "0.01"; left out, a power of ten that rounding hardly moves.',
        "on_grid": "The answers of every data set are such multiples: nothing is rounded.",
        "round_totals": "Kept totals may be rounded to such multiples; otherwise other totals are refused.",
        **_WHAT_CELLS_ARE,
    },
    "hierarchies": {
        "tree": "A file with an indented tree (.hrc).",
        "prefixes": "How many characters of a code name the unit of each higher level.",
        "parents": "A file that has the parent of every code; code and parent name its columns.",
        "code": "The column of codes in the file of parents.",
        "parent": "The column of parents in the file of parents.",
        "levels": "Names of the levels, coarse to fine, which margins and by may then name.",
        "shared": "Many tables share the file: cut it to the codes of this one.",
    },
    "labels": {
        "name": "What the column is called.",
        "codes": 'What its codes are called: {F = "women", M = "men"}.',
        "file": "A codes file in place of codes.",
        "code": 'The column of codes in that file; several where only together they have a label: ["state", "county"].',
        "label": "The column of labels in that file.",
    },
    "keep": {
        "total": "Whether the total of all cells is kept.",
        "margins": 'Sums by columns or levels that are kept, for instance [["county"], ["county", "sex"]].',
        **_CONSTRAINTS,
        "identities": "Sums that are the same in every data set, with their values; they expose nothing.",
    },
    "identities": {
        "total": "The total of all cells in every data set.",
        "margins": 'Sums by columns with their values: {columns = ["sex"], values = [500, 500]}.',
        **_CONSTRAINTS,
    },
    "margins": {"columns": "The columns of the margin.", "values": "The public value of every sum, or a list with one for each."},
    "subsets": {
        "column": "The column whose codes or node are taken.",
        "codes": "Codes of this column, which are added up.",
        "node": "A unit of the column's hierarchy, whose codes are added up.",
        "where": "A condition on codes, such as \"age >= 18 and sex = 'F'\", in place of column.",
        "by": _BY,
        "values": _VALUES,
    },
    "areas": {
        "column": "The column whose codes make up the areas.",
        "sets": 'The codes of each area by its name: {Springfield = ["0101", "0102"]}.',
        "by": _BY,
        "values": _VALUES,
    },
    "linear": {
        "matrix": "One row for each sum: a whole number for each cell, in the table's order.",
        "names": "A name for each sum.",
        "values": "The value of each sum, where it is declared.",
    },
    "disjoint": {
        "from": "Ids of releases of the same data set in the ledger.",
        "because": "Why no person is in both tables; the card and the statement show it.",
    },
    "release": {
        "id": "One name for one release: it is charged once.",
        "date": "The day of the release, as the office gives it.",
        "office": "Who publishes it.",
        "approver": "Who approved it; a name here is not a signature.",
        "mechanism": "How the noise is made; docs/run-files.md has all.",
        "per": 'What the budget is for: what the table protects, such as "person", or one unit of "distance".',
        "formats": "The formats in which the table is written.",
        "formulas": 'Codes that a spreadsheet would run, such as "=1": told of, or marked with an apostrophe in CSV files.',
        "view_base": "Write counts for print too: not negative, and multiples of this.",
        "map": "A GeoJSON file for the report.",
        "map_code": "The property of the map's areas that holds the codes.",
        "map_level": "The level that the map shows, where several fit.",
        "sign": "An Ed25519 private key (PEM), with which the card is signed.",
        "ledger": 'The ledger that records the release; left out, one beside this file, and "none" for none.',
        "witness": "A folder that remembers the ledger's head.",
        "dataset": "The account in the ledger; left out, the name of the table or of the source.",
        "revises": "The folder of an earlier release of the same population.",
        "disjoint": "Earlier releases of the data set with which this one shares no person, and why; left out, their charges add up.",
        "revises_signer": "The public key (PEM) that must have signed that earlier release.",
        "allow_exposed": "How many cells may be published as they are, because the kept totals fix them.",
        "epsilon": 'The budget, exact: a text, such as "0.25".',
        "delta": "For the Gaussian, with epsilon: the probability that is left.",
        "rho": 'The budget, exact: a text, such as "1/10".',
        "sigma_squared": "The variance of the noise, in place of a budget.",
        "calibration": "How the variance is found from epsilon and delta.",
        "law": "Gaussian noise by the lattice law, by the sequential law, or whichever has the least noise for the budget (auto).",
        "levels": "Shares of rho for levels and margins, which add up to one.",
        "lower": 'Bounds of cells from below: a number, a list, a public column or "none".',
        "upper": 'Bounds of cells from above: a number, a list, a public column or "none".',
        "rows": 'Inequalities of sums: {margin = ["county"], at_least = 5}.',
        "noise": "The law of the noise that is conditioned.",
        "gamma": "What bounds cost: 1, or the best that can be shown; 0 without inequalities.",
        "norm": "The distance that the budget is for.",
        "sampler": "How noise is drawn: exactly (auto, coupling_from_past), or by a Markov chain.",
        "allow_estimated": "Let auto take a Markov chain where no exact sampler works; the promise is then an estimate.",
        "perturbation_table": "For the cell key method: the file of the perturbation table.",
        "mix": "Mix cell keys before noise is looked up: gaps between tables then tell less.",
        "other_noise": "Publish though earlier cell key releases have another column, rule or perturbation table.",
        "other_records": "Why these are other records than those of other data sets in the ledger; it is recorded.",
        "eta": "The total variation error that chains may have together.",
    },
    "levels": {
        "level": 'A column, a level of a hierarchy, nested columns together, or "total".',
        "margin": 'Columns beside the units, "total", or "detailed", which it is if left out.',
        "share": 'An exact number, such as "1/5".',
    },
    "rows": {
        "total": "The sum of all cells.",
        "margin": "Sums by these columns.",
        "subset": "Sums of cells that meet a condition, or of a column with codes.",
        "linear": "Sums with whole coefficients, one for each cell.",
        "codes": "The codes of the column under subset.",
        "by": _BY,
        "at_least": "The sums are not below this: a number, a list, a public column, or another sum.",
        "at_most": "The sums are not above this: a number, a list, a public column, or another sum.",
    },
}
"""By table of the run file, the file itself under "", and key."""


def said_of(section: str, key: str) -> str | None:
    """The sentence of a key; None for one that another package brought."""
    return KEYS.get(section, {}).get(key)


def comment_of(section: str, key: str) -> str:
    """The same as a comment behind a line of a run file."""
    sentence = KEYS[section][key]
    return sentence[0].lower() + sentence[1:].removesuffix(".")
