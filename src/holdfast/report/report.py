"""The report: one self-contained page for those who read and use the released table."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from holdfast.card.card import Card, LevelSpread
from holdfast.card.figure_facts import ReportFacts
from holdfast.exact.formatting import format_decimal, format_deviation, format_number, format_percent, format_published
from holdfast.report.figures.area_map import map_figure
from holdfast.report.figures.errors import error_figure, relative_figure
from holdfast.report.figures.heat_map import heat_figure
from holdfast.report.figures.noise import noise_figure
from holdfast.report.figures.ranked import ranked_figure
from holdfast.report.figures.sizes import size_figure
from holdfast.report.figures.svg import Figure
from holdfast.report.frame import PageSection, Tile, capital, code, items, join, name, paragraph, render, table, tag, text
from holdfast.report.page import (
    by_text,
    cell_text,
    cost_rows,
    deviation_text,
    disjoint_text,
    distance,
    error_is_known,
    error_label,
    exposed_text,
    formula,
    is_bounded,
    is_keyed,
    is_rounded,
    is_suppressed,
    is_weak,
    level_rows,
    list_tells,
    mechanism_text,
    names,
    noun,
    nouns,
    page_title,
    release_frame,
    revision_text,
    rounded_text,
    say_of,
    sd_text,
    sentences,
    signed_text,
    status_text,
    step_of,
    table_name,
    universe_text,
    wide_factor,
    without_noise,
)
from holdfast.report.rows import rows_section
from holdfast.wording.errors import is_unbiased
from holdfast.wording.exposure import KINDS, kept_texts
from holdfast.wording.view import bias_rows

WHOLE_KEPT, SHOWN_KEPT = 10, 3
SHOWN_CONSTRAINTS = 100
SHOWN_EXPOSED = 5
SHOWN_LEVELS = 12
SHOWN_GROUPS = 5
"""Rows of tables: card.json and kept.csv have all. A short list of kept totals is shown whole, of a longer one only the first."""

ALIKE = 0.9
"""The smallest standard deviation as a share of the largest, above which one of them stands for all."""
FAR = 2.0
"""Standard deviations of a difference from which noise alone is unlikely to make it."""


def report_html(card: Card, kept_rows: Sequence[tuple[str, str, int | str]], facts: ReportFacts) -> str:
    """The report of a release.

    Given:       the card; the kept totals as (constraint, name, total), of answers as
                 decimals; what the figures are drawn from.
    Guarantees:  a pure function of its arguments. `files` and `signature` of the card are not read, so two tables with equal kept totals
                 have reports that differ in released numbers only. Every text is escaped; nothing is loaded from elsewhere.
    """
    say = say_of(card)
    parts: tuple[PageSection, ...] = () if facts.rows is None else (rows_section(card, facts.rows),)
    if is_suppressed(card):
        parts += (_kept_section(card, kept_rows), _promise(card), _verify(card))
    else:
        apart = (_bounds(card),) if is_bounded(card) else (_grid(card),) if step_of(card) is not None else ()
        parts += (_how_far_off(card, facts), _use(card, facts), *_pictures(card, facts), *apart, *_view(card, facts))
        parts += (_kept_section(card, kept_rows), _promise(card), _noise(card, facts), _verify(card))
    frame = release_frame(card, page_title(card, "report"), office_only=False)
    told = {"eyebrow": say("page.report"), "lead": _lead(card), "tiles": _tiles(card), "sections": parts}
    return render("report.html.j2", language=say.language, **frame, **told)


def _section(name: str, heading: str, *pieces: str | None, figures: Sequence[Figure] = (), after: Markup | None = None) -> PageSection:
    return PageSection(name, heading, join(*pieces), tuple(figure.part() for figure in figures), after)


def _tiles(card: Card) -> tuple[Tile, ...]:
    """The release in four numbers."""
    say = say_of(card)
    spread, exposed, totals = card.expected_error.cell_standard_deviation, card.exposed.cells, card.kept.totals
    typical, which = (spread.median, "typical") if spread.median else (spread.largest, "largest")
    tiles = [
        Tile(
            say("report.cells"),
            format_number(card.table.cells),
            say("report.left_out" if is_suppressed(card) else f"report.one_{noun(card)}"),
        ),
        Tile(say("report.kept"), format_number(totals), say("report.kept_note") if totals else "", exact=True),
        Tile(say("report.exposed"), format_number(exposed), _exposed_note(card), exact=True),
    ]
    if typical is not None and not is_suppressed(card):
        tiles.append(
            Tile(
                error_label(card, say(f"report.{which}")),
                deviation_text(card, typical),
                say("report.typical_note"),
            )
        )
    return tuple(tiles)


def _exposed_note(card: Card) -> Markup:
    """Under the number of exposed cells: why, or how many cells are not decided."""
    exposed, say = card.exposed, say_of(card)
    if exposed.undecided:
        return say("report.exposed_undecided", count=exposed.undecided)
    if exposed.cells:
        return say("report.exposed_note", count=exposed.cells)
    return say("report.exposed_none" if card.kept.totals else "report.exposed_free")


def _lead(card: Card) -> Markup:
    """What this is, in a few sentences."""
    say, totals = say_of(card), card.kept.totals
    which = "report.what_listed" if is_suppressed(card) else f"report.what_{noun(card)}"
    noisy = "keyed" if is_keyed(card) else "weak" if is_weak(card) else "bounded" if is_bounded(card) else "noisy" if totals else "free"
    made = "suppressed" if is_suppressed(card) else noisy
    said = (
        say(which, count=card.table.cells, name=name(table_name(card)), by=by_text(card), **nouns(card)),
        say(f"report.made_{made}", protected=card.guarantee.protect),
        say("report.totals", count=totals) if totals else say("report.totals_none"),
    )
    return sentences(said)


def _promise(card: Card) -> PageSection:
    say = say_of(card)
    return _section(
        "promise",
        say("report.promise"),
        paragraph(say("report.promise_test_key")) if card.release.test_key else None,
        tag("div", items(card.guarantee.sentences), class_="full"),
        table(say("report.promise_numbers"), (say("report.promise_for"), say("report.promise_loss")), cost_rows(card)),
        paragraph(say("report.promise_not" if card.kept.totals else "report.promise_not_free")),
        *map(paragraph, disjoint_text(card)),
    )


def _how_far_off(card: Card, facts: ReportFacts) -> PageSection:
    error, say = card.expected_error, say_of(card)
    heading, figures = say("report.error", **nouns(card)), _error_figures(card, facts)
    if not error_is_known(card):
        return _section("error", heading, paragraph(error.text), figures=figures)
    spread, zero = error.cell_standard_deviation, without_noise(card)
    rows: list[tuple[str, ...]] = [
        (say(f"report.reach_{which}"), *_reach(card, value, zero))
        for which, value in (("smallest", spread.smallest), ("median", spread.median), ("largest", spread.largest))
    ]
    if spread.smallest and spread.largest and spread.smallest > ALIKE * spread.largest:
        rows = rows[1:2]
    if not facts.levels and not facts.margins:
        rows += [(name(margin.name), *_reach(card, margin.standard_deviation, zero)) for margin in error.margins]
    caption = say("report.reach_rounded" if is_rounded(card) else "report.reach", basis=error.basis, **nouns(card))
    header = (nouns(card)["Noun"], *(say(f"report.reach_{column}") for column in ("sd", "two_thirds", wide_factor(card)[1], "any")))
    shown = shown_levels(card.expected_error.levels)
    levels, more = [level_rows(card)[place] for place in shown], len(card.expected_error.levels) - len(shown)
    last = "about" if error.found in ("approximate", "estimated") else "sd"
    titles = tuple(say(f"report.levels_{column}") for column in ("level", "margin", "units", last))
    return _section(
        "error",
        heading,
        paragraph(error.text),
        tag("details", tag("summary", say("report.distances")), table(caption, header, rows)),
        table(say("report.levels"), titles, levels) if levels else None,
        paragraph(say("report.more_levels", count=more)) if more > 0 else None,
        figures=figures,
    )


def shown_levels(levels: Sequence[LevelSpread]) -> list[int]:
    """Places of the rows that the page shows: all, where they are few; else of each level the first margins that have noise, and the
    last, which is the finest.
    """
    if len(levels) <= SHOWN_LEVELS:
        return list(range(len(levels)))
    noisy: dict[str, list[int]] = {}
    for place, row in enumerate(levels):
        if row.largest:
            noisy.setdefault(row.level, []).append(place)
    first = max(1, SHOWN_LEVELS // max(len(noisy), 1) - 1)
    return [place for places in noisy.values() for place in (*places[:first], *places[first:][-1:])]


def _error_figures(card: Card, facts: ReportFacts) -> list[Figure]:
    basis, what, say = card.expected_error.basis, noun(card), say_of(card).plain
    return [
        *([error_figure(say, "level", facts.levels, basis, what)] if facts.levels else []),
        *([error_figure(say, "margin", facts.margins, basis, what)] if facts.margins else []),
        *([relative_figure(say, facts.relative, what)] if facts.relative else []),
    ]


def _reach(card: Card, sd: float | None, zero: str) -> tuple[str, str, str, str]:
    """Standard deviation, and the distances that hold for two thirds and for 95 %: normal quantile 0.968, which is more than that of a
    Laplace law; `wide_factor`; Chebyshev sqrt(20).
    """
    if not sd:
        return (sd_text(card, sd), "-", "-", "-") if sd is None else (sd_text(card, sd, zero), "0", "0", "0")
    two_thirds, wide, least = (distance(card, factor, sd) for factor in (0.9675, wide_factor(card)[0], 4.4722))
    return sd_text(card, sd), two_thirds, wide, least


def _kept_section(card: Card, kept_rows: Sequence[tuple[str, str, int | str]]) -> PageSection:
    kept, say, rounded = card.kept, say_of(card), rounded_text(card)
    labels = card.table.read_labels()
    phrases, identities = (kept_texts(kept.read_constraints(), labels, kind, say.language) for kind in KINDS)
    called = dict(zip(kept.constraints, phrases, strict=True))
    if not kept.totals:
        said = say("page.kept_none_suppressed" if is_suppressed(card) else "page.kept_none")
    else:
        which = "report.kept_rounded" if rounded else "report.kept_exact"
        said = say(which, constraints=names(say, phrases, SHOWN_CONSTRAINTS), rounded=rounded)
    known = names(say, identities, SHOWN_CONSTRAINTS)
    rows = [
        (
            name(cell_text(card, called.get(constraint, constraint) if label == constraint else label.removeprefix(f"{constraint}: "))),
            name(called.get(constraint, constraint)),
            format_decimal(total) if isinstance(total, str) else format_number(total),
        )
        for constraint, label, total in kept_rows[: WHOLE_KEPT if len(kept_rows) <= WHOLE_KEPT else SHOWN_KEPT]
    ]
    header = tuple(say(f"report.kept_{column}") for column in ("total", "constraint", "value"))
    rest = len(kept_rows) - len(rows)
    return _section(
        "kept",
        say("report.kept_heading"),
        paragraph(said),
        paragraph(say("page.identities", constraints=known)) if known else None,
        table(say("report.kept"), header, rows, numbers={2}) if rows else None,
        paragraph(say("report.kept_more", count=rest)) if rest else None,
        *_exposed_items(card),
    )


def _exposed_items(card: Card) -> tuple[Markup | None, ...]:
    zeros, some = card.kept.zeros, card.exposed.names[:SHOWN_EXPOSED]
    others = (zeros.text if zeros.cells else None, list_tells(card), revision_text(card))
    return (
        paragraph(exposed_text(card, SHOWN_EXPOSED)),
        tag("ul", *(tag("li", name(cell_text(card, cell))) for cell in some), class_="names") if some else None,
        *(paragraph(said) for said in others if said is not None),
    )


def _noise(card: Card, facts: ReportFacts) -> PageSection:
    mechanism, kept, say = card.mechanism, card.kept, say_of(card)
    header = tuple(say(f"report.blocks_{column}") for column in ("shape", "blocks", "cells", "sampler", "tries", "why"))
    rows = [
        (
            text(group.kind),
            format_number(group.blocks),
            format_number(group.cells),
            group.sampler,
            "-" if group.expected_tries is None else format_deviation(group.expected_tries),
            group.why,
        )
        for group in card.sampler.groups
    ]
    more = len(rows) - SHOWN_GROUPS
    told = [
        (say("report.mechanism"), mechanism_text(say, mechanism.name, mechanism.parameters)),
        (say("report.law"), formula(mechanism.law)),
        (say("report.drawn"), capital(status_text(card))),
        (say("report.free"), say("report.free_text", count=kept.independent, free=say("page.free", count=kept.free_dimensions))),
    ]
    return _section(
        "noise",
        say("report.noise"),
        tag("dl", *(tag("div", tag("dt", label), tag("dd", value)) for label, value in told), class_="facts"),
        figures=[noise_figure(say.plain, place, law) for place, law in enumerate(facts.noise, 1) if law.law],
        after=tag(
            "details",
            tag("summary", say("report.blocks")),
            table(say("report.blocks_caption"), header, rows[:SHOWN_GROUPS]),
            paragraph(say("report.more_groups", count=more)) if more > 0 else None,
        ),
    )


def _pictures(card: Card, facts: ReportFacts) -> tuple[PageSection, ...]:
    """The published numbers themselves; nothing where there is nothing to draw."""
    what, say = noun(card), say_of(card)
    figures = [
        *([] if facts.areas is None else [map_figure(say.plain, facts.areas, what)]),
        *([] if facts.heat is None else [heat_figure(say.plain, facts.heat, what)]),
        *([] if facts.ranked is None else [ranked_figure(say.plain, facts.ranked, what)]),
        *([] if facts.sizes is None else [size_figure(say.plain, facts.sizes, what)]),
    ]
    return (_section("pictures", say(f"report.pictures_{what}"), figures=figures),) if figures else ()


def _view(card: Card, facts: ReportFacts) -> tuple[PageSection, ...]:
    """The publication view in the folder, and how far it is off on average."""
    if (said := facts.view) is None:
        return ()
    say, rows = say_of(card), bias_rows(said)
    header = tuple(say(f"report.view_{column}") for column in ("level", "size", "units", "mean", "error"))
    changed = say("report.view_changed", changed=said.changed, cells=said.cells)
    return (
        _section(
            "view",
            say("report.view"),
            paragraph(sentences((said.text, changed, say("report.view_files")))),
            paragraph(said.bias.text),
            table(say("report.view_bias"), header, rows, numbers={2, 3, 4}) if rows else None,
        ),
    )


def _grid(card: Card) -> PageSection:
    say = say_of(card)
    true = say("report.digits_rounded" if is_rounded(card) else "report.digits_exact")
    return _section("digits", say("report.digits"), paragraph(say("report.digits_text", step=step_of(card) or "", true=true)))


def _bounds(card: Card) -> PageSection:
    say = say_of(card)
    return _section("bounds", say("report.bounds"), paragraph(say("report.bounds_text")))


def _use(card: Card, facts: ReportFacts) -> PageSection:
    say, told, totals = say_of(card), nouns(card), card.kept.totals
    shared = ("use_shared",) if totals else ()
    if is_bounded(card):
        bounded = (*(("use_exact",) if totals else ()), "use_bounded_sums", *shared, "use_bounded_ratio", "use_not_law")
        return _section("use", say("report.use_bounded"), items(say(f"report.{line}", **told) for line in bounded))
    if is_keyed(card):
        return _section("use", say("report.use_bounded"), items(say(f"report.{line}", **told) for line in ("use_keyed", "use_not_law")))
    unbiased = is_unbiased(card.mechanism.name)
    names_of_lines = (
        *(("use_exact_rounded" if rounded_text(card) else "use_exact",) if totals else ()),
        "use_levels" if card.expected_error.levels else "use_sums" if totals else "use_sums_free",
        *shared,
        "use_ratio",
        "use_not_bias" if unbiased else "use_not_law",
    )
    lines = [say(f"report.{line}", **told) for line in names_of_lines]
    if step_of(card) is None:
        lines.append(sentences((say("report.use_negative"), say("report.use_negative_totals") if totals else None)))
    heading = say(f"report.use_{noun(card)}")
    if not error_is_known(card):
        return _section("use", heading, items(lines))
    guide = say("report.guide_rounded" if is_rounded(card) else "report.guide", **told)
    exact = say("report.intervals", command=code("holdfast interval folder"), **told)
    return _section("use", heading, *_example(facts, card), items(lines), paragraph(sentences((guide, exact))))


def _example(facts: ReportFacts, card: Card) -> tuple[Markup, ...]:
    """Numbers of this very table: how far off one is, a sum, a difference."""
    found, say = facts.example, say_of(card)
    if found is None:
        return ()
    told = {"name": name(cell_text(card, found.name)), "other": name(cell_text(card, found.other)), **nouns(card)}
    apart, deviation = abs(found.value - found.other_value), found.difference_deviation
    which = "known" if not deviation else "far" if apart > FAR * deviation else "near" if apart else "equal"
    lines = [
        say(
            "report.example_interval" if found.by_law else "report.example_normal",
            **told,
            value=format_published(found.value),
            deviation=format_deviation(found.deviation),
            relative=format_percent(found.deviation / found.value),
            low=format_published(found.low),
            high=format_published(found.high),
        ),
        say(
            "report.example_sum" if found.sum_deviation else "report.example_exact",
            **told,
            value=format_published(found.value + found.other_value),
            deviation=format_deviation(found.sum_deviation),
            added=format_deviation(found.deviation + found.other_deviation),
        ),
        say(
            f"report.example_{which}",
            **told,
            value=format_published(apart),
            deviation=format_deviation(deviation),
            times=format_deviation(apart / deviation) if deviation else "",
        ),
    ]
    return (tag("div", tag("h3", say("report.example")), items(lines), class_="example"),)


def _verify(card: Card) -> PageSection:
    say = say_of(card)
    phrases = say("report.verify_suppressed" if is_suppressed(card) else "report.verify_text", command=code("holdfast verify folder"))
    note = sentences((say("report.list", universe=universe_text(card)), card.release.ledger_text))
    return _section("verify", say("report.verify"), paragraph(sentences((phrases, signed_text(card)))), paragraph(note, class_="note"))
