"""The law along a line: its mode, its weights as fractions and as bounds, and the draw on chosen words."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.chains import line as line_module
from holdfast.chains.line import Line, draw_point
from holdfast.chains.target import ChainTarget, Decay, EnergyKind
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.balls import fixed_point, precision
from holdfast.testing import ListedWords, all_words
from tests.chains.lines import line_through
from tests.examples import examples

from .transitions import normalise

ONES = 2**32 - 1
HALF = Fraction(1, 2)


@st.composite
def lines(draw: st.DrawFn) -> Line:
    kind: EnergyKind = draw(st.sampled_from(["absolute", "squares", "norm"]))
    size = draw(st.integers(1, 4))
    values = draw(st.lists(st.integers(-30, 30), min_size=size, max_size=size))
    steps = draw(st.lists(st.integers(-3, 3).filter(bool), min_size=size, max_size=size))
    first = draw(st.none() | st.integers(-20, 0))
    last = draw(st.none() | st.integers(0, 20))
    constant = draw(st.integers(0, 50)) if kind == "norm" else 0
    return Line(Decay(kind, Fraction(1, 3)), tuple(values), tuple(steps), constant, first, last)


@given(lines())
def test_the_mode_is_the_first_of_least_energy(line: Line) -> None:
    points = range(-200 if line.first is None else line.first, (200 if line.last is None else line.last) + 1)
    energies = [line.energy(t) for t in points]
    assert line.mode() == points[energies.index(min(energies))]


@given(lines())
@settings(max_examples=examples(40))
def test_the_bounds_of_weights_hold_and_leave_out_no_more_than_they_say(line: Line) -> None:
    bits, guard = 32, 20
    found = line.fixed_weights(bits, guard)
    working = bits + guard + 64
    least = line.energy(line.mode())
    stop = found.first + len(found.lows)
    with precision(working + 100):
        for t, low, high in zip(range(found.first, stop), found.lows, found.highs, strict=True):
            exact_low, exact_high = fixed_point(line.decay.ratio(line.energy(t), least), working + 64)
            assert low << 64 <= exact_high
            assert exact_low <= high << 64
        for start, direction, end, tail in ((found.first, -1, line.first, found.left_tail), (stop - 1, 1, line.last, found.right_tail)):
            assert tail[0] == 0
            assert tail[1] <= 1 << (working - bits)
            if end is not None and start == end:
                continue
            beyond = 0
            for t in range(start + direction, start + 300 * direction, direction):
                if end is not None and (t - end) * direction > 0:
                    break
                beyond += fixed_point(line.decay.ratio(line.energy(t), least), working)[0]
            assert beyond <= tail[1]


def test_a_line_through_a_table_has_the_target_as_its_law() -> None:
    target = ChainTarget(Decay("squares", Fraction(1), HALF), 3)
    target = target.within(lower=[-3, -2, -4], upper=[2, 3, 4])
    z, move = np.array([1, -1, 0]), np.array([1, -2, 1])
    line = line_through(target, z, move)
    weights = line.exact_weights()
    assert weights.keys() == {t for t in range(-20, 21) if target.allows(z + t * move)}
    least = min(target.energy(z + t * move) for t in weights)
    assert weights == {t: HALF ** (target.energy(z + t * move) - least) for t in weights}
    norm = ChainTarget(Decay("norm", Fraction(1)), 3)
    still = line_through(norm, z, np.array([1, -1, 0]))
    assert [still.energy(t) for t in range(5)] == [norm.energy(z + t * np.array([1, -1, 0])) for t in range(5)]


@pytest.mark.parametrize("kind", ["absolute", "squares"])
def test_every_word_of_ten_bits_brackets_the_law(kind: str) -> None:
    line = Line(Decay(kind, Fraction(1), Fraction(2, 3)), (2, -1, 0), (1, 1, -1), 0, -3, 4)  # type: ignore[arg-type]
    law = normalise(line.exact_weights())
    settled: Counter[int] = Counter()
    reach: Counter[int] = Counter()
    for row in all_words(10, 1, shift=22):
        # the word's own cell of ten bits is filled with zeros, then with ones
        ends = [
            draw_point(line, ListedWords([int(row[0]) | low], default_extra=extra)) for low, extra in ((0, 0), ((1 << 22) - 1, ONES - 1))
        ]
        assert ends[0] <= ends[1]
        settled.update({ends[0]} if ends[0] == ends[1] else ())
        reach.update(range(ends[0], ends[1] + 1))
    for t, mass in law.items():
        assert Fraction(settled[t], 1024) <= mass <= Fraction(reach[t], 1024)


def test_a_line_too_long_to_sum_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "LONGEST_LINE", 100)
    line = Line(Decay("absolute", Fraction(1, 10)), (0,), (1,), 0)
    with pytest.raises(RequestTooLarge, match="further than 100 steps"):
        draw_point(line, ListedWords([1]))


@pytest.mark.parametrize("move", [[2, -3, 0], [-2, 3, 1], [3, 2, -2], [-3, -2, 2]])
@pytest.mark.parametrize("z", [[0, 0, 0], [1, -1, 2], [-2, 3, -1]])
def test_ends_that_steps_do_not_divide_evenly(move: list[int], z: list[int]) -> None:
    """The ends are those of a search over all t, within both bounds and within one of them."""
    target, at, u = ChainTarget.laplace(3, 1), np.array(z), np.array(move)
    lower, upper = [-7, -8, -5], [8, 6, 7]
    for bounds in ({"lower": lower, "upper": upper}, {"lower": lower}, {"upper": upper}):
        within = target.within(**bounds)
        allowed = [t for t in range(-40, 41) if within.allows(at + t * u)]
        line = line_through(within, at, u)
        assert (-40 if line.first is None else line.first, 40 if line.last is None else line.last) == (allowed[0], allowed[-1])


def test_what_a_move_keeps_counts_under_a_root() -> None:
    norm = ChainTarget.laplace(3, 1, "l2")
    z, move = np.array([1, -1, 2]), np.array([1, -1, 0])
    line = line_through(norm, z, move)
    assert line.constant == 4
    assert [line.energy(t) for t in range(-5, 6)] == [norm.energy(z + t * move) for t in range(-5, 6)]


def test_a_line_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="outside the target's bounds"):
        Line(Decay("absolute", Fraction(1)), (0,), (1,), 0, 2, 1)
    with pytest.raises(InvalidParameter, match="outside the target's bounds"):
        line_through(ChainTarget.laplace(2, 1).within([-1, -1], [1, 1]), np.array([3, 3]), np.array([1, -1]))
