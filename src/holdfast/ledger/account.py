"""The account of one data set: its events replayed, the rules that every further event must keep, and what is spent.

Every rule is written once. The ledger asks it before it appends an event; `verify` asks it again about every event that is there.

An account without a limit was opened by its first release, in a ledger that records data sets that nobody granted a budget. It refuses
nothing for its price and adds up all the same; a grant made later is a limit on all of it, from the first release on.

Limits are fixed when they are granted, and a release is refused where the sum would pass them, whatever earlier releases showed: sums of
epsilon (pure) and of rho (zCDP) are valid for budgets chosen adaptively.

Declared disjoint. Nothing is inferred from codes: two releases overlap unless the later one declares, with a reason, that no person is in
both (`disjoint.py`). Sum the charges inside each connected component of this graph; spent is the largest of the sums, which bounds what one
person loses [theory T193]. Of two disjoint releases that both overlap a third, all three add up, though less may be lost. Releases that a
restored copy of the ledger had lost overlap all others, since nothing is known of them.

So what is left depends on the release that asks: what was granted, less the other charges of the component that it would join. A release
that declares nothing joins all of them.

Several units. An account may protect persons and households, once it was said what one contains of another (`units.py`). Every release is
charged to each of them, at the cost of that many changes, and each has its own limit, where one was granted. A declaration keeps charges
apart for the unit that it names; for the others they add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal, cast

from holdfast.display import Json, read_as
from holdfast.errors import BudgetExceeded, LedgerProblem, NoGrant, WrongState
from holdfast.exact.formatting import format_amount
from holdfast.ledger.chain import BEFORE, Event, read_head, states_in
from holdfast.ledger.releases import Overlaps, ReleaseFacts, Reservation
from holdfast.ledger.units import EXAMPLE, ProtectedUnits
from holdfast.ledger.values import UNCOUNTED, Balance, Charge, Currency, Grant, State, TakenBack, largest_rho, name_of, text_of
from holdfast.privacy.conversions import zcdp_epsilon

ONE_CHANGE = (
    "the sensitivity of its query matrix holds for one change that leaves the kept invariants as they are, and several changes may "
    "leave them so though none alone does"
)


class Account:
    """Grants and releases of one data set, in the order of their events."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self.grants: list[Grant] = []
        self.taken_back: list[TakenBack] = []
        """Grants that were taken back. An account that has some, and no grant, takes no release: its limit is nothing, not none."""
        self.opened: str | None = None
        """What an account protects that was opened without a limit."""
        self.units = ProtectedUnits()
        """What was declared that one protected unit contains of another."""
        self.releases: dict[int, Reservation] = {}
        """By the number of the event that reserved them."""
        self._latest: dict[str, int] = {}
        self._counting: Counter[str] = Counter()
        """How many reservations of a name count: one, and those that a restored copy had lost."""
        self._lost: list[str] = []
        """What releases protect that a restored copy of the ledger had lost."""
        self._overlaps: dict[str, Overlaps] = {}
        """By the unit that is charged; made when they are asked for."""

    @classmethod
    def replay(cls, dataset: str, events: Iterable[Event]) -> tuple[Account, list[str]]:
        """The account after these events of its data set, and every rule that one of them breaks."""
        account, problems = cls(dataset), []
        for event in events:
            problem = account.apply(event)
            if problem:
                problems.append(f"Event {event.seq} ({event.kind_shown}): {problem}")
        return account, problems

    def release(self, release_id: str) -> Reservation | None:
        """The latest reservation under this name, in whatever state."""
        seq = self._latest.get(release_id)
        return None if seq is None else self.releases[seq]

    def grants_for(self, unit: str) -> list[Grant]:
        """The grants of one unit's budget."""
        return [grant for grant in self.grants if grant.protect == unit]

    def sum_of_grants(self, unit: str) -> Fraction:
        """All grants of one unit's budget together."""
        return sum((grant.limit for grant in self.grants_for(unit)), Fraction(0))

    @property
    def takes_releases(self) -> bool:
        """Whether a budget was granted, or the account was opened without a limit and never had one."""
        return bool(self.grants) or (self.opened is not None and not self.taken_back)

    @property
    def protects(self) -> tuple[str, ...]:
        """Whose privacy is counted, the first unit of the account first; empty where nothing was granted or recorded."""
        back = [self.taken_back[-1].grant.protect] if self.taken_back and not self.grants else []
        first = next(iter([*filter(None, [self.opened]), *(grant.protect for grant in self.grants), *back, *self._lost]), None)
        return () if first is None else tuple(dict.fromkeys((first, *self.units.names)))

    def unit_of(self, facts: ReleaseFacts) -> str:
        """Return the unit that a release protects; one that does not say so protects the first of the account."""
        return facts.protect or next(iter(self.protects), "person")

    def limit(self, unit: str) -> Grant | None:
        """The grant that says what is counted of a unit. Where all were taken back, the last of those: the limit is then 0."""
        back = [taken.grant for taken in self.taken_back if taken.grant.protect == unit]
        return next(iter([*self.grants_for(unit), *back[::-1]]), None)

    def currency(self, unit: str) -> Currency:
        """What is added up for a unit: as granted; without a limit epsilon where every release has one."""
        if (limit := self.limit(unit)) is not None:
            return limit.currency
        return "epsilon" if all(release.charge.kind != "zcdp" for release in self._counting_releases()) else "rho"

    def cost(self, charge: Charge, currency: Currency) -> Fraction:
        """The charge in this currency; 0 for one without a number, which is counted apart."""
        amount = charge.epsilon if currency == "epsilon" else charge.rho
        assert amount is not None or charge.kind in UNCOUNTED
        return Fraction(0) if amount is None else amount

    def spent(self, unit: str, currency: Currency | None = None) -> Fraction:
        """The bound of the module's text on what one such unit changing cell has lost to all releases together."""
        return self._overlaps_for(unit).largest(currency or self.currency(unit))

    def charge_for(self, unit: str, charge: Charge, facts: ReleaseFacts) -> Charge:
        """Return what a release costs one such unit. Nothing declared: as it stands, and `check_reserve` takes no further release."""
        return charge.times(self.units.changes(unit, self.unit_of(facts)) or 1)

    def _seen_by(self, unit: str, release: Reservation) -> Reservation:
        """The release as it is charged to a unit: what it declares is about the unit that it protects, and no other."""
        if self.unit_of(release.facts) == unit:
            return release
        charge = self.charge_for(unit, release.charge, release.facts)
        return replace(release, charge=charge, facts=replace(release.facts, disjoint=None))

    def _overlaps_for(self, unit: str) -> Overlaps:
        if unit not in self._overlaps:
            self._overlaps[unit] = Overlaps(self._seen_by(unit, release) for release in self._counting_releases())
        return self._overlaps[unit]

    def charged_beside(self, unit: str, release_id: str, charge: Charge, facts: ReleaseFacts) -> Fraction:
        """What other releases charge a unit, in the component that a release with these facts would join, or is in."""
        counted, own = self._counting_releases(), self.release(release_id)
        if own is None or not own.counts:
            seq = 1 + max(self.releases, default=0)
            own = Reservation(
                dataset=self.dataset, release_id=release_id, state="reserved", charge=charge, facts=facts, head="", seq=seq, time=""
            )
            counted.append(own)
        seen = [self._seen_by(unit, release) for release in counted]
        part = next(part for part in Overlaps(seen).components() if own.seq in part)
        others = (release for release in seen if release.seq in part and release.seq != own.seq)
        return sum((self.cost(release.charge, self.currency(unit)) for release in others), Fraction(0))

    def _counting_releases(self) -> list[Reservation]:
        return [release for release in self.releases.values() if release.counts]

    def balances(self) -> list[Balance]:
        """What was granted and is spent, for each unit of the account."""
        if not self.protects:
            raise self.no_grant()
        return [self.balance(unit) for unit in self.protects]

    def balance(self, unit: str | None = None) -> Balance:
        """What was granted, what is spent. The unit may be left out where the account has one."""
        if not self.protects:
            raise self.no_grant()
        if unit is None and len(self.protects) > 1:
            raise LedgerProblem(f"The account of {self.dataset!r} protects {_list_units(self.protects)}. Say whose balance: protect=...")
        unit = self.protects[0] if unit is None else unit
        if unit not in self.protects:
            raise self._other_unit(unit)
        first, currency = self.limit(unit), self.currency(unit)
        counted, grants = self._counting_releases(), self.grants_for(unit)
        return Balance(
            dataset=self.dataset,
            kind=None if first is None else first.kind,
            protect=unit,
            currency=currency,
            granted=None if first is None else self.sum_of_grants(unit),
            spent=self.spent(unit),
            epsilon=None if first is None or first.delta is None else sum((cast(Fraction, g.epsilon) for g in grants), Fraction(0)),
            delta=None if first is None else first.delta,
            recorded=len(counted),
            estimated=sum(release.charge.kind == "estimated" for release in counted),
            cell_key=sum(release.charge.kind == "cell-key" for release in counted),
            per_distance=self._spent_at(unit, counted, "per_distance"),
            smallest_secret=self._spent_at(unit, counted, "smallest_secret"),
            secret_is_more=any(
                release.costs is not None and release.costs.secret_is_more and self.unit_of(release.facts) == unit for release in counted
            ),
            all_charges=self._overlaps_for(unit).total(currency),
        )

    def _spent_at(self, unit: str, counted: list[Reservation], where: Literal["per_distance", "smallest_secret"]) -> Fraction | None:
        """The sum for another pair of tables than one person's move; None where a release does not say what that costs."""
        said = {release.seq: release.costs for release in counted if release.charge.kind not in UNCOUNTED}
        if None in said.values():
            return None
        charges = {seq: getattr(costs, where) for seq, costs in said.items()}
        costs = {release.seq: self.cost(charges.get(release.seq, release.charge), self.currency(unit)) for release in counted}
        parts = self._overlaps_for(unit).components()
        return max((sum((costs[seq] for seq in part), Fraction(0)) for part in parts), default=Fraction(0))

    def unknown(self, datasets: Sequence[str]) -> NoGrant:
        """The refusal of a question about a data set that the ledger does not have; these it has."""
        known = f"It has: {', '.join(datasets)}." if datasets else "It has none yet."
        return NoGrant(f"The ledger has no data set {self.dataset!r}. {known}")

    def no_grant(self) -> NoGrant:
        """The refusal of a data set that nobody granted a budget."""
        return NoGrant(
            f"No budget was granted for the data set {self.dataset!r}. Someone who may decide it grants one: "
            f"holdfast ledger grant {self.dataset!r} with a kind, an amount, an approver and a reason. Check the spelling of the name too: "
            "holdfast ledger show lists the names."
        )

    # The rules: each raises the refusal, a LedgerProblem.

    def _other_unit(self, unit: str) -> LedgerProblem:
        """The refusal of a unit that the account does not protect, and nothing relates to those that it does."""
        return LedgerProblem(
            f"The account of {self.dataset!r} is per {_list_units(self.protects)}. This is per {unit!r}. Units of one population share an "
            "account once it is declared what one contains of the other: "
            f"holdfast ledger units {self.dataset!r} {EXAMPLE!r}, with the names and the number that hold. "
            "Others have a data set of their own: dataset = ..."
        )

    def check_units(self, units: ProtectedUnits) -> ProtectedUnits:
        """Return what is declared with these, or refuse units that are not related to those of the account."""
        if not self.protects:
            raise self.no_grant()
        both = self.units.and_also(units)
        apart = [name for name in (*both.names, *self.protects) if both.changes(self.protects[0], name) is None]
        if apart:
            raise LedgerProblem(
                f"Nothing says how many {apart[0]!r} one {self.protects[0]!r} of {self.dataset!r} has, or the other way round. Declare "
                f"units that lie in one another, such as {EXAMPLE}."
            )
        if alone := next((release.release_id for release in self._counting_releases() if release.facts.is_for_one_change), None):
            raise LedgerProblem(f"The release {alone!r} of {self.dataset!r} cannot be charged to several units: {ONE_CHANGE}.")
        return both

    def check_grant(self, grant: Grant) -> None:
        """Refuse a grant for a unit that is not the account's, or that differs from its earlier ones in kind or delta."""
        if (self.grants or self.opened or self._lost or self.units.contents) and grant.protect not in self.protects:
            raise self._other_unit(grant.protect)
        own = self.grants_for(grant.protect)
        if not own:
            return self._check_limit(grant)
        first = own[0]
        for name, old, new in (("kind", first.kind, grant.kind), ("delta", first.delta, grant.delta)):
            if old != new:
                was, is_now = (format_amount(cast(Fraction | None, value)) if name == "delta" else repr(value) for value in (old, new))
                raise LedgerProblem(
                    f"The budget of {self.dataset!r} was granted with {name} {was}. Got {name} {is_now}. Grants for one {grant.protect} "
                    "add up, so they share kind and delta."
                )
        if grant.kind == "approximate" and not _is_proved([*own, grant]):
            raise LedgerProblem(f"The grants of {self.dataset!r} together would promise less than the sum of their epsilons.")

    def check_take_back(self, grant: Grant) -> None:
        """A grant goes whole, and only while nothing of it is spent: the others pay for every release."""
        others = [one for one in self.grants_for(grant.protect) if one.seq != grant.seq]
        rest, spent = self.sum_of_grants(grant.protect) - grant.limit, self.spent(grant.protect)
        if spent > rest or (not others and self._counting_releases()):
            raise LedgerProblem(
                f"The grant of event {grant.seq} is spent, or a part of it: the releases of {self.dataset!r} cost {grant.currency} = "
                f"{format_amount(spent)}, and {format_amount(rest, up=False)} would be granted without it. Only a grant "
                "that pays for nothing can be taken back."
            )
        if grant.kind == "approximate" and others and not _is_proved(others):
            raise LedgerProblem(f"The other grants of {self.dataset!r} depend on this one. Take back the latest one first.")

    def _check_limit(self, grant: Grant) -> None:
        """A first grant: where the account was opened without a limit, it must pay for what was recorded so far."""
        kinds = {release.charge.kind for release in self._counting_releases()}
        if "cell-key" in kinds:
            raise LedgerProblem(
                f"A release of {self.dataset!r} was made by the cell key method, which gives no guarantee to count, so no limit "
                "can be kept. Give later releases a data set of their own (dataset = ...), and grant that one a budget."
            )
        if "estimated" in kinds:
            raise LedgerProblem(
                f"A release of {self.dataset!r} was drawn by a Markov chain. Its estimated promise cannot be added up, so no limit can be "
                "kept. Give later releases a data set of their own (dataset = ...), and grant that one a budget."
            )
        if grant.kind == "pure" and "zcdp" in kinds:
            raise LedgerProblem(f"A release of {self.dataset!r} has no pure epsilon. Grant rho, or epsilon and delta.")
        name = grant.currency
        spent = self.spent(grant.protect, name)
        if spent > grant.limit:
            raise LedgerProblem(
                f"The releases of {self.dataset!r} that were recorded without a limit cost {name} = {format_amount(spent)} already. Got a "
                f"grant of {format_amount(grant.limit, up=False)}. Grant at least what is spent."
            )

    def fit_grant(self, grant: Grant) -> Grant:
        """A further approximate grant, its rho lowered where the two together would else promise less than both epsilons added."""
        own = self.grants_for(grant.protect)
        if not own or {grant.kind} != {"approximate", own[0].kind} or own[0].delta != grant.delta:
            return grant
        epsilon = sum((cast(Fraction, one.epsilon) for one in [*own, grant]), Fraction(0))
        room = largest_rho(epsilon, cast(Fraction, grant.delta)) - self.sum_of_grants(grant.protect)
        return replace(grant, rho=min(grant.limit, room))

    def check_reserve(self, release_id: str, charge: Charge, facts: ReleaseFacts) -> None:
        """A name that is free, a kind that the grant takes, facts that make sense; the amount is checked by `check_amount`."""
        if not self.takes_releases:
            raise self.no_grant()
        kinds = {grant.kind for grant in self.grants}
        if self._counting[release_id]:
            earlier = next(release for release in reversed(self._counting_releases()) if release.release_id == release_id)
            raise WrongState(
                f"The release {release_id!r} of {self.dataset!r} was reserved before and is {earlier.state}. "
                + ("Resume it, or void it." if earlier.is_open else "Give the new release another id.")
            )
        if kinds and charge.kind in UNCOUNTED:
            raise LedgerProblem(UNCOUNTED[charge.kind])
        if "pure" in kinds and charge.epsilon is None:
            raise LedgerProblem(
                f"The budget of {self.dataset!r} is pure (epsilon). The release costs {charge}, which has no pure epsilon. Use a "
                "mechanism with a pure promise, such as generalized-laplace, or projected-laplace for real-valued answers."
            )
        for unit in (self.unit_of(facts), *self._lost):
            if unit not in self.protects:  # of a lost release too: what was declared may be lost with it
                raise self._other_unit(unit)
        if self.units.contents and facts.is_for_one_change:
            raise LedgerProblem(
                f"The account of {self.dataset!r} protects {_list_units(self.protects)}, and this release cannot be charged to several "
                f"units: {ONE_CHANGE}. Give the answers with a sensitivity that holds for every change of one {self.unit_of(facts)}, or a "
                "data set of their own: dataset = ..."
            )
        if facts.revision_of is not None:
            self._check_named(facts.revision_of)
        self.check_disjoint(charge, facts)

    def _check_named(self, release_id: str) -> Reservation:
        """The release that another one refers to, which must count in this very account."""
        named = self.release(release_id)
        if named is None or not named.counts:
            raise LedgerProblem(f"The release {release_id!r} is not in the account of {self.dataset!r}. Name releases that are.")
        return named

    def check_disjoint(self, charge: Charge, facts: ReleaseFacts) -> None:
        """A declaration names releases of this account, and [theory T193] covers both sides."""
        if facts.disjoint is None:
            return
        if reason := facts.why_not_disjoint(charge):
            raise LedgerProblem(f"This release cannot be declared disjoint from others: {reason}. Leave disjoint out; the charges add up.")
        for other in facts.disjoint.releases:
            self._check_apart(other, facts)

    def _check_apart(self, other: str, facts: ReleaseFacts) -> None:
        named, revised = self._check_named(other), facts.revision_of
        if self.unit_of(named.facts) != self.unit_of(facts):
            raise LedgerProblem(
                f"This release and {other!r} protect different units, so that no one is in both says too little. Leave it out of disjoint."
            )
        if revised is not None and self._revisions_to(revised) & self._revisions_to(other):
            by_way = "" if revised == other else f" (through {revised!r})"
            raise LedgerProblem(f"This release and {other!r} revise one table{by_way}, about the same people. Leave it out of disjoint.")
        lost = "it was lost, and nothing is known of its table"
        reason = lost if named.state == "lost" else named.facts.why_not_disjoint(named.charge)
        if reason is not None:
            raise LedgerProblem(f"The release {other!r} cannot be declared disjoint: {reason}. Leave it out; the charges add up.")

    def _revisions_to(self, release_id: str) -> set[str]:
        """The release, the one that it revises, the one that this revises, and so on."""
        names: set[str] = set()
        named = self.release(release_id)
        while named is not None and named.release_id not in names:  # a voided name may be used again, and close a ring
            names.add(named.release_id)
            named = None if named.facts.revision_of is None else self.release(named.facts.revision_of)
        return names

    def check_amount(self, made: Reservation) -> None:
        """Asked of the account with the new release in it: whether what is spent is still granted, for every unit that has a limit."""
        for unit in self.protects:
            if self.limit(unit) is not None:
                self._check_amount(unit, self.charge_for(unit, made.charge, made.facts))

    def _check_amount(self, unit: str, charge: Charge) -> None:
        name, granted, overlaps = self.currency(unit), self.sum_of_grants(unit), self._overlaps_for(unit)
        if overlaps.total(name) <= granted:  # a bound on what is spent, and cheap
            return
        spent, asked = overlaps.largest(name), self.cost(charge, name)
        if spent <= granted:
            return
        before = spent - asked  # those that may share people with it, which alone may have passed the limit
        whose = f" for one {unit}" if len(self.protects) > 1 else ""
        raise BudgetExceeded(
            f"The budget of {self.dataset!r}{whose} is not enough: {name} = {format_amount(granted, up=False)} was granted, "
            f"{format_amount(before)} is already spent, "
            f"{format_amount(max(granted - before, Fraction(0)), up=False)} is left, {format_amount(asked)} was asked for. "
            "Nothing was drawn or spent. Ask for less, or have more granted."
        )

    def check_lost(self, charge: Charge) -> None:
        """What a restored copy has lost is charged whatever the budget is, unless the sum would mean nothing."""
        if charge.kind == "zcdp" and any(grant.kind == "pure" for grant in self.grants):
            raise LedgerProblem(
                f"The budget of {self.dataset!r} is pure (epsilon), and a release that was lost has no pure epsilon. Put the later copy of "
                "the ledger back."
            )

    def check_step(self, release: Reservation, state: State) -> None:
        """Whether a release may go from where it stands to this state."""
        if release.state in BEFORE[state]:
            return
        raise WrongState(
            f"The release {release.release_id!r} of {self.dataset!r} is {release.state}; it cannot become {state} now. "
            f"It must be {' or '.join(BEFORE[state])} for that."
        )

    # Events.

    def apply(self, event: Event) -> str | None:
        """Take an event in; the rule it breaks, or None. What cannot be understood is left out, what breaks a rule is still counted."""
        try:
            self._take_in(event)
        except LedgerProblem as problem:
            return str(problem)
        except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
            return "its payload cannot be read. It may come from another version of Holdfast."
        return None

    def _take_in(self, event: Event) -> None:
        if event.kind == "granted":
            grant = Grant.from_fields(self.dataset, event.time, event.seq, event.payload)
            self.check_grant(grant)
            self.grants.append(grant)
            self._overlaps.clear()  # which unit is the account's first may be another one
        elif event.kind == "units":
            self.units = self.check_units(ProtectedUnits.read(read_as(dict, event.payload["contents"])))
            text_of(event.payload["approver"], "approver"), text_of(event.payload["reason"], "reason")
            self._overlaps.clear()
        elif event.kind == "taken-back":
            self._apply_taken_back(event)
        elif event.kind == "opened":
            if self.takes_releases:
                raise LedgerProblem("the account was there already.")
            self.opened = name_of(event.payload["protect"], "protect")
        elif event.kind == "reserved":
            self._apply_reserved(event)
        elif event.kind == "lost":
            self._apply_lost(event)
        elif event.kind in BEFORE:
            self._apply_step(event, event.kind)
        else:
            raise LedgerProblem("this kind of event is unknown. It may come from a later version of Holdfast.")

    def _apply_taken_back(self, event: Event) -> None:
        grant = next((one for one in self.grants if one.seq == event.payload["grant"]), None)
        if grant is None:
            raise LedgerProblem("it names no grant.")
        self.check_take_back(grant)
        approver, reason = (text_of(event.payload[name], name) for name in ("approver", "reason"))
        self.grants.remove(grant)
        self.taken_back.append(TakenBack(grant, approver, reason, event.time))
        self._overlaps.clear()

    def _apply_reserved(self, event: Event) -> None:
        if event.release_id is None:
            raise LedgerProblem("it names no release.")
        charge, facts = event.charge, event.facts
        self.check_reserve(name_of(event.release_id, "release_id"), charge, facts)
        self.check_amount(self.add(event, charge, facts))

    def _apply_lost(self, event: Event) -> None:
        if event.release_id is None:
            raise LedgerProblem("it names no release.")
        charge = event.charge
        facts = ReleaseFacts(protect=name_of(read_as(dict, event.payload["facts"])["protect"], "protect"))  # nothing else is known of it
        read_head(event.origin)
        self.check_lost(charge)
        self._lost.append(self.unit_of(facts))
        self.add(event, charge, facts, "lost")

    def add(self, event: Event, charge: Charge, facts: ReleaseFacts, state: State = "reserved") -> Reservation:
        """Count a reservation, or a release that a restored copy has lost; one that is known under the same name stays the latest."""
        assert event.release_id is not None
        made = Reservation(
            dataset=self.dataset,
            release_id=event.release_id,
            state=state,
            charge=charge,
            facts=facts if facts.protect else replace(facts, protect=self.unit_of(facts)),  # which unit is the first may change
            head=event.head,
            seq=event.seq,
            time=event.time,
        )
        self.releases[event.seq] = made
        before = self.release(event.release_id)
        if state == "reserved" or before is None or not before.counts:
            self._latest[event.release_id] = event.seq
        self._counting[event.release_id] += 1
        for unit, overlaps in self._overlaps.items():
            overlaps.add(self._seen_by(unit, made))
        return made

    def _apply_step(self, event: Event, state: State) -> None:
        release = None if event.release_id is None else self.release(event.release_id)
        if release is None or release.seq != event.reservation:
            raise LedgerProblem("it names no reservation.")
        self.check_step(release, state)
        self.move(release, state, event.payload)

    def move(self, release: Reservation, state: State, payload: Mapping[str, Json]) -> Reservation:
        """Count a step."""
        checksum, reason = (text_of(payload[name], name) if name in payload else None for name in ("checksum", "reason"))
        checksum, reason = checksum or release.checksum, reason or release.reason
        moved = self.releases[release.seq] = replace(release, state=state, checksum=checksum, reason=reason)
        if state == "voided":
            self._counting[release.release_id] -= 1
            for overlaps in self._overlaps.values():
                overlaps.remove(release)
        return moved


def _list_units(units: Sequence[str]) -> str:
    """Units as messages name them."""
    return " and ".join(map(repr, units))


def _is_proved(grants: list[Grant]) -> bool:
    """Whether the rho of approximate grants together is proved for the sum of their epsilons, at their delta."""
    rho, epsilon = (sum((cast(Fraction, getattr(grant, name)) for grant in grants), Fraction(0)) for name in ("rho", "epsilon"))
    return Fraction(zcdp_epsilon(rho, cast(Fraction, grants[0].delta))) <= epsilon


def id_elsewhere(release_id: str, dataset: str, chain: Iterable[Event]) -> WrongState | None:
    """The refusal of an id under which another data set of the ledger has a release: one id names one release, whatever its data are
    called. Asked where no grant says which data sets there are.
    """
    events = list(chain)
    states = states_in(events)
    used = (event for event in events if event.seq in states and event.release_id == release_id and event.dataset != dataset)
    other = next((event.dataset for event in used if states[event.seq] != "voided"), None)
    return None if other is None else id_in_use(release_id, other)


def id_in_use(release_id: str, other: str) -> WrongState:
    """The refusal of an id that a release of another data set has."""
    return WrongState(
        f"The ledger already holds a release {release_id!r}, of the data set {other!r}. One id names one release. Give the new release "
        "another id."
    )
