"""The report: one self-contained page for those who read and use the released table."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.report.figures.area_map import map_figure
from holdfast.report.figures.errors import error_figure
from holdfast.report.figures.facts import ReportFacts
from holdfast.report.figures.figure import Figure
from holdfast.report.figures.heat_map import heat_figure
from holdfast.report.figures.noise import noise_figure
from holdfast.report.figures.ranked import ranked_figure
from holdfast.report.figures.relative import relative_figure
from holdfast.report.figures.sizes import size_figure
from holdfast.report.figures.svg import short
from holdfast.report.frame import Say, render
from holdfast.report.html import (
    Html,
    code,
    decimal_text,
    items,
    join,
    name,
    names,
    number,
    paragraph,
    plural,
    rounded_up,
    sd_text,
    table,
    tag,
    text,
)
from holdfast.report.page import (
    LIST_TELLS,
    UNIVERSE_WORDS,
    Card,
    column_names,
    cost_rows,
    error_is_known,
    exposed_names,
    is_bounded,
    is_suppressed,
    level_rows,
    moved_words,
    noun,
    parameter_words,
    release_frame,
    revision_words,
    say_of,
    status_words,
    step_of,
    table_name,
    true_words,
    without_noise,
)
from holdfast.report.parts import Section, Tile
from holdfast.wording.figures import percent, plain_number
from holdfast.wording.view import BIAS_HEADER, bias_rows, changed_sentence

SHOWN_KEPT = 3
SHOWN_STATEMENTS = 100
SHOWN_LEVELS = 12
SHOWN_GROUPS = 5
"""Rows of tables: card.json and kept.csv have all."""

UNBIASED = frozenset(
    {"generalized-laplace", "generalized-gaussian", "rounded-projection"}
    | {"projected-laplace", "projected-gaussian", "extended-laplace", "extended-gaussian"}
)
"""Mechanisms whose noise is zero on average in every cell, whatever the data."""

ALIKE = 0.9
"""The smallest standard deviation as a share of the largest, above which one of them stands for all."""
FAR = 2.0
"""Standard deviations of a difference from which noise alone is unlikely to make it."""


def report_html(card: Card, kept_rows: Sequence[tuple[str, str, int | str]], facts: ReportFacts) -> str:
    """The report of a release.

    Given:       the card as plain values, in the shape of card.schema.json; the kept totals as (statement, name, total), of answers as
                 decimals; what the figures are drawn from.
    Guarantees:  a pure function of its arguments. `files` and `signature` of the card are not read, so two tables with equal kept totals
                 have reports that differ in released numbers only. Every text is escaped; nothing is loaded from elsewhere.
    """
    title = f"Report on release {card['release']['id']}"
    sections: tuple[Section, ...] = (_what(card),)
    if is_suppressed(card):
        sections += (_kept(card, kept_rows), _promise(card), _verify(card))
    else:
        apart = (_bounds(card),) if is_bounded(card) else (_grid(card),) if step_of(card) is not None else ()
        sections += (_how_far_off(card, facts), _use(card, facts), *_pictures(card, facts), *apart, *_view(card, facts))
        sections += (_kept(card, kept_rows), _promise(card), _noise(card, facts), _verify(card))
    say = say_of(card)
    frame = release_frame(card, title)
    return render("report.html.j2", language=say.language, **frame, eyebrow=say("page.report"), tiles=_tiles(card), sections=sections)


def _section(name: str, heading: str, *pieces: str | None, figures: Sequence[Figure] = (), after: Html | None = None) -> Section:
    return Section(name, heading, join(*pieces), tuple(figure.part() for figure in figures), after)


def _tiles(card: Card) -> tuple[Tile, ...]:
    """The release in four numbers."""
    say = say_of(card)
    spread = card["expected_error"]["cell_standard_deviation"]
    typical, which = (spread["median"], "typical") if spread["median"] else (spread["largest"], "largest")
    tiles = [
        Tile(
            say("report.cells"),
            number(card["table"]["cells"]),
            say("report.left_out" if is_suppressed(card) else f"report.one_{noun(card)}"),
        ),
        Tile(say("report.kept"), number(card["kept"]["totals"]), say("report.kept_note"), exact=True),
        Tile(say("report.exposed"), number(card["exposed"]["cells"]), say("report.exposed_note"), exact=True),
    ]
    if typical is not None and not is_suppressed(card):
        tiles.append(Tile(say(f"report.{which}"), short(typical), say("report.typical_note")))
    return tuple(tiles)


def _what(card: Card) -> Section:
    given, kept = card["table"], card["kept"]
    totals = (
        f"{plural(kept['totals'], 'total')} {'holds' if kept['totals'] == 1 else 'hold'} exactly" if kept["totals"] else "No total is kept"
    )
    return _section(
        "what",
        "What this is",
        paragraph(
            "The table ",
            name(table_name(card)),
            f" {'lists' if is_suppressed(card) else f'gives one {noun(card)} for each of'} {plural(given['cells'], 'cell')}, named by ",
            names(column_names(card), SHOWN_STATEMENTS),
            f". {_made(card)} {totals}.",
        ),
    )


def _made(card: Card) -> str:
    if is_suppressed(card):
        return "Counts that the kept totals do not fix are left out, so that nothing is published beyond what follows from them."
    if is_bounded(card):
        return (
            f"It was drawn at random around the true table, within public bounds, so that little can be learned about any single "
            f"{card['guarantee']['unit']} beyond what kept totals and bounds give away. The law of the draw is public."
        )
    return (
        f"Random noise was added so that little can be learned about any single {card['guarantee']['unit']} beyond what kept totals give "
        "away. The law of the noise is public, so its effect can be computed."
    )


def _promise(card: Card) -> Section:
    guarantee = card["guarantee"]
    return _section(
        "promise",
        "The promise",
        None if card["release"]["private"] else paragraph("With a test key the promise does not hold. It would hold for a secret key."),
        tag("div", items(guarantee["sentences"]), class_="fine"),
        table("The promise in numbers", ("When", "The promise"), cost_rows(card)),
        paragraph(
            f"It holds between {guarantee['relation']}. Status: {guarantee['status']}. It does not cover the kept totals and what follows "
            "from them, facts about groups, or data outside this table."
        ),
    )


def _how_far_off(card: Card, facts: ReportFacts) -> Section:
    error, what = card["expected_error"], noun(card)
    figures = [
        *([error_figure("level", facts.levels, error["basis"], what)] if facts.levels else []),
        *([error_figure("margin", facts.margins, error["basis"], what)] if facts.margins else []),
        *([relative_figure(facts.relative, what)] if facts.relative else []),
    ]
    if not error_is_known(card):
        return _section("error", f"How far off a {what} may be", paragraph(error["words"]), figures=figures)
    spread, zero, true = error["cell_standard_deviation"], without_noise(card), true_words(card)
    rows = [(f"cell, {which}", *_reach(spread[which], zero)) for which in ("smallest", "median", "largest")]
    if spread["smallest"] and spread["smallest"] > ALIKE * spread["largest"]:
        rows = rows[1:2]
    if not facts.levels and not facts.margins:
        rows += [(name(margin["name"]), *_reach(margin["standard_deviation"], zero)) for margin in error["margins"]]
    header = (
        what.capitalize(),
        "Standard deviation",
        "Two of three within (normal approximation)",
        "95 % within (normal approximation)",
        "95 % within, whatever the law (Chebyshev)",
    )
    levels = level_rows(card)
    more = len(levels) - SHOWN_LEVELS
    return _section(
        "error",
        f"How far off a {what} may be",
        paragraph(error["words"]),
        tag(
            "details",
            tag("summary", say_of(card)("report.distances")),
            table(f"Distance between released and {true} {what} (standard deviation: {error['basis']})", header, rows),
        ),
        table("The noise of every unit of every level", ("Level", "By", "Units", "Standard deviation"), levels[:SHOWN_LEVELS])
        if levels
        else None,
        paragraph(say_of(card)("report.more_levels", count=more)) if more > 0 else None,
        figures=figures,
    )


def _reach(sd: float | None, zero: str) -> tuple[str, str, str, str]:
    """Standard deviation, and the distances that hold for two thirds and for 95 %: normal quantiles 0.968 and 1.960; Chebyshev sqrt(20)."""
    if not sd:
        return (sd_text(sd), "-", "-", "-") if sd is None else (sd_text(sd, zero), "0", "0", "0")
    return sd_text(sd), rounded_up(0.9675 * sd), rounded_up(1.96 * sd), rounded_up(4.4722 * sd)


def _kept(card: Card, kept_rows: Sequence[tuple[str, str, int | str]]) -> Section:
    kept, heading = card["kept"], say_of(card)("report.kept_heading")
    identities = kept["identities"]
    known = (
        paragraph("Known of every data set beforehand, so nobody's secret: ", names(identities, SHOWN_STATEMENTS), ".")
        if identities
        else None
    )
    if not kept["totals"]:
        none = "No total is kept." if is_suppressed(card) else "No total is kept: every sum carries noise."
        return _section("kept", heading, paragraph(none), known, *_exposed(card))
    rows = [
        (name(label), name(statement), decimal_text(total) if isinstance(total, str) else number(total))
        for statement, label, total in kept_rows[:SHOWN_KEPT]
    ]
    rest, moved = len(kept_rows) - len(rows), moved_words(card)
    return _section(
        "kept",
        heading,
        paragraph(
            f"These totals {'' if is_suppressed(card) else 'of the released table '}are those of the true table",
            ", but for rounding: " if moved else ": ",
            names(kept["statements"], SHOWN_STATEMENTS),
            f". {moved}" if moved else ".",
        ),
        known,
        table("Kept totals", ("Total of", "Statement", "Value"), rows, numbers={2}) if rows else None,
        paragraph(f"{plural(rest, 'more kept total')}, listed in kept.csv.") if rest else None,
        *_exposed(card),
    )


def _exposed(card: Card) -> tuple[Html | None, ...]:
    exposed = card["exposed"]
    told = LIST_TELLS.get(card["table"]["universe"])
    changed = revision_words(card)
    zeros = card["kept"]["zeros"]
    return (
        paragraph(exposed["words"], exposed_names(card)),
        paragraph(zeros["words"]) if zeros["cells"] else None,
        None if told is None else paragraph(told),
        None if changed is None else paragraph(changed),
    )


def _noise(card: Card, facts: ReportFacts) -> Section:
    mechanism, kept = card["mechanism"], card["kept"]
    header = ("Shape", "Blocks", "Cells", "Sampler", "Expected tries", "Why")
    rows = [
        (
            text(group["kind"]),
            number(group["blocks"]),
            number(group["cells"]),
            group["sampler"],
            "-" if group["expected_tries"] is None else number(group["expected_tries"]),
            group["why"],
        )
        for group in card["sampler"]["groups"]
    ]
    more = len(rows) - SHOWN_GROUPS
    free = f"Independent kept sums: {number(kept['independent'])}. Free dimensions: {number(kept['free_dimensions'])}."
    return _section(
        "noise",
        "How the noise is distributed",
        paragraph(f"Mechanism: {mechanism['name']}, {parameter_words(card)}. ", mechanism["law"], "."),
        paragraph(f"The noise is drawn block by block, each independent of the others. {free} Status: {status_words(card)}."),
        figures=[noise_figure(place, law) for place, law in enumerate(facts.noise, 1) if law.law],
        after=tag(
            "details",
            tag("summary", say_of(card)("report.blocks")),
            table("Blocks of the table and how their noise is drawn", header, rows[:SHOWN_GROUPS]),
            paragraph(say_of(card)("report.more_groups", count=more)) if more > 0 else None,
        ),
    )


def _pictures(card: Card, facts: ReportFacts) -> tuple[Section, ...]:
    """The published numbers themselves; nothing where there is nothing to draw."""
    what = noun(card)
    figures = [
        *([] if facts.areas is None else [map_figure(facts.areas, what)]),
        *([] if facts.grid is None else [heat_figure(facts.grid, what)]),
        *([] if facts.ranked is None else [ranked_figure(facts.ranked, what)]),
        *([] if facts.sizes is None else [size_figure(facts.sizes, what)]),
    ]
    return (_section("pictures", say_of(card)(f"report.pictures_{what}"), figures=figures),) if figures else ()


def _view(card: Card, facts: ReportFacts) -> tuple[Section, ...]:
    """The publication view in the folder, and how far it is off on average."""
    if (said := facts.view) is None:
        return ()
    say, rows = say_of(card), bias_rows(said)
    return (
        _section(
            "view",
            say("report.view"),
            paragraph(said["words"], " ", changed_sentence(said), " ", say("report.view_files")),
            paragraph(said["bias"]["words"]),
            table(say("report.view_bias"), BIAS_HEADER, rows, numbers={2, 3, 4}) if rows else None,
        ),
    )


def _negative(card: Card) -> str:
    average = "The noise is zero on average" if card["mechanism"]["name"] in UNBIASED else "The law of the noise is public"
    totals = ", and the kept totals would no longer hold" if card["kept"]["totals"] else ""
    return (
        f"A released count may be negative where the true one is small. It is left so on purpose. {average}; setting negative counts to "
        f"zero would raise small counts on average{totals}."
    )


def _grid(card: Card) -> Section:
    true = "are such numbers themselves" if card["table"]["grid"]["on_grid"] else _ROUNDED
    return _section(
        "digits",
        "Digits",
        paragraph(
            f"Every value is a whole number of steps of {step_of(card)}, written as an exact decimal. True values {true}. No digit beyond "
            "the steps is published. The noise is zero on average."
        ),
    )


_ROUNDED = (
    "were rounded to these steps before the noise was added, which the promise counts. Standard deviations are those of the noise; "
    "intervals (holdfast.interval) have room for the rounding too"
)


def _bounds(card: Card) -> Section:
    return _section(
        "bounds",
        "Bounds",
        paragraph(
            "Every released count lies within the public bounds, and every public inequality holds: the law itself knows them, and nothing "
            "is repaired afterwards. So counts are biased near the bounds. A count whose true value is at a bound can only come out on one "
            "side of it, and counts under the same kept total make up for that."
        ),
    )


def _use(card: Card, facts: ReportFacts) -> Section:
    if is_bounded(card):
        return _section("use", "How to use the counts", items(_USE_WITHIN_BOUNDS))
    what = noun(card)
    lines = [
        f"A sum of {what}s that is a kept total, or follows from kept totals, is exact{', but for rounding' if moved_words(card) else ''}.",
        _SUMS_WITH_LEVELS if card["expected_error"]["levels"] else _SUMS.format(what=what),
        f"{what.capitalize()}s under one kept total share their errors: what one has too much, others have too little.",
        f"A share or a ratio of small {what}s can be far off. Compare the {what}s with their standard deviation first.",
        f"Do not round, clip or rescale {what}s before adding them: that brings back a bias that the noise does not have."
        if card["mechanism"]["name"] in UNBIASED
        else f"Do not round, clip or rescale {what}s before adding them: the law of the noise would no longer describe the result.",
    ]
    if step_of(card) is None:
        lines.append(_negative(card))
    heading = say_of(card)(f"report.use_{what}")
    if not error_is_known(card):
        return _section("use", heading, items(lines))
    guide = (
        f"Two of three {what}s are within about one standard deviation of the {true_words(card)} one, and 95 of 100 within about 1.96. "
        "That is the normal law, as a guide; Laplace noise reaches about 2.1 standard deviations for 95 of 100. For any noise that "
        "is zero on average, at least 95 of 100 are within 4.48 (Chebyshev's inequality). "
    )
    exact = say_of(card)("report.intervals", command=code("holdfast interval folder"))
    return _section("use", heading, *_example(facts, what, say_of(card)), items(lines), paragraph(guide, exact))


def _example(facts: ReportFacts, what: str, say: Say) -> tuple[Html, ...]:
    """Numbers of this very table: how far off one is, a sum, a difference."""
    found = facts.example
    if found is None:
        return ()
    names = {"name": name(found.name), "other": name(found.other)}
    apart = abs(found.value - found.other_value)
    sure = apart > FAR * found.difference_deviation
    lines = [
        say(
            "report.example_interval" if found.by_law else "report.example_normal",
            **names,
            noun=what,
            value=plain_number(found.value),
            deviation=short(found.deviation),
            relative=percent(found.deviation / found.value),
            low=plain_number(found.low),
            high=plain_number(found.high),
        ),
        say(
            "report.example_sum" if found.sum_deviation else "report.example_exact",
            **names,
            noun=what,
            value=plain_number(found.value + found.other_value),
            deviation=short(found.sum_deviation),
            added=short(found.deviation + found.other_deviation),
        ),
        say(
            "report.example_far" if sure else "report.example_near",
            **names,
            noun=what,
            value=plain_number(apart),
            deviation=short(found.difference_deviation),
            times=short(apart / found.difference_deviation) if found.difference_deviation else "",
        ),
    ]
    return (tag("div", tag("h3", say("report.example")), items(lines), class_="example"),)


_SUMS = (
    "In any other sum the errors of the {what}s add up; they do not cancel. Its standard deviation is at most the sum of the standard "
    "deviations of its {what}s, and less where their noise is independent."
)
_SUMS_WITH_LEVELS = (
    "The errors of the counts in one unit of a level may partly cancel in its sums: the table of levels has the standard deviation of the "
    "unit. In any other sum it is at most the sum of the standard deviations of the units and counts that make it up."
)
_USE_WITHIN_BOUNDS = (
    "A sum of counts that is a kept total, or follows from kept totals, is exact.",
    "Other sums of counts near a bound are biased too: the errors of many small counts may all go the same way.",
    "Counts under one kept total share their errors: what one has too much, others have too little.",
    "A share or a ratio of small counts can be far off. How far depends on the true counts, so no standard deviations are published; "
    "for many tables holdfast.posterior computes what is to be expected of the true counts, given the released ones.",
    "Do not round, clip or rescale counts before adding them: the law would no longer describe the result.",
)


def _verify(card: Card) -> Section:
    given = card["table"]["universe"]
    return _section(
        "verify",
        "How to verify",
        paragraph(
            code("holdfast verify folder"),
            f" computes each kept total {'over published counts ' if is_suppressed(card) else ''}again from the released counts, compares "
            "it with kept.csv, and every file with its checksum. It makes the promise, what is exposed, all figures and this page again "
            "from the card's exact parameters. It needs no secret. The files of the release and their checksums are in card.json, with "
            "everything said here in fields. ",
            "The card is not signed: nothing shows who made it."
            if card["release"]["signer"] is None
            else f"The card carries a signature by the key {card['release']['signer']}. Compare it with the one that the office publishes "
            "elsewhere.",
        ),
        paragraph(
            f"Date of the release: {card['release']['date'] or 'not given'}. List of cells: "
            f"{UNIVERSE_WORDS.get(given, given)}. {card['release']['ledger_words']}",
            class_="note",
        ),
    )
