"""Which sampler draws a block with bounds; by public facts alone."""

from __future__ import annotations

from holdfast.errors import NoExactSampler
from holdfast.lattices.shapes import Bounded, Free, OneSum
from holdfast.laws import ConditionalLaplace, L1Laplace
from holdfast.samplers.added import Added
from holdfast.samplers.table import Choice, Reason, choose


def bounded_laplace(shape: Bounded, target: ConditionalLaplace) -> Choice:
    """The sampler of a block with bounds under the conditional Laplace law."""
    if not shape.has_bounds:  # the law of the noise does not depend on the counts
        plain = choose(shape.shape, L1Laplace(target.rate))
        return Choice(Added(plain.noise), plain.reason)
    if isinstance(shape.shape, Free) and shape.size == 1 and not shape.rows:
        from holdfast.samplers.bounded_free import BoundedFree

        return Choice(BoundedFree(shape, target.rate), Reason.NO_TOTAL)
    if isinstance(shape.shape, OneSum) and not shape.rows:
        from holdfast.samplers.bounded_one_sum import BoundedOneSum

        return Choice(BoundedOneSum(shape, target.rate), Reason.ONE_TOTAL)
    raise NoExactSampler(f"No exact sampler draws blocks of the kind {shape.name!r}.")
