"""The content of a card, from a plan, what its totals expose, and what the office says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
from holdfast.publication.booking import Booking
from holdfast.publication.order import KeptRow, Order
from holdfast.publication.plan import Plan, exposed_info
from holdfast.wording.catalogue import ENGLISH
from holdfast.wording.ledger import recorded_sentence
from holdfast.wording.warnings import key_warnings, limit_warnings

MAX_CHANGED = 100
"""Changed totals of a revision that are listed; all are counted."""


def release_info(order: Order, private: bool, booking: Booking) -> ReleaseInfo:
    """What a card says of a release that was just drawn, before it is signed and written."""
    return ReleaseInfo(
        id=order.release_id,
        date=order.date,
        office=order.office,
        approver=order.approver,
        private=private,
        ledger=booking.entry,
        grant=None if booking.grant is None else GrantInfo.model_validate(booking.grant.to_fields()),
        disjoint=None if order.disjoint is None else DisjointInfo.of(order.disjoint),
        ledger_text=recorded_sentence(booking.entry),
        signer=None,
        allow_exposed=order.allow_exposed,
        language=ENGLISH,
        formulas="as they are",
    )


def make_card(plan: Plan, exposure: Exposure, about: ReleaseInfo, revision: Revision | None, software: Mapping[str, str | int]) -> Card:
    """All fields of card.json but checksums and signature, of a plan whose totals expose so much: public facts, with what only the office
    can say. `verify` makes it again from a folder. Software versions are those when the release began.
    """
    info = plan.info
    limits = limit_warnings(plan.guarantee, about.ledger is not None, about.grant is not None or not about.private)
    return Card(
        schema_version=SCHEMA_VERSION,
        release=about.model_copy(update={"ledger_text": recorded_sentence(about.ledger)}),
        warnings=(*key_warnings(about.private), *info.warnings, *limits),
        table=_table_info(plan),
        kept=info.kept.model_copy(update={"revision": revision}),
        exposed=exposed_info(exposure, plan.guarantee),
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
        grid=GridInfo.of(facts.measure),
    )


def compare_revision(earlier: str, before: Iterable[KeptRow], now: Iterable[KeptRow]) -> Revision:
    """Kept totals that differ from those of the release that this one revises: both are published, so the differences are exposed."""
    known = {(constraint, name): total for constraint, name, total in before}
    changed = [(n, known[s, n], t) for s, n, t in now if (s, n) in known and known[s, n] != t]
    totals = tuple(f"{n}: {old} before, {new} now" for n, old, new in changed[:MAX_CHANGED])
    return Revision(of=earlier, changed=len(changed), totals=totals)
