"""Large general blocks: draws from enclosed numbers are those from exact ones, and blocks of 500 and 1,000 free dimensions are drawn."""

from __future__ import annotations

import logging
from collections.abc import Callable
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest
from flint import arb

from holdfast.exact.balls import ball, precision
from holdfast.exact.predicates import BAND
from holdfast.lattices import algebra
from holdfast.lattices.components import primitive_rows
from holdfast.lattices.enclosed_gram_schmidt import EnclosedGramSchmidt
from holdfast.lattices.gram_schmidt import gram_schmidt, weighted_gram
from holdfast.lattices.shapes import General
from holdfast.laws import Gaussian, Rounded
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers.choice import Reason
from holdfast.samplers.classes import ClassGaussian, RoundedClasses, class_weights
from holdfast.samplers.klein import EnclosedCoordinate, ExactCoordinate, KleinGaussian
from holdfast.samplers.nearest_plane import EnclosedNearestPlane, NearestPlane
from holdfast.samplers.table import choose
from holdfast.testing import ListedWords, check_fit, fit_p_value

from .klein_oracle import klein_oracle
from .test_klein import LATTICES, SKEW, Enumerated

BASES: dict[str, Any] = {"skew": SKEW, "overlapping": LATTICES["three overlapping sets"], "numbers": LATTICES["two rows of large numbers"]}


def stream(*label: str | int) -> Words:
    return NoiseKey.for_tests("dense").stream(*label)


def enclosed(basis: Any, sigma_squared: Fraction, weights: list[int] | None = None, band: float | None = None) -> KleinGaussian:
    """A small sampler made as large ones are."""
    sampler = KleinGaussian(basis, sigma_squared, BAND if band is None else band, weights)
    sampler.coordinates = [
        EnclosedCoordinate(i, EnclosedGramSchmidt(basis, weights), sampler.sigma_squared) for i in range(sampler.dimension)
    ]
    return sampler


@pytest.mark.ordinary("2-skew", "overlapping", "1/10-numbers")
@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("sigma_squared", [Fraction(1, 10), Fraction(2), Fraction(10**6)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_draws_as_from_exact_numbers(name: str, sigma_squared: Fraction, *, weighted: bool) -> None:
    """Every decision from fractions, without tables, and every decision sent to balls: bit by bit the same, words too."""
    basis = np.asarray(BASES[name])
    weights = [3 * k + 1 for k in range(len(basis))] if weighted else None
    oracle = KleinGaussian(basis, sigma_squared, weights=weights)
    oracle.coordinates = [ExactCoordinate(i, gram_schmidt(basis, weights), sigma_squared, table=False) for i in range(oracle.dimension)]
    words = [stream(name) for _ in range(4)]
    expected = klein_oracle(oracle, 15, words[0])
    assert np.array_equal(enclosed(basis, sigma_squared, weights).draw(15, words[1]), expected)
    assert np.array_equal(enclosed(basis, sigma_squared, weights, band=4.0).draw(15, words[2]), expected)
    assert np.array_equal(klein_oracle(enclosed(basis, sigma_squared, weights), 15, words[3]), expected)
    assert len({word.position for word in words}) == 1


def test_the_law_of_small_cases_and_what_is_seen() -> None:
    """At sigma_squared 9/25, where the accept step matters: without it, and at a variance 4 % off, the fit fails."""
    sigma_squared, basis = Fraction(9, 25), BASES["overlapping"]
    law, sampler = Enumerated(basis, sigma_squared), enclosed(basis, sigma_squared)
    z = sampler.draw(40_000, stream("law"))
    check_fit(law.places(z), law.pmf, name="Klein's sampler, enclosed")
    assert fit_p_value(law.places(z), law.chances(sigma_squared * Fraction(26, 25))) < 1e-9
    proposals = sampler.tries(40_000, stream("law"))[0]
    assert fit_p_value(law.places(proposals), law.pmf) < 1e-9


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_rounding_is_that_of_exact_numbers(name: str, *, weighted: bool) -> None:
    basis = np.asarray(BASES[name])
    weights = [3 * k + 1 for k in range(len(basis))] if weighted else None
    exact, made = NearestPlane(basis, 1, weights), EnclosedNearestPlane(EnclosedGramSchmidt(basis, weights), 1)
    noise = np.random.default_rng(3).integers(-40, 41, (30, len(basis)))
    noise[0] = basis[:, 0]  # a point of the lattice: every coefficient is an integer
    words = [stream(name) for _ in range(2)]
    assert np.array_equal(exact.round(noise, words[0]), made.round(noise, words[1]))
    assert words[0].position == words[1].position
    assert np.array_equal(made.draw(5, stream("draw")), exact.draw(5, stream("draw")))


def test_words_that_leave_a_coin_open_take_more_bits() -> None:
    """Half of a move: each fractional part 1/2 or 0, whose thresholds are the words 2^31 and 0, settled by bits beyond them."""
    basis = np.array([[1, 0], [-1, 1], [0, -1]])
    exact, made = NearestPlane(basis, 1), EnclosedNearestPlane(EnclosedGramSchmidt(basis), 1)
    for first in (0, 1, 2**31 - 1, 2**31, 2**32 - 1):
        for second in (0, 2**31 - 1, 2**31, 2**32 - 1):
            for noise in ([[1, 0, 0]], [[0, 1, 0]], [[2, -1, -1]], [[0, 0, 0]]):
                found = [sampler.round(np.array(noise), ListedWords([first, second])).tolist() for sampler in (exact, made)]
                assert found[0] == found[1]


def three_area_systems(dimension: int, largest: int) -> General:
    """Classes of 1 to `largest` cells, each in one area of three systems that cross. With 30, weights have 42 bits."""
    rng = np.random.default_rng(2)
    areas = dimension // 12
    triples: set[tuple[int, ...]] = set()
    while len(triples) < dimension + 3 * areas - 2:
        triples.add(tuple(int(area) for area in rng.integers(0, areas, (3,))))
    matrix = np.zeros((3 * areas, len(triples)), dtype=np.int64)
    for column, triple in enumerate(sorted(triples)):
        matrix[[s * areas + area for s, area in enumerate(triple)], column] = 1
    rows = primitive_rows(matrix)
    return General(tuple(map(tuple, rows.tolist())), tuple(int(size) for size in rng.integers(1, largest + 1, (rows.shape[1],))))


def random_sets(dimension: int, largest: int) -> General:
    """Sixty sets, each of half of the classes at random: no structure at all."""
    rng = np.random.default_rng(4)
    rows = primitive_rows(rng.integers(0, 2, (60, dimension + 60)))
    return General(tuple(map(tuple, rows.tolist())), tuple(int(size) for size in rng.integers(1, largest + 1, (rows.shape[1],))))


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "dimension", "largest"), [(three_area_systems, 500, 30), (three_area_systems, 1000, 4), (random_sets, 500, 4)]
)
def test_a_large_block_is_prepared_and_drawn(
    make: Callable[[int, int], General], dimension: int, largest: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Kept totals hold as integers, for Gaussian noise and for rounding. The squared lengths of Gram-Schmidt vectors multiply to the Gram
    determinant, which follows from the rows too: this would not hold for a part of the lattice either.
    """
    shape = make(dimension, largest)
    assert shape.class_dimension == pytest.approx(dimension, abs=5)
    with caplog.at_level(logging.INFO, logger="holdfast"):
        gaussian = choose(shape, Gaussian(Fraction(20)))
    told = [record.getMessage() for record in caplog.records]
    assert f"{shape.class_dimension} free dimensions is prepared, once: about" in told[0]
    assert any("digits" in text for text in told[1:])
    rounded = choose(shape, Rounded(Fraction(1, 2)))
    assert gaussian.reason is rounded.reason is Reason.CLASSES
    for choice in (gaussian, rounded):
        z = choice.noise.draw(1, stream("large"))
        assert not (shape.listed_matrix() @ z.T).any()
        assert z.any()
    assert isinstance(gaussian.noise, ClassGaussian)
    assert isinstance(rounded.noise, RoundedClasses)
    orthogonal = gaussian.noise.totals.orthogonal
    assert orthogonal is rounded.noise.totals.orthogonal
    assert isinstance(orthogonal, EnclosedGramSchmidt)
    _check_product(orthogonal, _gram_determinant(shape))


@pytest.mark.parametrize(("dimension", "largest"), [(48, 1), (60, 30)])
def test_a_gram_determinant_from_the_rows_is_that_of_the_basis(dimension: int, largest: int) -> None:
    shape = three_area_systems(dimension, largest)
    weights = tuple(class_weights(shape.class_sizes)[1])
    basis = algebra.as_matrix(shape.class_basis())
    assert weighted_gram(basis, weights).det() == _gram_determinant(shape)
    twice = algebra.as_matrix(2 * np.array(shape.rows))  # the same solutions: the index goes out
    assert _gram_determinant(General(tuple(map(tuple, algebra.to_numpy(twice).tolist())), shape.class_sizes)) == _gram_determinant(shape)


def _gram_determinant(shape: General) -> int:
    """det(B^T W B) = det(W) det(A W^-1 A^T) / g^2 for a basis B of all solutions of the rows [theory T6]; W = N / n_c."""
    rows, sizes = np.array(shape.rows, dtype=np.int64), shape.class_sizes
    common, weights = class_weights(sizes)
    A = algebra.as_matrix(rows)
    small = (algebra.as_matrix(rows * np.array(sizes)) * A.transpose()).det()
    hermite = A.transpose().hnf()
    index = prod(int(hermite[i, i]) for i in range(len(rows)))
    divisor: int = common ** len(rows) * index**2
    determinant, rest = divmod(prod(weights) * int(small), divisor)
    assert rest == 0
    return determinant


def _check_product(orthogonal: EnclosedGramSchmidt, determinant: int) -> None:
    known = orthogonal.at(192)
    with precision(300):
        product = arb(1)
        for i in range(orthogonal.dimension):
            low, high = known.squared_length(i)
            product *= ball(low).union(ball(high))
        ratio = product / arb(determinant)
        assert ratio.contains(1)
        assert ratio.rad() < arb(2) ** -150
