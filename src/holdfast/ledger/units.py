"""Which protected units share an account, what one contains of another, and what a release that protects one costs another.

A release that protects persons costs a household of 8 persons what 8 changes cost. One that protects households costs a person two changes:
who moves alters the household that is left and the one that is joined [theory T231].
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from holdfast.display import Json
from holdfast.errors import InvalidParameter
from holdfast.ledger.values import name_of
from holdfast.tables.similar import look_alike

MAX_CONTENTS = 10**9
"""Most units of one kind that another can be said to contain."""
MAX_UNITS = 20
"""Most units of one account."""
EXAMPLE = "household = {person = 8}"
CONTAINERS = 2
"""Units of one kind that a change of something that lies in at most one of them alters: the one before and the one after."""


@dataclass(frozen=True)
class ProtectedUnits:
    """How many of one protected unit another contains at most: {"household": {"person": 8}}. Checked when it is made."""

    contents: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = list(self.names)
        if len(names) > MAX_UNITS:
            raise InvalidParameter(f"An account protects at most {MAX_UNITS} units. Got {len(names)}.")
        for name in names:
            name_of(name, "a protected unit")
            if other := look_alike(name, (one for one in names if one != name)):
                raise InvalidParameter(
                    f"The units {name!a} and {other!a} differ only in blanks, case or letters that look alike. Write one."
                )
        if any(type(number) is not int or not 1 <= number <= MAX_CONTENTS for _, _, number in self._pairs):
            raise InvalidParameter(f"How many units another contains is a whole number from 1 to {MAX_CONTENTS:,}, as in {EXAMPLE}.")
        if any(self._contains(member, container) for container, member, _ in self._pairs):
            raise InvalidParameter("A unit cannot contain itself, nor what contains it. Write each pair once, the larger unit first.")

    @classmethod
    def read(cls, given: object) -> ProtectedUnits:
        """Read a mapping, or its text as TOML; InvalidParameter for anything else."""
        try:
            contents = tomllib.loads(given) if isinstance(given, str) else given
        except tomllib.TOMLDecodeError:
            contents = None
        if not isinstance(contents, Mapping) or not contents or not all(isinstance(one, Mapping) and one for one in contents.values()):
            raise InvalidParameter(f"Units are declared as what one contains of another: {EXAMPLE}. Got something else.")
        return cls({container: dict(members) for container, members in contents.items()})

    def and_also(self, other: ProtectedUnits) -> ProtectedUnits:
        """Return both together. A number that is there stays: spending was limited by it."""
        for container, member, number in other._pairs:
            if (known := self.contents.get(container, {}).get(member, number)) != number:
                raise InvalidParameter(f"It was declared that a {container} contains at most {known} {member}; that stays. Got {number}.")
        names = dict.fromkeys([*self.contents, *other.contents])
        both = ProtectedUnits({one: {**self.contents.get(one, {}), **other.contents.get(one, {})} for one in names})
        for unit, others in self._changes.items():
            if less := next((one for one, times in others.items() if both._changes[unit][one] < times), None):
                raise InvalidParameter(
                    f"A change of one {unit} was said to be up to {others[less]} of {less}; that stays, since spending was limited by it. "
                    f"Got units by way of which it is {both._changes[unit][less]}."
                )
        return both

    def to_fields(self) -> dict[str, Json]:
        """JSON-ready, as `read` takes it."""
        return {container: dict(members) for container, members in self.contents.items()}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All units, in the order in which they were named."""
        return tuple(dict.fromkeys(name for container, members in self.contents.items() for name in (container, *members)))

    def changes(self, unit: str, protect: str) -> int | None:
        """Return how many changes of one `protect` a change of one `unit` is at most; None where nothing was declared that tells."""
        return 1 if unit == protect else self._changes.get(unit, {}).get(protect)

    @cached_property
    def _changes(self) -> dict[str, dict[str, int]]:
        """The same for each pair: the least product of numbers along a way from one to the other."""
        steps = [*self._pairs, *((member, container, CONTAINERS) for container, member, _ in self._pairs)]
        found = {name: {name: 1} for name in self.names}
        for reached in found.values():
            for _ in self.names:  # the longest way passes each name once
                for one, other, times in steps:
                    if one in reached:
                        reached[other] = min(reached.get(other, reached[one] * times), reached[one] * times)
        return found

    @property
    def _pairs(self) -> Iterator[tuple[str, str, int]]:
        return ((container, member, number) for container, members in self.contents.items() for member, number in members.items())

    def _contains(self, container: str, unit: str) -> bool:
        """Whether a unit is a container itself, or lies in it through others."""
        inside = [container]
        for name in inside:
            inside += [member for member in self.contents.get(name, {}) if member not in inside]
        return unit in inside
