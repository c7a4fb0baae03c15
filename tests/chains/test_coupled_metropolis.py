"""Coupled Metropolis chains: overlaps and both margins in fractions, the loop equal to the exact step, chains that meet."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.chains.metropolis import CoupledMetropolis, Metropolis
from holdfast.chains.protocol import CoupledInfo, State, StatePair
from holdfast.chains.target import ChainTarget
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.randomness import NoiseKey
from holdfast.testing import ListedWords, check_fit_categories, chi_square_p_value
from tests.examples import examples

from .fibres import check_margins
from .rational import RationalMetropolis
from .test_metropolis import BLOCKS, HALF, KERNELS, THIRD, TOP, extra_words, small
from .transitions import energies, joint_transitions, overlap, proposal_mass, transitions

TAIL = np.random.default_rng(5).integers(0, TOP, 1 << 16, dtype=np.uint32)
"""What follows chosen words: it lets a redraw end."""


def by_steps(coupled: CoupledMetropolis, pair: StatePair, most: int, words: Any) -> tuple[StatePair, int, bool]:
    made, identical = 0, False
    while made < most and not identical:
        pair, info = coupled.step(pair, words)
        made, identical = made + info.steps, info.identical
    return pair, made, identical


def two_starts(kernel: Metropolis, spread: int = 2) -> StatePair:
    """Two states a few steps apart, within bounds where there are any."""
    if kernel.is_bounded:
        target = kernel.target
        fibre = tuple(energies(kernel)) if target.lower is not None and target.upper is not None and target.cells < 6 else None
        return StatePair(np.zeros(kernel.dimension, dtype=np.int64), np.array(fibre[-1] if fibre else [-1] + [0] * (kernel.dimension - 1)))
    return StatePair(np.zeros(kernel.dimension, dtype=np.int64), np.arange(kernel.dimension) % 3 * spread - 1)


# The law, in fractions


@pytest.mark.parametrize("base", [HALF, THIRD, Fraction(9, 10)])
@pytest.mark.parametrize("shift", [*range(8), -3])
def test_overlap_is_the_sum_of_the_lesser_masses(base: Fraction, shift: int) -> None:
    """Beyond both centres the lesser mass falls by the base at each step, so both tails are geometric series."""
    far = abs(shift) + 3
    inside = sum(base ** max(abs(k), abs(k - shift)) for k in range(-far, far + 1))
    tails = (base ** max(far + 1, abs(far + 1 - shift)) + base ** max(far + 1, abs(-far - 1 - shift))) / (1 - base)
    assert overlap(base, shift) == (1 - base) / (1 + base) * (inside + tails)


@pytest.mark.ordinary("2 x 3", "sum of 3", "general-absolute")
@pytest.mark.parametrize("kind", ["absolute", "squares"])
@pytest.mark.parametrize("block", BLOCKS)
def test_each_chain_moves_by_the_kernels_law(block: str, kind: Any) -> None:
    kernel = small(block, kind)
    fibre = tuple(energies(kernel))
    check_margins(kernel.couple(), fibre, every=1 if len(fibre) < 30 else 37)


def test_the_chains_propose_the_same_as_often_as_possible() -> None:
    """One coordinate, no bound in reach: equal proposals have the overlap as mass, up to what lies outside."""
    target = small("sum of 3").target
    wide = replace(target, cells=2, lower=np.array([-30, -30]), upper=np.array([30, 30]))
    kernel = RationalMetropolis(wide, np.array([[1], [-1]]), jump_base=THIRD)
    for w in (0, 1, 2, 5):
        equal = sum(proposal_mass(kernel, (0,), (w,), (x,), (x,)) for x in range(-30, 31))
        assert 0 <= overlap(THIRD, w) - equal <= THIRD**20


@pytest.mark.ordinary("step")
@pytest.mark.parametrize("run", ["step", "run"])
def test_a_coupled_step_has_the_stated_law(run: str) -> None:
    coupled = small("sum of 3").couple()
    pair, n = StatePair(np.array([1, 0]), np.array([-1, 0])), 8000
    law = joint_transitions(coupled, pair)
    counts: Counter[Any] = Counter()
    with NoiseKey.for_tests("coupled metropolis one step").stream(run) as words:
        for _ in range(n):
            after, _ = coupled.step(pair, words) if run == "step" else coupled.run(pair, 1, words)
            counts[tuple(after.first.tolist()), tuple(after.second.tolist())] += 1
    check_fit_categories(counts, law, name=f"one coupled Metropolis step ({run})")
    # Two uniforms instead of one, or independent proposals, would be seen.
    alone = [transitions(coupled.kernel, state) for state in pair]
    independent = {(x, y): p * q for x, p in alone[0].items() for y, q in alone[1].items()}
    assert chi_square_p_value([counts[v] for v in independent], [float(p) for p in independent.values()], n) < 1e-9


# The compiled loop


@pytest.mark.parametrize("band", [2.0**-40, 2.0**-4, 4.0])
@pytest.mark.parametrize("name", KERNELS)
def test_the_loop_makes_the_same_steps(name: str, band: float) -> None:
    kernel = replace(KERNELS[name], band=band)
    coupled, most = kernel.couple(), 60
    pair = two_starts(kernel)
    for stream in ("a", "b"):
        with NoiseKey.for_tests("coupled " + name).stream(stream) as words:
            slow, made, identical = by_steps(coupled, pair, most, words)
            end = words.position
        with NoiseKey.for_tests("coupled " + name).stream(stream) as words:
            fast, info = coupled.run(pair, most, words)
            assert (info, words.position) == ((made, identical), end)
        assert [fast.first.tolist(), fast.second.tolist()] == [slow.first.tolist(), slow.second.tolist()]
        assert (fast.first is fast.second) == identical == (slow.first is slow.second)


def test_the_band_decides_who_makes_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a band of one the loop settles only the steps at which neither chain's energy would rise; with the usual one, all of them."""
    kernel, steps = Metropolis.of_shape(ChainTarget.laplace(3, "1/50"), BLOCKS["sum of 3"]), 60
    pair = StatePair(np.array([0, 0]), np.array([40, -30]))
    calls: list[StatePair] = []
    rising: set[int] = set()
    plain_step, plain_accepts = CoupledMetropolis.step, Metropolis.accepts

    def counted(self: CoupledMetropolis, pair: StatePair, words: Any) -> tuple[StatePair, CoupledInfo]:
        calls.append(pair)
        return plain_step(self, pair, words)

    def noted(self: Metropolis, state: State, proposed: State, cell: int, words: Any, index: int) -> bool:
        if self.target.energy(self.basis @ proposed) > self.target.energy(self.basis @ state):
            rising.add(index)
        return plain_accepts(self, state, proposed, cell, words, index)

    with pytest.MonkeyPatch.context() as patch, NoiseKey.for_tests("who makes a step").stream("a") as words:
        patch.setattr(Metropolis, "accepts", noted)
        _, made, _ = by_steps(kernel.couple(), pair, steps, words)
    assert made == steps
    assert 20 < len(rising) < steps - 5
    monkeypatch.setattr(CoupledMetropolis, "step", counted)
    for band, slow in ((2.0**-40, 0), (1.0, len(rising))):
        calls.clear()
        with NoiseKey.for_tests("who makes a step").stream("a") as words:
            replace(kernel, band=band).couple().run(pair, steps, words)
        assert len(calls) == slow


def test_chunks_of_words_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks that end within a step make the loop go back to its beginning, and grow where one step does not fit."""
    coupled = KERNELS["l1"].couple()
    results = []
    for size in (1, 7, 50, 1 << 15):
        monkeypatch.setattr("holdfast.chains.words_in_steps.CHUNK_WORDS", size)
        with NoiseKey.for_tests("chunks").stream("a") as words:
            pair, info = coupled.run(two_starts(coupled.kernel), 40, words)
            results.append((pair.first.tolist(), pair.second.tolist(), info, words.position))
    assert all(result == results[0] for result in results)


def test_coins_are_certified() -> None:
    for coupled in (KERNELS["l1"].couple(), KERNELS["bounded"].couple()):
        coins = coupled.coins
        assert (coins[-1] == 0).all()
        for k, (low, high) in enumerate(coins.tolist()):
            with precision(300):
                lower, upper = enclosure(coupled.kernel.power(k) * ball(TOP))
            assert low <= lower <= upper < high + 1 or k == 0


def test_a_coin_on_its_threshold_is_settled_by_its_own_bits() -> None:
    """v = 0, w = 1, one coordinate, no jump of v: Y = 0 with probability exp(-1)."""
    kernel = Metropolis(ChainTarget.laplace(2, "1/4"), np.array([[1], [-1]]))
    coupled = kernel.couple()
    stay = int(kernel.sampler.high[-kernel.sampler.first]) // 2 + int(kernel.sampler.high[-kernel.sampler.first - 1]) // 2
    coin = int(coupled.coins[1, 0])
    # After tails: no jump of w (a certain head, as |1 - 0| > 0 makes a coin needed), its coin shows tails, then the accept word.
    rest = [stay, TOP - 1, 0, *[0] * (1 << 15)]
    for word, extra, meets in ((coin - 1, 0, True), (coin, 0, True), (coin, TOP - 1, False), (coin + 1, 0, False)):
        for make in (lambda c, p, w: c.step(p, w), lambda c, p, w: c.run(p, 1, w)):
            words = ListedWords([stay, word, *rest], extra=extra_words(extra))
            after, info = make(coupled, StatePair(np.array([0]), np.array([1])), words)
            assert info == (1, meets)
            assert (after.second.tolist(), words.position) == (([0], 3) if meets else ([1], 5))


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_any_words_give_the_same_steps(data: st.DataObject) -> None:
    """Words near thresholds of jumps and coins, or anywhere."""
    kernel = KERNELS[data.draw(st.sampled_from(["bounded above", "Gaussian", "norm"]))]
    coupled = kernel.couple()
    edges = [*kernel.sampler.high.tolist(), *coupled.coins[1:, 0].tolist(), 0, TOP - 1]
    near = st.builds(lambda t, d: min(max(t + d, 0), TOP - 1), st.sampled_from(edges), st.integers(-1, 1))
    listed = data.draw(st.lists(st.one_of(near, st.integers(0, TOP - 1)), min_size=30, max_size=30))
    extra = extra_words(data.draw(st.sampled_from([0, TOP - 1, 12345])))
    padded = np.concatenate([np.array(listed, dtype=np.uint32), TAIL])
    pair = two_starts(kernel)
    words = ListedWords(padded, extra)
    slow, made, identical = by_steps(coupled, pair, 8, words)
    again = ListedWords(padded, extra)
    fast, info = coupled.run(pair, 8, again)
    assert (info, again.position) == ((made, identical), words.position)
    assert [fast.first.tolist(), fast.second.tolist()] == [slow.first.tolist(), slow.second.tolist()]


# Chains that meet


@pytest.mark.parametrize("name", ["l1", "bounded"])
def test_identical_chains_move_as_one(name: str) -> None:
    kernel = KERNELS[name]
    state = two_starts(kernel).second
    coupled = kernel.couple()
    results = []
    for move in (
        lambda w: kernel.step(state, w)[0],
        lambda w: coupled.step(StatePair(state, state.copy()), w)[0].second,
        lambda w: coupled.run(StatePair(state, state.copy()), 100, w)[0].second,
    ):
        with NoiseKey.for_tests("as one").stream(name) as words:
            results.append((move(words).tolist(), words.position))
    assert results[0] == results[1] == results[2]
    with NoiseKey.for_tests("as one").stream(name) as words:
        pair, info = coupled.run(StatePair(state, state), 100, words)
    assert info == (1, True)
    assert pair.first is pair.second


def test_chains_meet_at_four_by_four() -> None:
    """Notes: of 200 pairs the median of tau - lag is 1.1e3, the largest 8.5e3. Within a factor of three, the median as well.

    In 2000 other pairs 25 % met before 1100 / 3 steps, 10 % after 3300. That half of 200 do has a probability below
    exp(-200 KL(1/2, .27)) = 5e-11, and none of 2000 needed more than 1.1e4.
    """
    kernel = KERNELS["l1"]
    coupled, key, steps = kernel.couple(), NoiseKey.for_tests("meeting"), []
    for i in range(200):
        with key.stream("pair", i) as words:
            x, _ = kernel.run(kernel.start(words), 5000, words)
            _, info = coupled.run(StatePair(x, kernel.start(words)), 100_000, words)
        assert info.identical
        steps.append(info.steps)
    assert 1100 / 3 < np.median(steps) < 3 * 1100


def test_coupled_kernels_travel_to_other_processes() -> None:
    coupled = KERNELS["bounded above"].couple()
    pair = two_starts(coupled.kernel)
    results = []
    for one in (coupled, pickle.loads(pickle.dumps(coupled))):
        with NoiseKey.for_tests("pickle").stream("a") as words:
            after, info = one.run(pair, 5, words)
            results.append((after.first.tolist(), after.second.tolist(), info))
    assert results[0] == results[1]


def test_bad_input_is_refused() -> None:
    coupled = KERNELS["l1"].couple()
    nine = np.zeros(9, dtype=np.int64)
    with pytest.raises(InvalidParameter, match="9 coordinates"):
        coupled.run(StatePair(nine, np.zeros(8, dtype=np.int64)), 1, ListedWords([]))
    with pytest.raises(InvalidParameter):
        coupled.run(StatePair(nine, nine + 1), -1, ListedWords([]))
    assert coupled.run(StatePair(nine, nine + 1), 0, ListedWords([]))[1] == (0, False)


def test_a_proposal_beyond_the_room_of_either_chain_is_refused() -> None:
    """Whether both leave it, or one alone after a coin that showed tails; the loop leaves such a step to the exact one, which says so."""
    kernel = Metropolis(ChainTarget.gaussian(2, 1), (1 << 18) * np.array([[1], [-1]]))
    coupled, room, sampler = kernel.couple(), kernel.rule.room, kernel.sampler
    stay = int(sampler.high[-sampler.first]) // 2 + int(sampler.high[-sampler.first - 1]) // 2
    up, tails, refuse = TOP - 2, TOP - 1, [TOP - 1] * (1 << 15)  # not accepted for certain, so the room alone makes the loop stop
    for v, w, listed in (
        (room, room - 1, [up, 0]),
        (room - 1, room, [up]),
        (room, room - 1, [up, tails, stay, tails]),  # the first chain alone
        (room - 1, room, [stay, tails, up, tails]),  # the second alone
    ):
        for act in (coupled.step, lambda p, w: coupled.run(p, 1, w)):
            with pytest.raises(RequestTooLarge, match="went beyond"):
                act(StatePair(np.array([v]), np.array([w])), ListedWords([*listed, *refuse]))


def test_a_step_begins_with_states_only() -> None:
    coupled = small("sum of 3").couple()
    good = np.zeros(2, dtype=np.int64)
    for bad, message in ((np.array([0.5, 0.0]), "of type int64"), (np.array([5, 0]), "within the target's bounds")):
        for pair in (StatePair(good, bad), StatePair(bad, good), StatePair(bad, bad)):
            for act in (coupled.step, lambda p, w: coupled.run(p, 1, w)):
                with pytest.raises(InvalidParameter, match=message):
                    act(pair, ListedWords([]))
