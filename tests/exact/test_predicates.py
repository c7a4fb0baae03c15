"""Predicates: certain answers only, bits that depend on the comparison alone, and the compiled twins."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import arb
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from holdfast.exact import _compiled as compiled_loops
from holdfast.exact.balls import ball, enclosure, float_down, float_up, floors, precision
from holdfast.exact.predicates import is_below, settle, settle_exp
from holdfast.randomness import NoiseKey
from holdfast.testing import ListedWords

exponents = st.fractions(min_value=0, max_value=3, max_denominator=1000)


def exp_minus(gamma: Fraction):
    return lambda: (-ball(gamma)).exp()


@given(exponents)
def test_all_cells_of_eight_bits_agree_with_the_floor(gamma: Fraction) -> None:
    """Cells below the floor are below, cells above are not, and the one cell that holds exp(-gamma) follows its extra bits."""
    floor = floors(lambda: exp_minus(gamma)() * 256, 64)[0]
    for cell in range(256):
        zeros, ones = (ListedWords([0], lambda i, depth, word=word: (word,) * 3 + (1,)) for word in (0, 2**32 - 1))
        zeros.take(1)
        ones.take(1)
        answers = [is_below(cell, 8, exp_minus(gamma), words, 0) for words in (zeros, ones)]
        if cell == floor:
            assert answers[0] >= answers[1]
        else:
            assert answers == [cell < floor] * 2


def test_extra_bits_are_read_only_when_the_cell_holds_the_number() -> None:
    read = []

    def extra(index: int, depth: int) -> tuple[int, int, int, int]:
        read.append(depth)
        return (0, 0, 0, 0)

    words = ListedWords([0], extra)
    words.take(1)
    floor = floors(lambda: exp_minus(Fraction(1, 3))() * 256, 64)[0]
    assert is_below(floor - 1, 8, exp_minus(Fraction(1, 3)), words, 0)
    assert not is_below(floor + 1, 8, exp_minus(Fraction(1, 3)), words, 0)
    assert read == []
    assert is_below(floor, 8, exp_minus(Fraction(1, 3)), words, 0)
    assert read == [0]


@given(exponents, st.integers(0, 2**20 - 1), st.sampled_from([2.0**-4, 2.0**-20, 2.0**-45]))
def test_settled_means_certain_and_the_compiled_twins_agree(gamma: Fraction, cell: int, band: float) -> None:
    exponent = float(gamma)
    verdict = int(settle_exp(np.array([float(cell)]), 20, np.array([exponent]), band)[0])
    with precision(200):
        low, high = enclosure(exp_minus(gamma)() * arb(2) ** 20)
    if verdict == 1:
        assert cell + 1 <= high
    if verdict == -1:
        assert cell >= low
    compiled = compiled_loops.settle_exp(float(cell), 2.0**-20, exponent, band)
    assert compiled == verdict or (verdict == 0 and compiled == 1), "only the squeeze may settle more, and only towards acceptance"
    if compiled == 1:
        assert cell + 1 <= high
    plain = int(settle(np.array([float(cell)]), 20, np.array([math.exp(-exponent)]), band)[0])
    assert compiled_loops.settle(float(cell), 2.0**-20, math.exp(-exponent), band) == plain


def test_predicates_work_inside_a_numba_loop() -> None:
    settle_in_loop = compiled_loops.settle_exp

    @njit
    def count(cells, exponent, band):
        tally = np.zeros(3, dtype=np.int64)
        for cell in cells:
            tally[settle_in_loop(cell, 2.0**-16, exponent, band) + 1] += 1
        return tally

    below = math.floor(math.exp(-0.25) * 65536)
    assert count(np.arange(65536.0), 0.25, 2.0**-40).tolist() == [65535 - below, 1, below]


def test_a_coin_from_the_predicate_has_its_probability() -> None:
    """exp(-1/3) by lazy comparison, first on two bits only, so that one coin in four reads extra bits; exact to a million draws' error."""
    stream = NoiseKey.for_tests("coin").stream("predicate")
    words = stream.take(20_000)
    heads = sum(is_below(int(word) >> 30, 2, exp_minus(Fraction(1, 3)), stream, i) for i, word in enumerate(words))
    expected, deviation = 20_000 * math.exp(-1 / 3), math.sqrt(20_000 * math.exp(-1 / 3) * (1 - math.exp(-1 / 3)))
    assert abs(heads - expected) < 6.2 * deviation  # normal tail below 1e-9; the key is fixed
    assert abs(heads - 20_000 * 0.75) > 6.2 * deviation, "answering by the two bits alone would be seen"


def test_a_number_on_the_border_of_two_cells_leaves_both_open() -> None:
    """sqrt(1/4) by balls is never told from 1/2: cells 127 and 128 of 256 ask for more bits, and the answer is still right."""

    def half() -> arb:
        return (arb(1) / 3).sqrt() * (arb(3) / 4).sqrt()

    assert floors(lambda: half() * 256, 64) == (127, 128)
    for cell, expected in ((126, True), (127, True), (128, False), (129, False)):
        words = ListedWords([0], lambda i, depth: (7, 7, 7, 7))
        words.take(1)
        assert is_below(cell, 8, half, words, 0) == expected


@given(st.fractions())
def test_floats_are_rounded_outwards(value: Fraction) -> None:
    down, up = float_down(value), float_up(value)
    assert Fraction(down) <= value <= Fraction(up)
    assert up in (down, math.nextafter(down, math.inf))
