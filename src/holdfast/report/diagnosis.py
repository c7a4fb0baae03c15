"""The page of `holdfast diagnose`: how fast chains come to their law, as a table and as figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from holdfast.report.curve_chart import curve_figure
from holdfast.report.frame import Say, render
from holdfast.report.html import Html, items, join, name, names, number, paragraph, plural, settings, table, tag, text

Fields: TypeAlias = Mapping[str, Any]

MARK = "CONFIDENTIAL"
SHOWN_STATEMENTS = 100


def diagnosis_html(fields: Fields) -> str:
    """The page of a diagnosis.

    Given:       what `Diagnosis.to_fields` gives.
    Guarantees:  a pure function of it. Every text is escaped; nothing is loaded from elsewhere. What depends on the data says so first:
                 in the title, at the top and at the end, and on every printed page.
    """
    title = f"Chains for {fields['table']['name']}"
    confidential = fields["confidential"]
    return render(
        "diagnosis.html.j2",
        title=title,
        heading=join("Chains for ", name(fields["table"]["name"])),
        eyebrow=Say()("page.diagnosis"),
        footer=title,
        banner=tag("strong", fields["confidential_words"]) if confidential else None,
        mark=MARK if confidential else None,
        body=join(_what(fields), *_found(fields), _meaning(fields)),
    )


def _what(fields: Fields) -> Html:
    mechanism = fields["mechanism"]
    kept = _kept(fields["kept"])
    return tag(
        "section",
        paragraph(
            "How many steps Markov chains need before they draw the noise of this release. No count enters: "
            if not fields["confidential"]
            else "How many steps Markov chains need before they draw the noise of this release: ",
            "two chains started apart run until they are the same table, many times, and the times until then say how far a chain can "
            "be from its law.",
        ),
        items(
            [
                text(f"Table: {plural(fields['table']['cells'], 'cell')}."),
                kept,
                text(f"Mechanism: {mechanism['name']}, {settings(mechanism['parameters'])}."),
                text(f"Each curve: {plural(fields['pairs'], 'coupled pair')}, given up after {plural(fields['most_sweeps'], 'sweep')}."),
            ]
        ),
    )


def _kept(statements: Sequence[str]) -> Html:
    return Html(text("Kept: ") + names(statements, SHOWN_STATEMENTS) + text(".")) if statements else text("Kept: nothing.")


def _found(fields: Fields) -> list[Html]:
    rows = fields["rows"]
    if not rows:
        return [_section("What was found", paragraph(fields["together"]["words"]))]
    bounded = [row for row in rows if row["problem"] is None]
    others = [row for row in rows if row["problem"] is not None]
    out = [
        _section(
            "What was found",
            table("Meetings and recommended steps; times in sweeps", _HEADER, map(_cells, bounded)) if bounded else None,
            paragraph("Without a bound:") if others else None,
            items([text(f"{row['kernel']}, {row['block']}: {row['problem']}") for row in others]) if others else None,
            *(paragraph(f"Warning: {row['kernel']}, {row['block']}: {row['warning']}.") for row in rows if row["warning"] is not None),
            paragraph("All blocks: ", fields["together"]["words"]),
        )
    ]
    shown: dict[str, list[Fields]] = {}
    for row in rows:
        if row["curves"]:
            shown.setdefault(row["block"], []).append(row)
    figures = [curve_figure(index, f"{label} ({_blocks(group)})", group) for index, (label, group) in enumerate(shown.items())]
    moved = [row for row in rows if row["movement"] is not None]
    if figures:
        out.append(_section("Curves", paragraph(_CURVES), *figures))
    if moved:
        out.append(_section("How the chains move", paragraph(_MOVING), table("Conventional diagnostics", _MOVED, map(_movement, moved))))
    return out


_HEADER = ("Block", "Blocks", "Kernel", "Lag", "Pairs met", "Median", "Longest", "Recommended", "eta, one block", "Added to delta")
_MOVED = ("Kernel", "Block", "Accepted", "Effective sample size", "Autocorrelation time, sweeps")
_CURVES = (
    "How far the law of a chain after so many sweeps can be from the law it aims at, in total variation: each curve is an estimate, from "
    "the pairs, of an upper bound. Curves of one kernel at several lags should agree once they are well below 1; where they do not, the "
    "shorter lag makes the curve blunt."
)
_MOVING = "How fast a chain moves once it is there. No promise rests on these figures."


def _cells(row: Fields) -> Sequence[str]:
    return (
        row["block"],
        number(row["blocks"]),
        row["kernel"],
        number(row["lag_sweeps"]),
        f"{number(row['met'])} of {number(row['pairs'])}",
        number(row["median_meeting_sweeps"]),
        number(row["largest_meeting_sweeps"]),
        f"{plural(row['recommended_sweeps'], 'sweep')} ({plural(row['recommended_steps'], 'step')})",
        row["eta"],
        "-" if row["added_delta"] is None else row["added_delta"],
    )


def _movement(row: Fields) -> Sequence[str]:
    moved = row["movement"]
    size, time = moved["effective_sample_size"], moved["autocorrelation_sweeps"]
    missing = moved["note"] or "nothing moved"
    return (
        row["kernel"],
        row["block"],
        f"{100 * moved['acceptance_rate']:.3g} %",
        missing if size is None else f"{number(size)} of {plural(moved['draws'], 'draw')}",
        missing if time is None else number(time),
    )


def _blocks(group: Sequence[Fields]) -> str:
    return plural(group[0]["blocks"], "block")


def _meaning(fields: Fields) -> Html:
    return _section(
        "What this says and what not",
        paragraph(fields["words"]),
        items(
            [
                "A sweep is as many steps as touch every free dimension about once.",
                "Pairs that are too slow and too rare to be among those run are not seen. No proof of convergence is given.",
                "A pair that did not meet is counted, never left out; a curve with such pairs is not a bound.",
                "eta is the estimated error of one block, in total variation. The errors of blocks add up to one eta, which adds "
                "(1 + e^epsilon) eta to delta.",
                "Exact samplers have no such error and need none of this.",
            ]
        ),
    )


def _section(title: str, *pieces: str | None) -> Html:
    return tag("section", tag("h2", title), *pieces)
