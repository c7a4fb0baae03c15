"""The finest split of the columns, by trying to split further."""

from __future__ import annotations

import itertools

import numpy as np
from flint import fmpz_mat
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.lattices.algebra import kernel_basis, same_lattice, to_numpy
from holdfast.lattices.components import finest_split

entries = st.sampled_from([0, 0, 0, 0, 1, 1, -1, 2, -3, 4])
"""Mostly zeros: dense matrices have a single part."""
matrices = st.tuples(st.integers(1, 4), st.integers(1, 7)).flatmap(
    lambda shape: st.lists(st.lists(entries, min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0])
)


def direct_sum(A, parts):
    """The sum of the kernels of the parts, as columns over all cells."""
    columns = []
    for part in parts:
        for column in to_numpy(kernel_basis(np.array(A)[:, list(part)])).T:
            padded = np.zeros(len(A[0]), dtype=np.int64)
            padded[list(part)] = column
            columns.append(padded)
    return fmpz_mat(len(columns), len(A[0]), [int(entry) for column in columns for entry in column]).transpose()


@given(matrices)
@example([[1, 1, 1, 1], [1, 1, 0, 0]])  # nested sums: A itself links all cells
@example([[0, 0, 0]])
@example([[2, 0], [0, 3]])
@example([[1, 1, 1, 0], [0, 1, 1, 0]])
def test_parts_add_up_and_none_can_be_split(A):
    parts = finest_split(A)
    assert sorted(itertools.chain(*parts)) == list(range(len(A[0])))
    assert parts == sorted(tuple(sorted(part)) for part in parts)
    assert same_lattice(direct_sum(A, parts), kernel_basis(A))
    for part in parts:
        local = np.array(A)[:, list(part)]
        whole = kernel_basis(local)
        for size in range(1, len(part) // 2 + 1):
            for first in itertools.combinations(range(len(part)), size):
                second = tuple(i for i in range(len(part)) if i not in first)
                assert not same_lattice(direct_sum(local.tolist(), [first, second]), whole), (part, first)


def test_known_splits():
    assert finest_split([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]) == [(0, 1), (2, 3, 4)]  # total and a subset of it
    assert finest_split([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]]) == [(0, 1), (2,), (3,), (4,)]  # a pinned cell and two free ones
    assert finest_split([[1, 0, 1, 0], [0, 1, 0, 1]]) == [(0, 2), (1, 3)]
    assert finest_split([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]) == [(0, 1, 2, 3)]
    assert finest_split(np.zeros((0, 2), dtype=np.int64)) == [(0,), (1,)]
