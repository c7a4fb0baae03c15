"""A release through a ledger: budget reserved before anything is drawn, and a way back after every interruption.

    reserve -> draw -> stage (complete, synced, checksum in the ledger) -> commit -> rename -> publish -> close

Nothing has the final name before its spend is committed. What is interrupted before it is staged is drawn again from the sealed key: the
same bytes. From staged on it is only renamed. Other data, other statements or another version of the streams are refused.
"""

from __future__ import annotations

import contextlib
import datetime
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import IdenticalRelease, OtherInput, OutputProblem, WrongState
from holdfast.privacy.ledger import Charge
from holdfast.publication.draw import Bound, Progress, bind
from holdfast.publication.folder import CARD, TEMPORARY, check_formats, check_output, fill_folder, in_words, put_in_place
from holdfast.publication.history import public_facts
from holdfast.publication.names import check_identifier
from holdfast.publication.plan import Plan
from holdfast.publication.release import Release, card_fields, made_release, software
from holdfast.publication.signing import load_signing_key
from holdfast.randomness import NoiseKey
from holdfast.randomness.keys import STREAM_VERSION
from holdfast.tables import Table
from holdfast.tables.formats import FORMATS

if TYPE_CHECKING:
    from holdfast.privacy.ledger import Ledger
    from holdfast.privacy.ledger.values import Reservation


@dataclass(frozen=True, eq=False)
class Booking:
    """Where a release is charged, and the secret that seals its key for an interruption."""

    ledger: Ledger
    dataset: str
    secret: bytes | None = field(default=None, repr=False)
    """None: an interrupted release cannot be resumed before it is staged; its charge stays spent."""


@dataclass(frozen=True, eq=False)
class Order:
    """What is to be written, and where."""

    folder: Path
    release_id: str
    date: str | None = None
    formats: tuple[str, ...] = tuple(FORMATS)
    sign: Path | None = None
    force: bool = False
    revises: tuple[str, list[tuple[str, str, int]]] | None = None
    """(id, kept rows) of an earlier release of the same population."""


def release_through_ledger(
    plan: Plan, table: Table, booking: Booking, order: Order, *, resume: bool = False, progress: Progress | None = None
) -> str:
    """Reserve, draw, write, publish; or, with `resume`, go on where an earlier call was interrupted. Returns the ledger's entry.

    Guarantees:  no output without a committed spend; no second draw of one release; see the module's text.
    """
    check_identifier(order.release_id)
    check_formats(order.formats)
    found = booking.ledger.reservation(booking.dataset, order.release_id)
    if found is None or found.state == "voided":
        check_output(order.folder, card_fields(plan, order.release_id, order.date, True, {}), order.force, order.sign)
        reservation, bound = _reserve(plan, table, booking, order)
    else:
        _check_resumable(found, resume)
        if found.state in ("staged", "committed", "published"):
            return _complete(found, booking, order, None)
        reservation, bound = found, _bind_again(found, plan, table, booking, order)
    release = _draw(plan, booking, booking.ledger.start_drawing(reservation), bound, order, progress)
    return save_booked(release, order)


def release_in_memory(plan: Plan, table: Table, booking: Booking, release_id: str, date: str | None, progress: Progress | None) -> Release:
    """Reserve and draw; `release.save` then stages, commits and publishes. Unsaved, its charge is spent and nothing is published."""
    order = Order(Path(), check_identifier(release_id), date)
    found = booking.ledger.reservation(booking.dataset, release_id)
    if found is not None and found.state != "voided":
        _check_resumable(found, resume=False)
    reservation, bound = _reserve(plan, table, booking, order)
    return _draw(plan, booking, booking.ledger.start_drawing(reservation), bound, order, progress)


def save_booked(release: Release, order: Order) -> str:
    """Stage, commit, rename, publish, close; returns the ledger's entry."""
    assert release.booked is not None
    booking, reservation = release.booked
    return _complete(reservation, booking, order, release)


def _complete(reservation: Reservation, booking: Booking, order: Order, release: Release | None) -> str:
    """From drawn on, one process at a time; what another one did in the meantime is asked of the ledger, and not done again."""
    with _alone(order, _folder_name(booking, reservation)):
        current = booking.ledger.reservation(reservation.dataset, reservation.release_id)
        assert current is not None
        _check_resumable(current, resume=True)
        if current.state == "drawing":
            assert release is not None
            current = _stage(release, current, booking, order)
        _publish(current, booking, order)
    return booking.ledger.close(current).head


@contextlib.contextmanager
def _alone(order: Order, name: str) -> Iterator[None]:
    """No two processes write and rename one release at once. The lock falls with the process; where a disk has none, nobody waits."""
    path = order.folder.absolute().parent / f"{name}.lock"
    try:
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(handle), os.stat(path)):
                    break
            os.close(handle)  # who held it was done and removed it
    except OSError as error:
        raise in_words(error, order.folder) from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _folder_name(booking: Booking, reservation: Reservation) -> str:
    return f"{TEMPORARY}{booking.ledger.id[:12]}-{reservation.seq}"


def _draw(plan: Plan, booking: Booking, reservation: Reservation, bound: Bound, order: Order, progress: Progress | None) -> Release:
    counts, versions = bound.draw(progress), reservation.facts["software"]
    release = made_release(plan, counts, order.release_id, order.date, True, entry=reservation.head, versions=versions)
    release.booked, release.revises = (booking, reservation), order.revises
    return release


def _reserve(plan: Plan, table: Table, booking: Booking, order: Order) -> tuple[Reservation, Bound]:
    ledger = booking.ledger
    earlier = [release for release in ledger.account(booking.dataset).releases.values() if release.release_id != order.release_id]
    revised = None if order.revises is None else order.revises[0]
    facts = public_facts(plan, software(), earlier, revised, order.release_id)
    with NoiseKey.generate() as key:
        bound = bind(plan.frame, plan.law, table.counts, key, order.release_id)
        sealed = None if booking.secret is None else key.seal(booking.secret)
        charge = Charge.of(plan.guarantee)
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        made = ledger.reserve(booking.dataset, order.release_id, charge, facts, sealed_key=sealed, input_digest=bound.input_digest, now=now)
    return made, bound


def _check_resumable(found: Reservation, resume: bool) -> None:
    if not found.is_open:
        raise IdenticalRelease(
            f"The ledger already holds the release {found.release_id!r} of this data set ({found.state}). Drawing it again would publish a "
            "second noisy copy. Give the release a new id."
        )
    if not resume:
        raise WrongState(
            f"The release {found.release_id!r} was begun and is {found.state} in the ledger: it was interrupted, or another process is at "
            "it. Use --resume to go on, or `holdfast ledger void` to give it up."
        )


def _bind_again(found: Reservation, plan: Plan, table: Table, booking: Booking, order: Order) -> Bound:
    """The key from its seal, bound again; anything that differs from what was reserved is refused."""
    if found.sealed_key is None or booking.secret is None:
        raise WrongState(
            f"The release {found.release_id!r} cannot be resumed: "
            + ("its key was not sealed. " if found.sealed_key is None else "the secret that sealed its key was not given. ")
            + "Give HOLDFAST_KEY (or HOLDFAST_KEY_FILE) as it was, or void the release: what was reserved stays spent if drawing had begun."
        )
    asked = public_facts(plan, {}, (), None)
    same = ("mechanism", "parameters", "unit", "max_records", "universe", "statements")
    if any(asked[name] != found.facts[name] for name in same) or Charge.of(plan.guarantee) != found.charge:
        raise OtherInput(f"The release {found.release_id!r} was begun with another mechanism, table or kept totals. Resume with the same.")
    decisive = ("holdfast", "python-flint")  # other samplers, or another reduced basis, would draw other noise from the same words
    if found.facts["stream_version"] != STREAM_VERSION or any(found.facts["software"].get(n) != software().get(n) for n in decisive):
        raise OtherInput(
            f"The release {found.release_id!r} was begun with another version of Holdfast or python-flint. Resume with that version."
        )
    with NoiseKey.unseal(found.sealed_key, booking.secret) as key:
        bound = bind(plan.frame, plan.law, table.counts, key, order.release_id)
    booking.ledger.check_input(found, bound.input_digest)
    return bound


def _stage(release: Release, reservation: Reservation, booking: Booking, order: Order) -> Reservation:
    """Write the complete folder under a name of its own, and its checksum into the ledger."""
    name = _folder_name(booking, reservation)
    temporary = order.folder.absolute().parent / name
    signing_key = None if order.sign is None else load_signing_key(order.sign)
    try:
        shutil.rmtree(temporary, ignore_errors=True)  # of an interrupted run of this very release
        temporary.mkdir()
        fill_folder(release, temporary, order.formats, signing_key)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError):
            words = in_words(error, order.folder)
            raise OutputProblem(f"{words} Its charge stands in the ledger: go on with --resume when that is mended.") from None
        raise
    checksum = _checksum(temporary)
    assert checksum is not None
    return booking.ledger.stage(reservation, name, checksum)


def _publish(reservation: Reservation, booking: Booking, order: Order) -> None:
    """From staged on: commit, rename, publish."""
    ledger = booking.ledger
    assert reservation.folder_name is not None
    temporary = order.folder.absolute().parent / reservation.folder_name
    if reservation.state == "staged":
        _check_there(temporary, reservation, order)
        ledger.commit(reservation)
    if reservation.state != "published":
        _rename(temporary, reservation, order)
        ledger.publish(reservation)


def _rename(temporary: Path, reservation: Reservation, order: Order) -> None:
    if _checksum(order.folder) != reservation.checksum:  # else renamed already, before the interruption
        _check_there(temporary, reservation, order)
        put_in_place(temporary, order.folder, order.force)
    shutil.rmtree(temporary, ignore_errors=True)  # with force: what was there before


def _check_there(temporary: Path, reservation: Reservation, order: Order) -> None:
    if _checksum(temporary) != reservation.checksum:
        raise OutputProblem(
            f"The finished folder of {reservation.release_id!r} is not beside {order.folder.name!r}, or was changed. Resume with the "
            "output in the same place as before; it is complete and must not be drawn again."
        )


def _checksum(folder: Path) -> str | None:
    """Of the card, which holds the checksums of all other files."""
    try:
        return hashlib.sha256((folder / CARD).read_bytes()).hexdigest()
    except OSError:
        return None


def secret_from_environment() -> bytes | None:
    """HOLDFAST_KEY, or the content of the file HOLDFAST_KEY_FILE; None where neither is set."""
    if text := os.environ.get("HOLDFAST_KEY"):
        return text.encode()
    if name := os.environ.get("HOLDFAST_KEY_FILE"):
        try:
            return Path(name).read_bytes().strip()
        except OSError:
            raise OutputProblem("The file that HOLDFAST_KEY_FILE names cannot be read. Check its path and permissions.") from None
    return None
