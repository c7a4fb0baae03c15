"""Which releases of an account may share people: the connected components of the graph in which two releases overlap unless the later one
was declared disjoint from the earlier. Kept while the account is replayed.

Time:  a release is compared with the members of a component until one overlaps it: at most as many as it names, and one for each component.
       Without declarations there is one component, and nothing is searched. A component with declarations from which a release is taken out
       is split when its sum is next asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from holdfast.ledger.releases import Reservation
from holdfast.ledger.values import Charge, Currency


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
