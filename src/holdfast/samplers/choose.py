"""Which sampler draws which kind of block: decided from public facts before anything is drawn, never changed by how a run goes.

    block      Laplace, l1                      Gaussian                                   rounded projection
    free       independent                      independent                                independent
    one sum    corrected geometrics             halving; one cell after the other (small)  projection, random subset
    grid       rejection slice by slice         one cell after the other; mirrored         projection, controlled rounding or nearest plane
    general    rejection on pivot cells         Klein's sampler with the accept step       projection, nearest plane

What would take longer than MAX_CELL_TRIES cell draws on average is refused, with the mechanisms that would do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.errors import NoExactSampler
from holdfast.exact import DiscreteGaussian, DiscreteLaplace
from holdfast.lattices import algebra
from holdfast.lattices.blocks import Template
from holdfast.samplers.independent import Independent, Signed
from holdfast.samplers.protocol import BlockSampler

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_CELL_TRIES = 10**9
"""Cells times expected tries beyond which a block is refused: some ten seconds to a minute on one core."""
KLEIN_PRICE = 100
"""A cell of Klein's sampler costs about as much as so many of the others: some ten microseconds."""
MAX_DENSE_DIMENSION = 150
"""Free dimensions of a general block beyond which its exact Gram-Schmidt form is not computed."""
HOPELESS_TRIES = 1e12
"""By rule of thumb, at small epsilon: refused without a pilot."""
HALVING_CELLS = 4096
HALVING_SIGMA_SQUARED = Fraction(5, 2), Fraction(10**6)
"""Where halving beats drawing one cell after the other, and loses nothing to its accept step; above, its tables would be too large."""


@dataclass(frozen=True)
class Choice:
    """The sampler of a kind of block, and why it was chosen."""

    sampler: BlockSampler
    why: str


@lru_cache(maxsize=256)
def laplace_choice(template: Template, epsilon: Fraction) -> Choice:
    """For weights exp(-epsilon |z|_1)."""
    kind = template.kind
    if kind == "free":
        return Choice(Independent(DiscreteLaplace.of_rate(epsilon), template.size), "under no kept total")
    if kind == "one sum":
        from holdfast.samplers.one_sum_laplace import OneSumLaplace

        return Choice(_signed(OneSumLaplace(template.size, epsilon), template), "one kept total over its cells")
    if kind == "grid":
        from holdfast.samplers.grid_laplace import GridLaplace, rule_of_thumb_tries

        if epsilon <= Fraction(1, 2) and rule_of_thumb_tries(template.shape) > HOPELESS_TRIES:  # no pilot would say otherwise
            raise NoExactSampler(_too_many(_shape(template), rule_of_thumb_tries(template.shape), "Laplace"))
        return affordable(lambda: GridLaplace(template.shape, epsilon), "a grid small enough for rejection", _shape(template), "Laplace")
    rows = _listed_rows(template)
    from holdfast.samplers.pivot_laplace import PivotLaplace

    return affordable(lambda: PivotLaplace(rows, epsilon), "few enough kept totals for rejection", _shape(template), "Laplace")


@lru_cache(maxsize=256)
def gaussian_choice(template: Template, sigma_squared: Fraction) -> Choice:
    """For weights exp(-|z|_2^2 / (2 sigma_squared))."""
    kind = template.kind
    if kind == "free":
        return Choice(Independent(DiscreteGaussian(sigma_squared), template.size), "under no kept total")
    if kind == "one sum" and template.size >= HALVING_CELLS and HALVING_SIGMA_SQUARED[0] <= sigma_squared <= HALVING_SIGMA_SQUARED[1]:
        from holdfast.samplers.dyadic_gaussian import DyadicGaussian

        return Choice(_signed(DyadicGaussian(template.size, sigma_squared), template), "one kept total over many cells")
    if kind in ("one sum", "grid"):
        from holdfast.samplers.sequential_gaussian import SequentialGaussian

        why = "one kept total over its cells" if kind == "one sum" else "a product of axes with all sums along each kept"
        if 2 in template.shape:
            return Choice(_signed(_mirrored(template.shape, sigma_squared), template), why)
        return affordable(lambda: _signed(SequentialGaussian(template.shape, sigma_squared), template), why, _shape(template), "Gaussian")
    from holdfast.samplers.klein import KleinGaussian

    basis = general_basis(template)
    why = "kept totals of no simpler shape"
    return affordable(lambda: KleinGaussian(basis, sigma_squared), why, _shape(template), "Gaussian", KLEIN_PRICE)


@lru_cache(maxsize=256)
def rounded_choice(template: Template, epsilon: Fraction) -> Choice:
    """For independent Laplace noise projected and rounded."""
    kind = template.kind
    if kind == "free":
        return Choice(Independent(DiscreteLaplace.of_rate(epsilon), template.size), "under no kept total")
    if kind == "one sum":
        from holdfast.samplers.rounded_one_sum import RoundedOneSum

        return Choice(_signed(RoundedOneSum(template.size, epsilon), template), "one kept total over its cells")
    if kind == "grid" and len(template.shape) == 2:
        from holdfast.samplers.controlled_rounding import RoundedGrid2

        return Choice(RoundedGrid2(template.shape, epsilon), "rows and columns kept: controlled rounding")
    if kind == "grid":
        from holdfast.samplers.rounded_grid import RoundedGrid

        return Choice(RoundedGrid(template.shape, epsilon), "a product of axes with all sums along each kept")
    from holdfast.samplers.nearest_plane import NearestPlane

    return Choice(NearestPlane(general_basis(template), epsilon), "kept totals of no simpler shape")


def _mirrored(shape: tuple[int, ...], sigma_squared: Fraction) -> BlockSampler:
    """Axes of length two halve the variance of what is left."""
    from holdfast.samplers.mirrored import Mirrored

    others = tuple(length for length in shape if length != 2)
    beneath = sigma_squared / 2 ** (len(shape) - len(others))
    if not others:
        return Mirrored(Independent(DiscreteGaussian(beneath), 1), shape)
    return Mirrored(gaussian_choice(Template("one sum" if len(others) == 1 else "grid", others), beneath).sampler, shape)


def _signed(sampler: BlockSampler, template: Template) -> BlockSampler:
    rows = template.matrix()
    return sampler if rows is None else Signed(sampler, np.sign(rows[0]))


def affordable(make: Callable[[], BlockSampler], why: str, shape: str, law: str, price: int = 1) -> Choice:
    """The sampler, if its expected work is bounded; the number of tries comes from a bound or from a pilot that sees no data."""
    sampler = make()
    if not sampler.expected_tries * sampler.cells * price <= MAX_CELL_TRIES:
        raise NoExactSampler(_too_many(shape, sampler.expected_tries, law))
    return Choice(sampler, why)


def _too_many(shape: str, tries: float, law: str) -> str:
    return f"A block of {shape} would need about {tries:.1e} tries for one exact {law} draw, which is refused. {_ALTERNATIVES[law]}"


_ALTERNATIVES: dict[str, str] = {
    "Laplace": "Use GeneralizedGaussian, or RoundedProjection with the same epsilon: pure, exact, and hardly noisier on large blocks. "
    "Or allow a Markov chain with allow_estimated=True: its promise is an estimate.",
    "l2 Laplace": "Use norm='l1', or GeneralizedGaussian, whose guarantee is in l2 too. Or allow a Markov chain with allow_estimated=True.",
    "Gaussian": "Use a larger sigma_squared (more noise), or RoundedProjection. Or allow a Markov chain with allow_estimated=True.",
}


def _listed_rows(template: Template) -> NDArray[Any]:
    rows = template.matrix()
    if rows is None:
        raise NoExactSampler(_too_large(template))
    return rows


@lru_cache(maxsize=256)
def general_basis(template: Template) -> NDArray[Any]:
    """A reduced basis of a general block's moves, as columns. Shared by all who ask: not to be written to."""
    if template.rows is None or template.dimension > MAX_DENSE_DIMENSION:
        raise NoExactSampler(_too_large(template))
    basis = algebra.to_numpy(algebra.reduced_basis(algebra.kernel_basis(_listed_rows(template))))
    basis.flags.writeable = False
    return basis


def _too_large(template: Template) -> str:
    return (
        f"The kept totals link {template.size} cells in a way that has no exact sampler for this size ({template.dimension} free "
        f"dimensions; up to {MAX_DENSE_DIMENSION} are drawn). Keep fewer totals, nested ones, or all sums along the axes of a product."
    )


def _shape(template: Template) -> str:
    return " x ".join(map(str, template.shape)) + (" cells" if len(template.shape) == 1 else "")
