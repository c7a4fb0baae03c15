"""How many examples of a property are tried: a third of them by `make test`, all by the long group and where no group is chosen."""

from __future__ import annotations

LEAST = 10

_chosen = {"all": True}


def choose(every: bool) -> None:
    """Called once, before any test is imported."""
    _chosen["all"] = every


def examples(count: int) -> int:
    """For `@settings(max_examples=examples(150))`."""
    return count if _chosen["all"] else min(count, max(LEAST, count // 3))
