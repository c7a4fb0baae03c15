"""The page of `holdfast diagnose`: how fast chains come to their law, as a table and as figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from markupsafe import Markup

from holdfast.exact.formatting import format_deviation, format_number
from holdfast.report.curve_chart import curve_figure
from holdfast.report.frame import Say, render
from holdfast.report.markup import name, tag, text
from holdfast.report.page import mechanism_text, names
from holdfast.report.parts import PageFigure, PageTable

Fields: TypeAlias = Mapping[str, Any]

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


def diagnosis_html(fields: Fields) -> str:
    """The page of a diagnosis.

    Given:       what `Diagnosis.to_fields` gives.
    Guarantees:  a pure function of it. Every text is escaped; nothing is loaded from elsewhere. What depends on the data says so first:
                 in the title, at the top and at the end, and on every printed page.
    """
    say = Say()
    title = say.plain("diagnosis.title", name=fields["table"]["name"])
    return render(
        "diagnosis.html.j2",
        title=title,
        heading=say("diagnosis.title", name=name(fields["table"]["name"])),
        eyebrow=say("page.diagnosis"),
        footer=title,
        banner=tag("strong", fields["confidential_text"]) if fields["confidential"] else None,
        mark=MARK if fields["confidential"] else None,
        **vars(diagnosis_facts(fields, say)),
    )


def diagnosis_facts(fields: Fields, say: Say) -> DiagnosisFacts:
    """Everything on the page but its frame."""
    rows = fields["rows"]
    bounded = [row for row in rows if row["problem"] is None]
    moved = [row for row in rows if row["movement"] is not None]
    return DiagnosisFacts(
        what=say("diagnosis.what_confidential" if fields["confidential"] else "diagnosis.what"),
        given=_settings_rows(fields, say),
        found=_diagnosis_table(bounded, say) if bounded else None,
        without_bound=tuple(text(f"{row['kernel']}, {row['block']}: {row['problem']}") for row in rows if row["problem"] is not None),
        warnings=tuple(
            say("diagnosis.warning", kernel=row["kernel"], block=row["block"], warning=row["warning"])
            for row in rows
            if row["warning"] is not None
        ),
        together=say("diagnosis.together", text=fields["together"]["text"]) if rows else text(fields["together"]["text"]),
        curves=_curves(rows, say),
        moving=_moving(moved, say) if moved else None,
        meaning=(text(fields["text"]), *(say(f"diagnosis.meaning_{which}") for which in ("sweep", "slow", "met", "eta", "exact"))),
    )


def _settings_rows(fields: Fields, say: Say) -> tuple[tuple[Markup, Markup], ...]:
    kept = fields["kept_texts"]
    return (
        (say("diagnosis.table"), say("diagnosis.cells", count=fields["table"]["cells"])),
        (say("diagnosis.kept"), names(say, kept, SHOWN_CONSTRAINTS) if kept else say("diagnosis.kept_nothing")),
        (say("diagnosis.mechanism"), text(mechanism_text(say, fields["mechanism"]))),
        (say("diagnosis.pairs"), say("diagnosis.pairs_text", pairs=fields["pairs"], sweeps=fields["most_sweeps"])),
    )


def _diagnosis_table(rows: Sequence[Fields], say: Say) -> PageTable:
    header = ("block", "kernel", "lag", "met", "meeting", "recommended", "eta", "added")
    return PageTable(
        say("diagnosis.caption"),
        tuple(say(f"diagnosis.{column}") for column in header),
        tuple(
            (
                say("diagnosis.blocks", block=row["block"], count=row["blocks"]),
                row["kernel"],
                format_number(row["lag_sweeps"]),
                say("diagnosis.met_value", met=row["met"], pairs=row["pairs"]),
                say("diagnosis.meeting_value", median=row["median_meeting_sweeps"], longest=row["largest_meeting_sweeps"]),
                say("diagnosis.recommended_value", sweeps=row["recommended_sweeps"], steps=row["recommended_steps"]),
                row["eta"],
                "-" if row["added_delta"] is None else row["added_delta"],
            )
            for row in rows
        ),
        frozenset({2, 3, 4, 6, 7}),
    )


def _curves(rows: Sequence[Fields], say: Say) -> tuple[PageFigure, ...]:
    shown: dict[str, list[Fields]] = {}
    for row in rows:
        if row["curves"]:
            shown.setdefault(row["block"], []).append(row)
    return tuple(
        curve_figure(index, say("diagnosis.blocks", block=label, count=group[0]["blocks"]), group, say)
        for index, (label, group) in enumerate(shown.items())
    )


def _moving(rows: Sequence[Fields], say: Say) -> PageTable:
    return PageTable(
        say("diagnosis.moving_caption"),
        tuple(say(f"diagnosis.{column}") for column in ("block", "kernel", "accepted", "effective", "autocorrelation")),
        tuple(_movement(row, say) for row in rows),
    )


def _movement(row: Fields, say: Say) -> tuple[str, ...]:
    moved = row["movement"]
    size, time = moved["effective_sample_size"], moved["autocorrelation_sweeps"]
    missing = moved["note"] or say("diagnosis.nothing_moved")
    return (
        row["block"],
        row["kernel"],
        f"{100 * moved['acceptance_rate']:.3g} %",
        missing if size is None else say("diagnosis.of_draws", size=format_deviation(size), draws=moved["draws"]),
        missing if time is None else format_deviation(time),
    )
