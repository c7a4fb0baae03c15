"""What the ledger knows of a release: public facts only, enough to say later what several releases expose together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.errors import HoldfastError
from holdfast.lattice.joint import PublishedTotals, are_disjoint, joint_exposure
from holdfast.randomness.keys import STREAM_VERSION
from holdfast.release.definitions import definition, statement_of
from holdfast.release.plan import Plan
from holdfast.tables import Universe

if TYPE_CHECKING:
    from holdfast.privacy.ledger.values import Reservation

MAX_CODES = 20_000
"""Codes or cells of a universe that are written into the ledger; larger ones are known by their digest."""


def public_facts(plan: Plan, software: Mapping[str, Any], earlier: Iterable[Reservation], revision_of: str | None) -> dict[str, Any]:
    """Facts for the event that reserves the release. Nothing in them depends on a count."""
    frame = plan.frame
    before = [release for release in earlier if release.counts]
    facts = {
        "mechanism": plan.mechanism.name,
        "parameters": plan.mechanism.parameters,
        "unit": frame.unit if frame.max_records is not None else "record",
        "universe": universe_facts(frame.universe),
        "statements": [definition(statement, frame.universe) for statement in frame.statements],
        "exposed": exposed_words(plan, before),
        "disjoint_from": [release.release_id for release in before if _is_disjoint(release, frame.universe)],
        "stream_version": STREAM_VERSION,
        "software": dict(software),
    }
    return facts if revision_of is None else {**facts, "revision_of": revision_of}


def exposed_words(plan: Plan, earlier: Iterable[Reservation]) -> str:
    """What this release and those before it expose together, in words; what could not be computed is said so, never "none"."""
    own = str(plan.exposed()["words"])
    before = [release for release in earlier if release.counts and release.state != "voided-spent"]  # that one was never published
    if not before:
        return own
    mine = PublishedTotals("this release", plan.frame.universe, plan.frame.statements)
    known = [published_totals(release, plan.frame.universe) for release in before]
    missing = [release.release_id for release, totals in zip(before, known, strict=True) if totals is None]
    joint = joint_exposure([*(totals for totals in known if totals is not None), mine])
    words = f"{own} {joint.words}"
    if missing:
        words += f" Not computed for {', '.join(map(repr, missing))}: the ledger holds no list of the cells of so large a table."
    return words


def published_totals(release: Reservation, own: Universe) -> PublishedTotals | None:
    """The kept totals of an earlier release over its cells, where the ledger knows them."""
    said = release.facts.get("universe")
    try:
        universe = own if isinstance(said, Mapping) and said.get("digest") == own.digest() else read_universe(said)
        if universe is None:
            return None
        return PublishedTotals(release.release_id, universe, tuple(statement_of(dict(s)) for s in release.facts["statements"]))
    except (HoldfastError, KeyError, TypeError, ValueError):
        return None


def universe_facts(universe: Universe) -> dict[str, Any]:
    """Columns and cells, as far as they are few; always the digest."""
    facts: dict[str, Any] = {"digest": universe.digest(), "columns": list(universe.columns), "codes": None, "cells": None}
    if universe.is_product and sum(universe.code_count(column) for column in universe.columns) <= MAX_CODES:
        facts["codes"] = {column: list(universe.codes[column]) for column in universe.columns}
    elif len(universe) <= MAX_CODES:
        facts["cells"] = [list(universe.cell(i).values()) for i in range(len(universe))]
    return facts


def read_universe(said: Any) -> Universe | None:
    """What `universe_facts` wrote; None where the cells were too many."""
    if said["codes"] is not None:
        return Universe.product({column: said["codes"][column] for column in said["columns"]})
    if said["cells"] is not None:
        return Universe.listed({column: [cell[place] for cell in said["cells"]] for place, column in enumerate(said["columns"])})
    return None


def _is_disjoint(release: Reservation, own: Universe) -> bool:
    """Whether it is proved that the two tables have no cell in common; unknown is no."""
    totals = published_totals(release, own)
    return totals is not None and are_disjoint(totals.universe, own) is True
