"""Which cells take no noise because a kept total is 0."""

from __future__ import annotations

from typing import Literal, TypeAlias

ZerosStatus: TypeAlias = Literal["open", "applied", "none"]

_OPEN = "Cells under a kept total of 0 take no noise. Which cells these are is decided at the release, from the totals as published."


LAW_WITHOUT_ZEROS = "; z is 0 in cells under a kept total of 0"
"""After the formula of a law, "over all integer tables z that change no kept total"."""


def zeros_sentence(status: ZerosStatus, cells: int) -> str:
    """What is left out of the draw."""
    if status == "open":
        return _OPEN
    if status == "none":
        return "No cell is left out of the draw because of a kept total of 0."
    noun, verb = ("1 cell", "lies") if cells == 1 else (f"{cells:,} cells", "lie")
    take = "takes" if cells == 1 else "take"
    return f"{noun} {verb} under a kept total of 0, can only be 0 since counts are not negative, and {take} no noise."
