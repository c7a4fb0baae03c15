"""What could be drawn instead of noise that has no exact sampler on this table: only what was tried, on all of its blocks.

To try is to choose the samplers, as a plan would; nothing is drawn. Blocks that take long to prepare are not tried, and then nothing is
named for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from holdfast.chains.kernels import DECAYS, USUAL_KERNEL, kernel_for
from holdfast.channels.channel import EXACT_ONLY, Channel
from holdfast.channels.covariance import of_shape
from holdfast.errors import HoldfastError
from holdfast.exact.formatting import format_amount, round_figure
from holdfast.lattices.norms import L1
from holdfast.lattices.shapes import Shape
from holdfast.laws import ConditionalGaussian, ConditionalLaplace, Gaussian, L1Laplace, L2Laplace, Rounded, Target
from holdfast.privacy.estimated import check_can_weaken
from holdfast.privacy.parameters import DISTANCE
from holdfast.samplers.table import choose

MAX_DIMENSION = 250
"""Free dimensions of a general block up to which a sampler is tried: a second or two."""
DRAWN_DIMENSION = 100
"""Up to which a variance that has no closed form is estimated from draws, a second or so; beyond it is a bound."""

CHAIN = (
    "A Markov chain, line_gibbs, takes any kind of table, if its pairs meet (allow_estimated = true). Its promise is an estimate; "
    "`holdfast diagnose` shows whether the pairs meet."
)

ANSWERS = 'Use a smaller step: the noise then has more. mechanism = "projected-laplace" (ProjectedLaplace) is drawn for any invariants.'

OTHER_LAW = 'Use law = "auto" and sampler = "auto": the sequential law draws each cell once, at any budget.'

NOT_TRIED = f"Other noise was not tried, because blocks beyond {MAX_DIMENSION} free dimensions take long to prepare; a plan tells about it:"

WITHOUT_BOUNDS = "the same budget without bounds and rows (generalized-laplace, or generalized-gaussian in rho)"
AUTO_DRAWS = 'No chain is needed: sampler = "auto" draws this law exactly here. Leave sampler out.'

NO_CELLS = np.zeros((0, 0), dtype=np.int64)

Proposal = tuple[str, Target]
"""(how a user asks for it; what it draws)."""


def advice(channel: Channel) -> str:
    """Sentences for a refusal: what draws this table exactly, as was tried, and whether a Markov chain can be made for it."""
    if not channel.facts.measure.whole:
        return ANSWERS
    if is_drawn_by_auto(channel):
        return AUTO_DRAWS
    law = channel.guarantee.law
    if law is not None and law.asked == "lattice":
        return OTHER_LAW
    tried = (next((one for one in group if is_drawn_exactly(channel, one[1])), None) for group in _proposals(channel))
    found = [text + _variance_note(channel, target) + _budget_note(channel, target) for text, target in filter(None, tried)]
    said = f"Drawn exactly here, as was tried: {'; '.join(found)}." if found else "No other noise was found that is drawn exactly here."
    if not found and _takes_long(channel.facts.moves.blocks.shapes):
        said = f"{NOT_TRIED} {'; '.join(group[0][0] for group in _proposals(channel))}."
    if not found:
        said += ' mechanism = "suppression" (Suppression) publishes the kept totals alone.'
    return f"{said} {CHAIN}" if _has_chain(channel) else said


def is_drawn_by_auto(channel: Channel) -> bool:
    """Whether a chain was asked for by name, and every block has an exact sampler for the same law."""
    return channel.request.names_a_chain and is_drawn_exactly(channel, channel.target)


def is_drawn_exactly(channel: Channel, target: Target) -> bool:
    """Whether every block of this table has an exact sampler for another target."""
    if _takes_long(channel.facts.moves.blocks.shapes):
        return False
    try:
        other = replace(channel, target=target, request=EXACT_ONLY, layout=None)
        for shape in other.shapes():
            choose(shape, target)
    except HoldfastError:
        return False
    return True


def _takes_long(shapes: Iterable[Shape]) -> bool:
    return any(shape.dense_dimension > MAX_DIMENSION for shape in shapes)


def _proposals(channel: Channel) -> list[list[Proposal]]:
    """What may serve instead, noise of about the same size; each is still to be tried. Of a group only the first that works is named."""
    target, promised = channel.target, channel.guarantee
    if isinstance(target, ConditionalLaplace) and promised.epsilon is not None:
        return [[(WITHOUT_BOUNDS, L1Laplace(promised.epsilon))], *_for_laplace(L1Laplace(promised.epsilon))]
    if isinstance(target, ConditionalGaussian) and promised.rho is not None:
        return [[(WITHOUT_BOUNDS, Gaussian(1 / (2 * promised.rho)))]]
    made = _INSTEAD.get(type(target))
    return [] if made is None else made(target)


def _variance_note(channel: Channel, other: Target) -> str:
    """The largest variance of a cell's noise under rounded projection, whose parameter does not say it."""
    if not isinstance(other, Rounded):
        return ""
    parts = []
    for shape in replace(channel, target=other, layout=None).shapes():
        count = 0 if shape.dense_dimension > DRAWN_DIMENSION else None
        parts.append(of_shape(other, choose(shape, other).noise, shape, NO_CELLS, count))
    is_bound = any("upper bound" in part.bases(of_cells=True) for part in parts)
    largest = round_figure(max(float(part.diagonal().max()) for part in parts), 3, is_bound=is_bound)
    return f", variance of a cell {'at most ' if is_bound else ''}{largest:g}"


def _budget_note(channel: Channel, other: Target) -> str:
    """Where the budget of the request buys just this noise too, so that only the mechanism need change."""
    target, asked, records = channel.target, channel.guarantee.asked, channel.facts.records
    if not isinstance(other, Rounded) or not isinstance(target, L1Laplace) or asked is None or asked.epsilon is None or asked.per is None:
        return ""
    moved = 1 if asked.per == DISTANCE else L1.person_moving(records)
    return " (epsilon and per can stay as they are)" if asked.epsilon == other.epsilon * moved else ""


def _for_laplace(target: L1Laplace) -> list[list[Proposal]]:
    return [[_propose_gaussian(2 / target.epsilon**2)], [_propose_rounded(target.epsilon)]]


def _for_l2_laplace(target: L2Laplace) -> list[list[Proposal]]:
    text, epsilon = _written(target.epsilon, up=False)
    l1 = (f'norm = "l1" with epsilon = {text} per unit of l1 distance', L1Laplace(epsilon))
    return [[l1], [_propose_gaussian(2 / target.epsilon**2)], [_propose_rounded(target.epsilon)]]


def _for_rounded(target: Rounded) -> list[list[Proposal]]:
    return [[_propose_gaussian(2 / target.epsilon**2)]]


def _propose_gaussian(sigma_squared: Fraction) -> Proposal:
    text, written = _written(sigma_squared, up=True)
    return f'mechanism = "generalized-gaussian" (GeneralizedGaussian) with sigma_squared = {text}', Gaussian(written)


def _propose_rounded(epsilon: Fraction) -> Proposal:
    text, written = _written(epsilon, up=False)
    return f'mechanism = "rounded-projection" (RoundedProjection) with epsilon = {text} per unit of l1 distance', Rounded(written)


def _written(value: Fraction, *, up: bool) -> tuple[str, Fraction]:
    """(a short text of the number, the number that it is): rounded up for a variance, down for an epsilon, so that noise only grows."""
    text = format_amount(value, up=up)
    return text if "." not in text and "/" not in text else f'"{text}"', Fraction(text)


_INSTEAD: dict[type[Target], Callable[..., list[list[Proposal]]]] = {
    L1Laplace: _for_laplace,
    L2Laplace: _for_l2_laplace,
    Rounded: _for_rounded,
}


def _has_chain(channel: Channel) -> bool:
    """Whether a chain can be made for every block that has no exact sampler, and the promise can count its error."""
    if type(channel.target) not in DECAYS or channel.request.names_a_chain or channel.request.allow_estimated:
        return False
    try:
        check_can_weaken(channel.guarantee)
        for shape in channel.shapes():
            if _takes_long(shape.direct_sum()):
                return False
            kernel_for(USUAL_KERNEL, shape, channel.target)
    except HoldfastError:
        return False
    return True
