"""Which kernel draws what: made by the word a user writes, from public facts."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from holdfast.chains.protocol import Kernel
from holdfast.chains.target import Decay, Target
from holdfast.errors import InvalidParameter
from holdfast.lattices.blocks import Template

KERNELS = ("metropolis", "line_gibbs", "block_gibbs")


def kernel_for(name: str, template: Template, decay: Decay) -> Kernel:
    """The kernel of this name for blocks of one shape, under weights that fall with the cells' absolute values or squares.

    Guarantees:  it reaches every table of the block; what cannot is refused.
    """
    target = Target(decay, template.size)
    if name == "metropolis":
        from holdfast.chains.metropolis import Metropolis

        return Metropolis.of_template(target, template, jump_rate(template.dimension))
    if name == "line_gibbs":
        from holdfast.chains.line_gibbs import LineGibbs
        from holdfast.chains.moves import moves_for

        return LineGibbs(target, moves_for(template))
    if template.kind != "grid" or len(template.shape) != 2:
        raise InvalidParameter(
            f"sampler='block_gibbs' draws tables whose rows and columns are kept; a block of {template.size} cells ({template.kind}) is "
            "not of that kind. Use sampler='line_gibbs', or 'auto' with allow_estimated=True."
        )
    from holdfast.chains.block_gibbs import BlockGibbs

    return BlockGibbs(target, (template.shape[0], template.shape[1]))


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


def usual_kernel(template: Template) -> str:
    """What `auto` takes where no exact sampler will do and an estimate is allowed: coupled chains of it meet on the largest blocks."""
    return "block_gibbs" if template.kind == "grid" and len(template.shape) == 2 else "line_gibbs"


def jump_rate(dimension: int) -> Fraction:
    """Of Metropolis jumps exp(-rate |e|): near 1 for ten free dimensions and 2.5 for a hundred, as [DGGY22] has it, in quarters."""
    return max(Fraction(1), Fraction(round(2 * math.log(dimension)), 4)) if dimension > 1 else Fraction(1)
