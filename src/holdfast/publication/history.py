"""What the ledger knows of a release: public facts only, enough to say later what several releases expose together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.channels import Facts
from holdfast.display import Json, step
from holdfast.errors import HoldfastError, VerificationFailed
from holdfast.exposure import Exposure
from holdfast.exposure.facts import LeftOut, Obstacle, ReleaseExposure, Together, TogetherFacts, WhyNot
from holdfast.exposure.joint import JointExposure, PublishedTotals, joint_exposure
from holdfast.invariants.constraints import constraint_of
from holdfast.invariants.rows import compile_rows
from holdfast.ledger.disjoint import Disjoint
from holdfast.ledger.releases import ReleaseFacts, Reservation
from holdfast.ledger.values import Costs
from holdfast.privacy import Guarantee
from holdfast.publication.order import UNNAMED, Beside, Order
from holdfast.randomness.vault import STREAM_VERSION
from holdfast.tables import Universe
from holdfast.wording.joint import together_sentences

if TYPE_CHECKING:
    from holdfast.publication.plan import Plan

Ints = NDArray[np.int64]

THIS = "this release"
MAX_CODES = 20_000
"""Codes or cells of a universe that are written into the ledger; larger ones are known by their digest."""
MAX_JOINED = 40
"""Earlier releases whose kept totals are joined with those of a new one, the latest first; the work grows faster than their number."""
MAX_JOINED_CELLS = 4_000_000
"""Cells that they may have in all."""


def public_facts(
    plan: Plan,
    software: Mapping[str, str | int],
    earlier: Iterable[Reservation],
    revision_of: str | None,
    name: str = THIS,
    disjoint: Disjoint | None = None,
) -> ReleaseFacts:
    """Facts for the event that reserves the release. Nothing in them depends on a count, but for kept totals of 0,
    which the release publishes: the smallest secret is that of the noise that they leave.
    """
    own = plan.facts
    before = [release for release in earlier if release.counts]
    return replace(
        charge_facts(own, plan.guarantee, disjoint, revision_of),
        mechanism=plan.mechanism.name,
        parameters=plan.mechanism.parameters,
        asked=plan.guarantee.asked,
        max_records=own.max_records,
        universe=universe_facts(own.universe),
        costs=Costs.of(plan.guarantee) if own.measure.whole and plan.guarantee.status != "estimated" else None,
        exposed=release_exposure(plan, before, name).to_fields(),
        stream_version=STREAM_VERSION,
        software=software,
    )


def charge_facts(own: Facts, guarantee: Guarantee, disjoint: Disjoint | None, revision_of: str | None) -> ReleaseFacts:
    """The facts that decide how a charge counts beside others: for whom, for which distance, of answers, with which invariants, declared
    disjoint from what, a revision of what.
    """
    return ReleaseFacts(
        protect=own.protected,
        distance=guarantee.distance.name,
        answers=None if guarantee.answers is None else guarantee.answers.to_fields(),
        constraints=own.definitions,
        disjoint=disjoint,
        revision_of=revision_of,
    )


@dataclass(frozen=True, eq=False)
class Earlier:
    """The releases of a data set before a new one: as a ledger holds them, and as they were published."""

    held: tuple[Reservation, ...] = ()
    beside: tuple[Beside, ...] = ()


def with_earlier(plan: Plan, releases: Iterable[Reservation], order: Order) -> Plan:
    """The plan with what it exposes together with the releases before it.

    Given:  the releases in the ledger, if there is one. Refuses an earlier folder that is not the one recorded there.
    """
    others = (release for release in releases if release.counts and release.release_id != order.release_id)
    held = tuple(replace(release, sealed_key=None, input_check=None, second_secret=None) for release in others)  # a plan holds no secret
    recorded = {release.release_id: release.checksum for release in held}
    for given in order.beside:
        if recorded.get(given.totals.name) not in (None, given.digest):
            raise VerificationFailed(
                f"The folder of {given.totals.name!r} is not the one that the ledger recorded: its card has another checksum. "
                "Give the folder as it was published."
            )
    name = THIS if order.release_id == UNNAMED else order.release_id
    plan = replace(plan, earlier=Earlier(held, order.beside))
    return replace(plan, exposure=replace(plan.exposure, together=find_together(plan, plan.exposure, name, plan.facts.published_totals)))


@step("Comparing with other releases")
def find_together(plan: Plan, alone: Exposure, name: str, totals: Sequence[Ints] | None = None) -> Together | None:
    """What the release exposes with those before it and not alone; None where there are none."""
    alone = replace(alone, together=None)
    joint, left_out = _join_earlier(plan, plan.earlier, name, totals)
    if joint is None and not left_out:
        return None
    facts = None if joint is None else joint.facts
    text = " ".join(together_sentences(ReleaseExposure(alone.facts(), facts, left_out)))
    none = np.zeros(0, dtype=np.int64)
    if joint is None or facts is None or joint.fixed is None or facts.of_answers:  # answers may be to other questions: told, not counted
        return Together(TogetherFacts(() if facts is None or facts.why_not is not None else facts.releases[:-1], 0, 0, text), none, none)
    own = None if joint.pinned is None else joint.pinned[-1]
    fixed = np.setdiff1d(joint.fixed[-1].new, alone.cells)
    pinned = none if own is None else np.setdiff1d(own.new, np.concatenate([fixed, alone.cells]))
    values: list[int | None] = [None] * (len(fixed) + len(pinned))
    if own is not None and own.bounds is not None:
        low, high = (bound[np.concatenate([fixed, pinned])].tolist() for bound in own.bounds)
        values = [a if a == b else None for a, b in zip(low, high, strict=True)]
    by_structure, by_values = (sum(new.count for new in found or ()) for found in (facts.fixed, facts.pinned))
    return Together(TogetherFacts(facts.releases[:-1], by_structure, by_values, text), fixed, pinned, tuple(values))


def release_exposure(plan: Plan, earlier: Iterable[Reservation], name: str = THIS) -> ReleaseExposure:
    """What this release exposes alone, and together with those before it, as far as that is known."""
    joint, left_out = _join_earlier(plan, Earlier(tuple(earlier), plan.earlier.beside), name)
    return ReleaseExposure(plan.exposure.facts(), None if joint is None else joint.facts, left_out)


def _join_earlier(
    plan: Plan, earlier: Earlier, name: str, totals: Sequence[Ints] | None = None
) -> tuple[JointExposure | None, tuple[LeftOut, ...]]:
    """What they expose together, and what could not be joined: tables of counts with one another, answers with answers over the same
    cells.
    """
    before, own = list_published(earlier.held), plan.facts
    beside = {given.totals.name: given for given in earlier.beside}
    alike = [release for release in before if _is_alike(release, plan)]
    answers = tuple(release.release_id for release in before if release not in alike)
    alike, older = alike[-MAX_JOINED:], [release.release_id for release in alike[:-MAX_JOINED]]
    held = {release.release_id: published_totals(release, own.universe) for release in alike}
    unheld = {n: given for n, given in beside.items() if n not in {release.release_id for release in before}}
    fits = {n: own.measure.whole if given.whole else own.universe == given.totals.universe for n, given in unheld.items()}
    answers += tuple(n for n, fit in fits.items() if not fit)
    known = {n: given.totals for n, given in unheld.items() if fits[n]} | {
        n: beside[n].totals if n in beside else given for n, given in held.items()
    }
    joined, large = _latest([given for given in known.values() if given is not None])
    told = totals is not None and own.measure.nonnegative and bool(beside)  # its own values alone tell nothing more
    values = None if totals is None or not told else tuple(np.concatenate([np.zeros(0, np.int64), *totals]).tolist())
    together, apart = _join_exposures(joined, PublishedTotals(name, own.universe, own.constraints, values)) if joined else (None, [])
    not_held = tuple(n for n, given in known.items() if given is None)
    obstacles = ((not_held, Obstacle.NOT_HELD), (answers, Obstacle.ANSWERS))
    left_out = [*apart, *(LeftOut(names, WhyNot(obstacle)) for names, obstacle in obstacles if names)]
    if older or large:
        left_out.append(LeftOut((*older, *large), WhyNot(Obstacle.TOO_MANY, cells=MAX_JOINED_CELLS, limit=MAX_JOINED)))
    if together is not None and not own.measure.nonnegative:  # values that may be negative pin nothing more
        together = replace(together, facts=replace(together.facts, of_answers=True, values_missing=()))
    return together, tuple(left_out)


def _is_alike(release: Reservation, plan: Plan) -> bool:
    """Whether kept totals of both are sums over cells of one kind."""
    has_answers, said = release.facts.answers is not None, release.facts.universe
    if plan.guarantee.answers is None or not has_answers:
        return plan.guarantee.answers is None and not has_answers
    return said is not None and said.get("digest") == plan.facts.universe.digest()


def _latest(known: list[PublishedTotals]) -> tuple[list[PublishedTotals], list[str]]:
    """The latest of these that have together as many cells as are joined, and the names of the others."""
    sizes = list(accumulate(len(totals.universe) for totals in reversed(known)))
    first = len(known) - sum(size <= MAX_JOINED_CELLS for size in sizes)
    return known[first:], [totals.name for totals in known[:first]]


def _join_exposures(before: list[PublishedTotals], own: PublishedTotals) -> tuple[JointExposure | None, list[LeftOut]]:
    """All together; where that cannot be computed, with as many of those before as can be, and the others with the last reason."""
    every = joint_exposure([*before, own])
    if every.is_computed or len(before) == 1:
        return every, []
    joined: list[PublishedTotals] = []
    found: JointExposure | None = None
    apart: list[str] = []
    reason = every.facts.why_not
    for totals in reversed(before):
        tried = joint_exposure([totals, *joined, own])
        if tried.is_computed:
            joined, found = [totals, *joined], tried
        else:
            apart, reason = [totals.name, *apart], tried.facts.why_not
    assert reason is not None
    return found, [LeftOut(tuple(apart), reason)]


def list_published(releases: Iterable[Reservation]) -> list[Reservation]:
    """Releases that are published or may yet be; not those that were given up."""
    return [release for release in releases if release.counts and release.state != "voided-spent"]


def published_totals(release: Reservation, own: Universe) -> PublishedTotals | None:
    """The kept totals of an earlier release over its cells, where the ledger knows them."""
    said, kept = release.facts.universe, release.facts.constraints
    if said is None or kept is None:
        return None
    try:
        universe = own if said.get("digest") == own.digest() else read_universe(said)
        if universe is None:
            return None
        constraints = tuple(map(constraint_of, kept))
        compile_rows(universe, constraints)
        return PublishedTotals(release.release_id, universe, constraints)
    except (HoldfastError, KeyError, TypeError, ValueError):
        return None


def universe_facts(universe: Universe) -> dict[str, Json]:
    """Columns and cells in their order, as far as they are few; always the digest."""
    facts: dict[str, Json] = {"digest": universe.digest(), "columns": list(universe.columns), "codes": None, "cells": None}
    facts["support"] = universe.support
    if universe.is_in_order and sum(universe.code_count(column) for column in universe.columns) <= MAX_CODES:
        facts["codes"] = {column: list(universe.codes[column]) for column in universe.columns}
    elif len(universe) <= MAX_CODES:
        facts["cells"] = [list(universe.cell(i).values()) for i in range(len(universe))]
    return facts


def read_universe(said: Any) -> Universe | None:
    """What `universe_facts` wrote, as its functions check it; None where the cells were too many."""
    if said["codes"] is not None:
        made = Universe.product(
            {column: said["codes"][column] for column in said["columns"]}, allow_similar_codes=True, allow_total_names=True
        )
    elif said["cells"] is not None:
        columns = {column: [cell[place] for cell in said["cells"]] for place, column in enumerate(said["columns"])}
        made = Universe.listed(columns, allow_similar_codes=True, allow_total_names=True)
    else:
        return None
    return replace(made, support=said["support"])
