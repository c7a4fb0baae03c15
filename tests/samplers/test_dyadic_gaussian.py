"""The dyadic Gaussian: its algebra in exact rationals, an oracle, open words, every point of small vectors."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact import DiscreteGaussian
from holdfast.exact.balls import ball, precision
from holdfast.randomness import NoiseKey
from holdfast.samplers import _dyadic_compiled as loops
from holdfast.samplers import dyadic_gaussian
from holdfast.samplers.dyadic_gaussian import DyadicGaussian
from holdfast.samplers.theta import theta_ratio_ball
from holdfast.testing import ListedWords, check_fit, fits

ONES = 2**32 - 1
Draw = tuple[int, Fraction, Fraction]


def one_dimensional_draws(z: list[int], piece: int, sigma_squared: Fraction) -> list[Draw]:
    """(value, centre, variance) of every draw that leads to z, from the description alone: parts in turn, then halves of every piece."""
    cells, whole = len(z), len(z) // piece * piece
    parts = [z[i : i + piece] for i in range(0, whole, piece)] + [[value] for value in z[whole:]]
    draws, total, left = [], 0, cells
    for part in parts[:-1]:
        m = len(part)
        draws.append((sum(part), Fraction(-total * m, left), sigma_squared * m * Fraction(left - m, left)))
        total, left = total + sum(part), left - m
    nodes = [part for part in parts if len(part) > 1]
    while nodes:
        node = nodes.pop()
        m = len(node) // 2
        draws.append((sum(node[:m]), Fraction(sum(node), 2), sigma_squared * m / 2))
        nodes += [half for half in (node[:m], node[m:]) if m > 1]
    return draws


@pytest.mark.parametrize(("cells", "piece"), [(4, 2), (4, 4), (5, 2), (5, 4), (7, 4), (16, 8), (3, 4), (19, 8)])
def test_proposal_times_keep_probability_is_the_target(cells: int, piece: int) -> None:
    sigma_squared = Fraction(5, 2)
    sampler = DyadicGaussian(cells, sigma_squared, piece=piece)
    rng = np.random.default_rng(3)
    constants = []
    for _ in range(4):
        z = rng.integers(-5, 6, cells - 1).tolist()
        z.append(-sum(z))
        draws = one_dimensional_draws(z, piece, sigma_squared)
        assert len(draws) == cells - 1
        assert sum((value - c) ** 2 / s for value, c, s in draws) == sum(v * v for v in z) / sigma_squared
        with precision(300):
            kept = math.prod((theta_ratio_ball(s, c) for _, c, s in draws), start=arb(1))
            log_weight = kept.log() + ball(Fraction(sum(v * v for v in z)) / (2 * sigma_squared))
            for value, c, s in draws:
                chance = DiscreteGaussian(s, c).pmf_bounds(value)
                log_weight += ball(chance.lower).union(ball(chance.upper)).log()
            constants.append(log_weight)
            parts, odd = _parts_and_odd(z, piece)
            of_parts = [theta_ratio_ball(variance, c) for _, c, variance in sampler._parts.centres(parts)]
            assert kept.overlaps(sampler._keep_probability(odd) * math.prod(of_parts, start=arb(1)))
    for other in constants[1:]:
        assert constants[0].overlaps(other)
        assert abs(constants[0] - other) < arb(2) ** -45


def _parts_and_odd(z: list[int], piece: int) -> tuple[list[int], list[int]]:
    whole = len(z) // piece * piece
    nodes = np.array(z[:whole], dtype=np.int64).reshape(-1, piece)
    values = [*nodes.sum(axis=1).tolist(), *z[whole:]]
    sizes = [piece >> level for level in range(piece.bit_length() - 1)]
    return values, [int((nodes.reshape(-1, size).sum(axis=1) & 1).sum()) for size in sizes]


@pytest.mark.ordinary("5/2-", "-2-2", "-3-4", "-4-2", "-5-4", "-9-4", "-1024-")
@pytest.mark.parametrize(("cells", "piece"), [(2, 2), (3, 4), (4, 2), (5, 4), (9, 4), (600, 256), (1024, 256), (777, 64), (255, 256)])
@pytest.mark.parametrize("sigma_squared", [Fraction(5, 2), Fraction(100), Fraction(10**4)], ids=str)
def test_compiled_draws_equal_the_oracle_whatever_the_band(cells: int, piece: int, sigma_squared: Fraction) -> None:
    for chunk_pairs in (5, 1 << 15):
        stream = NoiseKey.for_tests("dyadic").stream("oracle")
        slow = DyadicGaussian(cells, sigma_squared, piece=piece, chunk_pairs=chunk_pairs).draw_slowly(3, stream)
        for band, index_bits in ((4.0, 6), (2.0**-4, 10), (2.0**-20, 13), (2.0**-40, None)):
            again = NoiseKey.for_tests("dyadic").stream("oracle")
            sampler = DyadicGaussian(cells, sigma_squared, piece=piece, chunk_pairs=chunk_pairs, band=band, index_bits=index_bits)
            assert np.array_equal(sampler.draw_with(3, again, loops), slow)
            assert again.position == stream.position
        assert (slow.sum(axis=1) == 0).all()
        assert slow.any()


@pytest.mark.parametrize("extra", [0, ONES])
def test_an_open_table_word_is_settled_by_its_own_bits(extra: int) -> None:
    """The top node's word, the second, equals a threshold: bits below it decide between two neighbours, in both forms."""
    sampler = DyadicGaussian(4, Fraction(4), piece=4)
    table = sampler._tables[0][0]
    index = int(np.searchsorted(table.high, 2**31 + 2**29))
    listed = [0, int(table.high[index]), 2**30 + 12345, 2**31 + 54321, 0]
    for use in (None, loops):
        drawn = sampler.draw_with(1, ListedWords(listed, lambda i, depth: (extra,) * 4 if i == 1 else (ONES // 3,) * 4), use)[0]
        assert drawn[:2].sum() == table.first + index + (1 if extra else 0)
        assert drawn.sum() == 0


@pytest.mark.parametrize("use_compiled", [False, True])
@pytest.mark.parametrize("extra", [0, ONES])
def test_an_open_keep_word_is_settled_by_its_own_bits(use_compiled: bool, extra: int) -> None:
    """Two odd nodes: kept with probability kappa^2, which lies in the last cell of 2^-32; 1 - 2^-160 is not below it, 1 - 2^-32 is."""
    sampler = DyadicGaussian(4, Fraction(5, 2), piece=4)
    table = sampler._tables[0][0]
    one, zero = (int(table.high[value - table.first]) - 5000 for value in (1, 0))
    with precision(100):
        assert 1 - arb(2) ** -32 < theta_ratio_ball(Fraction(5, 4), Fraction(1, 2)) ** 2 < 1
    listed = [0, one, 2**30 + 12345, 2**31 + 54321, ONES, 0, zero, 2**30 + 12345, 2**31 + 54321, 0]
    words = ListedWords(listed, lambda i, depth: (extra,) * 4 if i == 4 else (ONES // 3,) * 4)
    drawn = sampler.draw_with(1, words, loops if use_compiled else None)[0]
    assert words.position == (10 if extra else 5)
    assert drawn[:2].sum() == (0 if extra else 1)


def test_no_band_is_hit_in_large_vectors_and_sums_are_zero() -> None:
    for cells in (100_000, 65_536, 99_999):
        drawn = DyadicGaussian(cells, Fraction(10)).draw(1, NoiseKey.for_tests("large").stream(str(cells)))
        assert drawn.shape == (1, cells)
        assert drawn.sum() == 0
        assert 0.97 < float((drawn * drawn).mean()) / 10 < 1.03  # chi-square, 10^5 degrees of freedom: 6.7 standard deviations


def points_of(cells: int, reach: int) -> NDArray[np.int64]:
    values = np.arange(-reach, reach + 1)
    free = np.stack(np.meshgrid(*[values] * (cells - 1), indexing="ij"), axis=-1).reshape(-1, cells - 1)
    return np.concatenate([free, -free.sum(axis=1, keepdims=True)], axis=1)


@pytest.mark.long
@pytest.mark.parametrize(("cells", "piece"), [(4, 2), (4, 4), (5, 2), (5, 4)])
def test_every_point_of_small_vectors(cells: int, piece: int) -> None:
    """Codes of the first three cells (all points, if there are four), and |z|^2; 10 % more sigma_squared is seen."""
    reach, side = 11, 23
    sampler = DyadicGaussian(cells, Fraction(4), piece=piece)
    drawn = sampler.draw_with(25_000, NoiseKey.for_tests("points").stream(cells, piece), loops)
    points = points_of(cells, reach)
    assert abs(drawn).max() <= reach
    codes = {"points": lambda z: (z[:, :3] + reach) @ np.array([side * side, side, 1]), "energy": lambda z: (z * z).sum(axis=1)}
    for name, code in codes.items():
        right, wrong = (np.bincount(code(points), weights=np.exp(-(points * points).sum(axis=1) / (2 * s))) for s in (4.0, 4.4))
        check_fit(code(drawn), right / right.sum(), name=f"{sampler!r}, pieces of {piece}, {name}")
        assert not fits(code(drawn), wrong / wrong.sum())


def test_expected_tries() -> None:
    assert 1 <= DyadicGaussian(10**7, Fraction(5, 2)).expected_tries < 1.0003
    assert DyadicGaussian(5, Fraction(4), piece=4).expected_tries == pytest.approx(1)


def test_what_is_refused() -> None:
    for cells, sigma_squared in ((1, Fraction(5)), (2000, Fraction(2)), (2000, Fraction(10**7))):
        with pytest.raises(InvalidParameter):
            DyadicGaussian(cells, sigma_squared)
    assert DyadicGaussian(2000, Fraction(5)).draw(0, ListedWords([])).shape == (0, 2000)


def test_the_quick_keep_step_never_keeps_what_the_exact_one_throws_away(monkeypatch) -> None:
    """With the noise that is allowed, nearly all vectors are kept; with less, one in five is thrown away and a wrong bound shows."""
    monkeypatch.setattr(dyadic_gaussian, "LEAST_SIGMA_SQUARED", Fraction(1, 4))
    sampler = DyadicGaussian(14, Fraction(1, 2), piece=4)
    draws, positions = [], []
    for way in (loops, None):
        with NoiseKey.for_tests("thrown away").stream("words") as words:
            draws.append(sampler.draw_with(150, words, way))
            positions.append(words.position)
    assert np.array_equal(draws[0], draws[1])
    assert positions[0] == positions[1]
