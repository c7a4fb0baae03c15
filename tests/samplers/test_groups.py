"""The sequential law in groups: its price by enumeration, its draws, their exactness, and what the groups are worth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from holdfast.lattices.shapes import Grid, Levels
from holdfast.lattices.trees import Tree
from holdfast.laws import Gaussian, Sequential, group_bounds, group_length, kappa_bound
from holdfast.laws.sequential import GROUP_LENGTHS
from holdfast.randomness import NoiseKey
from holdfast.samplers import sequence_gaussian
from holdfast.samplers.levels_gaussian import LevelsGaussian, SequentialGaussian
from holdfast.samplers.protocol import steps_beneath
from holdfast.samplers.steps import Line
from holdfast.samplers.table import choose, steps_of
from holdfast.samplers.tree_gaussian import TreeGaussian
from holdfast.testing import SteppedLaw, check_fit_categories, worst_loss
from holdfast.testing.fit import ALPHA
from tests.samplers.stepped import law_of, outcomes, short_secrets
from tests.samplers.test_sequential_law import ALPHAS, TINY, listed, p_value

ONE = Fraction(1)
PLAIN = Tree.plain
MADE: dict[str, Callable[..., Any]] = {
    "three cells at 1/3": partial(SequentialGaussian, (3,), ONE / 3),
    "five cells at 1/4": partial(SequentialGaussian, (5,), ONE / 4),
    "3 x 3 at 3/5": partial(SequentialGaussian, (3, 3), ONE * 6 / 10),
    "3 x 4 at 3/5": partial(SequentialGaussian, (3, 4), ONE * 6 / 10),
    "2 x 3 x 2, lines of two": partial(LevelsGaussian, Levels((PLAIN(2), PLAIN(3), PLAIN(2)), ((0, 1, 1), (1, 1, 0))), ONE),
    "2 x 3, one total": partial(LevelsGaussian, Levels((PLAIN(2), PLAIN(3)), ((0, 0),)), ONE / 2),
    "two states of three counties": partial(
        TreeGaussian, Tree(((2,), (3, 3))), (), (frozenset({0}), frozenset(), frozenset()), {(2, 0): ONE * 2, (1, 0): ONE}
    ),
    "two states times three": partial(
        TreeGaussian, Tree(((2,),)), (3,), (frozenset({0}), frozenset({0})), {(1, 0): ONE, (1, 1): ONE * 2, (0, 1): ONE}
    ),
}


def made(name: str, **others: Any) -> Any:
    return MADE[name](whole=False, in_groups=True, **others)


@pytest.mark.parametrize("name", MADE)
def test_no_short_secret_loses_more_than_the_price(name: str) -> None:
    sampler = made(name)
    law, cells = law_of(sampler), MADE[name](whole=False)
    worst = worst_loss(law, short_secrets(law), ALPHAS)
    assert worst.ratio.upper - worst.ratio.lower < TINY
    assert worst.ratio.upper <= 1 + sampler.steps.kappa
    assert any(sampler.groups) is (name != "2 x 3 x 2, lines of two") is bool(law.groups)
    assert (sampler.steps.kappa < cells.steps.kappa) is any(sampler.groups)
    assert cells.steps.cheapest().in_groups is any(sampler.groups)


@pytest.mark.parametrize(("v", "share"), [("2/5", 95), ("1/2", 98)])
def test_a_price_a_little_too_small_is_caught_on_a_group(v: str, share: int) -> None:
    """Three cells whose centre makes two of the three shortest vectors of the dual lattice count in full, a secret across the third."""
    variance, t = Fraction(v), Fraction(1, 1 << 10)
    law = SteppedLaw((variance * 2 / 3, variance / 2), ((), (-ONE / 2,)), (ONE / 2, ONE * 3 / 4), (2,))
    worst = worst_loss(law, [(t, -t)], ALPHAS)
    kappa = group_bounds(variance, 3)[1]
    assert 1 + kappa * Fraction(share, 100) < worst.ratio.lower
    assert worst.ratio.upper <= 1 + kappa


def test_a_group_of_one_and_a_group_of_all() -> None:
    """One is the step itself; the group of all cells is the lattice law, whose integer secrets have no price."""
    variances, rows = (ONE / 3, ONE / 4), ((), (-ONE / 2,))
    alone, also, lattice = (SteppedLaw(variances, rows, groups=groups) for groups in ((), (1, 1), (2,)))
    for secret in ((1, 0), (1, -1)):
        assert worst_loss(alone, [secret], ALPHAS) == worst_loss(also, [secret], ALPHAS)
        assert abs(worst_loss(lattice, [secret], ALPHAS).ratio.upper - 1) < TINY


@pytest.mark.parametrize(("v", "n"), [("1/4", 3), ("3/10", 4), ("1/2", 5), ("1/4", 4)])
def test_bounds_of_a_group_are_sums_over_the_dual_lattice(v: str, n: int) -> None:
    theta = moment = 0.0
    for short in product(range(-5, 6), repeat=n - 1):
        length = 4 * math.pi**2 * float(Fraction(v)) * (sum(a * a for a in short) - sum(short) ** 2 / n)
        theta += math.exp(-length / 2)
        moment += length * math.exp(-length / 2)
    beyond, kappa = group_bounds(Fraction(v), n)
    assert float(beyond) == pytest.approx(theta - 1, abs=2e-8)
    assert float(kappa) == pytest.approx(moment / (n - 1) / (2 - theta), abs=2e-8)


def test_prices_fall_in_the_variance_and_are_below_those_of_cells() -> None:
    assert float(group_bounds(ONE / 2, 100)[1]) == pytest.approx(0.0023, abs=1e-5)
    assert group_length(ONE / 4 - TINY) == 0
    for sizes in ((3,), (4,), (7,), (3, 300), (300,)):
        grid = sorted({ONE / 4 + ONE * i / 40 for i in range(30)} | {least - TINY for least, _ in GROUP_LENGTHS[:-1]})
        prices = [Line(v, sizes).kappa(ONE, in_groups=True) for v in grid]
        assert prices == sorted(prices, reverse=True)
        assert all(price < Line(v, sizes).kappa(ONE, in_groups=False) for v, price in zip(grid, prices, strict=True))
    for least, length in GROUP_LENGTHS:
        assert all(group_bounds(least * (1 - TINY), n)[0] < ONE / 2 for n in {3, 4, 8, length})
    with pytest.raises(ValueError, match="no bound of kappa"):
        group_bounds(ONE / 4, 100)


def test_what_falls_along_the_lines_of_a_stage_is_bounded_by_its_first() -> None:
    line, variances = Line(ONE * 3 / 10, (16,)), np.array([0.2, 0.3, 0.31, 0.5, 1.0])
    distance, drift, price = line.group_steps(variances, 16)
    for v, far, moved, bound in zip(variances[1:], distance[1:], drift[1:], price[1:], strict=True):
        beyond, kappa = map(float, group_bounds(Fraction(v), 16))
        assert bound * (1 + 1e-9) + 1e-7 >= kappa
        assert far * (1 + 1e-9) + 1e-7 >= math.log((1 + beyond) / (1 - beyond))
        assert moved * (1 + 1e-9) + 1e-7 >= kappa * beyond / (1 - beyond)
    assert distance[0] == distance[1], "none is narrower than the first: a floor in doubles may be"


FITTED = ["three cells at 1/3", "3 x 3 at 3/5", "3 x 4 at 3/5", "two states of three counties"]


@pytest.mark.parametrize("name", FITTED)
def test_draws_follow_the_law_and_none_ten_percent_off(name: str) -> None:
    """All tables by their probabilities. The power: with variances 10 % larger, and cell after cell, as many draws fail."""
    sampler, n = made(name), 60_000
    law = law_of(sampler)
    drawn = Counter(map(tuple, sampler.draw(n, NoiseKey.for_tests("groups").stream(name)).tolist()))
    check_fit_categories(*listed(drawn, sampler, law), name=f"sequential law in groups, {name}")
    wider = SteppedLaw(tuple(v * 11 / 10 for v in law.variances), law.coefficients, groups=law.groups)
    assert p_value(drawn, sampler, wider) < ALPHA
    cells = SteppedLaw(law.variances, law.coefficients)
    assert sampler.steps.kappa < ONE / 10 or p_value(drawn, sampler, cells) < ALPHA


@pytest.mark.parametrize("chunk", [5, 64, 1 << 15])
@pytest.mark.parametrize("name", [*MADE, "a line of forty", "wider than groups are long"])
def test_the_same_draws_without_floats(name: str, chunk: int) -> None:
    import holdfast.samplers._levels_compiled  # noqa: F401  # so that the fast form is taken

    more = {"a line of forty": ((40,), ONE * 3 / 10), "wider than groups are long": ((4, 3, 20), ONE)}
    make = partial(made, name) if name in MADE else partial(SequentialGaussian, *more[name], whole=False, in_groups=True)
    words = [NoiseKey.for_tests("groups").stream(name, str(chunk)) for _ in range(3)]
    slow, fast, wide = (make(chunk_pairs=chunk, **band) for band in ({}, {}, {"band": 2.0**-4}))
    n = 40 if slow.cells < 50 else 4
    expected = slow.draw_slowly(n, words[0])
    assert np.array_equal(expected, fast.draw_compiled(n, words[1]))
    assert np.array_equal(expected, wide.draw_compiled(n, words[2]))
    assert len({own.position for own in words}) == 1


def test_a_group_is_drawn_again_as_often_as_it_must_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """One keep word for each try: their number is that of the groups times at most the bound of tries."""
    taken: list[int] = []
    real = sequence_gaussian.ClassPairs.next_keep
    monkeypatch.setattr(sequence_gaussian.ClassPairs, "next_keep", lambda *own: taken.append(1) or real(*own))  # type: ignore[func-returns-value]
    sampler, n = SequentialGaussian((4, 10), ONE / 2, whole=False, in_groups=True), 100
    sampler.draw_slowly(n, NoiseKey.for_tests("groups").stream("tries"))
    assert sampler.keeps == 3
    assert 3 * n < len(taken) < 3 * n * sampler.expected_tries
    assert sampler.expected_tries < 3


def test_steps_bound_how_far_groups_are_from_the_lattice_law() -> None:
    for s2 in (ONE / 2, ONE * 9 / 10):
        sampler = SequentialGaussian((3, 3), s2, whole=False, in_groups=True)
        law, steps = law_of(sampler), sampler.steps
        chances = outcomes(law, 1e-11)
        weights = {values: math.exp(-float(law.rho(values))) for values in chances}
        total = math.fsum(weights.values())
        distance = math.fsum(abs(chances[values] - weights[values] / total) for values in chances) / 2
        assert 0 < distance <= steps.total_variation < 1
        cells = SequentialGaussian((3, 3), s2, whole=False).steps
        assert (steps.least, steps.times, steps.log_tries) == (cells.least, cells.times, cells.log_tries)
        assert steps.log_distance < cells.log_distance


PRICES = {
    "300 x 300 at 1/2": (Grid((300, 300)), "1/2", "1.0054", ".4466"),
    "300 x 300 at 1": (Grid((300, 300)), "1", ".1441", ".00231"),
    "300 x 300 at 2": (Grid((300, 300)), "2", ".00205", ".000001"),
    "100 x 100 x 100 at 1": (Grid((100, 100, 100)), "1", "1.0054", ".4466"),
    "100 x 100 x 100 at 2": (Grid((100, 100, 100)), "2", ".1441", ".00231"),
}


@pytest.mark.parametrize("name", PRICES)
def test_what_groups_are_worth(name: str) -> None:
    shape, sigma_squared, cells, groups = PRICES[name]
    steps = steps_of(shape, Gaussian(Fraction(sigma_squared)))
    best = steps.cheapest()
    assert Fraction(cells) * Fraction(99, 100) < steps.kappa <= Fraction(cells)
    assert best.kappa <= Fraction(groups)
    assert best.in_groups
    assert best.kappa == steps_of(shape, Gaussian(Fraction(sigma_squared)), in_groups=True).kappa


def test_groups_are_in_the_identity_and_change_the_draws() -> None:
    shape, of = Grid((5, 6)), Gaussian(ONE)
    cells, groups = Sequential(of), Sequential(of, in_groups=frozenset({shape}))
    assert cells.fields != groups.fields
    assert Sequential(of, by_lattice=frozenset({shape})).fields != groups.fields
    drawn = [choose(shape, law).noise.draw(20, NoiseKey.for_tests("groups").stream("identity")) for law in (cells, groups)]
    assert not np.array_equal(drawn[0], drawn[1])
    assert not any(z.reshape(20, 5, 6).sum(axis=axis).any() for z in drawn for axis in (1, 2))
    mirrored = Grid((2, 5, 6))
    law = Sequential(Gaussian(ONE * 2), in_groups=frozenset({mirrored}))
    assert steps_beneath(choose(mirrored, law).noise).kappa == steps_beneath(choose(shape, groups).noise).kappa < kappa_bound(ONE / 4)


@pytest.mark.parametrize("name", [name for name in MADE if "states" not in name])
def test_the_tail_of_a_form_in_groups_is_within_that_of_all_steps(name: str) -> None:
    """A group counts as one step, with its form's whole variance: by Cauchy and Schwarz no more than all steps together."""
    sampler = made(name)
    basis = sampler.shape.basis().astype(float)
    projection = basis @ np.linalg.solve(basis.T @ basis, basis.T)
    rng = np.random.default_rng(7)
    for form in (*np.eye(sampler.cells)[:3], *rng.integers(-2, 3, (4, sampler.cells))):
        covariances = float(sampler.scale) * projection @ form
        variance, (shift, excess) = float(form @ covariances), sampler.tail_of(covariances)
        assert 0 <= shift <= sampler.steps.shift(variance) * (1 + 1e-7)
        assert 0 <= excess <= variance * float(sampler.steps.kappa) * (1 + 1e-7)


def test_the_mean_of_a_group_is_within_its_bound() -> None:
    """Wherever its centre is: the group's terms of the tail, by enumeration of three and four cells."""
    rng = np.random.default_rng(11)
    for v, n in ((0.3, 3), (0.25, 4), (0.5, 3)):
        line, worst = Line(Fraction(v), (n,)), (0.0, 0.0)
        cells = np.array([(*z, -sum(z)) for z in product(range(-7, 8), repeat=n - 1)], dtype=float)
        for centre in (*rng.uniform(-0.5, 0.5, (300, n)), np.array([0.5, 0.5, *(0.0,) * (n - 2)])):
            away = cells - (centre - centre.mean())
            chances = np.exp(-(away**2).sum(axis=1) / (2 * v))
            mean = chances / chances.sum() @ away
            spread = np.linalg.eigvalsh((away - mean).T * (chances / chances.sum()) @ (away - mean)).max()
            worst = max(worst[0], mean @ mean / v), max(worst[1], spread / v - 1)
        _, drift, kappa = line.group_steps(np.array([v]), n)
        assert 0.1 * drift[0] < worst[0] <= drift[0]
        assert 0.7 * kappa[0] < worst[1] <= kappa[0]
