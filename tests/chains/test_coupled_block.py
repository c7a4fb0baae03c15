"""Coupled block Gibbs: margins and joint laws in fractions, the ordering that makes chains meet, the compiled loop, and meetings."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from holdfast.chains import _block_compiled as compiled
from holdfast.chains import coupled_block
from holdfast.chains.block_gibbs import BlockGibbs
from holdfast.chains.coupled_block import CoupledBlockGibbs, shares_of
from holdfast.chains.pair_of_rows import PairOfRows, Share, list_together
from holdfast.chains.pairing import quantile_joint
from holdfast.chains.protocol import CoupledInfo, Pair
from holdfast.chains.target import Decay, EnergyKind, Target
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.randomness import NoiseKey, Words
from holdfast.testing import ListedWords, check_fit_categories, chi_square_p_value

from .fibres import check_margins
from .test_block_gibbs import FREE, ONES, SMALL, UNEVEN, fibre_of, name_of, rational, two_columns

ALWAYS, NEVER = 1 << 20, -1
"""Values of `near` with which the maximal pairing is used at every step, and at none."""


@pytest.mark.ordinary("(2, 2)", "(2, 3)")
@pytest.mark.parametrize("near", [ALWAYS, NEVER])
@pytest.mark.parametrize(
    ("kernel", "every"),
    [
        (SMALL[0], 1),
        (SMALL[1], 1),
        (rational("absolute", (2, 3), Fraction(2, 3), -1, 1), 1),
        (SMALL[3], 5),
        (rational("absolute", (2, 3), Fraction(3, 5), *UNEVEN), 3),
        (rational("squares", (3, 3), Fraction(2, 3), -1, 1), 7),
        (rational("absolute", (3, 3), Fraction(1, 2), -1, 1), 7),
    ],
    ids=lambda k: name_of(k) if isinstance(k, BlockGibbs) else "",
)
def test_each_chain_alone_moves_by_the_kernels_law(kernel: BlockGibbs, every: int, near: int) -> None:
    check_margins(CoupledBlockGibbs(kernel, near), fibre_of(kernel), every=every)


def test_one_chain_drawn_with_the_sums_of_the_other_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = SMALL[2]
    monkeypatch.setattr(coupled_block, "list_together", lambda first, second, shares, totals: list_together(first, first, shares, totals))
    with pytest.raises(AssertionError, match="second margin"):
        check_margins(CoupledBlockGibbs(kernel, ALWAYS), fibre_of(kernel), every=3)


@pytest.mark.parametrize("kind", ["absolute", "squares"])
@pytest.mark.parametrize("bounds", [(-6, 6, -6, 6), (-2, 5, -4, 2)])
def test_quantile_pairing_keeps_differences_between_zero_and_theirs(kind: EnergyKind, bounds: tuple[int, int, int, int]) -> None:
    """Two columns with D and -D and one total: the difference of the first lies in 0 .. D, whatever the sums; all cases of a small box."""
    decay = Decay(kind, Fraction(1), Fraction(3, 5))
    low, high, other_low, other_high = bounds
    share = Share((0, 1), (0,), (1,))
    seen = 0

    def rows(a: int, b: int) -> PairOfRows:
        ends = [(max(low, s - other_high), min(high, s - other_low)) for s in (a, b)]
        return PairOfRows.of(decay, (a, b), [e[0] for e in ends], [e[1] for e in ends])

    for a, b, d, total in product(range(-3, 4), range(-3, 4), (1, 2, 3), range(-3, 4)):
        first, second = rows(a, b), rows(a + d, b - d)
        if any(c.first is None or c.last is None or c.first > c.last for c in first.columns + second.columns):
            continue
        if not all(r.columns[0].first + r.columns[1].first <= total <= r.columns[0].last + r.columns[1].last for r in (first, second)):  # type: ignore[operator]
            continue
        joint = quantile_joint(first.listed_share(share, total), second.listed_share(share, total))
        assert {y - x for x, y in joint} <= set(range(d + 1))
        seen += 1
    assert seen > 100


def test_shares_pair_columns_of_opposite_difference() -> None:
    shares = shares_of([0, 1, -3, 4, 0, -1, -1], is_near=True)
    assert shares[0] == Share((3, 2, 1, 5, 6, 0, 4), (3, 2, 1, 5, 6), (0, 4), is_maximal=True)
    assert [(s.part, s.rest) for s in shares[1:]] == [((0,), (4,)), ((3, 2), (1, 5, 6)), ((3,), (2,)), ((1, 5), (6,)), ((1,), (5,))]
    assert not any(s.is_maximal for s in shares[1:])
    assert not shares_of([0, 1, -1], is_near=False)[0].is_maximal
    assert [s.part for s in shares_of([0, 0, 0], is_near=True)] == [(0,), (1,)]
    assert [s.part for s in shares_of([2, -2], is_near=True)] == [(0,)], "without columns that agree nothing is shared before"


def test_lines_without_differences_in_their_sums_become_identical() -> None:
    kernel = rational("absolute", (3, 3), Fraction(1, 2), -2, 2)
    x, y = np.array([1, -1, 0, -1, 1, 0, 0, 0, 0]), np.zeros(9, dtype=np.int64)
    joint = CoupledBlockGibbs(kernel).transitions(Pair(x, y))
    met = sum(mass for (a, b), mass in joint.items() if a == b)
    # rows 0 and 1, either first, or columns 0 and 1, either first: four of the twelve ways to pick
    assert met >= Fraction(1, 3)


@pytest.mark.ordinary("1048576")
@pytest.mark.parametrize("near", [ALWAYS, NEVER])
def test_a_step_has_the_listed_joint_law(near: int) -> None:
    kernel = rational("absolute", (2, 3), Fraction(3, 5), -2, 2)
    coupled = CoupledBlockGibbs(kernel, near)
    pair = Pair(np.array([1, 0, -1, -1, 0, 1]), np.array([-1, 2, -1, 1, -2, 1]))
    words = NoiseKey.for_tests("coupled step").stream(near + 1)
    counts: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for _ in range(2500):
        after, info = coupled.step(pair, words)
        assert info.identical == np.array_equal(after.first, after.second)
        counts[tuple(after.first.tolist()), tuple(after.second.tolist())] += 1
    law = coupled.transitions(pair)
    check_fit_categories(counts, law, name=f"one coupled step of block Gibbs, near {near}")
    other = CoupledBlockGibbs(rational("absolute", (2, 3), Fraction(1, 2), -2, 2), near).transitions(pair)
    assert chi_square_p_value([counts[z] for z in other], [float(p) for p in other.values()], sum(counts[z] for z in other)) < 1e-9


def steps_of(coupled: CoupledBlockGibbs, pair: Pair, most: int, words: Words) -> tuple[Pair, CoupledInfo]:
    made, is_identical = 0, False
    while made < most and not is_identical:
        pair, info = coupled.step(pair, words)
        made, is_identical = made + info.steps, info.identical
    return pair, CoupledInfo(made, is_identical)


def lagged(kernel: BlockGibbs, steps: int = 12) -> Pair:
    words = NoiseKey.for_tests("lagged").stream("start")
    return Pair(kernel.run(kernel.start(words), steps, words)[0], kernel.start(words))


def check_alike(coupled: CoupledBlockGibbs, pair: Pair, most: int, fast: Words, slow: Words) -> CoupledInfo:
    """`run` and repeated `step` agree in states, steps and words."""
    ran, info = coupled.run(pair, most, fast)
    stepped, expected = steps_of(coupled, pair, most, slow)
    assert info == expected
    assert all(np.array_equal(a, b) for a, b in zip(ran, stepped, strict=True))
    assert fast.position == slow.position
    assert (ran.first is ran.second) == info.identical
    return info


@pytest.mark.ordinary("(2, 3)", "(6, 2)", "(3, 3)", "(4, 3)", "(3, 4)--1")
@pytest.mark.parametrize("near", [ALWAYS, NEVER, None])
@pytest.mark.parametrize("kernel", [*FREE, SMALL[4], SMALL[7]], ids=lambda k: f"{k.target.decay.kind} {k.shape}")
def test_run_is_repeated_step_from_the_same_words(kernel: BlockGibbs, near: int | None) -> None:
    fast, slow = (NoiseKey.for_tests("coupled run").stream("words") for _ in range(2))
    check_alike(CoupledBlockGibbs(kernel, near), lagged(kernel), 12, fast, slow)


@pytest.mark.ordinary("(4, 3)", "(3, 4)--1")
@pytest.mark.parametrize("near", [ALWAYS, NEVER])
@pytest.mark.parametrize("kernel", [FREE[1], FREE[3], FREE[5]], ids=lambda k: f"{k.target.decay.kind} {k.shape}")
def test_extreme_words_are_read_alike(kernel: BlockGibbs, near: int) -> None:
    listed = NoiseKey.for_tests("extreme").stream("coupled").take((1 << 15) + 400)
    for place, word in ((3, 0), (4, ONES), (19, ONES), (31, 1), (36, ONES - 1), (45, 1 << 31), (61, (1 << 31) - 1)):
        listed[place] = word
    fast, slow = (ListedWords(listed, default_extra=12345) for _ in range(2))
    check_alike(CoupledBlockGibbs(kernel, near), lagged(kernel), 7, fast, slow)


@pytest.mark.long
@pytest.mark.parametrize("kernel", [FREE[0], FREE[3]], ids=lambda k: f"{k.target.decay.kind} {k.shape}")
def test_a_wider_band_changes_nothing(kernel: BlockGibbs) -> None:
    ends = set()
    for band in (2.0**-40, 2.0**-20, 2.0**-4, 4.0):
        banded = CoupledBlockGibbs(BlockGibbs(kernel.target, kernel.shape, band), ALWAYS)
        words = NoiseKey.for_tests("coupled band").stream("block")
        after, info = banded.run(lagged(kernel), 12, words)
        ends.add((tuple(after.first.tolist()), tuple(after.second.tolist()), info, words.position))
    assert len(ends) == 1


@pytest.mark.parametrize(("band", "slow"), [(2.0**-40, 0), (1.0, 10)])
def test_the_band_decides_who_makes_a_step(band: float, slow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Pair] = []
    plain = CoupledBlockGibbs.step

    def counted(self: CoupledBlockGibbs, pair: Pair, words: Words) -> tuple[Pair, CoupledInfo]:
        calls.append(pair)
        return plain(self, pair, words)

    monkeypatch.setattr(CoupledBlockGibbs, "step", counted)
    kernel = FREE[1]
    pair = lagged(kernel)
    _, info = CoupledBlockGibbs(BlockGibbs(kernel.target, kernel.shape, band)).run(pair, 10, NoiseKey.for_tests("who").stream("block"))
    assert (info.steps, len(calls)) == (10, slow)


def test_a_coin_near_its_threshold_is_left_open() -> None:
    """The maximal pairing, a word well inside what draws x, and a coin 2^-12 from q(x) / p(x): settled, but not with a band of 2^-10."""
    kernel = BlockGibbs(Target.laplace(4, "1/2"), (2, 2))
    _, space = two_columns(kernel, 0, 0, 2, -2)
    first, count, _ = compiled.share(space, 0, 1, 0, 0.0, space.left)
    other_first, _, _ = compiled.share(space, 2, 3, 0, 0.0, space.right)
    p, q = space.left[:count].copy(), space.right.copy()
    x = -1
    ratio = q[x - other_first] / p[x - first]
    assert 0.2 < ratio < 0.9
    here = int((p[: x - first].sum() + p[x - first] / 2) * 2**32)
    for shift, is_same in ((-(2.0**-12), True), (2.0**-12, False)):
        words = np.array([here, int((ratio + shift) * 2**32), 0x90000000], dtype=np.uint32)
        a, b, settled = compiled.draw_near(space, 0, 1, 2, 3, 0, 0, words, 0, 2.0**-40)
        assert (a, settled, a == b) == (x, True, is_same)
        assert not compiled.draw_near(space, 0, 1, 2, 3, 0, 0, words, 0, 2.0**-10)[2]


def test_what_is_left_of_a_law_is_drawn_only_where_it_is_known() -> None:
    """p = 1/2 on 0, 1; q = 1/4 on 0 .. 3: the residual has mass 1/2, half of it at 2 and half at 3."""
    _, space = two_columns(BlockGibbs(Target.laplace(4, "1/2"), (2, 2)), 0)

    def draw(doubt: float, place: float) -> tuple[int, bool]:
        space.left[:2] = 0.5
        space.right[:4] = 0.25
        _, y, settled = compiled.draw_residual(space, 0, 2, 0, 4, doubt, 0, int(place * 2**32))
        return int(y), bool(settled)

    assert [draw(2.0**-30, place) for place in (0.1, 0.5 - 2.0**-12, 0.5 + 2.0**-12, 0.9)] == [(2, True)] * 2 + [(3, True)] * 2
    for place in (0.5 - 2.0**-12, 0.5 + 2.0**-12, 2.0**-12):
        assert not draw(2.0**-12, place)[1]
    assert not draw(0.13, 0.25)[1], "mass no more than four times the doubt"
    space.right[:2] = 0.5
    assert not compiled.draw_residual(space, 0, 2, 0, 2, 2.0**-40, 0, 1 << 31)[2], "nothing is left"


def test_identical_chains_read_the_words_of_one() -> None:
    kernel = FREE[1]
    pair = lagged(kernel)
    together, alone = (NoiseKey.for_tests("identical").stream("block") for _ in range(2))
    after, info = kernel.coupled().run(Pair(pair.first, pair.first.copy()), 5, together)
    assert info == (1, True)
    assert np.array_equal(after.first, kernel.run(pair.first, 1, alone)[0])
    stepped, _ = kernel.coupled().step(after, together)
    assert np.array_equal(stepped.first, kernel.run(after.first, 1, alone)[0])
    assert stepped.first is stepped.second
    assert together.position == alone.position


def test_chains_with_other_sums_are_refused() -> None:
    kernel = FREE[0]
    x, y = np.zeros(6, dtype=np.int64), np.array([1, -1, 0, 0, 0, 0])
    for act in (kernel.coupled().step, lambda p, w: kernel.coupled().run(p, 1, w)):
        with pytest.raises(InvalidParameter, match="same row and column sums"):
            act(Pair(x, y), NoiseKey.for_tests("sums").stream("x"))
    with pytest.raises(InvalidParameter, match="same row and column sums"):
        SMALL[2].coupled().transitions(Pair(x, y))
    with pytest.raises(InvalidParameter, match="rational base"):
        kernel.coupled().transitions(Pair(x, x))


def test_a_step_begins_with_states_only() -> None:
    coupled = SMALL[4].coupled()
    good = np.zeros(6, dtype=np.int64)
    bad: list[Any] = [np.zeros(6), np.zeros(6, dtype=np.int32), np.zeros(5, dtype=np.int64), np.array([5, -5, 0, -5, 5, 0])]
    for state in bad:
        for pair in (Pair(good, state), Pair(state, good), Pair(state, state)):
            for act in (coupled.step, lambda p, w: coupled.run(p, 1, w), lambda p, w: coupled.transitions(p)):
                with pytest.raises(InvalidParameter, match="state of this chain"):
                    act(pair, ListedWords([]))


@pytest.mark.parametrize("band", [2.0**-40, 4.0])
@pytest.mark.parametrize("is_second", [False, True])
def test_a_cell_of_either_chain_that_goes_beyond_its_room_is_refused(is_second: bool, band: float) -> None:
    """Squares: adding one number to all cells shifts the law. So a pair is shifted until one chain alone comes to 2^30."""
    coupled = CoupledBlockGibbs(BlockGibbs(Target.gaussian(9, 100), (3, 3), band), NEVER)
    zero, apart = np.zeros(9, dtype=np.int64), np.array([3, -3, 0, 0, 0, 0, -3, 3, 0])
    words = np.full(1 << 16, 0xF0000000, dtype=np.uint32)
    words[:2] = 0  # rows 0 and 1, whose column sums differ: by 3 in column 0 and by -3 in column 1
    if not is_second:
        words[3] = 0x10000000  # little for column 0 and so much for column 1, where the first chain has the larger sum
    pair = Pair(zero, apart)
    after, _ = coupled.step(pair, ListedWords(words))
    tops = [int(state.max()) for state in after]
    assert tops[is_second] > max(tops[not is_second], 3)
    for act in (coupled.step, lambda p, w: coupled.run(p, 1, w)):
        room = (1 << 30) - tops[is_second]
        with pytest.raises(RequestTooLarge, match="went beyond"):
            act(Pair(pair.first + room, pair.second + room), ListedWords(words))
        shifted, _ = act(Pair(pair.first + room - 1, pair.second + room - 1), ListedWords(words))
        assert np.array_equal(shifted.first, after.first + room - 1)
        assert np.array_equal(shifted.second, after.second + room - 1)


def meetings(target: Target, side: int, pairs: int, most_sweeps: int) -> list[float]:
    """Sweeps until chains meet of which one has run 30 sweeps before; infinity where they did not."""
    kernel = BlockGibbs(target, (side, side))
    coupled = kernel.coupled()
    words = NoiseKey.for_tests("meetings").stream(side, target.decay.kind)
    out = []
    for _ in range(pairs):
        x, _ = kernel.run(kernel.start(words), 30 * kernel.steps_per_sweep, words)
        pair, info = coupled.run(Pair(x, kernel.start(words)), most_sweeps * kernel.steps_per_sweep, words)
        assert info.identical == np.array_equal(pair.first, pair.second)
        out.append(info.steps / kernel.steps_per_sweep if info.identical else np.inf)
    return out


@pytest.mark.parametrize("target", [Target.laplace(16, "1/4"), Target.gaussian(16, 100)], ids=["l1", "gaussian"])
def test_chains_meet_on_four_by_four(target: Target) -> None:
    assert max(meetings(target, 4, 50, 10_000)) < np.inf


@pytest.mark.long
@pytest.mark.parametrize("target", [Target.laplace(100, "1/4"), Target.gaussian(100, 100)], ids=["l1", "gaussian"])
def test_chains_meet_on_ten_by_ten(target: Target) -> None:
    assert max(meetings(target, 10, 20, 10_000)) < np.inf
