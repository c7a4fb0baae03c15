"""Which sampler draws what: nothing easy refused, nothing hopeless accepted, signs and axes in their places."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from holdfast.errors import NoExactSampler
from holdfast.lattices import General, Grid, OneSum
from holdfast.randomness import NoiseKey
from holdfast.samplers import choose
from holdfast.samplers.choose import affordable, gaussian_choice, laplace_choice, rounded_choice
from holdfast.samplers.dyadic_gaussian import LEAST_SIGMA_SQUARED, MOST_SIGMA_SQUARED, DyadicGaussian


def drawn(sampler: Any, n: int, name: str) -> Any:
    with NoiseKey.for_tests(name).stream("words") as words:
        return sampler.draw(n, words)


@pytest.mark.parametrize("sigma_squared", ["1/4", "5/2", "1000001", "1000000000000"])
def test_every_variance_has_a_sampler_on_a_long_sum(sigma_squared: str) -> None:
    """Halving stops at 10^6; beyond, one cell after the other."""
    sampler = gaussian_choice(OneSum(5000), Fraction(sigma_squared)).sampler
    inside = LEAST_SIGMA_SQUARED <= Fraction(sigma_squared) <= MOST_SIGMA_SQUARED
    assert sampler.name == ("dyadic Gaussian" if inside else "sequential Gaussian")
    z = drawn(sampler, 1, f"long sum {sigma_squared}")
    assert z.any()
    assert not z.sum(axis=1).any()


def test_blocks_of_all_sizes_share_the_tables_of_halving() -> None:
    one, other = DyadicGaussian(5000, Fraction(3)), DyadicGaussian(6000, Fraction(3))
    assert all(mine is yours for mine, yours in zip(one._tables, other._tables, strict=True))


@pytest.mark.parametrize("choice", [laplace_choice, gaussian_choice, rounded_choice])
def test_signs_are_those_of_the_kept_sum(choice: Any) -> None:
    """Class sizes that read differently backwards."""
    shape = OneSum(5, (1, 1, 1, -1, -1))
    z = drawn(choice(shape, Fraction(1)).sampler, 200, "signed")
    assert z.any(axis=0).all()
    assert not (shape.matrix() @ z.T).any()


@pytest.mark.parametrize("choice", [laplace_choice, gaussian_choice, rounded_choice])
@pytest.mark.parametrize("shape", [(2, 4, 3), (4, 2, 3), (3, 4)])
def test_axes_stay_in_their_places(choice: Any, shape: tuple[int, ...]) -> None:
    """(2, 4, 3) and (4, 2, 3): the order of the lengths is no permutation that undoes itself, and its inverse."""
    sampler = choice(Grid(shape), Fraction(1, 2)).sampler
    z = drawn(sampler, 100, "axes").reshape(-1, *shape)
    assert z.any()
    for axis in range(1, z.ndim):
        assert not z.sum(axis=axis).any()


class Priced:
    name, cells, expected_tries = "a sampler", 150, 10.0**5

    def draw(self, n: int, words: Any) -> Any:
        raise AssertionError("only its price is asked for")


def test_a_try_of_kleins_sampler_is_dearer() -> None:
    sampler = Priced()
    assert affordable(lambda: sampler, "why", "150 cells", "Gaussian").sampler is sampler
    with pytest.raises(NoExactSampler, match=r"150 cells would need about 1\.0e\+05 tries"):
        affordable(lambda: sampler, "why", "150 cells", "Gaussian", choose.KLEIN_PRICE)


def test_the_basis_of_a_block_is_found_once() -> None:
    shape = General(((2, -3, 1, 0), (0, 1, 2, -3)), (1, 1, 1, 1))
    assert shape.reduced_basis() is shape.reduced_basis()
    with pytest.raises(ValueError, match="read-only"):
        shape.reduced_basis()[0, 0] = 7
    assert not (np.asarray(shape.matrix()) @ shape.reduced_basis()).any()
