"""Shortest vectors against brute force over a box, and the values the theory names."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpz_mat
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter
from holdfast.lattices.algebra import contains, kernel_basis, rank, reduced_basis
from holdfast.lattices.norms import NormName, norm_of
from holdfast.lattices.shortest import _Search, entry_share, shortest_vector
from tests.examples import examples


def matrices(rows, columns, reach):
    return st.tuples(st.integers(1, rows), st.integers(2, columns)).flatmap(
        lambda shape: st.lists(
            st.lists(st.integers(-reach, reach), min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
        )
    )


def box_solutions(A, reach):
    """Nonzero integer solutions of A z = 0 with entries in [-reach, reach], one per row."""
    box = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * len(A[0]), indexing="ij"), axis=-1).reshape(-1, len(A[0]))
    solutions = box[~np.any(box @ np.array(A).T, axis=1)]
    return solutions[np.any(solutions, axis=1)]


def lengths(solutions, norm):
    return np.abs(solutions).sum(axis=1) if norm == "l1" else (solutions**2).sum(axis=1)


def check_against_box(A, norm, reach):
    """No vector of the box is shorter; a shorter result must itself be a solution that lies outside the box."""
    result = shortest_vector(kernel_basis(A), norm)
    assert result.status == "exact"
    assert result.vector is not None
    assert contains(A, result.vector)
    assert lengths(np.array([result.vector]), norm)[0] == result.value > 0
    solutions = box_solutions(A, reach)
    if len(solutions) == 0 or max(map(abs, result.vector)) > reach:
        assert max(map(abs, result.vector)) > reach
        assert len(solutions) == 0 or result.value <= lengths(solutions, norm).min()
    else:
        assert result.value == lengths(solutions, norm).min()


@pytest.mark.parametrize("norm", ["l1", "l2"])
@settings(max_examples=examples(60))
@given(A=matrices(3, 6, 4))
@example(A=[[2, -3]])
@example(A=[[1, 1, 1, 1, 1, 1]])
@example(A=[[3, -4, 2, 1, 0, 4]])
def test_against_brute_force_over_six_cells(norm, A):
    assume(rank(A) < len(A[0]))
    check_against_box(A, norm, 3)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@settings(max_examples=examples(60))
@given(A=matrices(2, 4, 9))
@example(A=[[5, -8, 0, 0], [0, 0, 9, 7]])
def test_against_brute_force_with_long_vectors(norm, A):
    assume(rank(A) < len(A[0]))
    check_against_box(A, norm, 9)


steps = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([-2, -1, 1, 2])), max_size=5)


def mixed_basis(A, steps):
    """A basis of the kernel with long columns: in a reduced one of few columns a shortest vector is nearly always at hand."""
    columns = reduced_basis(kernel_basis(A)).transpose()
    for i, j, factor in steps:
        if i < columns.nrows() and j < columns.nrows() and i != j:
            for cell in range(columns.ncols()):
                columns[i, cell] += factor * columns[j, cell]
    return columns.transpose()


@pytest.mark.parametrize(("norm", "limit"), [("l1", 6), ("l2", 36)])
@given(A=matrices(2, 4, 4), steps=steps)
@example(A=[[1, 2, 4, 4]], steps=[(0, 1, 2), (1, 2, 2), (2, 0, -2)])
def test_the_search_itself_on_long_bases(norm, limit, A, steps):
    """Every vector within the limit lies in the box, so brute force knows them all: none may be missed, whatever the basis."""
    assume(rank(A) < len(A[0]))
    basis = mixed_basis(A, steps)
    everything = lengths(box_solutions(A, 6), norm)
    within = everything[everything <= limit]
    search = _Search(basis, norm_of(norm), 10**6)
    assert len(everything) == 0 or search.first_bound() <= everything.min()
    found = search.within(limit, enough=0)
    assert not search.exhausted
    if len(within) == 0:
        assert found is None
        return
    assert found is not None
    value, vector = found
    assert value == within.min() == lengths(np.array([vector]), norm)[0]
    assert contains(A, vector)


@pytest.mark.parametrize(("norm", "limit"), [("l1", 6), ("l2", 36)])
@settings(max_examples=examples(60))
@given(A=matrices(2, 4, 4), steps=steps, nodes=st.integers(0, 60))
def test_a_search_given_up_claims_nothing_unproven(norm, limit, A, steps, nodes):
    assume(rank(A) < len(A[0]))
    search = _Search(mixed_basis(A, steps), norm_of(norm), nodes)
    enough = search.first_bound()
    found = search.within(limit, enough)
    if found is not None:
        assert found[0] == lengths(box_solutions(A, 6), norm).min()
        assert not search.exhausted or found[0] == enough


@pytest.mark.parametrize("norm", ["l1", "l2"])
@settings(max_examples=examples(60))
@given(A=matrices(4, 9, 4), nodes=st.integers(0, 40))
def test_a_bound_is_never_above_the_truth(norm, A, nodes):
    assume(rank(A) < len(A[0]))
    basis = kernel_basis(A)
    exact, hurried = shortest_vector(basis, norm), shortest_vector(basis, norm, nodes=nodes)
    assert exact.status == "exact"
    if hurried.status == "exact":
        assert hurried.value == exact.value
    else:
        assert hurried.vector is None
        assert 1 <= hurried.value <= exact.value


@settings(max_examples=examples(60))
@given(A=matrices(3, 6, 4))
@example(A=[[1, 0, 0], [0, 1, 1]])
@example(A=[[0, 0]])
def test_entry_share_bounds_every_entry(A):
    assume(rank(A) < len(A[0]))
    share = entry_share(kernel_basis(A))
    assert 0 < share <= 1
    solutions = box_solutions(A, 3)
    assert np.all(np.abs(solutions).max(axis=1) * share.denominator <= lengths(solutions, "l1") * share.numerator)


def test_entry_share_of_known_lattices():
    assert entry_share(kernel_basis([[1, 1, 1]])) == Fraction(1, 2)
    assert entry_share(kernel_basis([[2, -3]])) == Fraction(3, 5)  # attained by (3, 2)
    assert entry_share(fmpz_mat([[1, 0], [0, 1]])) == 1


def margins(shape, kept):
    """0/1 rows: one per value of each kept set of axes."""
    cells = list(itertools.product(*map(range, shape)))
    rows = []
    for axes in kept:
        for values in itertools.product(*(range(shape[axis]) for axis in axes)):
            rows.append([int(tuple(cell[axis] for axis in axes) == values) for cell in cells])
    return rows


PAIRS = [(0, 1), (0, 2), (1, 2)]
OVERLAPPING = [[int(low <= cell < high) for cell in range(14)] for low, high in ((0, 8), (3, 11), (6, 14))]
SEVEN_SETS = [[(cell + 1) >> bit & 1 for cell in range(7)] for bit in range(3)]
"""Three sets over 7 cells, every cell in a different selection of them: no two cells can be exchanged."""


@pytest.mark.parametrize(
    ("A", "l1", "l2_squared"),
    [
        ([[1] * 5], 2, 2),
        ([[1] * 60], 2, 2),
        ([[-1] * 5], 2, 2),
        (margins((3, 4), [(0,), (1,)]), 4, 4),
        (margins((6, 7), [(0,), (1,)]), 4, 4),
        (margins((2, 2, 2), PAIRS), 8, 8),
        (margins((3, 3, 3), PAIRS), 8, 8),
        (margins((2, 3, 3), [(0, 1), (2,)]), 4, 4),
        (OVERLAPPING, 2, 2),
        (SEVEN_SETS, 3, 3),
        ([[2, -3]], 5, 13),
        ([[1, 0], [0, 0]], 1, 1),
        ([[1, 2, 4, 8]], 3, 5),
        ([[1, 1, 3, 10]], 2, 2),
    ],
)
def test_known_values(A, l1, l2_squared):
    norm: NormName
    for norm, value in (("l1", l1), ("l2", l2_squared)):
        result = shortest_vector(kernel_basis(A), norm)
        assert (result.norm, result.value, result.status) == (norm, value, "exact")
        assert result.vector is not None
        assert contains(A, result.vector)


def test_the_two_norms_can_disagree():
    """The shortest in l1 need not be the shortest in l2: (3, 0) and the like against (1, 1, 1, 1)."""
    basis = [[3, 1], [0, 1], [0, 1], [0, 1]]
    assert shortest_vector(basis, "l1").value == 3
    assert shortest_vector(basis, "l2").value == 4


def test_basis_does_not_matter():
    skewed = [[1, 50], [-1, -49], [0, -1]]
    for norm in ("l1", "l2"):
        assert shortest_vector(skewed, norm).value == 2
        assert shortest_vector([[2, 3, 0], [-2, -3, 0]], norm).value == 2  # dependent generators


def test_too_few_steps_give_a_bound_that_says_so():
    basis = kernel_basis(margins((4, 4, 4), PAIRS))
    result = shortest_vector(basis, "l1", nodes=2000)
    assert result.status == "lower bound"
    assert result.vector is None
    assert 4 <= result.value <= 8
    assert result == shortest_vector(reduced_basis(basis), "l1", nodes=2000)


def test_refusals():
    with pytest.raises(InvalidParameter, match="nothing is left to protect"):
        shortest_vector(fmpz_mat(3, 0), "l1")
    with pytest.raises(InvalidParameter, match="nothing is left to protect"):
        shortest_vector([[0], [0]], "l2")
    with pytest.raises(InvalidParameter, match="norm must be"):
        shortest_vector([[1], [0]], "linf")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="nodes"):
        shortest_vector([[1], [0]], "l1", nodes=-1)
