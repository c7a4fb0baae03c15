"""The report: one self-contained page for those who read and use the released table."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.report.frame import Say, render
from holdfast.report.html import (
    code,
    items,
    join,
    name,
    names,
    number,
    paragraph,
    plural,
    rounded_up,
    sd_text,
    show,
    table,
    text,
)
from holdfast.report.noise_chart import NoiseLaw, noise_figure
from holdfast.report.page import (
    LIST_TELLS,
    UNIVERSE_WORDS,
    Card,
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
    status_words,
    step_of,
    table_name,
    true_words,
    without_noise,
)
from holdfast.report.parts import Section

SHOWN_KEPT = 60
SHOWN_STATEMENTS = 100

UNBIASED = frozenset(
    {"generalized-laplace", "generalized-gaussian", "rounded-projection"}
    | {"projected-laplace", "projected-gaussian", "extended-laplace", "extended-gaussian"}
)
"""Mechanisms whose noise is zero on average in every cell, whatever the data."""


def report_html(card: Card, kept_rows: Sequence[tuple[str, str, int | str]], noise: Sequence[NoiseLaw]) -> str:
    """The report of a release.

    Given:       the card as plain values, in the shape of card.schema.json; the kept totals as (statement, name, total), of answers as
                 decimals; the law of a cell's noise, for as many kinds of cells as wanted, perhaps none.
    Guarantees:  a pure function of its arguments. `files` and `signature` of the card are not read, so two tables with equal kept totals
                 have the same report, byte for byte. Every text is escaped; nothing is loaded from elsewhere.
    """
    title = f"Report on release {card['release']['id']}"
    sections: tuple[Section, ...] = (_what(card), _promise(card))
    if is_suppressed(card):
        more: tuple[Section, ...] = (_kept(card, kept_rows), _exposed(card), _verify(card))
    else:
        sections += (_how_far_off(card), _kept(card, kept_rows), _exposed(card), _structure(card))
        apart = _bounds(card) if is_bounded(card) else _grid(card) if step_of(card) is not None else _negative(card)
        more = (_noise(card, noise), apart, _use(card), _verify(card))
    return render("report.html.j2", **release_frame(card, title), eyebrow=Say()("page.report"), sections=(*sections, *more))


def _section(name: str, heading: str, *pieces: str | None) -> Section:
    return Section(name, heading, join(*pieces))


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
            names(given["columns"], SHOWN_STATEMENTS),
            f". {_made(card)} {totals}.",
        ),
        paragraph(
            f"Date of the release: {card['release']['date'] or 'not given'}. "
            f"List of cells: {UNIVERSE_WORDS.get(given['universe'], given['universe'])}."
        ),
        paragraph(card["release"]["ledger_words"]),
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
        paragraph(guarantee["words"]),
        table("The promise in numbers", ("When", "The promise"), cost_rows(card)),
        paragraph(f"It holds between {guarantee['relation']}. Status: {guarantee['status']}."),
        paragraph("It does not cover the kept totals and what follows from them, facts about groups, or data outside this table."),
    )


def _how_far_off(card: Card) -> Section:
    error = card["expected_error"]
    if not error_is_known(card):
        return _section("error", f"How far off a {noun(card)} may be", paragraph(error["words"]))
    spread, zero, true = error["cell_standard_deviation"], without_noise(card), true_words(card)
    rows = [(f"cell, {which}", *_reach(spread[which], zero)) for which in ("smallest", "median", "largest")]
    what = noun(card)
    rows += [(name(margin["name"]), *_reach(margin["standard_deviation"], zero)) for margin in error["margins"]]
    header = (
        what.capitalize(),
        "Standard deviation",
        "Two of three within (normal approximation)",
        "95 % within (normal approximation)",
        "95 % within, whatever the law (Chebyshev)",
    )
    return _section(
        "error",
        f"How far off a {what} may be",
        paragraph(error["words"]),
        table(f"Distance between released and {true} {what} (standard deviation: {error['basis']})", header, rows),
        table("The noise of every unit of every level", ("Level", "By", "Units", "Standard deviation"), level_rows(card))
        if error["levels"]
        else None,
        paragraph(
            f"Two of three {what}s are within about one standard deviation of the {true} one, and 95 of 100 within about two (1.96). These "
            "are the figures of the normal law, as a guide; Laplace noise reaches about 2.1 standard deviations for 95 of 100. Chebyshev's "
            "inequality is on the safe side for any noise that is zero on average: at least 95 of 100 within 4.48 standard deviations."
        ),
    )


def _reach(sd: float | None, zero: str) -> tuple[str, str, str, str]:
    """Standard deviation, and the distances that hold for two thirds and for 95 %: normal quantiles 0.968 and 1.960; Chebyshev sqrt(20)."""
    if not sd:
        return (sd_text(sd), "-", "-", "-") if sd is None else (sd_text(sd, zero), "0", "0", "0")
    return sd_text(sd), rounded_up(0.9675 * sd), rounded_up(1.96 * sd), rounded_up(4.4722 * sd)


def _kept(card: Card, kept_rows: Sequence[tuple[str, str, int | str]]) -> Section:
    kept = card["kept"]
    identities = kept["identities"]
    known = (
        paragraph("Known of every data set beforehand, so nobody's secret: ", names(identities, SHOWN_STATEMENTS), ".")
        if identities
        else None
    )
    if not kept["totals"]:
        none = "No total is kept." if is_suppressed(card) else "No total is kept: every sum carries noise."
        return _section("kept", "What is kept", paragraph(none), known)
    rows = [
        (name(label), name(statement), total if isinstance(total, str) else number(total))
        for statement, label, total in kept_rows[:SHOWN_KEPT]
    ]
    rest, moved = len(kept_rows) - len(rows), moved_words(card)
    return _section(
        "kept",
        "What is kept",
        paragraph(
            f"These totals {'' if is_suppressed(card) else 'of the released table '}are those of the true table",
            ", but for rounding: " if moved else ": ",
            names(kept["statements"], SHOWN_STATEMENTS),
            f". {moved}" if moved else ".",
        ),
        known,
        table("Kept totals", ("Total of", "Statement", "Value"), rows) if rows else None,
        paragraph(f"{plural(rest, 'more kept total')}, listed in kept.csv.") if rest else None,
    )


def _exposed(card: Card) -> Section:
    exposed = card["exposed"]
    told = LIST_TELLS.get(card["table"]["universe"])
    support = None if told is None else paragraph(told)
    changed = revision_words(card)
    zeros = card["kept"]["zeros"]
    return _section(
        "exposed",
        "What is exposed",
        paragraph(exposed["words"], exposed_names(card)),
        paragraph(zeros["words"]) if zeros["cells"] else None,
        support,
        None if changed is None else paragraph(changed),
    )


def _structure(card: Card) -> Section:
    groups = card["sampler"]["groups"]
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
        for group in groups
    ]
    kept = card["kept"]
    free = f"Independent kept sums: {number(kept['independent'])}. Free dimensions: {number(kept['free_dimensions'])}."
    return _section(
        "structure",
        "Structure and samplers",
        paragraph(f"The noise is drawn block by block, each independent of the others. {free}"),
        table("Blocks of the table and how their noise is drawn", header, rows),
        paragraph(f"Status: {status_words(card)}."),
    )


def _noise(card: Card, noise: Sequence[NoiseLaw]) -> Section:
    mechanism = card["mechanism"]
    return _section(
        "noise",
        "How the noise is distributed",
        paragraph(f"Mechanism: {mechanism['name']}, {parameter_words(card)}. ", mechanism["law"], "."),
        *(noise_figure(number_of, law) for number_of, law in enumerate(noise, 1)),
    )


def _negative(card: Card) -> Section:
    average = "The noise is zero on average" if card["mechanism"]["name"] in UNBIASED else "The law of the noise is public"
    totals = ", and the kept totals would no longer hold" if card["kept"]["totals"] else ""
    return _section(
        "negative",
        "Negative counts",
        paragraph(
            f"A released count may be negative where the true one is small. It is left so on purpose. {average}; setting negative counts "
            f"to zero would raise small counts on average{totals}."
        ),
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


def _use(card: Card) -> Section:
    if is_bounded(card):
        return _section("use", "How to use the counts", items(_USE_WITHIN_BOUNDS))
    what = noun(card)
    lines = [
        f"A sum of {what}s that is a kept total, or follows from kept totals, is exact{', but for rounding' if moved_words(card) else ''}.",
        _SUMS_WITH_LEVELS if card["expected_error"]["levels"] else _SUMS.format(what=what),
        f"{what.capitalize()}s under one kept total share their errors: what one has too much, others have too little.",
        f"A share or a ratio of small {what}s can be far off. Compare the {what}s with their standard deviation first.",
        f"A difference between two {what}s that is smaller than their standard deviations may be noise alone.",
        f"Do not round, clip or rescale {what}s before adding them: that brings back a bias that the noise does not have."
        if card["mechanism"]["name"] in UNBIASED
        else f"Do not round, clip or rescale {what}s before adding them: the law of the noise would no longer describe the result.",
    ]
    return _section("use", f"How to use the {noun(card)}s", items(lines))


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
    versions = ", ".join(f"{key.replace('_', ' ')} {show(value)}" for key, value in card["software"].items())
    return _section(
        "verify",
        "How to verify",
        paragraph(
            code("holdfast verify folder"),
            f" computes each kept total {'over published counts ' if is_suppressed(card) else ''}again from the released counts, compares "
            "it with kept.csv, and every file with its checksum. It makes the promise, what is exposed, all figures and this page again "
            "from the card's exact parameters. It needs no secret. The files of the release and their checksums are in card.json, with "
            "everything said here in fields.",
        ),
        paragraph(
            "The card is not signed: nothing shows who made it."
            if card["release"]["signer"] is None
            else f"The card carries a signature by the key {card['release']['signer']}. Compare it with the one that the office publishes "
            "elsewhere."
        ),
        paragraph(f"Made with {versions}."),
    )
