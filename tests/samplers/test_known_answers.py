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

from holdfast.chains.kernels import KERNELS, kernel_for
from holdfast.lattices.shapes import Bounded, Free, General, Grid, Levels, OneSum, Shape, Units, Whole
from holdfast.lattices.trees import Tree
from holdfast.laws import ConditionalGaussian, ConditionalLaplace, Gaussian, L1Laplace, L2Laplace, LevelGaussian, Rounded, Target
from holdfast.randomness import NoiseKey
from holdfast.samplers.protocol import InputSampler, Ints
from holdfast.samplers.table import SAMPLERS, choose

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
    "block_gibbs, laplace": ("block_gibbs", Grid((3, 3)), L1Laplace(QUARTER)),
    "block_gibbs, gaussian": ("block_gibbs", Grid((3, 4)), Gaussian(Fraction(12))),
}

# fmt: off
KNOWN: dict[str, tuple[list[int], str]] = {
    "free, laplace": ([5, -1, -1], "b42542cc5943018e"),
    "free, wide laplace": ([294251, 515145, -379711], "e660cf40ade304ac"),
    "free, gaussian": ([-2, 1, -4], "0bd2e78080fc4477"),
    "free, wide gaussian": ([-720957, 2159884, 1077687], "8c58d575bd376f1c"),
    "free, rounded": ([6, 8, -7], "c4689520a9d5058f"),
    "one sum, laplace": ([-1, 2, 1, -2, 7, 3, -1, -9], "081373cafba435a8"),
    "one sum with signs, laplace": ([-5, 5, -4, -1, -3, 3, 1, -6], "b81789f357191f1d"),
    "long sum, laplace": ([16, 0, 5, -5, -2, -8, 2, -1], "14ef9336ab2942c0"),
    "one sum, gaussian": ([0, 2, -1, -1, 0, 0, 3, -3], "7af14ab8c08bcade"),
    "one sum of two, gaussian": ([1, -1, 0, 0, -1, 1], "42df18069e73425f"),
    "long sum, gaussian": ([-1, -17, -8, -19, 8, 5, 14, 13], "f55f0564c8ed1374"),
    "one sum, rounded": ([5, -1, -3, -1, -3, 6, 2, -5], "e79dd45aee40a00a"),
    "grid, laplace": ([-2, 0, 2, -1, 0, 1, 3, 0], "540bfc8523ca8b10"),
    "thin grid, laplace": ([0, 0, 0, 0, 0, 0, 2, -3], "54ec67805303dc37"),
    "coupled grid, laplace": ([0, 0, 1, 1, -2, 0, 1, 0], "a461dc3484373260"),
    "grid, gaussian": ([0, 0, -2, 2, -1, -1, 3, -1], "e623b778cea10811"),
    "thin grid, gaussian": ([1, -1, -1, 1, 0, 0, -1, 1], "0811619cf408af26"),
    "grid, rounded": ([1, 0, 4, -5, -1, -1, -1, 3], "ee06d465c3a0ee6d"),
    "grid of three axes, rounded": ([-2, 2, 2, -2, 0, 0, -1, 1], "67e399f0a79b826c"),
    "general, laplace": ([3, 2, -2, -5, -1, 0, 4, -1], "6a6ad782f3f697ab"),
    "general, gaussian": ([0, -3, -2, 0, -1, 2, 0, 1], "197933966c4dab05"),
    "general, rounded": ([-5, -9, -5, 4, 0, 4, 0, 1], "37aa602cd8f13f90"),
    "classes, gaussian": ([2, 3, 2, 1, 0, 0, 1, 2], "5014c834f5dd9711"),
    "classes, rounded": ([2, -2, -1, 0, 1, -22, -6, 3], "1c330c800996e0e4"),
    "levels, laplace": ([2, 0, -1, -1, -1, 1, -1, 7], "10ecfbc0dd4dca5b"),
    "levels, gaussian": ([-2, 0, 3, -1, -1, 1, 0, 2], "18f73d00e77a2a75"),
    "levels, rounded": ([-3, 6, 2, -5, 1, -1, 3, 10], "31b24c6034e13b34"),
    "units, gaussian": ([-2, -3, 4, 3, -2, 0, -1, 2], "65356c3b06459805"),
    "whole, l2 laplace": ([2, 4, -6, 5, 4, 4, -4, -4], "6e738da4a00a1b72"),
    "free with bounds": ([3, 2, 3], "47961f3a97653a43"),
    "one sum with bounds": ([3, 2, 3, 6, 1, 1, 0, 3], "317f7e187e72ab91"),
    "two cells with bounds": ([1, 7, 1, 7, 3, 5], "3e2f5dfd062e1ef7"),
    "long sum with bounds": ([1, 2, 2, 5, 2, 0, 3, 0], "48753c7f4d1b5891"),
    "one sum with bounds, gaussian": ([1, 4, 1, 7, 1, 3, 1, 8], "c0069b7a8fa2d1fb"),
    "one sum without bounds": ([13, -2, -5, 7, 1, 3, 2, 7], "473b758b19411f4c"),
    "classes with bounds": ([1, 1, 1, 10, 3, 0, 3, 0], "7b2163bbb8ec30ea"),
    "square with bounds": ([3, 4, 2, 8, 5, 2, 0, 10], "34474db3e3d96e08"),
    "grid with bounds": ([0, 4, 0, 8, 2, 1, 1, 0], "5b9b16f3f46cfccc"),
    "metropolis, laplace": ([-1, 0, 1, 2, 0, -2, -1, 0], "9034a4edf2b7c1dc"),
    "metropolis, l2 laplace": ([2, 2, -4, -9, 4], "9c72897feddb06bc"),
    "metropolis, gaussian": ([1, -2, 0, -1, -3, 0, 2, 1], "069016b3bf7e1977"),
    "line_gibbs, laplace": ([-1, 2, -1, 0, -1, 1, 1, -1], "e150e2c52420fab1"),
    "line_gibbs, l2 laplace": ([-1, -6, 7, 15, 8], "b9e8ed47d647a40a"),
    "line_gibbs, gaussian": ([-1, -1, -1, -1, -1, -1, 1, 2], "d5707c1db687bf4e"),
    "block_gibbs, laplace": ([6, -4, -2, -7, 2, 5, 1, 2], "4343a06d1da6a6f3"),
    "block_gibbs, gaussian": ([3, 2, -2, -3, -2, -2, 3, 1], "10b6c4b12745b960"),
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


def stepped(name: str) -> Ints:
    kernel = kernel_for(*STEPPED[name])
    with NoiseKey.for_tests("known answers").stream(name) as words:
        state, _ = kernel.run(kernel.start(words), STEPS, words)
    return kernel.cells_of(state)


ANSWERS: dict[str, Callable[[str], Ints]] = {
    **dict.fromkeys(DRAWN, drawn),
    **dict.fromkeys(PUBLISHED, published),
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
    assert rows == {(type(shape), type(target)) for shape, target, *_ in (*DRAWN.values(), *PUBLISHED.values())}
    assert set(KERNELS) == {name for name, _, _ in STEPPED.values()}


if __name__ == "__main__":
    for row in ANSWERS:
        head, digest = answer(row)
        print(f'    "{row}": ({head}, "{digest}"),')
