"""Checks of the words a mechanism takes."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

from holdfast.chains.kernels import KERNELS
from holdfast.chains.sampler import SamplerRequest
from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.privacy.parameters import format_exact, probability

DEFAULT_ETA = Fraction(1, 1000)
"""Total variation error that a chain may have, where nobody says otherwise: it takes 3000 coupled pairs to estimate."""

Word = TypeVar("Word", bound=str)


def check_choice(value: Word, allowed: tuple[str, ...], name: str) -> Word:
    """One of the listed words."""
    if value not in allowed:
        raise InvalidParameter(f"{name} must be one of {', '.join(map(repr, allowed))}. Got {value!r}.")
    return value


def sampler_request(sampler: str, allow_estimated: bool, eta: Exact) -> SamplerRequest:
    """What a user allows, checked: the sampler asked for, whether an estimate is allowed, and the error it may have."""
    check_choice(sampler, ("auto", *KERNELS), "sampler")
    if not isinstance(allow_estimated, bool):
        raise InvalidParameter(f"allow_estimated must be True or False. Got {type(allow_estimated).__name__}.")
    return SamplerRequest(sampler, allow_estimated, probability(eta, "eta"))


def request_parameters(request: SamplerRequest) -> dict[str, str]:
    """As a card shows it: nothing where only exact samplers are allowed."""
    if not (request.names_a_chain or request.allow_estimated):
        return {}
    return {"sampler": request.sampler, "eta_allowed": format_exact(request.eta)}
