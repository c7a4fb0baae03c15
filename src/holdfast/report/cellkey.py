"""The page of the cell key method: the check of a perturbation table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from holdfast.card.figure_facts import NoiseLawFacts
from holdfast.cellkey.check import Check, RowFigures
from holdfast.exact.formatting import RAISED, format_deviation, format_number, format_percent
from holdfast.report.delta_chart import DeltaCurve, delta_figure
from holdfast.report.figures.noise import noise_figure
from holdfast.report.frame import PageFigure, PageTable, Say, capital, name, render, text
from holdfast.wording.cellkey import check_sentences, key_size_text
from holdfast.wording.cellkey_losses import counts_text

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


def cellkey_html(check: Check) -> str:
    """The page of a check.

    Guarantees:  a pure function of its figures; every text is escaped; nothing is loaded from elsewhere.
    """
    say = Say()
    title = say.plain("cellkey.check", name=check.name)
    heading = say("cellkey.check", name=name(check.name))
    facts = vars(check_facts(check, say))
    return render("cellkey_check.html.j2", title=title, heading=heading, eyebrow=say("page.cellkey"), footer=title, **facts)


def check_facts(check: Check, say: Say) -> CheckFacts:
    """Everything on the page but its frame."""
    made = check.figures
    names = ("cellkey.rows_one", "cellkey.rows_one_on") if made.first == made.last else ("cellkey.rows_value", "cellkey.rows_value_on")
    noisy = [row for row in check.rows if any(noise for noise, _ in row.law)]
    chosen = [*noisy[: SHOWN_LAWS - 1], *noisy[SHOWN_LAWS - 1 :][-1:]]  # the smallest counts with noise and the last row shown
    return CheckFacts(
        given=(
            (say("cellkey.rows_label"), say(names[bool(made.repeat)], first=made.first, last=made.last)),
            (say("cellkey.keys_label"), text(_keys(made.key_size))),
            (say("cellkey.lowest_label"), say("cellkey.lowest_value", lowest=made.lowest_result)),
        ),
        sentences_said=tuple(map(text, check_sentences(check))),
        deltas=delta_figure(say("cellkey.deltas_title"), _curves(check, say), say),
        sizes=_sizes(check, say),
        rows=_rows(check.rows, say),
        more=say("cellkey.more_rows", count=check.more_rows) if check.more_rows else None,
        laws=tuple(
            noise_figure(say.plain, at, NoiseLawFacts(say.plain("cellkey.one_count", count=row.count), row.law)).part()
            for at, row in enumerate(chosen)
        ),
    )


def _curves(check: Check, say: Say) -> list[DeltaCurve]:
    """Return the curves of all counts, of those from 1 on or of a design before rounding, and of other numbers of keys."""
    sizes = [DeltaCurve(say("cellkey.size", size=_keys(size.key_size)), size.curve, key_size_text(size)) for size in check.key_sizes]
    curves = []
    for losses, curve in zip(check.chart_losses, check.curves, strict=True):
        delta, epsilon = _plateau(losses.plateau, losses.plateau_epsilon)
        label = "cellkey.before" if losses is check.before else "cellkey.own"
        text = say("cellkey.plateau", delta=delta, epsilon=epsilon)
        curves.append(DeltaCurve(say(label, counts=capital(counts_text(losses))), curve, text))
    return [*curves, *sizes]


def _sizes(check: Check, say: Say) -> PageTable:
    """Where delta stops falling: as the table is, and for other numbers of keys."""
    own = say("cellkey.as_it_is", size=_keys(check.figures.key_size))
    rows: list[tuple[str, str, str, str]] = [
        (own, capital(counts_text(losses)), *_plateau(losses.plateau, losses.plateau_epsilon))
        for losses in (check.losses, check.above_zero)
        if losses is not None
    ]
    rows += [
        (say("cellkey.too_few", count=size.lost, size=_keys(size.key_size)), "-", "-", "-")
        if size.lost
        else (_keys(size.key_size), capital(counts_text(size.losses)), *_plateau(size.losses.plateau, size.losses.plateau_epsilon))
        for size in check.key_sizes
    ]
    header = tuple(say(f"cellkey.sizes_{column}") for column in ("keys", "counts", "delta", "epsilon"))
    return PageTable(say("cellkey.sizes_caption"), header, tuple(rows), frozenset({2, 3}))


def _plateau(delta: float, epsilon: float) -> tuple[str, str]:
    return format_deviation(delta, is_bound=True), format_deviation(epsilon, is_bound=True)


def _keys(size: str | int) -> str:
    """A number of keys: 2³², or with its commas."""
    base, power, exponent = str(size).partition("^")
    return f"{base}{exponent.translate(RAISED)}" if power else format_number(int(base)) if base.isdecimal() else base


def _range(noise: Sequence[int], say: Say) -> Markup:
    """From the lowest value to the highest; none where there is only 0."""
    return say("cellkey.range_value", lowest=min(noise), highest=max(noise)) if any(noise) else say("cellkey.range_none")


def _rows(rows: Sequence[RowFigures], say: Say) -> PageTable:
    return PageTable(
        say("cellkey.noise_caption"),
        tuple(say(f"cellkey.{column}") for column in ("count", "bias", "variance", "unchanged", "range")),
        tuple(
            (
                format_number(row.count),
                f"{row.bias:+.2g}" if abs(row.bias) > DUST else "0",
                format_deviation(row.variance),
                format_percent(row.stays),
                _range([noise for noise, _ in row.law], say),
            )
            for row in rows
        ),
        frozenset({1, 2, 3, 4}),
    )
