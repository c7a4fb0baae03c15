"""What the ledger knows of a release: public facts only, enough to say later what several releases expose together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

from holdfast.channels import Facts
from holdfast.display import Json
from holdfast.errors import HoldfastError
from holdfast.exposure.facts import JointFacts, LeftOut, Obstacle, ReleaseExposure, WhyNot
from holdfast.exposure.joint import PublishedTotals, joint_exposure
from holdfast.invariants.constraints import constraint_of
from holdfast.invariants.rows import compile_rows
from holdfast.ledger.disjoint import Disjoint
from holdfast.ledger.releases import ReleaseFacts, Reservation
from holdfast.ledger.values import Costs
from holdfast.privacy import Guarantee
from holdfast.publication.plan import Plan
from holdfast.randomness.vault import STREAM_VERSION
from holdfast.tables import Universe

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
        constraints=own.definitions,
        costs=Costs.of(plan.guarantee) if own.measure.whole and plan.guarantee.status != "estimated" else None,
        exposed=release_exposure(plan, before, name).to_fields(),
        stream_version=STREAM_VERSION,
        software=software,
    )


def charge_facts(own: Facts, guarantee: Guarantee, disjoint: Disjoint | None, revision_of: str | None) -> ReleaseFacts:
    """The facts that decide how a charge counts beside others: for whom, for which distance, of answers, declared disjoint from what, a
    revision of what.
    """
    return ReleaseFacts(
        protect=own.protected,
        distance=guarantee.distance.name,
        answers=None if guarantee.answers is None else guarantee.answers.to_fields(),
        disjoint=disjoint,
        revision_of=revision_of,
    )


def release_exposure(plan: Plan, earlier: Iterable[Reservation], name: str = THIS) -> ReleaseExposure:
    """What this release exposes alone, and together with those before it, as far as that is known: tables of counts with one another,
    answers with answers over the same cells.
    """
    before = list_published(earlier)
    alike = [release for release in before if _is_alike(release, plan)]
    answers = tuple(release.release_id for release in before if release not in alike)
    alike, older = alike[-MAX_JOINED:], [release.release_id for release in alike[:-MAX_JOINED]]
    known = [published_totals(release, plan.facts.universe) for release in alike]
    joined, large = _latest([totals for totals in known if totals is not None])
    together, apart = _join_exposures(joined, PublishedTotals(name, plan.facts.universe, plan.facts.constraints)) if joined else (None, [])
    not_held = tuple(release.release_id for release, totals in zip(alike, known, strict=True) if totals is None)
    obstacles = ((not_held, Obstacle.NOT_HELD), (answers, Obstacle.ANSWERS))
    left_out = [*apart, *(LeftOut(names, WhyNot(obstacle)) for names, obstacle in obstacles if names)]
    if older or large:
        left_out.append(LeftOut((*older, *large), WhyNot(Obstacle.TOO_MANY, cells=MAX_JOINED_CELLS, limit=MAX_JOINED)))
    if together is not None and not plan.facts.measure.nonnegative:  # values that may be negative pin nothing more
        together = replace(together, of_answers=True, values_missing=())
    return ReleaseExposure(plan.exposure.facts(), together, tuple(left_out))


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


def _join_exposures(before: list[PublishedTotals], own: PublishedTotals) -> tuple[JointFacts | None, list[LeftOut]]:
    """All together; where that cannot be computed, with as many of those before as can be, and the others with the last reason."""
    facts = joint_exposure([*before, own]).facts
    if facts.why_not is None or len(before) == 1:
        return facts, []
    joined: list[PublishedTotals] = []
    found: JointFacts | None = None
    apart: list[str] = []
    reason = facts.why_not
    for totals in reversed(before):
        facts = joint_exposure([totals, *joined, own]).facts
        if facts.why_not is None:
            joined, found = [totals, *joined], facts
        else:
            apart, reason = [totals.name, *apart], facts.why_not
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
        made = Universe.product({column: said["codes"][column] for column in said["columns"]}, allow_similar_codes=True)
    elif said["cells"] is not None:
        columns = {column: [cell[place] for cell in said["cells"]] for place, column in enumerate(said["columns"])}
        made = Universe.listed(columns, allow_similar_codes=True)
    else:
        return None
    return replace(made, support=said["support"])
