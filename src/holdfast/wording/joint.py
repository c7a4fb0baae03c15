"""What several releases expose together, and why that could not be computed."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.display import count_of
from holdfast.exposure.facts import JointFacts, LearnedTotals, LeftOut, NewCells, Obstacle, ReleaseExposure, WhyNot
from holdfast.wording.budget import join_names, quote_names
from holdfast.wording.exposure import exposed_sentences

_REASONS = {
    Obstacle.CELLS_APART: "cells of {tables} cannot occur in the other tables. Declare tables that fit together.",
    Obstacle.OBSERVED_LISTS: "{tables} list different cells, and a list not declared public may depend on the data. Declare the cells.",
    Obstacle.OBSERVED_CELLS: "{tables} lists cells that were not declared public: they may depend on the data. Declare the cells.",
    Obstacle.OTHER_CODES: (
        "{tables} have no common refinement: column {columns} has other codes in each, and no declared hierarchy links them."
    ),
    Obstacle.OTHER_CELLS: "{tables} have the same columns but other cells, and a third table has other columns.",
    Obstacle.OTHER_COMBINATIONS: "{tables} have no common refinement: they list different combinations of {columns}.",
    Obstacle.LOOKS_NESTED: (
        "{tables} have no common refinement: columns {columns} look nested (codes of one begin with codes of the other), but are not "
        "linked by a declared hierarchy."
    ),
    Obstacle.TOO_LARGE: "the common refinement of the tables would have {cells} cells or more, above the limit of {limit}.",
    Obstacle.TOO_MANY: "only the latest {limit} releases are joined, with {cells} cells at most.",
    Obstacle.NOT_HELD: "the ledger does not hold so large a table, or cannot read it.",
    Obstacle.ANSWERS: (
        "real-valued answers are joined with answers over the same cells only; how they follow from the cells of another table is not "
        "known here."
    ),
}

GIVE_VALUES = "The folders of the earlier releases have the values of their totals: name them by --with FOLDER (in Python beside=)."
"""For a plan: a card has no commands."""


def why_not_sentence(why_not: WhyNot) -> str:
    """The reason, to stand after a colon."""
    tables = (
        f"the table{'s' if len(why_not.releases) > 1 else ''} of {join_names(quote_names(why_not.releases))}" if why_not.releases else ""
    )
    columns = " and ".join(why_not.columns)
    return _REASONS[why_not.obstacle].format(tables=tables, columns=columns, cells=why_not.cells, limit=why_not.limit)


def release_sentences(exposed: ReleaseExposure) -> list[str]:
    """First what a release exposes alone, then what it does together with those before it, as far as that is known."""
    return [exposed_sentences(exposed.alone, exposed.together is not None or bool(exposed.left_out)), *together_sentences(exposed)]


def together_sentences(exposed: ReleaseExposure) -> list[str]:
    """What it exposes together with those before it: the fixed cells first, then the rest, which may be long: a screen cuts the end."""
    joint = [] if exposed.together is None else joint_sentences(exposed.together)
    return [*joint, *map(_left_out_sentence, exposed.left_out)]


def joint_sentences(facts: JointFacts) -> list[str]:
    """At most two texts: the cells that are fixed, and the rest."""
    if facts.why_not is not None:
        return [f"Not computed: {why_not_sentence(facts.why_not)}"]
    return list(filter(None, (" ".join(_fixed_sentences(facts)), " ".join(_rest(facts)))))


def learned_phrase(learned: LearnedTotals) -> str:
    what = f"totals by {' and '.join(learned.columns)}" if learned.columns else "total"
    return f"in the table of {learned.release!r} the {what} (kept by {learned.told_by!r})"


def _fixed_sentences(facts: JointFacts) -> list[str]:
    several = len(facts.releases) > 1
    together = f"{'Together the' if several else 'The'} kept totals of {join_names(quote_names(facts.releases))}"
    out = _new_cells(facts.fixed, f"{together} fix", "fixes")
    if not facts.complete:
        out.append(f"The search was cut, since too many cells are linked: {'more' if out else 'some'} cells may be fixed.")
    elif not out and several:
        out.append(f"{together} fix no further cell.")
    return out


def _rest(facts: JointFacts) -> list[str]:
    out = [f"Now known exactly: {'; '.join(map(learned_phrase, facts.learned))}."] if facts.learned else []
    if facts.pinned is not None:
        found = _new_cells(facts.pinned, "With the values as published, counts being zero or more, they expose", "exposes")
        out += found or ["With the values as published, counts being zero or more, they expose no further cell."] * (not facts.open)
        out += [f"For {count_of(f'{facts.open:,}', 'cell')} it is not decided whether the published values expose them."] * bool(facts.open)
    if facts.contradicting:
        names = join_names(quote_names(facts.contradicting))
        out.append(f"The published values of {names} contradict those of the others and were left out: were the data revised in between?")
    if facts.values_missing and facts.pinned is None:
        out.append("Which cells the published values expose was not computed: the values were not given.")
    elif facts.values_missing:
        out.append(f"Not all values of {join_names(quote_names(facts.values_missing))} were given: more cells may be exposed.")
    if facts.of_answers:
        out.append("They were taken as the same answers; answers to different questions do not fix one another.")
    if facts.crossed:
        out.append(f"Every combination of {join_names([' and '.join(columns) for columns in facts.crossed])} was taken as possible.")
    return out


def _new_cells(found: Sequence[NewCells], begin: str, verb: str) -> list[str]:
    return [f"{begin} {count_of(new.count, 'cell')} {_that_are_new(new, verb)}: {_cells_text(new)}." for new in found]


def _that_are_new(new: NewCells, verb: str) -> str:
    return f"that none of them {verb} alone" if new.release is None else f"of the table of {new.release!r} that its own totals do not"


def _cells_text(new: NewCells) -> str:
    more = new.count - len(new.names)
    return "; ".join(new.names) + (f"; and {more} more" if more > 0 else "")


def _left_out_sentence(left_out: LeftOut) -> str:
    return f"Not computed together with {', '.join(quote_names(left_out.releases))}: {why_not_sentence(left_out.why_not)}"
