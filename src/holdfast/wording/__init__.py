"""The sentences. Everything below this package holds facts: fields and enumerations; this package turns them into plain English.

No code reads a sentence back. Imported by what shows things to people only: publication, report, the command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.wording.dispatch import describe

__all__ = ["describe"]


def __getattr__(name: str) -> Any:
    """Loaded when first used: a command must be able to say how it ended even if loading the rest was stopped half way."""
    if name != "describe":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from holdfast.wording.dispatch import describe

    return describe
