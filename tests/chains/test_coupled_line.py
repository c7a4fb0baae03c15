"""Coupled line Gibbs: margins in fractions, compiled loops equal to repeated steps, chains that meet and stay together."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.chains import _line_compiled as compiled
from holdfast.chains.coupled_line import CoupledLine, Residual, _overlap, best_shifts, shift_line
from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.moves import Move, Swaps
from holdfast.chains.protocol import CoupledInfo, StatePair
from holdfast.chains.target import ChainTarget
from holdfast.chains.words_in_steps import CHUNK_WORDS
from holdfast.errors import InvalidParameter
from holdfast.exact.balls import precision
from holdfast.exact.table import certified_thresholds
from holdfast.randomness.words import Words
from holdfast.testing import ListedWords, check_fit_categories, chi_square_p_value

from .fibres import check_margins, enumerate_fibre
from .test_line_gibbs import KERNELS, STATIONARY, VENN_BASIS, middle_of_pick, rational, words_of
from .transitions import joint_transitions, maximal_joint, quantile_joint

moves_and_differences = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(-3, 3).filter(bool), min_size=n, max_size=n), st.lists(st.integers(-20, 20), min_size=n, max_size=n)
    )
)


@given(moves_and_differences)
def test_the_best_shifts_are_those_of_brute_force(case: tuple[list[int], list[int]]) -> None:
    u, d = (np.array(part, dtype=np.int64) for part in case)
    sizes = {s: int(abs(d - s * u).sum()) for s in range(-25, 26)}
    best = [s for s, size in sizes.items() if size == min(sizes.values())]
    x, y, cells = d + 7, np.full(len(d), 7), np.arange(len(d))
    assert best_shifts(x, y, Move(cells, u)) == (best[0], best[-1])
    assert compiled.best_shifts(len(d), cells, u, x, y) == (best[0], len(best) > 1)


@pytest.mark.parametrize("case", range(len(STATIONARY)))
def test_each_chain_alone_has_the_kernels_law_as_fractions(case: int) -> None:
    moves, target = STATIONARY[case]
    fibre = enumerate_fibre(moves, target.lower, target.upper)  # type: ignore[arg-type]
    check_margins(LineGibbs(target, moves).couple(), fibre, every=max(1, len(fibre) ** 2 // 150))


def test_a_pairing_that_looked_at_its_draw_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: the first chain's draws taken by the quantile pairing where they are even, by the maximal one where they are odd."""

    def mixed(p: dict[int, Fraction], q: dict[int, Fraction]) -> dict[tuple[int, int], Fraction]:
        even = {pair: mass for pair, mass in quantile_joint(p, q).items() if pair[0] % 2 == 0}
        return even | {pair: mass for pair, mass in maximal_joint(p, q).items() if pair[0] % 2}

    monkeypatch.setattr("tests.chains.transitions.quantile_joint", mixed)
    moves, target = STATIONARY[4]
    fibre = enumerate_fibre(moves, target.lower, target.upper)  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="margin"):
        check_margins(LineGibbs(target, moves).couple(), fibre)


def started(kernel: LineGibbs, words: Words) -> StatePair:
    x, _ = kernel.run(kernel.start(words), 40, words)
    y, _ = kernel.run(kernel.start(words), 40, words)
    return StatePair(x, y)


COUPLED = {
    **{name: KERNELS[name] for name in ("pairs", "signed pairs", "swaps, bounds", "gaussian", "squares, basis", "rational")},
    "steep moves, bounds": KERNELS["steep moves, bounds"],
    "swaps": LineGibbs(ChainTarget.laplace(12, "3/4"), Swaps((3, 4))),
    "three-way": LineGibbs(ChainTarget.laplace(12, 1), Swaps((2, 3, 2))),
    "basis": LineGibbs(KERNELS["basis"].target.within(lower=[-9] * 7, upper=[9] * 7), VENN_BASIS),
    "norm": LineGibbs(ChainTarget.laplace(9, 1, "l2"), Swaps((3, 3))),
}


@pytest.mark.parametrize("name", COUPLED)
def test_run_equals_repeated_steps_whatever_the_band(name: str) -> None:
    kernel = COUPLED[name]
    most = 12
    by_step = words_of("coupled " + name)
    pair = begin = started(kernel, by_step)
    met, made = False, 0
    while made < most and not met:
        pair, info = kernel.couple().step(pair, by_step)
        made, met = made + 1, info.identical
    for band in (2.0**-40, 2.0**-20, 2.0**-5):
        by_run = words_of("coupled " + name)
        started(kernel, by_run)
        found, info = LineGibbs(kernel.target, kernel.moves, band).couple().run(begin, most, by_run)
        assert info == (made, met)
        assert (found.first == pair.first).all()
        assert (found.second == pair.second).all()
        assert (found.first is found.second) == met
        assert by_run.position == by_step.position


@pytest.mark.long
@pytest.mark.parametrize("name", [n for n in COUPLED if n != "norm"])
def test_long_runs_do_not_depend_on_the_band(name: str) -> None:
    results = []
    for band in (2.0**-40, 2.0**-18):
        kernel = LineGibbs(COUPLED[name].target, COUPLED[name].moves, band)
        words = words_of("long " + name)
        pair, info = kernel.couple().run(started(kernel, words), 1500, words)
        results.append((pair.first.tolist(), pair.second.tolist(), info, words.position))
    assert results[0] == results[1]


def maximal_pair(kernel: LineGibbs, move: Move, words: Words) -> StatePair:
    """Two states whose laws along the move are paired maximally and differ."""
    for _ in range(500):
        pair = StatePair(*(kernel.run(kernel.start(words), 40, words)[0] for _ in range(2)))
        low, high = best_shifts(*pair, move)
        p, q = kernel.line(pair.first, move), shift_line(kernel.line(pair.second, move), low)
        lifts = {p.energy(t) - q.energy(t) for t in range(-4, 5)}  # one constant matters under a root only
        if low == high and (len(lifts) > 1 or (kernel.target.decay.kind == "norm" and lifts != {0})):
            return pair
    raise AssertionError("no such pair was found")


@pytest.mark.parametrize("name", ["swaps", "swaps, bounds", "gaussian", "basis", "norm", "rational"])
def test_words_on_both_sides_of_the_thresholds_of_each_decision(name: str) -> None:
    """The maximal pairing's three words, each at its thresholds and beside them, the others in the middle of nowhere."""
    kernel = COUPLED[name]
    picks = middle_of_pick(kernel)
    move = kernel.moves.pick(ListedWords(picks))
    x, y = maximal_pair(kernel, move, words_of("thresholds " + name))
    low, _ = best_shifts(x, y, move)
    p, q = kernel.line(x, move), shift_line(kernel.line(y, move), low)
    first = certified_thresholds(p, 32)
    tries = [[T + side, 0x12345678, 0x9ABCDEF0] for T in first.values[:: max(1, len(first.values) // 6)] for side in (-1, 0, 1)]
    parted = 0
    for before, T, t in zip([0, *first.values], first.values, range(first.first, first.first + len(first.values)), strict=False):
        with precision(100):
            ratio = float(_overlap(p, q, t)().mid())
        if T - before > 10_000 and ratio < 1:
            parted += 1
            coin = int(ratio * 2**32)
            tries += [[(before + T) // 2, coin + side, 0x9ABCDEF0] for side in (-1, 0, 1)]
            rest = certified_thresholds(Residual(q, p), 32).values
            tries += [[(before + T) // 2, 0xFFFFFFF0, T + side] for T in rest[:: max(1, len(rest) // 5)] for side in (-1, 0, 1)]
        if parted == 2:
            break
    assert parted
    padding = np.zeros(CHUNK_WORDS, dtype=np.uint32)
    for chosen in tries:
        clipped = [min(max(int(word), 1), 2**32 - 2) for word in chosen]
        listed = np.concatenate([np.array([*picks, *clipped], dtype=np.uint32), padding])
        slow, _ = kernel.couple().step(StatePair(x, y), ListedWords(listed, default_extra=77))
        fast, _ = kernel.couple().run(StatePair(x, y), 1, ListedWords(listed, default_extra=77))
        assert (slow.first == fast.first).all()
        assert (slow.second == fast.second).all()


def test_a_coupled_step_fits_its_joint_law() -> None:
    kernel = LineGibbs(rational("absolute", 4, 3), Swaps((4,)))
    pair = StatePair(np.array([2, -1, -1, 0]), np.array([-1, 1, 1, -1]))
    law = joint_transitions(kernel.couple(), pair)
    words = words_of("fit of a coupled step")
    n = 6000
    counts: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
    for _ in range(n):
        after, _ = kernel.couple().run(pair, 1, words)
        counts[tuple(after.first.tolist()), tuple(after.second.tolist())] += 1
    assert counts.keys() <= law.keys()
    check_fit_categories(counts, law, name="coupled_line: one coupled step")
    # a law tilted on every third outcome is seen
    tilted = np.array([float(mass) for mass in law.values()])
    tilted[::3] *= 1.4
    assert chi_square_p_value([counts[key] for key in law], tilted / tilted.sum(), n) < 1e-9


def test_moves_of_two_cells_never_part_the_chains_further() -> None:
    kernel = LineGibbs(ChainTarget.laplace(12, "1/5"), Swaps((12,)))
    words = words_of("two cells")
    pair = started(kernel, words)
    gap = int(abs(pair.first - pair.second).sum())
    assert gap > 0
    for _ in range(3000):
        pair, info = kernel.couple().run(pair, 1, words)
        after = int(abs(pair.first - pair.second).sum())
        assert after <= gap
        gap = after
        if info.identical:
            return
    raise AssertionError("twelve cells under one sum should have met")


def test_chains_meet_on_a_small_grid_and_stay_together() -> None:
    kernel = LineGibbs(ChainTarget.laplace(16, "1/4"), Swaps((4, 4)))
    coupled = CoupledLine(kernel)
    for index in range(20):
        words = words_of(f"meeting {index}")
        pair, info = coupled.run(started(kernel, words), 2000 * kernel.steps_per_sweep, words)
        assert info.identical
        assert pair.first is pair.second
    state = pair.first
    alone, together = words_of("together"), words_of("together")
    for _ in range(5):
        state, _ = kernel.step(state, alone)
        pair, info = coupled.step(pair, together)
        assert info.identical
        assert pair.first is pair.second
        assert (pair.first == state).all()
    after, info = coupled.run(pair, 100, together)
    assert info == (1, True)
    assert after.first is after.second


def test_no_steps_asked_for_are_no_steps() -> None:
    kernel = LineGibbs(ChainTarget.laplace(4, 1), Swaps((4,)))
    pair = StatePair(np.array([1, -1, 0, 0]), np.zeros(4, dtype=np.int64))
    found, info = kernel.couple().run(pair, 0, words_of("none"))
    assert info == (0, False)
    assert found is pair


@pytest.mark.parametrize("name", COUPLED)
def test_a_band_of_one_leaves_every_step_to_the_exact_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = COUPLED[name]
    words = words_of("all exact " + name)
    pair = started(kernel, words)
    plain, calls = CoupledLine.step, []

    def counted(self: CoupledLine, pair: StatePair, words: Words) -> tuple[StatePair, CoupledInfo]:
        calls.append(1)
        return plain(self, pair, words)

    monkeypatch.setattr(CoupledLine, "step", counted)
    _, info = LineGibbs(kernel.target, kernel.moves, 1.0).couple().run(pair, 4, words)
    assert len(calls) == info.steps > 0


def test_states_that_are_none_are_refused() -> None:
    kernel = COUPLED["swaps, bounds"]
    coupled, inside = kernel.couple(), np.zeros(9, dtype=np.int64)
    outside = np.full(9, 9)
    for pair in (StatePair(outside, outside), StatePair(inside, outside), StatePair(outside, inside)):
        for call in (coupled.step, lambda pair, words: coupled.run(pair, 3, words), lambda pair, words: coupled.run(pair, 0, words)):
            with pytest.raises(InvalidParameter, match="outside the target's bounds"):
                call(pair, words_of("outside"))
    for other in (np.zeros(9), np.zeros(9, dtype=np.int32)):
        for pair in (StatePair(inside, other), StatePair(other, other)):  # type: ignore[arg-type]
            for call in (coupled.step, lambda pair, words: coupled.run(pair, 3, words)):
                with pytest.raises(InvalidParameter, match="array of int64"):
                    call(pair, words_of("not int64"))


def test_residuals_too_small_for_doubles_are_left_open() -> None:
    """Half of the mass at place 0, half at 3; the word 3/4 is far from all thresholds."""
    word = np.uint32(3 << 30)
    for total, settled in ((2.0**-23, True), (2.0**-24, True), (2.0**-24 * (1 - 2.0**-50), False), (2.0**-30, False), (0.0, False)):
        sums = np.array([total / 2, total / 2, total / 2, total])
        found = compiled.locate_residual(word, np.int64(0), np.int64(3), sums, 2.0**-40)
        assert found[1] == settled
        assert found[0] == 3 or not settled


def test_the_band_of_a_residual_grows_as_it_shrinks() -> None:
    """A total of 2^-20 leaves 2^-45 / 2^-20 = 2^-25 of the unit interval in doubt, 128 words on each side of a threshold."""
    for total, doubt in ((1.0, 1), (2.0**-20, 128), (2.0**-22, 512)):
        sums = np.array([total / 2, total])
        for distance, settled in ((doubt + 2, True), (doubt - 1, False)):
            for word, place in (((1 << 31) + distance, 1), ((1 << 31) - 1 - distance, 0)):
                found = compiled.locate_residual(np.uint32(word), np.int64(0), np.int64(1), sums, 2.0**-40)
                assert found[1] == (settled if distance else False)
                assert found[0] == place or not settled


def test_a_coin_within_the_band_of_the_ratio_is_left_open() -> None:
    """p and q the same shape, q twice as narrow: the coin 2^-12 from q / p is open at a band of 2^-10 and settled at 2^-14."""
    rate, square = 0.25, np.int64(0)
    table = np.exp(-rate * np.arange(400))

    def law(steps: int) -> tuple[object, ...]:
        line, sums = np.array([[0], [steps]]), np.zeros((2, 1000))
        nothing = np.int64(0)
        return compiled.law_of(np.int64(1), line, square, nothing, nothing, -compiled.FAR, compiled.FAR, 0, rate, table, sums)  # type: ignore[no-any-return]

    p, q, t, shift = law(1), law(2), np.int64(6), np.int64(0)
    ratio = compiled.mass_at(t, q, 1, square, 0, rate, table) / compiled.mass_at(t, p, 1, square, 0, rate, table)
    assert ratio < 0.9
    residual = np.empty(4000)
    for offset, verdict in ((-(2.0**-12), True), (2.0**-12, False)):
        coin = np.uint32((ratio + offset) * 2**32)
        for band, settled in ((2.0**-10, False), (2.0**-14, True)):
            found = compiled.pair_maximally(t, coin, np.uint32(77777777), p, q, shift, 1, square, 0, rate, table, residual, band)
            assert found[1] == settled
            assert (found[0] == t) == verdict or not settled


def test_pairs_so_far_apart_that_heights_leave_64_bits_are_left_open() -> None:
    line, sums, zero = np.array([[0], [1 << 28]]), np.zeros((2, 1000)), np.int64(0)
    table = np.exp(-np.arange(40.0))
    law = compiled.law_of(np.int64(1), line, zero, zero, zero, -compiled.FAR, compiled.FAR, 0, 1.0, table, sums)
    assert law[10] == 2.0**32
    coin, word, residual = np.uint32(1 << 30), np.uint32(1 << 30), np.empty(4000)
    for shift, settled in ((0, True), (1 << 31, False), (1 << 33, False), (1 << 36, False)):
        found = compiled.pair_maximally(zero, coin, word, law, law, np.int64(shift), 1, zero, 0, 1.0, table, residual, 2.0**-40)
        assert found[1] == settled
