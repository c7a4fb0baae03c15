"""The ledger itself: grants, the steps of a release, balances. Each step is one transaction that lasts when it returns.

    reserve -> start_drawing -> stage -> commit -> publish -> close
       |            |             |
       +-- void ----+--- void ----+        (refunded only from reserved)

A step that a crash may repeat may be repeated: a release that already is where the step leads stays there and nothing is written. A
reservation is known by the number of its event: one that was voided and made anew under the same name is another.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.display import Json, read_as
from holdfast.errors import InvalidParameter, LedgerProblem, OtherInput, WitnessMismatch, WrongState
from holdfast.exact.parameters import Exact
from holdfast.ledger import replay
from holdfast.ledger.account import Account, id_elsewhere
from holdfast.ledger.chain import Event, LedgerId, checked_facts, make_event, new_ledger_id, read_chain, read_row
from holdfast.ledger.releases import ReleaseFacts, Reservation
from holdfast.ledger.rows import (
    dataset_at,
    event_rows,
    file_problems,
    hash_at,
    insert_events,
    last_event,
    meta_values,
    read_id,
    secrets_held,
    with_secrets,
)
from holdfast.ledger.state import destroy, keep_secret, kept_secrets
from holdfast.ledger.store import Store, place_of, tables
from holdfast.ledger.units import ProtectedUnits
from holdfast.ledger.values import Balance, Charge, GrantKind, State, name_of, read_grant, text_of
from holdfast.ledger.verify import find_problems
from holdfast.ledger.witness import Mark, Remembered, Seen, Witness, check_mark, read_mark, steps_after_restore

if TYPE_CHECKING:
    from sqlalchemy import Connection


logger = logging.getLogger(__name__)
Result = TypeVar("Result")
_ROOM = 4096
"""Bytes by which a mark may grow with one release."""


class Ledger:
    """An append-only account of budgets.

    Guarantees:  what the releases of a data set cost together is never more than what was granted, in any number of processes and
                 whatever crashes. Before a balance is used the whole chain is checked; a broken one is refused. So is one that is not
                 the ledger its witness saw before: see witness.py.
    """

    def __init__(self, store: Store, identifier: LedgerId, witness: Witness) -> None:
        self._store, self._id, self._witness = store, identifier, witness

    def __repr__(self) -> str:
        return f"<Ledger {self._id} in {self._store.label}>"  # never the URL: it may hold a password

    @classmethod
    def open(
        cls,
        place: str | os.PathLike[str],
        *,
        create: bool = False,
        needs_grants: bool = False,
        witness: str | os.PathLike[str] | None = None,
        read_only: bool = False,
    ) -> Ledger:
        """A ledger in a file (SQLite) or at a URL: sqlite:///folder/file.db, postgresql://user:password@host/database.

        With `create` a new one is made where there is none; a file then for its owner only. It records releases of a data set that nobody
        granted a budget, without a limit, and refuses an id that any of its data sets used. Made with `needs_grants=True` it refuses them;
        this is written into its first event. Tables of another version are refused. `witness` is a folder,
        beside the user's state folder, in which the ledger's head is remembered; by default what HOLDFAST_WITNESS names. With `read_only`
        nothing is written, to the ledger, beside it, or to the folders that remember it: what would write is refused.
        """
        if read_only and create:
            raise InvalidParameter("A ledger that is made cannot be opened for reading only. Leave create or read_only out.")
        seen = Witness.of(witness, place_of(place))
        if create and os.path.isabs(seen.place) and not os.path.lexists(seen.place):
            seen.check_new()  # before a file is made
        return cls._open_store(Store(place, create=create, read_only=read_only), seen, create, needs_grants, seen.check_new)

    @classmethod
    def reopen(cls, place: str | os.PathLike[str], *, witness: str | os.PathLike[str] | None = None) -> Ledger:
        """The ledger in a place, for `accept_restore`: also where it is gone, and a witness knows that it was there; a new one is then
        made, of the same kind.
        """
        seen = Witness.of(witness, place_of(place))
        known = seen.previous_id()
        marks = [] if known is None else [mark for folder in seen.readable() if (mark := read_mark(folder, known)) is not None]
        if known is not None and not marks:
            raise WitnessMismatch(
                f"The ledger {known} was kept in this place, and the mark that tells its releases is gone too. Put {known}.mark back into "
                "the state or witness folder, or the ledger into its place."
            )
        needs_grants = marks[0].needs_grants if marks else True
        store = Store(place, create=known is not None)
        return cls._open_store(store, seen, known is not None, needs_grants, lambda: None)

    @classmethod
    def _open_store(cls, store: Store, witness: Witness, create: bool, needs_grants: bool, check: Callable[[], None]) -> Ledger:
        def start(connection: Connection) -> None:
            check()
            _start(connection, needs_grants)

        store.prepare(create, start)
        return cls(store, store.read(read_id), witness)

    @property
    def id(self) -> LedgerId:
        """A random identifier, made with the ledger."""
        return self._id

    @property
    def needs_grants(self) -> bool:
        """Whether a data set must be granted a budget before a release of it is reserved."""
        return self._store.read(self._chain)[0].needs_grants

    # Budgets.

    def grant(
        self,
        dataset: str,
        *,
        kind: GrantKind | None = None,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        delta: Exact | None = None,
        protect: str = "person",
        approver: str,
        reason: str,
        legal: str | None = None,
        again: bool = False,
        now: str | None = None,
    ) -> Event:
        """Grant a budget for what one person (or what `protect` names) changing cell may lose to all releases of a data set together.

        Given:       kind "pure" (epsilon), "zcdp" (rho) or "approximate" (epsilon and delta), exact; left out, it follows from the
                     numbers. Grants for one unit add up and share kind and delta. "pure" takes pure releases only. again: one
                     that stands already is meant to add to it.
        Guarantees:  an approximate grant is converted once to the largest rho proved for it (12 digits, rounded down). With several,
                     the sum of their rho is proved for the sum of their epsilons at their delta.
        """
        name, time = name_of(dataset, "dataset"), _clock() if now is None else name_of(now, "now")
        texts = {"protect": protect, "approver": approver, "reason": reason, "legal": legal}
        asked = read_grant(name, kind, {"epsilon": epsilon, "rho": rho, "delta": delta}, texts, time)

        def work(connection: Connection) -> Event:
            chain = self._chain(connection)
            replay.check_dataset(name, chain)
            made = replay.admit_grant(replay.account_of(name, chain), asked, again)
            return self._append(connection, chain[-1], time, "granted", name, None, made.to_fields())

        return self._write(work)

    def take_back(self, dataset: str, *, grant: int | None = None, approver: str, reason: str) -> Event:
        """Take back a grant of which nothing is spent: what is left without it pays for every release. `grant`: the number of its event,
        which may be left out where there is one grant only. Where the last one goes, the data set takes no release until another is made.
        """
        name, who = name_of(dataset, "dataset"), {"approver": text_of(approver, "approver"), "reason": text_of(reason, "reason")}

        def work(connection: Connection) -> Event:
            chain = self._chain(connection)
            taken = replay.grant_to_take_back(replay.account_of(name, chain), grant)
            return self._append(connection, chain[-1], _clock(), "taken-back", name, None, {"grant": taken.seq, **who})

        return self._write(work)

    def declare_units(self, dataset: str, contents: Mapping[str, Mapping[str, int]] | str, *, approver: str, reason: str) -> Event:
        """Declare what one protected unit of a data set contains of another at most, such as {"household": {"person": 8}}.

        Guarantees:  every release, those before it too, is charged to all units [theory T231]. Nothing can be declared away again.
        """
        name, who = name_of(dataset, "dataset"), {"approver": text_of(approver, "approver"), "reason": text_of(reason, "reason")}
        declared = ProtectedUnits.read(contents)

        def work(connection: Connection) -> Event:
            chain = self._chain(connection)
            replay.account_of(name, chain).check_units(declared)
            return self._append(connection, chain[-1], _clock(), "units", name, None, {"contents": declared.to_fields(), **who})

        return self._write(work)

    def balance(self, dataset: str, protect: str | None = None) -> Balance:
        """What was granted to a data set, what is spent, what is left. NoGrant where nothing was granted. `protect`: whose balance, where
        the account protects several units.
        """
        return self._account(dataset).balance(protect)

    def datasets(self) -> list[str]:
        """Every data set that was granted a budget or recorded without a limit, in the order of their first events."""
        return [account.dataset for account in replay.accounts_of(self._store.read(self._chain))]

    def balances(self) -> list[Balance]:
        """Balances of every unit of every data set, in the order of their first events."""
        return [balance for account in replay.accounts_of(self._store.read(self._chain)) for balance in account.balances()]

    # The steps of a release.

    def reserve(
        self,
        dataset: str,
        release_id: str,
        charge: Charge,
        facts: ReleaseFacts,
        *,
        sealed_key: bytes | None,
        second_secret: bytes | None = None,
        input_digest: str,
        now: str,
        check_earlier: Callable[[list[Reservation]], None] | None = None,
    ) -> Reservation:
        """Set budget aside for a release, before anything is drawn.

        Given:       facts: public facts, kept in the event. Four of them decide how the charge counts: disjoint (a declaration that no
                     person is in both, disjoint.py) with distance, revision_of (an earlier release of this population, charged in full),
                     and protect, which must be the one granted.
                     sealed_key, input_digest: what resuming needs, kept outside the chain until the release is closed or voided; of
                     the digest only a hash, since it enters the noise. second_secret, without which the sealed key cannot be opened, goes
                     to a file in the state folder and never into the database. check_earlier: given every release of the ledger, inside
                     the transaction, so that no other is recorded between the check and this one; it raises to refuse.
        Guarantees:  the charge counts as spent from here on. BudgetExceeded, NoGrant, WrongState (the id is in use), WitnessMismatch,
                     NoWitness and nothing is written.
        """
        if sealed_key is not None and not isinstance(sealed_key, bytes):
            raise InvalidParameter(f"sealed_key must be bytes or None. Got {type(sealed_key).__name__}.")
        check = _one_way(text_of(input_digest, "input_digest"))

        def work(connection: Connection) -> Reservation:
            from sqlalchemy import insert

            chain = self._chain(connection)
            if check_earlier is not None:
                check_earlier(replay.releases_of(chain))
            events, reservation = self._admit(chain, dataset, release_id, charge, facts, now)
            insert_events(connection, events)
            row = {"seq": reservation.seq, "sealed_key": None if sealed_key is None else sealed_key.hex(), "input_check": check}
            connection.execute(insert(tables().secrets), [row])
            if second_secret is not None:
                self._keep_secret(connection, reservation.seq, second_secret)
            return replace(reservation, sealed_key=sealed_key, input_check=check, second_secret=second_secret)

        return self._write(work, strict=True)

    def check(self, dataset: str, release_id: str, charge: Charge, facts: ReleaseFacts) -> None:
        """Refuse what `reserve` would refuse now, before slow work is done for it. Nothing is written, and `reserve` asks again."""
        self.check_witness()
        self._store.read(lambda connection: self._admit(self._chain(connection), dataset, release_id, charge, facts, _clock()))

    def check_witness(self) -> None:
        """Refuse to charge a ledger that is not the one its witness saw before, or that has no witness."""
        marks = self._witness.marks(self._id, strict=True)
        self._store.read(lambda connection: self._check_marks(connection, marks.values()))
        if self._store.read_only:
            return
        # Of releases closed or voided elsewhere, or of one that another process is just reserving: whoever finds some looks again, alone.
        if self._store.read(self._unneeded_secrets):
            self._store.write(self._destroy_secrets)
        size = max((len(mark.to_text()) for mark in marks.values() if mark is not None), default=0)
        self._witness.try_to_write(self._id, size + _ROOM)

    def _admit(
        self, chain: list[Event], dataset: str, release_id: str, charge: Charge, facts: ReleaseFacts, now: str
    ) -> tuple[list[Event], Reservation]:
        """The events that reserve a release, not yet written, and the reservation; or the refusal, raised."""
        name, release, time = name_of(dataset, "dataset"), name_of(release_id, "release_id"), name_of(now, "now")
        if not isinstance(charge, Charge) or not isinstance(facts, ReleaseFacts):
            raise InvalidParameter("reserve takes a Charge and ReleaseFacts. Got another type.")
        plain = read_as(dict, checked_facts(facts.to_fields()))
        facts = ReleaseFacts.read(plain)  # what could not be read again is not written
        replay.check_dataset(name, chain)
        replay.check_release_name(release, name if chain[0].needs_grants else None, chain)
        account, events = replay.account_of(name, chain), []
        if not chain[0].needs_grants:
            used = id_elsewhere(release, name, chain)
            if used is not None:
                raise used
            if not account.takes_releases and not account.taken_back:
                payload = {"protect": facts.protect or "person"}
                events.append(make_event(chain[-1], self._id, time, "opened", name, None, payload))
                account.apply(events[-1])
        account.check_reserve(release, charge, facts)
        last = events[-1] if events else chain[-1]
        events.append(make_event(last, self._id, time, "reserved", name, release, {"charge": charge.to_fields(), "facts": plain}))
        reservation = account.add(events[-1], charge, facts)
        account.check_amount(reservation)
        return events, reservation

    def start_drawing(self, reservation: Reservation) -> Reservation:
        """Before the first random word: from here on a void does not refund."""
        return self._step(reservation, "drawing", {})

    def stage(self, reservation: Reservation, checksum: str) -> Reservation:
        """The output is complete and on disk; from here on it is only renamed. Another checksum is refused."""
        return self._step(reservation, "staged", {"checksum": name_of(checksum, "checksum")})

    def commit(self, reservation: Reservation) -> Reservation:
        """The spend is final: a void is no longer possible."""
        return self._step(reservation, "committed", {})

    def publish(self, reservation: Reservation) -> Reservation:
        """The output has its final name."""
        return self._step(reservation, "published", {})

    def close(self, reservation: Reservation) -> Reservation:
        """Destroy the second secret, the sealed key and the check of the input."""
        return self._step(reservation, "closed", {})

    def void(self, reservation: Reservation, reason: str) -> bool:
        """Give a release up; whether its charge was given back. It is only where no random word was drawn. Destroys the secrets."""
        why = {"reason": text_of(reason, "reason")}

        def choose(current: Reservation) -> State:
            return "voided" if current.state in ("reserved", "voided") else "voided-spent"

        return not self._step(reservation, choose, why).counts

    def _step(self, reservation: Reservation, target: State | Callable[[Reservation], State], payload: Mapping[str, str]) -> Reservation:
        def work(connection: Connection) -> Reservation:
            from sqlalchemy import delete

            account = self._own_account(connection, reservation.dataset)
            current = self._current(account, reservation)
            state = target if isinstance(target, str) else target(current)
            if current.state == state:
                return self._check_repeat(connection, current, payload)
            account.check_step(current, state)
            full: dict[str, Json] = {"reservation": current.seq, **payload}
            self._append(connection, last_event(connection, self._id), _day(), state, current.dataset, current.release_id, full)
            moved = account.move(current, state, full)
            if not moved.is_open:
                connection.execute(delete(tables().secrets).where(tables().secrets.c.seq == current.seq))
                self._destroy_secrets(connection)  # if the step then fails, the release can still be closed or voided
            return with_secrets(connection, self._id, moved)

        return self._write(work, strict=target == "drawing")

    def _current(self, account: Account, reservation: Reservation) -> Reservation:
        current = account.release(reservation.release_id)
        if current is None or current.head != reservation.head:
            raise WrongState(
                f"The reservation of {reservation.release_id!r} that is held here is not the one in the ledger: it was voided and "
                "made anew, or belongs to another ledger. Ask the ledger for it again."
            )
        return current

    def _check_repeat(self, connection: Connection, current: Reservation, payload: Mapping[str, str]) -> Reservation:
        if current.state == "staged" and current.checksum != payload["checksum"]:
            raise WrongState(
                f"The release {current.release_id!r} was staged with other bytes. A second draw must not take its place: finish the staged "
                "one, or void it."
            )
        return with_secrets(connection, self._id, current)

    # Reading the ledger.

    def reservation(self, dataset: str, release_id: str) -> Reservation | None:
        """The latest reservation under this name, in whatever state, with its secrets while it is open."""

        def work(connection: Connection) -> Reservation | None:
            found = self._own_account(connection, dataset).release(release_id)
            return None if found is None else with_secrets(connection, self._id, found)

        return self._store.read(work)

    def open_reservations(self, dataset: str | None = None) -> list[Reservation]:
        """Releases that are neither closed nor voided, oldest first."""

        def work(connection: Connection) -> list[Reservation]:
            chain = self._chain(connection)
            found = [release for release in replay.releases_of(chain) if release.is_open and dataset in (None, release.dataset)]
            return [with_secrets(connection, self._id, release) for release in found]

        return self._store.read(work)

    def check_input(self, reservation: Reservation, input_digest: str) -> None:
        """Refuse to resume on other input than the release was begun with: the same noise would show the difference."""
        held = reservation.input_check
        if held is None or not hmac.compare_digest(held.encode(), _one_way(input_digest).encode()):
            raise OtherInput(
                f"The release {reservation.release_id!r} was begun on other input, or is no longer open. Resume it on the same data, "
                "or void it and make a release with a new key."
            )

    def account(self, dataset: str) -> Account:
        """Grants and releases of a data set, without secrets."""
        return self._account(dataset)

    def events(self, dataset: str | None = None) -> Iterator[Event]:
        """All events, or those of one data set, in order. The whole chain is checked first."""
        chain = self._store.read(self._chain)
        return iter([event for event in chain if dataset is None or event.dataset == dataset])

    def last_event(self) -> Event:
        """The last event of the chain, of whatever data set."""
        return self._store.read(lambda connection: last_event(connection, self._id))

    def head(self) -> str:
        """The last event's place in the chain, "<ledger id>:<seq>:<hash>"."""
        return self.last_event().head

    def verify(self, heads: Iterable[str] = (), declared: Iterable[tuple[str, Any]] = ()) -> list[str]:
        """Every problem of the ledger as a sentence; empty if it is as it was written.

        Given:       heads as printed in cards. Those that witnesses remember are compared too. `declared`: of cards, head and
                     `release.disjoint`, which must be what the entry says.
        Guarantees:  a changed, deleted, inserted or moved row is noticed, a step that the protocol does not allow, an account that is
                     overspent, and, by the heads, a tail that was cut off or written anew.
        """
        given = [("A card", head) for head in heads]
        given += [(f"The mark in the {name}", head) for name, head in self.witnesses().items() if head is not None]

        def work(connection: Connection) -> list[str]:
            found, held = meta_values(connection, "ledger"), list(secrets_held(connection))
            problems = find_problems(event_rows(connection), found[0] if found else None, held, [self._id, *found], given, list(declared))
            return [*file_problems(connection), *problems]

        return self._store.read(work)

    def witnesses(self) -> dict[str, str | None]:
        """The head that each witness remembers, by the words for its folder; None where it has seen nothing of this ledger."""
        folders = self._witness.folders(strict=self._witness.second is not None)
        found = {"state folder" if folder != self._witness.second else "witness": read_mark(folder, self._id) for folder in folders}
        return {name: None if mark is None else mark.head for name, mark in found.items()}

    def accept_restore(self, *, approver: str, reason: str) -> list[Seen]:
        """Continue with a ledger that was put back to an older copy; return the releases that it had lost, which are charged again.

        Guarantees:  every release that a witness saw counts, and its name is used up; where random words were drawn, no void gives the
                     charge back. Recorded with who accepted it and why. LedgerProblem where nothing was put back.
        """
        who = {"approver": text_of(approver, "approver"), "reason": text_of(reason, "reason")}

        def work(connection: Connection) -> tuple[Mark, list[Seen], Remembered, LedgerId | None]:
            others = self._witness.others(self._id)
            remembered = self._witness.read_marks([self._id, *others])
            marks = [mark for mark in remembered.values() if mark is not None]
            chain = self._chain(connection)
            steps, lost = steps_after_restore(chain, marks, chain[0].needs_grants)
            with contextlib.suppress(WitnessMismatch):
                self._check_marks(connection, marks)
                if not others:
                    raise LedgerProblem("The ledger holds all that its witnesses saw: there is no restore to accept.")
            heads = [mark.head for mark in marks]
            made = [make_event(chain[-1], self._id, _clock(), "restored", "", None, {**who, "seen": heads})]
            for kind, dataset, release_id, payload in steps:
                made.append(make_event(made[-1], self._id, _clock(), kind, dataset, release_id, payload))
            for name in dict.fromkeys(event.dataset for event in made[1:]):
                replay.account_of(name, [*chain, *made])  # what breaks a rule is refused, and nothing is written
            insert_events(connection, made)
            return Mark.start(self._id).after([*chain, *made]), lost, remembered, self._witness.known_to_state()

        mark, lost, remembered, before = self._store.write(work)
        self._witness.reset(mark, remembered)
        if before not in (None, self._id):  # a folder that others may write to cannot have secrets destroyed
            for _, path in kept_secrets(before):
                destroy(path)
        return lost

    # Reading and writing.

    def _write(self, work: Callable[[Connection], Result], *, strict: bool = False) -> Result:
        """Write to the ledger its witness knows; what was written is remembered before this returns. strict: not without a witness."""

        def check_then_work(connection: Connection) -> tuple[Result, list[Event]]:
            marks = self._witness.marks(self._id, strict)  # here, where nobody else writes
            self._check_marks(connection, marks.values())
            seen = min((0 if mark is None else mark.seq for mark in marks.values()), default=0)
            done = work(connection)
            events = self._events_after(connection, seen) if marks else []
            for mark in marks.values():  # what cannot be remembered is refused before it is written
                (mark or Mark.start(self._id)).after(events)
            return done, events

        done, events = self._store.write(check_then_work)
        if events:
            first = events[0].seq
            reread = partial(self._store.read, lambda connection: self._events_after(connection, first - 1))
            self._witness.advance(self._id, events, strict, reread)
        return done

    def _keep_secret(self, connection: Connection, seq: int, second_secret: bytes) -> None:
        """To a file, before the reservation is committed; what an earlier stop left behind goes."""
        self._destroy_secrets(connection)
        try:
            keep_secret(self._id, seq, second_secret)
        except OSError as error:
            raise LedgerProblem(
                f"What it takes to resume the release could not be kept in the state folder ({os.strerror(error.errno or 0)}). Nothing was "
                "charged. Make room there, or unset HOLDFAST_KEY: the release can then not be resumed."
            ) from None

    def _unneeded_secrets(self, connection: Connection) -> list[Path]:
        """The second secrets on this machine that no open release needs: also what a stop left behind, or a void elsewhere.

        Which are needed, the chain says too: rows of secrets are not part of it, and whoever copies a ledger could leave them out.
        """
        held, found = secrets_held(connection), kept_secrets(self._id)
        return [path for seq, path in found if seq not in held and not self._is_open(connection, seq)]

    def _is_open(self, connection: Connection, seq: int) -> bool:
        dataset = dataset_at(connection, seq)
        release = self._own_account(connection, dataset).releases.get(seq) if dataset else None  # events of the ledger itself have none
        return release is not None and release.is_open

    def _destroy_secrets(self, connection: Connection) -> None:
        """Destroy those. For who writes to the ledger alone: of a release that another process is just reserving nothing is recorded."""
        try:
            for path in self._unneeded_secrets(connection):
                destroy(path)
        except OSError as error:
            raise LedgerProblem(
                f"A second secret in the state folder could not be destroyed ({os.strerror(error.errno or 0)}). Look at the rights there, "
                "and run the command again."
            ) from None

    def _account(self, dataset: str) -> Account:
        return replay.account_of(name_of(dataset, "dataset"), self._store.read(self._chain))

    def _chain(self, connection: Connection) -> list[Event]:
        return read_chain(event_rows(connection), self._id)

    def _own_account(self, connection: Connection, dataset: str) -> Account:
        """The account from its own events, each with its hash checked; what reads a balance checks the whole chain instead."""
        name = name_of(dataset, "dataset")
        return replay.account_of(name, [read_row(row, self._id) for row in event_rows(connection, name)])

    def _events_after(self, connection: Connection, seq: int) -> list[Event]:
        return [read_row(row, self._id) for row in event_rows(connection, after=seq)]

    def _check_marks(self, connection: Connection, marks: Iterable[Mark | None]) -> None:
        """Refuse a ledger that does not hold what its witnesses saw."""
        for mark in marks:
            if mark is not None:
                check_mark(mark, hash_at(connection, mark.seq), last_event(connection, self._id).seq)

    def _append(
        self, connection: Connection, last: Event, time: str, kind: str, dataset: str, release_id: str | None, payload: Mapping[str, Json]
    ) -> Event:
        logger.debug("Recording in the ledger: %s, data set %r, release %r", kind, dataset, release_id)
        event = make_event(last, self._id, time, kind, dataset, release_id, payload)
        insert_events(connection, [event])
        return event


def _start(connection: Connection, needs_grants: bool) -> None:
    """The first event of a new ledger."""
    from sqlalchemy import insert

    identifier = new_ledger_id()
    connection.execute(insert(tables().meta), [{"name": "ledger", "value": identifier}])
    event = make_event(None, identifier, _clock(), "created", "", None, {} if needs_grants else {"needs_grants": False})
    insert_events(connection, [event])


def _one_way(digest: str) -> str:
    """What is stored of the digest of an input: enough to know it again, and no help to find it."""
    return hashlib.sha256(b"holdfast input check;" + digest.encode()).hexdigest()


def _clock() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _day() -> str:
    """For the steps of a release the day is enough: how long a draw took may depend on the data."""
    return datetime.now(UTC).strftime("%Y-%m-%d")
