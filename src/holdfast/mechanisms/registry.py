"""The mechanisms that run files and cards know by name: one row each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from holdfast.errors import InvalidParameter
from holdfast.lattices.shapes import Shape
from holdfast.laws import Target
from holdfast.mechanisms.cellkey import CellKey
from holdfast.mechanisms.conditional import Conditional
from holdfast.mechanisms.gaussian import GeneralizedGaussian
from holdfast.mechanisms.laplace import GeneralizedLaplace, RoundedProjection
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.mechanisms.subspace import ExtendedGaussian, ExtendedLaplace, ProjectedGaussian, ProjectedLaplace
from holdfast.mechanisms.suppression import Suppression
from holdfast.samplers.table import SAMPLERS, Prepare

MECHANISMS: dict[str, type[Mechanism]] = {}
"""Name -> class, in the order in which messages list them."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

Registered = TypeVar("Registered", bound=type[Mechanism])


def register(cls: Registered, samplers: Mapping[tuple[type[Shape], type[Target]], Prepare] | None = None) -> Registered:
    """Make a mechanism known by its name: from then on run files may ask for it, with the keys that it lists.

    Given:       a subclass of Mechanism; used as a function, or as a decorator above the class. `samplers`: rows for the table of
                 samplers, where the mechanism has a target of its own.
    Guarantees:  a name stands for one class, and a row for one sampler: what is taken is refused, and then nothing changes. The same class
                 again changes nothing.
    """
    rows = dict(samplers or {})
    _check(cls, rows)
    MECHANISMS[cls.name] = cls
    SAMPLERS.update(rows)
    return cls


def _check(cls: type[Mechanism], rows: Mapping[tuple[type[Shape], type[Target]], Prepare]) -> None:
    """Before anything is changed: what is refused leaves no trace."""
    if not (isinstance(cls, type) and issubclass(cls, Mechanism)) or not isinstance(getattr(cls, "name", None), str):
        raise InvalidParameter("register() takes a subclass of Mechanism that has a name.")
    if not _NAME.fullmatch(cls.name):
        raise InvalidParameter(f"A mechanism's name is lower-case letters, digits and hyphens, such as 'my-mechanism'. Got {cls.name!r}.")
    if MECHANISMS.get(cls.name, cls) is not cls:
        taken = MECHANISMS[cls.name].__qualname__
        raise InvalidParameter(f"The mechanism {cls.name!r} is registered already, as {taken}. Give yours another name.")
    for key, prepare in rows.items():
        if SAMPLERS.get(key, prepare) is not prepare:  # replacing a row would change the noise of other mechanisms
            shape, target = (kind.__name__ for kind in key)
            raise InvalidParameter(f"There is a sampler for ({shape}, {target}) already. Give your mechanism a target of its own.")


def mechanism_class(name: str) -> type[Mechanism]:
    """The class of this name."""
    if name not in MECHANISMS:
        raise InvalidParameter(f"There is no mechanism {name!r}. Mechanisms: {', '.join(MECHANISMS)}.")
    return MECHANISMS[name]


register(GeneralizedLaplace)
register(GeneralizedGaussian)
register(RoundedProjection)
register(Conditional)
register(Suppression)
register(CellKey)
register(ProjectedLaplace)
register(ProjectedGaussian)
register(ExtendedLaplace)
register(ExtendedGaussian)
