"""The sampler that a user asks for: its arguments, its run-file keys, and how a card shows it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeVar, cast

from holdfast.chains.kernels import KERNELS
from holdfast.channels.channel import SamplerRequest
from holdfast.display import Json
from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import format_exact
from holdfast.exact.parameters import Exact
from holdfast.mechanisms import keys
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.privacy.parameters import ordinary, probability
from holdfast.samplers.table import AUTO

DEFAULT_ETA = Fraction(1, 1000)
"""Total variation error that a chain may have, where nobody says otherwise: it takes 3000 coupled pairs to estimate."""

SAMPLERS = (AUTO, *KERNELS)


def sampler_keys(*samplers: str) -> tuple[keys.Key, ...]:
    """The keys of a mechanism that takes these samplers."""
    return (
        keys.Key("sampler", keys.one_of(*samplers), '"auto"'),
        keys.Key("allow_estimated", keys.boolean, "true"),
        keys.Key(
            "eta", keys.exact_number(1, large='must be less than 1: it is a probability. Got {text}. Write eta = "1/1000".'), '"1/1000"'
        ),
    )


SAMPLER_KEYS = sampler_keys(*SAMPLERS)

Choice = TypeVar("Choice", bound=str)


def check_choice(value: Choice, allowed: tuple[str, ...], name: str) -> Choice:
    """One of the listed words."""
    if value not in allowed:
        raise InvalidParameter(f"{name} must be one of {', '.join(map(repr, allowed))}. Got {value!r}.")
    return value


def sampler_request(sampler: str, allow_estimated: bool, eta: Exact, samplers: tuple[str, ...] = SAMPLERS) -> SamplerRequest:
    """What a user asks for, checked: the sampler, whether an estimate is allowed, and the error it may have."""
    check_choice(sampler, samplers, "sampler")
    if not isinstance(allow_estimated, bool):
        raise InvalidParameter(f"allow_estimated must be True or False. Got {type(allow_estimated).__name__}.")
    return SamplerRequest(sampler, allow_estimated, ordinary(probability(eta, "eta"), "eta"))


def request_from_keys(values: Mapping[str, object]) -> SamplerRequest:
    """The same from the keys of a run file."""
    sampler, allow, eta = values.get("sampler", AUTO), values.get("allow_estimated", False), values.get("eta", DEFAULT_ETA)
    return SamplerRequest(cast(str, sampler), cast(bool, allow), cast(Fraction, eta))  # as the readers of `sampler_keys` return them


class ChainMechanism(Mechanism):
    """A mechanism whose law a Markov chain can draw, where the user asks for one."""

    request: SamplerRequest

    @property
    def sampler(self) -> str:
        """The sampler asked for."""
        return self.request.sampler

    @property
    def allow_estimated(self) -> bool:
        """Whether "auto" may take a chain."""
        return self.request.allow_estimated

    @property
    def eta(self) -> Fraction:
        """Total variation error that chains may have together."""
        return self.request.eta

    @classmethod
    def _keys_of(cls, parameters: dict[str, Json]) -> dict[str, Json]:
        if "eta_allowed" not in parameters:
            return parameters
        return {**{k: v for k, v in parameters.items() if k != "eta_allowed"}, "eta": parameters["eta_allowed"], "allow_estimated": True}

    @property
    def _said_of_chains(self) -> dict[str, str]:
        """As a card shows it: nothing where `auto` may take exact samplers only."""
        if not (self.request.names_a_chain or self.request.allow_estimated):
            return {} if self.sampler == AUTO else {"sampler": self.sampler}
        return {"sampler": self.sampler, "eta_allowed": format_exact(self.eta)}
