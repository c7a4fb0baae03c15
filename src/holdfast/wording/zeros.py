"""Which cells take no noise because a kept total or an identity is 0."""

from __future__ import annotations

from holdfast.card.card import ZerosStatus


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
