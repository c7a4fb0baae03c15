"""A drawing: a channel with a sampler for every shape. Choosing may take long (chains are assessed here), so it is a step of its own, done
once: a drawing is a value that is pickled with its samplers and assessments.

Where published totals make cells 0, the channel is drawn on fewer moves, which leave these cells out ([theory R21]).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.assessment import LEAST_PAIRS, Assessed, Said, largest_eta
from holdfast.chains.kernels import USUAL_KERNEL
from holdfast.chains.sampler import ChainSampler, chain_samplers, chains_as_said
from holdfast.channels.alternatives import AUTO_DRAWS, advice, is_drawn_by_auto
from holdfast.channels.channel import ONE_FREE_CELL, Channel
from holdfast.channels.facts import Facts
from holdfast.display import count_of, list_names, step
from holdfast.errors import InvalidParameter, NoExactSampler, NoMeeting, NothingLeft, RequestTooLarge
from holdfast.exposure.cells import Zeros, left_out, zero_cells
from holdfast.lattices.shapes import Shape
from holdfast.laws import Reads
from holdfast.privacy.estimated import check_can_weaken, weaken_guarantee
from holdfast.privacy.guarantee import ChainFacts, Guarantee
from holdfast.samplers.choice import Choice, Compared, Reason
from holdfast.samplers.protocol import Costly, InputSampler, cell_draws
from holdfast.samplers.table import choose

FEW_TRIES = 2
"""Number of tries that still feels instant."""


@dataclass(frozen=True)
class BlockGroup:
    """All blocks of one kind that one sampler draws."""

    kind: str
    blocks: int
    cells: int
    sampler: str
    expected_tries: float | None
    """None for a chain, which throws nothing away, and where tries depend on the counts."""
    reason: Reason
    assessment: Assessed | None = None
    """What was estimated about a chain; None for exact samplers."""
    cell_draws: float = 0.0
    """Expected for one release, as far as rejection draws them; for coupling from the past, what takes as long."""
    compared: Compared | None = None
    """What another exact sampler would have cost, where that was looked at."""
    note: str = ""
    """Why another exact sampler was not looked at, where it would have been."""

    def join(self, other: BlockGroup) -> BlockGroup:
        """Both together, for groups that one exact sampler draws; the expected tries are the larger ones."""
        known = self.expected_tries is not None and other.expected_tries is not None
        tries = max(self.expected_tries or 0.0, other.expected_tries or 0.0) if known else None
        work = self.cell_draws + other.cell_draws
        return replace(self, blocks=self.blocks + other.blocks, cells=self.cells + other.cells, expected_tries=tries, cell_draws=work)

    def __str__(self) -> str:
        tail = "no number of tries" if self.expected_tries is None else count_of(f"{self.expected_tries:.3g}", "try", "tries")
        tail = tail if self.assessment is None else "estimated"
        return f"{self.blocks} {self.kind}, {self.cells} cells: {self.sampler} ({self.reason.value}; {tail})"


@dataclass(frozen=True)
class SamplerPlan:
    """Which sampler draws what, decided before anything is drawn."""

    groups: tuple[BlockGroup, ...]

    @property
    def status(self) -> Literal["exact", "estimated"]:
        return "exact" if all(group.assessment is None for group in self.groups) else "estimated"

    def __str__(self) -> str:
        return "\n".join(map(str, self.groups))


@dataclass(frozen=True, eq=False, repr=False)
class Drawing:
    """A channel, the sampler of each of its shapes, and the promise of what these samplers draw.

    Guarantees:  made from public facts alone; decided before anything is drawn and never changed by how a run goes.
    """

    channel: Channel
    choices: dict[Shape, Choice]
    guarantee: Guarantee

    @property
    def is_exact(self) -> bool:
        """Whether every sampler draws exactly the stated law."""
        return not any(isinstance(choice.sampler, ChainSampler) for choice in self.choices.values())

    def __repr__(self) -> str:
        names = dict.fromkeys(choice.sampler.name for choice in self.choices.values())
        return f"Drawing({self.channel.summary}; {list_names(list(names)) or 'no sampler'})"

    def choice(self, shape: Shape) -> Choice:
        """The sampler of blocks of this shape, and why it was chosen."""
        return self.choices[ONE_FREE_CELL if shape.is_free else shape]

    @property
    def cell_draws(self) -> float:
        """What one release costs where that is more than its cells, by the expectation of the plan (samplers/choice.py)."""
        return sum(group.cell_draws for group in self.sampler_plan.groups)

    @property
    def sampler_plan(self) -> SamplerPlan:
        """Which sampler draws which blocks and why; shapes of one kind are shown together where one sampler draws them for one reason."""
        merged: dict[object, BlockGroup] = {}
        for number, (shape, blocks) in enumerate(self._shown_shapes()):
            group = self._group(shape, blocks)
            own = number if group.assessment is not None else None  # every chain was assessed for itself, and is shown for itself
            key = (group.kind, group.sampler, group.reason, own)
            merged[key] = group if key not in merged else merged[key].join(group)
        return SamplerPlan(tuple(merged.values()))

    def _group(self, shape: Shape, blocks: int) -> BlockGroup:
        """The blocks of one shape."""
        cells = blocks * shape.size
        if shape.is_pinned:
            return BlockGroup(shape.name, blocks, cells, "none", 1.0, Reason.FIXED)
        choice = self.choice(shape)
        sampler = choice.sampler
        if isinstance(sampler, ChainSampler):
            return BlockGroup(shape.name, blocks, cells, sampler.name, None, choice.reason, sampler.assessment)
        tries = sampler.expected_tries
        tries = None if tries is None else max(1.0, tries)
        work = blocks * cell_draws(sampler) if isinstance(sampler, Costly) or (tries or 1.0) > FEW_TRIES else 0.0
        return BlockGroup(shape.name, blocks, cells, sampler.name, tries, choice.reason, None, work, choice.compared, choice.note)

    def _shown_shapes(self) -> list[tuple[Shape, int]]:
        target = self.channel.target
        if target.publishes_cells and target.splits:
            return [(shape, count) for _, shape, count in self.channel.blocks.used_shapes()]
        return list(self.channel.shapes().items())


def choose_samplers(channel: Channel, said: Sequence[Said] | None = None) -> Drawing:
    """A sampler for every shape: an exact one, or a Markov chain where the user asked for one or allowed it and no exact one exists.

    Given:       `said`, for readers of a card: how the pairs of each chain met, in the order of shapes. Then no chain is assessed.

    Guarantees:  deterministic, and no data are seen. NoExactSampler, NoMeeting or RequestTooLarge where a shape has no sampler. Where
                 chains draw, the promise counts their estimated error: blocks are drawn independently, so that errors add.
    """
    shapes = channel.shapes()
    exact = {shape: choice for shape in shapes if (choice := _exact(shape, channel)) is not None}
    chained = [shape for shape in shapes if shape not in exact]
    if not chained:
        return Drawing(channel, exact, channel.guarantee)
    try:
        return _with_chains(channel, exact, chained, said)
    except (InvalidParameter, RequestTooLarge) as problem:
        if not is_drawn_by_auto(channel):
            raise
        raise type(problem)(f"{problem} {AUTO_DRAWS}") from None


def _with_chains(channel: Channel, exact: dict[Shape, Choice], chained: list[Shape], said: Sequence[Said] | None) -> Drawing:
    """The drawing in which chains draw these shapes, and exact samplers the others."""
    shapes = channel.shapes()
    check_can_weaken(channel.guarantee)  # before the assessment, which may take long
    chains = _chains(channel, chained, sum(shapes[shape] for shape in chained), said)
    facts = tuple(_chain_facts(shapes[shape], chain) for shape, chain in zip(chained, chains, strict=True))
    eta = sum((fact.blocks * fact.eta for fact in facts), Fraction(0))
    reason = Reason.ASKED if channel.request.names_a_chain else Reason.NO_EXACT
    drawn = {shape: Choice(chain, reason) for shape, chain in zip(chained, chains, strict=True)}
    ordered = {shape: exact.get(shape) or drawn[shape] for shape in shapes}
    return Drawing(channel, ordered, weaken_guarantee(channel.guarantee, eta, facts))


def _exact(shape: Shape, channel: Channel) -> Choice | None:
    """The exact sampler; None where a chain is to take its place, as the user asked or allowed."""
    if channel.request.names_a_chain and not shape.is_free:
        return None
    try:
        choice = choose(shape, channel.target, channel.request.exact_only.sampler)
    except NoExactSampler as refusal:
        if channel.request.allow_estimated:
            return None
        misfits = channel.facts.lattice.misfits() if shape.dense_dimension else ""
        refused = NoExactSampler(" ".join(text for text in (str(refusal), misfits, advice(channel)) if text))
        refused.alone = str(refusal)
        raise refused from None
    reads = channel.target.reads
    if isinstance(choice.sampler, InputSampler) is (reads is Reads.NOTHING):
        raise InvalidParameter(
            f"The sampler {choice.sampler.name!r} does not fit a target that reads {reads.value}: samplers of noise have `draw`, samplers "
            "that read input have `publish`."
        )
    return choice


def _chains(channel: Channel, shapes: list[Shape], blocks: int, said: Sequence[Said] | None) -> tuple[ChainSampler, ...]:
    request = channel.request
    most = blocks * largest_eta(len(shapes))
    if request.eta > most:
        raise InvalidParameter(
            f"eta = {request.eta} is more than the {most} that can be asked for here: at least {LEAST_PAIRS} pairs of chains are coupled "
            f"for each shape of blocks, and they leave less open. Write eta = '{most}' or less."
        )
    name = request.sampler if request.names_a_chain else USUAL_KERNEL
    asked = tuple((name, shape) for shape in shapes)
    if said is not None:
        return chains_as_said(asked, channel.target, request.eta / blocks, said)
    try:
        with step("Assessing chains") as tell:
            return chain_samplers(asked, channel.target, request.eta / blocks, tell)
    except NoMeeting as problem:
        raise NoMeeting(f"{problem} {advice(channel)}") from None


def _chain_facts(blocks: int, chain: ChainSampler) -> ChainFacts:
    found = chain.assessment
    return ChainFacts(
        blocks=blocks,
        cells=chain.cells,
        kernel=found.kernel,
        pairs=found.pairs,
        sweeps=found.sweeps,
        largest_sweeps=found.largest_sweeps,
        eta=found.eta,
        shapes=found.shapes,
    )


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
    Guarantees:  a function of public facts and totals. The law has the parameters that it has without totals, and costs no more; where
                 several laws may be taken, what is left has no more noise than the whole. NothingLeft where no move is left.
    """
    facts = channel.facts
    if not leaves_zeros_out(channel):
        return None
    for zeros in _candidates(channel, totals):
        try:
            made = make(replace(facts, zeros=zeros))
            if _leaves_out(made) and not _is_worse(made, channel):
                return choose_samplers(replace(made, request=made.request.exact_only))
        except (NoExactSampler, RequestTooLarge):
            continue
        except NothingLeft:
            raise NothingLeft(
                "The values of the kept totals leave nothing to protect: beside the cells under a total of 0 they fix every cell. Keep "
                "fewer totals, or publish without noise. Nothing was drawn, and nothing was charged."
            ) from None
    return None


def _is_worse(made: Channel, channel: Channel) -> bool:
    """Whether holes that the zeros leave would cost more, or need more noise, than drawing those cells too."""
    own, before = made.guarantee.law, channel.guarantee.law
    return own is not None and before is not None and (own.factor, own.kappa) > (before.factor, before.kappa)


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
