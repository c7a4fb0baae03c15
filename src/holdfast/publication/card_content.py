"""The content of a card, from a plan, what its totals expose, and what the office says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.channels.layout import LevelLayout
from holdfast.exposure import Exposure
from holdfast.publication.booking import Booking
from holdfast.publication.card import SCHEMA_VERSION, Card, LabelInfo, ReleaseInfo, Revision
from holdfast.publication.card_answers import GridInfo
from holdfast.publication.order import KeptRow, Order
from holdfast.publication.plan import Plan, exposed_fields
from holdfast.tables import Hierarchy
from holdfast.wording.catalogue import ENGLISH
from holdfast.wording.ledger import recorded_sentence

MAX_CHANGED = 100
"""Changed totals of a revision that are listed; all are counted."""


def release_info(order: Order, private: bool, booking: Booking) -> ReleaseInfo:
    """What a card says of a release that was just drawn, before it is signed and written."""
    return ReleaseInfo.model_validate(
        {
            **{"id": order.release_id, "date": order.date, "office": order.office, "approver": order.approver},
            **{"private": private, "ledger": booking.entry, "signer": None, "allow_exposed": order.allow_exposed},
            "disjoint": None if order.disjoint is None else order.disjoint.to_fields(),
            **{
                "grant": booking.grant and booking.grant.to_fields(),
                "ledger_text": recorded_sentence(booking.entry),
                "language": ENGLISH,
                "formulas": "as they are",
            },
        }
    )


def make_card(plan: Plan, exposure: Exposure, about: ReleaseInfo, revision: Revision | None, software: Mapping[str, Any]) -> Card:
    """All fields of card.json but checksums and signature, of a plan whose totals expose so much: public facts, with what only the office
    can say. `verify` makes it again from a folder. Software versions are those when the release began.
    """
    facts = plan.facts
    fields = plan.to_fields()
    universe = facts.universe
    by_levels = isinstance(plan.drawing.channel.layout, LevelLayout)
    table = {
        "name": facts.name,
        "columns": list(universe.columns),
        "count": facts.count_name,
        "cells": len(universe),
        "universe": universe.support,
        "universe_digest": f"sha256:{universe.digest()}",
        "protect": facts.protect,
        "max_records": facts.max_records,
        "public_columns": [{"name": name, "values": facts.columns[name].tolist()} for name in plan.guarantee.exposed.columns],
        "hierarchies": [_tree_fields(*pair) for pair in universe.hierarchies.items()] if by_levels else [],
        "labels": LabelInfo.fields_of(universe.labels),
        "grid": None if facts.grid is None else GridInfo.fields_of(facts.grid),
    }
    made = {
        "schema_version": SCHEMA_VERSION,
        "release": about.model_copy(update={"ledger_text": recorded_sentence(about.ledger)}),
        "table": table,
        "kept": {**fields["kept"], "definitions": facts.definitions, "revision": revision},
        "exposed": exposed_fields(exposure, plan.guarantee.exposed.columns),
        **{name: fields[name] for name in ("mechanism", "sampler", "expected_error")},
        "guarantee": _promise_fields(fields["guarantee"]),
        "software": dict(software),
        "files": {},
        "signature": None,
    }
    return Card.model_validate(made)


def _tree_fields(column: str, tree: Hierarchy) -> dict[str, Any]:
    return {"column": column, "levels": list(tree.levels), "parents": [[code, tree.parent(code)] for code in tree.nodes]}


def compare_revision(earlier: str, before: Iterable[KeptRow], now: Iterable[KeptRow]) -> Revision:
    """Kept totals that differ from those of the release that this one revises: both are published, so the differences are exposed."""
    known = {(constraint, name): total for constraint, name, total in before}
    changed = [(n, known[s, n], t) for s, n, t in now if (s, n) in known and known[s, n] != t]
    totals = tuple(f"{n}: {old} before, {new} now" for n, old, new in changed[:MAX_CHANGED])
    return Revision(of=earlier, changed=len(changed), totals=totals)


def _promise_fields(guarantee: dict[str, Any]) -> dict[str, Any]:
    """The part of a guarantee's fields that a card has; distances stand with the promise made at them."""
    names = (
        "asked",
        "why",
        "kind",
        "parameters",
        "distance",
        "protect",
        "max_records",
        "relation",
        "relation_fields",
        "status",
        "status_note",
        "chains",
        "conditioning",
        "answers",
        "per_distance",
        "sentences",
        "text",
    )
    squared = "distance squared" if guarantee["distances_are_squared"] else "distance"
    secret, person = guarantee["smallest_secret"], guarantee["per_person"]
    return {
        **{name: guarantee[name] for name in names},
        "per_person": None if person is None else {squared: guarantee["person"]["distance"], **person},
        "smallest_secret": {squared: secret["distance"], "found": secret["status"], **guarantee["per_smallest_secret"]},
    }
