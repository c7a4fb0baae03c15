"""The cell key method: noise looked up by a key that belongs to the records of a cell, with its (epsilon, delta) measured.

The same records get the same noise in every table and on every day. This is no differential privacy guarantee for a release: the
figures are for one cell and one answer, over the draw of the keys.
"""

from holdfast.cellkey.design import Design, best_gamma, design, truncated_laplace
from holdfast.cellkey.formats import read_table, write_table
from holdfast.cellkey.keys import CellKeys, KeySpace
from holdfast.cellkey.loss import Losses
from holdfast.cellkey.max_entropy import SymmetricNoise, max_entropy
from holdfast.cellkey.noise import NoiseLaw
from holdfast.cellkey.record_keys import RecordKeys
from holdfast.cellkey.rows import TableDesign, design_rows
from holdfast.cellkey.table import KeyInterval, PerturbationRow, PerturbationTable
from holdfast.cellkey.tabulate import tabulate

__all__ = [
    "CellKeys",
    "Design",
    "KeyInterval",
    "KeySpace",
    "Losses",
    "NoiseLaw",
    "PerturbationRow",
    "PerturbationTable",
    "RecordKeys",
    "SymmetricNoise",
    "TableDesign",
    "best_gamma",
    "design",
    "design_rows",
    "max_entropy",
    "read_table",
    "tabulate",
    "truncated_laplace",
    "write_table",
]
