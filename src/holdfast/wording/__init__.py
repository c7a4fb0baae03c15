"""Sentences, made from the fields and enumerations of the rooms below; one file for each topic. `describe` (dispatch.py) takes whatever can
be said in sentences, and what other rooms teach it. The texts of pages are in catalogues/, read by catalogue.py.

No code reads a sentence back. Only rooms that show things to people import this one: accuracy, report, publication and those above.

`describe` is imported when first used: that takes 0.7 s, and a command must be able to say how it ended before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.wording.dispatch import describe

__all__ = ["describe"]


def __getattr__(name: str) -> Any:
    if name != "describe":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from holdfast.wording.dispatch import describe

    return describe
