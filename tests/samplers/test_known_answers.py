"""What every sampler and every kernel makes of the words of one test key: fixed integers, so that no change of them goes unseen.

A change of these numbers is a change of the stream's format: it needs a new STREAM_VERSION (randomness/vault.py), and whoever resumes or
repeats an earlier draw gets other noise. `python -m tests.samplers.test_known_answers` prints the table anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import holdfast as hf
from holdfast.cellkey import PerturbationTable
from holdfast.chains.kernels import KERNELS, kernel_for
from holdfast.lattices.shapes import Bounded, Free, General, Grid, Levels, OneSum, Shape, Units, Whole
from holdfast.lattices.trees import Tree
from holdfast.laws import (
    ConditionalGaussian,
    ConditionalLaplace,
    Gaussian,
    Keyed,
    L1Laplace,
    L2Laplace,
    LevelGaussian,
    Rounded,
    Sequential,
    Target,
)
from holdfast.randomness import NoiseKey
from holdfast.samplers.protocol import InputSampler, Ints
from holdfast.samplers.table import SAMPLERS, choose
from holdfast.tables.columns import CellKeySums
from holdfast.testing.words import ListedWords

DRAWS = 3
STEPS = 40
QUARTER = Fraction(1, 4)
TINY = Fraction(1, 10**6)
SETS = General(((1, 0, 0, 1, 1, 0, 1), (0, 1, 0, 1, 0, 1, 1), (0, 0, 1, 0, 1, 1, 1)), (1, 1, 1, 1, 1, 1, 2))
"""Three overlapping sets, two cells in all of them."""
CLASSES = General(
    tuple(tuple(int(c // 9 == row if row < 9 else c % 9 == row - 9) for c in range(81)) for row in range(17)),
    tuple(1 + c % 4 for c in range(81)),
)
"""Nine counties and nine districts across, one to four cells in each pair: 64 free dimensions of class totals."""
LEVELS = Levels((Tree(((2,), (2, 1))), Tree.plain(2)), ((0, 1), (1, 0)))
"""States and the sex margin, over counties by sex."""
UNITS = Units(Tree(((2,), (2, 3))), (2,), ((0,), (), ()))
WEIGHTED = LevelGaussian(Fraction(1, 10), ((0, 1, Fraction(1, 2)), (1, 0, Fraction(1, 4)), (2, 1, Fraction(1, 4))))
AGES = General(((1, 1, 0, 0), (0, 0, 1, 1), (0, 1, 0, 1)), (2, 2, 1, 2))
"""Women and men, and adults, over minors and adults of both sexes."""
SIGNED = OneSum(5, (1, 1, 1, -1, -1))

DRAWN: dict[str, tuple[Shape, Target]] = {
    "free, laplace": (Free(1), L1Laplace(QUARTER)),
    "free, wide laplace": (Free(1), L1Laplace(TINY)),
    "free, gaussian": (Free(1), Gaussian(Fraction(7, 2))),
    "free, wide gaussian": (Free(1), Gaussian(Fraction(10**12))),
    "free, rounded": (Free(1), Rounded(QUARTER)),
    "one sum, laplace": (OneSum(4), L1Laplace(QUARTER)),
    "one sum with signs, laplace": (SIGNED, L1Laplace(QUARTER)),
    "long sum, laplace": (OneSum(5000), L1Laplace(QUARTER)),
    "one sum, gaussian": (OneSum(4), Gaussian(Fraction(7, 2))),
    "one sum of two, gaussian": (OneSum(2), Gaussian(Fraction(7, 2))),
    "long sum, gaussian": (OneSum(5000), Gaussian(Fraction(100))),
    "one sum, rounded": (OneSum(4), Rounded(QUARTER)),
    "grid, laplace": (Grid((3, 3)), L1Laplace(QUARTER)),
    "thin grid, laplace": (Grid((2, 3)), L1Laplace(QUARTER)),
    "coupled grid, laplace": (Grid((12, 12)), L1Laplace(QUARTER)),
    "grid, gaussian": (Grid((3, 4)), Gaussian(Fraction(7, 2))),
    "thin grid, gaussian": (Grid((2, 3, 2)), Gaussian(Fraction(7, 2))),
    "grid, rounded": (Grid((3, 4)), Rounded(QUARTER)),
    "grid of three axes, rounded": (Grid((3, 3, 2)), Rounded(QUARTER)),
    "general, laplace": (SETS, L1Laplace(QUARTER)),
    "general, gaussian": (SETS, Gaussian(Fraction(7, 2))),
    "general, rounded": (SETS, Rounded(QUARTER)),
    "classes, gaussian": (CLASSES, Gaussian(Fraction(7, 2))),
    "classes, rounded": (CLASSES, Rounded(QUARTER)),
    "levels, laplace": (LEVELS, L1Laplace(QUARTER)),
    "levels, gaussian": (LEVELS, Gaussian(Fraction(7, 2))),
    "levels, rounded": (LEVELS, Rounded(QUARTER)),
    "units, gaussian": (UNITS, WEIGHTED),
    "free, sequential": (Free(1), Sequential(Gaussian(Fraction(7, 2)))),
    "one sum, sequential": (OneSum(4), Sequential(Gaussian(Fraction(1, 2)))),
    "grid, sequential": (Grid((3, 4)), Sequential(Gaussian(Fraction(1, 2)))),
    "grid, in groups": (Grid((3, 4)), Sequential(Gaussian(Fraction(2)), in_groups=frozenset({Grid((3, 4))}))),
    "general, sequential": (SETS, Sequential(Gaussian(Fraction(1, 2)))),
    "levels, sequential": (LEVELS, Sequential(Gaussian(Fraction(1, 2)))),
    "units, sequential": (UNITS, Sequential(WEIGHTED)),
    "whole, l2 laplace": (Whole((OneSum(3), Free(2), Grid((2, 2)))), L2Laplace(Fraction(1, 2))),
}
PUBLISHED: dict[str, tuple[Shape, Target, list[int]]] = {
    "free with bounds": (Bounded(Free(1), 0, None), ConditionalLaplace(QUARTER), [2]),
    "one sum with bounds": (Bounded(OneSum(5), 0, 9), ConditionalLaplace(QUARTER), [0, 3, 1, 9, 2]),
    "two cells with bounds": (Bounded(OneSum(2), 0, 9), ConditionalLaplace(QUARTER), [1, 7]),
    "long sum with bounds": (Bounded(OneSum(70), 0, None), ConditionalLaplace(QUARTER), [0, 3, 1, 9, 2, 0, 4] * 10),
    "one sum with bounds, gaussian": (Bounded(OneSum(4), 0, 9), ConditionalGaussian(Fraction(5, 2)), [0, 3, 1, 9]),
    "one sum without bounds": (Bounded(OneSum(4), None, None), ConditionalLaplace(QUARTER), [0, 3, 1, 9]),
    "classes with bounds": (Bounded(AGES, 0, None), ConditionalLaplace(QUARTER), [0, 3, 1, 9, 2, 0, 4]),
    "square with bounds": (Bounded(Grid((2, 2)), 0, None), ConditionalLaplace(QUARTER), [4, 3, 1, 9]),
    "grid with bounds": (Bounded(Grid((3, 3)), 0, None), ConditionalLaplace(QUARTER), [0, 3, 1, 9, 2, 0, 0, 1, 4]),
}
"""Drawn from counts."""
STEPPED: dict[str, tuple[str, Shape, Target]] = {
    "metropolis, laplace": ("metropolis", Grid((3, 3)), L1Laplace(QUARTER)),
    "metropolis, l2 laplace": ("metropolis", Whole((OneSum(3), Free(2))), L2Laplace(QUARTER)),
    "metropolis, gaussian": ("metropolis", SETS, Gaussian(Fraction(7, 2))),
    "line_gibbs, laplace": ("line_gibbs", Grid((3, 3)), L1Laplace(QUARTER)),
    "line_gibbs, l2 laplace": ("line_gibbs", Whole((OneSum(3), Free(2))), L2Laplace(QUARTER)),
    "line_gibbs, gaussian": ("line_gibbs", SETS, Gaussian(Fraction(7, 2))),
}

NOISE = PerturbationTable.from_probabilities({1: {-1: "1/4", 0: "1/2", 1: "1/4"}, 2: {-2: "1/4", 0: "1/2", 2: "1/4"}}, 2**16)
KEYED: dict[str, tuple[Shape, Target]] = {"free, cell keys": (Free(1), Keyed(NOISE, hf.CellKey(table=NOISE).rule))}
# fmt: off
KNOWN: dict[str, tuple[list[int], str]] = {
    "free, laplace": ([-12, 5, -6], "dd043d4b53cbfc61"),
    "free, wide laplace": ([1305591, 9418, -590051], "a8db42c40d00a362"),
    "free, gaussian": ([1, -2, 2], "b12660690bfb091f"),
    "free, wide gaussian": ([-1409897, 857288, 135605], "9c6ab4c60ca56272"),
    "free, rounded": ([4, 10, -16], "e29f1c5e5f1be1cc"),
    "one sum, laplace": ([2, -10, 1, 7, -3, 3, -1, 1], "7af3c87a3a5f85eb"),
    "one sum with signs, laplace": ([2, -4, 5, 2, 1, 0, 3, -4], "4e83ded57217140e"),
    "long sum, laplace": ([2, 1, -7, 7, -2, -3, 14, -22], "89f5d1fdac05e7e5"),
    "one sum, gaussian": ([2, 1, -1, -2, 3, -3, 0, 0], "db5e1af40febca2c"),
    "one sum of two, gaussian": ([2, -2, 1, -1, -1, 1], "70fca1bc0515d75e"),
    "long sum, gaussian": ([-1, 1, 8, 8, -5, -13, 11, 9], "f750febffe6f578c"),
    "one sum, rounded": ([7, -3, -3, -1, -11, 15, -7, 3], "ff92d04c0d7fd120"),
    "grid, laplace": ([-1, -1, 2, -2, 4, -2, 3, -3], "e9f228575acd97e5"),
    "thin grid, laplace": ([-2, 1, 1, 2, -1, -1, -1, 1], "ffe27e743c135733"),
    "coupled grid, laplace": ([-4, -1, 0, -2, -1, 4, 6, 4], "1e667ed33e8bb8dd"),
    "grid, gaussian": ([-2, 1, 2, -1, 1, -1, -1, 1], "cc1ff7848fe14324"),
    "thin grid, gaussian": ([-1, 1, 0, 0, 1, -1, 1, -1], "70f312cff3324140"),
    "grid, rounded": ([3, -11, 1, 7, -2, 4, 2, -4], "5f77d74e59456c16"),
    "grid of three axes, rounded": ([-1, 1, 4, -4, -3, 3, -1, 1], "7ea7fa3095ade8c0"),
    "general, laplace": ([2, 1, -8, -8, 1, 2, 6, -1], "ed2576c9985b44bf"),
    "general, gaussian": ([-2, -1, -3, 0, 2, 1, -1, 1], "bd3a7f73c4fc1ddf"),
    "general, rounded": ([-1, 3, -4, -7, 0, -4, 20, -12], "d97be9f979668f2a"),
    "classes, gaussian": ([2, 1, -1, -1, -4, 0, 1, -2], "d195c163f1d77804"),
    "classes, rounded": ([3, -2, -6, 1, 1, 14, -4, -4], "7a26aace8e2efaf6"),
    "levels, laplace": ([9, -4, -5, 0, -4, 4, 3, 0], "70cd5c81d6ddc220"),
    "levels, gaussian": ([3, -3, -1, 1, -2, 2, 1, -1], "23cc2e6ecb0923df"),
    "levels, rounded": ([2, -8, 0, 6, -2, 2, -3, -6], "2f557b0a8a367455"),
    "units, gaussian": ([1, 0, 0, 0, 2, 0, -7, 0], "72698347c7d6db68"),
    "free, sequential": ([3, -1, 2], "64abc4329ac441c0"),
    "one sum, sequential": ([0, 0, 1, -1, 1, -1, 0, 0], "eb53b1a39f0b8e65"),
    "grid, sequential": ([0, 0, 0, 0, 0, 0, 0, 0], "cf14e482e0e72d06"),
    "grid, in groups": ([-1, 1, 1, -1, 0, -2, -1, 3], "c7b988e744e2c90d"),
    "general, sequential": ([0, 0, 0, 0, 0, 0, 0, 0], "f40a7e68c299264b"),
    "levels, sequential": ([0, 0, 0, 0, 0, 0, 0, 0], "4e932dd7730ef59a"),
    "units, sequential": ([-3, 4, 3, -4, -3, -1, -6, 2], "c7382c8a62f0ce74"),
    "whole, l2 laplace": ([-3, 2, 1, -9, -5, 2, -2, -2], "aa1300f3ec6fb79f"),
    "free with bounds": ([0, 2, 1], "0f004f117335020e"),
    "one sum with bounds": ([4, 1, 3, 5, 2, 5, 4, 0], "8584b79db3eb82eb"),
    "two cells with bounds": ([1, 7, 0, 8, 4, 4], "6da1583239c28757"),
    "long sum with bounds": ([0, 0, 1, 3, 6, 8, 5, 0], "71c092e88e265e2c"),
    "one sum with bounds, gaussian": ([1, 3, 1, 8, 1, 3, 2, 7], "37bd832e00f6e632"),
    "one sum without bounds": ([-5, 0, 2, 16, 0, -2, 7, 8], "2b126c545955912c"),
    "classes with bounds": ([1, 3, 2, 7, 1, 2, 3, 1], "d992ac8e10d43e50"),
    "square with bounds": ([4, 3, 1, 9, 4, 3, 1, 9], "7eb723dc38509587"),
    "grid with bounds": ([0, 3, 1, 8, 3, 0, 1, 0], "92d35788282ab77b"),
    "free, cell keys": ([0, 2, 4, 3, 4, 0, 1, 0], "0b28a176178839a1"),
    "metropolis, laplace": ([-1, 2, -1, 1, -2, 1, 0, 0], "24beb725806b7bbb"),
    "metropolis, l2 laplace": ([-2, -2, 4, 6, 5], "aa51b4df5e1ab7ca"),
    "metropolis, gaussian": ([0, -1, 0, 1, 0, 1, -2, 1], "0e077c0a2423f380"),
    "line_gibbs, laplace": ([2, -1, -1, -3, 2, 1, 1, -1], "b8f4a8e9145d50d8"),
    "line_gibbs, l2 laplace": ([0, -12, 12, -13, 10], "7edb4674583595c9"),
    "line_gibbs, gaussian": ([1, 0, 0, 0, 0, 1, -3, 2], "0ebed7faba4e48eb"),
}
# fmt: on
"""The first numbers, and the beginning of SHA-256 of all as little-endian 64-bit integers."""


def drawn(name: str) -> Ints:
    sampler = choose(*DRAWN[name]).noise
    with NoiseKey.for_tests("known answers").stream(name) as words:
        return sampler.draw(DRAWS, words)


def published(name: str) -> Ints:
    shape, target, counts = PUBLISHED[name]
    sampler = choose(shape, target).sampler
    assert isinstance(sampler, InputSampler)
    with NoiseKey.for_tests("known answers").stream(name) as words:
        return sampler.publish(np.tile(np.array(counts), (DRAWS, 1)), None, words)


def looked_up(name: str) -> Ints:
    shape, target = KEYED[name]
    sampler = choose(shape, target).sampler
    assert isinstance(sampler, InputSampler)
    places = np.arange(40).reshape(-1, 1)
    return sampler.publish(places % 5, CellKeySums(places * 2654435761 % 2**32), ListedWords([]))


def stepped(name: str) -> Ints:
    kernel = kernel_for(*STEPPED[name])
    with NoiseKey.for_tests("known answers").stream(name) as words:
        state, _ = kernel.run(kernel.start(words), STEPS, words)
    return kernel.cells_of(state)


ANSWERS: dict[str, Callable[[str], Ints]] = {
    **dict.fromkeys(DRAWN, drawn),
    **dict.fromkeys(PUBLISHED, published),
    **dict.fromkeys(KEYED, looked_up),
    **dict.fromkeys(STEPPED, stepped),
}


def answer(name: str) -> tuple[list[int], str]:
    found = ANSWERS[name](name)
    return found.ravel()[:8].tolist(), hashlib.sha256(np.ascontiguousarray(found, dtype="<i8").tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("name", ANSWERS)
def test_words_of_one_key_give_these_numbers(name: str) -> None:
    assert answer(name) == KNOWN[name]


def test_every_row_and_every_kernel_has_a_known_answer() -> None:
    """Rows that tests add for mechanisms of their own are not the package's."""
    assert set(ANSWERS) == set(KNOWN)
    rows = {(shape, target) for shape, target in SAMPLERS if target.__module__.startswith("holdfast.")}
    assert rows == {(type(shape), type(target)) for shape, target, *_ in (*DRAWN.values(), *PUBLISHED.values(), *KEYED.values())}
    assert set(KERNELS) == {name for name, _, _ in STEPPED.values()}


if __name__ == "__main__":
    for row in ANSWERS:
        head, digest = answer(row)
        print(f'    "{row}": ({head}, "{digest}"),')
