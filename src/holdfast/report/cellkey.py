"""Pages of the cell key method: the check of a perturbation table, and the report of published tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from holdfast.report.delta_chart import DeltaCurve, delta_figure
from holdfast.report.frame import Say, render
from holdfast.report.html import Html, code, items, join, number, paragraph, plural, table, tag, text
from holdfast.report.noise_chart import NoiseLaw, noise_figure
from holdfast.report.page import NOT_PRIVATE

Fields: TypeAlias = Mapping[str, Any]

SHOWN_LAWS = 8


def cellkey_html(fields: Fields) -> str:
    """The page of a check.

    Given:       what `check_fields` gives. Guarantees:  a pure function of it; every text is escaped; nothing is loaded from elsewhere.
    """
    made = fields["table"]
    last = " and above" if made["repeat"] else ""
    body = (
        items(
            [
                text(f"Rows for counts {number(made['first'])} to {number(made['last'])}{last}."),
                text(f"Keys: {made['key_size']}. Published values from {number(made['lowest_result'])} on."),
            ]
        ),
        _section("What the figures mean", items(map(text, fields["words"]))),
        _section("delta against epsilon", _curves(fields)),
        _section("The noise of each count", _rows(fields["rows"], fields["more_rows"]), *_laws(fields["rows"])),
    )
    title = f"Perturbation table: {fields['name']}"
    return render("cellkey.html.j2", title=title, eyebrow=Say()("page.cellkey"), footer=title, body=join(*body))


def perturbed_html(fields: Fields) -> str:
    """The report of published tables, from the fields of cellkey.json."""
    release = fields["release"]
    banner = None if release["private"] else tag("strong", NOT_PRIVATE)
    tables = [(one["name"], number(one["cells"]), code(one["file"])) for one in fields["tables"]]
    settings = fields["settings"]
    gaps = [(gap["fine"], gap["coarse"], number(gap["cells"]), number(gap["unequal"]), number(gap["largest"])) for gap in fields["gaps"]]
    recorded = "in no ledger" if release["ledger"] is None else f"in a ledger, as a cell key release: {release['ledger']}"
    body = (
        items(map(text, fields["words"])),
        _section("Tables", table("Published tables", ("Table", "Cells", "File"), tables)),
        _section(
            "How far tables are from adding up",
            table("Gaps between published tables", ("Cells of", "added up to", "Cells", "Unequal", "Largest gap"), gaps)
            if gaps
            else paragraph("No table has all columns of another."),
            items([text(gap["words"]) for gap in fields["gaps"]]) if gaps else None,
        ),
        _section(
            "Keys",
            items(
                [
                    text(
                        f"Record keys: {settings['record_keys']}. Cell keys: their sum modulo {settings['modulus']}, {_folded(settings)}."
                    ),
                    text(fields["distance_words"]),
                    text(f"Recorded {recorded}."),
                ]
            ),
        ),
    )
    title = f"Tables by the cell key method: {release['id']}"
    mark = None if banner is None else NOT_PRIVATE
    return render("cellkey.html.j2", title=title, eyebrow=Say()("page.cellkey"), footer=title, body=join(*body), banner=banner, mark=mark)


def _folded(settings: Fields) -> str:
    folded = "as it is" if settings["size"] == settings["modulus"] else f"folded to {settings['size']} keys"
    return f"{folded}, then mixed" if settings["mixed"] else folded


def _curves(fields: Fields) -> Html:
    losses = fields["losses"]
    words = f"delta stays at {losses['plateau']:.6g} from epsilon {losses['plateau_epsilon']:.6g} on"
    curves = [DeltaCurve("before rounding to keys", fields["before"], "the law itself")] if fields["before"] else []
    sizes = [DeltaCurve(f"{size['key_size']} keys", size["curve"], size["words"]) for size in fields["key_sizes"]]
    if not fields["before"]:
        curves.append(DeltaCurve(f"as it is, {fields['table']['key_size']} keys", fields["own"], words))
    return delta_figure(f"delta against epsilon: {losses['counts']}", [*curves, *sizes])


def _rows(rows: Sequence[Fields], more: int) -> Html:
    shown = [
        (number(row["count"]), f"{row['bias']:+.3g}", f"{row['variance']:.6g}", f"{100 * row['stays']:.3g} %", _range(row["law"]))
        for row in rows
    ]
    found = table("Rows", ("Count", "Bias", "Variance", "Unchanged", "Noise"), shown)
    return Html(found + (paragraph(f"And {plural(more, 'more row')}.") if more else ""))


def _range(law: Sequence[tuple[int, float]]) -> str:
    values = [noise for noise, _ in law]
    return f"{min(values)} to {max(values)}"


def _laws(rows: Sequence[Fields]) -> list[Html]:
    """Charts of the smallest counts and of the last row shown."""
    chosen = [*rows[: SHOWN_LAWS - 1], *rows[SHOWN_LAWS - 1 :][-1:]]
    return [noise_figure(place, NoiseLaw(f"Count {row['count']}", row["law"])) for place, row in enumerate(chosen)]


def _section(title: str, *pieces: str | None) -> Html:
    return tag("section", tag("h2", title), *pieces)
