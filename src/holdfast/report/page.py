"""What all pages share: sentences about a card, the frame and its style.

Pages are self-contained (no script, no outside resource) and pure functions of their arguments: no clock, no host, no path, no random name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from holdfast.report.frame import Say
from holdfast.report.html import Html, capital, join, name, names, number, plural, sd_text, settings, short, show, tag, text

Card: TypeAlias = Mapping[str, Any]

SHOWN_EXPOSED = 5

NOT_PRIVATE = "NOT PRIVATE: drawn with a test key"

NOT_KNOWN = "not known"
"""The basis of figures that depend on the counts (wording/errors.py)."""

STATUS_WORDS = {
    "exact": "exact: the noise that was drawn has exactly the stated law",
    "estimated": "estimated: how close the noise is to the stated law was estimated, not proven",
}

UNIVERSE_WORDS = {
    "declared": "declared, and the same whatever the data",
    "as listed": "as listed in the given table; the list was not declared public",
    "observed": "the cells that occur in the data",
}

LIST_TELLS = {
    "as listed": "The list of cells came with the data and was not declared public: it may show which cells are not empty. If it holds "
    "only cells that are not empty, kept totals may tell more counts than are named here.",
    "observed": "The list of cells was taken from the data, so it shows which cells are not empty.",
}
"""What the list of cells itself may tell, by where it comes from; a declared one tells nothing."""


def table_name(card: Card) -> str:
    """What the office calls the table, or the column it counts."""
    return str(card["table"]["name"] or card["table"]["count"])


def status_words(card: Card) -> str:
    status = card["sampler"]["status"]
    return "nothing is drawn: no noise is added" if is_suppressed(card) else STATUS_WORDS.get(status, status)


def is_suppressed(card: Card) -> bool:
    """Whether counts are left out instead of noised."""
    return bool(card["mechanism"]["name"] == "suppression")


def is_bounded(card: Card) -> bool:
    """Whether the published table is drawn within public bounds: counts near them are biased."""
    return bool(card["guarantee"]["relation_fields"]["within_bounds"])


def step_of(card: Card) -> str | None:
    """Where the table holds real-valued answers: the step of their grid; None for counts."""
    grid = card["table"]["grid"]
    return None if grid is None else "1" if grid["places"] == 0 else f"2^-{grid['places']}"


def moved_words(card: Card) -> str:
    """Invariants whose true values the grid does not have; nothing where there are none."""
    grid = card["table"]["grid"]
    if grid is None or not grid["moved"]:
        return ""
    all_of_them = plural(card["kept"]["totals"], "kept total")
    return f"Of {all_of_them}, {number(grid['moved'])} had to be rounded: the grid does not have the true value."


def without_noise(card: Card) -> str:
    """What a number without noise is, where its standard deviation stands."""
    return "no noise" if moved_words(card) else "exact"


def true_words(card: Card) -> str:
    """What released numbers are compared with: noise is added to answers as rounded to the grid."""
    grid = card["table"]["grid"]
    return "true" if grid is None or grid["on_grid"] else "rounded true"


def noun(card: Card) -> str:
    """What the table holds."""
    return "count" if step_of(card) is None else "value"


def error_is_known(card: Card) -> bool:
    """Whether the card has standard deviations, or would have them had they been estimated: not where they depend on the counts."""
    error = card["expected_error"]
    return bool(error["basis"] != NOT_KNOWN or error["cell_standard_deviation"]["largest"] is not None)


def parameter_words(card: Card) -> str:
    """The parameters of the mechanism; inequalities of sums and shares as sentences have them, not as the card stores them."""
    given = dict(card["mechanism"]["parameters"])
    if "levels" in given:
        with suppress(TypeError, ValueError, RecursionError):  # no shares that we write: shown as they stand
            given["levels"] = f"[{'; '.join(_share(*row) for row in json.loads(given['levels']))}]"
    if "rows" in given:
        try:
            rows = [
                f"{_sums(row)} {way.replace('_', ' ')} {_sums(row[way])}"
                for row in json.loads(given["rows"])
                for way in _WAYS
                if way in row
            ]
            given["rows"] = f"[{'; '.join(rows)}]"
        except (TypeError, ValueError, AttributeError, RecursionError):
            pass  # no inequalities that we write: shown as they stand
    return settings(given)


def mechanism_words(card: Card) -> str:
    """The mechanism by its name, and its parameters: Generalized Gaussian: rho 0.1, per person"""
    given = card["mechanism"]["name"].replace("-", " ").replace("laplace", "Laplace").replace("gaussian", "Gaussian")
    return f"{capital(given)}: {parameter_words(card)}" if card["mechanism"]["parameters"] else capital(given)


def _share(level: Any, margin: Any, share: Any) -> str:
    """A share of the budget: county by all other columns 1/5; county by sex x age 1/5; county in all 1/2."""
    level, margin = (" x ".join(map(str, name)) if isinstance(name, list) else str(name) for name in (level, margin))
    return f"{level} {_MARGINS.get(margin, f'by {margin}')} {share}"


_MARGINS = {"total": "in all", "detailed": "by all other columns"}

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


def level_rows(card: Card) -> list[tuple[Html, Html, str, str]]:
    """For every level and margin that the card tells: level, margin, number of units, standard deviation with its range."""
    return [(name(row["level"]), name(row["margin"]), number(row["units"]), _range(row)) for row in card["expected_error"]["levels"]]


def _range(row: Card) -> str:
    low, middle, high = (sd_text(row[which]) for which in ("smallest", "median", "largest"))
    return middle if low == high else f"{middle} ({low} to {high})"


def revision_words(card: Card) -> Html | None:
    """What a revision gives away: both values of a total that changed are public."""
    revision = card["kept"]["revision"]
    if revision is None:
        return None
    changed = plural(revision["changed"], "kept total")
    return join(
        "This release revises ",
        name(revision["of"]),
        f": {changed} differ{'s' if revision['changed'] == 1 else ''} from before. Both values are public, and so is each difference"
        f"{'' if revision['changed'] else ', which is zero'}. The two releases together promise less than either.",
    )


def column_names(card: Card) -> list[str]:
    """What the columns are called."""
    called = {given["column"]: given["name"] for given in card["table"]["labels"]}
    return [called.get(column) or column for column in card["table"]["columns"]]


def exposed_names(card: Card) -> Html | None:
    """A few of the exposed cells, and where all of them are."""
    exposed = card["exposed"]
    if not exposed["cells"]:
        return None
    some = exposed["names"][:SHOWN_EXPOSED]
    lead = " By name: " if len(some) == exposed["cells"] else " Among them: "
    number = card["release"]["allow_exposed"]
    allowed = f" Before the draw the office allowed {plural(number, 'cell')} to be published exactly." if number else ""
    return join(lead, names(some, len(some)), f". Listed in exposed.csv with true {noun(card)}s, and marked in the table.{allowed}")


def distance_words(card: Card) -> str:
    """The distance in which the promise is stated, squared where it is."""
    guarantee = card["guarantee"]
    named = "distance over the measured levels" if guarantee["distance"] == "levels" else f"{guarantee['distance']} distance"
    return f"squared {named}" if "distance squared" in guarantee["smallest_secret"] else named


def cost_rows(card: Card) -> list[tuple[str, str]]:
    """The promise in numbers: what was asked for, then one person, one unit of distance and the smallest secret where they are others."""
    guarantee = card["guarantee"]
    unit, asked, alone = guarantee["unit"], guarantee["asked"], guarantee["per_person"]
    rows = [] if asked is None else [("Asked for", str(asked["words"]))]
    if alone is None:
        what = "table with the same kept totals" if step_of(card) is None else "data set with the same invariants"
        rows.append((f"One {unit}", f"no {unit} can change alone: another {what} differs in more"))
    else:
        asked_so = asked is not None and asked["per"] == "person" and same_numbers(asked["parameters"], alone)
        if not asked_so or alone["kind"] == "zcdp":  # else it would be said twice
            rows.append((f"One {unit}", promised(alone)))
    return [*rows, *distance_rows(card)]


def distance_rows(card: Card) -> list[tuple[str, str]]:
    """The promise for one unit of distance, and for the smallest secret where it is another than one person."""
    guarantee = card["guarantee"]
    secret, alone, distance, step = guarantee["smallest_secret"], guarantee["per_person"], distance_words(card), step_of(card)
    measure = secret.get("distance squared", secret.get("distance"))
    told = f"in {distance}" if step is None else f"{'squared ' if 'distance squared' in secret else ''}steps of {step}"
    away = "" if measure is None else f", {measure} {told}"
    each = f"Each unit of {distance} between two tables" if step is None else f"Each step of {step}, a unit of {distance}"
    rows = [(each, promised(guarantee["per_unit"]))]
    if alone is None or any(secret[key] != alone.get(key) for key in secret if key != "found"):
        rows.append((f"The smallest change that keeps every kept total{away}", promised(secret)))
    return rows


def promised(costs: Card) -> str:
    """The numbers of one kind of promise, without those that say the same in another: epsilon 0.5; rho 0.1, so epsilon 2.89 with
    delta 1e-10."""
    names = {"pure": ("epsilon",), "approximate": ("epsilon", "delta"), "zcdp": ("rho",)}.get(costs.get("kind", ""))
    if names is None:
        return settings({key: value for key, value in costs.items() if key not in ("kind", "found", "distance", "distance squared")})
    given = ", ".join(f"{key} {short(costs[key])}" for key in names)
    if costs["kind"] != "zcdp" or costs.get("epsilon") is None:
        return given
    return f"{given}, so epsilon {short(costs['epsilon'])} with delta {short(costs['delta'])}"


def same_numbers(asked: Card, costs: Card) -> bool:
    """Whether what was asked for is what is promised."""
    return all(short(value) == short(costs.get(key)) for key, value in asked.items())


def say_of(card: Card) -> Say:
    """Sentences in the language that the card names."""
    return Say(card["release"]["language"])


def banner(card: Card) -> Html | None:
    """The line that no page of a release drawn with a test key may lack."""
    if card["release"]["private"]:
        return None
    say = say_of(card)
    return join(tag("strong", say("page.not_private")), ". ", say("page.not_private_why"))


def release_frame(card: Card, title: str) -> dict[str, Any]:
    """What the frame of a page about a release needs."""
    release, say = card["release"], say_of(card)
    versions = ", ".join(f"{key.replace('_', ' ')} {show(value)}" for key, value in card["software"].items())
    said = [say("statement.table", name=name(table_name(card)))]
    said += [name(release["office"])] if release["office"] is not None else []
    said.append(say("statement.no_date") if release["date"] is None else text(release["date"]))
    said += [say("statement.approved_by", approver=name(release["approver"]))] if release["approver"] is not None else []
    return {
        "title": title,
        "subtitle": join(*[piece for part in said for piece in ("\u00a0· ", part)][1:]),
        "footer": say.plain("page.release", id=release["id"]),
        "colophon": say("page.made", versions=versions),
        "banner": banner(card),
        "mark": None if release["private"] else NOT_PRIVATE,
    }
