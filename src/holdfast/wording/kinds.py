"""Kinds of things that `describe` learns of from elsewhere: research is described without being imported here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

KINDS: dict[type, Described] = {}


@dataclass(frozen=True)
class Described:
    """How a kind of thing is put into sentences."""

    sentences: Callable[..., str]
    """Takes the thing, and the delta where `takes_delta` says so."""
    takes_delta: bool = False


def describe_as(kind: type, sentences: Callable[..., str], *, takes_delta: bool = False) -> None:
    """Let `describe` know a kind of thing, or anything whose `guarantee` is of that kind."""
    KINDS[kind] = Described(sentences, takes_delta)


def find_kind(thing: Any) -> Described | None:
    """How the thing is described, or None if its kind is unknown."""
    return next((found for kind, found in KINDS.items() if isinstance(thing, kind)), None)
