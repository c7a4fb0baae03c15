"""Which kernels there are and what they draw: one table, by the word a user writes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction

from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.metropolis import Metropolis
from holdfast.chains.moves import moves_for
from holdfast.chains.protocol import Kernel
from holdfast.chains.target import ChainTarget, Decay
from holdfast.errors import InvalidParameter
from holdfast.lattices.shapes import Shape
from holdfast.laws import Gaussian, L1Laplace, L2Laplace
from holdfast.laws import Target as LawTarget


def _metropolis(target: ChainTarget, shape: Shape) -> Kernel:
    return Metropolis.of_shape(target, shape, jump_rate(shape.dimension))


def _line_gibbs(target: ChainTarget, shape: Shape) -> Kernel:
    return LineGibbs(target, moves_for(shape))


KERNELS: dict[str, Callable[[ChainTarget, Shape], Kernel]] = {"metropolis": _metropolis, "line_gibbs": _line_gibbs}
"""What makes each kernel for a shape; both take every shape."""
USUAL_KERNEL = "line_gibbs"
"""What `auto` takes where no exact sampler works and an estimate is allowed."""

DECAYS: dict[type[LawTarget], Callable[..., Decay]] = {
    L1Laplace: lambda target: Decay("absolute", target.epsilon),
    L2Laplace: lambda target: Decay("norm", target.epsilon),
    Gaussian: lambda target: Decay("squares", 1 / (2 * target.sigma_squared)),
}
"""How the weights of a law fall with its energy: the laws that a chain can draw."""


def kernel_for(name: str, shape: Shape, target: LawTarget) -> Kernel:
    """The kernel of this name for blocks of one shape.

    Guarantees:  it reaches every table of the block; what cannot is refused.
    """
    return KERNELS[name](ChainTarget(decay_of(target), shape.size), shape)


def decay_of(target: LawTarget) -> Decay:
    """InvalidParameter where the law has no weights that a chain could compare."""
    if type(target) not in DECAYS:
        raise InvalidParameter(
            "This mechanism has no chains: there is nothing to diagnose. Chains draw generalized-laplace and generalized-gaussian."
        )
    return DECAYS[type(target)](target)


def chain_seed(name: str, shape: Shape, target: LawTarget) -> str:
    """Names the coupled pairs of a kernel on a shape: the same for a release and for its diagnosis."""
    return json.dumps([name, shape.fields, target.fields])


def jump_rate(dimension: int) -> Fraction:
    """Rate of Metropolis jumps exp(-rate |e|): near 1 for ten free dimensions and 2.5 for a hundred, as [DGGY22] has it, in quarters."""
    return max(Fraction(1), Fraction(round(2 * math.log(dimension)), 4)) if dimension > 1 else Fraction(1)
