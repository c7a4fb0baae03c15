"""Which cells are published exactly, and why."""

from __future__ import annotations

from holdfast.lattices.exposure_facts import ExposedAlone, Why

_REASONS = {
    Why.FIXED: "the kept totals determine this cell",
    Why.PINNED: "the published totals leave one value, since counts are not negative",
    Why.NEARLY_PINNED: "the published totals leave a short interval",
    Why.SMALL_TOTAL: "a small total is itself nearly a person",
    Why.SEARCH_CUT: "the kept totals link too many cells to look for all cells that they determine: there may be more",
}


def why_phrase(why: Why | str) -> str:
    """What a value of the column "why" of `Exposure.frame()` means."""
    return _REASONS[Why(why)]


def exposed_sentences(facts: ExposedAlone) -> str:
    """How many cells one release publishes exactly."""
    fixed, pinned = facts.fixed, facts.pinned
    out = []
    if fixed:
        noun, verb = ("cell is", "fix it") if fixed == 1 else ("cells are", "fix them")
        out.append(f"{fixed} {noun} published exactly, whatever the budget, because the kept totals {verb}.")
    if pinned:
        noun, other = ("cell follows", "its value") if pinned == 1 else ("cells follow", "their values")
        since = "every cell on the list occurs" if facts.observed else "counts are not negative"
        out.append(
            f"{pinned} {'other ' if fixed else ''}{noun} from the published totals, since {since}: "
            f"{other} can be computed by anyone, whatever the noise."
        )
    if not out:
        out.append("No cell is published exactly." if facts.complete else "No cell was found that is published exactly.")
    if not facts.complete:
        out.append("Not all that the kept totals say together could be worked out: there may be more.")
    return " ".join(out)
