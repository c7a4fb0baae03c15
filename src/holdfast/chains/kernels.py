"""Which kernel draws what: made by the word a user writes, from public facts."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from holdfast.chains.protocol import Kernel
from holdfast.chains.target import Decay, Target
from holdfast.errors import InvalidParameter
from holdfast.lattices.shapes import Shape

KERNELS = ("metropolis", "line_gibbs", "block_gibbs")


def kernel_for(name: str, shape: Shape, decay: Decay) -> Kernel:
    """The kernel of this name for blocks of one shape, under weights that fall with the cells' absolute values or squares.

    Guarantees:  it reaches every table of the block; what cannot is refused.
    """
    target = Target(decay, shape.size)
    if name == "metropolis":
        from holdfast.chains.metropolis import Metropolis

        return Metropolis.of_shape(target, shape, jump_rate(shape.dimension))
    if name == "line_gibbs":
        from holdfast.chains.line_gibbs import LineGibbs
        from holdfast.chains.moves import moves_for

        return LineGibbs(target, moves_for(shape))
    if not shape.is_two_way:
        raise InvalidParameter(
            f"sampler='block_gibbs' draws tables whose rows and columns are kept; a block of {shape.size} cells ({shape.name}) is "
            "not of that kind. Use sampler='line_gibbs', or 'auto' with allow_estimated=True."
        )
    from holdfast.chains.block_gibbs import BlockGibbs

    return BlockGibbs(target, (shape.axes[0], shape.axes[1]))


def kernel_of_basis(name: str, basis: NDArray[Any], decay: Decay) -> Kernel:
    """The kernel of this name on the lattice that the columns span, taken whole: for a norm, which never factorises."""
    target = Target(decay, basis.shape[0])
    if name == "metropolis":
        from holdfast.chains.metropolis import Metropolis

        return Metropolis(target, basis, jump_rate(basis.shape[1]))
    if name == "line_gibbs":
        from holdfast.chains.line_gibbs import LineGibbs
        from holdfast.chains.moves import Listed

        return LineGibbs(target, Listed(basis.T))
    raise InvalidParameter(
        "sampler='block_gibbs' needs weights that are products over the cells, which an l2 norm is not. Use 'line_gibbs'."
    )


def usual_kernel(shape: Shape) -> str:
    """What `auto` takes where no exact sampler will do and an estimate is allowed: coupled chains of it meet on the largest blocks."""
    return "block_gibbs" if shape.is_two_way else "line_gibbs"


def jump_rate(dimension: int) -> Fraction:
    """Of Metropolis jumps exp(-rate |e|): near 1 for ten free dimensions and 2.5 for a hundred, as [DGGY22] has it, in quarters."""
    return max(Fraction(1), Fraction(round(2 * math.log(dimension)), 4)) if dimension > 1 else Fraction(1)
