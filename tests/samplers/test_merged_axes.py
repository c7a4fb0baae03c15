"""Axes that stated margins treat alike are drawn as one: the same moves, the same quadratic form, the same law, and fewer tries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.lattices.algebra import kernel_basis, reduced_basis, to_numpy
from holdfast.lattices.levels import Misfit, Piece, level_pieces
from holdfast.lattices.shapes import Levels, Units
from holdfast.lattices.shapes.levels import LevelVector, maximal
from holdfast.lattices.shapes.merging import Measured, MergedUnits, merge_axes
from holdfast.lattices.trees import Tree
from holdfast.laws import Gaussian, LevelGaussian, Sequential
from holdfast.randomness import NoiseKey
from holdfast.samplers import tree_gaussian
from holdfast.samplers.levels_gaussian import LevelsGaussian
from holdfast.samplers.table import choose, steps_of
from holdfast.samplers.theta import log_theta3
from holdfast.samplers.tree_gaussian import TreeGaussian
from holdfast.testing import check_fit_categories
from holdfast.testing.fit import ALPHA, chi_square_p_value
from tests.examples import examples
from tests.samplers.test_tree_gaussian import closed, keys_of

Ints = NDArray[np.int64]
Kept = list[list[int]]
UNEVEN = Tree(((2,), (2, 1)))
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


def units(tree: Tree | None, lengths: tuple[int, ...], kept: Kept) -> Units:
    return Units(tree, lengths, tuple(tuple(sorted(family)) for family in closed(kept)))


CASES: dict[str, tuple[Units, tuple[Measured, ...], tuple[int, ...], tuple[int, ...]]] = {
    # units, what is measured, the lengths of the axes they are drawn on, how many of these make each tree
    "two axes alike": (units(None, (2, 3), [[0]]), ((0, 3, Fraction(1)),), (6,), (1,)),
    "alike, apart in order": (units(Tree.plain(2), (2, 3, 2), [[], []]), ((0, 7, HALF), (1, 5, QUARTER), (1, 2, QUARTER)), (4, 3), (1, 1)),
    "a chain": (units(Tree.plain(2), (2, 2), [[0], []]), ((0, 3, HALF), (1, 3, QUARTER), (1, 1, QUARTER)), (2, 2), (2,)),
    "a chain, backwards": (units(Tree.plain(2), (2, 2), [[0], []]), ((0, 3, HALF), (1, 3, QUARTER), (1, 2, QUARTER)), (2, 2), (2,)),
    "below the units": (units(Tree.plain(2), (2, 2), [[], [0]]), ((0, 3, HALF), (1, 0, HALF)), (), ()),
    "below the units, and a chain": (units(UNEVEN, (2, 2), [[0], [], []]), ((0, 3, HALF), (0, 1, QUARTER), (2, 1, QUARTER)), (2,), (1,)),
    "a kept margin parts them": (units(None, (2, 2, 2), [[1]]), ((0, 7, Fraction(1)),), (2, 4), (2,)),
    "kept margins of one axis each": (units(None, (2, 3), [[1, 2]]), ((0, 3, Fraction(1)),), (2, 3), (1, 1)),
}


def apart(shape: Units, target: LevelGaussian) -> TreeGaussian:
    """The sampler on the axes as they are stated."""
    return TreeGaussian(shape.tree, shape.lengths, shape.families, target.weights(shape))


def merged_sampler(merged: MergedUnits, rho: Fraction) -> TreeGaussian:
    own = merged.shape
    weights = LevelGaussian(rho, merged.measured).weights(own)
    return TreeGaussian(own.tree, own.lengths, own.families, weights, merged.chains)


def margin(shape: Units, z: Ints, level: int, mask: int) -> Ints:
    """The margin of all units of a level, by plain sums."""
    table = z.reshape(shape.axes)
    sums = table.sum(axis=tuple(k + 1 for k in range(len(shape.lengths)) if not mask >> k & 1))
    number = np.zeros(shape.leaves, dtype=np.int64) if shape.tree is None else shape.tree.unit_of(level)
    out = np.zeros((int(number.max()) + 1, *sums.shape[1:]), dtype=np.int64)
    np.add.at(out, number, sums)
    return out


def form(shape: Units, target: LevelGaussian, z: Ints) -> Fraction:
    """Q(z) as it is stated: squares of margins."""
    squares = (share * int((margin(shape, z, shape.levels - height, mask) ** 2).sum()) for height, mask, share in target.measured)
    return 2 * target.rho * sum(squares, Fraction(0))


def draws(sampler: Any, n: int, label: str = "draws") -> Ints:
    with NoiseKey.for_tests("merged axes").stream(label) as words:
        drawn: Ints = sampler.draw(n, words)
    return drawn


def check_same_form(shape: Units, target: LevelGaussian) -> None:
    """The form and the moves of the units as stated, the values as drawn; and no more tries."""
    merged = merge_axes(shape, target.measured)
    sampler, plain = merged_sampler(merged, target.rho), apart(shape, target)
    assert sampler.sequence.free_cells == plain.sequence.free_cells == shape.dimension
    assert sampler.expected_tries <= plain.expected_tries
    for z in draws(choose(shape, target).sampler, 2):
        assert not any(margin(shape, z, level, mask).any() for level, family in enumerate(shape.kept) for mask in family)
        own = np.empty_like(z).reshape(shape.leaves, -1)
        own[:, slice(None) if merged.place_of is None else merged.place_of] = z.reshape(own.shape)
        squares = ((value - c) ** 2 / variance for value, c, variance in sampler.centres(own.ravel().tolist()))
        assert sum(squares, Fraction(0)) == form(shape, target, z)


@pytest.mark.parametrize("name", CASES)
def test_the_axes_are_merged_as_far_as_the_margins_allow(name: str) -> None:
    shape, measured, lengths, chains = CASES[name]
    merged = merge_axes(shape, measured)
    assert (merged.shape.lengths, merged.chains) == (lengths, chains)
    assert (merged.shape.size, merged.shape.rank) == (shape.size, shape.rank)
    check_same_form(shape, LevelGaussian(Fraction(1), measured))


DEEP = Tree(((2,), (2, 1), (1, 2, 2)))
FOUR_LEVELS = units(DEEP, (2, 3), [[0], [], [], []]), ((0, 3, HALF), (1, 3, QUARTER), (1, 1, Fraction(1, 8)), (2, 1, Fraction(1, 8)))


@pytest.mark.parametrize("largest", [1, tree_gaussian.LARGEST_INTEGERS])
@pytest.mark.parametrize("case", [FOUR_LEVELS, *(own[:2] for own in CASES.values())], ids=["four levels", *CASES])
def test_compiled_draws_on_merged_axes_equal_those_without_floats(
    case: tuple[Units, tuple[Measured, ...]], largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With weights as integers where they can be, and as doubles above the leaves."""
    monkeypatch.setattr(tree_gaussian, "LARGEST_INTEGERS", largest)
    shape, measured = case
    sampler = merged_sampler(merge_axes(shape, measured), Fraction(1))
    slow, fast = (NoiseKey.for_tests("merged axes").stream("compiled") for _ in range(2))
    assert np.array_equal(sampler.draw_compiled(6, fast), sampler.draw_slowly(6, slow))
    assert fast.position == slow.position


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_the_form_is_the_stated_one_on_random_trees_axes_and_margins(data: st.DataObject) -> None:
    children: list[tuple[int, ...]] = []
    count = 1
    for _ in range(data.draw(st.integers(0, 3))):
        children.append(tuple(data.draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))))
        count = sum(children[-1])
    lengths = tuple(data.draw(st.lists(st.integers(2, 3), min_size=0 if children else 1, max_size=4)))
    masks = st.integers(0, (1 << len(lengths)) - 1)
    kept = [data.draw(st.lists(masks, max_size=2)) for _ in range(len(children) + 1)]
    shape = units(Tree(tuple(children)) if children else None, lengths, kept)
    if not shape.dimension:
        return
    stated = {(data.draw(st.integers(0, shape.levels)), data.draw(masks)) for _ in range(data.draw(st.integers(0, 4)))}
    margins = sorted(stated | {(0, (1 << len(lengths)) - 1)})
    parts = [data.draw(st.integers(1, 9)) for _ in margins]
    measured = tuple((*own, Fraction(part, sum(parts))) for own, part in zip(margins, parts, strict=True))
    check_same_form(shape, LevelGaussian(Fraction(1, 4), measured))


def enumerated(shape: Units, target: LevelGaussian, reach: int) -> tuple[Ints, NDArray[np.float64]]:
    """All tables with coordinates up to `reach` in a reduced basis of the moves, with their probabilities by the stated form."""
    cells = np.eye(shape.size, dtype=np.int64)
    kept = [(level, mask) for level, family in enumerate(shape.kept) for mask in family]
    rows = [np.stack([margin(shape, cell, *own).ravel() for cell in cells], axis=1) for own in kept]
    basis = to_numpy(reduced_basis(kernel_basis(np.concatenate(rows)))) if rows else cells
    gram = np.array([[float(form(shape, target, a + b) - form(shape, target, a - b)) / 4 for a in basis.T] for b in basis.T])
    points = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * basis.shape[1], indexing="ij"), axis=-1).reshape(-1, basis.shape[1])
    weights = np.exp(-np.einsum("pi,ij,pj->p", points, gram, points) / 2)
    at_end = float(weights[(np.abs(points) == reach).any(axis=1)].sum())
    assert at_end < 1e-6 * weights.sum(), f"enumerate further out than {reach}: {at_end / weights.sum()} lies at the end"
    return points @ basis.T, weights / weights.sum()


FITTED = [("two axes alike", 3, Fraction(2)), ("below the units", 4, Fraction(5, 2)), ("a chain, backwards", 2, Fraction(5))]


@pytest.mark.ordinary("below the units")
@pytest.mark.parametrize(("name", "reach", "rho"), FITTED)
def test_draws_follow_the_law_enumerated_on_the_stated_axes(name: str, reach: int, rho: Fraction) -> None:
    """At variances where the keep step matters. The power: proposals alone, from as many draws, are rejected at the same level."""
    n = 30_000
    shape, measured, _, _ = CASES[name]
    target = LevelGaussian(rho, measured)
    tables, probabilities = enumerated(shape, target, reach)
    keys, places = np.unique(keys_of(tables), return_inverse=True)
    law = dict(zip(keys.tolist(), np.bincount(places, weights=probabilities).tolist(), strict=True))
    check_fit_categories(Counter(keys_of(draws(choose(shape, target).sampler, n, name)).tolist()), law, name=f"merged axes, {name}")
    counts = Counter(keys_of(draws(choose(shape, Sequential(target)).sampler, n, name)).tolist())
    observed = [counts[key] for key in law]
    assert sum(observed) < n or chi_square_p_value(observed, list(law.values()), n) < ALPHA


def pieces_of(trees: tuple[Tree, ...], kept: Iterable[LevelVector]) -> list[Piece]:
    """The blocks of all cells of these axes, places as codes, under sums at these level vectors."""
    places = np.indices([tree.places for tree in trees]).reshape(len(trees), -1)
    units = [[tree.unit_of(level)[own] for tree, level, own in zip(trees, t, places, strict=True)] for t in kept]
    sizes = [[tree.units(level) for tree, level in zip(trees, t, strict=True)] for t in kept]
    found = level_pieces([np.ravel_multi_index(own, size) for own, size in zip(units, sizes, strict=True)], list(places))
    assert not isinstance(found, Misfit)
    return found


REGIONS = Tree(((2,), (2, 3)))


AGES, TWO, THREE = Tree(((2,), (2, 2))), Tree.plain(2), Tree.plain(3)
PRODUCTS: dict[str, tuple[tuple[Tree, ...], list[LevelVector], dict[Tree, set[int]]]] = {
    # axes, kept vectors, for each axis that is left its levels in the kept vectors
    "regions by age groups, and sex": ((REGIONS, AGES, THREE), [(1, 1, 0), (0, 0, 1)], {Tree(((4,), (4, 4, 6, 6))): {0, 1}, THREE: {0, 1}}),
    "regions by sex, and age": ((REGIONS, TWO, THREE), [(1, 1, 0), (0, 0, 1)], {Tree(((4,), (2, 2, 3, 3))): {0, 1}, THREE: {0, 1}}),
    "a by b, a by c, d": (
        (TWO, THREE, THREE, TWO),
        [(1, 1, 0, 0), (1, 0, 1, 0), (0, 0, 0, 1)],
        {Tree(((2,), (3, 3))): {0, 1, 2}, THREE: {0, 1}, TWO: {0, 1}},
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_axes_of_a_product_that_kept_sums_treat_alike_are_one(name: str) -> None:
    trees, kept, axes = PRODUCTS[name]
    ((shape, _),) = pieces_of(trees, kept)
    assert isinstance(shape, Levels)
    assert {tree: set(levels) for tree, levels in zip(shape.trees, zip(*shape.kept, strict=True), strict=True)} == axes
    check_same_moves(trees, kept)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_products_on_fewer_axes_have_the_same_moves_and_no_more_tries(data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.lists(st.integers(2, 3), min_size=1, max_size=2), min_size=2, max_size=4))
    trees = tuple(Tree(((own[0],), *([(own[1],) * own[0]] if len(own) > 1 else []))) for own in drawn)
    if prod(tree.places for tree in trees) > 150:
        return
    vectors = st.tuples(*(st.integers(0, tree.depth) for tree in trees))
    check_same_moves(trees, data.draw(st.lists(vectors, min_size=1, max_size=4)))


def check_same_moves(trees: tuple[Tree, ...], kept: list[LevelVector]) -> None:
    plain, pieces = Levels(trees, maximal(kept)), pieces_of(trees, kept)
    assert sorted(np.concatenate([cells for _, cells in pieces]).tolist()) == list(range(plain.size))
    moving = [(shape, cells) for shape, cells in pieces if not shape.is_pinned]
    assert sum(shape.dimension for shape, _ in moving) == plain.dimension
    for shape, cells in moving:
        table = np.zeros((shape.dimension, plain.size), dtype=np.int64)
        table[:, cells] = shape.basis().T
        assert not any(plain.sums(row, t).any() for row in table for t in plain.kept)
    if moving:
        tries = prod(choose(shape, Gaussian(Fraction(2))).noise.expected_tries for shape, _ in moving)
        assert tries <= LevelsGaussian(plain, Fraction(2)).expected_tries * (1 + 1e-9)


WEIGHTS: tuple[dict[int, int], ...] = (
    {12: 26, 15: 504},
    {0: 2128, 12: 19, 15: 513},
    {0: 1637, 12: 2020, 15: 504},
    {0: 3257, 12: 2016, 15: 2463},
    {0: 1, 12: 5, 15: 991},
)
"""About those of a census for redistricting: state, county, tract, group and block, by group quarters, voting age, hispanic, race."""


def test_a_redistricting_table_takes_about_one_try_at_its_full_budget() -> None:
    """6,000 blocks x 8 x 2 x 2 x 63. As four axes more than 1e20 tries; two pairs, which are a chain, leave hardly any."""
    counts = [1, 20, 400, 1_200, 6_000]
    sizes = [1 + np.random.default_rng(1).multinomial(n - above, [1 / above] * above) for above, n in pairwise(counts)]
    shape = units(Tree(tuple(tuple(own.tolist()) for own in sizes)), (8, 2, 2, 63), [[0], [], [], [], []])
    whole = sum(sum(own.values()) for own in WEIGHTS)
    measured = tuple((4 - level, mask, Fraction(n, whole)) for level, own in enumerate(WEIGHTS) for mask, n in own.items())
    target = LevelGaussian(Fraction(whole, 2 * 10**4), measured)

    def excess(sampler: TreeGaussian) -> float:
        least, counts = sampler.sequence.variance_floors
        return float((np.expm1(log_theta3(least)) * counts).sum())

    pairs = LevelGaussian(target.rho, tuple((height, {0: 0, 12: 2, 15: 3}[mask], share) for height, mask, share in measured))
    assert 1_400 < excess(apart(shape, target)) < 1_500
    assert 0.08 < excess(apart(units(shape.tree, (16, 126), [[0], [], [], [], []]), pairs)) < 0.12
    merged = merge_axes(shape, measured)
    assert (merged.shape.lengths, merged.chains) == ((126, 16), (2,))
    assert excess(merged_sampler(merged, target.rho)) < 0.002
    assert choose(shape, target).noise.expected_tries < 1.002
    assert steps_of(shape, target).kappa < Fraction(1, 1000)  # the price of the sequential law
