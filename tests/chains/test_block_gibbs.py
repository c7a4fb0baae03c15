"""Block Gibbs: its exact law on whole fibres in fractions, the words it reads, and the compiled loop against the exact step."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import fmpz_poly

from holdfast.chains import _block_compiled as compiled
from holdfast.chains import block_gibbs
from holdfast.chains.assessment import assess
from holdfast.chains.block_gibbs import BlockGibbs
from holdfast.chains.pair_of_rows import PairOfRows, Share, ShareLaw, Sums, Values, draw_alone, one_by_one
from holdfast.chains.protocol import State
from holdfast.chains.target import Decay, EnergyKind, Ints, Target
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.randomness import NoiseKey, Words
from holdfast.testing import ListedWords, check_fit, check_fit_categories, chi_square_p_value, fits

from .fibres import Point, check_stationary, enumerate_fibre

ONES = (1 << 32) - 1


def nearly_one(index: int, depth: int) -> tuple[int, ...]:
    """Extra bits that are all ones, but not for ever: a uniform number is below one."""
    return (ONES if depth == 0 else 0,) * 4


def rational(kind: EnergyKind, shape: tuple[int, int], base: Fraction, lower: int | Ints, upper: int | Ints, **more: float) -> BlockGibbs:
    cells = math.prod(shape)
    target = Target(Decay(kind, Fraction(1), base), cells).within(np.broadcast_to(lower, cells), np.broadcast_to(upper, cells))
    return BlockGibbs(target, shape, **more)


def fibre_of(kernel: BlockGibbs) -> list[Point]:
    """All tables whose sums are zero within the bounds."""
    rows, columns = kernel.shape
    moves = []
    for i, j in product(range(rows - 1), range(columns - 1)):
        move = np.zeros(kernel.shape, dtype=np.int64)
        move[i, j] = move[i + 1, j + 1] = 1
        move[i, j + 1] = move[i + 1, j] = -1
        moves.append(move.ravel())
    assert kernel.target.lower is not None
    assert kernel.target.upper is not None
    return enumerate_fibre(moves, kernel.target.lower, kernel.target.upper)


UNEVEN = (np.array([-1, -2, 0, -3, -1, -2]), np.array([2, 1, 3, 1, 2, 0]))
SMALL = [
    rational("absolute", (2, 2), Fraction(1, 2), -3, 3),
    rational("squares", (2, 2), Fraction(2, 3), -3, 2),
    rational("absolute", (2, 3), Fraction(2, 3), -2, 2),
    rational("squares", (2, 3), Fraction(3, 4), -2, 2),
    rational("absolute", (2, 3), Fraction(3, 5), *UNEVEN),
    rational("squares", (3, 2), Fraction(3, 5), UNEVEN[0] - 1, UNEVEN[1] + 1),
    rational("absolute", (3, 3), Fraction(1, 2), -1, 1),
    rational("squares", (3, 3), Fraction(2, 3), -1, 2),
]


def name_of(kernel: BlockGibbs) -> str:
    assert kernel.target.lower is not None
    return f"{kernel.target.decay.kind} {kernel.shape} from {kernel.target.lower[0]}"


@pytest.mark.parametrize("kernel", SMALL, ids=name_of)
def test_the_target_is_stationary_in_fractions(kernel: BlockGibbs) -> None:
    fibre = fibre_of(kernel)
    assert len(fibre) > 4
    check_stationary(kernel, fibre, kernel.target)


def test_a_wrong_target_is_not_stationary() -> None:
    kernel, wrong = SMALL[2], rational("absolute", (2, 3), Fraction(21, 32), -2, 2)
    with pytest.raises(AssertionError):
        check_stationary(kernel, fibre_of(kernel), wrong.target)


def test_bounds_on_both_sides_can_keep_tables_apart() -> None:
    """The known limit: with the diagonal pinned the only move is a cycle through three rows."""
    pinned = np.eye(3, dtype=np.int64).ravel()
    kernel = rational("absolute", (3, 3), Fraction(1, 2), pinned - 1, 1 - pinned)
    fibre = fibre_of(kernel)
    assert len(fibre) == 3
    assert all(kernel.transitions(z) == {z: 1} for z in fibre)
    with pytest.raises(AssertionError, match="not connected"):
        check_stationary(kernel, fibre, kernel.target)
    with pytest.raises(InvalidParameter, match="may not reach every table"):
        assess(kernel, eta=Fraction(1, 10), seed="pinned")


def test_rows_and_columns_are_picked_in_proportion_to_their_number() -> None:
    kernel = SMALL[2]
    picks = kernel.picks()
    assert sum(chance for _, _, chance in picks) == 1
    assert sum(chance for line, _, chance in picks if line < 2) == Fraction(2, 5)
    assert {(line, partner) for line, partner, _ in picks} == {(0, 1), (1, 0), (2, 3), (2, 4), (3, 2), (3, 4), (4, 2), (4, 3)}
    words = ListedWords([0, 0, ONES, ONES, int(0.4 * 2**32) + 1, 0])
    assert [kernel.picked(words) for _ in range(3)] == [(0, 1), (4, 3), (2, 3)]


def test_enumerated_words_bracket_the_law_of_a_step() -> None:
    """2 x 2: two bits for the line, six for the share, everything after them all zeros and all ones."""
    kernel, bits = rational("absolute", (2, 2), Fraction(1, 2), -3, 2), 6
    state = np.array([1, -1, -1, 1])
    lower: Counter[tuple[int, ...]] = Counter()
    unsettled = 0
    for line, place in product(range(4), range(1 << bits)):
        ends = []
        for rest in (0, 1):
            word = (place << (32 - bits)) + rest * ((1 << (32 - bits)) - 1)
            words = ListedWords([line << 30, 5, word], nearly_one if rest else None)
            ends.append(tuple(kernel.step(state, words)[0].tolist()))
            assert words.position == 3
        if ends[0] == ends[1]:
            lower[ends[0]] += 1
        else:
            unsettled += 1
    law = kernel.transitions(state)
    whole = 4 << bits
    assert unsettled < 4 * len(law) + 4
    for z, chance in law.items():
        assert Fraction(lower[z], whole) <= chance <= Fraction(lower[z] + unsettled, whole)


@pytest.mark.parametrize("kernel", [SMALL[4], SMALL[7]], ids=name_of)
def test_a_step_has_the_listed_law(kernel: BlockGibbs) -> None:
    fibre = fibre_of(kernel)
    state = np.array(fibre[len(fibre) // 3])
    words = NoiseKey.for_tests("block step").stream(name_of(kernel))
    counts = Counter(tuple(kernel.step(state, words)[0].tolist()) for _ in range(4000))
    law = kernel.transitions(state)
    check_fit_categories(counts, law, name=f"one step of block Gibbs, {name_of(kernel)}")
    # a law that keeps the first line half as often again must fail
    first, _ = kernel.lines(0, 1)
    keeps = {z: p * (1 + Fraction(1, 2) * bool((np.array(z)[first] == state[first]).all())) for z, p in law.items()}
    total = sum(keeps.values())
    observed, wrong = [counts[z] for z in law], [float(p / total) for p in keeps.values()]
    assert chi_square_p_value(observed, wrong, 4000) < 1e-9


def steps_of(kernel: BlockGibbs, state: State, steps: int, words: Words) -> State:
    for _ in range(steps):
        state, info = kernel.step(state, words)
        assert info == (1, 1)
    return state


FREE = [
    BlockGibbs(Target.laplace(6, "1/4"), (2, 3)),
    BlockGibbs(Target.laplace(20, "1/4"), (4, 5)),
    BlockGibbs(Target.laplace(12, 2), (6, 2)),
    BlockGibbs(Target.gaussian(12, 100), (3, 4)),
    BlockGibbs(Target.gaussian(9, "1/3"), (3, 3)),
    BlockGibbs(Target.laplace(12, "1/4").within(lower=np.arange(-11, 1)), (4, 3)),
    BlockGibbs(Target.gaussian(12, 30).within(np.full(12, -2), np.full(12, 40)), (4, 3)),
]


@pytest.mark.parametrize("kernel", FREE + SMALL[4:], ids=lambda k: f"{k.target.decay.kind} {k.shape}")
def test_run_is_repeated_step_from_the_same_words(kernel: BlockGibbs) -> None:
    fast, slow = (NoiseKey.for_tests("block run").stream("words") for _ in range(2))
    start = kernel.start(fast)
    after, info = kernel.run(start, 25, fast)
    assert info == (25, 25)
    assert np.array_equal(after, steps_of(kernel, kernel.start(slow), 25, slow))
    assert fast.position == slow.position
    assert not start.any(), "a run leaves the state it was given alone"
    table = after.reshape(kernel.shape)
    assert not table.sum(axis=0).any()
    assert not table.sum(axis=1).any()
    assert kernel.target.allows(after)


@pytest.mark.ordinary("(2, 3)", "(4, 3)")
@pytest.mark.parametrize("kernel", [FREE[0], FREE[3], FREE[5]], ids=lambda k: f"{k.target.decay.kind} {k.shape}")
def test_a_wider_band_changes_nothing(kernel: BlockGibbs) -> None:
    slow_steps: list[int] = []
    ends = []
    for band in (2.0**-40, 2.0**-20, 2.0**-4, 4.0):
        banded = BlockGibbs(kernel.target, kernel.shape, band)
        words = NoiseKey.for_tests("band").stream("block")
        calls: list[int] = []

        def counted(rows: PairOfRows, shares: Sequence[Share], total: int, source: Words, calls: list[int] = calls) -> Values:
            calls.append(total)
            return draw_alone(rows, shares, total, source)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(block_gibbs, "draw_alone", counted)
            after, _ = banded.run(banded.start(words), 40, words)
        slow_steps.append(len(calls))
        ends.append((tuple(after.tolist()), words.position))
    assert len(set(ends)) == 1
    assert slow_steps[0] == 0
    assert slow_steps[2] > 5
    assert slow_steps[3] == 40


def test_words_on_thresholds_go_to_the_exact_step() -> None:
    """The first share of two rows, its word at a cumulative probability, below it and above; and words at the border of two lines."""
    kernel = rational("absolute", (2, 3), Fraction(3, 5), -3, 3)
    state = np.array([1, 1, -2, -1, -1, 2])
    first, second = kernel.lines(0, 1)
    law = kernel.rows_between(state, first, second).listed_share(kernel.shares(3)[0], int(state[first].sum()))
    cumulative = Fraction(0)
    borders = [-(-(k << 32) // 5) for k in range(1, 5)]
    tried = [(border + shift, 7) for border in borders for shift in (-1, 0)]
    for _, chance in sorted(law.items()):
        cumulative += chance
        threshold = min(int(cumulative * 2**32), ONES)
        tried += [(0, word) for word in (threshold - 1, threshold, threshold + 1) if 0 <= word <= ONES]
    for line_word, word in tried:
        listed = np.full((1 << 15) + 16, 0x9E3779B9, dtype=np.uint32)
        listed[[0, 2]] = line_word, word
        for extra in (None, nearly_one):
            fast, slow = (ListedWords(listed, extra) for _ in range(2))
            assert np.array_equal(kernel.run(state, 2, fast)[0], steps_of(kernel, state, 2, slow))
            assert fast.position == slow.position


@pytest.mark.parametrize("kernel", [FREE[1], FREE[3], FREE[6]], ids=lambda k: f"{k.target.decay.kind} {k.shape}")
def test_extreme_words_are_read_alike(kernel: BlockGibbs) -> None:
    listed = NoiseKey.for_tests("extreme").stream("block").take((1 << 15) + 400)
    for place, word in ((3, 0), (20, ONES), (31, 1), (45, ONES - 1), (60, 1 << 31), (61, (1 << 31) - 1)):
        listed[place] = word
    fast, slow = (ListedWords(listed, default_extra=12345) for _ in range(2))
    start = kernel.start(fast)
    assert np.array_equal(kernel.run(start, 15, fast)[0], steps_of(kernel, start, 15, slow))
    assert fast.position == slow.position


def test_a_table_far_from_its_law_is_left_to_the_exact_step_or_agrees() -> None:
    """Doubles know nothing about totals that independent columns would hardly ever have; the exact step does."""
    for kernel in (FREE[0], BlockGibbs(Target.gaussian(6, 4), (2, 3))):
        state = np.array([300, 300, -600, -300, -300, 600])
        fast, slow = (NoiseKey.for_tests("far").stream("block") for _ in range(2))
        assert np.array_equal(kernel.run(state, 6, fast)[0], steps_of(kernel, state, 6, slow))
        assert fast.position == slow.position


@pytest.mark.parametrize(("kind", "reach"), [("absolute", 70), ("squares", 20)])
def test_certified_shares_hold_the_true_law(kind: EnergyKind, reach: int) -> None:
    """No bounds, rational base: the truth from a window so wide that what it lacks is far below the bounds' width."""
    base, sums = Fraction(1, 4), (3, -2, 0)
    endless = PairOfRows.of(Decay(kind, Fraction(1), base), sums, [None] * 3, [None] * 3)
    wide = PairOfRows.of(Decay(kind, Fraction(1), base), sums, [-reach] * 3, [reach] * 3)
    share = Share((0, 1, 2), (0,), (1, 2))
    for total in (0, 4, -25):
        weights = ShareLaw(endless, share, total).fixed_weights(64, 40)
        truth = wide.listed_share(share, total)
        low, high = sum(weights.lows), sum(weights.highs) + weights.left_tail[1] + weights.right_tail[1]
        assert (high - low) << 100 <= low
        spare = Fraction(1, 2**150)
        for i, (a, b) in enumerate(zip(weights.lows, weights.highs, strict=True)):
            assert Fraction(a, high) - spare <= truth[weights.first + i] <= Fraction(b, low) + spare


@pytest.mark.parametrize(
    "kernel", [FREE[1], FREE[3], FREE[6], BlockGibbs(Target.laplace(400, "1/4"), (20, 20))], ids=lambda k: str(k.shape)
)
def test_doubles_are_as_near_as_their_band_says(kernel: BlockGibbs) -> None:
    words = NoiseKey.for_tests("doubles").stream("block")
    state, _ = kernel.run(kernel.start(words), 60, words)
    first, second = kernel.lines(0, 1)
    n = len(first)
    tables, space = compiled.tables(kernel), compiled.space(kernel)
    space.top[0] = 0
    assert compiled.make_columns(state, tables, space, 0, 0, kernel.shape[1], 1, n, 0, False)
    assert compiled.suffixes(space, np.arange(n), n, 2 * n)
    start, count, band = compiled.share(space, 0, 2 * n + 1, int(state[first].sum()), 0.0, space.left)
    assert band < 2.0**-36
    law = ShareLaw(kernel.rows_between(state, first, second), kernel.shares(n)[0], int(state[first].sum()))
    weights = law.fixed_weights(64, 40)
    total = sum(weights.lows)
    exact = {weights.first + i: Fraction(low, total) for i, low in enumerate(weights.lows)}
    gap, largest = Fraction(0), Fraction(0)
    for k in range(min(start, weights.first), max(start + count, weights.first + len(weights.lows))):
        listed = Fraction(float(space.left[k - start])) if start <= k < start + count else Fraction(0)
        gap += listed - exact.get(k, Fraction(0))
        largest = max(largest, abs(gap))
    assert largest <= Fraction(band)


# Error margins: of integer sums, and of the loop's tables.


def sums_of(first: int, lows: list[int], highs: list[int], missing: int) -> Sums:
    return Sums(first, fmpz_poly(lows), fmpz_poly(highs), missing)


def test_products_of_sums_keep_what_either_lacks_and_round_outwards() -> None:
    one, other = sums_of(0, [4], [5], 3), sums_of(2, [6, 1], [7, 1], 2)
    assert one.times(other, 64) == sums_of(2, [24, 4], [35, 5], 3 * (8 + 2) + 5 * 2)
    assert other.times(one, 64) == one.times(other, 64)
    assert one.times(other, 3) == sums_of(2, [3], [5, 1], 5)
    exact = sums_of(0, [3, 1], [3, 1], 0)
    assert exact.times(exact, 1) == sums_of(0, [9, 6, 1], [9, 6, 1], 0)


def test_a_column_knows_what_it_lacks() -> None:
    """Weights 4^-|x|, in units of that at 0: they add up to 5/3."""
    rows = PairOfRows.of(Decay("absolute", Fraction(1), Fraction(1, 2)), (0, 0), [None] * 2, [None] * 2)
    column = rows.sums((0,), 20)
    unit = int(column.highs[-column.first])
    assert int(column.lows(1)) < Fraction(5, 3) * unit <= int(column.highs(1)) + column.missing
    assert column.missing > Fraction(1, 2) * (Fraction(5, 3) * unit - int(column.lows(1)))


def test_a_share_adds_all_that_is_missing_to_every_upper_bound() -> None:
    class Stub:
        def sums(self, group: tuple[int, ...], working: int) -> Sums:
            return sums_of(0, [4, 1], [5, 2], 3) if group == (0,) else sums_of(1, [6, 1], [7, 1], 2)

    law = ShareLaw(Stub(), Share((0, 1), (0,), (1,)), 2)  # type: ignore[arg-type]
    weights = law.bounds(8)
    missing = 3 * (8 + 2) + 7 * 2
    assert (weights.first, weights.lows, weights.highs) == (0, [4 * 1, 1 * 6], [5 * 1 + missing, 2 * 7 + missing])
    assert weights.left_tail == weights.right_tail == (0, missing)


def two_columns(kernel: BlockGibbs, *sums: int) -> tuple[compiled.Tables, compiled.Space]:
    """Tables of columns with these sums and no bounds, in slots 0, 1, ..."""
    tables, space = compiled.tables(kernel), compiled.space(kernel)
    for slot, total in enumerate(sums):
        assert compiled.make_column(tables, space, slot, total, -block_gibbs.NO_BOUND, block_gibbs.NO_BOUND)
    return tables, space


def test_tables_know_what_they_lack() -> None:
    kernel = BlockGibbs(Target(Decay("absolute", Fraction(1), Fraction(1, 2)), 4), (2, 2))
    _, space = two_columns(kernel, 0, 3)
    missing, lengths = space.bounds[:, compiled.MISSING], space.heads[:, compiled.LENGTH]
    for slot, total in enumerate((0, 3)):
        reach = (int(lengths[slot]) - total - 1) // 2  # weights 4^-d at distance d: what follows on both sides, against all
        beyond = 2 * Fraction(1, 4 ** (reach + 1)) / (1 - Fraction(1, 4))
        share = beyond / (total + Fraction(5, 3))
        assert share <= Fraction(float(missing[slot])) <= 4 * share
    assert compiled.convolve(space, 0, 1, 2)
    assert missing[2] >= missing[0] + missing[1]
    tables, space = two_columns(kernel)
    for slot in (0, 1):  # between bounds nothing is lacking but the products that may be skipped
        assert compiled.make_column(tables, space, slot, 0, -3, 3)
    assert compiled.convolve(space, 0, 1, 2)
    assert space.bounds[:2, compiled.MISSING].tolist() == [0.0, 0.0]
    assert space.bounds[2, compiled.MISSING] >= 7 * 7 * compiled.SKIPPED


def test_what_tables_lack_widens_the_band_of_a_share() -> None:
    kernel = BlockGibbs(Target.laplace(4, "1/2"), (2, 2))
    _, space = two_columns(kernel, 0, 1)
    first, count, narrow = compiled.share(space, 0, 1, 0, 0.0, space.left)
    law = space.left[:count].copy()
    part, rest = (space.arena[space.heads[k, 0] : space.heads[k, 0] + space.heads[k, 2]] for k in (0, 1))
    rest_at = dict(zip(range(int(space.heads[1, 1]), int(space.heads[1, 1]) + len(rest)), rest, strict=True))
    mass = sum(p * rest_at.get(-x, 0.0) for x, p in enumerate(part, int(space.heads[0, 1])))
    assert narrow < 2.0**-40
    assert compiled.share(space, 0, 1, 0, 2.0**-7, space.left)[2] == 2.0**-7
    word = int((law[: count // 2].sum() + 2.0**-11) * 2**32)  # beside a threshold
    assert compiled.draw_one(space, 0, 1, 0, word, 2.0**-40) == (first + count // 2, True)
    for slot in (0, 1):
        before = space.bounds[slot, compiled.MISSING]
        space.bounds[slot, compiled.MISSING] = 2.0**-10
        assert compiled.share(space, 0, 1, 0, 0.0, space.left)[2] >= 2 * 2.0**-10 / mass
        assert not compiled.draw_one(space, 0, 1, 0, word, 2.0**-40)[1]
        space.bounds[slot, compiled.MISSING] = before


@pytest.mark.parametrize("beyond", [1, 2])
def test_widths_are_refused_whatever_the_band(beyond: int) -> None:
    """A column of sum S, no bounds: the loop's table is narrower than what the exact step allows for, and both must refuse alike."""
    kernel = BlockGibbs(Target.laplace(4, 1), (2, 2))
    widest = block_gibbs.WIDEST_COLUMN - 2 * kernel.weights.reach - 1
    for band in (2.0**-40, 0.5):
        banded = BlockGibbs(kernel.target, kernel.shape, band)
        for state in ([widest + beyond, 0, 0, 0], [0, -widest - beyond, 0, 0]):
            with pytest.raises(RequestTooLarge, match="values of some weight"):
                banded.run(np.array(state), 1, NoiseKey.for_tests("width").stream("a"))


def test_the_widest_column_is_drawn_whatever_the_band() -> None:
    kernel = BlockGibbs(Target.laplace(4, 1), (2, 2))
    state = np.array([block_gibbs.WIDEST_COLUMN - 2 * kernel.weights.reach - 1, 0, 0, 0])
    ends = []
    for band in (2.0**-40, 4.0):
        words = NoiseKey.for_tests("width").stream("a")
        ends.append((BlockGibbs(kernel.target, kernel.shape, band).run(state, 1, words)[0].tolist(), words.position))
    assert ends[0] == ends[1]


def test_reach_covers_both_tables() -> None:
    for kernel in FREE:
        weights = kernel.weights
        assert weights.even[weights.reach] < block_gibbs.CUT > weights.odd[weights.reach]


@pytest.mark.parametrize("band", [2.0**-40, 4.0])
def test_a_cell_that_goes_beyond_its_room_is_refused(band: float) -> None:
    """Squares: the new cells lie about the middle of their sum, which may be at the edge."""
    kernel = BlockGibbs(Target.gaussian(4, 100), (2, 2), band)
    state = np.full(4, (1 << 30) - 1)
    listed = np.full(1 << 16, 0xF0000000, dtype=np.uint32)
    for act in (kernel.step, lambda s, w: kernel.run(s, 1, w), lambda s, w: kernel.run(s, 3, w)):
        with pytest.raises(RequestTooLarge, match="went beyond"):
            act(state, ListedWords(listed))
    near = kernel.run(state - 100, 1, ListedWords(listed))[0]
    assert near.max() > (1 << 30) - 101


@pytest.mark.parametrize("band", [2.0**-41, 0.0, -1.0, float("nan")])
def test_a_band_narrower_than_the_doubles_error_is_refused(band: float) -> None:
    with pytest.raises(InvalidParameter, match="band must be"):
        BlockGibbs(FREE[0].target, (2, 3), band)


@pytest.mark.parametrize("kernel", [FREE[1], FREE[3], FREE[5]], ids=lambda k: f"{k.target.decay.kind} {k.shape}")
def test_a_trace_notes_every_state(kernel: BlockGibbs) -> None:
    words = NoiseKey.for_tests("trace").stream("block")
    states = [kernel.start(words)]
    for _ in range(12):
        states.append(kernel.run(states[-1], 1, words)[0])

    def row(state: State) -> list[int]:
        rows, columns = kernel.shape
        quadrant = sum(int(state[i * columns + j]) for i in range(rows // 2) for j in range(columns // 2))
        return [kernel.target.energy(state), int(state[0]), quadrant]

    assert len({tuple(row(z)) for z in states}) > 6
    for every in (1, 3):
        words = NoiseKey.for_tests("trace").stream("block")
        after, record = kernel.trace(states[0], 12 // every, every, words)
        assert record.tolist() == [row(z) for z in states[every::every]]
        assert np.array_equal(after, states[-1])


# Laws that come out


def two_by_two(epsilon: float) -> dict[int, float]:
    raw = {a: math.exp(-4 * epsilon * abs(a)) for a in range(-100, 101)}
    return {a: w / sum(raw.values()) for a, w in raw.items()}


def corner_of_two_by_three(rate: float, power: int) -> dict[int, float]:
    """Law of the corner: rows are x and -x, x of sum zero, weight exp(-2 rate sum |x|^power)."""
    reach = range(-80, 81)
    raw = {a: sum(math.exp(-2 * rate * (abs(a) ** power + abs(b) ** power + abs(a + b) ** power)) for b in reach) for a in reach}
    return {a: w / sum(raw.values()) for a, w in raw.items()}


def test_runs_fit_the_law_of_two_by_two() -> None:
    kernel = BlockGibbs(Target.laplace(4, "1/4"), (2, 2))
    words = NoiseKey.for_tests("fit").stream("2 x 2")
    state, values = kernel.start(words), []
    for _ in range(8000):  # one step draws the whole table, whatever it was
        state, _ = kernel.run(state, 1, words)
        values.append(int(state[0]))
    check_fit(values, two_by_two(0.25), name="block Gibbs, 2 x 2, l1")
    assert not fits(values, two_by_two(0.28))


@pytest.mark.ordinary("target0")
@pytest.mark.parametrize(("target", "rate", "power"), [(Target.laplace(6, "1/4"), 0.25, 1), (Target.gaussian(6, 20), 0.025, 2)])
def test_runs_fit_the_law_of_two_by_three(target: Target, rate: float, power: int) -> None:
    kernel = BlockGibbs(target, (2, 3))
    words = NoiseKey.for_tests("fit").stream("2 x 3", power)
    state, values = kernel.start(words), []
    for _ in range(6000):  # a step on rows draws the whole table: 40 steps without one have probability (3/5)^40 = 1.3e-9
        state, _ = kernel.run(state, 40, words)
        values.append(int(state[0]))
    check_fit(values, corner_of_two_by_three(rate, power), name=f"block Gibbs, 2 x 3, power {power}")
    assert not fits(values, corner_of_two_by_three(1.3 * rate, power))


def test_shares_give_every_column_its_value_once() -> None:
    shares = one_by_one([(4, 1), (2,), (0, 3)])
    assert [(s.part, s.rest) for s in shares] == [((4, 1), (2, 0, 3)), ((4,), (1,)), ((2,), (0, 3)), ((0,), (3,))]
    assert all(s.whole == s.part + s.rest for s in shares)


def test_a_kernel_can_be_pickled() -> None:
    copy = pickle.loads(pickle.dumps(FREE[1]))
    ends = []
    for kernel in (FREE[1], copy):
        words = NoiseKey.for_tests("pickle").stream("block")
        ends.append(kernel.run(kernel.start(words), 20, words)[0])
    assert np.array_equal(ends[0], ends[1])
    assert copy.name == "block_gibbs"
    assert copy.steps_per_sweep == 4


@pytest.mark.parametrize("shape", [(1, 6), (6, 1), (6,), (2, 3, 1), (0, 6), (2.0, 3), (True, 6)])
def test_other_shapes_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(InvalidParameter, match="two axes"):
        BlockGibbs(Target.laplace(6, 1), shape)


@pytest.mark.parametrize(
    "target",
    [
        Target.laplace(5, 1),
        Target.of_forms("absolute", np.eye(6, dtype=np.int64)[::-1], [1] * 6),
        Target.of_forms("absolute", np.eye(6, dtype=np.int64)[:5], [1] * 5),
        Target.of_forms("squares", np.eye(6, dtype=np.int64), [1, 1, 1, 1, 1, 2]),
    ],
)
def test_other_forms_are_refused(target: Target) -> None:
    with pytest.raises(InvalidParameter, match="forms are the 6 cells"):
        BlockGibbs(target, (2, 3))


def test_norms_wrong_bounds_wide_laws_and_wrong_states_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="'norm'"):
        BlockGibbs(Target.laplace(6, 1, "l2"), (2, 3))
    with pytest.raises(InvalidParameter, match="zero must lie within"):
        BlockGibbs(Target.laplace(6, 1).within(lower=np.ones(6, dtype=np.int64)), (2, 3))
    for target in (Target.laplace(6, "1/1000"), Target.gaussian(6, 10**8)):
        with pytest.raises(RequestTooLarge, match="values of some weight"):
            BlockGibbs(target, (2, 3))
    kernel, words = FREE[0], ListedWords(np.zeros(1 << 16, dtype=np.uint32))
    least = np.array([-(1 << 63), 0, 0, 0, 0, 0])  # its absolute value is negative in 64 bits
    wrong: list[Any] = [np.zeros(5, dtype=np.int64), np.zeros(6), np.zeros(6, dtype=np.int32), np.full(6, 1 << 30), least, [0.5] * 6]
    for state in wrong:
        for act in (kernel.step, lambda s, w: kernel.run(s, 1, w)):
            with pytest.raises(InvalidParameter, match="state of this chain"):
                act(state, words)
    for act in (SMALL[4].step, lambda s, w: SMALL[4].run(s, 1, w)):
        with pytest.raises(InvalidParameter, match="within the target's bounds"):
            act(np.array([5, -5, 0, -5, 5, 0]), words)
    with pytest.raises(InvalidParameter, match="state of this chain"):
        SMALL[4].transitions([0.5] * 6)  # type: ignore[list-item]
    far = 20_000 * np.array([1, -1, 0, -1, 1, 0])
    with pytest.raises(RequestTooLarge, match="values of some weight"):
        BlockGibbs(Target.laplace(9, 1), (3, 3)).run(np.append(far, [0, 0, 0]), 50, NoiseKey.for_tests("far").stream("x"))
    with pytest.raises(InvalidParameter, match="rational base"):
        kernel.transitions([0] * 6)
