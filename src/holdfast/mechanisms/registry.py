"""The mechanisms that run files and cards know by name: one row each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from holdfast.errors import InvalidParameter
from holdfast.lattices.shapes import Shape
from holdfast.laws import Target
from holdfast.mechanisms.gaussian import GeneralizedGaussian
from holdfast.mechanisms.laplace import GeneralizedLaplace
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.mechanisms.rounded import RoundedProjection
from holdfast.mechanisms.suppression import Suppression
from holdfast.samplers.table import SAMPLERS, Prepare

MECHANISMS: dict[str, type[Mechanism]] = {}
"""Name -> class, in the order in which messages list them."""

Registered = TypeVar("Registered", bound=type[Mechanism])


def register(cls: Registered, samplers: Mapping[tuple[type[Shape], type[Target]], Prepare] | None = None) -> Registered:
    """Make a mechanism known by its name: from then on run files may ask for it, with the keys that it lists.

    Given:       a subclass of Mechanism; used as a function, or as a decorator above the class. `samplers`: rows for the table of
                 samplers, where the mechanism has a target of its own.
    Guarantees:  a name stands for one class: another class under a taken name is refused; the same class again changes nothing.
    """
    taken = MECHANISMS.setdefault(cls.name, cls)
    if taken is not cls:
        raise InvalidParameter(f"The mechanism {cls.name!r} is registered already, as {taken.__qualname__}. Give yours another name.")
    SAMPLERS.update(samplers or {})
    return cls


def mechanism_class(name: str) -> type[Mechanism]:
    """The class of this name."""
    if name not in MECHANISMS:
        raise InvalidParameter(f"There is no mechanism {name!r}. Mechanisms: {', '.join(MECHANISMS)}.")
    return MECHANISMS[name]


register(GeneralizedLaplace)
register(GeneralizedGaussian)
register(RoundedProjection)
register(Suppression)
