"""Numbers and lists as they stand in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from holdfast.privacy.parameters import format_short

WEAK_EPSILON = 10
"""Above this an epsilon for one person deserves a warning: e^10 is more than 22,000."""


def number(value: Fraction | float) -> str:
    """As text: exact where it is exact and short, else six digits rounded up."""
    return format_short(value)


def listed(names: Sequence[str]) -> str:
    """ "a, b and c"; one name or more."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def quoted(names: Sequence[str]) -> list[str]:
    """Names of releases, as sentences show them."""
    return [repr(name) for name in names]
