"""The page of `holdfast diagnose`: how fast chains come to their law, as a table and as figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from holdfast.exact.formatting import format_deviation, format_number
from holdfast.report.chain_facts import ChainsFacts, RowFacts
from holdfast.report.curve_chart import curve_figure
from holdfast.report.frame import PageFigure, PageTable, Say, name, render, tag, text
from holdfast.report.page import mechanism_text, names

MARK = "CONFIDENTIAL"
SHOWN_CONSTRAINTS = 20


@dataclass(frozen=True)
class DiagnosisFacts:
    """What the page says, in the order of its sections; `templates/diagnosis.html.j2` arranges it."""

    what: Markup
    given: tuple[tuple[Markup, Markup], ...]
    found: PageTable | None
    without_bound: tuple[Markup, ...]
    warnings: tuple[Markup, ...]
    together: Markup
    curves: tuple[PageFigure, ...]
    moving: PageTable | None
    meaning: tuple[Markup, ...]


def diagnosis_html(found: ChainsFacts) -> str:
    """The page of a diagnosis.

    Guarantees:  a pure function of what was found. Every text is escaped; nothing is loaded from elsewhere. What depends on the data
                 says so first: in the title, at the top and at the end, and on every printed page.
    """
    say = Say()
    title = say.plain("diagnosis.title", name=found.table.name)
    return render(
        "diagnosis.html.j2",
        title=title,
        heading=say("diagnosis.title", name=name(found.table.name)),
        eyebrow=say("page.diagnosis"),
        footer=title,
        banner=tag("strong", found.confidential_text) if found.confidential else None,
        mark=MARK if found.confidential else None,
        **vars(diagnosis_facts(found, say)),
    )


def diagnosis_facts(found: ChainsFacts, say: Say) -> DiagnosisFacts:
    """Everything on the page but its frame."""
    rows = found.rows
    bounded = [row for row in rows if row.problem is None]
    moved = [row for row in rows if row.movement is not None]
    return DiagnosisFacts(
        what=say("diagnosis.what_confidential" if found.confidential else "diagnosis.what"),
        given=_settings_rows(found, say),
        found=_diagnosis_table(bounded, say) if bounded else None,
        without_bound=tuple(text(f"{row.kernel}, {row.block}: {row.problem}") for row in rows if row.problem is not None),
        warnings=tuple(
            say("diagnosis.warning", kernel=row.kernel, block=row.block, warning=row.warning) for row in rows if row.warning is not None
        ),
        together=say("diagnosis.together", text=found.together.text) if rows else text(found.together.text),
        curves=_curves(rows, say),
        moving=_moving(moved, say) if moved else None,
        meaning=(text(found.text), *(say(f"diagnosis.meaning_{which}") for which in ("sweep", "slow", "met", "eta", "exact"))),
    )


def _settings_rows(found: ChainsFacts, say: Say) -> tuple[tuple[Markup, Markup], ...]:
    kept = found.kept_texts
    return (
        (say("diagnosis.table"), say("diagnosis.cells", count=found.table.cells)),
        (say("diagnosis.kept"), names(say, kept, SHOWN_CONSTRAINTS) if kept else say("diagnosis.kept_nothing")),
        (say("diagnosis.mechanism"), text(mechanism_text(say, found.mechanism.name, found.mechanism.parameters))),
        (say("diagnosis.pairs"), say("diagnosis.pairs_text", pairs=found.pairs, sweeps=found.most_sweeps)),
    )


def _diagnosis_table(rows: Sequence[RowFacts], say: Say) -> PageTable:
    header = ("block", "kernel", "lag", "met", "meeting", "recommended", "eta", "added")
    return PageTable(
        say("diagnosis.caption"),
        tuple(say(f"diagnosis.{column}") for column in header),
        tuple(
            (
                say("diagnosis.blocks", block=row.block, count=row.blocks),
                row.kernel,
                format_number(_number(row.lag_sweeps)),
                say("diagnosis.met_value", met=_number(row.met), pairs=_number(row.pairs)),
                say("diagnosis.meeting_value", median=_number(row.median_meeting_sweeps), longest=_number(row.largest_meeting_sweeps)),
                say("diagnosis.recommended_value", sweeps=_number(row.recommended_sweeps), steps=_number(row.recommended_steps)),
                row.eta or "-",
                "-" if row.added_delta is None else row.added_delta,
            )
            for row in rows
        ),
        frozenset({2, 3, 4, 6, 7}),
    )


def _number(value: int | None) -> int:
    """A figure of a row with a bound, which has all of them."""
    assert value is not None
    return value


def _curves(rows: Sequence[RowFacts], say: Say) -> tuple[PageFigure, ...]:
    shown: dict[str, list[RowFacts]] = {}
    for row in rows:
        if row.curves:
            shown.setdefault(row.block, []).append(row)
    return tuple(
        curve_figure(index, say("diagnosis.blocks", block=label, count=group[0].blocks), group, say)
        for index, (label, group) in enumerate(shown.items())
    )


def _moving(rows: Sequence[RowFacts], say: Say) -> PageTable:
    return PageTable(
        say("diagnosis.moving_caption"),
        tuple(say(f"diagnosis.{column}") for column in ("block", "kernel", "accepted", "effective", "autocorrelation")),
        tuple(_movement(row, say) for row in rows),
    )


def _movement(row: RowFacts, say: Say) -> tuple[str, ...]:
    moved = row.movement
    assert moved is not None
    size, time = moved.effective_sample_size, moved.autocorrelation_sweeps
    missing = moved.note or say("diagnosis.nothing_moved")
    return (
        row.block,
        row.kernel,
        f"{100 * moved.acceptance_rate:.3g} %",
        missing if size is None else say("diagnosis.of_draws", size=format_deviation(size), draws=_number(moved.draws)),
        missing if time is None else format_deviation(time),
    )
