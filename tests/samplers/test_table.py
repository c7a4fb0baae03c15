"""Which sampler draws what: nothing easy refused, nothing hopeless accepted, signs and axes in their places."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from holdfast.errors import NoExactSampler
from holdfast.lattices.shapes import Bounded, Free, General, Grid, Levels, OneSum, Shape, Units, Whole
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
from holdfast.samplers.choice import Reason, affordable
from holdfast.samplers.dyadic_gaussian import LEAST_SIGMA_SQUARED, MOST_SIGMA_SQUARED, DyadicGaussian
from holdfast.samplers.table import HALVING_SIGMA_SQUARED, KLEIN_PRICE, SAMPLERS, choose


def drawn(sampler: Any, n: int, name: str) -> Any:
    with NoiseKey.for_tests(name).stream("words") as words:
        return sampler.draw(n, words)


@pytest.mark.parametrize("sigma_squared", ["1/4", "5/2", "1000001", "1000000000000"])
def test_every_variance_has_a_sampler_on_a_long_sum(sigma_squared: str) -> None:
    """Halving stops at 10^6; beyond, one cell after the other."""
    sampler = choose(OneSum(5000), Gaussian(Fraction(sigma_squared))).sampler
    assert list(HALVING_SIGMA_SQUARED) == [LEAST_SIGMA_SQUARED, MOST_SIGMA_SQUARED]
    least, most = HALVING_SIGMA_SQUARED
    inside = least <= Fraction(sigma_squared) <= most
    assert sampler.name == ("dyadic Gaussian" if inside else "sequential Gaussian")
    z = drawn(sampler, 1, f"long sum {sigma_squared}")
    assert z.any()
    assert not z.sum(axis=1).any()


def test_blocks_of_all_sizes_share_the_tables_of_halving() -> None:
    one, other = DyadicGaussian(5000, Fraction(3)), DyadicGaussian(6000, Fraction(3))
    assert all(mine is yours for mine, yours in zip(one._tables, other._tables, strict=True))


@pytest.mark.parametrize("law", [L1Laplace, Gaussian, Rounded])
def test_signs_are_those_of_the_kept_sum(law: Any) -> None:
    """Class sizes that read differently backwards."""
    shape = OneSum(5, (1, 1, 1, -1, -1))
    z = drawn(choose(shape, law(Fraction(1))).sampler, 200, "signed")
    assert z.any(axis=0).all()
    assert not (shape.matrix() @ z.T).any()


@pytest.mark.parametrize("law", [L1Laplace, Gaussian, Rounded])
@pytest.mark.parametrize("shape", [(2, 4, 3), (4, 2, 3), (3, 4)])
def test_axes_stay_in_their_places(law: Any, shape: tuple[int, ...]) -> None:
    """(2, 4, 3) and (4, 2, 3): the order of the lengths is no permutation that undoes itself, and its inverse."""
    sampler = choose(Grid(shape), law(Fraction(1, 2))).sampler
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
    shape, target = General.without_rows(150, 3), Gaussian(Fraction(1))
    assert affordable(lambda: sampler, Reason.GENERAL, shape, target).sampler is sampler
    with pytest.raises(NoExactSampler, match=r"150 cells would need about 1\.0e\+05 tries for one exact Gaussian draw"):
        affordable(lambda: sampler, Reason.GENERAL, shape, target, KLEIN_PRICE)


@pytest.mark.parametrize("law", [Rounded, type("Foreign", (Rounded,), {})])
def test_a_target_without_a_word_of_its_own_is_refused_all_the_same(law: Any) -> None:
    shape, target = General.without_rows(150, 3), law(Fraction(1))
    with pytest.raises(NoExactSampler, match=r"tries for one exact draw, which is refused\.$"):
        affordable(Priced, Reason.OTHER, shape, target, KLEIN_PRICE)


def test_what_no_row_draws_is_refused() -> None:
    class Unknown(Rounded):
        """A target that no row names."""

    with pytest.raises(NoExactSampler, match="No sampler draws blocks of the kind 'one sum' under this mechanism"):
        choose(OneSum(3), Unknown(Fraction(1)))


def test_every_shape_of_a_lattice_has_a_row_for_every_law_that_splits() -> None:
    """Only fixed cells need none; the lattice taken whole is for laws that are no product over blocks, units are for levels, and noise
    by cell keys keeps no total."""
    shapes: tuple[type[Shape], ...] = (Free, OneSum, Grid, Levels, General)
    splitting: tuple[type[Target], ...] = (L1Laplace, Gaussian, Rounded, Sequential)
    rows = {(shape, law) for shape, law in SAMPLERS if law.__module__.startswith("holdfast.")}
    assert rows == {(shape, law) for shape in shapes for law in splitting} | {
        (Free, Keyed),
        (Whole, L2Laplace),
        (Units, LevelGaussian),
        (Units, Sequential),
        (Bounded, ConditionalLaplace),
        (Bounded, ConditionalGaussian),
    }


def test_the_basis_of_a_block_is_found_once() -> None:
    shape = General(((2, -3, 1, 0), (0, 1, 2, -3)), (1, 1, 1, 1))
    assert shape.reduced_basis() is shape.reduced_basis()
    with pytest.raises(ValueError, match="read-only"):
        shape.reduced_basis()[0, 0] = 7
    assert not (np.asarray(shape.matrix()) @ shape.reduced_basis()).any()
