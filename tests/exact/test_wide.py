"""The wide sampler: every try enumerated on small words, bands that change nothing, both code paths."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from holdfast.exact import DiscreteGaussian, DiscreteLaplace, wide
from holdfast.exact import _compiled as compiled_loops
from holdfast.exact.balls import enclosure, precision
from holdfast.exact.law import ArmsLaw
from holdfast.exact.predicates import is_below
from holdfast.exact.segments import coarsen
from holdfast.exact.wide import WideSampler
from holdfast.randomness import NoiseKey
from holdfast.testing import ListedWords, all_words, check_brackets, check_fit_categories

from .test_table import ONES, SquareRoots

SMALL = [
    DiscreteGaussian(30, "1/3"),
    DiscreteGaussian(30, lower=-7, upper=20),
    DiscreteGaussian(9, SquareRoots(3)),
    DiscreteLaplace(4),
    DiscreteLaplace(4, lower=-9, upper=25, tilt=1),
    DiscreteLaplace(4, lower=0, upper=30, tilt="1/4"),
]
WIDE = [
    DiscreteGaussian(10**12),
    DiscreteGaussian(10**12, "1/3"),
    DiscreteGaussian(10**18, "-7/2"),
    DiscreteGaussian(10**12, "3/2"),
    DiscreteGaussian(10**12, "1/2", lower=-(10**7)),
    DiscreteGaussian(10**30),
    DiscreteGaussian(10**34),
    DiscreteLaplace(1, lower=0, upper=2**60, tilt=1),
    DiscreteLaplace(10**12, upper=74842966, tilt=Fraction(1, 10**6)),
    DiscreteLaplace(Fraction(1, 1000), lower=-5, upper=2**40 - 1, tilt=1000),
    DiscreteGaussian(10**18, lower=10**15),
    DiscreteGaussian(10**12, lower=-1000),
    DiscreteGaussian(10**12, lower=3 * 10**6, upper=5 * 10**6),
    DiscreteLaplace(10**9),
    DiscreteLaplace(10**9, tilt=Fraction(1, 2 * 10**9)),
    DiscreteLaplace(10**6, lower=-(10**7), upper=2 * 10**7, tilt=Fraction(3, 10**6)),
]


@pytest.mark.ordinary("lower")
@pytest.mark.parametrize("law", [*SMALL[:2], *(pytest.param(law, marks=pytest.mark.long) for law in SMALL[2:])], ids=repr)
def test_all_tries_of_twenty_bits_bracket_every_probability(law: ArmsLaw) -> None:
    """A try reads a cell word and an accept word, ten bits each here: run all 2^20, with extra bits at their ends for either word."""
    sampler = WideSampler(law.arms, word_bits=10, cell_bits=4, accept_bits=4)
    tries = all_words(10, 2, shift=22)
    places = np.arange(len(tries)) * 2
    settled: Counter[int] = Counter()
    reach: Counter[int] = Counter()
    outcomes = []
    for cell_extra in ((0, 0, 0, 1), (ONES, ONES, ONES, ONES - 1)):
        for accept_extra in ((0, 0, 0, 1), (ONES, ONES, ONES, ONES - 1)):
            words = ListedWords(tries.ravel(), lambda i, depth, c=cell_extra, a=accept_extra: a if i % 2 else c)
            words.take(tries.size)
            value, accept = sampler.decide(tries, places, words)
            outcomes.append(np.where(accept, value, 2**40))
    stacked = np.stack(outcomes)
    agree = (stacked == stacked[0]).all(axis=0)
    values, counts = np.unique(stacked[0, agree], return_counts=True)
    settled.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
    reach.update(settled)
    for column in stacked[:, ~agree].T:
        reach.update(set(column.tolist()))
    keys = [k for k in settled if k < 2**40]
    assert len(keys) > 8
    with precision(200):
        cells = coarsen(law.arms, sampler.low_bits)
        total = sum((s.weight(j) for s in cells.left + cells.right for j in range(200) if s.length is None or j < s.length), arb(0))

        def chance(k: int) -> tuple[Fraction, Fraction]:
            place = law.arms.locate(k)
            assert place is not None
            return tuple(enclosure(place[0].weight(place[1]) / total / 2**sampler.low_bits))  # type: ignore[return-value]

        # Where a word leaves three cells open the middle one is not among the outcomes: such far tails hold below 2^-10 together.
        inner = [k for k in keys if chance(k)[0] > Fraction(1, 2**16)]
        check_brackets({k: Fraction(settled[k], 2**20) for k in inner}, {k: Fraction(reach[k], 2**20) for k in inner}, chance)
    assert len(inner) > 8


@pytest.mark.parametrize("law", WIDE, ids=repr)
@pytest.mark.parametrize("use_compiled", [False, True])
def test_the_band_changes_nothing(law: ArmsLaw, use_compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide, "compiled_for", lambda n: compiled_loops if use_compiled else None)
    drawn, positions, resolved = [], [], []
    for band_bits in (45, 40, 20, 4):
        calls: list[int] = []
        monkeypatch.setattr(wide, "is_below", lambda *args, calls=calls: calls.append(1) or is_below(*args))
        stream = NoiseKey.for_tests("band").stream("wide")
        drawn.append(WideSampler(law.arms, band=2.0**-band_bits).draw(12_000, stream))
        positions.append(stream.position)
        resolved.append(len(calls))
    assert all(np.array_equal(drawn[0], other) for other in drawn[1:])
    assert len(set(positions)) == 1
    nearly_flat = law.arms.right[0].slope == 0 and law.arms.right[0].curvature == 0
    assert nearly_flat or resolved[3] > 300 > resolved[0], "a band of 1/16 must send many tries to the balls, a narrow one hardly any"


@pytest.mark.parametrize("law", WIDE, ids=repr)
@pytest.mark.parametrize("word_bits", [pytest.param(24, marks=pytest.mark.long), 32])
def test_numpy_and_compiled_loops_agree_bit_for_bit(law: ArmsLaw, word_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, positions = [], []
    for use in (None, compiled_loops):
        monkeypatch.setattr(wide, "compiled_for", lambda n, use=use: use)
        stream = NoiseKey.for_tests("paths").stream("wide")
        drawn.append(WideSampler(law.arms, word_bits=word_bits, accept_bits=8).draw(50_000, stream))
        positions.append(stream.position)
    assert np.array_equal(drawn[0], drawn[1])
    assert positions[0] == positions[1]


@pytest.mark.parametrize("law", WIDE, ids=repr)
def test_every_try_decided_by_balls_gives_the_same_draws(law: ArmsLaw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide, "compiled_for", lambda n: None)
    plain = WideSampler(law.arms).draw(1500, NoiseKey.for_tests("balls").stream("wide"))
    doubtful = WideSampler(law.arms, band=4.0).draw(1500, NoiseKey.for_tests("balls").stream("wide"))
    assert np.array_equal(plain, doubtful)


@pytest.mark.parametrize(
    "law", [DiscreteGaussian(10**34), DiscreteLaplace(1, lower=0, upper=2**60, tilt=1), DiscreteGaussian(10**24)], ids=repr
)
def test_all_low_bits_are_drawn(law: ArmsLaw) -> None:
    """Every bit of the place in a cell is a fair coin: a word lost on the way would leave some constant."""
    sampler = WideSampler(law.arms)
    values = law.sample(100_000, NoiseKey.for_tests("low bits"))
    for bit in range(sampler.low_bits - 6):
        ones = int(np.count_nonzero((values >> bit) & 1))
        check_fit_categories({0: 100_000 - ones, 1: ones}, {0: 0.5, 1: 0.5}, name=f"bit {bit} of {law!r}")


def test_draws_respect_bounds_and_words_stand_behind_the_last_try() -> None:
    law = DiscreteGaussian(10**12, lower=3 * 10**6, upper=5 * 10**6)
    stream = NoiseKey.for_tests(1).stream("bounds")
    first = law.draw(1000, stream)
    again = NoiseKey.for_tests(1).stream("bounds")
    pieces = np.concatenate([law.draw(n, again) for n in (1, 2, 3, 494, 500)])
    assert np.array_equal(first, pieces)
    assert stream.position == again.position
    assert first.min() >= 3 * 10**6
    assert first.max() <= 5 * 10**6
