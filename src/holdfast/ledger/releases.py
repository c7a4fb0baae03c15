"""A release as the ledger holds it: its charge, its public facts, and how far it has come.

Facts are checked when they are read and before they are written: whoever can write the ledger chose them.

Releases of an account may share people in the connected components of the graph in which two releases overlap unless the later one was
declared disjoint from the earlier. `Overlaps` keeps them while the account is replayed. Time: a release is compared with the members of a
component until one overlaps it: at most as many as it names, and one for each component. Without declarations there is one component, and
nothing is searched. A component with declarations from which a release is taken out is split when its sum is next asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from typing import Any, cast

from holdfast.display import Json, read_as
from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import format_ratio
from holdfast.lattices.norms import L1
from holdfast.ledger.disjoint import Disjoint
from holdfast.ledger.values import (
    GRANT_NEEDS,
    MAX_NAME,
    MAX_TEXT,
    OPEN,
    UNCOUNTED,
    Charge,
    Costs,
    Currency,
    Grant,
    GrantKind,
    State,
    name_of,
    read_exact,
    sum_text,
)
from holdfast.privacy.parameters import Asked

MAX_RECORDS = 2**62
"""The most records of one person that a release can say."""


@dataclass(frozen=True)
class Granted:
    """All grants of an account together when a release was reserved, exact, and who approved the last of them: said on the card."""

    kind: GrantKind
    epsilon: str | None
    rho: str | None
    delta: str | None
    grants: int
    approver: str

    @classmethod
    def of(cls, grants: Sequence[Grant]) -> Granted | None:
        """None where there is no limit."""
        if not grants:
            return None
        last = grants[-1]
        sums = ([getattr(grant, name) for grant in grants] for name in ("epsilon", "rho"))
        epsilon, rho = (None if None in values else sum_text(values) for values in sums)
        return cls(last.kind, epsilon, rho, format_ratio(last.delta), len(grants), last.approver)

    @classmethod
    def read(cls, said: Json) -> Granted:
        """What `to_fields` wrote; KeyError, TypeError or ValueError where it did not."""
        made = cls(**cast(Any, read_as(dict, said)))
        numbers = [read_exact(number) for number in (made.epsilon, made.rho, made.delta)]
        if made.kind not in GRANT_NEEDS or any(number is not None and number <= 0 for number in numbers):
            raise ValueError("no grants that Holdfast writes")
        _text(made.approver), _number(made.grants, 1)
        return made

    def to_fields(self) -> dict[str, Json]:
        """JSON-ready, exact."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class ReleaseFacts:
    """Public facts of a release, kept in the event that reserves it. None: not said, or not in a way that this version understands."""

    protect: str | None = None
    distance: str | None = None
    """The distance that the promise is for."""
    answers: Json = None
    """What real-valued answers have; tables of counts have none."""
    disjoint: Disjoint | None = None
    revision_of: str | None = None
    mechanism: str | None = None
    parameters: Mapping[str, Json] | None = None
    asked: Asked | None = None
    max_records: int | None = None
    universe: Mapping[str, Json] | None = None
    constraints: Sequence[Mapping[str, Json]] | None = None
    costs: Costs | None = None
    exposed: Json = None
    """Fields of `exposure.facts.ReleaseExposure`, for the screen."""
    stream_version: int | None = None
    software: Mapping[str, str | int] | None = None
    """Versions by the names of packages."""
    grant: Granted | None = None
    noise: Mapping[str, str] | None = None
    """What fixes the noise of the cell key method."""
    other_records: str | None = None
    others: Mapping[str, Json] = field(default_factory=dict)
    """Facts that no code reads."""

    @classmethod
    def read(cls, said: Mapping[str, Json]) -> ReleaseFacts:
        """Raise InvalidParameter where a fact is of another kind than Holdfast writes. Unknown ones are left as they are."""
        known: dict[str, Any] = {}
        for name in said.keys() & _READERS.keys():
            try:
                known[name] = _READERS[name](said[name])
            except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
                raise InvalidParameter(f"The fact {name!r} of a release is not one that Holdfast writes. Leave it out.") from None
        return cls(**known, others={name: value for name, value in said.items() if name not in _READERS})

    def to_fields(self) -> dict[str, Json]:
        """As an event holds them: what is not said is left out, but what a mechanism was asked for and costs is said to be unknown."""
        said = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "others"}
        parts = ("disjoint", "asked", "costs", "grant")
        known = {name: value.to_fields() if name in parts else value for name, value in said.items() if value is not None}
        return {**self.others, **({} if self.mechanism is None else {"asked": None, "costs": None}), **known}

    @property
    def is_for_one_change(self) -> bool:
        """Whether the charge bounds single changes that leave the invariants as they are, and nothing is known of others: the sensitivity
        of a query matrix with invariants. Several changes may leave the invariants as they are though none alone does [theory T231].
        """
        if self.answers is None or (self.constraints is not None and not self.constraints):
            return False
        return not isinstance(self.answers, Mapping) or self.answers.get("neighbours") != "declared"

    def why_not_disjoint(self, charge: Charge) -> str | None:
        """Say why a release with this charge cannot be part of a declaration; None if [theory T193] covers it.

        What the facts do not say is not covered.
        """
        if charge.kind in UNCOUNTED:
            return "it has no charge in numbers"
        if self.answers is not None:
            return "it publishes real-valued answers, and their sensitivity does not say what half of a change costs"
        if charge.kind == "pure" and self.distance != L1.name:
            return "its promise is pure and not in l1 distance, so half of a change costs more than half of its charge"
        return None


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """Budget set aside for one release, and where the release stands.

    head is the hash of the event that reserved it, as printed in the card: "<ledger id>:<seq>:<hash>". sealed_key and input_check are
    there only while the release is open, and second_secret only on the machine where it was begun. A repr does not show them. A release
    that a restored copy of the ledger does not hold is "lost": it counts, and nothing else is known of it.
    """

    dataset: str
    release_id: str
    state: State
    charge: Charge
    facts: ReleaseFacts
    head: str
    seq: int
    time: str
    checksum: str | None = None
    reason: str | None = None
    sealed_key: bytes | None = field(default=None, repr=False)
    input_check: str | None = field(default=None, repr=False)
    """A one-way check of the input's digest, which enters the noise and is kept nowhere."""
    second_secret: bytes | None = field(default=None, repr=False)

    @property
    def is_open(self) -> bool:
        """Whether the release may still be resumed or voided."""
        return self.state in OPEN

    @property
    def counts(self) -> bool:
        """Whether the charge counts as spent; only a void before the first random word gives it back."""
        return self.state != "voided"

    @property
    def costs(self) -> Costs | None:
        """What it costs other pairs of tables than its charge is for; None where the ledger does not say."""
        said = self.facts.costs
        return said if said is not None and said.per_distance.kind == said.smallest_secret.kind == self.charge.kind else None


def _if_understood(reader: Callable[[Json], object], value: Json) -> object:
    """None for what another version wrote."""
    try:
        return reader(value)
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def _text(value: Json, longest: int = MAX_TEXT) -> str:
    if len(read_as(str, value)) > longest:
        raise ValueError("a text of another length")
    return read_as(str, value)


def _number(value: Json, least: int = 0) -> int:
    if not least <= read_as(int, value) <= MAX_RECORDS:
        raise ValueError("not a number of records, or of a version")
    return read_as(int, value)


def _versions(value: Json) -> dict[str, str | int]:
    return {name: _text(one) if isinstance(one, str) else _number(one) for name, one in read_as(dict, value).items()}


_READERS: Mapping[str, Callable[[Json], object]] = {
    "protect": lambda value: name_of(value, "protect"),
    "distance": lambda value: _text(value, MAX_NAME),
    "answers": lambda value: {} if value is None else value,  # there, whatever it is: no declaration covers answers
    "disjoint": lambda value: None if value is None else Disjoint.read(value),
    "revision_of": lambda value: None if value is None else name_of(value, "revision_of"),
    "mechanism": lambda value: _text(value, MAX_NAME),
    "parameters": lambda value: read_as(dict, value),
    "asked": lambda value: _if_understood(Asked.from_fields, value),
    "max_records": lambda value: _number(value, 1),
    "universe": lambda value: read_as(dict, value),
    "constraints": lambda value: [read_as(dict, one) for one in read_as(list, value)],
    "costs": lambda value: _if_understood(Costs.from_fields, value),
    "exposed": lambda value: value,
    "stream_version": _number,
    "software": _versions,
    "grant": Granted.read,
    "noise": lambda value: {name: text for name, text in read_as(dict, value).items() if isinstance(text, str)},  # else other noise
    "other_records": _text,
}


@dataclass
class _Part:
    """A component, or several of them together where `is_whole` is False; members by the number of their event."""

    members: dict[int, Reservation] = field(default_factory=dict)
    sums: dict[Currency, Fraction] = field(default_factory=lambda: {"epsilon": Fraction(0), "rho": Fraction(0)})
    has_lost: bool = False
    declares: bool = False
    """Whether a member was declared disjoint from a release; else all overlap, and stay one component whichever is taken out."""
    is_whole: bool = True

    def count(self, charge: Charge, times: int) -> None:
        self.sums["epsilon"] += times * (charge.epsilon or 0)
        self.sums["rho"] += times * (charge.rho or 0)

    def take(self, other: _Part) -> None:
        """Join another component to this one."""
        self.members.update(other.members)
        for currency, amount in other.sums.items():
            self.sums[currency] += amount
        self.has_lost, self.declares = self.has_lost or other.has_lost, self.declares or other.declares
        self.is_whole = self.is_whole and other.is_whole

    def overlaps(self, release: Reservation, declared: frozenset[str]) -> bool:
        """Whether a later release may share people with a member. A lost release overlaps all: it may have the name of one declared."""
        return release.state == "lost" or self.has_lost or any(one.release_id not in declared for one in self.members.values())


class Overlaps:
    """The components of the releases that count.

    Given:  releases are added in the order of their events, in the state they begin in, with facts that were checked.
    """

    def __init__(self, releases: Iterable[Reservation] = ()) -> None:
        self._parts: list[_Part] = []
        for release in releases:
            self.add(release)

    def add(self, release: Reservation) -> None:
        """Count one more release, later than all that are here."""
        declared, apart = _declared_disjoint(release), []
        joined = _Part({release.seq: release}, has_lost=release.state == "lost", declares=bool(declared))
        joined.count(release.charge, 1)
        for part in self._parts:
            if not part.overlaps(release, declared):
                apart.append(part)
                continue
            small, joined = sorted((joined, part), key=lambda one: len(one.members))
            joined.take(small)
        self._parts = [*apart, joined]

    def remove(self, release: Reservation) -> None:
        """Count a release no longer: what it held together may come apart."""
        part = next(part for part in self._parts if release.seq in part.members)
        gone = part.members.pop(release.seq)
        part.count(gone.charge, -1)
        part.is_whole = part.is_whole and not part.declares and bool(part.members)

    def total(self, currency: Currency) -> Fraction:
        """The sum of all charges, a bound on the largest that needs nothing split."""
        return sum((part.sums[currency] for part in self._parts), Fraction(0))

    def largest(self, currency: Currency) -> Fraction:
        """The largest sum of charges inside one component."""
        self._split()
        return max((part.sums[currency] for part in self._parts), default=Fraction(0))

    def components(self) -> list[list[int]]:
        """The components, each by the numbers of its members' events."""
        self._split()
        return [sorted(part.members) for part in self._parts]

    def _split(self) -> None:
        if not all(part.is_whole for part in self._parts):
            self._parts = [small for part in self._parts for small in _pieces(part)]


def _pieces(part: _Part) -> Iterator[_Part]:
    if part.is_whole:
        yield part
    else:
        yield from Overlaps(part.members[seq] for seq in sorted(part.members))._parts


def _declared_disjoint(release: Reservation) -> frozenset[str]:
    """The releases that it was declared disjoint from."""
    made = None if release.state == "lost" else release.facts.disjoint
    return frozenset() if made is None else frozenset(made.releases)
