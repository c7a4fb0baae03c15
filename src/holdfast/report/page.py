"""What all pages share: sentences about a card, the frame and its style.

Pages are self-contained (no script, no outside resource) and pure functions of their arguments: no clock, no host, no path, no random name.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from markupsafe import Markup

from holdfast.card.card import Card, LevelSpread
from holdfast.card.parts import CostInfo, GuaranteeInfo, Settings, measure_of
from holdfast.exact.formatting import format_field, format_number, format_number_up, format_parameter
from holdfast.report.frame import Say, capital, join, name, tag, text
from holdfast.wording import figures
from holdfast.wording.errors import has_long_tails, leaves_cells_out

SHOWN_DISJOINT = 5
"""Releases of a declaration that pages name; card.json has all."""
SHOWN_COLUMNS = 8
"""Columns of the table that sentences name; card.json has all."""
EXPOSED_SHAPE = "exposed"
"""The shape of blocks of which nothing is drawn."""
UNIVERSES = {"declared": "declared", "as listed": "listed", "observed": "observed"}
"""Where a list of cells comes from, as the card has it -> as names of sentences have it."""


def say_of(card: Card) -> Say:
    """Sentences in the language that the card names."""
    return Say(card.release.language)


def table_name(card: Card) -> str:
    """What the office calls the table: its name in a release of several, else that of its data, or the release."""
    return card.release.table_name or card.table.name or card.release.id


def page_title(card: Card, page: str) -> str:
    """The title of "statement" or "report", which names the table where a release has several."""
    release, say = card.release, say_of(card)
    if release.table_name is None:
        return say.plain(f"{page}.title", id=release.id)
    return say.plain(f"{page}.title_table", id=release.id, table=release.table_name)


def status_text(card: Card) -> str:
    """Whether the law of the noise is exact."""
    return say_of(card)(f"page.status_{'none' if is_suppressed(card) else card.sampler.status}")


def universe_text(card: Card) -> str:
    """Where the list of cells comes from."""
    return say_of(card)(f"page.universe_{UNIVERSES[card.table.universe]}")


def list_tells(card: Card) -> Markup | None:
    """What the list of cells itself may tell: nothing where it was declared."""
    given = UNIVERSES[card.table.universe]
    return None if given == "declared" else say_of(card)(f"page.tells_{given}")


def is_suppressed(card: Card) -> bool:
    """Whether counts are left out instead of noised."""
    return leaves_cells_out(card.mechanism.name)


def is_weak(card: Card) -> bool:
    """Whether the budget is so large that it protects little."""
    return any(given.kind == "weak-budget" for given in card.warnings)


def is_keyed(card: Card) -> bool:
    """Whether noise was looked up by cell keys: no differential privacy is promised."""
    return card.guarantee.keyed is not None


def is_bounded(card: Card) -> bool:
    """Whether the published table is drawn within public bounds: counts near them are biased."""
    return card.guarantee.relation_fields.within_bounds


def step_of(card: Card) -> str | None:
    """Where the table holds real-valued answers: the step of their grid; None for counts."""
    grid = card.table.grid
    return None if grid is None else grid.step


def wide_factor(card: Card) -> tuple[float, str]:
    """(standard deviations that hold 95 of 100, the law that says so): ln(20) / sqrt(2) under a Laplace law, and never below 1.96."""
    return (2.12, "laplace") if has_long_tails(card.mechanism.name) else (1.96, "normal")


def distance(card: Card, factor: float, deviation: float) -> str:
    """So many standard deviations, rounded up: to a whole number for counts, to three digits for answers, and where the number is too
    long. It is 0 where noise is next to none.
    """
    if figures.is_nil(deviation, noun(card)):
        return "0"
    value = factor * deviation
    return format_number(math.ceil(value)) if step_of(card) is None and value < 1e9 else format_number_up(value)


def rounded_text(card: Card) -> str:
    """The sentence that kept totals are rounded; empty where all are exact."""
    grid = card.table.grid
    return say_of(card)("page.totals_rounded", step=grid.step) if grid is not None and grid.round_totals else ""


def without_noise(card: Card) -> Markup:
    """What a number without noise is, where its standard deviation stands."""
    return say_of(card)("page.no_noise" if rounded_text(card) else "page.exact")


def is_rounded(card: Card) -> bool:
    """Whether noise was added to answers as rounded to the grid, and not to the answers themselves."""
    return not measure_of(card.table.grid).on_grid


def noun(card: Card) -> str:
    """What the table holds, as names of sentences have it."""
    return "count" if step_of(card) is None else "value"


def nouns(card: Card) -> dict[str, str]:
    """The same for sentences."""
    return say_of(card).plain.nouns(noun(card))


def names(say: Say, values: Sequence[str], shown: int) -> Markup:
    """Names in a row, the first ones shown."""
    some = join(*[piece for value in values[:shown] for piece in (text("; "), name(value))][1:])
    more = len(values) - shown
    return some if more <= 0 or not some else say("page.more_names", names=some, more=more)


def deviation_text(card: Card, value: float) -> str:
    """A standard deviation other than 0; one that is a proved bound is rounded up."""
    return figures.deviation_text(say_of(card).plain, value, noun(card), is_bound=card.expected_error.found == "upper bound")


def sd_text(card: Card, value: float | None, zero: str | None = None) -> str:
    """A standard deviation; `zero` says what none is."""
    say = say_of(card)
    if value is None:
        return say("page.not_known")
    return deviation_text(card, value) if value else say("page.zero", what=say("page.exact") if zero is None else zero)


def error_is_known(card: Card) -> bool:
    """Whether the card has standard deviations, or would have them had they been estimated: not where they depend on the counts."""
    return card.expected_error.found != "unknown"


def error_label(card: Card, label: Markup) -> Markup:
    """What a standard deviation is called where it stands large: "at most" where it is a bound."""
    return say_of(card)("page.at_most", what=label) if card.expected_error.found == "upper bound" else label


def parameter_text(say: Say, parameters: Settings) -> str:
    """The parameters of the mechanism; inequalities of sums and shares as sentences have them, not as the card stores them."""
    given = dict(parameters)
    if "levels" in given:
        with suppress(TypeError, ValueError, RecursionError):  # no shares that we write: shown as they stand
            given["levels"] = f"[{'; '.join(_share(say, *row) for row in json.loads(str(given['levels'])))}]"
    if "perturbation_table" in given:
        given["perturbation_table"] = say("page.in_card")
    if "rows" in given:
        try:
            rows = [
                f"{_sums(row)} {way.replace('_', ' ')} {_sums(row[way])}"
                for row in json.loads(str(given["rows"]))
                for way in _WAYS
                if way in row
            ]
            given["rows"] = f"[{'; '.join(rows)}]"
        except (TypeError, ValueError, AttributeError, RecursionError):
            pass  # no inequalities that we write: shown as they stand
    return settings(given)


def mechanism_text(say: Say, name: str, parameters: Settings) -> str:
    """The mechanism by its name, and its parameters: Generalized Gaussian: rho 0.1, per person"""
    called = capital(name.replace("-", " ").replace("laplace", "Laplace").replace("gaussian", "Gaussian"))
    return f"{called}: {parameter_text(say, parameters)}" if parameters else called


def formula(law: str) -> Markup:
    """Format a law for a page; the style keeps it on one line if there is room."""
    return tag("span", capital(law), class_="formula")


def _share(say: Say, level: Any, margin: Any, share: Any) -> str:
    """A share of the budget: county, totals: 1/2; county, by sex x age: 1/5; county, by all other columns: 1/5."""
    level, margin = (" x ".join(map(str, name)) if isinstance(name, list) else str(name) for name in (level, margin))
    which = f"page.share_{margin}" if margin in ("total", "detailed") else "page.share_by"
    return say.plain(which, level=level, margin=margin, share=str(share))


_WAYS = ("at_least", "at_most")


def _sums(side: Any) -> str:
    """One side of an inequality: subset(kind in [people]) by county; a number, some numbers, or the name of a column."""
    if not isinstance(side, Mapping):
        return str(side)
    if "total" in side:
        return "total"
    if "linear" in side:
        return "linear"
    codes, by = (", ".join(map(str, side.get(key, ()))) for key in ("codes", "by"))
    what = (
        f"margin({', '.join(map(str, side['margin']))})"
        if "margin" in side
        else f"subset({side.get('subset')}{codes and f' in [{codes}]'})"
    )
    return f"{what}{by and f' by {by}'}"


def level_rows(card: Card) -> list[tuple[Markup, Markup, str, str]]:
    """For every level and margin that the card tells: level, margin, number of units, standard deviation with its range."""
    return [(name(row.level), name(row.margin), format_number(row.units), _range(card, row)) for row in card.expected_error.levels]


def _range(card: Card, row: LevelSpread) -> str:
    low, middle, high = (sd_text(card, value) for value in (row.smallest, row.median, row.largest))
    return middle if low == high else say_of(card)("page.range", middle=middle, low=low, high=high)


def revision_text(card: Card) -> Markup | None:
    """What a revision gives away: both values of a total that changed are public."""
    revision = card.kept.revision
    if revision is None:
        return None
    which = "page.revision" if revision.changed else "page.revision_none"
    return say_of(card)(which, count=revision.changed, of=name(revision.of))


def disjoint_text(card: Card) -> tuple[Markup, ...]:
    """With which releases it was declared to share no person, and the reason, whole and in a paragraph of its own: it may hold any text."""
    declared, say = card.release.disjoint, say_of(card)
    if declared is None:
        return ()
    others = names(say, declared.releases, SHOWN_DISJOINT)
    return (
        say("page.disjoint", count=len(declared.releases), releases=others, protected=card.guarantee.protect),
        say("page.disjoint_because", because=tag("bdi", declared.because)),
    )


def column_names(card: Card) -> list[str]:
    """What the columns are called."""
    called = {given.column: given.name for given in card.table.labels}
    return [called.get(column) or column for column in card.table.columns]


def by_text(card: Card) -> Markup:
    """The columns that name the cells: "by county and sex"."""
    say, columns = say_of(card), column_names(card)
    *first, last = map(name, columns[:SHOWN_COLUMNS])
    if len(columns) > SHOWN_COLUMNS:
        last = names(say, columns, SHOWN_COLUMNS)
    elif first:
        last = say("constraints.and", first=Markup(", ").join(first), last=last)
    return say("constraints.by", columns=last)


def cell_text(card: Card, named: str) -> str:
    """A name of a cell or total, or a text with such names, as readers see it: "state 01" and not "state=01"."""
    columns = "|".join(map(re.escape, column_names(card)))
    return re.sub(rf"(^|[;,:] |such as )({columns})=", r"\1\2 ", named)


def exposed_text(card: Card, shown: int) -> Markup:
    """How many cells are published exactly, what the office knew of it, where they are listed, and what the list of the first is."""
    say, exposed, allowed = say_of(card), card.exposed, card.release.allow_exposed
    said = [text(cell_text(card, exposed.text))]
    if exposed.cells:
        said += [say("page.acknowledged", count=allowed)] if allowed else []
        said.append(say("page.exposed_file", count=exposed.cells))
    if begun := len(exposed.names[:shown]):
        said.append(say("page.exposed_all" if begun == exposed.cells else "page.exposed_some"))
    return sentences(said)


def sentences(said: Iterable[str | None]) -> Markup:
    """Join the pieces with blanks, leaving out None."""
    return join(*[piece for one in said if one is not None for piece in (" ", one)][1:])


def distance_text(card: Card, is_squared: bool | None = None) -> Markup:
    """The distance in which the promise is stated, squared where it is; or where a budget was requested so."""
    guarantee = card.guarantee
    which = "page.levels_distance" if guarantee.distance == "levels" else "page.distance"
    squared = guarantee.squared if is_squared is None else is_squared
    return say_of(card)(f"{which}{'_squared' if squared else ''}", norm=guarantee.distance)


def cost_rows(card: Card) -> list[tuple[str, str]]:
    """The promise in numbers: the budget as requested, then one person, one unit of distance and the smallest secret where these differ."""
    guarantee, say = card.guarantee, say_of(card)
    protected, asked, alone = guarantee.protect, guarantee.asked, guarantee.per_person
    one = say("page.cost_one", protected=protected)
    rows: list[tuple[str, str]] = []
    if asked is not None:
        rows.append((say("page.cost_asked"), asked.text.replace(" = ", " ").replace("_", " ")))
    if alone is None:
        rows.append((one, say(f"page.cost_nobody_{noun(card)}", protected=protected)))
    else:
        if not is_as_asked(guarantee) or alone.kind == "zcdp":  # else it would be said twice
            rows.append((one, promise_text(say, alone)))
    return [*rows, *distance_rows(card)]


def distance_rows(card: Card) -> list[tuple[str, str]]:
    """The promise for one unit of distance, and for the smallest secret where it is another than one person."""
    guarantee, say = card.guarantee, say_of(card)
    secret, alone, distance, step = guarantee.smallest_secret, guarantee.per_person, distance_text(card), step_of(card)
    each = say("page.cost_each", distance=distance) if step is None else say("page.cost_each_step", step=step, distance=distance)
    rows: list[tuple[str, str]] = [(each, promise_text(say, guarantee.per_distance))]
    if alone is None or (secret.distance, secret.numbers) != (alone.distance, alone.numbers):
        far = "page.cost_far" if step is None else "page.cost_far_squared_steps" if guarantee.squared else "page.cost_far_steps"
        measure = say(far, measure=str(secret.distance), distance=distance, step=step or "")
        rows.append((join(say("page.cost_smallest"), " ", measure), promise_text(say, secret)))
    return rows


def promise_text(say: Say, costs: CostInfo) -> str:
    """The numbers of one kind of promise, without those that say the same in another: epsilon 0.5; rho 0.1 (epsilon 2.89 with
    delta 1e-10)."""
    given = {key: f"{key} {format_parameter(value)}" for key, value in costs.numbers.items()}
    match costs.kind:
        case "pure":
            return given["epsilon"]
        case "approximate":
            return f"{given['epsilon']}, {given['delta']}"
        case "cell-key":
            return say("page.cost_none")
    return say("page.converted", rho=given["rho"], epsilon=format_parameter(costs.epsilon), delta=format_parameter(costs.delta))


def settings(values: Settings) -> str:
    """epsilon 24/125 (= 0.192), norm l1; what is null does not apply and is left out"""
    given = [f"{key.replace('_', ' ')} {format_field(value)}" for key, value in values.items() if value is not None]
    return ", ".join(given) or "-"


def is_as_asked(guarantee: GuaranteeInfo) -> bool:
    """True if the requested budget is for one person, and looks the same on the page as the promised one."""
    asked, alone = guarantee.asked, guarantee.per_person
    if asked is None or alone is None or not asked.is_for_protected:
        return False
    promised = {key: format_parameter(value) for key, value in alone.numbers.items()}
    return all(promised.get(key) == format_parameter(value) for key, value in asked.parameters.items())


def banner(card: Card) -> Markup | None:
    """The line that no page of a release drawn with a test key may lack."""
    if not card.release.test_key:
        return None
    say = say_of(card)
    return join(tag("strong", say("page.not_private")), ". ", say("page.not_private_why"))


def _headline(said: str) -> Markup:
    """A warning with its first sentence in bold."""
    head, stop, rest = said.partition(". ")
    return join(tag("strong", head + stop), rest)


def signed_text(card: Card) -> Markup:
    """Whether the card is signed, and with which key."""
    say, signer = say_of(card), card.release.signer
    return say("page.not_signed") if signer is None else say("page.signed", signer=signer)


def release_frame(card: Card, title: str, office_only: bool = True) -> dict[str, Any]:
    """What the frame of a page about a release needs. `office_only`: with warnings that concern the office alone, not readers."""
    release, say = card.release, say_of(card)
    software = sorted(card.software.items(), key=lambda item: (item[0] != "holdfast", item[0]))  # as given, or by name in a ledger
    versions = ", ".join(f"{key.replace('_', ' ')} {format_field(value)}" for key, value in software)
    warnings = [given for given in card.warnings if office_only or given.kind != "no-limit"]
    alarms = (given.text.partition(". ")[0] for given in warnings if given.is_alarm)
    said = [] if card.table.name is None else [say("statement.table", name=name(card.table.name))]
    said += [name(release.office)] if release.office is not None else []
    said.append(say("statement.no_date") if release.date is None else text(release.date))
    said += [say("statement.approved_by", approver=name(release.approver))] if release.approver is not None else []
    return {
        "title": title,
        "subtitle": join(*[piece for part in said for piece in ("\u00a0· ", part)][1:]),
        "footer": say.plain("page.release", id=release.id),
        "colophon": say("page.made", versions=versions),
        "banner": banner(card),
        "banners": [(_headline(given.text), given.is_alarm) for given in warnings if given.kind != "test-key"],
        "mark": say.plain("page.not_private") if release.test_key else next(iter(alarms), None),
    }
