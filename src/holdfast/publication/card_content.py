"""The content of a card, from a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.card.answers import GridInfo
from holdfast.card.card import (
    SCHEMA_VERSION,
    Card,
    DisjointInfo,
    GrantInfo,
    LabelInfo,
    PublicColumn,
    ReleaseInfo,
    Revision,
    TableInfo,
    TreeInfo,
)
from holdfast.channels.layout import LevelLayout
from holdfast.exposure import Exposure
from holdfast.publication.plan import Plan, exposed_info
from holdfast.wording.catalogue import ENGLISH
from holdfast.wording.ledger import recorded_sentence

if TYPE_CHECKING:
    from holdfast.publication.release import Release

MAX_CHANGED = 100
"""Changed totals of a revision that are listed; all are counted."""


def card_of(release: Release) -> Card:
    """All fields of card.json but checksums and signature: public facts. Software versions are those when the release began."""
    order, grant = release.order, release.booking.grant
    said = ReleaseInfo(
        id=release.id,
        date=order.date,
        office=order.office,
        approver=order.approver,
        private=release.private,
        ledger=release.entry,
        grant=None if grant is None else GrantInfo.model_validate(grant),
        disjoint=None if order.disjoint is None else DisjointInfo.of(order.disjoint),
        ledger_text=recorded_sentence(release.entry),
        signer=None,
        allow_exposed=order.allow_exposed,
        language=ENGLISH,
        formulas="as they are",
    )
    return make_card(release.plan, release.exposure, said, _revision(release), release.booking.software)


def make_card(plan: Plan, exposure: Exposure, said: ReleaseInfo, revision: Revision | None, software: Mapping[str, str | int]) -> Card:
    """The card of a plan whose totals expose so much, with what only the office can say: `verify` makes it again from a folder."""
    info = plan.info
    return Card(
        schema_version=SCHEMA_VERSION,
        release=said.model_copy(update={"ledger_text": recorded_sentence(said.ledger)}),
        table=_table_info(plan),
        kept=info.kept.model_copy(update={"revision": revision}),
        exposed=exposed_info(exposure, plan.guarantee.exposed.columns),
        mechanism=info.mechanism,
        sampler=info.sampler,
        guarantee=info.guarantee,
        expected_error=info.expected_error,
        software=dict(software),
        files={},
        signature=None,
    )


def _table_info(plan: Plan) -> TableInfo:
    facts, universe = plan.facts, plan.facts.universe
    by_levels = isinstance(plan.drawing.channel.layout, LevelLayout)
    return TableInfo(
        name=facts.name,
        columns=universe.columns,
        count=facts.count_name,
        cells=len(universe),
        universe=universe.support,
        universe_digest=f"sha256:{universe.digest()}",
        protect=facts.protect,
        max_records=facts.max_records,
        public_columns=tuple(PublicColumn(name=name, values=facts.columns[name].tolist()) for name in plan.guarantee.exposed.columns),
        hierarchies=tuple(
            TreeInfo(column=column, levels=tree.levels, parents=tuple((code, tree.parent(code)) for code in tree.nodes))
            for column, tree in universe.hierarchies.items()
            if by_levels
        ),
        labels=tuple(map(LabelInfo.of, universe.labels.columns)),
        grid=None if facts.grid is None else GridInfo.of(facts.grid),
    )


def _revision(release: Release) -> Revision | None:
    """Kept totals that differ from those of the release that this one revises: both are published, so the differences are exposed."""
    if release.order.revises is None:
        return None
    earlier, rows = release.order.revises
    before = {(constraint, name): total for constraint, name, total in rows}
    changed = [(n, before[s, n], t) for s, n, t in release.kept_rows if (s, n) in before and before[s, n] != t]
    totals = tuple(f"{n}: {old} before, {new} now" for n, old, new in changed[:MAX_CHANGED])
    return Revision(of=earlier, changed=len(changed), totals=totals)
