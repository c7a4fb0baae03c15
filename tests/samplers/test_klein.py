"""Klein's sampler: the law as an identity in balls, the same draws from exact decisions, fits by enumeration and fits that must fail."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp, isqrt, sqrt
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.balls import ball, precision
from holdfast.exact.predicates import is_below
from holdfast.lattices import algebra
from holdfast.lattices.enclosed_gram_schmidt import EnclosedGramSchmidt
from holdfast.lattices.gram_schmidt import gram_schmidt
from holdfast.randomness import NoiseKey
from holdfast.samplers import klein
from holdfast.samplers.klein import (
    NOMINAL_BITS,
    EnclosedCoordinate,
    ExactCoordinate,
    KleinGaussian,
    nominal,
    proposal_parameter,
    tries_at_once,
)
from holdfast.samplers.protocol import BlockSampler
from holdfast.samplers.theta import theta_ratio_ball, tries_bound
from holdfast.testing import check_fit, fits
from tests.examples import examples

from .klein_oracle import klein_oracle


def differences(n: int) -> NDArray[Any]:
    return np.eye(n, n - 1, dtype=np.int64) - np.eye(n, n - 1, k=-1, dtype=np.int64)


def kernel(rows: list[list[int]]) -> NDArray[Any]:
    return algebra.to_numpy(algebra.reduced_basis(algebra.kernel_basis(rows)))


REGIONS = list(product((0, 1), repeat=3))[1:]
LATTICES = {
    "two free cells": np.eye(2, dtype=np.int64),
    "three free cells": np.eye(3, dtype=np.int64),
    "one sum of three cells": differences(3),
    "2 x 2 margins": np.kron(differences(2), differences(2)),
    "2 x 3 margins": np.kron(differences(2), differences(3)),
    "3 x 3 margins": np.kron(differences(3), differences(3)),
    "three overlapping sets": kernel([[region[k] for region in REGIONS] for k in range(3)]),
    "[[2, -3]]": kernel([[2, -3]]),
    "two rows of large numbers": kernel([[2, -3, 1, 0], [0, 1, 2, -3]]),
}
SKEW = np.array([[1, 5], [-1, -4], [0, -1]])
"""A long basis of the three cells with one sum."""
SIGMAS_SQUARED = [Fraction(9, 25), Fraction(1), Fraction(25)]


def points_within(basis: NDArray[Any], radius_squared: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All vectors B v with |B v|^2 <= radius_squared, as (v, squared lengths): Gram-Schmidt bounds from the last to the first."""
    orthogonal = gram_schmidt(basis)
    m = orthogonal.dimension
    vectors, left = np.zeros((1, m), dtype=np.int64), np.full(1, radius_squared)
    for i in reversed(range(m)):
        length = float(orthogonal.squared_lengths[i])
        centre = -sum((float(orthogonal.mu(j, i)) * vectors[:, j] for j in range(i + 1, m)), np.zeros(len(vectors)))
        reach = np.sqrt(np.maximum(left, 0) / length) + 1e-6
        low, high = np.ceil(centre - reach).astype(np.int64), np.floor(centre + reach).astype(np.int64)
        counts = np.maximum(high - low + 1, 0)
        parents = np.repeat(np.arange(len(vectors)), counts)
        steps = np.arange(len(parents)) - np.repeat(np.cumsum(counts) - counts, counts)
        vectors = vectors[parents]
        vectors[:, i] = low[parents] + steps
        left = left[parents] - length * (vectors[:, i] - centre[parents]) ** 2
    return vectors, ((vectors @ np.asarray(basis).T.astype(np.int64)) ** 2).sum(axis=1)


class Enumerated:
    """The law on a lattice listed point by point, shortest vectors first; values are places in the list."""

    def __init__(self, basis: NDArray[Any], sigma_squared: Fraction, radius_squared: float | None = None) -> None:
        usual = 56 * float(sigma_squared) + 8  # beyond: below 10^-10 of the mass in up to four dimensions
        self.radius_squared = usual if radius_squared is None else radius_squared
        self.vectors, lengths = points_within(basis, self.radius_squared)
        order = np.lexsort((*self.vectors.T, lengths))
        self.vectors, self.lengths = self.vectors[order], lengths[order]
        self._left_inverse = np.linalg.pinv(np.asarray(basis, dtype=np.float64))
        self._span = 2 * int(np.abs(self.vectors).max()) + 3
        self._keys = self._key(self.vectors)
        self._sorted = np.argsort(self._keys)
        self.pmf = self.chances(sigma_squared)

    def chances(self, sigma_squared: Fraction) -> NDArray[np.float64]:
        weights = np.exp(-self.lengths / (2 * float(sigma_squared)))
        return np.asarray(weights / weights.sum())

    def _key(self, vectors: NDArray[np.int64]) -> NDArray[np.int64]:
        key = np.zeros(len(vectors), dtype=np.int64)
        for column in vectors.T:
            key = key * self._span + column
        return key

    def places(self, draws: NDArray[np.int64]) -> NDArray[np.int64]:
        vectors = np.rint(draws @ self._left_inverse.T).astype(np.int64)
        where = np.minimum(np.searchsorted(self._keys, self._key(vectors), sorter=self._sorted), len(self._keys) - 1)
        places = self._sorted[where].astype(np.int64)
        outside = (draws**2).sum(axis=1) > self.radius_squared
        assert np.array_equal(self.vectors[places][~outside], vectors[~outside]), "every draw within the radius is a listed point"
        places[outside] = len(self._keys) - 1
        return places

    def shells(self, sigma_squared: Fraction) -> dict[int, float]:
        values, where = np.unique(self.lengths, return_inverse=True)
        return dict(zip(values.tolist(), np.bincount(where, self.chances(sigma_squared)).tolist(), strict=True))


def stream(name: str) -> Any:
    return NoiseKey.for_tests("klein").stream(name)


@pytest.mark.ordinary("9/25-", "1-one sum", "1-2 x 3", "1-[[2")
@pytest.mark.parametrize("name", LATTICES)
@pytest.mark.parametrize("sigma_squared", [*SIGMAS_SQUARED[:2], pytest.param(SIGMAS_SQUARED[2], marks=pytest.mark.long)], ids=str)
def test_fit_by_full_enumeration(name: str, sigma_squared: Fraction) -> None:
    if name == "[[2, -3]]":
        sigma_squared = max(sigma_squared, Fraction(4))  # below, nearly every draw is zero
    law = Enumerated(LATTICES[name], sigma_squared)
    draws = KleinGaussian(LATTICES[name], sigma_squared).draw(100_000, stream(name))
    check_fit(law.places(draws), law.pmf, name=f"Klein, {name}, sigma_squared {sigma_squared}")


@pytest.mark.long
@pytest.mark.parametrize("name", LATTICES)
def test_one_percent_in_sigma_squared_is_noticed(name: str) -> None:
    """As many draws as make the statistic's excess 160: the squared length is what sigma_squared acts on."""
    right, wrong = Fraction(1), Fraction(101, 100)
    law = Enumerated(LATTICES[name], right)
    variance = float(law.pmf @ law.lengths**2 - (law.pmf @ law.lengths) ** 2)
    n = int(160 / (variance * (0.5 - 0.5 / 1.01) ** 2))
    assert n < 2 * 10**7
    draws = KleinGaussian(LATTICES[name], right).draw(n, stream("power"))
    lengths = (draws**2).sum(axis=1)
    right_shells, wrong_shells = law.shells(right), law.shells(wrong)
    lengths = lengths[lengths <= law.radius_squared]
    check_fit(lengths, right_shells, name=f"Klein, {name}, squared length")
    assert not fits(lengths, wrong_shells)


class WithoutAcceptStep(KleinGaussian):
    def _keep(self, v: Any, logs: Any, error: float, words: Any) -> Any:
        return np.ones(v.shape[1], dtype=bool)


def test_the_accept_step_is_needed() -> None:
    law = Enumerated(SKEW, Fraction(9, 25))
    right = KleinGaussian(SKEW, "0.36").draw(300_000, stream("skew"))
    check_fit(law.places(right), law.pmf, name="Klein on a skew basis")
    wrong = WithoutAcceptStep(SKEW, "0.36").draw(300_000, stream("skew without"))
    assert not fits(law.places(wrong), law.pmf)


@pytest.mark.ordinary("skew", "large", "9/25")
@pytest.mark.parametrize(
    "basis", [SKEW, LATTICES["three overlapping sets"], LATTICES["two rows of large numbers"]], ids=["skew", "sets", "large"]
)
@pytest.mark.parametrize("sigma_squared", [Fraction(1, 50), Fraction(9, 25), Fraction(7, 3)], ids=str)
def test_proposal_times_accept_over_target_is_constant(basis: NDArray[Any], sigma_squared: Fraction) -> None:
    """For every small vector, in balls; what a coefficient's rounds end with is proposal times accept, summed over all proposals."""
    sampler = KleinGaussian(basis, sigma_squared)
    constants = []
    with precision(200):
        for v in product(range(-1, 2), repeat=sampler.dimension):
            log = ball(Fraction(int(((np.asarray(basis) @ v) ** 2).sum()))) / (2 * ball(sigma_squared))
            for coordinate in sampler.coordinates:
                assert isinstance(coordinate, ExactCoordinate)
                log += _log_chance(coordinate, list(v))
            log += sampler.chance(list(v))().log()
            constants.append(log)
    first = constants[0]
    assert all(abs(log - first) < arb(2) ** -100 for log in constants)


def _log_chance(coordinate: ExactCoordinate, v: list[int]) -> arb:
    """log of the probability that coefficient i ends as v_i, given the later ones; sums cut where nothing is left at 2^-150."""
    start = coordinate.start(v)
    d = coordinate.centre(v) - start

    def weight(p: int) -> arb:
        drop = Fraction(0) if coordinate.has_table else coordinate.exponent(p, d)
        assert drop >= 0
        return (-ball(Fraction(p * p) / (2 * coordinate.V) + drop)).exp()

    reach = 20 + isqrt(int(220 * coordinate.V))
    total = sum((weight(p) for p in range(-reach, reach + 1)), arb(0))
    return (weight(v[coordinate.index] - start) / total).log()


CASES = [
    (SKEW, "0.36"),
    (SKEW, 1),
    (SKEW, 25),
    (LATTICES["three overlapping sets"], "0.36"),
    (LATTICES["two rows of large numbers"], 1),
    (LATTICES["3 x 3 margins"], "1e4"),
    (differences(4), "1e-3"),
    (differences(4), "1e12"),
    (differences(4), "1e26"),
    (np.array([[1, 10**11], [-1, 1 - 10**11], [0, -1]]), "1e13"),
    (differences(12), 2),
]


@pytest.mark.parametrize(("basis", "sigma_squared"), CASES)
def test_bands_and_exact_decisions_give_the_same_draws(basis: NDArray[Any], sigma_squared: Any) -> None:
    sampler = KleinGaussian(basis, sigma_squared)
    words = stream("bands")
    expected = klein_oracle(sampler, 150, words)
    for band in (2.0**-40, 2.0**-20, 2.0**-4, 4.0):
        again = stream("bands")
        drawn = KleinGaussian(basis, sigma_squared, band=band).draw(150, again)
        assert np.array_equal(drawn, expected)
        assert again.position == words.position


def test_a_wide_band_sends_draws_to_the_balls(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(*arguments: Any) -> bool:
        calls.append(1)
        return is_below(*arguments)

    monkeypatch.setattr(klein, "is_below", counted)
    KleinGaussian(SKEW, 1).draw(1000, stream("count"))
    assert len(calls) < 3
    KleinGaussian(SKEW, 1, band=2.0**-4).draw(1000, stream("count"))
    assert len(calls) > 50


@pytest.mark.parametrize("sigma_squared", ["1e-3", "0.36", 1, 3, 6, 30, 10**9])
def test_doubles_are_within_their_stated_error(sigma_squared: Any) -> None:
    sampler = KleinGaussian(LATTICES["three overlapping sets"], sigma_squared)
    v, logs, error = sampler.propose(40, stream("errors"))
    for coordinate in sampler.coordinates:
        assert isinstance(coordinate, ExactCoordinate)
        if coordinate.has_table:
            continue
        start, d, delta = klein._centres(coordinate, v)
        for k, column in enumerate(v.T.tolist()):
            assert int(start[k]) == coordinate.start(column)
            gap = coordinate.centre(column) - int(start[k])
            assert abs(Fraction(float(d[k])) - gap) <= Fraction(delta) + Fraction(1, 2**53)
            for p in range(-3, 4):
                drift = float(d[k]) * coordinate.inverse
                nearest = float(np.rint(drift / (2 * coordinate.K_double)))
                double = exp(-max((p - nearest) * (coordinate.K_double * (p + nearest) - drift), 0.0))
                with precision(200):
                    truth = (-ball(coordinate.exponent(p, gap))).exp()
                    assert abs(truth - arb(double)) <= arb(coordinate.error(delta)) / 4
    with precision(200):
        for k, column in enumerate(v.T.tolist()):
            assert abs(sampler.chance(column)().log() - arb(float(logs[k]))) <= arb(error)


@given(st.fractions(Fraction(1, 10**6), 10**9, max_denominator=10**6))
def test_proposals_are_wider_than_their_targets_and_few(s_squared: Fraction) -> None:
    V = proposal_parameter(s_squared)
    assert s_squared + Fraction(1, 4) <= V
    assert max(Fraction(5, 4) * s_squared, s_squared + Fraction(1, 4)) * Fraction(17, 16) + Fraction(1, 16) >= V
    assert V.numerator.bit_length() - (V.numerator & -V.numerator).bit_length() < 6


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(1, 5).flatmap(lambda m: st.lists(st.lists(st.integers(-6, 6), min_size=m, max_size=m), min_size=m, max_size=m + 3)))
def test_gram_schmidt_is_exact(rows: list[list[int]]) -> None:
    B = np.array(rows, dtype=object)
    m = B.shape[1]
    if algebra.rank(rows) < m:
        with pytest.raises(InvalidParameter, match="independent"):
            gram_schmidt(rows)
        return
    made = gram_schmidt(rows)
    stars: list[NDArray[Any]] = []
    for i in range(m):
        star = B[:, i] * Fraction(1)
        for j in range(i):
            mu = (B[:, i] @ stars[j]) / (stars[j] @ stars[j])
            assert made.mu(i, j) == mu
            star = star - mu * stars[j]
        stars.append(star)
        assert made.squared_lengths[i] == star @ star
        assert [entry * made.determinants[i] for entry in star] == made.integral_vectors[i].tolist()


def test_expected_tries_are_bounded_or_piloted() -> None:
    wide = KleinGaussian(LATTICES["3 x 3 margins"], 25)
    assert wide.expected_tries == tries_bound([float(c.s_squared) for c in wide.coordinates])
    small = KleinGaussian(LATTICES["3 x 3 margins"], "0.36")
    law = Enumerated(LATTICES["3 x 3 margins"], Fraction(9, 25))
    rho = float(np.exp(-law.lengths / 0.72).sum())
    sums = [sum(exp(-k * k / (2 * float(c.s_squared))) for k in range(-20, 21)) for c in small.coordinates]
    exact = float(np.prod(sums)) / rho
    assert tries_bound([float(c.s_squared) for c in small.coordinates]) > 2
    # 512 accept probabilities in [0, 1]: eight standard deviations at most, a false alarm of about 1e-14.
    assert abs(1 / small.expected_tries - 1 / exact) < 8 * sqrt(0.25 / 512)


def test_theta_ratios_are_those_of_the_centres() -> None:
    sampler = KleinGaussian(SKEW, "0.36")
    with precision(100):
        chance = sampler.chance([3, 1])()
        centre = -gram_schmidt(SKEW).mu(1, 0)
        assert abs(chance - theta_ratio_ball(sampler.coordinates[0].s_squared, centre)) < arb(2) ** -80


def test_a_block_of_a_hundred_dimensions_keeps_its_sum() -> None:
    sampler: BlockSampler = KleinGaussian(differences(101), 9)
    draws = sampler.draw(3, stream("hundred"))
    assert draws.shape == (3, sampler.cells)
    assert not draws.sum(axis=1).any()
    assert draws.any()
    assert sampler.draw(0, stream("none")).shape == (0, 101)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="greater than zero"):
        KleinGaussian(SKEW, 0)
    with pytest.raises(InvalidParameter, match="at least one column"):
        KleinGaussian(np.zeros((3, 0), dtype=np.int64), 1)
    with pytest.raises(InvalidParameter, match="independent"):
        KleinGaussian(np.array([[1, 2], [1, 2]]), 1)
    with pytest.raises(RequestTooLarge, match="Reduce the basis"):
        KleinGaussian(np.array([[1, 10**15], [-1, 1 - 10**15], [0, -1]]), "1e13").draw(10, stream("too long"))


def test_centres_known_to_few_bits_are_decided_exactly() -> None:
    """Coefficients of 2^57 leave five bits of a centre: without the bands made for that, some verdicts come out wrong."""
    long = 2**57 - 55
    sampler = KleinGaussian(np.array([[long, 5 * long // 13], [0, 1]], dtype=object), Fraction(long**2, 10))
    draws = []
    for how in (sampler.draw, lambda n, words: klein_oracle(sampler, n, words)):
        with NoiseKey.for_tests("few bits").stream("words") as words:
            draws.append(how(1200, words))
    assert np.array_equal(draws[0], draws[1])


def test_tries_at_once() -> None:
    assert [tries_at_once(rounds, 1) for rounds in (0, 1, 5, 9, 10, 10**6)] == [1, 2, 32, 512, 512, 512]
    assert tries_at_once(9, 1000) == 32
    assert tries_at_once(9, 1 << 15) == 1


@given(st.integers(0, 2**32), st.sampled_from([Fraction(15), Fraction(105, 2), Fraction(12345, 7)]))
@settings(max_examples=12)
def test_what_is_fixed_about_an_enclosed_coordinate_is_the_same_for_every_enclosure(seed: int, sigma_squared: Fraction) -> None:
    """More digits change no proposal: the same words give the same draws wherever the first digits came from."""
    rng = np.random.default_rng(seed)
    basis = rng.integers(-9, 10, (8, 6))
    basis[:6] += 20 * np.eye(6, dtype=np.int64)
    exact = gram_schmidt(basis)
    for i in range(6):
        # The second parameter puts s^2 where V is rounded up to five bits, the third to a power of two.
        for parameter in (sigma_squared, Fraction(17, 10) * exact.squared_lengths[i], 4 * exact.squared_lengths[i]):
            found = []
            for bits in (192, 260, 900):
                enclosed = EnclosedGramSchmidt(basis)
                enclosed.at(bits)
                made = EnclosedCoordinate(i, enclosed, parameter)
                found.append((made.s_squared, made.V, made.fixed))
            assert found[0] == found[1] == found[2]
            assert found[0][0] == nominal(parameter / exact.squared_lengths[i])


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9), st.integers(-300, 300))
def test_nominal_parameters_have_their_leading_bits(value: Fraction, power: int) -> None:
    """Within half a unit of the last of 100 bits, and never falling, across powers of two as well."""
    value *= Fraction(2) ** power
    found = nominal(value)
    assert abs(found - value) <= value / 2**NOMINAL_BITS
    assert nominal(found) == found
    border = Fraction(2) ** power
    near = Fraction(2) ** (power - NOMINAL_BITS - 2)
    assert nominal(border - near) == nominal(border) == nominal(border + near) == border
