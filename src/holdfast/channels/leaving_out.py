"""The drawing of a channel on fewer moves: cells that the published totals make 0 are left out ([theory R21])."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.channels.channel import Channel
from holdfast.channels.drawing import Drawing, choose_samplers
from holdfast.channels.facts import Facts
from holdfast.errors import NoExactSampler, NothingLeft, RequestTooLarge
from holdfast.exposure.zeros import Zeros, left_out, zero_cells
from holdfast.laws import Reads


def leaves_zeros_out(channel: Channel) -> bool:
    """Whether cells under a total of 0 take no noise from this channel once the totals are known: not where the counts decide what is
    published, not where the user asked for a chain, whose steps were counted on all moves, and not for answers, which may be negative.
    """
    target, facts = channel.target, channel.facts
    asked = channel.request.names_a_chain
    return target.publishes_cells and target.reads is Reads.NOTHING and not asked and bool(facts.kept.rows) and facts.measure.nonnegative


def drawing_without_zeros(make: Callable[[Facts], Channel], channel: Channel, totals: Sequence[NDArray[np.int64]]) -> Drawing | None:
    """The drawing that leaves out the cells that these totals make 0; None where there are none, or what is left cannot be drawn exactly.

    Given:       a mechanism's `channel`, and what it makes of facts without `zeros`; the published totals, one array for each entry of the
                 kept rows.
    Guarantees:  a function of public facts and totals. The law has the parameters that it has without totals: the price is the same.
                 NothingLeft where no move is left.
    """
    facts = channel.facts
    if not leaves_zeros_out(channel):
        return None
    for zeros in _candidates(channel, totals):
        try:
            made = make(replace(facts, zeros=zeros))
            if _leaves_out(made):
                return choose_samplers(replace(made, request=made.request.exact_only))
        except (NoExactSampler, RequestTooLarge):
            continue
        except NothingLeft:
            raise NothingLeft(
                "The values of the kept totals leave nothing to protect: beside the cells under a total of 0 they fix every cell. Keep "
                "fewer totals, or publish without noise. Nothing was drawn, and nothing was charged."
            ) from None
    return None


def _leaves_out(channel: Channel) -> bool:
    """Whether the mechanism knows of cells to leave out: the promise says what that needs, and the channel's own blocks, where it has any,
    have no noise for them.
    """
    zeros, blocks = channel.facts.zeros, channel.blocks
    if zeros is None or not channel.guarantee.relation.non_negative:
        return False
    if channel.layout is None:
        return True
    left = np.zeros(len(channel.facts.universe), dtype=np.bool_)
    left[zeros.cells] = True
    return not any(bool(left[blocks.cells_of(number)].any()) for number, _, _ in blocks.moving_shapes())


def _candidates(channel: Channel, totals: Sequence[NDArray[np.int64]]) -> Iterator[Zeros]:
    facts = channel.facts
    zero = zero_cells(facts.kept, totals)
    if not zero.any():
        return
    if channel.layout is None:
        yield from left_out(facts.lattice, facts.kept, zero)
    else:  # the channel takes out of its own units what it can
        yield Zeros(facts.kept, np.flatnonzero(zero))
