"""Axes of length two: the law against full enumeration, where single axes or all of them are of length two."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from holdfast.lattices.shapes import Grid, OneSum
from holdfast.laws import Gaussian
from holdfast.randomness import NoiseKey
from holdfast.samplers.protocol import Mirrored
from holdfast.samplers.table import choose
from holdfast.testing import check_fit_categories
from holdfast.testing.fit import chi_square_p_value

SHAPES = [(2,), (2, 2), (2, 3), (3, 2), (2, 2, 2), (2, 3, 2)]
DRAWS = 1_000_000


def law_of_squares(shape: tuple[int, ...], sigma_squared: float) -> dict[int, float]:
    """The law of |z|^2 over all arrays with zero sums, by enumeration of the cells that are free; far squares are one."""
    lengths = [length - 1 for length in shape]
    free = int(np.prod(lengths))
    masses: dict[int, float] = {}
    for values in product(range(-9, 10), repeat=free):
        z = np.array(values).reshape(lengths)
        for axis in range(len(shape)):
            z = np.concatenate([z, -z.sum(axis=axis, keepdims=True)], axis=axis)
        square = int((z * z).sum())
        masses[min(square, 200)] = masses.get(min(square, 200), 0.0) + float(np.exp(-square / (2 * sigma_squared)))
    total = sum(masses.values())
    return {square: masses[square] / total for square in sorted(masses)}


@pytest.mark.ordinary("shape0", "shape1", "shape3")
@pytest.mark.parametrize("shape", SHAPES)
def test_draws_follow_the_enumerated_law_and_two_percent_are_seen(shape: tuple[int, ...]) -> None:
    sigma_squared = Fraction(3)
    sampler = choose(OneSum(*shape) if len(shape) == 1 else Grid(shape), Gaussian(sigma_squared)).sampler
    assert isinstance(sampler, Mirrored)
    with NoiseKey.for_tests(f"mirrored {shape}") as key, key.stream("draws") as words:
        draws = sampler.draw(DRAWS, words).reshape(DRAWS, *shape)
    for axis in range(1, draws.ndim):
        assert not draws.sum(axis=axis).any()
    squares = np.minimum((draws.reshape(DRAWS, -1) ** 2).sum(axis=1), 200)
    law = law_of_squares(shape, 3.0)
    check_fit_categories(Counter(squares.tolist()), law, name=f"mirrored Gaussian on {shape}")
    wrong = law_of_squares(shape, 3.06)
    assert chi_square_p_value([int((squares == k).sum()) for k in wrong], list(wrong.values()), DRAWS) < 1e-9


def test_small_variances_on_long_rows_of_two_are_no_longer_refused() -> None:
    sampler = choose(Grid((1000, 2)), Gaussian(Fraction(1, 4))).noise
    assert sampler.expected_tries < 10
    with NoiseKey.for_tests("thin").stream("draws") as words:
        drawn = sampler.draw(1, words).reshape(1000, 2)
    assert not drawn.sum(axis=0).any()
    assert not drawn.sum(axis=1).any()
