"""The 2 x 23 table of [GM20], with its kept sums and proposal index set: simulated by its authors, so public."""

from __future__ import annotations

import numpy as np

from holdfast.samplers.bounded_block import BoundedBlock
from tests.samplers.bounded_cases import sexes_and_ages

WOMEN = (8, 6, 3, 6, 4, 4, 4, 8, 5, 7, 7, 6, 1, 5, 4, 4, 9, 6, 2, 8, 8, 8, 7)
MEN = (3, 4, 5, 8, 6, 4, 5, 5, 5, 6, 10, 7, 3, 2, 5, 11, 6, 4, 7, 4, 5, 3, 8)
TABLE = np.array(WOMEN + MEN, dtype=np.int64)
BLOCK = BoundedBlock.plain(sexes_and_ages(4, 19))
"""Total, women, adults kept; no count below zero."""
SOLVED = (0, 22, 45)
"""All cells but the paper's proposal index set {2, ..., 22, 24, ..., 45}, counted from 1."""
