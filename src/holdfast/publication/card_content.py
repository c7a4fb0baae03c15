"""The content of a card, from a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.channels.layout import LevelLayout
from holdfast.exposure import Exposure
from holdfast.publication.card import SCHEMA_VERSION, Card, LabelInfo
from holdfast.publication.card_answers import grid_fields
from holdfast.publication.plan import Plan, exposed_fields
from holdfast.tables import Hierarchy
from holdfast.wording.ledger import recorded_sentence

if TYPE_CHECKING:
    from holdfast.publication.release import Release

MAX_CHANGED = 100
"""Changed totals of a revision that are listed; all are counted."""


def card_of(release: Release) -> Card:
    """All fields of card.json but checksums and signature: public facts. Software versions are those when the release began."""
    order = release.order
    said: dict[str, Any] = {
        **{"id": release.id, "date": order.date, "office": order.office, "approver": order.approver},
        **{"private": release.private, "ledger": release.entry, "signer": None, "allow_exposed": order.allow_exposed},
        "disjoint": None if order.disjoint is None else order.disjoint.to_fields(),
        **{"grant": release.booking.grant, "language": release.language, "formulas": "as they are"},
    }
    return make_card(release.plan, release.exposure, said, _revision(release), release.booking.software)


def make_card(
    plan: Plan, exposure: Exposure, said: Mapping[str, Any], revision: Mapping[str, Any] | None, software: Mapping[str, Any]
) -> Card:
    """The card of a plan whose totals expose so much, with what only the office can say: `verify` makes it again from a folder."""
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
        "grid": grid_fields(facts.measure),
    }
    made = {
        "schema_version": SCHEMA_VERSION,
        "release": {**said, "ledger_text": recorded_sentence(said["ledger"])},
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


def _revision(release: Release) -> dict[str, Any] | None:
    """Kept totals that differ from those of the release that this one revises: both are published, so the differences are exposed."""
    if release.order.revises is None:
        return None
    earlier, rows = release.order.revises
    before = {(constraint, name): total for constraint, name, total in rows}
    changed = [(n, before[s, n], t) for s, n, t in release.kept_rows if (s, n) in before and before[s, n] != t]
    return {
        "of": earlier,
        "changed": len(changed),
        "totals": [f"{n}: {old} before, {new} now" for n, old, new in changed[:MAX_CHANGED]],
    }


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
