"""How a release is accounted for: budget reserved before anything is drawn, and a way back after every interruption.

    reserve -> draw -> stage (complete, synced, checksum in the ledger) -> commit -> rename -> publish -> close

Nothing has the final name before its spend is committed. What is interrupted before it is staged is drawn again from the sealed key: the
same bytes. From staged on it is only renamed. Other data, other kept totals or another version of the streams are refused. A release
without a ledger goes the same way; its steps of account do nothing.

Noise that the records fix is compared with that of earlier releases in the ledger: a second draw for the same records would tell more.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeAlias

from holdfast.cellkey.published import FixedNoise, NoiseFacts
from holdfast.channels import Channel
from holdfast.engines.local import BoundRelease, bind
from holdfast.engines.rehearsal import rehearse
from holdfast.errors import (
    AfterPublication,
    IdenticalRelease,
    InvalidParameter,
    LedgerBroken,
    LedgerProblem,
    OtherInput,
    OutputProblem,
    WrongState,
)
from holdfast.ledger import Charge, Ledger, NewLedger
from holdfast.ledger.disjoint import DISJOINT, Disjoint
from holdfast.ledger.embedded import find_ledger
from holdfast.ledger.releases import Granted, ReleaseFacts, Reservation
from holdfast.ledger.state import state_folder
from holdfast.ledger.values import ESTIMATED, text_of
from holdfast.publication.folder import (
    TEMPORARY,
    Output,
    card_digest,
    clear,
    drop_lock,
    holds_release,
    lock_of,
    output_problem,
    put_in_place,
    remove_leftovers,
    remove_unfinished,
    take_lock,
    unfinished_name,
)
from holdfast.publication.history import charge_facts, public_facts
from holdfast.publication.order import Order, software
from holdfast.publication.plan import Plan
from holdfast.randomness import NoiseKey
from holdfast.randomness.keys import second_secret
from holdfast.randomness.vault import STREAM_VERSION
from holdfast.tables import Table
from holdfast.wording.cellkey import other_noise_refusal, other_records_refusal
from holdfast.wording.endings import (
    NOTHING_BEGUN,
    PUBLISHED_UNCHARGED,
    Stands,
    already_over,
    not_resumable,
    standing_sentences,
    unclosed_sentences,
    unsaved_sentences,
)

_OTHER_INPUT = "The release {!r} was begun with another mechanism, table or kept totals. Resume with the same."


def with_noise(facts: ReleaseFacts, noise: FixedNoise) -> ReleaseFacts:
    """For the event that reserves the release; InvalidParameter where the ledger could not hold the reason."""
    said = None if noise.other_records is None else text_of(noise.other_records, "other_records")
    return replace(facts, noise=noise.facts.to_fields(), other_records=said)


def _refuse_other_noise(dataset: str, noise: FixedNoise, earlier: list[Reservation]) -> None:
    """Raise LedgerProblem if the noise is another than that of earlier cell key releases in the ledger, and that is not allowed.

    A data set is only a name: the same records may be there under another one. So all of the ledger is compared, except data sets that were
    said to have other records, now or when a release was recorded after them.
    """
    if noise.allowed:
        return
    standing: dict[str, list[Reservation]] = {}
    for release in earlier:
        if release.charge.kind == "cell-key" and release.state not in ("voided", "voided-spent"):
            standing.setdefault(release.dataset, []).append(release)
    own = standing.pop(dataset, [])
    if parts := _differing(noise.facts, own):
        raise LedgerProblem(other_noise_refusal(dataset, parts))
    for name, others in standing.items():
        differing = _differing(noise.facts, others)
        if not differing or noise.other_records is not None or _are_told_apart(own, others) or _are_told_apart(others, own):
            continue
        raise LedgerProblem(other_records_refusal(dataset, name, differing))


def _differing(noise: NoiseFacts, releases: Sequence[Reservation]) -> list[str]:
    found = [release.facts.noise or {} for release in releases]
    return [name for name, value in noise.to_fields().items() if any(facts.get(name) != value for facts in found)]


def _are_told_apart(said: Sequence[Reservation], others: Sequence[Reservation]) -> bool:
    """Whether a release of one data set was recorded as of other records, when the other data set had one."""
    return bool(others) and any(release.facts.other_records is not None and release.seq > others[0].seq for release in said)


EMBEDDED: Final = "embedded"
RecordedIn: TypeAlias = Ledger | NewLedger | Literal["embedded"] | None
"""Where a release is recorded: "embedded" for the ledger that is used where none is named, None for nowhere."""


def find_book(ledger: RecordedIn) -> Ledger | NewLedger | None:
    """Return the ledger of a release from Python. The embedded one is that of the working directory, or of HOLDFAST_LEDGER."""
    if (isinstance(ledger, str) and ledger != EMBEDDED) or not isinstance(ledger, str | Ledger | NewLedger | None):
        raise InvalidParameter(
            "ledger is 'embedded', a ledger that Ledger.open gives, or None for a release that is recorded nowhere. Got "
            f"{type(ledger).__name__}. For a file write ledger=hf.privacy.Ledger.open(path).",
            field="ledger",
        )
    return find_ledger(None, Path.cwd()) if isinstance(ledger, str) else ledger


@dataclass(frozen=True, eq=False)
class ChargedAccount:
    """Where a release is charged, and the secret that seals its key for an interruption."""

    ledger: Ledger | NewLedger
    dataset: str
    secret: bytes | None = field(default=None, repr=False)
    """None: an interrupted release cannot be resumed before it is staged; its charge stays spent."""

    @property
    def can_resume(self) -> bool:
        """True if a release begun now could be resumed: there is a secret, and a place for the second one."""
        return self.secret is not None and state_folder() is not None

    def open_ledger(self) -> Ledger:
        """The ledger, made now if it was not there."""
        return self.ledger.make() if isinstance(self.ledger, NewLedger) else self.ledger

    def check_id(self, release_id: str, resume: bool = False) -> None:
        """Refuse a release that is over or was begun, and a ledger that its witness does not know, before anything is read or prepared."""
        self.ledger.check_witness()
        found = self.ledger.reservation(self.dataset, release_id)
        if found is not None and found.state != "voided":
            check_resumable(found, resume)

    def check_unsaved(self, release_id: str) -> None:
        """As `check_id`, for Python, which resumes nothing: say how a release that was drawn can still be saved, or given up."""
        self.ledger.check_witness()
        found = self.ledger.reservation(self.dataset, release_id)
        if found is not None and found.is_open:
            raise WrongState(unsaved_sentences(self.dataset, release_id, is_complete=found.state not in ("reserved", "drawing")))
        self.check_id(release_id)

    def check_takes_estimates(self) -> None:
        """Refuse a promise that has no sum where there is a limit to keep."""
        if self.ledger.account(self.dataset).grants or (isinstance(self.ledger, Ledger) and self.ledger.needs_grants):
            raise LedgerProblem(ESTIMATED)

    def check_charge(self, channel: Channel, release_id: str, disjoint: Disjoint | None = None, revised: str | None = None) -> None:
        """Refuse what the ledger would not pay for, before samplers are prepared. `revised`: the release that this one revises.

        A channel whose noise a Markov chain may draw is asked about when that is known: its promise is another one then.
        """
        if channel.request.names_a_chain:
            self.check_takes_estimates()
        if channel.request.names_a_chain or channel.request.allow_estimated:
            return
        found = self.ledger.reservation(self.dataset, release_id)
        if found is not None and found.state != "voided":
            return  # its budget was reserved when it was begun
        said = charge_facts(channel.facts, channel.guarantee, disjoint, revised)
        self.ledger.check(self.dataset, release_id, Charge.of(channel.guarantee), said)


class Booking(ABC):
    """One release's way through the steps of account."""

    entry: str | None
    """The entry of the ledger under which it was charged; None where no ledger was used."""
    software: Mapping[str, str | int]
    """Software versions when the release began."""
    grant: Granted | None
    """What had been granted to the account when the budget was reserved; None where no limit was set."""

    @abstractmethod
    def exclusive_folder(self, output: Output) -> contextlib.AbstractContextManager[Path]:
        """The folder in which the release is made ready, beside its final place; no other process works on it meanwhile."""

    @property
    def is_staged(self) -> bool:
        """Whether the complete folder was written before, by this process or one that was interrupted."""
        return False

    def stage(self, temporary: Path) -> None:
        """The folder is complete."""
        return None

    def commit(self, temporary: Path, output: Output) -> None:
        """The spend is final; from here on the folder may get its name."""
        return None

    def rename(self, temporary: Path, output: Output) -> None:
        """Give the folder its final name."""
        put_in_place(temporary, output)

    def close(self) -> None:
        """Nothing is left to do; what would let the release be drawn again is destroyed."""
        return None

    def output_failure(self, error: OSError, output: Output) -> Exception:
        """What to tell when the folder could not be written."""
        return output_problem(error, output.folder)

    def check_unpublished(self) -> None:
        """Refuse to write what is published already, or was given up."""
        return None

    def check_copy(self) -> None:
        """Refuse where a copy of the release could be saved without its spend, or would hold a secret."""
        return None


class Unbooked(Booking):
    """No ledger: nothing is recorded, and a second draw under the same identifier cannot be detected."""

    entry = grant = None

    def __init__(self) -> None:
        self.software = software()

    @contextlib.contextmanager
    def exclusive_folder(self, output: Output) -> Iterator[Path]:
        temporary = output.folder.absolute().parent / f"{TEMPORARY}{secrets.token_hex(8)}"
        remove_leftovers(temporary.parent)
        handle = None
        try:  # before the lock and the folder are there: a signal may come at any moment
            try:
                handle = take_lock(lock_of(temporary))
                temporary.mkdir(mode=0o700)
            except OSError as error:
                raise output_problem(error, output.folder) from None
            yield temporary
        finally:
            try:
                clear(temporary, handle)
            except BaseException:  # a signal: once more, and to the end
                clear(temporary, None)
                raise


class Booked(Booking):
    """A release that is charged to an account. `reservation` is its last step in the ledger, as far as this process knows; `identity`
    that of what is drawn, by its plan.
    """

    resumes: ClassVar[bool] = True
    """Whether --resume continues it."""

    def __init__(self, account: ChargedAccount, reservation: Reservation, identity: str) -> None:
        self.ledger, self.reservation, self._identity = account.open_ledger(), reservation, identity
        self._is_complete = self._is_elsewhere = self._is_checked = False
        self.entry, self.software = reservation.head, reservation.facts.software or {}
        self.grant = reservation.facts.grant

    @contextlib.contextmanager
    def exclusive_folder(self, output: Output) -> Iterator[Path]:
        """The lock is released when the process ends; on file systems without locks it is skipped. What another process did in the
        meantime is asked of the ledger, and not done again.
        """
        parent = output.folder.absolute().parent
        temporary = parent / unfinished_name(self.reservation.head)
        path = lock_of(temporary)
        remove_leftovers(parent)
        try:
            handle = take_lock(path)
        except OSError as error:
            raise self.output_failure(error, output) from None
        try:
            current = self.ledger.reservation(self.reservation.dataset, self.reservation.release_id)
            if current is None or current.head != self.entry:
                raise LedgerBroken(
                    f"The entry of {self.reservation.release_id!r} in the ledger was changed while it was used. Nothing was published. Run "
                    "`holdfast ledger verify`."
                )
            if not current.is_open:
                raise IdenticalRelease(already_over(current.release_id, current.state))
            self.reservation = current
            if not self.is_staged:
                remove_unfinished(temporary)  # of an interrupted run of this very release
                self._is_complete = False
                try:
                    temporary.mkdir()
                except OSError as error:
                    raise self.output_failure(error, output) from None
            try:
                yield temporary
            except BaseException:
                if not (self.is_staged or self._is_complete):
                    remove_unfinished(temporary)
                raise
        finally:
            drop_lock(path, handle)

    @property
    def is_staged(self) -> bool:
        return self.reservation.state in ("staged", "committed", "published")

    def stage(self, temporary: Path) -> None:
        """From here on only the ledger says whether the folder is staged: an error may hide that it is, so the folder stays. Where the
        ledger refused and does not hold the step, nothing is hidden, and the folder goes: it would be noise that nobody recorded.
        """
        self._is_complete = True
        checksum = card_digest(temporary)
        assert checksum is not None
        try:
            self.reservation = self.ledger.stage(self.reservation, checksum)
        except (WrongState, LedgerBroken):
            with contextlib.suppress(LedgerProblem):  # else it is unclear what is recorded
                found = self.ledger.reservation(self.reservation.dataset, self.reservation.release_id)
                self._is_complete = found is not None and found.head == self.entry and found.checksum == checksum
            raise

    def commit(self, temporary: Path, output: Output) -> None:
        if self.reservation.state == "staged":
            self._check_complete(temporary, output)
            self.ledger.commit(self.reservation)

    def rename(self, temporary: Path, output: Output) -> None:
        if self.reservation.state == "published":
            self._is_elsewhere = not self._is_in(output.folder)
            return
        if not self._is_in(output.folder):  # else renamed already, before the interruption
            if not self._is_checked:
                self._check_complete(temporary, output)
            put_in_place(temporary, output)
        remove_unfinished(temporary)  # with force: what was there before
        with after_publication(self.resumes):
            self.ledger.publish(self.reservation)

    def close(self) -> None:
        with after_publication(self.resumes):
            self.ledger.close(self.reservation)
        if self._is_elsewhere:
            raise IdenticalRelease(
                f"The release {self.reservation.release_id!r} was published before, in another place than the output that is named now. It "
                "is not written a second time. Its entry in the ledger is closed."
            )

    def output_failure(self, error: OSError, output: Output) -> Exception:
        left = "The finished folder waits beside it under another name." if self.is_staged else "Nothing was left behind."
        return output_problem(error, output.folder, f"{left} Its charge is in the ledger: resume with --resume when that is fixed.")

    def check_unpublished(self) -> None:
        current = self.ledger.reservation(self.reservation.dataset, self.reservation.release_id)
        if current is not None and current.head == self.entry and not current.is_open:
            raise IdenticalRelease(already_over(current.release_id, current.state))

    def check_copy(self) -> None:
        raise LedgerProblem("A release that is charged to a ledger cannot be pickled or copied. Save it, and use the folder.")

    def _is_in(self, folder: Path) -> bool:
        return holds_release(folder, self.reservation, self._identity)

    def _check_complete(self, temporary: Path, output: Output) -> None:
        self._is_checked = self._is_in(temporary)
        if not self._is_checked:
            raise OutputProblem(
                f"The finished folder of {self.reservation.release_id!r} is not beside {output.folder.name!r}, or was changed. Resume with "
                "the output in the same place, and with the Holdfast, as before; it is complete and must not be drawn again."
            )

    def __getstate__(self) -> Any:
        self.check_copy()


class BookedTables(Booked):
    """Several tables by the cell key method. Their noise is fixed by the records, so no key is sealed: who was interrupted begins again.
    The charge can be taken back until the folder is complete.
    """

    resumes = False

    def stage(self, temporary: Path) -> None:
        self.reservation = self.ledger.start_drawing(self.reservation)
        super().stage(temporary)

    def give_up(self) -> None:
        """Void the release, if nothing of it is complete."""
        if self.reservation.state == "reserved":
            with contextlib.suppress(LedgerProblem):
                self.ledger.void(self.reservation, "stopped before anything was published")

    def output_failure(self, error: OSError, output: Output) -> Exception:
        return output_problem(error, output.folder)


@contextlib.contextmanager
def after_publication(resumable: bool = True) -> Iterator[None]:
    """Close the account once the folder has its name: a failure of the ledger does not undo the publication, and the message says so."""
    try:
        yield
    except WrongState:
        raise  # another process was faster
    except LedgerProblem as problem:
        raise AfterPublication(unclosed_sentences(str(problem), resumable)) from None


def check_recorded(order: Order, account: ChargedAccount | None) -> None:
    """Refuse a declaration about releases of a ledger where none is used: nothing would be compared with it."""
    if account is None and order.disjoint is not None:
        raise InvalidParameter(
            "disjoint names earlier releases in a ledger, and this release is recorded in none. Name the ledger, or leave disjoint out.",
            field=DISJOINT,
        )


def begin(plan: Plan, table: Table, order: Order, account: ChargedAccount | None, key: NoiseKey | None) -> tuple[Booking, BoundRelease]:
    """Reserve the budget, and bind a key to the release: the given one, or a fresh one that is erased. Nothing is drawn yet."""
    check_recorded(order, account)
    if account is None:
        if key is not None:
            return Unbooked(), bind(plan.drawing, table, key, order.release_id)
        with NoiseKey.generate() as fresh:
            return Unbooked(), bind(plan.drawing, table, fresh, order.release_id)
    if key is not None:
        raise InvalidParameter("A release through a ledger draws a fresh key of its own. Leave key out.")
    account.check_id(order.release_id)
    known = account.ledger.account(account.dataset)
    earlier = [release for release in known.releases.values() if release.release_id != order.release_id]
    facts = public_facts(plan, software(), earlier, order.revised_id, order.release_id, order.disjoint)
    facts = replace(
        facts, grant=Granted.of(known.grants_for(plan.facts.protected))
    )  # in the event, so that a release that is resumed says the same
    fixed = plan.mechanism.fixed_noise(table)
    facts = facts if fixed is None else with_noise(facts, fixed)
    if order.disjoint is not None:  # a declaration that is refused leaves no new ledger behind
        account.ledger.check(account.dataset, order.release_id, Charge.of(plan.guarantee), facts)
    rehearse(plan.drawing)
    with NoiseKey.generate() as fresh:
        bound = bind(plan.drawing, table, fresh, order.release_id)
        second = second_secret() if account.can_resume else None
        sealed = None if second is None or account.secret is None else fresh.seal(account.secret, second)
        ledger = account.open_ledger()  # made here and not before: nothing can be refused any more but by the ledger itself
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        made = ledger.reserve(
            account.dataset,
            order.release_id,
            Charge.of(plan.guarantee),
            facts,
            sealed_key=sealed,
            second_secret=second,
            input_digest=bound.input_digest,
            now=now,
            check_earlier=None if fixed is None else partial(_refuse_other_noise, account.dataset, fixed),
        )
    return Booked(replace(account, ledger=ledger), ledger.start_drawing(made), plan.drawing.channel.identity), bound


def begin_tables(plans: Mapping[str, Plan], noise: FixedNoise, release_id: str, account: ChargedAccount | None) -> Booking:
    """Record a release of several tables by the cell key method, or continue the same one that was interrupted."""
    if account is None:
        return Unbooked()
    account.ledger.check_witness()
    first = next(iter(plans.values()))
    name, parameters = first.mechanism.name, first.mechanism.parameters
    said = ReleaseFacts(mechanism=name, parameters=parameters, software=software(), others={"tables": list(plans)})
    facts = with_noise(said, noise)
    found = account.ledger.reservation(account.dataset, release_id)
    ledger = account.open_ledger()
    if found is None or found.state == "voided":
        found = ledger.reserve(
            account.dataset,
            release_id,
            Charge.of(first.guarantee),
            facts,
            sealed_key=None,
            input_digest="cell keys: none",
            now=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            check_earlier=partial(_refuse_other_noise, account.dataset, noise),
        )
    check_resumable(found, resume=True)
    asked = replace(facts, software=found.facts.software, protect=found.facts.protect)  # the ledger says whom its account protects
    if asked.to_fields() != found.facts.to_fields():
        raise OtherInput(_OTHER_INPUT.format(found.release_id))
    return BookedTables(replace(account, ledger=ledger), found, "")


def resume_release(found: Reservation, plan: Plan, table: Table, order: Order, account: ChargedAccount) -> tuple[Booking, BoundRelease]:
    """The key from its seal, bound again; anything that differs from what was reserved is refused."""
    if found.sealed_key is None or account.secret is None or found.second_secret is None:
        raise WrongState(not_resumable(found.release_id, found.sealed_key is not None, account.secret is not None))
    decisive = ("holdfast", "python-flint")  # other samplers, or another reduced basis, would draw other noise from the same words
    before = found.facts.software or {}
    if found.facts.stream_version != STREAM_VERSION or any(before.get(name) != software().get(name) for name in decisive):
        raise OtherInput(
            f"The release {found.release_id!r} was begun with another version of Holdfast or python-flint. Resume with that version."
        )
    check_same(found, plan, order)
    rehearse(plan.drawing)
    with NoiseKey.unseal(found.sealed_key, account.secret, found.second_secret) as key:
        bound = bind(plan.drawing, table, key, order.release_id)
    ledger = account.open_ledger()
    ledger.check_input(found, bound.input_digest)
    return Booked(account, ledger.start_drawing(found), plan.drawing.channel.identity), bound


def check_same(found: Reservation, plan: Plan, order: Order) -> None:
    """Refuse to resume a release under another mechanism, table, kept totals, price, revision or declaration than it was begun with."""
    asked, said = public_facts(plan, {}, (), order.revised_id, disjoint=order.disjoint), found.facts
    same = ("mechanism", "parameters", "protect", "max_records", "universe", "constraints", "revision_of", "answers", DISJOINT)
    if any(getattr(asked, name) != getattr(said, name) for name in same) or Charge.of(plan.guarantee) != found.charge:
        raise OtherInput(_OTHER_INPUT.format(found.release_id))


def check_resumable(found: Reservation, resume: bool) -> None:
    """Refuse to resume a release that is over, or that nobody asked to resume."""
    if not found.is_open:
        state = "published" if found.state == "closed" else found.state
        raise IdenticalRelease(
            f"The ledger already holds the release {found.release_id!r} of this data set ({state}). Drawing it again would publish a "
            "second noisy copy. If you want that, and pay for it again, give the release a new id."
        )
    if not resume:
        raise WrongState(
            f"The release {found.release_id!r} was begun and is {found.state} in the ledger: it was interrupted, or another process is at "
            "it. Use --resume to go on, or `holdfast ledger void` to give it up."
        )


def check_begun_here(found: Reservation) -> None:
    """Refuse to finish a release whose second secret is elsewhere: it would stay there, and with the ledger's old rows tell the noise. Once
    published only the close is left, before which that secret is destroyed; a stop in between must not be in the way.
    """
    if found.sealed_key is not None and found.second_secret is None and found.state != "published":
        raise WrongState(not_resumable(found.release_id, True, True))


def standing(
    account: ChargedAccount | None, release_id: str, folder: Path, resume: str, ledger: Sequence[str] = (), *, needs_key: bool = True
) -> Callable[[], Stands]:
    """A function that says what is true of a release that was stopped: from the ledger, or where there is none from the folder. `resume`
    and `ledger`: the command that continues it, which may need a sealed key, and how its ledger is named in other commands.
    """
    before = _inode(folder)

    def tell() -> Stands:
        if account is None:
            is_there = _inode(folder) not in (None, before)
            return Stands(PUBLISHED_UNCHARGED if is_there else NOTHING_BEGUN, is_there)
        found = account.ledger.reservation(account.dataset, release_id)
        state: str | None = None if found is None else found.state
        if found is not None and state == "committed" and holds_release(folder, found):
            state = "published"  # the folder has its name, and the ledger was not told any more
        able = not needs_key or (found is not None and found.sealed_key is not None and found.second_secret is not None)
        sentences = standing_sentences(state, able, resume, account.dataset, release_id, ledger)
        return Stands(sentences, state in ("published", "closed"))

    return tell


def _inode(folder: Path) -> int | None:
    """Which folder has this name, if any has."""
    try:
        return os.lstat(folder).st_ino
    except OSError:
        return None
