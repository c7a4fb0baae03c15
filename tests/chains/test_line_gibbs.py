"""Line Gibbs: exact stationarity in fractions, the step's law on enumerated words, and compiled loops equal to repeated steps."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from holdfast.chains import _line_compiled as compiled
from holdfast.chains import line as line_module
from holdfast.chains.line import Line, draw_point
from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.moves import ListedMoves, Move, Moves, Swaps
from holdfast.chains.protocol import Info, State
from holdfast.chains.target import ChainTarget, Decay, EnergyKind
from holdfast.chains.words_in_steps import CHUNK_WORDS
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.table import certified_thresholds
from holdfast.lattices.lattice import Lattice
from holdfast.randomness import NoiseKey
from holdfast.randomness.words import Words
from holdfast.research.chains.lattices import line_gibbs_on
from holdfast.testing import ListedWords, all_words, check_fit_categories, chi_square_p_value
from tests.chains.lines import dense, every_move, line_through

from .fibres import check_stationary, enumerate_fibre
from .test_moves import VENN
from .transitions import transitions

BASE = Fraction(2, 3)
VENN_BASIS = ListedMoves(Lattice(VENN).basis.T)
STEEP = ListedMoves(np.array([[1, -1, 0], [0, 1, -1], [1, 1, -2], [-3, 1, 2]]))
"""Moves whose entries do not divide the bounds evenly."""


def rational(kind: EnergyKind, cells: int, bound: int) -> ChainTarget:
    return ChainTarget(Decay(kind, Fraction(1), BASE), cells).within(lower=[-bound] * cells, upper=[bound + 1] * cells)


def words_of(name: str) -> Words:
    return NoiseKey.for_tests(name).stream("words")


STATIONARY: list[tuple[Moves, ChainTarget]] = [
    (Swaps((2, 2)), rational("absolute", 4, 3)),
    (Swaps((2, 3)), rational("squares", 6, 2)),
    (Swaps((2, 3)), rational("absolute", 6, 2)),
    (Swaps((3, 3)), rational("absolute", 9, 1)),
    (Swaps((3,)), rational("absolute", 3, 3)),
    (Swaps((4,), np.array([1, -1, 1, -1])), rational("squares", 4, 2)),
    (VENN_BASIS, rational("absolute", 7, 1)),
    (VENN_BASIS, rational("squares", 7, 1)),
    (STEEP, rational("absolute", 3, 2)),
]


@pytest.mark.parametrize("case", range(len(STATIONARY)))
def test_the_target_is_stationary_as_fractions(case: int) -> None:
    moves, target = STATIONARY[case]
    kernel = LineGibbs(target, moves)
    assert target.lower is not None
    assert target.upper is not None
    fibre = enumerate_fibre(moves, target.lower, target.upper)
    assert len(fibre) > 5
    check_stationary(kernel, fibre, target)


def test_a_kernel_with_a_wrong_law_is_caught() -> None:
    moves, target = STATIONARY[0]
    fibre = enumerate_fibre(moves, target.lower, target.upper)  # type: ignore[arg-type]
    other = ChainTarget(Decay("absolute", Fraction(1), Fraction(667, 1000)), 4).within(target.lower, target.upper)
    with pytest.raises(AssertionError):
        check_stationary(LineGibbs(other, moves), fibre, target)


def test_a_step_has_the_stated_law_over_all_words() -> None:
    """Two moves picked by one bit, t by nine bits of its word: every probability is bracketed by counting words."""
    moves = ListedMoves(np.array([[1, -1, 0], [1, 1, -2]]))
    kernel = LineGibbs(rational("absolute", 3, 3), moves)
    state = np.array([1, 1, -2])
    law = transitions(kernel, state)
    settled: Counter[tuple[int, ...]] = Counter()
    reach: Counter[tuple[int, ...]] = Counter()
    for move in (0x40000000, 0xC0000000):
        for row in all_words(9, 1, shift=23):
            found = {
                tuple(kernel.step(state, ListedWords([move, int(row[0]) | low], default_extra=extra))[0].tolist())
                for low, extra in ((0, 0), ((1 << 23) - 1, 2**32 - 2))
            }
            settled.update(found if len(found) == 1 else ())
            reach.update(found)
    assert settled.keys() | reach.keys() <= law.keys()
    assert settled.total() > 950
    for after, mass in law.items():
        # a cell of the word may hold several thresholds: outcomes between its two ends are not seen
        assert Fraction(settled[after], 1024) <= mass
        assert mass <= Fraction(reach[after], 1024) or mass < Fraction(1, 512)


KERNELS: dict[str, LineGibbs] = {
    "swaps": LineGibbs(ChainTarget.laplace(12, "1/4"), Swaps((3, 4))),
    "swaps, long axis": LineGibbs(ChainTarget.laplace(2 * 130, "1/4"), Swaps((2, 130))),
    "pairs": LineGibbs(ChainTarget.laplace(6, "3/4"), Swaps((6,))),
    "signed pairs": LineGibbs(ChainTarget.laplace(4, 1), Swaps((4,), np.array([1, -1, -1, 1]))),
    "three-way": LineGibbs(ChainTarget.laplace(12, "1/8"), Swaps((2, 3, 2))),
    "swaps, bounds": LineGibbs(ChainTarget.laplace(9, "1/2").within(lower=[-1] * 9, upper=[3] * 9), Swaps((3, 3))),
    "swaps, lower bounds": LineGibbs(ChainTarget.laplace(9, "1/5").within(lower=[-2] * 9), Swaps((3, 3))),
    "basis": LineGibbs(ChainTarget.laplace(7, "2/3"), VENN_BASIS),
    "squares, basis": LineGibbs(ChainTarget(Decay("squares", Fraction(1, 7)), 7), VENN_BASIS),
    "gaussian": LineGibbs(ChainTarget.gaussian(9, 3), Swaps((3, 3))),
    "gaussian, basis": LineGibbs(ChainTarget.gaussian(7, 3).within(upper=[2] * 7), VENN_BASIS),
    "norm": LineGibbs(ChainTarget.laplace(6, "1/2", "l2"), Swaps((2, 3))),
    "norm, basis": LineGibbs(ChainTarget.laplace(7, "1/2", "l2"), VENN_BASIS),
    "rational": LineGibbs(rational("absolute", 9, 3), Swaps((3, 3))),
    "steep moves, bounds": LineGibbs(ChainTarget.laplace(3, "1/2").within([-2] * 3, [3] * 3), STEEP),
}


def stepped(kernel: LineGibbs, steps: int, words: Words) -> list[State]:
    states = [kernel.start(words)]
    for _ in range(steps):
        states.append(kernel.step(states[-1], words)[0])
    return states


@pytest.mark.ordinary("swaps]", "bounds", "basis", "gaussian", "norm]", "rational")
@pytest.mark.parametrize("name", KERNELS)
def test_run_equals_repeated_steps_whatever_the_band(name: str) -> None:
    kernel, steps = KERNELS[name], 160
    by_step = words_of(name)
    states = stepped(kernel, steps, by_step)
    assert len({tuple(z) for z in states}) > (10 if name == "steep moves, bounds" else 20)
    for band in (2.0**-40, 2.0**-20, 2.0**-4):
        by_run = words_of(name)
        found, info = LineGibbs(kernel.target, kernel.moves, band).run(states[0], steps, by_run)
        assert (found == states[-1]).all()
        assert info == (steps, steps)
        assert by_run.position == by_step.position


@pytest.mark.parametrize("name", KERNELS)
def test_long_runs_do_not_depend_on_how_they_are_cut_nor_on_the_band(name: str) -> None:
    kernel = KERNELS[name]
    words = words_of(name)
    whole, _ = kernel.run(kernel.start(words), 3000, words)
    words = words_of(name)
    part, _ = kernel.run(kernel.start(words), 1, words)
    part, _ = kernel.run(part, 1999, words)
    part, record = kernel.trace(part, 100, 10, words)
    assert (part == whole).all()
    assert record[-1].tolist() == [kernel.target.energy(whole), whole[0], whole[kernel.quadrant].sum()]
    words = words_of(name)
    wider, _ = LineGibbs(kernel.target, kernel.moves, 2.0**-16).run(kernel.start(words), 3000, words)
    assert (wider == whole).all()


@pytest.mark.parametrize("band", [2.0**-40, 2.0**-3])
@pytest.mark.parametrize("name", ["swaps", "squares, basis"])
def test_a_trace_notes_every_state(name: str, band: float) -> None:
    kernel = LineGibbs(KERNELS[name].target, KERNELS[name].moves, band)
    states = stepped(kernel, 12, words_of(name))
    _, record = kernel.trace(states[0], 12, 1, words_of(name))
    assert record.tolist() == [[kernel.target.energy(z), z[0], z[kernel.quadrant].sum()] for z in states[1:]]
    _, record = kernel.trace(states[0], 4, 3, words_of(name))
    assert record.tolist() == [[kernel.target.energy(z), z[0], z[kernel.quadrant].sum()] for z in states[3::3]]


def middle_of_pick(kernel: LineGibbs) -> list[int]:
    """Words that pick the same move, far from any border."""
    if isinstance(kernel.moves, ListedMoves):
        return [(1 << 31) // len(kernel.moves.vectors)]
    sizes = [s for n in kernel.moves.shape for s in ([n * (n - 1)] if n <= 128 else [n, n - 1])]
    return [((2 * (s // 2) + 1) << 31) // s for s in sizes]


@pytest.mark.ordinary("swaps]", "bounds", "basis", "gaussian", "norm]", "rational")
@pytest.mark.parametrize("name", KERNELS)
def test_words_on_both_sides_of_every_threshold(name: str) -> None:
    """One run of one step for the words T - 1, T, T + 1 of every threshold of a line: doubles decide all but T, rightly."""
    kernel = KERNELS[name]
    words = words_of(name)
    state, _ = kernel.run(kernel.start(words), 30, words)
    picks = middle_of_pick(kernel)
    move = kernel.moves.pick(ListedWords(picks))
    thresholds = certified_thresholds(kernel.line(state, move), 32)
    padding = np.zeros(CHUNK_WORDS, dtype=np.uint32)
    steps = np.unique([min(max(T + side, 0), 2**32 - 1) for T in thresholds.values for side in (-1, 0, 1)])
    for word in steps[:: max(1, len(steps) // 60)]:
        for extra in (1, 2**32 - 2):
            listed = np.concatenate([np.array([*picks, word], dtype=np.uint32), padding])
            slow, _ = kernel.step(state, ListedWords(listed, default_extra=extra))
            fast, _ = kernel.run(state, 1, ListedWords(listed, default_extra=extra))
            assert (slow == fast).all()


@pytest.mark.parametrize("name", ["swaps", "swaps, long axis", "pairs", "three-way", "norm, basis"])
def test_words_on_both_sides_of_every_border_of_two_moves(name: str) -> None:
    kernel = KERNELS[name]
    words = words_of(name)
    state, _ = kernel.run(kernel.start(words), 20, words)
    picks = middle_of_pick(kernel)
    padding = np.zeros(CHUNK_WORDS, dtype=np.uint32)
    choices = len(kernel.moves.vectors) if isinstance(kernel.moves, ListedMoves) else kernel.moves.shape[-1]
    if isinstance(kernel.moves, Swaps):
        choices = choices * (choices - 1) if choices <= 128 else choices - 1
    for border in range(1, choices, max(1, choices // 10)):
        for side in (-1, 0, 1):
            for extra in (0, 2**32 - 1):
                chosen = [*picks[:-1], (border << 32) // choices + side, 0x23456789]
                listed = np.concatenate([np.array(chosen, dtype=np.uint32), padding])
                slow, _ = kernel.step(state, ListedWords(listed, default_extra=extra))
                fast, _ = kernel.run(state, 1, ListedWords(listed, default_extra=extra))
                assert (slow == fast).all()


def test_the_fast_loops_place_of_a_word_is_the_inverse_distribution_function() -> None:
    """`draw_flat` against balls, for breakpoints near and far, at several rates."""
    rng = np.random.default_rng(20)
    for rate in (Fraction(1, 4), Fraction(3, 2), Fraction(9)):
        kernel = LineGibbs(ChainTarget.laplace(4, rate), Swaps((2, 2)))
        q, _, inner, outer = kernel.powers
        constants = compiled.constants_of(q, inner, outer, float(rate))
        room = (1 << 20, 1 << 31)
        for spread in (0, 1, 5, 2000):
            z = rng.integers(-spread, spread + 1, 4)
            move = Move(np.arange(4), np.array([1, -1, -1, 1]))
            b = sorted([-z[0], z[1], z[2], -z[3]])
            for word in rng.integers(0, 1 << 32, 5 if spread > 100 else 25).tolist():
                t, settled = compiled.draw_flat(np.uint32(word), *b, *kernel.powers, *room, constants, 2.0**-40)
                assert settled
                assert t == draw_point(kernel.line(z, move), ListedWords([word]))


@pytest.mark.parametrize("name", KERNELS)
def test_the_sparse_line_is_the_line_through_the_table(name: str) -> None:
    kernel = KERNELS[name]
    words = words_of(name)
    state, _ = kernel.run(kernel.start(words), 30, words)
    for _, move in zip(range(5), every_move(kernel.moves), strict=False):
        ours, plain = kernel.line(state, move), line_through(kernel.target, state, dense(move, kernel.target.cells))
        assert (ours.first, ours.last) == (plain.first, plain.last)
        assert [ours.energy(t) for t in range(-5, 6)] == [plain.energy(t) for t in range(-5, 6)]


def one_step_law(kernel: LineGibbs, state: State) -> dict[tuple[int, ...], float]:
    """In doubles, for targets that have no fractions; within bounds."""
    moves = every_move(kernel.moves)
    law: dict[tuple[int, ...], float] = {}
    for move in moves:
        line = kernel.line(state, move)
        points = range(line.first or 0, (line.last or 0) + 1)
        energy = {t: kernel.target.energy(state + t * dense(move, kernel.target.cells)) for t in points}
        raw = {t: math.exp(-float(kernel.target.decay.rate) * math.sqrt(e)) for t, e in energy.items()}
        for t, w in raw.items():
            after = tuple((state + t * dense(move, kernel.target.cells)).tolist())
            law[after] = law.get(after, 0.0) + w / sum(raw.values()) / len(moves)
    return law


def test_one_step_fits_its_law_for_the_norm() -> None:
    kernel = LineGibbs(ChainTarget.laplace(4, "1/2", "l2").within(lower=[-3] * 4, upper=[4] * 4), Swaps((4,)))
    state = np.array([2, -1, -1, 0])
    words = words_of("fit of the norm")
    n = 16_000
    counts: Counter[tuple[int, ...]] = Counter(tuple(kernel.run(state, 1, words)[0].tolist()) for _ in range(n))
    law = one_step_law(kernel, state)
    check_fit_categories(counts, law, name="line_gibbs: one step under an l2 norm")
    wrong = one_step_law(LineGibbs(ChainTarget.laplace(4, "2/5", "l2").within(lower=[-3] * 4, upper=[4] * 4), Swaps((4,))), state)
    observed = [counts[after] for after in law]
    assert chi_square_p_value(observed, [wrong[after] for after in law], n) < 1e-9


def test_moments_of_a_small_grid() -> None:
    """4 x 4 at epsilon 1/4: mean size and variance as known from exact draws (35.0 and 8.80), here over 2 * 10^5 sweeps.

    The autocorrelation time is some 4 sweeps, so the standard errors are about .05 and .06: the bands are more than 8 of them.
    """
    kernel = LineGibbs(ChainTarget.laplace(16, "1/4"), Swaps((4, 4)))
    words = words_of("moments")
    _, record = kernel.trace(kernel.start(words), 200_000, kernel.steps_per_sweep, words)
    assert abs(record[:, 0].mean() - 35.0) < 0.4
    assert abs(record[:, 1].var() - 8.80) < 0.5


def test_a_kernel_survives_a_pickle() -> None:
    kernel = KERNELS["basis"]
    back = pickle.loads(pickle.dumps(kernel))
    a, b = words_of("pickle"), words_of("pickle")
    assert (back.run(back.start(a), 100, a)[0] == kernel.run(kernel.start(b), 100, b)[0]).all()
    assert kernel.name == "line_gibbs"
    assert kernel.steps_per_sweep == 4


def test_refusals() -> None:
    with pytest.raises(InvalidParameter, match="They must be the same"):
        LineGibbs(ChainTarget.laplace(5, 1), Swaps((2, 3)))
    with pytest.raises(RequestTooLarge, match="entries of the moves"):
        LineGibbs(ChainTarget.laplace(2, 1), ListedMoves(np.array([[1 << 30, -(1 << 30)]])))
    kernel = KERNELS["swaps, bounds"]
    with pytest.raises(InvalidParameter, match="outside the target's bounds"):
        kernel.run(np.full(9, 9), 1, words_of("refusals"))
    with pytest.raises(InvalidParameter, match="one integer for each"):
        kernel.run(np.zeros(8, dtype=np.int64), 1, words_of("refusals 2"))
    with pytest.raises(InvalidParameter, match="records >= 0"):
        kernel.trace(np.zeros(9, dtype=np.int64), 1, 0, words_of("refusals 3"))
    for state in (np.zeros(9), np.zeros(9, dtype=np.int32), [0] * 9):
        for call in (kernel.step, lambda z, words: kernel.run(z, 1, words), lambda z, words: kernel.trace(z, 1, 1, words)):
            with pytest.raises(InvalidParameter, match="array of int64"):
                call(state, words_of("refusals 5"))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="outside the target's bounds"):
        kernel.step(np.full(9, 9), words_of("refusals 6"))
    for band in (2.0**-41, 0.0, math.nan):
        with pytest.raises(InvalidParameter, match=r"band must be 2\^-40 or more"):
            LineGibbs(kernel.target, kernel.moves, band)
    far = LineGibbs(ChainTarget.laplace(2, 1), Swaps((2,)))
    with pytest.raises(RequestTooLarge, match="less noise"):
        far.run(np.array([1 << 31, -(1 << 31)]), 1, words_of("refusals 4"))


def test_a_chain_of_the_whole_lattice_reaches_it() -> None:
    kernel = line_gibbs_on(ChainTarget.laplace(7, 1), Lattice(VENN))
    words = words_of("whole lattice")
    z, _ = kernel.run(kernel.start(words), 1000, words)
    assert not (VENN @ z).any()


@pytest.mark.parametrize("name", KERNELS)
def test_a_band_of_one_leaves_every_step_to_the_exact_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that did not heed its band would give the same states, rightly, and make fewer exact steps."""
    plain, calls = LineGibbs.step, []

    def counted(self: LineGibbs, state: State, words: Words) -> tuple[State, Info]:
        calls.append(1)
        return plain(self, state, words)

    monkeypatch.setattr(LineGibbs, "step", counted)
    kernel = LineGibbs(KERNELS[name].target, KERNELS[name].moves, 1.0)
    words = words_of(name)
    kernel.run(kernel.start(words), 10, words)
    assert len(calls) == 10
    words = words_of(name)
    KERNELS[name].run(kernel.start(words), 10, words)
    assert len(calls) == 10


@pytest.mark.parametrize(
    "decay",
    [
        Decay("absolute", Fraction(1, 10**30)),
        Decay("norm", Fraction(1, 2**40)),
        Decay("absolute", Fraction(10**400)),
        Decay("squares", Fraction(1, 10**400)),
        Decay("squares", Fraction(1), 1 - Fraction(1, 10**20)),
    ],
)
def test_rates_that_doubles_cannot_hold_are_refused(decay: Decay) -> None:
    with pytest.raises(RequestTooLarge, match="rate is too far from one"):
        LineGibbs(ChainTarget(decay, 2), ListedMoves(np.array([[1 << 20, -(1 << 20)]])))
    with pytest.raises(RequestTooLarge, match="rate is too far from one"):
        LineGibbs(ChainTarget(decay, 2), Swaps((2,)))


def test_a_base_near_zero_makes_a_chain_that_stays() -> None:
    kernel = LineGibbs(ChainTarget(Decay("absolute", Fraction(1), Fraction(1, 10**400)), 2), Swaps((2,)))
    assert kernel.run(np.zeros(2, dtype=np.int64), 50, words_of("stays"))[0].tolist() == [0, 0]


def window_of(line: Line, length: int) -> tuple[int, int, int, np.ndarray, float]:
    """(mode, right, left, sums, total) of the compiled loop's window."""
    kind, rate = {"absolute": 0, "squares": 1, "norm": 2}[line.decay.kind], line.decay.rate_double
    entries = np.array([line.values, line.steps], dtype=np.int64)
    count = len(line.values) if kind == 0 else 0
    terms = [] if count else list(zip(line.steps, line.values, strict=True))
    square, cross = sum(s * s for s, _ in terms), sum(s * v for s, v in terms)
    table = np.exp(-rate * np.arange(0 if kind == 2 else 1000))
    sums = np.zeros((2, length))
    energy = np.int64(line.energy(0))
    first, last = -compiled.FAR if line.first is None else line.first, compiled.FAR if line.last is None else line.last
    mode, _, right, left = compiled.fill_window(
        count, entries, np.int64(square), np.int64(cross), energy, np.int64(first), np.int64(last), kind, rate, table, sums
    )
    return mode, right, left, sums, sums[0, right] + sums[1, left]


@pytest.mark.parametrize("rate", [Fraction(1, 4), Fraction(1, 50)])
@pytest.mark.parametrize("kind", ["absolute", "squares", "norm"])
def test_a_window_holds_the_distribution_function_to_45_bits(kind: EnergyKind, rate: Fraction) -> None:
    """Against running sums of balls, everywhere: what the window cuts off included."""
    line = Line(Decay(kind, rate), (2, -1, 5), (1, -1, 2), 0)
    mode, right, left, sums, total = window_of(line, 1 << 13)
    exact = line.fixed_weights(80, 40)
    whole = sum(exact.lows)
    assert 0 < right < 1 << 13
    running, place = 0, exact.first
    for place, low in enumerate(exact.lows, exact.first):
        running += low
        found = compiled.cumulative(place, mode, right, left, sums) if place >= mode - left else 0.0
        assert abs(Fraction(found) / Fraction(total) - Fraction(running, whole)) < Fraction(1, 1 << 45)
    assert place > mode + right


def test_windows_whose_heights_would_leave_64_bits_are_left_open() -> None:
    """Under a root weights fall so slowly that a window goes on for 2^18 points, here of 2^42 i^2 each."""
    from holdfast.chains._picks_compiled import OPEN

    slow = Line(Decay("norm", Fraction(1, 1 << 35)), (0, 0, 0, 0), (1 << 20,) * 4, 0)
    _, right, _, sums, _ = window_of(slow, 1 << 18)
    assert right == OPEN
    assert sums[0, 511] > 500
    assert not sums[0, 513:].any()  # 2^42 512^2 is the room there is
    quick = Line(Decay("norm", Fraction(1, 1 << 20)), (0, 0, 0, 0), (1 << 20,) * 4, 0)
    assert window_of(quick, 1 << 18)[1] > 0
    # on the way to the mode |t 2^51| would be looked at for t = 2^29 and more
    steep = Line(Decay("absolute", Fraction(1)), (1 << 30, 0), (1, 1 << 51), 0)
    assert window_of(steep, 1 << 10)[1] == OPEN
    assert compiled.weight(np.int64(-1), np.int64(5), 0, 0.5, np.ones(4)) == pytest.approx(math.exp(0.5))


def refusal(kernel: LineGibbs, state: State, words: list[int], steps: int | None) -> str:
    """What so many steps of a run (None: one exact step) are refused with; nothing if they are made."""
    try:
        if steps is None:
            kernel.step(state, ListedWords(words))
        else:
            kernel.run(state, steps, ListedWords(words))
    except RequestTooLarge as error:
        return str(error)
    return ""


@pytest.mark.parametrize("shape", [(2,), (2, 2)])
def test_what_is_too_long_to_sum_is_refused_whatever_the_band(shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "LONGEST_LINE", 400)
    target, moves = ChainTarget.laplace(2 ** len(shape), 1), Swaps(shape)
    words = [*[1 << 31] * moves.words_per_pick, 0x70000000, *[0] * CHUNK_WORDS]
    verdicts = []
    for length in (300, 310, 317, 319, 330, 350, 380, 399, 400, 410, 500):
        # breakpoints at -length / 2 and length / 2, or there twice: weights are even between them
        low, high = length // 2, length - length // 2
        state = np.array([low, high] if len(shape) == 1 else [low, high, high, low])
        found = [refusal(LineGibbs(target, moves, band), state, words, 1) for band in (2.0**-40, 1.0)]
        assert found[0] == found[1] == refusal(LineGibbs(target, moves), state, words, None)
        verdicts.append("further than" in found[0])
    assert verdicts == sorted(verdicts)
    assert set(verdicts) == {False, True}


def test_cells_that_leave_the_limit_are_refused_at_that_very_step() -> None:
    """The second step would bring them back: a look at the end of the run would not see it."""
    moves = Swaps((2, 2))
    kernel = LineGibbs(ChainTarget.laplace(4, "1/8"), moves)
    picks = [1 << 31] * moves.words_per_pick
    u = dense(moves.pick(ListedWords(picks)), 4)
    # cell 0 at the edge, the other breakpoints together 6 steps further out: t takes the three cells to about zero
    state = -6 * u[0] * u
    state[0] = kernel.limit - 1
    back = 1 << 26 if u[0] > 0 else (1 << 32) - (1 << 26)
    words = [*picks, 1 << 31, *picks, back, *[0] * CHUNK_WORDS]
    for steps in (None, 1, 2):
        assert "Use less noise" in refusal(kernel, state, words, steps)
    nearer = state.copy()
    nearer[0] -= 1000
    after, _ = kernel.run(nearer, 1, ListedWords(words))
    last, _ = kernel.run(nearer, 2, ListedWords(words))
    assert last[0] < nearer[0] < after[0]


def test_moves_far_beyond_the_limit_are_refused_before_they_are_made() -> None:
    kernel = LineGibbs(ChainTarget.laplace(2, 1), ListedMoves(np.array([[1 << 22, -(1 << 22)]])))
    move = every_move(kernel.moves)[0]
    for t in (1 << 42, 1 << 70, -(1 << 42)):  # 2^42 2^22 is 0 in 64 bits
        with pytest.raises(RequestTooLarge, match="less noise"):
            kernel.move_state(np.zeros(2, dtype=np.int64), move, t)


@pytest.mark.parametrize("name", ["steep moves, bounds", "swaps, bounds", "swaps, lower bounds", "gaussian, basis"])
def test_the_compiled_ends_are_those_of_the_line(name: str) -> None:
    """All moves of forty states, against a search over all t."""
    kernel = KERNELS[name]
    target = kernel.target
    lower, upper = kernel.target_arrays[:2]
    for state in stepped(kernel, 40, words_of("ends " + name)):
        for _, move in zip(range(12), every_move(kernel.moves), strict=False):
            found = compiled.ends(len(move.cells), move.cells, move.coefficients, state, lower, upper)
            allowed = [t for t in range(-30, 31) if target.allows(state + t * dense(move, target.cells))]
            assert (max(found[0], -30), min(found[1], 30)) == (allowed[0], allowed[-1])
            line = kernel.line(state, move)
            assert (line.first in (None, found[0]), line.last in (None, found[1])) == (True, True)
