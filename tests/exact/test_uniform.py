"""Uniform integers and compositions: by enumeration, then goodness of fit, with a wrong law shown to fail."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import comb

import numpy as np
import pytest

from holdfast.exact import UniformComposition
from holdfast.exact.uniform import UniformSampler
from holdfast.randomness import NoiseKey
from holdfast.research import oracles
from holdfast.research.laws import UniformInteger
from holdfast.testing import ALPHA, ListedWords, WordsExhausted, check_fit_categories, chi_square_p_value
from holdfast.testing.words import FairBits


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 10, 16, 100, 255, 256])
def test_all_words_of_eight_bits_fall_evenly(size: int) -> None:
    counts: Counter[int] = Counter()
    sampler = UniformSampler(-3, size, word_bits=8)
    for word in range(256):
        try:
            counts[int(sampler.draw(1, ListedWords([word << 24]))[0])] += 1
        except WordsExhausted:
            counts[-1000] += 1  # thrown away: the sampler asked for another word
    thrown = counts.pop(-1000, 0)
    assert counts == dict.fromkeys(range(-3, size - 3), 256 // size)
    assert thrown == 256 % size


@pytest.mark.parametrize(("lower", "upper"), [(0, 2**24), (-(2**61), 2**61), (0, 0), (5, 5 + 2**33), (-(2**62) + 1, 2**62 - 1)])
def test_large_ranges_use_two_words_and_stay_inside(lower: int, upper: int) -> None:
    law = UniformInteger(lower, upper)
    values = law.sample(3000, NoiseKey.for_tests("range"))
    assert values.min() >= lower
    assert values.max() <= upper
    sampler = law.sampler()
    assert isinstance(sampler, UniformSampler)
    assert sampler.words_per_draw == (1 if upper - lower < 2**24 else 2)
    if upper > lower:
        eighths = np.bincount([(int(v) - lower) * 8 // (upper - lower + 1) for v in values], minlength=8)
        check_fit_categories(dict(enumerate(eighths.tolist())), dict.fromkeys(range(8), 1 / 8), name=f"eighths of {law!r}")


def compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    return [c for c in product(range(total + 1), repeat=parts) if sum(c) == total]


@pytest.mark.ordinary("3-3")
@pytest.mark.parametrize(
    ("total", "parts"),
    [
        (3, 3),
        pytest.param(7, 2, marks=pytest.mark.long),
        (2, 5),
        pytest.param(1, 6, marks=pytest.mark.long),
        pytest.param(4, 4, marks=pytest.mark.long),
    ],
)
def test_compositions_are_uniform(total: int, parts: int) -> None:
    """Both ways of choosing: few bars among many stars, few stars among many bars."""
    everything = compositions(total, parts)
    assert len(everything) == comb(total + parts - 1, total)
    drawn = UniformComposition(total, parts).sample(40_000, NoiseKey.for_tests("composition"))
    counts = Counter(map(tuple, drawn.tolist()))
    check_fit_categories(counts, dict.fromkeys(everything, 1 / len(everything)), name=f"compositions of {total} into {parts}")


def test_throwing_stars_one_by_one_is_not_uniform_and_fails() -> None:
    """The tempting wrong law, each star into a uniform cell, is told apart by the same test."""
    everything = compositions(3, 3)
    rng = np.random.default_rng(5)
    wrong = Counter(tuple(np.bincount(row, minlength=3).tolist()) for row in rng.integers(0, 3, (40_000, 3)))
    assert chi_square_p_value([wrong[c] for c in everything], [0.1] * 10, 40_000) < ALPHA


@pytest.mark.parametrize(("total", "parts"), [(0, 1), (0, 4), (5, 1), (10**6, 3), (3, 10**5)])
def test_edges_of_compositions(total: int, parts: int) -> None:
    drawn = UniformComposition(total, parts).sample(3)
    assert drawn.shape == (3, parts)
    assert (drawn.sum(axis=1) == total).all()
    assert drawn.min() >= 0


def test_compositions_agree_with_the_slow_oracle() -> None:
    bits = FairBits(NoiseKey.for_tests("oracle").stream("composition"))
    everything = compositions(4, 3)
    slow = Counter(tuple(oracles.uniform_composition(4, 3, bits)) for _ in range(10_000))
    check_fit_categories(slow, dict.fromkeys(everything, 1 / len(everything)), name="oracle compositions of 4 into 3")
