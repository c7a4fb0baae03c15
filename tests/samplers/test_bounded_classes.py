"""Blocks with bounds by class totals: every table by its law, the steps of a draw by enumeration, and the same words on every path."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate, pairwise
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.paper_table import sexes_and_ages
from holdfast.errors import NoExactSampler
from holdfast.exact.compiled import loops_for
from holdfast.exact.weights import FixedWeights, WeightSource
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers import bounded_classes
from holdfast.samplers.bounded_block import FAR, BoundedBlock
from holdfast.samplers.bounded_classes import BoundedClasses, CellSource, ClassPoints, ExactBlock, TotalsSource, reach_for, zigzag
from holdfast.samplers.protocol import Ints
from holdfast.testing import ALPHA, ListedWords, check_fit_categories, chi_square_p_value
from tests.examples import examples
from tests.samplers.bounded_cases import CASES, ONES, fibre, law

HALF = Fraction(1, 2)


def stream(*label: str) -> Words:
    return NoiseKey.for_tests("bounded classes").stream(*label)


def tables(name: str, n: int) -> Ints:
    return np.tile(np.array(CASES[name][1]), (n, 1))


@pytest.mark.parametrize("name", CASES)
def test_every_step_of_a_draw_by_enumeration(name: str) -> None:
    """The chance of each table, multiplied from the certified weights of its steps, encloses its share of the fibre."""
    block, table = CASES[name]
    epsilon = Fraction(2)
    sampler = BoundedClasses(block, epsilon)
    exact = sampler.exact(np.array([table]))
    known: dict[tuple[int, ...], FixedWeights] = {}
    shares = law(block, table, epsilon)
    for y in list(shares)[:: max(1, len(shares) // 12)]:
        z = (np.array(y) - np.array(table))[sampler.order].tolist()
        low = high = 1.0
        for step, source, index in exact_steps(exact, z):
            if step not in known:
                known[step] = source.fixed_weights(24, 16)
            weights = known[step]
            scale = sum(weights.lows) + weights.right_tail[0], sum(weights.highs) + weights.right_tail[1]
            low, high = low * (weights.lows[index] / scale[1]), high * (weights.highs[index] / scale[0])
        assert low <= shares[y] * (1 + 1e-12)
        assert high >= shares[y] * (1 - 1e-12)
        assert high - low < 1e-9


def test_cumulated_weights_enclose_those_of_a_wider_window() -> None:
    """What a narrow window leaves out belongs to listed points, too: partial sums may leave it and come back."""
    exact = BoundedClasses(BoundedBlock.plain([[1] * 4 + [2] * 3]), HALF).exact(np.array([[40, 30, 50, 20, 10, 30, 40]]))
    for source in (TotalsSource(exact), CellSource(exact, 0, 3, 0), CellSource(exact, 1, 6, 2)):
        narrow, wide = source.fixed_weights(2, 1), source.fixed_weights(40, 60)
        finer = (40 + 60) - (2 + 1)  # bits of the unit
        assert len(narrow.lows) < len(wide.lows)
        sums = map(accumulate, (narrow.lows, narrow.highs, wide.lows, wide.highs))
        for low, high, true_low, true_high in zip(*sums, strict=False):
            assert low << finer <= true_high
            assert true_low <= high << finer


def exact_steps(exact: ExactBlock, z: list[int]) -> Iterator[tuple[tuple[int, ...], WeightSource, int]]:
    """(which step, its weights, index taken) of each step of the draw that ends in z, cells in the order of classes."""
    starts = exact.starts
    totals = [sum(z[a:b]) for a, b in pairwise(starts)]
    if exact.points.dimension:
        listed = exact.points.within(max(map(abs, totals), default=0)).tolist()
        yield (), TotalsSource(exact), listed.index(totals)
    for group, left in enumerate(totals):
        for p in range(starts[group + 1] - 1, starts[group], -1):
            index = 2 * z[p] - 1 if z[p] > 0 else -2 * z[p]
            assert zigzag(index) == z[p]
            yield (p, left), CellSource(exact, group, p, left), index
            left -= z[p]


@pytest.mark.ordinary("grid", "sum", "facilities", "sexes", "people", "signs")
@pytest.mark.parametrize("name", CASES)
def test_every_table_of_small_fibres(name: str) -> None:
    """A rate a tenth off is seen."""
    import holdfast.samplers._bounded_classes_compiled  # noqa: F401  # so that the fast form is taken

    block, table = CASES[name]
    n = 40_000
    found = Counter(map(tuple, BoundedClasses(block, HALF).publish(tables(name, n), None, stream("law", name)).tolist()))
    shares = law(block, table, HALF)
    check_fit_categories(found, shares, name=f"bounded classes, {name}")
    wrong = law(block, table, HALF * Fraction(11, 10))
    assert list(wrong) == list(shares)
    assert chi_square_p_value([found[y] for y in wrong], list(wrong.values()), n) < ALPHA


@pytest.mark.ordinary("grid", "sum", "facilities", "sexes", "signs")
@pytest.mark.parametrize("name", CASES)
def test_the_same_words_on_every_path_and_with_a_wider_band(name: str) -> None:
    import holdfast.samplers._bounded_classes_compiled  # noqa: F401

    n = 6
    sampler = BoundedClasses(CASES[name][0], Fraction(2))
    slow_words, fast_words = stream("paths"), stream("paths")
    slow, fast = sampler.draw_slowly(tables(name, n), slow_words), sampler.publish(tables(name, n), None, fast_words)
    assert np.array_equal(slow, fast)
    assert slow_words.position == fast_words.position == n * sampler.words_per_draw
    for band in (2.0**-4, 2.0**-20):
        wide = BoundedClasses(CASES[name][0], Fraction(2), relative=band)
        assert np.array_equal(wide.publish(tables(name, n), None, stream("paths")), fast)


LONG_MOVES = [([[7, -6]], Fraction(20), 3), ([[30, -29]], Fraction(10), 7), ([[200, -199]], Fraction(2), 9)]
"""Kept sums whose shortest class move is longer than the window, and after how many times 128 ones a word chooses it."""


def ones_until(depth: int) -> ListedWords:
    """One uniform: 32 + 128 depth ones, then zeros."""
    return ListedWords([2**32 - 1], extra=lambda _, at: (2**32 - 1 if at < depth else 0,) * 4)


@pytest.mark.ordinary("kept0", "kept1")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("kept", "epsilon", "depth"), LONG_MOVES)
def test_moves_longer_than_the_window_are_made_with_their_chance(
    kept: list[list[int]], epsilon: Fraction, depth: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of two cells with one move h: some change has chance 2 exp(-epsilon |h|_1), less what is far smaller. Were it zero, the
    release would be the truth.
    """
    import holdfast.samplers._bounded_classes_compiled as loops

    monkeypatch.setattr(bounded_classes, "loops_for", lambda *_: loops if compiled else None)
    sampler = BoundedClasses(BoundedBlock.plain(kept), epsilon)
    move, x = np.array([[-kept[0][1], kept[0][0]]]), np.full((1, 2), 400)
    bits = (float(epsilon * abs(move).sum()) / math.log(2)) - 1
    assert sampler.listed == 1
    assert 32 + 128 * (depth - 1) < bits < 32 + 128 * depth
    for draw in (lambda words: sampler.publish(x, None, words), lambda words: sampler.draw_slowly(x, words)):
        assert np.array_equal(draw(ones_until(depth - 1)), x)
        assert np.array_equal(abs(draw(ones_until(depth)) - x), move)
        assert np.array_equal(draw(ListedWords([5])), x)


@pytest.mark.parametrize("words", [(5, 7, 9), (2**32 - 1, 7, 9), (7, 2**32 - 1, 2**32 - 1)])
def test_open_words_after_a_window_without_moves(words: tuple[int, ...]) -> None:
    """Two classes of two cells; a draw takes a word for the totals and one for each class."""
    sampler = BoundedClasses(BoundedBlock.plain([[30, 30, -29, -29]]), Fraction(10))
    assert (sampler.listed, sampler.words_per_draw) == (1, 3)
    x = np.full((1, 4), 40)
    found = sampler.publish(x, None, ListedWords(words))
    assert np.array_equal(found, sampler.draw_slowly(x, ListedWords(words)))
    assert np.array_equal(found.sum(axis=1), [160])


@st.composite
def blocks(draw: st.DrawFn) -> tuple[BoundedBlock, list[list[int]]]:
    cells = draw(st.integers(2, 7))
    kept = draw(st.lists(st.lists(st.integers(0, 1), min_size=cells, max_size=cells), max_size=2))
    lower = draw(st.lists(st.sampled_from([0, -3, None]), min_size=cells, max_size=cells))
    upper = draw(st.lists(st.sampled_from([None, 6, 40]), min_size=cells, max_size=cells))
    least = [[0 if low is None else low for low in lower], [6 if high is None else high for high in upper]]
    rows = draw(st.lists(st.tuples(*(st.integers(a, b) for a, b in zip(*least, strict=True))), min_size=1, max_size=3))
    return BoundedBlock(tuple(map(tuple, kept)), tuple(lower), tuple(upper)), [list(row) for row in rows]


@settings(max_examples=examples(40))
@given(case=blocks(), epsilon=st.sampled_from([Fraction(1, 3), Fraction(2)]))
def test_kept_sums_and_bounds_hold_and_both_loops_agree(case: tuple[BoundedBlock, list[list[int]]], epsilon: Fraction) -> None:
    import holdfast.samplers._bounded_classes_compiled  # noqa: F401

    block, rows = case
    x = np.array(rows)
    try:
        sampler = BoundedClasses(block, epsilon)
    except NoExactSampler:
        return
    y = sampler.publish(x, None, stream("properties"))
    assert (y @ block.kept_matrix.T == x @ block.kept_matrix.T).all()
    block.room(y)  # asserts that they are within the bounds
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_classes, "loops_for", lambda *_: None)
        assert np.array_equal(sampler.publish(x, None, stream("properties")), y)


def test_large_counts_need_no_larger_tables_and_cells_without_bounds_none() -> None:
    kept = sexes_and_ages(2, 3)
    bounded, free = (BoundedClasses(BoundedBlock.plain(kept, lower), HALF) for lower in (0, None))
    assert bounded.reach == free.reach == reach_for(10, HALF, bounded_classes.TAIL_BITS)
    far = np.full((50, 10), 10**7)
    assert np.array_equal(bounded.publish(far, None, stream("far")), free.publish(far, None, stream("far")))


def test_a_window_leaves_out_what_it_says() -> None:
    """Three cells: the weight of all z with a partial sum beyond H, summed over a wide box, is below 2^-bits."""
    epsilon, bits = Fraction(3, 2), 12
    reach = reach_for(3, epsilon, bits)
    k = np.arange(-35, 36)
    a = np.exp(-float(epsilon) * abs(k))
    first, second = k[:, None, None], k[:, None, None] + k[None, :, None]
    third = second + k[None, None, :]
    outside = (abs(first) > reach) | (abs(second) > reach) | (abs(third) > reach)
    weight = math.fsum((a[:, None, None] * a[None, :, None] * a)[outside].ravel())
    assert weight < 2.0**-bits
    assert reach < 35


def test_points_are_listed_in_an_order_that_a_wider_window_continues() -> None:
    points = ClassPoints(((1, -1, 0), (0, 1, 2)), 3)
    narrow, wide = points.within(4), points.within(9)
    assert np.array_equal(wide[: len(narrow)], narrow)
    assert {tuple(row) for row in narrow.tolist()} == {
        (s, t - s, 2 * t) for s in range(-9, 10) for t in range(-9, 10) if max(abs(s), abs(t - s), abs(2 * t)) <= 4
    }
    assert [points.at(i) for i in range(len(wide))] == [tuple(row) for row in wide.tolist()]


@pytest.mark.parametrize(("epsilon", "is_loaded"), [(HALF, False), (Fraction(1, 25), True)])
def test_wide_windows_load_the_compiled_loops(epsilon: Fraction, is_loaded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One table of four cells may take seconds in NumPy at epsilon 1/25."""
    asked: list[bool] = []

    def recorded(module: str, n: int, cold: int) -> ModuleType | None:
        asked.append(n >= cold)
        return loops_for(module, n, cold)

    monkeypatch.setattr(bounded_classes, "loops_for", recorded)
    BoundedClasses(BoundedBlock.plain(ONES), epsilon).publish(np.array([[0, 100, 3000, 5]]), None, stream("cold"))
    assert asked == [is_loaded]


def test_what_is_too_large_is_refused_by_public_facts() -> None:
    with pytest.raises(NoExactSampler, match="4 free dimensions"):
        BoundedClasses(BoundedBlock((), (0,) * 4, (None,) * 4, ((1, 2, 3, 4),), (0,)), HALF)
    with pytest.raises(NoExactSampler, match="2000 cells"):
        BoundedClasses(BoundedBlock.plain([[1] * 2000]), HALF)


def test_it_can_be_sent_to_another_process() -> None:
    sampler = BoundedClasses(*_case("sexes and ages"))
    again = pickle.loads(pickle.dumps(sampler))
    x = tables("sexes and ages", 3)
    assert np.array_equal(sampler.publish(x, None, stream("pickle")), again.publish(x, None, stream("pickle")))


def _case(name: str) -> tuple[BoundedBlock, Fraction]:
    return CASES[name][0], HALF


def test_the_cases_are_what_they_say() -> None:
    sizes = {name: len(fibre(*case)) for name, case in CASES.items()}
    assert all(1 < size < 3000 for size in sizes.values()), sizes
    assert FAR > 10**18
