"""Gaussian noise with weights for levels and margins: the quadratic form term by term, an oracle, every point of small tables."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact import DiscreteGaussian
from holdfast.exact.balls import ball, precision
from holdfast.lattices.algebra import kernel_basis, reduced_basis, to_numpy
from holdfast.lattices.trees import Tree
from holdfast.randomness import NoiseKey
from holdfast.samplers import tree_gaussian
from holdfast.samplers.sequence_gaussian import ClassPairs
from holdfast.samplers.theta import theta_ratio_ball
from holdfast.samplers.tree_gaussian import TreeGaussian
from holdfast.testing import check_fit_categories
from holdfast.testing.fit import ALPHA, chi_square_p_value
from tests.examples import examples

Ints = NDArray[np.int64]
Kept = tuple[frozenset[int], ...]

TWO, UNEVEN, THREE = Tree(((3,),)), Tree(((2,), (2, 1))), Tree(((2,), (1, 2), (2, 1, 1)))
CASES: dict[str, tuple[Tree | None, tuple[int, ...], list[list[int]]]] = {
    "one unit, nothing kept": (None, (3,), [[]]),
    "one unit, one-way margins": (None, (2, 3, 2), [[1, 2, 4]]),
    "two levels, kept at the root": (TWO, (), [[0], []]),
    "two levels, kept nowhere": (TWO, (), [[], []]),
    "three levels, uneven, kept nowhere": (UNEVEN, (), [[], [], []]),
    "three levels, a whole level kept": (UNEVEN, (2,), [[], [0], []]),
    "three levels, kept in the middle, an axis at the root": (UNEVEN, (2, 2), [[1], [0], []]),
    "three levels, kept in the middle, a margin at the root": (UNEVEN, (3,), [[1], [0], []]),
    "four levels, margins that differ by level": (THREE, (2, 3), [[3], [1], [], []]),
    "kept at the leaves": (UNEVEN, (3,), [[], [], [0]]),
}


def closed(kept: list[list[int]]) -> Kept:
    """Closed under subsets and under going up, as the sampler wants it."""
    families = [{sub for mask in family for sub in range(mask + 1) if sub & mask == sub} for family in kept]
    for level in range(len(families) - 2, -1, -1):
        families[level] |= families[level + 1]
    return tuple(map(frozenset, families))


def weights_for(kept: Kept, axes: tuple[int, ...], seed: int, scale: Fraction | int = 10) -> dict[tuple[int, int], Fraction]:
    rng = np.random.default_rng(seed)
    some = {(level, mask): int(rng.integers(1, 9)) / Fraction(scale) for level in range(len(kept)) for mask in range(1 << len(axes))}
    return {key: value for key, value in some.items() if key[1] not in kept[key[0]]}


def sampler_for(name: str, seed: int = 1, scale: Fraction | int = 10, **others: Any) -> TreeGaussian:
    tree, axes, kept = CASES[name]
    return TreeGaussian(tree, axes, closed(kept), weights_for(closed(kept), axes, seed, scale), **others)


def margin(sampler: TreeGaussian, z: Ints, level: int, mask: int) -> Ints:
    """The margin of all units of a level, by plain sums."""
    table = z.reshape(sampler.leaves, *sampler.axes)
    units = np.zeros(sampler.leaves, dtype=np.int64) if sampler.tree is None else sampler.tree.unit_of(level)
    out = np.zeros((int(units.max()) + 1, *sampler.axes), dtype=np.int64)
    np.add.at(out, units, table)
    summed: Ints = out.sum(axis=tuple(k + 1 for k in range(len(sampler.axes)) if not mask >> k & 1))
    return summed


def form(sampler: TreeGaussian, z: Ints) -> Fraction:
    """Q(z) from its definition, as an exact rational."""
    total = Fraction(0)
    for (level, mask), weight in sampler.weights.items():
        pure: Any = margin(sampler, z, level, mask).astype(object) * Fraction(1)
        for axis in range(1, pure.ndim):
            pure = pure - pure.sum(axis=axis, keepdims=True) / pure.shape[axis]
        total += weight * (pure * pure).sum()
    return total


def draws(sampler: TreeGaussian, n: int, label: str = "draws") -> Ints:
    return sampler.draw(n, NoiseKey.for_tests("tree gaussian").stream(label))


@pytest.mark.parametrize("name", CASES)
def test_the_centred_squares_of_a_draw_are_the_quadratic_form(name: str) -> None:
    """Sum (z - c)^2 / s^2 = Q(z) exactly: the proposals, times the theta ratios of the keep step, have the law's weights."""
    sampler = sampler_for(name)
    for z in draws(sampler, 5):
        assert sum(((value - c) ** 2 / variance for value, c, variance in sampler.centres(z)), Fraction(0)) == form(sampler, z)
        for level, family in enumerate(sampler.kept):
            assert all(not margin(sampler, z, level, mask).any() for mask in family)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.data())
def test_the_form_holds_on_random_trees_axes_and_kept_margins(seed: int, data: st.DataObject) -> None:
    children: list[tuple[int, ...]] = []
    units = 1
    for _ in range(data.draw(st.integers(0, 3))):
        children.append(tuple(data.draw(st.lists(st.integers(1, 3), min_size=units, max_size=units))))
        units = sum(children[-1])
    axes = tuple(data.draw(st.lists(st.integers(2, 3), max_size=3)))
    masks = st.lists(st.integers(0, (1 << len(axes)) - 1), max_size=2)
    kept = closed([data.draw(masks) for _ in range(len(children) + 1)])
    if len(kept[-1]) == 1 << len(axes):
        return
    sampler = TreeGaussian(Tree(tuple(children)) if children else None, axes, kept, weights_for(kept, axes, seed, 40))
    z = draws(sampler, 1)[0]
    assert sum(((value - c) ** 2 / variance for value, c, variance in sampler.centres(z)), Fraction(0)) == form(sampler, z)
    for level, family in enumerate(kept):
        assert all(not margin(sampler, z, level, mask).any() for mask in family)


def test_a_sum_of_the_proposals_log_weights_and_keep_probability_is_the_law() -> None:
    """With certified laws and theta ratios what is left is one constant."""
    sampler = sampler_for("three levels, uneven, kept nowhere")
    constants = []
    for z in draws(sampler, 4):
        with precision(300):
            log_weight = ball(form(sampler, z) / 2)
            for value, c, variance in sampler.centres(z):
                chance = DiscreteGaussian(variance, c).pmf_bounds(value)
                log_weight += ball(chance.lower).union(ball(chance.upper)).log() + theta_ratio_ball(variance, c).log()
            constants.append(log_weight)
    for other in constants[1:]:
        assert constants[0].overlaps(other)
        assert abs(constants[0] - other) < arb(2) ** -45


@pytest.fixture(params=["weights that are integers where they can be", "weights that are doubles where they can be"])
def as_doubles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Small integers are allowed for no weights but the leaves'."""
    wanted = "doubles" in request.param
    if wanted:
        monkeypatch.setattr(tree_gaussian, "LARGEST_INTEGERS", 1)
    return wanted


@pytest.mark.parametrize("name", CASES)
def test_compiled_draws_equal_those_without_floats_whatever_the_band(name: str, as_doubles: bool) -> None:
    for chunk_pairs in (5, 1 << 15):
        plain = sampler_for(name, scale=3, chunk_pairs=chunk_pairs)
        assert plain.sequence.is_exact != (as_doubles and plain.levels > 1)
        stream = NoiseKey.for_tests("tree gaussian").stream("oracle")
        slow = plain.draw_slowly(8, stream)
        for band in (2.0, 2.0**-4, 2.0**-20, None):
            again = NoiseKey.for_tests("tree gaussian").stream("oracle")
            assert np.array_equal(sampler_for(name, scale=3, band=band, chunk_pairs=chunk_pairs).draw_compiled(8, again), slow)
            assert again.position == stream.position
        for z in slow:
            assert sum(((value - c) ** 2 / variance for value, c, variance in plain.centres(z)), Fraction(0)) == form(plain, z)


def test_doubles_leave_ties_and_large_centres_to_exact_arithmetic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two equal units take halves of odd numbers; of the noise of a wide law no centre is near enough."""
    monkeypatch.setattr(tree_gaussian, "LARGEST_INTEGERS", 1)
    tree = Tree(((2,), (2, 2)))
    for weight in (Fraction(1, 2), Fraction(1, 10**14)):
        sampler = TreeGaussian(tree, (), (frozenset(),) * 3, {(1, 0): weight, (2, 0): weight})
        seen: list[int] = []
        share_at = sampler.share_at
        monkeypatch.setattr(sampler, "share_at", lambda *where, ask=share_at, seen=seen: seen.append(1) or ask(*where), raising=False)
        fast = sampler.draw_compiled(40, NoiseKey.for_tests("tree gaussian").stream("ties"))
        assert len(seen) > 10
        assert np.array_equal(fast, sampler.draw_slowly(40, NoiseKey.for_tests("tree gaussian").stream("ties")))


def enumerated(sampler: TreeGaussian, reach: int) -> tuple[Ints, NDArray[np.float64]]:
    """All tables with coordinates up to `reach` in a reduced basis of the moves, with their probabilities."""
    cells = np.eye(sampler.cells, dtype=np.int64)
    rows = [
        np.stack([margin(sampler, cell, level, mask).ravel() for cell in cells], axis=1)
        for level, family in enumerate(sampler.kept)
        for mask in family
    ]
    basis = to_numpy(reduced_basis(kernel_basis(np.concatenate(rows)))) if rows else cells
    gram = np.array([[float(_polar(sampler, a, b)) for a in basis.T] for b in basis.T])
    points = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * basis.shape[1], indexing="ij"), axis=-1).reshape(-1, basis.shape[1])
    weights = np.exp(-np.einsum("pi,ij,pj->p", points, gram, points) / 2)
    at_end = float(weights[(np.abs(points) == reach).any(axis=1)].sum())
    assert at_end < 1e-6 * weights.sum(), f"enumerate further out than {reach}: {at_end / weights.sum()} lies at the end"
    return points @ basis.T, weights / weights.sum()


def _polar(sampler: TreeGaussian, a: Ints, b: Ints) -> Fraction:
    return (form(sampler, a + b) - form(sampler, a - b)) / 4


def keys_of(z: Ints) -> Ints:
    """The first two cells, cut at the ends, and the sum of absolute values."""
    ends = np.clip(z[:, :2], -2, 2) + 2
    return np.asarray(ends[:, 0] * 80 + ends[:, 1] * 16 + np.minimum(np.abs(z).sum(axis=1), 15))


FITTED = [
    ("two levels, kept nowhere", 7, 1, Fraction(2, 3)),
    ("two levels, kept at the root", 4, 3, Fraction(1, 3)),
    ("three levels, uneven, kept nowhere", 7, 1, Fraction(4, 3)),
    ("three levels, a whole level kept", 3, 3, Fraction(2)),
    ("three levels, kept in the middle, a margin at the root", 3, 3, Fraction(2)),
    ("one unit, one-way margins", 3, 3, Fraction(3, 2)),
    ("kept at the leaves", 3, 3, Fraction(3, 2)),
]


@pytest.mark.ordinary("kept at the root")
@pytest.mark.parametrize(
    ("name", "reach", "seed", "scale"), [case if case in FITTED[:3] else pytest.param(*case, marks=pytest.mark.long) for case in FITTED]
)
def test_draws_follow_the_enumerated_law_and_those_without_the_keep_step_do_not(name: str, reach: int, seed: int, scale: Fraction) -> None:
    """At variances where the keep step matters. The power: proposals alone, from as many draws, are rejected at the same level."""
    n = 30_000
    sampler = sampler_for(name, seed=seed, scale=scale)
    tables, probabilities = enumerated(sampler, reach)
    keys, places = np.unique(keys_of(tables), return_inverse=True)
    law = dict(zip(keys.tolist(), np.bincount(places, weights=probabilities).tolist(), strict=True))
    check_fit_categories(Counter(keys_of(draws(sampler, n, name)).tolist()), law, name=f"tree gaussian, {name}")
    counts = Counter(keys_of(draws(sampler_for(name, seed=seed, scale=scale, whole=False), n, name)).tolist())
    observed = [counts[key] for key in law]
    assert sum(observed) < n or chi_square_p_value(observed, list(law.values()), n) < ALPHA


def test_units_with_single_children_and_unweighted_levels() -> None:
    """Levels may be without weight; a single child takes all of its parent."""
    tree = Tree(((1,), (2,), (1, 1)))
    sampler = TreeGaussian(tree, (), (frozenset(),) * 4, {(3, 0): Fraction(1, 5), (1, 0): Fraction(1, 7)})
    for z in draws(sampler, 5):
        assert sum(((value - c) ** 2 / variance for value, c, variance in sampler.centres(z)), Fraction(0)) == form(sampler, z)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((TWO, (), (frozenset([0]),), {(1, 0): 1}), InvalidParameter, "for 2 levels"),
        ((TWO, (), (frozenset(), frozenset([0])), {(1, 0): 1}), InvalidParameter, "kept above"),
        ((None, (2,), (frozenset([1]),), {(0, 1): 1}), InvalidParameter, "closed under subsets"),
        ((TWO, (), (frozenset(), frozenset()), {(0, 0): 1}), InvalidParameter, "positive weight"),
        ((TWO, (1,), (frozenset(), frozenset()), {(1, 0): 1}), InvalidParameter, "two places"),
        ((TWO, (), (frozenset([0]), frozenset([0])), {}), InvalidParameter, "nothing is left"),
        ((TWO, (), (frozenset(), frozenset()), {(1, 0): Fraction(1, 2**120)}), RequestTooLarge, "64-bit"),
        ((TWO, (), (frozenset(), frozenset()), {(1, 0): Fraction(2**31)}), InvalidParameter, "below 2.-30"),
        ((TWO, (), (frozenset(), frozenset()), {(1, 0): Fraction(1), (0, 0): Fraction(-1)}), InvalidParameter, "not negative"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments: tuple[Any, ...], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        TreeGaussian(*arguments)


def test_the_expected_tries_bound_the_tries_made() -> None:
    sampler = sampler_for("two levels, kept nowhere", seed=3, scale=Fraction(2, 3))
    n = 4000
    pairs = ClassPairs(sampler.classes[1], n, sampler.chunk_pairs, NoiseKey.for_tests("tree gaussian").stream("tries"))
    kept = sum(sampler._one_try(sampler.kept_sums, pairs, n)[1] for _ in range(n))
    # Hoeffding's bound at e^-21 on the share kept.
    assert kept / n >= 1 / sampler.expected_tries - math.sqrt(21 / (2 * n))
    assert sampler.expected_tries > 1.05
