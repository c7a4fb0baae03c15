"""Metropolis along a basis: stationary in fractions, the compiled loop equal to the exact step, words on thresholds, laws, bad input."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.chains.metropolis import Metropolis
from holdfast.chains.protocol import State
from holdfast.chains.target import ChainTarget, Decay
from holdfast.errors import InexactParameter, InvalidParameter, RequestTooLarge
from holdfast.exact import DiscreteLaplace
from holdfast.exact.table import TableSampler
from holdfast.lattices import General, Grid, Lattice, OneSum, algebra
from holdfast.randomness import NoiseKey
from holdfast.research.chains.lattices import metropolis_on
from holdfast.testing import ListedWords, bracket_inverse_cdf, check_brackets, check_fit, check_fit_categories, chi_square_p_value, fits
from tests.examples import examples

from .fibres import check_stationary, enumerate_fibre
from .rational import RationalJumps, RationalMetropolis
from .transitions import energies, jump_mass, transitions

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
GENERAL = np.array([[1, 1, 1, 0, 0], [0, 0, 1, 1, 2]])
GENERAL_BLOCK = General(((1, 1, 1, 0, 0), (0, 0, 1, 1, 2)), (1, 1, 1, 1, 1))
BLOCKS = {"2 x 3": Grid((2, 3)), "sum of 3": OneSum(3), "general": GENERAL_BLOCK}
TOP = 1 << 32
PAIR = np.array([[1], [-1]])


def margins(rows: int, columns: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.vstack([np.kron(np.eye(rows, dtype=np.int64), np.ones(columns)), np.tile(np.eye(columns), rows)]).astype(np.int64)


def small(block: str, kind: Any = "absolute", base: Fraction = HALF, reach: int = 1) -> RationalMetropolis:
    """A kernel whose fibre is small and whose probabilities are fractions."""
    shape = BLOCKS[block]
    lower, upper = np.full(shape.size, -reach), np.full(shape.size, reach + 1)
    kernel = RationalMetropolis.of_shape(ChainTarget(Decay(kind, Fraction(1), base), shape.size), shape)
    return replace(kernel, target=kernel.target.within(lower, upper), jump_base=THIRD)


def four_by_four(norm: Any = "l1", **changes: Any) -> Metropolis:
    return replace(metropolis_on(ChainTarget.laplace(16, "1/4", norm), Lattice(margins(4, 4))), **changes)


KERNELS = {
    "l1": four_by_four(),
    "l2": four_by_four("l2"),
    "Gaussian": Metropolis.of_shape(ChainTarget.gaussian(6, 4), BLOCKS["2 x 3"], "1/2"),
    "bounded": small("general", reach=3),
    "bounded below": Metropolis.of_shape(ChainTarget.laplace(6, "1/2").within(lower=np.full(6, -2)), BLOCKS["2 x 3"]),
    "bounded above": Metropolis(ChainTarget.laplace(3, "1/2").within(upper=[9, 1, 2]), np.array([[1, 0], [-1, 1], [0, -1]])),
    "norm": Metropolis(ChainTarget.laplace(3, "1/2", "l2"), np.array([[1, 0], [-1, 1], [0, -1]])),
}


def extra_words(value: int) -> Callable[[int, int], list[int]]:
    """The same extra word everywhere, but not for ever: a uniform number whose bits are all zero or all one would never be settled."""
    return lambda index, depth: [value if depth == 0 else 0x9E3779B9] * 4


def by_steps(kernel: Metropolis, state: State, steps: int, words: Any) -> tuple[list[State], int]:
    states, accepted = [], 0
    for _ in range(steps):
        state, info = kernel.step(state, words)
        states.append(state)
        accepted += info.accepted
    return states, accepted


# The law, in fractions


@pytest.mark.parametrize("kind", ["absolute", "squares"])
@pytest.mark.parametrize("block", BLOCKS)
def test_the_target_is_stationary(block: str, kind: Any) -> None:
    kernel = small(block, kind)
    states = sorted(energies(kernel), key=lambda v: tuple(kernel.basis @ np.array(v)))
    fibre = [tuple((kernel.basis @ np.array(v)).tolist()) for v in states]
    assert kernel.target.lower is not None
    assert kernel.target.upper is not None
    assert fibre == enumerate_fibre(kernel.basis.T, kernel.target.lower, kernel.target.upper)
    check_stationary(kernel, fibre, kernel.target, states)


def test_one_transition_by_hand() -> None:
    """One sum over two cells, z = (v, -v), -1 <= v <= 1, weight 2^-|z|_1 = 4^-|v|, jumps 3^-|e| / 2."""
    target = ChainTarget(Decay("absolute", Fraction(1), HALF), 2).within([-1, -1], [1, 1])
    kernel = RationalMetropolis(target, PAIR, jump_base=THIRD)
    assert transitions(kernel, np.array([0])) == {(-1,): Fraction(1, 24), (0,): Fraction(11, 12), (1,): Fraction(1, 24)}
    assert transitions(kernel, np.array([1])) == {(-1,): Fraction(1, 18), (0,): Fraction(1, 6), (1,): Fraction(7, 9)}


def test_jumps_have_their_law() -> None:
    """All words of 16 bits bracket every probability of the rational jump law; the other is the discrete Laplace law, tested as such."""
    sampler, kernel = TableSampler(RationalJumps(THIRD), word_bits=16), small("sum of 3")
    words = np.arange(1 << 16, dtype=np.uint32)
    found = np.searchsorted(sampler.high, words, side="left")
    answers = [None if is_open else sampler.first + int(k) for k, is_open in zip(found, sampler.low[found] <= words, strict=True)]
    check_brackets(*bracket_inverse_cdf(answers), lambda e: (jump_mass(kernel, e), jump_mass(kernel, e)))
    assert sum(jump_mass(kernel, e) for e in range(-40, 41)) == 1 - 2 * THIRD**41 / (1 + THIRD)
    assert Metropolis(ChainTarget.laplace(2, 1), PAIR, Fraction(2)).sampler is DiscreteLaplace(HALF).sampler()


@pytest.mark.parametrize("run", ["step", "run"])
def test_a_step_has_the_stated_law(run: str) -> None:
    kernel = small("sum of 3")
    state = np.array([1, 0])
    law = transitions(kernel, state)
    counts: Counter[tuple[int, ...]] = Counter()
    with NoiseKey.for_tests("metropolis one step").stream(run) as words:
        for _ in range(8000):
            after, _ = kernel.step(state, words) if run == "step" else kernel.run(state, 1, words)
            counts[tuple(after.tolist())] += 1
    check_fit_categories(counts, law, name=f"one Metropolis step ({run})")
    wrong = transitions(replace(kernel, jump_base=HALF), state)
    assert chi_square_p_value([counts[v] for v in wrong], [float(p) for p in wrong.values()], 8000) < 1e-9


# The compiled loop


@pytest.mark.parametrize("name", KERNELS)
def test_the_loop_makes_the_same_steps(name: str) -> None:
    kernel, key = KERNELS[name], NoiseKey.for_tests("same steps " + name)
    with key.stream("a") as words:
        state = kernel.start(words)
        begin = words.position
        slow, accepted = by_steps(kernel, state, 300, words)
        end = words.position
        assert end - begin == 300 * (kernel.dimension + 1)
    with NoiseKey.for_tests("same steps " + name).stream("a") as words:
        fast, info = kernel.run(kernel.start(words), 120, words)
        assert np.array_equal(fast, slow[119])
        fast, more = kernel.run(fast, 180, words)
        assert np.array_equal(fast, slow[-1])
        assert (info.steps, more.steps, info.accepted + more.accepted, words.position) == (120, 180, accepted, end)
    assert len({tuple(s) for s in slow}) > 10


@pytest.mark.parametrize("name", ["l1", "l2", "bounded"])
@pytest.mark.parametrize("band", [2.0**-4, 2.0**-20, 4.0])
def test_the_band_changes_nothing(name: str, band: float) -> None:
    kernel, steps = KERNELS[name], 400
    results = []
    for one in (kernel, replace(kernel, band=band)):
        with NoiseKey.for_tests("metropolis band").stream(name) as words:
            state, info = one.run(one.start(words), steps, words)
            results.append((state.tolist(), info, words.position))
    assert results[0] == results[1]


@pytest.mark.parametrize(("band", "least", "most"), [(2.0**-40, 0, 0), (1.0, 50, 200)])
def test_the_band_decides_who_accepts(band: float, least: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a band of one every step that raises the energy goes to the balls; with the usual one, none of 200 (but for 200 in 2^31)."""
    calls: list[int] = []
    plain = Metropolis.accepts

    def counted(self: Metropolis, state: State, proposed: State, cell: int, words: Any, index: int) -> bool:
        calls.append(cell)
        return plain(self, state, proposed, cell, words, index)

    monkeypatch.setattr(Metropolis, "accepts", counted)
    kernel = replace(KERNELS["l1"], band=band)
    with NoiseKey.for_tests("who accepts").stream("a") as words:
        kernel.run(kernel.start(words), 200, words)
    assert least <= len(calls) <= most


def test_the_loops_rate_is_right_for_bases_near_one() -> None:
    """-log(1 - x) lies between x and x + x^2; from a double of the base only x's first bits would be left."""
    x = Fraction(1, 3 << 40)
    kernel = Metropolis(ChainTarget(Decay("absolute", Fraction(1), 1 - x), 2), PAIR)
    assert abs(Fraction(kernel.rule.rate) / (x + x * x / 2) - 1) < Fraction(1, 1 << 52)


def test_words_on_thresholds_are_settled_by_their_own_bits() -> None:
    """z = (v, -v), rate 1/4, from v = 3: a jump of +2 raises the energy by 4, so U is compared with exp(-1)."""
    kernel = Metropolis(ChainTarget.laplace(2, "1/4"), PAIR)
    sampler = kernel.sampler
    jump = int(sampler.high[1 - sampler.first] // 2 + sampler.high[2 - sampler.first] // 2)  # well inside the words of a jump of 2
    accept = int(np.exp(-1.0) * TOP)
    rest = [0] * (1 << 15)
    for word, extra, expected in ((accept - 1, 0, 5), (accept, 0, 5), (accept, TOP - 1, 3), (accept + 1, 0, 3)):
        for make in (lambda k, s, w: k.step(s, w), lambda k, s, w: k.run(s, 1, w)):
            words = ListedWords([jump, word, *rest], extra=extra_words(extra))
            after, info = make(kernel, np.array([3]), words)
            assert (after.tolist(), words.position) == ([expected], 2)
            assert info == (1, int(expected == 5))
    border = int(sampler.high[1 - sampler.first])  # the word on the border of the jumps 1 and 2
    for extra, expected in ((0, 4), (TOP - 1, 5)):
        for make in (lambda k, s, w: k.step(s, w), lambda k, s, w: k.run(s, 1, w)):
            words = ListedWords([border, 0, *rest], extra=extra_words(extra))
            assert make(kernel, np.array([3]), words)[0].tolist() == [expected]


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_any_words_give_the_same_steps(data: st.DataObject) -> None:
    """Words near thresholds of jumps, of accept steps, or anywhere."""
    kernel = KERNELS[data.draw(st.sampled_from(["bounded above", "Gaussian", "norm"]))]
    edges = [int(t) for t in kernel.sampler.high] + [0, TOP - 1, int(np.exp(-0.5) * TOP)]
    near = st.builds(lambda t, d: min(max(t + d, 0), TOP - 1), st.sampled_from(edges), st.integers(-1, 1))
    listed = data.draw(st.lists(st.one_of(near, st.integers(0, TOP - 1)), min_size=30, max_size=30))
    extra = extra_words(data.draw(st.sampled_from([0, TOP - 1, 12345])))
    steps = 30 // (kernel.dimension + 1)
    padded = [*listed, *[0] * (1 << 15)]
    start = np.zeros(kernel.dimension, dtype=np.int64)
    slow, accepted = by_steps(kernel, start, steps, ListedWords(padded, extra))
    fast, info = kernel.run(start, steps, ListedWords(padded, extra))
    assert fast.tolist() == slow[-1].tolist()
    assert info == (steps, accepted)


@pytest.mark.parametrize("band", [2.0**-40, 4.0])
def test_a_trace_records_every_so_many_steps(band: float) -> None:
    kernel = replace(KERNELS["bounded above"], band=band)
    with NoiseKey.for_tests("trace").stream("a") as words:
        slow, _ = by_steps(kernel, kernel.start(words), 63, words)
    with NoiseKey.for_tests("trace").stream("a") as words:
        state, record = kernel.trace(kernel.start(words), 9, 7, words)
    assert np.array_equal(state, slow[-1])
    assert record.dtype == np.int64
    for row, after in zip(record.tolist(), slow[6::7], strict=True):
        z = kernel.cells_of(after)
        assert row == [kernel.target.energy(z), z[0], z[:1].sum()]


def test_kernels_travel_to_other_processes() -> None:
    kernel = KERNELS["bounded above"]
    again = pickle.loads(pickle.dumps(kernel))
    results = []
    for one in (kernel, again):
        with NoiseKey.for_tests("pickle").stream("a") as words:
            results.append(one.run(one.start(words), 100, words)[0].tolist())
    assert results[0] == results[1]


# Laws that come out


def one_sum_law(epsilon: float, cells: int) -> dict[int, float]:
    """The law of the first of so many double geometric cells given that they add up to zero."""
    cell = np.exp(-epsilon * np.abs(np.arange(-200, 201)))
    others = np.array([1.0])
    for _ in range(cells - 1):
        others = np.convolve(others, cell)
    middle = len(others) // 2
    weights = cell * others[middle - 200 : middle + 201]
    return {k - 200: float(w) for k, w in enumerate(weights / weights.sum())}


def test_a_long_run_has_the_law_of_the_target() -> None:
    """Three cells with sum zero, epsilon 1/2, one record in 400 steps: many autocorrelation times apart, so as good as independent."""
    kernel = Metropolis.of_shape(ChainTarget.laplace(3, "1/2"), BLOCKS["sum of 3"])
    with NoiseKey.for_tests("metropolis law").stream("a") as words:
        state, _ = kernel.run(kernel.start(words), 5000, words)
        _, record = kernel.trace(state, 12_000, 400, words)
    check_fit(record[:, 1], one_sum_law(0.5, 3), name="Metropolis on one sum")
    assert not fits(record[:, 1], one_sum_law(0.45, 3))


def test_acceptance_at_four_by_four() -> None:
    """Notes give .33; 8 * 10^6 steps gave .3324, with a standard deviation of .0018 for the mean of 200,000: seven of them are .0126."""
    for kernel, as_noted in ((KERNELS["l1"], True), (four_by_four(jump_rate=Fraction(9, 10)), False)):
        with NoiseKey.for_tests("acceptance").stream("a") as words:
            state, _ = kernel.run(kernel.start(words), 20_000, words)
            _, info = kernel.run(state, 200_000, words)
        assert (abs(info.accepted / 200_000 - 0.3324) < 0.0126) == as_noted


def test_starts_are_jumps_and_zero_within_bounds() -> None:
    with NoiseKey.for_tests("starts").stream("a") as words:
        kernel = KERNELS["l1"]
        starts = np.array([kernel.start(words) for _ in range(1000)])
        assert not KERNELS["bounded"].start(words).any()
    law = DiscreteLaplace(1)
    check_fit(starts.ravel(), law.pmf, name="Metropolis starts")
    assert not fits(starts.ravel(), DiscreteLaplace(Fraction(9, 10)).pmf)


# Bases


def test_bases_span_the_lattice() -> None:
    lattice = Lattice(margins(4, 4))
    smith = metropolis_on(ChainTarget.laplace(16, 1), lattice, "3/2")
    neighbours = Metropolis.of_shape(ChainTarget.laplace(16, 1), Grid((4, 4)))
    assert smith.jump_rate == Fraction(3, 2)
    assert not (margins(4, 4) @ smith.basis).any()
    for basis in (smith.basis, neighbours.basis):
        assert algebra.same_lattice(basis, lattice.basis)
    general = Metropolis.of_shape(ChainTarget.laplace(5, 1), GENERAL_BLOCK)
    assert algebra.same_lattice(general.basis, Lattice(GENERAL).basis)
    assert (smith.name, smith.steps_per_sweep, smith.dimension) == ("metropolis", 1, 9)


# Bad input


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (np.array([[1, 2], [-1, -2]]), "independent columns"),
        (np.array([[1], [-1], [0]]), "one row for each of the 2 cells"),
        (np.array([1, -1]), "one row for each"),
        (np.array([[1.0], [-1.0]]), "whole numbers"),
        (np.zeros((2, 0), dtype=np.int64), "nowhere to go"),
        (np.array([[1 << 31], [0]]), "reduced basis"),
    ],
)
def test_a_bad_basis_is_refused(basis: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Metropolis(ChainTarget.laplace(2, 1), basis)


def test_bad_rates_are_refused() -> None:
    target = ChainTarget.laplace(2, 1)
    with pytest.raises(InvalidParameter, match="greater than zero"):
        Metropolis(target, PAIR, Fraction(0))
    with pytest.raises(InexactParameter, match=r"'0\.5'"):
        Metropolis(target, PAIR, 0.5)  # type: ignore[arg-type]
    with pytest.raises(RequestTooLarge, match="by table"):
        Metropolis(target, PAIR, Fraction(1, 10**6))
    with pytest.raises(RequestTooLarge, match="ordinary size"):
        Metropolis(ChainTarget.laplace(2, Fraction(10**380)), PAIR)


@pytest.mark.parametrize("band", [2.0**-41, 0.0, -1.0, float("nan")])
def test_a_band_narrower_than_the_doubles_error_is_refused(band: float) -> None:
    with pytest.raises(InvalidParameter, match="band must be"):
        replace(KERNELS["l1"], band=band)


def test_what_could_leave_64_bits_is_refused() -> None:
    big = 1 << 30
    with pytest.raises(RequestTooLarge, match="64-bit"):
        Metropolis(ChainTarget.gaussian(2, 1), big * PAIR)
    kernel = Metropolis(ChainTarget.gaussian(2, 1), (1 << 18) * PAIR)
    assert 1 << 12 <= kernel.rule.room < 1 << 13
    for act in (kernel.step, lambda s, w: kernel.run(s, 1, w)):
        with pytest.raises(RequestTooLarge, match="went beyond"):
            act(np.array([kernel.rule.room + 1]), ListedWords([0] * 10))
    # A proposal may go too far as well: the loop leaves that step to the exact one, which says so.
    far, up = np.array([kernel.rule.room]), [TOP - 2, 0, *[0] * (1 << 15)]
    for act in (kernel.step, lambda s, w: kernel.run(s, 1, w)):
        with pytest.raises(RequestTooLarge, match="went beyond"):
            act(far, ListedWords(up))


def test_bad_states_and_counts_are_refused() -> None:
    kernel = Metropolis(ChainTarget.laplace(2, 1), PAIR)
    states: list[Any] = [np.array([1, 2]), np.array([0.5]), np.array([1], dtype=np.int32)]
    for state in states:
        for act in (kernel.step, lambda s, w: kernel.run(s, 1, w)):
            with pytest.raises(InvalidParameter, match="1 coordinates of type int64"):
                act(state, ListedWords([]))
    with pytest.raises(InvalidParameter, match="every"):
        kernel.trace(np.array([0]), 1, 0, ListedWords([]))
    with pytest.raises(InvalidParameter):
        kernel.run(np.array([0]), -1, ListedWords([]))
    assert kernel.run(np.array([7]), 0, ListedWords([]))[1] == (0, 0)
    bounded = small("sum of 3")
    for act in (bounded.step, lambda s, w: bounded.run(s, 1, w)):
        with pytest.raises(InvalidParameter, match="within the target's bounds"):
            act(np.array([5, 0]), ListedWords([]))
    with pytest.raises(InvalidParameter, match="nowhere to go"):
        metropolis_on(ChainTarget.laplace(2, 1), Lattice(np.eye(2, dtype=np.int64)))
