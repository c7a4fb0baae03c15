"""Checks of the words a mechanism takes."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

from holdfast.chains.kernels import KERNELS
from holdfast.chains.sampler import Wish
from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.privacy.parameters import probability, shown

DEFAULT_ETA = Fraction(1, 1000)
"""Total variation error that a chain may have, where nobody says otherwise: it takes 3000 coupled pairs to estimate."""

Word = TypeVar("Word", bound=str)


def known(value: Word, allowed: tuple[str, ...], name: str) -> Word:
    """One of the listed words."""
    if value not in allowed:
        raise InvalidParameter(f"{name} must be one of {', '.join(map(repr, allowed))}. Got {value!r}.")
    return value


def wish_of(sampler: str, allow_estimated: bool, eta: Exact) -> Wish:
    """What a user allows, checked: the sampler asked for, whether an estimate will do, and the error it may have."""
    known(sampler, ("auto", *KERNELS), "sampler")
    if not isinstance(allow_estimated, bool):
        raise InvalidParameter(f"allow_estimated must be True or False. Got {type(allow_estimated).__name__}.")
    return Wish(sampler, allow_estimated, probability(eta, "eta"))


def wish_parameters(wish: Wish) -> dict[str, str]:
    """As a card shows it: nothing where only exact samplers are allowed."""
    if not (wish.names_a_chain or wish.allow_estimated):
        return {}
    return {"sampler": wish.sampler, "eta_allowed": shown(wish.eta)}
