"""Which exact sampler draws Laplace noise of the l1 norm on a block: rejection, or coupling from the past.

Both figures are expected cell draws (`cell_draws`): tries by a pilot that sees no data, times what a try costs by the block's shape. No
clock is read, so that the choice is the same on every machine. Where rejection is cheap anyway it is taken unseen: the other sampler takes
longer to prepare than to draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import NoExactSampler
from holdfast.lattices.shapes import General, Grid
from holdfast.laws import L1Laplace
from holdfast.samplers import choice
from holdfast.samplers.choice import Choice, Compared, Reason, cell_draws, duration, too_many_tries
from holdfast.samplers.protocol import BlockSampler

if TYPE_CHECKING:
    from holdfast.samplers.coupling.sampler import CouplingLaplace

CHEAP = 1_000_000
"""Cell draws, some 50 ms, up to which rejection is taken unseen."""
ASKED = 36
"""A sampler that was asked for may cost this many times more: half an hour."""
MAX_DIMENSION = 250
"""Free dimensions of blocks other than two-way tables, up to which a basis is prepared: 7 x 7 x 7 takes two seconds, and one more for a
draw."""


def grid_laplace(shape: Grid, target: L1Laplace) -> Choice:
    """The better one for a grid."""
    from holdfast.samplers.grid_laplace import GridLaplace, rule_of_thumb_tries

    tries = rule_of_thumb_tries(shape.axes)
    if target.epsilon <= choice.RULE_EPSILON and tries > choice.HOPELESS_TRIES:  # no pilot would say otherwise
        return _better(None, tries, Reason.SMALL_GRID, shape, target)
    rejection = GridLaplace(shape.axes, target.epsilon)
    return _better(rejection, rejection.expected_tries, Reason.SMALL_GRID, shape, target)


def general_laplace(shape: General, target: L1Laplace) -> Choice:
    """The better one for a block of any kept totals."""
    from holdfast.samplers.pivot_laplace import PivotLaplace

    rejection = PivotLaplace(shape.listed_matrix(), target.epsilon)
    return _better(rejection, rejection.expected_tries, Reason.FEW_TOTALS, shape, target)


def choose_coupling(shape: Grid | General, target: L1Laplace) -> Choice:
    """Coupling from the past, because it was asked for."""
    try:
        return Choice(_coupling(shape, target, ASKED * choice.MAX_CELL_TRIES), Reason.ASKED)
    except NoExactSampler as refusal:
        raise NoExactSampler(f'{refusal} With sampler = "auto" rejection is looked at too: it draws the same law.') from None


def _better(rejection: BlockSampler | None, tries: float, reason: Reason, shape: Grid | General, target: L1Laplace) -> Choice:
    """By expected cell draws; NoExactSampler where neither ends in reasonable time."""
    by_rejection = shape.size * tries
    if rejection is not None and by_rejection <= min(CHEAP, choice.MAX_CELL_TRIES):
        return Choice(rejection, reason)
    is_affordable = rejection is not None and by_rejection <= choice.MAX_CELL_TRIES
    try:
        coupling = _coupling(shape, target, choice.MAX_CELL_TRIES)
    except NoExactSampler as refusal:
        if rejection is None or not is_affordable:
            raise NoExactSampler(f"{too_many_tries(shape, tries, target)} {refusal}") from None
        return Choice(rejection, reason, note=str(refusal))
    by_coupling = cell_draws(coupling)
    if rejection is None or by_coupling <= by_rejection:
        return Choice(coupling, Reason.COUPLED, Compared(by_coupling, by_rejection))
    return Choice(rejection, reason, Compared(by_rejection, by_coupling))


def _coupling(shape: Grid | General, target: L1Laplace, most: float) -> CouplingLaplace:
    """The sampler; NoExactSampler where it costs more than `most` cell draws, or where there is none for this epsilon.

    The cost of one try is known by the shape: where a pilot's would be too much already, nothing is prepared.
    """
    from holdfast.samplers.coupling.cost import LEAST_TRIES, try_cost

    is_two_way = isinstance(shape, Grid) and len(shape.axes) == 2
    if not is_two_way and shape.dimension > MAX_DIMENSION:
        raise NoExactSampler(
            f"Coupling from the past takes up to {MAX_DIMENSION} free dimensions of such a block, and this one has {shape.dimension}."
        )
    one_try = try_cost(shape.axes, shape.size - shape.dimension)
    _check_cost(one_try, most)
    pilot = LEAST_TRIES * one_try
    if pilot > most:
        raise NoExactSampler(f"Trying out coupling from the past would take {duration(pilot)}, which is refused.{_on_request(pilot, most)}")
    from holdfast.samplers.coupling.sampler import CouplingLaplace

    if isinstance(shape, Grid):
        sampler = CouplingLaplace.of_grid(shape.axes, target.epsilon)
    else:
        sampler = CouplingLaplace.of_rows(shape.listed_matrix(), target.epsilon)
    _check_cost(cell_draws(sampler), most)
    return sampler


def _check_cost(cost: float, most: float) -> None:
    if cost > most:
        took = duration(cost)
        raise NoExactSampler(f"Coupling from the past would take {took} for one draw, which is refused.{_on_request(cost, most)}")


def _on_request(cost: float, most: float) -> str:
    """What whoever asks for the sampler by name gets, where it has not been asked for."""
    is_allowed = most == choice.MAX_CELL_TRIES and cost <= ASKED * choice.MAX_CELL_TRIES
    return ' sampler = "coupling_from_past" allows half an hour for a draw.' if is_allowed else ""
