"""Accounts read from the chain of a ledger, and what a new name or a new grant must not be."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from holdfast.display import shorten
from holdfast.errors import InvalidParameter, LedgerBroken, LedgerProblem, WrongState
from holdfast.exact.formatting import format_amount
from holdfast.ledger.account import Account
from holdfast.ledger.chain import BEGUN, Event, states_in
from holdfast.ledger.releases import Reservation
from holdfast.ledger.values import GRANT_NEEDS, Grant
from holdfast.tables.similar import look_alike, skeletons


def account_of(dataset: str, chain: Iterable[Event]) -> Account:
    """The account of a data set. LedgerBroken where an event breaks a rule."""
    account, problems = Account.replay(dataset, (event for event in chain if event.dataset == dataset and event.kind != "created"))
    if problems:
        raise LedgerBroken(f"{problems[0]} Run `holdfast ledger verify`, and restore a copy.")
    return account


def accounts_of(chain: list[Event]) -> list[Account]:
    """Every account that was granted a budget or opened without a limit, in the order of first events."""
    names = dict.fromkeys(event.dataset for event in chain if event.kind in ("granted", "opened"))
    return [account_of(name, chain) for name in names]


def releases_of(chain: list[Event]) -> list[Reservation]:
    """Every release of every data set, oldest first."""
    names = dict.fromkeys(event.dataset for event in chain if event.kind in ("reserved", "lost"))
    return sorted((release for name in names for release in account_of(name, chain).releases.values()), key=lambda release: release.seq)


def check_dataset(name: str, chain: Iterable[Event]) -> None:
    """Refuse a new data set whose name looks like that of another: it would have a fresh account, with nothing spent."""
    _check_letters(name, "data set")
    other = look_alike(name, (event.dataset for event in chain if event.dataset))
    if other is not None:
        raise LedgerProblem(
            f"The data set {name!a} would be a new account. The ledger has {other!a}, which differs only in blanks, case or letters that "
            "look alike. Write that name, or take one that nobody mistakes for it."
        )


def check_release_name(name: str, dataset: str | None, chain: list[Event]) -> None:
    """Refuse an id that looks like that of another release of the data set, or of the whole ledger where that is None."""
    _check_letters(name, "release id")
    states = states_in(chain)
    taken = (event for event in chain if event.kind in BEGUN and dataset in (None, event.dataset))
    other = look_alike(name, (str(event.release_id) for event in taken if states[event.seq] != "voided"))
    if other is not None:
        raise WrongState(
            f"The release id {name!a} differs from {other!a}, which the ledger holds, only in blanks, case or letters that look alike. "
            "Readers would take the two for one release. Give the new release another id."
        )


def _check_letters(name: str, what: str) -> None:
    """Refuse a character without a shape that everybody sees: unassigned, or for private use.

    Asked of names that are written, not of those that are read: which characters are assigned depends on the version of Python.
    """
    if any(unicodedata.category(letter) in ("Cn", "Co") for letter in name):
        raise InvalidParameter(
            f"The {what} {name!a} holds a character that Unicode has not assigned, or leaves to private use: screens show nothing "
            "for it, or anything. Write the name without it."
        )


def admit_grant(account: Account, asked: Grant, again: bool) -> Grant:
    """The grant as it is recorded, or the refusal, raised. `again`: one that stands already may be given a second time."""
    same = next((grant for grant in account.grants if _is_same(grant, asked)), None)
    made = account.fit_grant(asked)
    account.check_grant(made)
    if made.limit <= 0:
        raise InvalidParameter("This grant adds nothing to those that are there. Write a larger epsilon.")
    if same is not None and not again:
        both = account.sum_of_grants(made.protect) + made.limit
        raise LedgerProblem(
            f"This very grant is already in the ledger: {same}, by {shorten(same.approver)!r}, event {same.seq}. Given again it adds up: "
            f"{account.dataset!r} would have {made.currency} = {format_amount(both, up=False)} in all. If that is meant, say so with "
            "--again (again=True)."
        )
    return made


def _is_same(one: Grant, other: Grant) -> bool:
    """Whether two grants are one, written twice: the same amounts, and approver, reason and legal reference that look alike."""
    names = ("kind", "protect", *GRANT_NEEDS[one.kind])
    return all(getattr(one, name) == getattr(other, name) for name in names) and all(
        skeletons(getattr(one, name) or "") & skeletons(getattr(other, name) or "") for name in ("approver", "reason", "legal")
    )


def grant_to_take_back(account: Account, number: int | None) -> Grant:
    """The grant to take back, or the refusal, raised: that of the event of this number; without a number the only one there is."""
    listed = ", ".join(f"{grant.seq} ({grant}, {grant.time[:10]})" for grant in account.grants)
    if not listed:
        raise LedgerProblem(
            f"{account.dataset!r} has no grant that could be taken back. `holdfast ledger show` lists the data sets and their balances."
        )
    is_only = number is None and len(account.grants) == 1
    found = next((grant for grant in account.grants if is_only or grant.seq == number), None)
    if found is None:
        raise LedgerProblem(
            f"The grants of {account.dataset!r} are those of events {listed}. Say which one is taken back, by its number (--grant)."
        )
    account.check_take_back(found)
    return found
