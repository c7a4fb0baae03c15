"""Pages of the cell key method: the check of a perturbation table, and the report of published tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from markupsafe import Markup

from holdfast.exact.formatting import RAISED, format_deviation, format_number, format_percent
from holdfast.report.delta_chart import DeltaCurve, delta_figure
from holdfast.report.figures.facts import NoiseLawFacts
from holdfast.report.figures.noise import noise_figure
from holdfast.report.frame import Say, render
from holdfast.report.markup import code, name, tag, text
from holdfast.report.parts import PageFigure, PageTable

Fields: TypeAlias = Mapping[str, Any]

SHOWN_LAWS = 8
DUST = 1e-6
"""A smaller bias is what rounding to keys leaves."""


@dataclass(frozen=True)
class CheckFacts:
    """What the page of a check says; `templates/cellkey_check.html.j2` arranges it."""

    given: tuple[tuple[Markup, Markup], ...]
    sentences_said: tuple[Markup, ...]
    deltas: PageFigure
    sizes: PageTable
    rows: PageTable
    more: Markup | None
    laws: tuple[PageFigure, ...]


@dataclass(frozen=True)
class PerturbedFacts:
    """What the report of published tables says; `templates/cellkey_tables.html.j2` arranges it."""

    sentences_said: tuple[Markup, ...]
    tables: PageTable
    gaps: PageTable | None
    gap_text: tuple[Markup, ...]
    keys: tuple[tuple[Markup, Markup], ...]


def cellkey_html(fields: Fields) -> str:
    """The page of a check.

    Given:       what `check_fields` gives. Guarantees:  a pure function of it; every text is escaped; nothing is loaded from elsewhere.
    """
    say = Say()
    title = say.plain("cellkey.check", name=fields["name"])
    heading = say("cellkey.check", name=name(fields["name"]))
    facts = vars(check_facts(fields, say))
    return render("cellkey_check.html.j2", title=title, heading=heading, eyebrow=say("page.cellkey"), footer=title, **facts)


def check_facts(fields: Fields, say: Say) -> CheckFacts:
    """Everything on the page but its frame."""
    made, rows = fields["table"], fields["rows"]
    names = (
        ("cellkey.rows_one", "cellkey.rows_one_on") if made["first"] == made["last"] else ("cellkey.rows_value", "cellkey.rows_value_on")
    )
    curves = _curves(fields, say)
    noisy = [row for row in rows if any(noise for noise, _ in row["law"])]
    chosen = [*noisy[: SHOWN_LAWS - 1], *noisy[SHOWN_LAWS - 1 :][-1:]]  # the smallest counts with noise and the last row shown
    return CheckFacts(
        given=(
            (say("cellkey.rows_label"), say(names[bool(made["repeat"])], first=made["first"], last=made["last"])),
            (say("cellkey.keys_label"), text(_keys(made["key_size"]))),
            (say("cellkey.lowest_label"), say("cellkey.lowest_value", lowest=made["lowest_result"])),
        ),
        sentences_said=tuple(map(text, fields["text"])),
        deltas=delta_figure(say("cellkey.deltas_title", counts=fields["losses"]["counts"]), curves, say),
        sizes=_sizes(fields, say),
        rows=_rows(rows, say),
        more=say("cellkey.more_rows", count=fields["more_rows"]) if fields["more_rows"] else None,
        laws=tuple(
            noise_figure(say.plain, at, NoiseLawFacts(say.plain("cellkey.one_count", count=row["count"]), row["law"])).part()
            for at, row in enumerate(chosen)
        ),
    )


def perturbed_html(fields: Fields) -> str:
    """The report of published tables, from the fields of cellkey.json."""
    say, release = Say(), fields["release"]
    title = say.plain("cellkey.published", id=release["id"])
    return render(
        "cellkey_tables.html.j2",
        title=title,
        heading=say("cellkey.published", id=name(release["id"])),
        eyebrow=say("page.cellkey"),
        footer=title,
        banner=None if release["private"] else tag("strong", say("page.not_private")),
        mark=None if release["private"] else say.plain("page.not_private"),
        **vars(perturbed_facts(fields, say)),
    )


def perturbed_facts(fields: Fields, say: Say) -> PerturbedFacts:
    """Everything on the page but its frame."""
    gaps, ledger = fields["gaps"], fields["release"]["ledger"]
    header = ("gap_fine", "gap_coarse", "cells", "gap_unequal", "gap_largest")
    return PerturbedFacts(
        sentences_said=tuple(map(text, fields["text"])),
        tables=PageTable(
            say("cellkey.tables_caption"),
            tuple(say(f"cellkey.{column}") for column in ("table", "file", "cells")),
            tuple((one["name"], code(one["file"]), format_number(one["cells"])) for one in fields["tables"]),
            frozenset({2}),
        ),
        gaps=PageTable(
            say("cellkey.gaps_caption"),
            tuple(say(f"cellkey.{column}") for column in header),
            tuple((one["fine"], one["coarse"], *(format_number(one[key]) for key in ("cells", "unequal", "largest"))) for one in gaps),
            frozenset({2, 3, 4}),
        )
        if gaps
        else None,
        gap_text=tuple(text(one["text"]) for one in gaps),
        keys=(
            (say("cellkey.record_keys"), text(_keys(fields["settings"]["record_keys"]))),
            (say("cellkey.cell_keys"), _cell_keys(fields["settings"], say)),
            (say("cellkey.distance"), text(fields["distance_text"])),
            (say("cellkey.ledger"), say("cellkey.not_recorded") if ledger is None else say("cellkey.recorded", entry=code(ledger))),
        ),
    )


def _cell_keys(settings: Fields, say: Say) -> Markup:
    size, modulus = (_keys(settings[key]) for key in ("size", "modulus"))
    folded = say("cellkey.folded_not") if size == modulus else say("cellkey.folded", size=size)
    return say("cellkey.modulus", modulus=modulus, folded=say("cellkey.mixed", folded=folded) if settings["mixed"] else folded)


def _curves(fields: Fields, say: Say) -> list[DeltaCurve]:
    losses = fields["losses"]
    sizes = [DeltaCurve(say("cellkey.size", size=_keys(size["key_size"])), size["curve"], size["text"]) for size in fields["key_sizes"]]
    if fields["before"]:
        first = DeltaCurve(say("cellkey.before"), fields["before"], say("cellkey.before_text"))
    else:
        plateau = say("cellkey.plateau", delta=format_deviation(losses["plateau"]), epsilon=format_deviation(losses["plateau_epsilon"]))
        first = DeltaCurve(say("cellkey.own", size=_keys(fields["table"]["key_size"])), fields["own"], plateau)
    return [first, *sizes]


def _sizes(fields: Fields, say: Say) -> PageTable:
    """Where delta stops falling: as the table is, and for other numbers of keys."""
    own = say("cellkey.own", size=_keys(fields["table"]["key_size"]))
    rows: list[tuple[str, str, str]] = [] if fields["before"] else [(own, *_plateau(fields["losses"]))]
    rows += [
        (say("cellkey.too_few", count=size["lost"], size=_keys(size["key_size"])), "-", "-")
        if size["lost"]
        else (_keys(size["key_size"]), *_plateau(size))
        for size in fields["key_sizes"]
    ]
    header = tuple(say(f"cellkey.sizes_{column}") for column in ("keys", "delta", "epsilon"))
    return PageTable(say("cellkey.sizes_caption"), header, tuple(rows), frozenset({1, 2}))


def _plateau(found: Fields) -> tuple[str, str]:
    return format_deviation(found["plateau"]), format_deviation(found["plateau_epsilon"])


def _keys(size: Any) -> str:
    """A number of keys: 2³², or with its commas."""
    base, power, exponent = str(size).partition("^")
    return f"{base}{exponent.translate(RAISED)}" if power else format_number(int(base)) if base.isdecimal() else base


def _range(noise: Sequence[int], say: Say) -> Markup:
    """From the lowest value to the highest; none where there is only 0."""
    return say("cellkey.range_value", lowest=min(noise), highest=max(noise)) if any(noise) else say("cellkey.range_none")


def _rows(rows: Sequence[Fields], say: Say) -> PageTable:
    return PageTable(
        say("cellkey.noise_caption"),
        tuple(say(f"cellkey.{column}") for column in ("count", "bias", "variance", "unchanged", "range")),
        tuple(
            (
                format_number(row["count"]),
                f"{row['bias']:+.2g}" if abs(row["bias"]) > DUST else "0",
                format_deviation(row["variance"]),
                format_percent(row["stays"]),
                _range([noise for noise, _ in row["law"]], say),
            )
            for row in rows
        ),
        frozenset({1, 2, 3, 4}),
    )
