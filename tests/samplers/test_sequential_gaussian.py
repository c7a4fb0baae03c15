"""The sequential Gaussian: centres by exact algebra, an oracle without floats, every point of small grids."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact import DiscreteGaussian
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.randomness import NoiseKey
from holdfast.samplers.levels_gaussian import SequentialGaussian
from holdfast.samplers.theta import theta_ratio_ball
from holdfast.testing import ListedWords, check_fit, fits

SHAPES = [(2,), (3,), (7,), (2, 2), (2, 3), (3, 2), (3, 3), (2, 2, 2), (2, 3, 2), (4, 3, 2), (2, 2, 2, 3)]
ONES = 2**32 - 1


def grid_points(shape: tuple[int, ...], reach: int) -> NDArray[np.int64]:
    """All arrays with zero sums whose free corner lies in [-reach, reach], one per row."""
    corner = tuple(n - 1 for n in shape)
    values = np.arange(-reach, reach + 1)
    points = np.stack(np.meshgrid(*[values] * math.prod(corner), indexing="ij"), axis=-1).reshape((-1, *corner))
    for axis in range(1, len(shape) + 1):
        points = np.concatenate([points, -points.sum(axis=axis, keepdims=True)], axis=axis)
    return points.reshape(len(points), -1)


def some_points(shape: tuple[int, ...], count: int) -> list[list[int]]:
    rng = np.random.default_rng(1)
    points = rng.integers(-6, 7, (count, *(n - 1 for n in shape)))
    for axis in range(1, len(shape) + 1):
        points = np.concatenate([points, -points.sum(axis=axis, keepdims=True)], axis=axis)
    return points.reshape(count, -1).tolist()


def solve(rows: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """One solution of a consistent, possibly singular system."""
    table = [[*row, value] for row, value in zip(rows, right, strict=True)]
    pivots: list[int] = []
    for column in range(len(rows)):
        rank = len(pivots)
        found = next((i for i in range(rank, len(table)) if table[i][column]), None)
        if found is None:
            continue
        table[rank], table[found] = table[found], table[rank]
        table[rank] = [value / table[rank][column] for value in table[rank]]
        for i in range(len(table)):
            if i != rank and table[i][column]:
                table[i] = [a - table[i][column] * b for a, b in zip(table[i], table[rank], strict=True)]
        pivots.append(column)
    assert all(row[-1] == 0 for row in table[len(pivots) :])
    solution = [Fraction(0)] * len(rows)
    for i, column in enumerate(pivots):
        solution[column] = table[i][-1]
    return solution


@pytest.mark.parametrize("shape", [(5,), (3, 3), (2, 3, 2)], ids=str)
def test_centres_and_variances_are_those_of_the_continuous_gaussian(shape: tuple[int, ...]) -> None:
    """Covariance: the projection on arrays with zero sums, a Kronecker product of I - J/n. Conditional means by exact elimination."""
    cells = list(product(*(range(n) for n in shape)))

    def entry(a: tuple[int, ...], b: tuple[int, ...]) -> Fraction:
        return math.prod((int(i == j) - Fraction(1, n) for i, j, n in zip(a, b, shape, strict=True)), start=Fraction(1))

    covariance = [[entry(a, b) for b in cells] for a in cells]
    sampler = SequentialGaussian(shape, Fraction(3))
    points = some_points(shape, 5)
    found = [iter(sampler.centres(z)) for z in points]
    for t in range(len(cells)):
        weights = solve([row[:t] for row in covariance[:t]], covariance[t][:t])
        variance = covariance[t][t] - sum((w * covariance[t][i] for i, w in enumerate(weights)), Fraction(0))
        for z, centers in zip(points, found, strict=True):
            mean = sum((w * z[i] for i, w in enumerate(weights)), Fraction(0))
            if variance == 0:
                assert mean == z[t]  # forced
            else:
                assert next(centers) == (z[t], mean, 3 * variance)
    assert all(next(centers, None) is None for centers in found)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_proposal_times_keep_probability_is_the_target(shape: tuple[int, ...]) -> None:
    """Sum (z - c)^2 / s^2 = |z|^2 / sigma_squared exactly; with certified laws and theta ratios the rest is one constant."""
    sigma_squared = Fraction(4, 5)
    sampler = SequentialGaussian(shape, sigma_squared)
    constants = []
    for number, z in enumerate(some_points(shape, 12)):
        drawn = sampler.centres(z)
        assert sum((value - c) ** 2 / s_squared for value, c, s_squared in drawn) == sum(v * v for v in z) / sigma_squared
        if number < 4:
            with precision(300):
                log_weight = arb(0)
                for value, c, s_squared in drawn:
                    chance = DiscreteGaussian(s_squared, c).pmf_bounds(value)
                    log_weight += ball(chance.lower).union(ball(chance.upper)).log() + theta_ratio_ball(s_squared, c).log()
                constants.append(log_weight + ball(sum(v * v for v in z) / (2 * sigma_squared)))
    for other in constants[1:]:
        assert constants[0].overlaps(other)
        assert abs(constants[0] - other) < arb(2) ** -45


@pytest.mark.ordinary("9/25", "1000000")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sigma_squared", [Fraction(9, 25), Fraction(1), Fraction(25), Fraction(10**6)], ids=str)
def test_compiled_draws_equal_those_without_floats_whatever_the_band(shape: tuple[int, ...], sigma_squared: Fraction) -> None:
    draws = 30 if math.prod(shape) < 20 and sigma_squared >= 1 else 4
    for chunk_pairs in (5, 1 << 15):
        plain = SequentialGaussian(shape, sigma_squared, chunk_pairs=chunk_pairs)
        stream = NoiseKey.for_tests("sequential").stream("oracle")
        slow = plain.draw_slowly(draws, stream)
        for band in (4.0, 2.0**-4, 2.0**-20, 2.0**-34):
            again = NoiseKey.for_tests("sequential").stream("oracle")
            fast = SequentialGaussian(shape, sigma_squared, band=band, chunk_pairs=chunk_pairs).draw_compiled(draws, again)
            assert np.array_equal(fast, slow)
            assert again.position == stream.position
        arrays = slow.reshape(draws, *shape)
        assert all((arrays.sum(axis=axis) == 0).all() for axis in range(1, len(shape) + 1))
        assert sigma_squared < 25 or slow.any()


@pytest.mark.parametrize(("shape", "sigma_squared"), [((40, 25), 1), ((900,), Fraction(9, 25)), ((9, 10, 11), 2), ((3, 200), 10**12)])
def test_larger_blocks_equal_the_oracle(shape: tuple[int, ...], sigma_squared: Fraction) -> None:
    sampler = SequentialGaussian(shape, Fraction(sigma_squared), chunk_pairs=301)
    slow = sampler.draw_slowly(1, NoiseKey.for_tests("larger").stream("a"))
    assert np.array_equal(sampler.draw_compiled(1, NoiseKey.for_tests("larger").stream("a")), slow)


def _proposal_word(sampler: SequentialGaussian, c: int, value: int) -> int:
    """A word, far from thresholds, that makes the proposal of class c equal to value."""
    found = sampler.classes[1][c]
    assert found is not None
    words = np.arange(2**15, 2**32, 2**16, dtype=np.uint64).astype(np.uint32)
    hits = words[found.sampler.draw(len(words), ListedWords(words)) == value]
    return int(hits[len(hits) // 2])


def _cell_of(real: arb) -> int:
    lower, upper = enclosure(real * 2**32)
    assert math.floor(lower) == math.floor(upper)
    return math.floor(lower)


@pytest.mark.parametrize("use_compiled", [False, True])
@pytest.mark.parametrize("extra", [0, ONES])
def test_an_open_accept_word_is_settled_by_its_own_bits(use_compiled: bool, extra: int) -> None:
    """Two cells: the first has variance 1/2 and one class, V = 3/4; its proposals, their accept words, then the word of the keep step."""
    sampler = SequentialGaussian((2,), Fraction(1))
    one, zero = _proposal_word(sampler, 0, 1), _proposal_word(sampler, 0, 0)
    V, h = Fraction(3, 4), Fraction(2, 3)
    with precision(200):
        word = _cell_of((-ball((1 - h) / (2 * V * h))).exp())
    words = ListedWords([one, *[zero] * 32, word, *[0] * 33], lambda i, depth: (extra,) * 4 if i == 33 else (ONES // 3,) * 4)
    drawn = sampler.draw_compiled(1, words) if use_compiled else sampler.draw_slowly(1, words)
    assert drawn.tolist() == [[0, 0]] if extra else [[1, -1]]


@pytest.mark.parametrize("use_compiled", [False, True])
@pytest.mark.parametrize("extra", [0, ONES])
def test_an_open_keep_word_is_settled_by_its_own_bits(use_compiled: bool, extra: int) -> None:
    """Three cells, first value 1: the second has centre -1/2, and the block is kept with probability theta(1/2) / theta(0)."""
    sampler = SequentialGaussian((3,), Fraction(9, 25))
    second, *_, first = (c for c, found in enumerate(sampler.classes[1]) if found is not None)
    one, zero, half = _proposal_word(sampler, first, 1), _proposal_word(sampler, first, 0), _proposal_word(sampler, second, 0)
    with precision(200):
        word = _cell_of(theta_ratio_ball(Fraction(9, 50), Fraction(1, 2)))
    listed = [*[half] * 33, *[0] * 33, one, *[zero] * 32, *[0] * 33, word, 0]
    words = ListedWords(listed, lambda i, depth: (extra,) * 4 if i == 132 else (ONES // 3,) * 4)
    drawn = sampler.draw_compiled(1, words) if use_compiled else sampler.draw_slowly(1, words)
    assert drawn.tolist() == ([[0, 0, 0]] if extra else [[1, -1, 0]])


def enumerated(shape: tuple[int, ...], sigma_squared: float, reach: int, by_energy: bool) -> NDArray[np.float64]:
    """The law by code: the free corner written in base 2 reach + 1, or |z|^2."""
    points = grid_points(shape, reach)
    energy = (points * points).sum(axis=1)
    weights = np.exp(-energy / (2 * sigma_squared))
    weights /= weights.sum()
    return np.asarray(np.bincount(energy, weights=weights) if by_energy else weights, dtype=np.float64)


def codes(drawn: NDArray[np.int64], shape: tuple[int, ...], reach: int, by_energy: bool) -> NDArray[np.int64]:
    if by_energy:
        return np.asarray((drawn * drawn).sum(axis=1))
    corner = drawn.reshape(-1, *shape)[(slice(None), *(slice(0, n - 1) for n in shape))].reshape(len(drawn), -1)
    code = np.zeros(len(drawn), dtype=np.int64)
    for column in corner.T:
        assert abs(column).max() <= reach
        code = code * (2 * reach + 1) + column + reach
    return code


# In the corner of the 2 x 2 x 2 grid at .36 all but 3 draws in 10^5 are 0: 20 % is what can be seen there.
ENUMERATED = [
    (shape, variance, reach, Fraction(6, 5) if (shape, variance) == ((2, 2, 2), Fraction(9, 25)) else Fraction(101, 100))
    for shape, reaches in (((3,), (5, 8, 34)), ((2, 2), (4, 6, 20)), ((2, 3), (4, 6, 26)), ((3, 3), (4, 6, 20)), ((2, 2, 2), (3, 4, 15)))
    for variance, reach in zip((Fraction(9, 25), Fraction(1), Fraction(25)), reaches, strict=True)
]


@pytest.mark.long
@pytest.mark.parametrize(("shape", "sigma_squared", "reach", "wrong"), ENUMERATED, ids=str)
def test_every_point_of_small_grids(shape: tuple[int, ...], sigma_squared: Fraction, reach: int, wrong: Fraction) -> None:
    """|z|^2 is what a wrong sigma changes: 1 % is seen there. Every point is a bin of its own, where they are not too many."""
    sampler = SequentialGaussian(shape, sigma_squared)
    larger: dict[tuple[int, ...], int] = {(3, 3): 1_000_000, (2, 2): 8_000_000 if sigma_squared < 1 else 2_500_000}
    draws = larger.get(shape, 2_500_000)
    drawn = sampler.draw(draws, NoiseKey.for_tests("enumerated").stream(str(shape), str(sigma_squared)))
    for by_energy, off in ((True, wrong), (False, 3 * wrong - 2)):
        if by_energy or shape != (3, 3):
            values = codes(drawn, shape, reach, by_energy)
            check_fit(values, enumerated(shape, float(sigma_squared), reach, by_energy), name=f"{sampler!r} {by_energy}")
            assert not fits(values, enumerated(shape, float(sigma_squared * off), reach, by_energy))


@pytest.mark.parametrize("shape", [(3,), (2, 3)], ids=str)
def test_the_law_without_the_keep_step_is_told_apart(shape: tuple[int, ...]) -> None:
    """At sigma = .6 the product of the one-dimensional laws is target / prod theta ratios: what a sampler without the step would draw."""
    sigma_squared, reach = Fraction(9, 25), 4
    sampler = SequentialGaussian(shape, sigma_squared)
    values = codes(sampler.draw(1_000_000, NoiseKey.for_tests("keep").stream(str(shape))), shape, reach, False)
    right = enumerated(shape, float(sigma_squared), reach, False)
    kept = [math.prod(float(theta_ratio_ball(s, c)) for _, c, s in sampler.centres(z)) for z in grid_points(shape, reach).tolist()]
    without = right / np.array(kept)
    assert fits(values, right)
    assert not fits(values, without / without.sum())


class WithoutKeepStep(SequentialGaussian):
    keep_error = -2.0
    """A negative band makes the compiled loop keep everything."""


@pytest.mark.ordinary("(3,)", "(2, 3)")
@pytest.mark.parametrize(("shape", "reach"), [((3,), 5), ((2, 3), 4), ((3, 3), 4)], ids=str)
def test_a_sampler_without_the_keep_step_is_found_out(shape: tuple[int, ...], reach: int) -> None:
    """The law is visibly wrong at sigma = .6."""
    law = enumerated(shape, 0.36, reach, False)
    for kind in (SequentialGaussian, WithoutKeepStep):
        drawn = kind(shape, Fraction(9, 25)).draw_compiled(500_000, NoiseKey.for_tests("mutation").stream(str(shape)))
        assert fits(codes(drawn, shape, reach, False), law) == (kind is SequentialGaussian)


def test_expected_tries() -> None:
    """One sum: the value, here against enumeration. Grids: a bound that is not below the truth."""
    for shape, exact in (((3,), True), ((2, 3), False), ((3, 3), False)):
        sampler = SequentialGaussian(shape, Fraction(9, 25))
        points = grid_points(shape, 5)
        mass = np.exp(-(points * points).sum(axis=1) / 0.72).sum()
        thetas = [sum(math.exp(-k * k / (2 * float(s))) for k in range(-20, 21)) for *_, s in sampler.centres([0] * sampler.cells)]
        truth = math.prod(thetas) / mass
        assert math.isclose(sampler.expected_tries, truth, rel_tol=1e-9) if exact else truth <= sampler.expected_tries < 2 * truth
    assert 1 <= SequentialGaussian((10**6,), Fraction(1)).expected_tries < 1.001
    assert SequentialGaussian((1000, 1000), Fraction(1)).expected_tries < 1.5
    assert SequentialGaussian((1000, 1000), Fraction(1, 4)).expected_tries == math.inf


def test_what_is_refused() -> None:
    for shape in ((), (1,), (3, 1), (0, 2)):
        with pytest.raises(InvalidParameter):
            SequentialGaussian(shape, Fraction(1))
    with pytest.raises(InvalidParameter):
        SequentialGaussian((3,), Fraction(1, 2**30))
    with pytest.raises(RequestTooLarge):
        SequentialGaussian((10**4, 10**4), Fraction(10**20))
    with pytest.raises(RequestTooLarge):
        SequentialGaussian((2,), Fraction(10**31))
    assert SequentialGaussian((3, 3), Fraction(5)).draw(0, ListedWords([])).shape == (0, 9)
