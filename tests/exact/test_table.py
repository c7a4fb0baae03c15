"""The table engine, by enumeration: every word, both code paths, every depth."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from holdfast.exact import DiscreteGaussian, DiscreteLaplace, Geometric, table
from holdfast.exact import _compiled as compiled_loops
from holdfast.exact.law import ArmsLaw, IntegerLaw
from holdfast.exact.table import TableSampler
from holdfast.exact.weights import ArmsSource
from holdfast.randomness import NoiseKey
from holdfast.research.laws import Bernoulli, BernoulliExp, Computable, Weighted
from holdfast.testing import ListedWords, bracket_inverse_cdf, check_brackets

ONES = 2**32 - 1
BEYOND = Fraction(1, 2**130)
Ints = NDArray[np.int64]


class SquareRoots:
    """A computable centre: the square root of an integer."""

    def __init__(self, radicand: int) -> None:
        self.radicand = radicand

    def __repr__(self) -> str:
        return f"sqrt({self.radicand})"

    def ball(self):
        from flint import arb

        return arb(self.radicand).sqrt()


LAWS: list[IntegerLaw] = [
    DiscreteLaplace(1),
    DiscreteLaplace("7/3"),
    DiscreteLaplace("1/3"),
    DiscreteLaplace(2, lower=-3, upper=5, tilt="1/5"),
    DiscreteLaplace(2, lower=-3, upper=5, tilt=2),
    DiscreteLaplace(2, upper=4, tilt="-1/4"),
    DiscreteLaplace(2, lower=0, upper=3, tilt="1/2"),
    DiscreteGaussian(1),
    DiscreteGaussian("25/2", "1/2"),
    DiscreteGaussian("1/1000"),
    DiscreteGaussian("1/1000", "1/2"),
    DiscreteGaussian("9/4", "-5/3"),
    DiscreteGaussian(4, "1/3", lower=0, upper=6, tilt="1/7"),
    DiscreteGaussian(4, lower=9),
    DiscreteGaussian(3, SquareRoots(2)),
    Geometric("5/2"),
    Geometric(4, upper=2),
    Weighted({-2: "1/3", 0: "1/7", 1: 2}),
    Weighted({5: 1}),
    Weighted({0: 1, 1: 1, 2: 1, 3: 1}),
    Bernoulli("1/3"),
    Bernoulli(0),
    Bernoulli(1),
    BernoulliExp("3/2"),
    BernoulliExp(0),
    BernoulliExp(100),
    Computable("triangle of roots", 0, 4, lambda k: SquareRoots(k + 2).ball()),
]
SOURCES = {repr(law): law for law in LAWS}
assert len(SOURCES) == len(LAWS)


def sampler(law: IntegerLaw, word_bits: int = 32) -> TableSampler:
    return TableSampler(ArmsSource(law.arms) if isinstance(law, ArmsLaw) else law._source, word_bits)  # type: ignore[attr-defined]


def nearly_zero(index: int, depth: int) -> tuple[int, ...]:
    """Extra bits just above all zeros: a uniform of exactly 0 has probability zero and would never be settled."""
    return (0, 0, 0, 1) if depth == 0 else (0x5EED, 1, 2, 3)


def nearly_one(index: int, depth: int) -> tuple[int, ...]:
    return (ONES, ONES, ONES, ONES - 1) if depth == 0 else (0x5EED, 1, 2, 3)


def check_enumerated(law: IntegerLaw, lows: Ints, highs: Ints) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """Brackets from the answers of all words, widened by the uniforms beyond `nearly_zero` and `nearly_one`, hold the certified law."""
    lower, upper = bracket_inverse_cdf(lows.tolist(), highs.tolist())
    lower = {k: chance - BEYOND for k, chance in lower.items()}
    upper = {k: chance + BEYOND for k, chance in upper.items()}
    check_brackets(lower, upper, law.pmf_bounds)
    return lower, upper


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("use_compiled", [False, True])
def test_all_words_of_eight_bits_bracket_every_probability(name: str, use_compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    law = SOURCES[name]
    monkeypatch.setattr(table, "compiled_for", lambda n: compiled_loops if use_compiled else None)
    short = sampler(law, 8)
    words = np.arange(256, dtype=np.uint32) << np.uint32(24)
    lows = short.draw(256, ListedWords(words, nearly_zero))
    highs = short.draw(256, ListedWords(words, nearly_one))
    check_enumerated(law, lows, highs)


@pytest.mark.parametrize("name", SOURCES)
def test_all_strings_of_sixteen_bits_bracket_every_probability(name: str) -> None:
    """Eight bits of word and eight of its extra bits: the second comparison, against 40-bit thresholds, is enumerated too."""
    law = SOURCES[name]
    short = sampler(law, 8)
    words = np.repeat(np.arange(256, dtype=np.uint32) << np.uint32(24), 256)
    lows = short.draw(65536, ListedWords(words, lambda i, depth: ((i & 255) << 24, 0, 0, 1)))
    highs = short.draw(65536, ListedWords(words, lambda i, depth: ((i & 255) << 24 | 0xFFFFFF, ONES, ONES, ONES - 1)))
    lower, upper = check_enumerated(law, lows, highs)
    inner = [k for k in lower if law.pmf(k) > 2**-14]
    assert all(upper[k] - lower[k] <= Fraction(2, 2**16) + 2 * BEYOND for k in inner), "sixteen bits leave two cells open at most"


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("word_bits", [6, 32])
def test_numpy_and_compiled_loops_agree_bit_for_bit(name: str, word_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    law = SOURCES[name]
    drawn = []
    for use in (None, compiled_loops):
        monkeypatch.setattr(table, "compiled_for", lambda n, use=use: use)
        drawn.append(sampler(law, word_bits).draw(40_000, NoiseKey.for_tests("paths").stream(name)))
    assert np.array_equal(drawn[0], drawn[1])
    assert len(np.unique(drawn[0])) > 1 or law.variance() < 0.3


@pytest.mark.parametrize("law", [DiscreteGaussian(10**6, "1/7"), DiscreteLaplace(1000), DiscreteLaplace(50, lower=-10)], ids=repr)
def test_large_tables_agree_too(law: ArmsLaw, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells with many thresholds are searched by halving in the compiled loop."""
    drawn = []
    for use in (None, compiled_loops):
        monkeypatch.setattr(table, "compiled_for", lambda n, use=use: use)
        drawn.append(law.sampler().draw(400_000, NoiseKey.for_tests("paths").stream("large")))
    assert np.array_equal(drawn[0], drawn[1])


@pytest.mark.parametrize("name", SOURCES)
def test_forcing_the_doubtful_path_changes_nothing(name: str) -> None:
    """Words settled by 32 bits give the same answer when pushed through the 64-bit and the 160-bit comparison."""
    prepared = sampler(SOURCES[name])
    stream = NoiseKey.for_tests("forced").stream(name)
    words = stream.take(3000)
    places = np.arange(3000)
    plain = prepared.index(words, places, stream)
    assert np.array_equal(prepared.resolve(words, places, stream), plain)
    deep = [prepared._resolve_deep(int(words[i]), i, stream) - prepared.first for i in range(200)]
    assert deep == plain[:200].tolist()


@pytest.mark.parametrize("name", SOURCES)
def test_a_longer_first_word_never_changes_the_answer(name: str) -> None:
    """Reading 6, 8 or 32 bits first is the same uniform number, read in other pieces, when the extra bits continue the word."""
    law = SOURCES[name]
    uniform = NoiseKey.for_tests("pieces").stream(name).take(5000)
    full = sampler(law).draw(5000, ListedWords(uniform, lambda i, depth: (7, 7, 7, 7)))
    for bits in (6, 8):

        def rest(i: int, depth: int, bits: int = bits) -> tuple[int, ...]:
            tail = (int(uniform[i]) << bits) & ONES
            return (tail | 7 >> (32 - bits), *((7 << bits) & ONES,) * 3) if depth == 0 else (7 << bits,) * 4

        assert np.array_equal(sampler(law, bits).draw(5000, ListedWords(uniform, rest)), full)


@pytest.mark.long
@pytest.mark.parametrize("law", [DiscreteGaussian(1), DiscreteLaplace(10)], ids=repr)
def test_all_two_to_the_32_words(law: ArmsLaw) -> None:
    """The product's own table, every first word there is: settled words bound each probability from below and above."""
    prepared = sampler(law)
    counts = np.zeros(len(prepared), dtype=np.int64)
    out, pending, opened = np.empty(1 << 22, dtype=np.int64), np.empty(1 << 22, dtype=np.int64), []
    for begin in range(0, 1 << 32, 1 << 22):
        words = np.arange(begin, begin + (1 << 22), dtype=np.uint64).astype(np.uint32)
        count = compiled_loops.draw_table(words, 0, prepared.direct, prepared.high, prepared.low, prepared.shift, 0, out, pending)
        opened += words[pending[:count]].tolist()
        out[pending[:count]] = -1
        counts += np.bincount(out + 1, minlength=len(prepared) + 1)[1:]
    assert counts.sum() + len(opened) == 1 << 32
    assert set(opened) == set(prepared.high.tolist()), "open words are exactly those that equal a threshold"
    beside = {int(h): np.flatnonzero(prepared.high == h) for h in set(opened)}
    reach = counts.copy()
    for places in beside.values():
        reach[places[0] : min(places[-1] + 2, len(reach))] += 1
    for i, (low, high) in enumerate(zip(counts.tolist(), reach.tolist(), strict=True)):
        least, most = law.pmf_bounds(prepared.first + i)
        if 0 < i < len(counts) - 1:
            assert low <= least * 2**32
            assert most * 2**32 <= high
