"""Small blocks with bounds by rejection: every table by its law, tighter bounds, tries for every table, and which sampler is chosen."""

from __future__ import annotations

import pickle
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import NoExactSampler
from holdfast.lattices.shapes import Bounded, General, Grid, OneSum, Whole
from holdfast.laws import ConditionalLaplace
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers.bounded_block import BoundedBlock, Room
from holdfast.samplers.bounded_classes import BoundedClasses
from holdfast.samplers.bounded_small import BoundedMirrored, BoundedSmall, tighten_bounds
from holdfast.samplers.choice import Reason
from holdfast.samplers.table import choose
from holdfast.testing import ALPHA, check_fit_categories, chi_square_p_value
from tests.samplers.bounded_cases import CASES, Point, fibre, grid_sums, law

HALF = Fraction(1, 2)

SMALL: dict[str, tuple[BoundedBlock, Point]] = {
    **{name: CASES[name] for name in ("2 x 3 grid", "facilities", "people and households", "signs and coefficients")},
    "3 x 3 grid": (BoundedBlock.plain(grid_sums(3, 3)), (1, 0, 2, 0, 1, 0, 1, 1, 0)),
    "3 x 3 grid, diagonal pinned": (
        BoundedBlock.plain(grid_sums(3, 3), 0, (1, None, None, None, 1, None, None, None, 1)),
        (1, 0, 2, 3, 1, 0, 0, 2, 1),
    ),
    "pivots that must come out whole": (BoundedBlock.plain([[2, 3, 3, 2]], 0, 5), (1, 2, 0, 3)),
}


def stream(*label: str) -> Words:
    return NoiseKey.for_tests("bounded small").stream(*label)


ORDINARY = ("3 x 3 grid, diagonal pinned", "pivots that must come out whole")


@pytest.mark.ordinary("pivots")
@pytest.mark.parametrize("name", [name if name in ORDINARY else pytest.param(name, marks=pytest.mark.long) for name in SMALL])
def test_every_table_of_small_fibres(name: str) -> None:
    """A rate three fifths off is seen: so few draws tell no more."""
    block, table = SMALL[name]
    n = 3000
    found = Counter(map(tuple, BoundedSmall(block, HALF).publish(np.tile(np.array(table), (n, 1)), None, stream("law", name)).tolist()))
    shares = law(block, table, HALF)
    check_fit_categories(found, shares, name=f"bounded small, {name}")
    wrong = law(block, table, HALF * Fraction(8, 5))
    assert chi_square_p_value([found[y] for y in wrong], list(wrong.values()), n) < ALPHA


@pytest.mark.parametrize("name", SMALL)
def test_the_stated_tries_bound_those_of_every_table_of_the_fibre(name: str) -> None:
    """A try is accepted with the weight of the fibre over that of the free cells within their bounds: by enumeration, for each table."""
    block, table = SMALL[name]
    sampler, a = BoundedSmall(block, HALF), float(np.exp(-0.5))
    tables = fibre(block, table)
    for x in tables[:: max(1, len(tables) // 20)]:
        left, right = tighten_bounds(block, room_of(block, x))
        free = list(sampler.pivots.free)
        proposed = np.prod([sum(a ** abs(k) for k in range(-min(int(left[i]), 99), min(int(right[i]), 99) + 1)) for i in free])
        whole = sum(a ** sum(abs(s - t) for s, t in zip(y, x, strict=True)) for y in tables)
        assert proposed / whole <= sampler.expected_tries


def room_of(block: BoundedBlock, x: Point) -> Room:
    return Room(*(part[0] for part in block.room(np.array([x]))))


@pytest.mark.parametrize("name", SMALL)
def test_tighter_bounds_lose_no_table(name: str) -> None:
    block, table = SMALL[name]
    tables = np.array(fibre(block, table))
    for x in tables[:: max(1, len(tables) // 10)]:
        left, right = tighten_bounds(block, room_of(block, tuple(x)))
        assert ((tables - x >= -left) & (tables - x <= right)).all()


def test_tables_of_zeros_need_no_try() -> None:
    """All cells are pinned by their margins: nothing is drawn, no word is taken."""
    words = stream("zeros")
    found = BoundedSmall(BoundedBlock.plain(grid_sums(4, 4)), HALF).publish(np.zeros((3, 16), dtype=np.int64), None, words)
    assert not found.any()
    assert words.position == 0


@settings(max_examples=30)
@given(table=st.lists(st.integers(0, 30), min_size=9, max_size=9), epsilon=st.sampled_from([Fraction(1, 4), Fraction(1)]))
def test_kept_sums_and_bounds_hold(table: list[int], epsilon: Fraction) -> None:
    sampler = BoundedSmall(BoundedBlock.plain(grid_sums(3, 3)), epsilon)
    again = pickle.loads(pickle.dumps(sampler))
    y = sampler.publish(np.array([table]), None, stream("properties"))
    assert (sampler.block.kept_matrix @ (y[0] - np.array(table)) == 0).all()
    assert (y >= 0).all()
    assert np.array_equal(again.publish(np.array([table]), None, stream("properties")), y)


def test_which_sampler_is_chosen_follows_from_public_facts() -> None:
    target = ConditionalLaplace(HALF)
    ages = General(((1, 1, 0, 0), (0, 0, 1, 1), (0, 1, 0, 1)), (4, 19, 4, 19))
    assert isinstance(choose(Bounded(ages, 0, None), target).sampler, BoundedClasses)
    overlapping = General(((1, 0, 1, 2), (0, 1, 1, 1)), (1, 1, 1, 1))
    for base in (Grid((3, 3)), overlapping):
        small = choose(Bounded(base, 0, 9), target)
        assert isinstance(small.sampler, BoundedSmall)
        assert small.reason is Reason.FEW_FREE
    for axes in ((2, 2), (2, 23), (3, 2), (2, 5, 2)):
        folded = choose(Bounded(Grid(axes), 0, None), target)
        assert isinstance(folded.sampler, BoundedMirrored)
        assert isinstance(folded.sampler.beneath, BoundedClasses)
        assert folded.reason is Reason.PRODUCT
    far = Bounded(Whole((OneSum(30), OneSum(40))), 0, None, ((1,) * 30 + (0,) * 10 + (-1,) * 30,), (0,))
    assert isinstance(choose(far, target).sampler, BoundedClasses)
    with pytest.raises(NoExactSampler, match="10 x 10"):
        choose(Bounded(Grid((10, 10)), 0, None), target)
    with pytest.raises(NoExactSampler, match="24 x 24 would need more than 1e"):  # a number of tries that no double holds
        choose(Bounded(Grid((24, 24)), 0, None), ConditionalLaplace(Fraction(1, 4)))
    with pytest.raises(NoExactSampler, match="1600 cells"):
        choose(Bounded(Grid((40, 40)), 0, None), target)


MIRRORED: dict[str, tuple[Bounded, Point]] = {
    "2 x 2": (Bounded(Grid((2, 2)), 0, None), (3, 1, 0, 2)),
    "2 x 3": (Bounded(Grid((2, 3)), 0, None), (2, 0, 1, 1, 3, 0)),
    "2 x 4, binary": (Bounded(Grid((2, 4)), 0, 1), (1, 0, 1, 0, 0, 1, 0, 1)),
    "3 x 2, bounds of their own": (Bounded(Grid((3, 2)), (0, 0, 1, 0, 0, 0), (None, 3, None, 4, 2, None)), (2, 1, 1, 2, 0, 3)),
    "2 x 3 x 2": (Bounded(Grid((2, 3, 2)), 0, 2), (2, 1, 0, 1, 1, 2, 1, 1, 2, 0, 1, 2)),
}


@pytest.mark.ordinary("2 x 2]", "2 x 3]", "binary", "bounds")
@pytest.mark.parametrize("name", MIRRORED)
def test_every_table_of_mirrored_fibres(name: str) -> None:
    """A rate a fifth off is seen."""
    shape, table = MIRRORED[name]
    block, n = BoundedBlock.of(shape), 20_000
    sampler = choose(shape, ConditionalLaplace(HALF)).sampler
    assert isinstance(sampler, BoundedMirrored)
    x = np.tile(np.array(table), (n, 1))
    found = Counter(map(tuple, sampler.publish(x, None, stream("mirrored", name)).tolist()))
    shares = law(block, table, HALF)
    check_fit_categories(found, shares, name=f"bounded, mirrored, {name}")
    wrong = law(block, table, HALF * Fraction(6, 5))
    assert chi_square_p_value([found[y] for y in wrong], list(wrong.values()), n) < ALPHA
