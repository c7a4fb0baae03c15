"""The sequential law: its price by enumeration, what decides it, its draws by the law and by none that is 10 % off, and cells of any
variance.
"""

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

from holdfast.lattices.shapes import Free, General, Grid, Levels, OneSum, Shape, Units
from holdfast.lattices.trees import Tree
from holdfast.laws import Gaussian, LevelGaussian, Sequential, kappa_bound
from holdfast.randomness import NoiseKey
from holdfast.samplers.classes import ClassGaussian
from holdfast.samplers.klein import KleinGaussian
from holdfast.samplers.levels_gaussian import LevelsGaussian, SequentialGaussian
from holdfast.samplers.protocol import steps_beneath
from holdfast.samplers.steps import Steps, together
from holdfast.samplers.table import choose, steps_of
from holdfast.samplers.tree_gaussian import TreeGaussian
from holdfast.testing import SteppedLaw, check_fit_categories, renyi_divergence, worst_loss
from holdfast.testing.fit import ALPHA, chi_square_p_value
from tests.samplers.levels_shapes import SMALL
from tests.samplers.stepped import cells_of, law_of, outcomes, short_secrets, table_of
from tests.samplers.test_classes import SHAPES
from tests.samplers.test_klein import LATTICES
from tests.samplers.test_tree_gaussian import CASES, sampler_for

ALPHAS = [Fraction(101, 100), Fraction(3, 2), Fraction(2), Fraction(7, 2), Fraction(11), Fraction(64)]
ONE, TINY = Fraction(1), Fraction(1, 10**12)
GRIDS = [
    ((3,), ONE / 5),
    ((3,), ONE * 6 / 10),
    ((4,), ONE / 3),
    ((5,), ONE),
    ((3, 3), ONE * 7 / 10),
    ((3, 3), ONE * 2),
    ((3, 4), ONE * 6 / 10),
]
LEVELS = [name for name in SMALL if "region" not in name and "single" not in name]
PAIRED = {
    "one pair, totals of one dimension": General(((1, 0, 1), (0, 1, 1)), (2, 1, 1)),
    "one pair, totals of two": General(((1, 1, 1),), (1, 2, 1)),
    "one pair, weighed": General(((1, 2, 1), (0, 1, 1)), (1, 1, 2)),
    "one pair, totals narrower than cells": General(((1, 2, 3, 4),), (1, 1, 1, 2)),
}
"""A single cell is drawn once class totals are known: its centre is half of its class's."""
THREE_COUNTIES = partial(
    TreeGaussian, Tree(((3,), (3, 1, 2))), (), (frozenset({0}), frozenset(), frozenset()), {(2, 0): ONE, (1, 0): ONE * 10}
)
"""A tree whose counties have unequal weights: the second of three is the narrowest step."""
DENSE = ("one sum of three cells", "2 x 3 margins", "[[2, -3]]", "three overlapping sets")
MADE: dict[str, Callable[[], Any]] = {
    **{f"grid {axes} at {s2}": partial(SequentialGaussian, axes, s2, whole=False) for axes, s2 in GRIDS},
    **{f"levels, {name}": partial(LevelsGaussian, SMALL[name], ONE * 6 / 10, whole=False) for name in LEVELS},
    **{f"tree, {name}": partial(sampler_for, name, scale=3, whole=False) for name in list(CASES)[:6]},
    "tree, three counties": partial(THREE_COUNTIES, whole=False),
    **{f"klein, {name}": partial(KleinGaussian, LATTICES[name], ONE * 4 / 10, whole=False) for name in DENSE},
    **{f"classes, {name}": partial(ClassGaussian, SHAPES[name], ONE / 2, whole=False) for name in SHAPES},
    **{f"classes, {name}": partial(ClassGaussian, PAIRED[name], ONE * 4 / 10, whole=False) for name in PAIRED},
}


@pytest.mark.parametrize("name", MADE)
def test_no_short_secret_loses_more_than_the_price(name: str) -> None:
    sampler = MADE[name]()
    law, steps = law_of(sampler), sampler.steps
    secrets = short_secrets(law)
    worst = worst_loss(law, secrets, ALPHAS)
    assert worst.ratio.upper <= 1 + max(steps.kappa, TINY)
    assert worst.ratio.upper - worst.ratio.lower < TINY
    moving = [v for v, row in zip(law.variances, law.coefficients, strict=True) if any(row)]
    assert (steps.least is None) == (not moving)
    if steps.least is not None:  # what is priced is what is drawn
        assert steps.kappa >= kappa_bound(min(moving))
        assert abs(float(min(moving) / steps.least) - 1) < 1e-12
        assert moving.count(min(moving)) <= steps.times <= law.variances.count(min(moving))


def test_at_least_twenty_lattices_are_enumerated() -> None:
    assert len(MADE) >= 20


def test_a_price_five_percent_too_small_is_caught_on_the_step_itself() -> None:
    """There the bound is tight: N_Z(1/2, 1/5) against the centre 1/2 + 2^-10."""
    v = ONE / 5
    step = SteppedLaw((v,), ((),), (ONE / 2,))
    worst = worst_loss(step, [(Fraction(1, 1 << 10),)], ALPHAS)
    assert float(worst.ratio.upper) == pytest.approx(1.3169, abs=1e-4)
    assert 1 + kappa_bound(v) * Fraction(95, 100) < worst.ratio.lower
    assert worst.ratio.upper <= 1 + kappa_bound(v)


def test_narrow_steps_after_a_broad_one_come_nearer_to_the_price_with_their_number() -> None:
    """Why the largest kappa is charged and no mean of them: one broad step moves all centres. So no smaller constant will do."""
    found = []
    for count in (1, 10):
        narrow = tuple((ONE / 8, *(Fraction(0),) * i) for i in range(count))
        law = SteppedLaw((Fraction(30), *(ONE / 10,) * count), ((), *narrow))
        found.append(worst_loss(law, [(1, *(0,) * count)], [Fraction(2)]).ratio)
    assert found[0].upper < Fraction(105, 100)
    assert Fraction(145, 100) < found[1].lower
    assert found[1].upper < 1 + kappa_bound(ONE / 10)


FITTED = ["grid (3,) at 3/5", "grid (3, 3) at 7/10", "levels, 2 x 2 x 2, AB and C", "tree, two levels, kept nowhere",
          "klein, three overlapping sets", "classes, two overlapping area systems"]  # fmt: skip


@pytest.mark.parametrize("name", FITTED)
def test_draws_follow_the_law_and_none_ten_percent_off(name: str) -> None:
    """All tables by their probabilities. The power: with variances 10 % larger, and by the lattice law, as many draws fail."""
    sampler, n = MADE[name](), 60_000
    law = law_of(sampler)
    drawn = Counter(map(tuple, sampler.draw(n, NoiseKey.for_tests("sequential law").stream(name)).tolist()))
    check_fit_categories(*listed(drawn, sampler, law), name=f"sequential law, {name}")
    wider = SteppedLaw(tuple(v * 11 / 10 for v in law.variances), law.coefficients)
    assert p_value(drawn, sampler, wider) < ALPHA
    whole = Counter(map(tuple, whole_draws(name, n).tolist()))
    assert sampler.steps.log_tries < 0.04 or p_value(whole, sampler, law) < ALPHA


def listed(drawn: Counter[Any], sampler: Any, law: SteppedLaw) -> tuple[dict[Any, int], dict[Any, float]]:
    """(how often each table was drawn, its probability); one name for all that are rarer than what is listed."""
    chances = {table_of(sampler, values): chance for values, chance in outcomes(law).items()}
    counts: Counter[Any] = Counter({table: drawn[table] for table in chances})
    counts["rare"] = drawn.total() - counts.total()
    return dict(counts), {**chances, "rare": 1 - math.fsum(chances.values())}


def p_value(drawn: Counter[Any], sampler: Any, law: SteppedLaw) -> float:
    counts, chances = listed(drawn, sampler, law)
    return chi_square_p_value([counts[table] for table in chances], list(chances.values()), drawn.total())


def whole_draws(name: str, n: int) -> Any:
    """Draws with the accept step."""
    sampler = MADE[name]()
    for part in (sampler, getattr(sampler, "totals", None), getattr(sampler, "inside", None)):
        if part is not None:
            part.whole = True
    return sampler.draw(n, NoiseKey.for_tests("lattice law").stream(name))


@pytest.mark.parametrize("name", [name for name in MADE if not name.startswith("klein")])
def test_the_same_draws_without_floats(name: str) -> None:
    import holdfast.samplers._levels_compiled  # noqa: F401  # so that the fast form is taken

    sampler = MADE[name]()
    slow_words, fast_words, wide_words = (NoiseKey.for_tests("sequential law").stream(name, "oracle") for _ in range(3))
    slow = sampler.draw_slowly(40, slow_words)
    draw = "draw" if name.startswith("classes") else "draw_compiled"
    assert np.array_equal(slow, getattr(sampler, draw)(40, fast_words))
    assert slow_words.position == fast_words.position
    for part in (sampler, getattr(sampler, "inside", sampler)):
        part.band = 2.0**-4
    assert np.array_equal(slow, getattr(sampler, draw)(40, wide_words))


def test_weights_that_are_no_integers_decide_alike_in_narrow_cells() -> None:
    import holdfast.samplers._levels_compiled  # noqa: F401  # so that the fast form is taken

    weights = {(2, 0): Fraction(7), (1, 0): Fraction(10**7 + 3, 10**6 + 33), (0, 0): Fraction(10**9 + 7, 10**7 + 19)}
    tree = Tree(((3,), (2, 3, 4)))
    slow_sampler, fast_sampler = (
        TreeGaussian(tree, (2,), (frozenset(), frozenset(), frozenset()), both(weights), whole=False) for _ in range(2)
    )
    assert not slow_sampler.sequence.is_exact
    least = min(variance for _, variance in cells_of(slow_sampler, [0] * slow_sampler.sequence.free_cells))
    assert slow_sampler.steps.least is not None
    assert least * (1 - ONE / 10**9) < slow_sampler.steps.least < least < Fraction(6, 100)
    words = [NoiseKey.for_tests("sequential law").stream("real weights") for _ in range(2)]
    assert np.array_equal(slow_sampler.draw_slowly(200, words[0]), fast_sampler.draw_compiled(200, words[1]))
    assert words[0].position == words[1].position


def both(weights: dict[tuple[int, int], Fraction]) -> dict[tuple[int, int], Fraction]:
    """The same weights for the margin over the axis and the contrast along it, but for a little."""
    return {**weights, **{(level, 1): weight * Fraction(1001, 1000) for (level, _), weight in weights.items()}}


@pytest.mark.parametrize("variance", [ONE / 4, ONE / 30, ONE / 500, ONE / 2**20], ids=str)
def test_cells_of_any_variance_are_drawn_in_bounded_time(variance: Fraction) -> None:
    """A step whose centre lies halfway between two integers takes either: with the supremum over real numbers it would never end."""
    sampler, n = SequentialGaussian((3,), 2 * variance, whole=False), 4000
    words = [NoiseKey.for_tests("sequential law").stream("narrow") for _ in range(2)]
    assert np.array_equal(sampler.draw_slowly(200, words[0]), sampler.draw_compiled(200, words[1]))
    assert words[0].position == words[1].position
    drawn = sampler.draw(n, NoiseKey.for_tests("sequential law").stream("bounded"))
    assert not drawn.sum(axis=1).any()
    levels = LevelsGaussian(Levels((Tree(((1,), (2,))),), ((1,),)), variance, whole=False)
    given = np.tile(np.array([[1]]), (n, 1))
    words = [NoiseKey.for_tests("sequential law").stream("halves") for _ in range(2)]
    halves, kept = levels.draw_given(given, words[0])
    assert kept.all()
    assert (halves.sum(axis=1) == 1).all()
    assert words[0].position < 20 * n
    assert variance > ONE / 20 or 1700 < (halves[:, 0] == 1).sum() < 2300


SHAPED: dict[str, tuple[Shape, Gaussian | LevelGaussian]] = {
    "free": (Free(1), Gaussian(ONE / 2)),
    "one sum": (OneSum(5), Gaussian(ONE / 2)),
    "two cells": (OneSum(2), Gaussian(ONE / 2)),
    "thin grid": (Grid((2, 3, 2)), Gaussian(ONE * 2)),
    "grid": (Grid((3, 4)), Gaussian(ONE / 2)),
    "levels": (SMALL["2 x 3 x 2, one-way"], Gaussian(ONE)),
    "general": (General(((1, 0, 1, 1), (0, 1, 1, 1)), (1, 1, 1, 1)), Gaussian(ONE / 2)),
    "the only county of a state": (Units(Tree(((1,),)), (), ((0,), ())), LevelGaussian(ONE, ((0, 0, ONE),))),
    "units": (Units(Tree(((2,), (2, 3))), (2,), ((0,), (), ())), LevelGaussian(ONE, ((0, 1, ONE / 2), (1, 0, ONE / 2)))),
}


@pytest.mark.parametrize("name", SHAPED)
def test_every_shape_is_drawn_without_tries(name: str) -> None:
    shape, of = SHAPED[name]
    steps = steps_of(shape, of)
    choice = choose(shape, Sequential(of, steps.kappa))
    assert choice.noise.expected_tries == 1.0
    z = choice.noise.draw(50, NoiseKey.for_tests("sequential law").stream(name))
    assert z.shape == (50, shape.size)
    assert shape.is_free or not (z @ np.asarray(shape.project(np.eye(shape.size))).T - z).round(6).any()
    assert (steps.least is None) == (name in ("free", "two cells", "the only county of a state"))
    assert (steps.kappa == 0) == (steps.least is None)
    assert steps_beneath(choose(shape, of).noise) == steps, "the lattice law has the same steps"


def test_the_cube_is_drawn_at_any_budget() -> None:
    """Two-way margins of 100 x 100 x 100 at sigma^2 = 1: the lattice law would need some ten million tries. Its corner decides."""
    steps = steps_of(Grid((100, 100, 100)), Gaussian(ONE))
    assert (steps.least, steps.times, steps.level) == (ONE / 8, 1, (1, 1, 1))
    assert 1 + steps.kappa <= Fraction(201, 100)
    assert math.exp(steps.log_tries) > 10**6
    assert steps.total_variation == 1.0
    z = (
        choose(Grid((30, 30, 30)), Sequential(Gaussian(ONE), steps.kappa))
        .noise.draw(1, NoiseKey.for_tests("cube").stream(0))
        .reshape(30, 30, 30)
    )
    assert not any(z.sum(axis=k).any() for k in range(3))


def test_steps_bound_the_distance_of_the_two_laws() -> None:
    """On three cells: tries, total variation and how far means can be moved, beside their values by enumeration."""
    for s2 in (ONE / 4, ONE * 6 / 10, ONE):
        sampler = SequentialGaussian((3,), s2, whole=False)
        law, steps = law_of(sampler), sampler.steps
        chances = outcomes(law, 1e-12)
        weights = {values: math.exp(-float(law.rho(values))) for values in chances}
        total = math.fsum(weights.values())
        distance = math.fsum(abs(chances[values] - weights[values] / total) for values in chances) / 2
        assert 0 < distance <= steps.total_variation
        spread = [1 / math.sqrt(2 * math.pi * float(v)) for v in law.variances]
        assert total * math.prod(spread) <= math.exp(steps.log_tries)
        assert steps.log_tries < steps.log_distance < 2.5 * steps.log_tries
        for form in product((-1, 0, 1, 2), repeat=2):
            spread_squared = form_variance(law, form)
            for t in (0.5, 1.0, 3.0):
                beyond = math.fsum(p for u, p in chances.items() if abs(u[0] * form[0] + u[1] * form[1]) > t + steps.shift(spread_squared))
                assert spread_squared == 0 or beyond <= 2 * math.exp(-t * t / (2 * (1 + float(steps.kappa)) * spread_squared)) + 1e-9


def form_variance(law: SteppedLaw, form: tuple[int, ...]) -> float:
    """The variance of a linear form of two steps in the continuous law."""
    first, second = form[0] + form[1] * law.coefficients[1][0], form[1]
    return float(first * first * law.variances[0] + second * second * law.variances[1])


def test_blocks_together() -> None:
    one, other = SequentialGaussian((3,), ONE, whole=False).steps, SequentialGaussian((3, 3), ONE * 3, whole=False).steps
    found = together([(one, 2), (other, 5), (Steps(), 100)])
    assert (found.least, found.times, found.kappa) == (ONE / 2, 2, kappa_bound(ONE / 2 * (1 - ONE / 2**40)))
    assert found.log_tries == pytest.approx(2 * one.log_tries + 5 * other.log_tries)
    assert found.drift == pytest.approx(2 * one.drift + 5 * other.drift)
    assert together([(Steps(), 3)]) == Steps()


def test_a_divergence_is_the_one_of_its_definition() -> None:
    law = law_of(SequentialGaussian((3,), ONE / 2, whole=False))
    chances, secret, alpha = outcomes(law, 1e-60), (1, 0), 2.5
    moved = {(u[0] + secret[0], u[1] + secret[1]): p for u, p in chances.items()}
    direct = math.log(math.fsum(p**alpha * chances[u] ** (1 - alpha) for u, p in moved.items() if u in chances)) / (alpha - 1)
    found = renyi_divergence(law, secret, Fraction(5, 2))
    assert float(found.lower) == pytest.approx(direct, rel=1e-9)
    assert found.upper - found.lower < TINY


@pytest.mark.parametrize("name", [name for name in MADE if name.startswith(("grid", "levels"))])
def test_the_tail_of_a_form_is_a_sum_over_its_innovations(name: str) -> None:
    """Their squares over the variances add up to the form's variance in the continuous law; the shift is below Cauchy and Schwarz's."""
    sampler = MADE[name]()
    rng = np.random.default_rng(7)
    basis = sampler.shape.basis().astype(float)
    projection = basis @ np.linalg.solve(basis.T @ basis, basis.T)
    for form in (*np.eye(sampler.cells)[:: max(1, sampler.cells // 4)], rng.integers(-2, 3, sampler.cells)):
        covariances = float(sampler.scale) * projection @ form
        variance = float(form @ covariances)
        parts = [(u[share > 0], share[share > 0]) for u, share in sampler.sequence.innovations(covariances)]
        assert math.fsum(float((u * u / share).sum()) for u, share in parts) / float(sampler.scale) == pytest.approx(variance, abs=1e-9)
        shift, excess = sampler.tail_of(covariances)
        assert 0 <= shift <= sampler.steps.shift(variance) * (1 + 1e-9)
        assert 0 <= excess <= variance * float(sampler.steps.kappa) * (1 + 1e-9)
