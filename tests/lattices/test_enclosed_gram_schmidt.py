"""Enclosed Gram-Schmidt against the exact one: every number inside its enclosure, at any number of digits; what it cannot start on."""

from __future__ import annotations

import pickle
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from flint import fmpz_mat
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.lattices import algebra
from holdfast.lattices import enclosed_gram_schmidt as module
from holdfast.lattices.algebra import small_kernel_basis
from holdfast.lattices.enclosed_gram_schmidt import EnclosedGramSchmidt, TooIllConditioned, orthogonalise
from holdfast.lattices.gram_schmidt import GramSchmidt, gram_schmidt
from tests.examples import examples


@st.composite
def bases(draw: st.DrawFn) -> tuple[np.ndarray, list[int] | None]:
    m = draw(st.integers(1, 7))
    cells = m + draw(st.integers(0, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    largest = draw(st.sampled_from([1, 3, 1000]))
    basis = rng.integers(-largest, largest + 1, (cells, m))
    basis[:m] += (4 * largest + 1) * np.eye(m, dtype=np.int64)  # independent: the diagonal outweighs the rest in each row
    weights = [int(w) for w in rng.integers(1, 2**30, cells)] if draw(st.booleans()) else None
    return basis, weights


@given(bases(), st.sampled_from([60, 192, 1000]))
@settings(max_examples=examples(40))
def test_every_number_lies_in_its_enclosure(case: tuple[np.ndarray, list[int] | None], bits: int) -> None:
    basis, weights = case
    exact, known = gram_schmidt(basis, weights), EnclosedGramSchmidt(basis, weights).at(bits)
    m = exact.dimension
    assert known.z <= Fraction(1, 2**bits)
    for i in range(m):
        low, high = known.squared_length(i)
        assert low <= exact.squared_lengths[i] <= high
        assert high - low <= high * Fraction(1, 2**bits)
        v = [(-1) ** j * (j + 1) for j in range(i + 1, m)]
        truth = sum((exact.mu(j, i) * value for j, value in zip(range(i + 1, m), v, strict=True)), Fraction(0))
        low, high = known.combination(i, v)
        assert low <= truth <= high
        rounded = known.rounded_mu(i, 20)
        if rounded is not None:
            assert rounded.tolist() == [floor(exact.mu(j, i) * 2**20 + Fraction(1, 2)) for j in range(i + 1, m)]
        assert bits == 60 or rounded is not None


def test_a_wrong_inverse_is_not_taken_for_a_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is proved does not depend on the doubles: a poor start is improved or refused, never believed."""
    basis = np.array([[3, 1, 0], [1, 4, 1], [0, 1, 5]])
    good = EnclosedGramSchmidt(basis).at(192)
    real = module._from_doubles

    def off(gram: fmpz_mat, by: int) -> tuple[int, np.ndarray]:
        bits, inverse = real(gram)
        inverse = inverse.copy()
        inverse[1, 0] += by
        return bits, inverse

    monkeypatch.setattr(module, "_from_doubles", lambda gram: off(gram, 1 << 54))
    again = EnclosedGramSchmidt(basis).at(192)
    for i in range(3):
        assert max(good.squared_length(i)[0], again.squared_length(i)[0]) <= min(good.squared_length(i)[1], again.squared_length(i)[1])
    monkeypatch.setattr(module, "_from_doubles", lambda gram: off(gram, 1 << 66))
    with pytest.raises(TooIllConditioned):
        EnclosedGramSchmidt(basis)


def test_dependent_columns_and_those_too_near_for_doubles_are_left_to_the_exact_form(monkeypatch: pytest.MonkeyPatch) -> None:
    near = np.array([[10**12, 10**12 + 1], [10**12 - 1, 10**12]], dtype=object)
    with pytest.raises(TooIllConditioned):
        EnclosedGramSchmidt(near)
    with pytest.raises(TooIllConditioned):
        EnclosedGramSchmidt([[1, 2], [1, 2]])
    with pytest.raises(TooIllConditioned):  # long ones too
        EnclosedGramSchmidt([[3, 1, 0], [1, 4, 1], [0, 1, 5], [2, 0, 1]], [1, 10**330, 10**10, 7])
    monkeypatch.setattr(module, "EXACT_DIMENSION", 1)
    assert isinstance(orthogonalise(near), GramSchmidt)
    assert isinstance(orthogonalise([[1, 0], [0, 1]]), EnclosedGramSchmidt)


@pytest.mark.parametrize("weights", [[10**400] * 4, [10**400, 10**400 + 7, 10**403, 10**402]])
def test_squares_too_long_for_doubles(weights: list[int]) -> None:
    basis = np.array([[3, 1, 0], [1, 4, 1], [0, 1, 5], [2, 0, 1]])
    exact = gram_schmidt(basis, weights)
    known = EnclosedGramSchmidt(basis, weights).at(192)
    for i in range(3):
        low, high = known.squared_length(i)
        assert low <= exact.squared_lengths[i] <= high
        assert high - low <= high * Fraction(1, 2**192)


def test_it_is_pickled_with_what_was_found() -> None:
    made = EnclosedGramSchmidt([[2, 1], [0, 3]], (1, 7))
    again = pickle.loads(pickle.dumps(made))
    assert again.at(500).squared_length(1) == made.at(500).squared_length(1)


@given(st.integers(0, 2**32))
@settings(max_examples=examples(60))
def test_bases_by_elimination_are_those_of_the_hermite_form(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(-1, 2, (rng.integers(1, 7), 8)) * rng.integers(1, 4, (1, 8))
    found = small_kernel_basis(rows)
    assert found.ncols() == 8 - algebra.rank(rows)
    assert (algebra.as_matrix(rows) * found).is_zero()
    assert algebra.same_lattice(found, algebra.kernel_basis(rows))


def test_elimination_stops_before_entries_grow_long(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array([[1, 9, 0, 4, 2], [5, 1, 7, 0, 3], [0, 6, 1, 8, 1]])
    expected = algebra.kernel_basis(rows)
    for largest in (1, 10, 100, 10**6):
        monkeypatch.setattr(algebra, "LARGEST_ENTRY", largest)
        assert algebra.same_lattice(small_kernel_basis(rows), expected)
