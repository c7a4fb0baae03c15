"""The statement: two printed pages for the person who signs a release off.

First the budget as it was approved, then what it means, what is exact, what is exposed, how far off a count is, what is not promised; at
the end the exact parameters and the lines to sign. Long lists are in files of the release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from markupsafe import Markup

from holdfast.card.card import Card, GrantInfo
from holdfast.card.parts import AskedInfo, CostInfo, KeyedInfo, ViewInfo
from holdfast.exact.formatting import format_number, format_parameter
from holdfast.report.frame import PageFigure, PageTable, Say, Tile, capital, code, join, name, render, tag, text
from holdfast.report.page import (
    EXPOSED_SHAPE,
    by_text,
    cell_text,
    deviation_text,
    disjoint_text,
    distance,
    distance_rows,
    distance_text,
    error_label,
    exposed_text,
    formula,
    is_as_asked,
    is_bounded,
    is_keyed,
    is_rounded,
    is_suppressed,
    is_weak,
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
    sentences,
    signed_text,
    status_text,
    step_of,
    universe_text,
    wide_factor,
    without_noise,
)
from holdfast.wording.budget import Guess, hundredths
from holdfast.wording.exposure import KINDS, kept_texts
from holdfast.wording.figures import is_nil

# What is longer would not leave the rest room on two pages; the whole lists are in card.json.
SHOWN_CONSTRAINTS = 5
SHOWN_EXPOSED = 3
WIDTH, ROW, BAR = 360, 50, 24
"""As wide as a telephone: the text keeps its size there."""
SHOWN_GROUPS = 3
ENTRY_DIGITS = 12


@dataclass(frozen=True)
class StatementFacts:
    """What the statement says, in the order of its sections; `templates/statement.html.j2` arranges it."""

    lead: Markup
    budget_title: Markup
    budget: tuple[Tile, ...]
    budget_text: tuple[Markup, ...]
    meaning: Markup
    odds: PageFigure
    meaning_text: tuple[Markup, ...]
    exact: tuple[Markup, ...]
    exposed: Markup
    exposed_names: tuple[Markup, ...]
    exposed_text: tuple[Markup, ...]
    error_title: Markup
    error: tuple[Tile, ...]
    error_text: tuple[Markup, ...]
    not_promised: tuple[Markup, ...]
    promise_title: Markup
    promise: tuple[Markup, ...]
    parameters: tuple[tuple[Markup, Markup], ...]
    check: tuple[Markup, ...]
    sign: Markup


def statement_html(card: Card, view: ViewInfo | None = None) -> str:
    """The statement of a release, from its card.

    Given:       the card. `files` and `signature` are not read: the statement is made before them.
                 `view`: what view.json says, where the folder has a publication view.
    Guarantees:  a pure function of its arguments; every text in it is escaped; nothing is loaded from elsewhere.
    """
    say = say_of(card)
    frame = release_frame(card, page_title(card, "statement"))
    return render(
        "statement.html.j2", language=say.language, **frame, eyebrow=say("page.statement"), **vars(statement_facts(card, say, view))
    )


def statement_facts(card: Card, say: Say, view: ViewInfo | None = None) -> StatementFacts:
    """Everything on the page but its frame."""
    release, guarantee = card.release, card.guarantee
    protected = guarantee.protect
    person = guarantee.per_person is not None
    costs = guarantee.per_person or guarantee.smallest_secret
    checked = "statement.check_suppressed" if is_suppressed(card) else "statement.check_text"
    guess = Guess(Fraction(costs.epsilon), Fraction(costs.delta), Fraction(costs.rho) if costs.kind == "zcdp" and costs.rho else None)
    return StatementFacts(
        lead=_lead(card, say),
        budget_title=say("statement.protection" if is_keyed(card) else "statement.budget"),
        budget=_budget(card, say),
        budget_text=_budget_text(card, say),
        meaning=say(f"statement.meaning_{'person' if person else 'secret'}{'' if card.kept.totals else '_free'}", protected=protected),
        odds=odds_figure(say, protected, guess),
        meaning_text=() if guarantee.status == "exact" else (say("statement.estimated"),),
        exact=(
            *_exact_lines(card, say),
            *(() if view is None else (say("statement.view" if card.kept.totals else "statement.view_free", base=view.base),)),
        ),
        exposed=exposed_text(card, SHOWN_EXPOSED),
        exposed_names=tuple(name(cell_text(card, cell)) for cell in card.exposed.names[:SHOWN_EXPOSED]),
        exposed_text=_exposed_text(card),
        error_title=say("statement.error" if step_of(card) is None else "statement.error_values"),
        error=_error_tiles(card, say),
        error_text=_error_text(card, say),
        not_promised=_not_promised(card, say),
        promise_title=say("statement.promise_keyed" if is_keyed(card) else "statement.promise"),
        promise=tuple(map(text, guarantee.sentences)),
        parameters=_parameters(card, say),
        check=(sentences((say(checked, command=code("holdfast verify folder")), signed_text(card))),),
        sign=say("statement.sign_text", id=name(release.id), name=name(card.table.name))
        if card.table.name is not None
        else say("statement.sign_text_unnamed", id=name(release.id)),
    )


def _lead(card: Card, say: Say) -> Markup:
    """What was published, what holds exactly, what noise changed and how far, in sentences for everyone."""
    if is_suppressed(card):
        which = "statement.lead_suppressed" if card.exposed.cells else "statement.lead_suppressed_all"
        return sentences((say(which, count=card.table.cells, by=by_text(card)), _lead_exact(card, say)))
    said = [say(f"statement.lead_{noun(card)}", count=card.table.cells, by=by_text(card)), _lead_exact(card, say)]
    which, typical = _which(card, say), _typical(card)
    if is_keyed(card):
        return sentences((*said, say("statement.others_keyed")))
    if is_bounded(card):
        said.append(say("statement.lead_bounded", which=which))
    else:
        is_little = any(given.kind == "little-noise" for given in card.warnings)
        said.append(say("statement.lead_nil" if is_little else "statement.lead_noise", which=which))
    if typical is not None and not is_nil(typical, noun(card)):
        reach = distance(card, wide_factor(card)[0], typical)
        said.append(say("statement.lead_reach_rounded" if is_rounded(card) else "statement.lead_reach", reach=reach, **nouns(card)))
    return sentences((*said, say("statement.lead_weak") if is_weak(card) else None))


def _lead_exact(card: Card, say: Say) -> Markup | None:
    phrases = kept_texts(card.kept.read_constraints(), card.table.read_labels(), KINDS[0], say.language)
    which = "statement.lead_unrounded" if rounded_text(card) else "statement.lead_exact"
    return say(which, count=card.kept.totals, constraints=names(say, phrases, SHOWN_CONSTRAINTS)) if card.kept.totals else None


def _typical(card: Card) -> float | None:
    """The standard deviation that stands for all: that of a typical cell, or the largest where half of the cells or more have none."""
    spread = card.expected_error.cell_standard_deviation
    return None if spread.smallest is None or spread.median is None else spread.median or spread.largest or None


def _asked_note(card: Card, asked: AskedInfo, say: Say) -> Markup:
    """What the budget was asked for."""
    if asked.is_for_protected:
        return say("statement.asked_person", protected=card.guarantee.protect)
    distance = distance_text(card, "rho" in asked.parameters)
    return say("statement.asked_noise") if asked.per is None else say("statement.asked_distance", distance=distance)


def _budget(card: Card, say: Say) -> tuple[Tile, ...]:
    """The budget for one person, as asked for, and where it is recorded and granted."""
    guarantee, release = card.guarantee, card.release
    protected, asked, alone = guarantee.protect, guarantee.asked, guarantee.per_person
    tiles = []
    as_asked = is_as_asked(guarantee)
    if guarantee.keyed is not None:  # epsilon 0 with delta 1 promises nothing, and 0 alone would read as all
        tiles += _keyed_tiles(guarantee.keyed, say)
    elif alone is None:
        value, note = _large(guarantee.smallest_secret, say)
        nobody = say("statement.nobody_alone", protected=protected)
        tiles.append(Tile(say("statement.budget_secret"), value, join(note, ". " if note else "", nobody)))
    else:
        label = "statement.budget_person_asked" if as_asked else "statement.budget_person"
        # What was requested stands large, not the rho that it was turned into.
        pair = as_asked and asked is not None and "rho" not in asked.parameters
        tiles.append(Tile(say(label, protected=protected), *(_large_pair if pair else _large)(alone, say)))
    if asked is not None and not as_asked:
        tiles.append(Tile(say("statement.asked"), _numbers(asked.parameters), _asked_note(card, asked, say)))
    if release.ledger is None:
        tiles.append(Tile(say("statement.ledger"), say("statement.not_recorded")))
    else:
        entry = say("statement.entry", entry=code(_entry(release.ledger)))
        tiles.append(Tile(say("statement.ledger"), say("statement.recorded"), entry))
        tiles.append(_grant(release.grant, say))
    return tuple(tiles)


def _keyed_tiles(noise: KeyedInfo, say: Say) -> list[Tile]:
    """What protects counts by the cell key method, and how far: no budget, since nothing of this adds up."""
    shown = {name: format_parameter(value) for name, value in vars(noise).items() if isinstance(value, str)}
    counts = say("statement.keyed_counts" if noise.last is None else "statement.keyed_counts_to", first=noise.first, last=noise.last or 0)
    value = say("cellkey.range_value", lowest=noise.lowest, highest=noise.highest)
    note = "statement.keyed_noise_weighted" if noise.weighted else "statement.keyed_noise_note"
    tiles = [
        Tile(say("statement.keyed_key"), say("statement.keyed_key_value"), say("statement.keyed_key_note")),
        Tile(say("statement.keyed_noise"), value, say(note, counts=counts, **shown)),
    ]
    if not noise.weighted:  # one record changes a weighted count by its weight
        pair = say("statement.keyed_pair_value", epsilon=shown["epsilon"])
        tiles.append(Tile(say("statement.keyed_pair"), pair, say("statement.keyed_pair_note", counts=counts, delta=shown["delta"])))
    if noise.zero_delta is not None:
        value = say("statement.keyed_zero_value", delta=shown["zero_delta"])
        tiles.append(Tile(say("statement.keyed_zero"), value, say("statement.keyed_zero_note")))
    return tiles


def _large_pair(costs: CostInfo, say: Say) -> tuple[str, str]:
    """A requested epsilon with its delta stands large also where noise of a rho keeps it: epsilon 1, with delta 1e-6 (rho 0.0244)."""
    if costs.kind != "zcdp":
        return _large(costs, say)
    shown = {key: format_parameter(value) for key, value in costs.numbers.items()}
    return f"epsilon {shown['epsilon']}", say("statement.with_delta_by_rho", delta=shown["delta"], rho=shown["rho"])


def _budget_text(card: Card, say: Say) -> tuple[Markup, ...]:
    """Sentences under the budget: that a test key promises nothing, what it means that no ledger has the release (a tile says so where one
    has), and what was declared so that its charge is not added to others.
    """
    release = card.release
    said = [*([say("statement.test_key")] if release.test_key else []), *([release.ledger_text] if release.ledger is None else [])]
    return (*((sentences(said),) if said else ()), *disjoint_text(card))


def _grant(grant: GrantInfo | None, say: Say) -> Tile:
    if grant is None:
        return Tile(say("statement.grant"), say("statement.no_grant"), say("statement.no_grant_why"))
    value, note = _large(grant, say)
    by = say("statement.grant_by", count=grant.grants, approver=name(grant.approver))
    return Tile(say("statement.grant"), value, join(note, ", ", by) if grant.kind == "approximate" else by)


def _large(costs: CostInfo | GrantInfo, say: Say) -> tuple[str, str]:
    """What stands large on a tile, and what below it: rho 0.1, epsilon 2.89 with delta 1e-10."""
    given = {key: format_parameter(value) for key, value in costs.numbers.items()}
    if costs.kind == "zcdp":
        converted = "epsilon" in given and "delta" in given  # a grant of a rho has none
        return f"rho {given['rho']}", say("statement.converted", **given) if converted else ""
    return f"epsilon {given['epsilon']}", say("statement.with_delta", delta=given["delta"]) if costs.kind == "approximate" else ""


def _entry(head: str) -> str:
    """The number of the event in the ledger, and the beginning of its hash."""
    _, _, rest = head.partition(":")
    number_of, _, digest = rest.partition(":")
    return f"{number_of}:{digest[:ENTRY_DIGITS]}" if digest else head[:ENTRY_DIGITS]


def _numbers(parameters: Mapping[str, str]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {format_parameter(value)}" for key, value in parameters.items())


def _exact_lines(card: Card, say: Say) -> tuple[Markup, ...]:
    given, kept = card.table, card.kept
    lines = [say("statement.cells", universe=universe_text(card))]
    if given.counted is not None:
        lines.append(text(given.counted))
    labels, rounded = given.read_labels(), rounded_text(card)
    phrases = [kept_texts(kept.read_constraints(), labels, kind, say.language) for kind in KINDS]
    constraints, identities = (names(say, said, SHOWN_CONSTRAINTS) for said in phrases)
    if not kept.totals:
        lines.append(say("page.kept_none_suppressed" if is_suppressed(card) else "page.kept_none"))
    elif rounded:
        lines.append(say("statement.kept_rounded", count=kept.totals, constraints=constraints, rounded=rounded))
    else:
        lines.append(say("statement.kept", count=kept.totals))
    if kept.identities:
        lines.append(say("page.identities", constraints=identities))
    lines.append(_others(card, say))
    return tuple(lines)


def _others(card: Card, say: Say) -> Markup:
    """What every other count is."""
    if is_suppressed(card):
        return say("statement.others_suppressed")
    if is_keyed(card):
        return say("statement.others_keyed")
    which = _which(card, say)
    if is_bounded(card):
        return say("statement.others_bounded", which=which)
    step = step_of(card)
    return say("statement.others_counts") if step is None else say("statement.others_values", which=which, step=step)


def _which(card: Card, say: Say) -> Markup:
    """The counts that noise may change."""
    nothing = not card.kept.totals and not card.kept.identities
    return say(f"statement.which_{noun(card)}_{'open' if card.exposed.cells else 'all' if nothing else 'other'}")


def _exposed_text(card: Card) -> tuple[Markup, ...]:
    """What else reveals counts: totals of zero, the list of cells, a revision."""
    zeros = card.kept.zeros
    return tuple(map(text, filter(None, (zeros.text if zeros.cells else None, list_tells(card), revision_text(card)))))


def _error_tiles(card: Card, say: Say) -> tuple[Tile, ...]:
    """The standard deviation of a typical cell, where it is known."""
    error = card.expected_error
    spread = error.cell_standard_deviation
    shown = _typical(card)
    if is_suppressed(card) or shown is None or spread.smallest is None or spread.largest is None:
        return ()
    which = "error_tile" if spread.median else "error_largest"  # where most cells are exact, a typical one says nothing
    label = error_label(card, say(f"statement.{which}" if step_of(card) is None else f"statement.{which}_values"))
    note = "error_note_nil" if is_nil(shown, noun(card)) else "error_note" if spread.median else "error_note_largest"
    tiles = [Tile(label, deviation_text(card, shown), say(f"statement.{note}", basis=error.basis))]
    factor, law = wide_factor(card)
    tiles.append(Tile(say("statement.error_reach"), distance(card, factor, shown), say(f"statement.error_reach_{law}")))
    low, high = (deviation_text(card, value) if value else "0" for value in (spread.smallest, spread.largest))
    if low != high:
        reach = say("statement.error_range_value", smallest=low, largest=high)
        zero = "statement.error_range_note" if spread.smallest else "statement.error_range_zero"
        tiles.append(Tile(say("statement.error_range"), reach, say(zero, zero=without_noise(card))))
    return tuple(tiles)


def _error_text(card: Card, say: Say) -> tuple[Markup, ...]:
    """What the tiles do not say; all of it where there are none."""
    error = card.expected_error
    if not _error_tiles(card, say):
        return (text(error.text),)
    missing, values = error.cells_not_estimated, "" if step_of(card) is None else "_values"
    said = [
        say(f"statement.error_mean{values}"),
        say(f"statement.error_totals{values}") if card.kept.totals else None,
        say("statement.error_rounding") if values else None,
        say("statement.not_estimated", count=missing) if missing else None,
    ]
    return (sentences(said),)


def _not_promised(card: Card, say: Say) -> tuple[Markup, ...]:
    if is_keyed(card):
        return (say("statement.not_keyed"), say("statement.not_groups"), say("statement.not_others"))
    protected, records, answers = card.guarantee.protect, card.table.max_records, card.guarantee.answers
    lines = [say("statement.not_totals" if step_of(card) is None else "statement.not_invariants")] if card.kept.totals else []
    if answers is not None:
        lines += [say("statement.neighbours"), say("statement.not_declared")]
    elif not is_suppressed(card) and card.table.over == "refuse":  # without noise there is no loss, however many records
        lines.append(say("statement.records_one") if records is None else say("statement.records_max", count=records, protected=protected))
    lines += [say("statement.not_groups"), say("statement.not_others"), say("statement.not_several")]
    if not is_suppressed(card):
        lines.append(say("statement.not_key"))
    return tuple(lines)


def _parameters(card: Card, say: Say) -> tuple[tuple[Markup, Markup], ...]:
    mechanism, kept = card.mechanism, card.kept
    sums = say("statement.independent", count=kept.independent, free=say("page.free", count=kept.free_dimensions))
    if kept.zeros.cells:
        sums = join(sums, "; ", say("statement.left_out", count=kept.zeros.cells))
    groups = [
        say("statement.group", kind=group.kind, sampler=group.sampler, count=group.cells)
        for group in card.sampler.groups
        if group.kind != EXPOSED_SHAPE
    ]
    more = [say("statement.more_groups", more=len(groups) - SHOWN_GROUPS)] if len(groups) > SHOWN_GROUPS else []
    drawn = Markup("; ").join([status_text(card), *groups[:SHOWN_GROUPS], *more])
    rows: list[tuple[str, str]] = [
        (say("statement.relation"), capital(card.guarantee.relation)),
        *distance_rows(card)[: 2 if card.guarantee.per_person is not None else 1],  # the smallest change is the budget else
        (say("statement.mechanism"), mechanism_text(say, mechanism.name, mechanism.parameters)),
        (say("statement.law"), formula(mechanism.law)),
        (say("statement.kept_sums"), sums),
        (say("statement.drawing"), capital(drawn)),
    ]
    return tuple((text(label), text(value)) for label, value in rows)


def odds_figure(say: Say, protected: str, guess: Guess) -> PageFigure:
    """Two bars: the largest share of right guesses with the table; without it half of them are right."""
    before, after, odds = Fraction(1, 2), guess.right, guess.odds
    shares = [(say("statement.without_table"), before), (say("statement.with_table"), after)]
    title = say("statement.odds_title", protected=protected, before=hundredths(before), after=hundredths(after))
    picture = tag(
        "svg",
        tag("title", title, id="odds-title"),
        *(piece for at, (label, share) in enumerate(shares) for piece in _bar(say, at * ROW, label, share)),
        *(_half(begin, end, ink) for begin, end, ink in ((16, ROW + 20, "ink"), (ROW + 20, ROW + 20 + BAR, "paper"), (94, 100, "ink"))),
        role="img",
        aria_labelledby="odds-title",
        viewBox=f"0 0 {WIDTH} {2 * ROW}",
        width=str(WIDTH),
        height=str(2 * ROW),
    )
    told = format_number(int(odds)) if odds.isdecimal() else odds
    caption = say("statement.odds_caption" if guess.every_outcome else "statement.odds_caption_average", odds=told)
    if odds == "infinity":
        caption = say("statement.odds_caption_none" if guess.delta == 1 else "statement.odds_caption_sure")
    header = (say("statement.odds_guess"), say("statement.odds_right"))
    return PageFigure(
        "odds", picture, caption, PageTable(title, header, tuple((label, hundredths(share)) for label, share in shares), frozenset({1}))
    )


def _half(begin: int, end: int, ink: str) -> Markup:
    """A piece of the line at 50 of 100."""
    return tag("line", x1=str(WIDTH / 2), x2=str(WIDTH / 2), y1=str(begin), y2=str(end), stroke=f"var(--{ink})", stroke_dasharray="3 3")


def _bar(say: Say, top: int, label: Markup, share: Fraction) -> list[Markup]:
    width = f"{float(WIDTH * share):.1f}"
    said = say("statement.of_hundred", share=hundredths(share))
    common = {"y": str(top + 20), "height": str(BAR)}
    return [
        tag("text", label, x="0", y=str(top + 14), font_size="13", fill="var(--ink)"),
        tag("text", said, x=str(WIDTH), y=str(top + 14), font_size="13", font_weight="bold", text_anchor="end", fill="var(--ink)"),
        tag("rect", x="0", width=str(WIDTH), fill="var(--accent-pale)", stroke="var(--accent)", **common),
        tag("rect", x="0", width=width, fill="var(--accent)", **common),
    ]
