"""What is published exactly: kept constraints ("by county and sex" in place of margin(county, sex)), which cells they fix and why, and
which
cells take no noise because a kept total or an identity is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.card.card import ZerosStatus
from holdfast.display import count_of, list_names
from holdfast.exposure.facts import ExposedAlone, Undecided
from holdfast.invariants.constraints import Areas, Constraint, Kind, Margin, Subset, integer_matrix
from holdfast.tables.labels import Labels
from holdfast.wording.catalogue import ENGLISH, Sentences


def not_acknowledged_sentences(cells: int, allowed: int, more: str, listed: str | None) -> str:
    """Why a release is refused that would publish more or fewer true counts than were allowed, and `more` of it; which file lists them."""
    if not cells:
        return f"The kept totals fix no cell, and allow_exposed says {allowed}. Check the table and the kept totals, or leave the line out."
    noun, them = ("The true count of 1 cell", "it") if cells == 1 else (f"The true counts of {cells:,} cells", "them")
    said = f"allow_exposed says {allowed}" if allowed else "nothing says that this is allowed"
    more = more and f" {more}"
    where = "" if listed is None else f" {listed!r} lists {them}."
    return (
        f"{noun} would be published, whatever the noise, because the kept totals fix {them}; {said}. Nothing was charged.{where}{more} "
        f"To publish {them}, write allow_exposed = {cells} under [release] (in Python allow_exposed={cells}); otherwise keep fewer totals."
    )


def to_acknowledge_sentence(cells: int, allowed: int) -> str | None:
    """What a run file must say before its release; None where it does."""
    if cells == allowed:
        return None
    return f"allow_exposed = {cells} under [release], before a release" if cells else "no allow_exposed: the kept totals fix no cell"


NOT_NEGATIVE = "counts are not negative"
VALUES_LATER = (
    "The values of the kept totals may expose more cells, such as those under a total of zero: "
    "the command lists them after the draw, and so does the card."
)

KEYED = "No total is kept, so no total fixes a cell. Empty cells stay 0, and the noise of any other cell can be 0 too."
"""What plans and cards say under the cell key method, where no total fixes a cell but noise of 0 is possible."""


def exposed_sentences(facts: ExposedAlone, more: bool = False) -> str:
    """How many cells one release publishes exactly, and whether values can expose others; `more`: earlier releases and it fix more."""
    said = structure_sentences(facts, more)
    return said if facts.values_known else f"{said} {VALUES_LATER}"


def columns_sentence(columns: Sequence[str]) -> str:
    """Public columns that bounds come from; empty where there are none."""
    if not columns:
        return ""
    noun, verb = (
        ("The column", "is public, and published as it stands") if len(columns) == 1 else ("The columns", "are public, and published")
    )
    return f" {noun} {', '.join(columns)}, which bounds come from, {verb}."


def named_sentences(names: Sequence[str], cells: int) -> list[str]:
    """Exposed cells by name, where names are known: all of them, or the first few."""
    if not names:
        return []
    return [f"By name: {'; '.join(names)}." if len(names) == cells else f"Among them: {'; '.join(names)}."]


def structure_sentences(facts: ExposedAlone, more: bool = False) -> str:
    """What is known of it so far."""
    fixed, pinned = facts.fixed, facts.pinned
    out = []
    if fixed:
        noun, verb = ("cell is", "fix it") if fixed == 1 else ("cells are", "fix them")
        out.append(f"{fixed:,} {noun} published exactly, whatever the budget, because the kept totals {verb}.")
    if pinned:
        noun, other = ("cell follows", "its value") if pinned == 1 else ("cells follow", "their values")
        since = "every cell on the list occurs" if facts.observed else NOT_NEGATIVE
        since += " and all counts lie within the bounds" if facts.bounded else ""
        out.append(
            f"{pinned:,} {'other ' if fixed else ''}{noun} from the published totals, since {since}: "
            f"{other} can be computed by anyone, whatever the noise."
        )
    if not out:
        if facts.undecided:
            nothing = f"No cell was found that {'this release alone publishes' if more else 'is published'} exactly."
        elif facts.values_known:
            nothing = "This release alone publishes no cell exactly." if more else "No cell is published exactly."
        else:
            alone = "The structure of these kept totals alone fixes no cell."
            nothing = alone if more else "No cell is fixed by the structure of the kept totals."
        out.append(nothing)
    return " ".join(filter(None, (*out, undecided_sentence(facts))))


def undecided_sentence(facts: ExposedAlone) -> str:
    """What is known of cells of which it is not decided whether they are exposed; empty where there are none."""
    if not facts.undecided:
        return ""
    named = [f"{count_of(f'{found.cells:,}', 'cell')} {_between(found)} (such as {found.name})" for found in facts.open]
    rest = facts.undecided - sum(found.cells for found in facts.open)
    named += [f"{rest:,} more have other bounds"] if rest else []
    return f"For {count_of(f'{facts.undecided:,}', 'cell')} it is not decided whether the kept totals give them away: {'; '.join(named)}."


def _between(found: Undecided) -> str:
    if found.at_least is None or found.at_most is None:
        return "without a known bound"
    return f"between {found.at_least:,} and {found.at_most:,}"


def zeros_source(totals: bool, identities: bool) -> str:
    """What may be 0, by what there is."""
    return ("a kept total or identity" if totals else "an identity") if identities else "a kept total"


def law_without_zeros(cells: int) -> str:
    """After the formula of a law, "over all integer tables z that change no kept total"."""
    return f"; z is 0 in the {'cell' if cells == 1 else f'{cells:,} cells'} of kept.zeros"


def zeros_sentence(status: ZerosStatus, cells: int, under: int, source: str) -> str:
    """What is left out of the draw: `cells` of the `under` cells that a total of 0 makes 0; `source` by zeros_source."""
    if status == "open":
        return (
            f"Whole codes, units and other slices under {source} of 0 take no noise where what is left can be drawn exactly. Which cells "
            "these are is decided at the release, from the totals as published."
        )
    if status == "none":
        return f"No cell is left out of the draw because of {source} of 0.{_drawn_text(under)}"
    if cells < under:
        they = "It" if cells == 1 else "They"
        take = "takes" if cells == 1 else "take"
        others = "The other one is" if under - cells == 1 else f"The other {under - cells:,} are"
        return (
            f"{cells:,} of the {under:,} cells under {source} of 0 {take} no noise. {they} can only be 0 since counts are not "
            f"negative. {others} drawn like the rest of the table."
        )
    noun, verb = ("1 cell", "lies") if cells == 1 else (f"{cells:,} cells", "lie")
    take = "takes" if cells == 1 else "take"
    return f"{noun} {verb} under {source} of 0, can only be 0 since counts are not negative, and {take} no noise."


def _drawn_text(under: int) -> str:
    if not under:
        return ""
    noun = "1 cell lies under one, and is" if under == 1 else f"{under:,} cells lie under one, and are"
    return f" {noun} drawn like the rest of the table."


KINDS: tuple[Kind, ...] = ("kept", "identity")
CODES = 60
"""Characters of the codes of one constraint."""


def kept_texts(constraints: Iterable[Constraint], labels: Labels, kind: Kind = "kept", language: str = ENGLISH) -> list[str]:
    """The constraints of one kind in their order, kept ones or identities."""
    said = Sentences(language)
    return [_words(given, labels, said) for given in constraints if given.kind == kind]


def _words(given: Constraint, labels: Labels, said: Sentences) -> str:
    match given:
        case Margin():
            return _by(given.columns, labels, said) or said("constraints.whole")
        case Subset():
            what = _cells(given, labels, said)
        case Areas():
            names = list_names([name for name, _ in given.sets], CODES)
            what = said("constraints.areas", count=len(given.sets), column=labels.column(given.column), names=names)
        case _:
            return said("constraints.sums", count=len(integer_matrix(given.matrix).indptr) - 1)
    by = _by(given.by, labels, said)
    return said("constraints.with_by", what=what, by=by) if by else what


def _cells(given: Subset, labels: Labels, said: Sentences) -> str:
    if given.condition is not None:
        return said("constraints.cells", condition=given.condition)
    assert given.column is not None
    column, called = given.column, labels.column(given.column)
    if given.node is not None:
        return said("constraints.under", column=called, node=_code(column, given.node, labels))
    return said("constraints.codes", column=called, codes=list_names([_code(column, code, labels) for code in given.codes or ()], CODES))


def _code(column: str, code: str, labels: Labels) -> str:
    return labels.code(column, {column: code}) or code


def _by(columns: Sequence[str], labels: Labels, said: Sentences) -> str:
    """ "by county, sex and age"; nothing where there are no columns."""
    *first, last = [labels.column(column) for column in columns] or [""]
    named = said("constraints.and", first=", ".join(first), last=last) if first else last
    return said("constraints.by", columns=named) if columns else ""
