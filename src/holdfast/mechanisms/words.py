"""Checks of the words a mechanism takes."""

from __future__ import annotations

from typing import TypeVar

from holdfast.errors import InvalidParameter

Word = TypeVar("Word", bound=str)


def known(value: Word, allowed: tuple[str, ...], name: str) -> Word:
    """One of the listed words."""
    if value not in allowed:
        raise InvalidParameter(f"{name} must be one of {', '.join(map(repr, allowed))}. Got {value!r}.")
    return value


def check_sampler(value: str) -> str:
    """The samplers a user may ask for."""
    return known(value, ("auto",), "sampler")
