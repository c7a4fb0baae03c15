"""The ledger's witness: a high-water mark outside the ledger, by which one that was put back to an older copy, written anew, deleted or
exchanged is noticed before anything is charged to it.

A mark names the last event that was seen, and holds every release up to it with its charge and state: what a restored copy has lost can
then be charged again. It is kept in the state folder, and in a second folder where one is named. It is read and checked
before every write, inside the write's transaction. It is advanced along the same chain when the write is on disk, and before `reserve` and
`start_drawing` return: so it is never ahead of the ledger, and nothing is drawn that it does not know.

What it cannot see: who can put back the ledger can put back the marks too, where they may write there. A second folder that they may not
change notices it, as long as it is named; heads on cards are the last resort. A machine whose mark is older than the copy that was put back
sees nothing. A ledger that has no mark here yet is taken as it is, and the command says so.

After a ledger was put back, what it lost is charged again, as far as its witness saw it. A release that the copy does not hold is charged
as `lost`: it counts, its name is used up, and nothing is known of its cells, so it adds to everything. One that the copy holds as reserved,
and that had begun to draw, goes on to `drawing`: a void must not give its charge back. Grants that were lost stay lost, and the budget is
smaller. A grant that was taken back after the copy was made stands again: marks hold releases only, so the message asks whoever accepts the
restore to take it back again.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from holdfast.display import Json, read_as
from holdfast.errors import LedgerBroken, LedgerProblem, NoWitness, WitnessMismatch
from holdfast.ledger.chain import BEFORE, BEGUN, MAX_SEQ, START, Event, LedgerId, canonical, is_hash, read_head, read_ledger_id, states_in
from holdfast.ledger.state import is_usable, lock_folder, make_inside, read_plain, state_folder, state_path, write_shared
from holdfast.ledger.values import Charge, State, name_of

logger = logging.getLogger(__name__)

WITNESS = "HOLDFAST_WITNESS"
_PLACES, _MADE_UP = "places", "made-up"
_ACCEPT = "If that is meant, `holdfast ledger accept-restore` goes on, and charges what may have been lost."

_SHARING = "A folder that several users share needs a group of theirs and mode 2770, and what is in it mode 660 (folders 2770)."

FIRST_SEEN = (
    "The ledger was used before, and nothing was remembered of it in the state or witness folder: it is taken as it is. Compare it with "
    "the cards of its releases: holdfast ledger verify FOLDER ..."
)


@dataclass(frozen=True)
class Seen:
    """A release as the witness saw it last. `origin`: the head at which it was reserved, also where it was lost and charged again."""

    seq: int
    hash: str
    origin: str
    dataset: str
    release_id: str
    charge: Charge
    protect: str
    state: State

    def __post_init__(self) -> None:
        """Raise ValueError, KeyError or TypeError for a value that no ledger writes."""
        read_head(self.origin)
        for name in ("dataset", "release_id", "protect"):
            name_of(getattr(self, name), name)
        if not _is_seq(self.seq) or not is_hash(self.hash) or self.state not in get_args(State):
            raise ValueError("no release that a ledger holds")

    @property
    def counts(self) -> bool:
        return self.state != "voided"

    @property
    def is_drawn(self) -> bool:
        """Whether random words were drawn, or may have been: then it counts for good."""
        return self.state not in ("reserved", "voided")


@dataclass(frozen=True)
class Mark:
    """The last event seen, and the releases up to it, by the number of the event that reserved them."""

    ledger: LedgerId
    seq: int
    hash: str
    needs_grants: bool
    releases: Mapping[int, Seen]

    @property
    def head(self) -> str:
        return f"{self.ledger}:{self.seq}:{self.hash}"

    @classmethod
    def start(cls, ledger: LedgerId) -> Mark:
        return cls(ledger, 0, START, True, {})

    def after(self, events: Iterable[Event]) -> Mark:
        """The mark after these events; those that it saw before are passed over."""
        made, releases = self, dict(self.releases)
        for event in events:
            if event.seq != made.seq + 1 or event.previous != made.hash:
                continue
            try:
                _take_in(event, releases)
            except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
                raise LedgerBroken(
                    f"Event {event.seq} ({event.kind_shown}) of the ledger was not written by Holdfast. Run `holdfast ledger verify`, and "
                    "restore a copy."
                ) from None
            needs = event.needs_grants if event.kind == "created" else made.needs_grants
            made = Mark(self.ledger, event.seq, event.hash, needs, releases)
        return made

    def to_text(self) -> str:
        fields = {name: getattr(self, name) for name in ("ledger", "seq", "hash", "needs_grants")}
        releases = [{**vars(one), "charge": one.charge.to_fields()} for one in self.releases.values()]
        return canonical({"version": 1, **fields, "releases": releases}) + "\n"

    @classmethod
    def from_text(cls, text: str) -> Mark:
        """What `to_text` wrote; ValueError, KeyError or TypeError where it did not."""
        fields = json.loads(text)
        if fields["version"] != 1:
            raise ValueError("another version")
        seen, seq = [Seen(**{**one, "charge": Charge.from_fields(one["charge"])}) for one in fields["releases"]], fields["seq"]
        made = cls(read_ledger_id(fields["ledger"]), seq, fields["hash"], fields["needs_grants"], {one.seq: one for one in seen})
        if not _is_seq(seq) or made.to_text() != text or not is_hash(made.hash) or type(made.needs_grants) is not bool:
            raise ValueError("not as it was written")
        return made


def _is_seq(value: object) -> bool:
    """Whether this is the number of an event."""
    return type(value) is int and 1 <= value <= MAX_SEQ


def _take_in(event: Event, releases: dict[int, Seen]) -> None:
    """Count one event of a release; ValueError, KeyError, TypeError or AttributeError where it does not follow from those before it."""
    if event.kind in BEGUN:
        name, protect = event.release_id or "", read_as(str, read_as(dict, event.payload["facts"]).get("protect", "person"))
        releases[event.seq] = Seen(event.seq, event.hash, event.origin, event.dataset, name, event.charge, protect, BEGUN[event.kind])
    elif event.kind in BEFORE:
        seen = releases[event.reservation or 0]
        if seen.state not in BEFORE[event.kind] or (seen.dataset, seen.release_id) != (event.dataset, event.release_id):
            raise ValueError("no step of this release")
        releases[seen.seq] = replace(seen, state=event.kind)


Remembered = dict[tuple[Path, LedgerId], Mark | None]
"""By folder and ledger."""


@dataclass(frozen=True)
class Witness:
    """Where the marks of one ledger are kept: `second` is the folder of the office's choice, `place` what tells its place from others."""

    second: Path | None
    place: str

    @classmethod
    def of(cls, second: str | os.PathLike[str] | None, place: str) -> Witness:
        """`second`: a folder, else what HOLDFAST_WITNESS says."""
        named = os.environ.get(WITNESS) if second is None else os.fspath(second)
        if named is not None and not named.strip():
            raise NoWitness(f"{WITNESS} is set, and empty. Unset it, or name a folder.")
        return cls(None if named is None else Path(named).absolute(), place)

    def folders(self, strict: bool) -> list[Path]:
        """The folders that hold marks, the state folder first. Refused where there is none and one is needed (`strict`)."""
        found = [folder for folder in [state_folder()] if folder is not None]
        if self.second is not None:
            if is_usable(self.second):
                return [*found, *(folder for folder in [self.second] if folder not in found)]
            if strict:
                raise NoWitness("The folder that is named as witness is not there, or cannot be written. Nothing was charged. Make it.")
        if strict and not found:
            raise NoWitness(
                "There is no state folder in which the head of the ledger could be remembered: this account has no home, or it cannot be "
                "written. Nothing was charged. "
                'Name a folder that lasts: witness = "FOLDER" under [release], or HOLDFAST_WITNESS, or HOLDFAST_STATE.'
            )
        return found

    def previous_id(self) -> LedgerId | None:
        """The identifier of the ledger that was in this place before; None where none was."""
        return next(iter(self.others(None)), None)

    def others(self, ledger: LedgerId | None) -> list[LedgerId]:
        """Ledgers that were in this place before, and are not this one, what the state folder says first.

        WitnessMismatch where only a folder says so that other users may write to: any of them could have written it, and what follows from
        a restore (charges, secrets that are destroyed) is not for them to decide.
        """
        remembered = self._read_places()
        own = dict.fromkeys(known for folder, known in remembered.items() if _is_own(folder))
        for folder, known in remembered.items():
            if known != ledger and known not in own:
                raise WitnessMismatch(
                    f"The witness folder {str(folder)!r}, which other users may write to, says that the ledger {known} was kept in this "
                    "place. The state folder of this account does not say so. If it was, put that ledger back, or let someone who used it "
                    "here accept a restore. If it never was, find out who wrote the entry, and remove it: "
                    f"{_PLACES}/{self._place_in(folder).name}."
                )
        return [known for known in own if known != ledger]

    def known_to_state(self) -> LedgerId | None:
        """The ledger that was in this place before as far as the user's own state folder knows."""
        return next((known for folder, known in self._read_places().items() if folder == state_path()), None)

    def _read_places(self) -> dict[Path, LedgerId]:
        """What each folder remembers of this place."""
        found = {}
        for folder in self.readable():
            try:
                found[folder] = read_ledger_id(read_plain(self._place_in(folder)).decode("ascii").strip())
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                raise _unreadable(
                    "What a state or witness folder remembers of this ledger's place, a file in its folder 'places',", error
                ) from None
        return found

    def readable(self) -> list[Path]:
        """The folders in which something may be remembered, also those that cannot be written now."""
        given = [folder for folder in (state_path(), self.second) if folder is not None]
        return [folder for folder in dict.fromkeys(given) if os.path.isdir(folder)]

    def check_new(self) -> None:
        """Refuse a new ledger where one was."""
        known = self.previous_id()
        if known is not None:
            raise WitnessMismatch(
                f"The ledger {known} was kept in this place, and is gone. A new one would know nothing of its releases. Put it back. "
                f"{_ACCEPT}"
            )

    def marks(self, ledger: LedgerId, strict: bool) -> dict[Path, Mark | None]:
        """What each folder remembers of a ledger."""
        folders = self.folders(strict)
        for known in self.others(ledger):
            raise WitnessMismatch(f"The ledger {known} was kept in this place, and another one is there now. Put it back. {_ACCEPT}")
        return {folder: read_mark(folder, ledger) for folder in dict.fromkeys([*folders, *self.readable()])}

    def try_to_write(self, ledger: LedgerId, size: int) -> None:
        """Refuse, before anything is charged, where a mark of this size could not be written."""
        for folder in self.folders(strict=True):
            try:
                make_inside(folder, _PLACES)
                with lock_folder(folder, ledger):
                    trial = folder / f"{ledger}.trial"
                    write_shared(folder, trial, bytes(size))
                    trial.unlink()
                if not is_usable(folder / _PLACES):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            except OSError as error:
                raise NoWitness(
                    f"The head of the ledger could not be remembered in the state or witness folder ({error.strerror}). "
                    f"Nothing was charged. Make room there, or look at its rights. {_SHARING}"
                ) from None

    def read_marks(self, ledgers: Iterable[LedgerId]) -> Remembered:
        """What each folder remembers of each of these ledgers."""
        return {(folder, ledger): read_mark(folder, ledger) for folder in self.folders(strict=True) for ledger in ledgers}

    def advance(self, ledger: LedgerId, events: list[Event], strict: bool, reread: Callable[[], list[Event]]) -> None:
        """Remember these events, which are on disk in the ledger. Marks only go forward, along one chain.

        Given:  reread: the same events and those that followed, as the ledger has them now. Asked where another process was faster.
        """
        for folder in self.folders(strict):
            try:
                with lock_folder(folder, ledger):
                    before = read_mark(folder, ledger)
                    _check_chain(before, events, reread)
                    after = (before or Mark.start(ledger)).after(events)
                    if after.seq < events[-1].seq:
                        raise WitnessMismatch("The mark of the ledger was removed or changed while it was used. Run the command again.")
                    if before is None and any(event.kind == "reserved" for event in events[:-1]):
                        logger.info("%s", FIRST_SEEN)
                    if before is None or after.seq > before.seq:
                        write_shared(folder, folder / _name(ledger), after.to_text().encode("ascii"))
                if not os.path.lexists(self._place_in(folder)):
                    self._remember(folder, ledger)
            except OSError as error:
                told = f"The head of the ledger could not be remembered ({error.strerror})."
                if strict:
                    raise LedgerProblem(
                        f"{told} Nothing was drawn. The reservation is in the ledger: make room, and use --resume, or void it."
                    ) from None
                logger.warning("%s It will be with the next step.", told)

    def reset(self, mark: Mark, remembered: Remembered) -> None:
        """Remember this head in all folders: a restore was accepted. Refused where a folder no longer remembers what it did then."""
        try:
            self._reset(mark, remembered)
        except OSError as error:
            raise LedgerProblem(f"What was accepted could not be remembered ({error.strerror}). Run the command again.") from None

    def _reset(self, mark: Mark, remembered: Remembered) -> None:
        with contextlib.ExitStack() as locks:
            for folder in {folder: None for folder, _ in remembered}:
                locks.enter_context(lock_folder(folder, mark.ledger))
            if any(read_mark(folder, ledger) != seen for (folder, ledger), seen in remembered.items()):
                raise WitnessMismatch("A release was recorded elsewhere while the restore was accepted. Run the command again.")
            for folder, ledger in remembered:
                if ledger == mark.ledger:
                    write_shared(folder, folder / _name(ledger), mark.to_text().encode("ascii"))
        for folder in {folder: None for folder, _ in remembered}:
            self._remember(folder, mark.ledger)

    def note_made_up(self, releases: Container[tuple[str, str]]) -> None:
        """Note which releases of the ledger in this place hold made-up people, for `forget_made_up`. For whoever made this very ledger.

        Given:  releases: (data set, identifier) of those that the caller itself made there.
        """
        for folder, known in self._read_places().items():
            mark = read_mark(folder, known)
            origins = [] if mark is None else [one.origin for one in mark.releases.values() if (one.dataset, one.release_id) in releases]
            make_inside(folder, _MADE_UP)
            write_shared(folder, self._file_in(folder, _MADE_UP), "".join(f"{line}\n" for line in (known, *origins)).encode("ascii"))

    def forget_made_up(self) -> None:
        """Let a new ledger be made here where the one that was here, and each of its releases, was noted as made up: by the event that
        reserved it, since anyone may give a release any identifier. Nothing is forgotten where one folder remembers more.
        """
        remembered = self._read_places()
        if all(self._is_made_up(folder, known) for folder, known in remembered.items()):
            for folder in remembered:
                self._place_in(folder).unlink(missing_ok=True)

    def _is_made_up(self, folder: Path, known: LedgerId) -> bool:
        mark, noted = read_mark(folder, known), self._made_up(folder)
        return mark is not None and noted[:1] == [known] and all(one.origin in noted[1:] for one in mark.releases.values())

    def _made_up(self, folder: Path) -> list[str]:
        """The ledger in this place that was noted as made up, and its releases, by the events that reserved them; [] where none was."""
        try:
            return read_plain(self._file_in(folder, _MADE_UP)).decode("ascii").splitlines()
        except (OSError, ValueError):
            return []  # then nothing is forgotten

    def _remember(self, folder: Path, ledger: LedgerId) -> None:
        make_inside(folder, _PLACES)
        write_shared(folder, self._place_in(folder), f"{ledger}\n".encode("ascii"))

    def _place_in(self, folder: Path) -> Path:
        return self._file_in(folder, _PLACES)

    def _file_in(self, folder: Path, kind: str) -> Path:
        return folder / kind / hashlib.sha256(self.place.encode("utf-8", "surrogateescape")).hexdigest()


def _is_own(folder: Path) -> bool:
    """Whether only this user may write to a folder; the state folder is refused elsewhere where that is not so."""
    found = folder.stat()
    return folder == state_path() or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)


def read_mark(folder: Path, ledger: LedgerId) -> Mark | None:
    """The mark of a ledger in a folder; None where it has none."""
    try:
        made = Mark.from_text(read_plain(folder / _name(ledger)).decode("ascii"))
        if made.ledger != ledger:
            raise ValueError("of another ledger")
        return made
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
        raise _unreadable(f"The mark of the ledger, {_name(ledger)!r} in a state or witness folder,", error) from None


def _unreadable(what: str, error: Exception) -> WitnessMismatch:
    """Never with the advice to remove it: without it an older copy of the ledger would not be noticed."""
    if isinstance(error, PermissionError):
        return WitnessMismatch(f"{what} belongs to another user and may not be read. {_SHARING}")
    return WitnessMismatch(f"{what} cannot be read. Restore that file from a copy of the folder.")


def _check_chain(before: Mark | None, events: list[Event], reread: Callable[[], list[Event]]) -> None:
    """Refuse to remember events beside which the mark has gone on along another chain."""
    if before is None or before.seq < events[0].seq:
        return
    chain = events if before.seq <= events[-1].seq else reread()
    hashes = {event.seq: event.hash for event in chain}
    if hashes.get(before.seq) != before.hash or hashes.get(events[-1].seq) != events[-1].hash:
        raise WitnessMismatch(
            "The ledger was exchanged while it was used: what was recorded now does not follow from what was seen here before. Do not use "
            "what was made. Run `holdfast ledger verify`, and put the later copy back."
        )


def check_mark(mark: Mark, hash_there: str | None, last: int) -> None:
    """Refuse a ledger in which the event of the mark is another one, or missing."""
    if hash_there == mark.hash:
        return
    found = f"it ends at event {last}" if last < mark.seq else f"its event {mark.seq} is another one"
    raise WitnessMismatch(
        f"The ledger was put back to an older copy, or written anew: event {mark.seq} was seen here before, and now {found}. Nothing was "
        f"charged. Put the later copy back. {_ACCEPT}"
    )


def _name(ledger: LedgerId) -> str:
    return f"{ledger}.mark"


Step = tuple[str, str, str | None, Mapping[str, Json]]
"""(kind, dataset, release id, payload) of an event to be appended."""


def steps_after_restore(chain: list[Event], marks: Iterable[Mark], needs_grants: bool) -> tuple[list[Step], list[Seen]]:
    """The events that charge what was lost, and the releases that are charged as lost."""
    hashes = {event.seq: event.hash for event in chain}
    told = {event.origin for event in chain if event.kind == "lost"}
    states = states_in(chain)
    steps: list[Step] = []
    lost: list[Seen] = []
    for one in _last_seen(marks):
        ledger, seq, own_hash = read_head(one.origin)
        state = states.get(seq) if ledger == chain[0].ledger and hashes.get(seq) == own_hash else None
        if one.counts and one.origin not in told and state in (None, "voided"):
            lost.append(one)
            facts = {"protect": one.protect}
            steps.append(("lost", one.dataset, one.release_id, {"charge": one.charge.to_fields(), "facts": facts, "head": one.origin}))
        elif one.is_drawn and state == "reserved":
            steps.append(("drawing", one.dataset, one.release_id, {"reservation": seq}))
    opened = [] if needs_grants else _find_missing_accounts(chain, lost)
    return [*opened, *steps], lost


def _last_seen(marks: Iterable[Mark]) -> list[Seen]:
    """Each release once. Marks may be of different age, and of chains that parted: one that was drawn in any of them was drawn, and of
    others the later mark knows more.
    """
    found: dict[str, Seen] = {}
    for mark in sorted(marks, key=lambda mark: mark.seq):
        for one in mark.releases.values():
            if one.origin not in found or one.is_drawn or not found[one.origin].is_drawn:
                found[one.origin] = one
    return list(found.values())


def _find_missing_accounts(chain: list[Event], lost: list[Seen]) -> list[Step]:
    """Accounts that the copy does not have yet, in a ledger that records without a limit."""
    there = {event.dataset for event in chain if event.kind in ("granted", "opened")}
    protected = {one.dataset: one.protect for one in reversed(lost) if one.dataset not in there}
    return [("opened", dataset, None, {"protect": name}) for dataset, name in protected.items()]
