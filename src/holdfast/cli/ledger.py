"""`holdfast ledger`: budgets, spends, what the releases of one data set expose together.

Each command imports what it needs: that takes 0.9 s, and `--help` and other commands do not wait for it.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.endings import stands
from holdfast.cli.parts import AsJson
from holdfast.errors import InvalidParameter, LedgerBroken, LedgerProblem

if TYPE_CHECKING:
    from holdfast.ledger import Ledger, NewLedger

app = typer.Typer(help="Budgets: grants, spends, what is left and what is exposed.", no_args_is_help=True)

Place = Annotated[
    str | None,
    typer.Option("--ledger", help="A file or postgresql:// URL; else HOLDFAST_LEDGER, else holdfast-ledger.sqlite in this folder."),
]
Witnessed = Annotated[
    Path | None, typer.Option("--witness", help="The second folder that remembers the ledger's head; else HOLDFAST_WITNESS.")
]
_SHOWN = 20
"""Problems of a ledger that are printed; one fault may break a rule at every later event."""
Dataset = Annotated[str, typer.Argument(help="The data set: one account for all vintages and revisions of one population.")]


def ledger_of_release(
    given: str | None, no_ledger: bool, said: str | None, folder: Path, witness: Path | None = None, *, read_only: bool = False
) -> Ledger | NewLedger | None:
    """The ledger of a release: as --ledger says, else the run file, else HOLDFAST_LEDGER, else the one beside the run file (`folder`),
    which is made when the release is reserved. None only where that was asked for in words. `witness`: as the run file says. With
    `read_only`, for a plan, nothing is written.
    """
    from holdfast.ledger.embedded import find_ledger

    if no_ledger and given is not None:
        raise LedgerProblem("Both --ledger and --no-ledger were given. Give one of them.")
    return None if no_ledger else find_ledger(given if given is not None else said, folder, witness, read_only=read_only)


def ledger_text(given: str | None, said: str | None, folder: Path) -> tuple[str, ...]:
    """The words with which `holdfast ledger` finds the ledger of a release from the current folder. A URL may hold a password and is left
    out.
    """
    from holdfast.ledger.embedded import DEFAULT_NAME, ledger_of_environment

    place = given if given is not None else said
    if place is None:
        if ledger_of_environment() is not None or folder.samefile(Path.cwd()):
            return ()
        place = str(folder / DEFAULT_NAME)
    return "--ledger", "URL" if "://" in place else place if place == given else os.path.relpath(place)


def _stands(is_done: Callable[[], bool], sentence: str) -> None:
    """If the command is stopped from here on, the ledger is asked whether it was done."""
    from holdfast.wording.endings import UNWRITTEN, Stands

    stands(lambda: Stands(sentence if is_done() else UNWRITTEN))


def _place(given: str | None) -> str:
    from holdfast.ledger.embedded import DEFAULT_NAME, checked_place, ledger_of_environment

    return checked_place(given if given is not None else ledger_of_environment() or DEFAULT_NAME)


def _open(given: str | None, *, create: bool = False, witness: Path | None = None) -> Ledger:
    from holdfast.ledger import Ledger
    from holdfast.ledger.embedded import DEFAULT_NAME

    place = _place(given)
    if given is None and place == DEFAULT_NAME and not create and not Path(place).exists():
        raise LedgerProblem(
            f"There is no ledger in this folder. `holdfast release` makes {DEFAULT_NAME} beside the run file, `holdfast ledger grant` "
            "makes one here; name another with --ledger."
        )
    return Ledger.open(place, create=create, needs_grants=create, witness=witness)  # what a grant makes pays for nothing else


@app.command()
def create(ledger: Place = None, witness: Witnessed = None, as_json: AsJson = False) -> None:
    """Make a ledger that records releases and sets no limit, as `holdfast release` makes one beside a run file; grants may set limits."""
    from holdfast.ledger import Ledger
    from holdfast.wording.endings import MADE

    place = _place(ledger)
    try:
        Ledger.open(place)
    except LedgerProblem:
        _stands(lambda: _is_ledger(place), MADE)
        made = Ledger.open(place, create=True, witness=witness)
    else:
        raise LedgerProblem("There is a ledger already, and it is left as it is. Choose another place.")
    print(json.dumps({"ledger": made.id}) if as_json else f"Made the ledger {made.id}. It records releases and sets no limit.")


@app.command()
def grant(
    dataset: Dataset,
    approver: Annotated[str, typer.Option(help="Who grants it.")],
    reason: Annotated[str, typer.Option(help="Why.")],
    epsilon: Annotated[str | None, typer.Option(help="Pure budget, such as 1 or 1/4; with --delta an (epsilon, delta) budget.")] = None,
    delta: Annotated[str | None, typer.Option(help="With --epsilon.")] = None,
    rho: Annotated[str | None, typer.Option(help="zCDP budget.")] = None,
    protect: Annotated[str, typer.Option(help="Whose privacy is budgeted.")] = "person",
    legal: Annotated[str | None, typer.Option(help="Legal reference.")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Give a grant that is already in the ledger a second time: the two add up.")
    ] = False,
    ledger: Place = None,
    witness: Witnessed = None,
    as_json: AsJson = False,
) -> None:
    """Grant a data set a budget, for one person who changes cell. Makes the ledger if there is none."""
    from holdfast.ledger.values import name_of, read_grant
    from holdfast.wording.endings import GRANTED
    from holdfast.wording.ledger import new_dataset_sentence

    given = {"epsilon": epsilon, "rho": rho, "delta": delta}
    texts = {"protect": protect, "approver": approver, "reason": reason, "legal": legal}
    if not any(value is not None for value in given.values()):
        raise InvalidParameter("No budget given. Use --epsilon, --epsilon with --delta, or --rho.")
    read_grant(name_of(dataset, "dataset"), None, given, texts, "")  # refused before a ledger is made
    place = _place(ledger)
    before = _grants(place, dataset)
    _stands(lambda: _grants(place, dataset) > before, GRANTED)
    book = _open(ledger, create=True, witness=witness)
    others = tuple(book.datasets())
    book.grant(dataset, epsilon=epsilon, rho=rho, delta=delta, protect=protect, approver=approver, reason=reason, legal=legal, again=again)
    if others and dataset not in others:  # a name that was misspelt is a new account, with nothing spent
        print(new_dataset_sentence(others), file=sys.stderr)
    _print_balance(book, dataset, as_json)


@app.command()
def units(
    dataset: Dataset,
    contents: Annotated[str, typer.Argument(help="What one contains of another at most, in TOML: 'household = {person = 8}'.")],
    approver: Annotated[str, typer.Option(help="Who declares it.")],
    reason: Annotated[str, typer.Option(help="How it is known.")],
    ledger: Place = None,
    witness: Witnessed = None,
    as_json: AsJson = False,
) -> None:
    """Let persons and households share an account: every release is then charged to both, and grants name one of them (--protect)."""
    from holdfast.wording.endings import DECLARED

    book = _open(ledger, witness=witness)
    before = book.account(dataset).units
    _stands(lambda: book.account(dataset).units != before, DECLARED)
    book.declare_units(dataset, contents, approver=approver, reason=reason)
    _print_balance(book, dataset, as_json)


@app.command(name="take-back")
def take_back(
    dataset: Dataset,
    approver: Annotated[str, typer.Option(help="Who takes it back.")],
    reason: Annotated[str, typer.Option(help="Why.")],
    grant: Annotated[int | None, typer.Option(help="The number of the grant, as `ledger show` prints it, where there are several.")] = None,
    ledger: Place = None,
    witness: Witnessed = None,
    as_json: AsJson = False,
) -> None:
    """Take back a grant of which nothing is spent; the ledger keeps both."""
    from holdfast.wording.endings import TAKEN_BACK

    book = _open(ledger, witness=witness)
    before = len(book.account(dataset).taken_back)
    _stands(lambda: len(book.account(dataset).taken_back) > before, TAKEN_BACK)
    book.take_back(dataset, grant=grant, approver=approver, reason=reason)
    _print_balance(book, dataset, as_json)


@app.command()
def show(
    dataset: Annotated[str | None, typer.Argument(help="A data set; left out, all are listed. A ledger's file goes to --ledger.")] = None,
    ledger: Place = None,
    as_json: AsJson = False,
) -> None:
    """List all balances; or show what a data set was granted, what each release cost, what is left and what is exposed."""
    from holdfast.wording.ledger import balances_screen

    book = _open(ledger)
    if dataset is None:
        balances = book.balances()
        fields = {"ledger": book.id, "datasets": [balance.to_fields() for balance in balances]}
        print(json.dumps(fields, indent=2) if as_json else balances_screen(balances))
    else:
        _print_balance(book, dataset, as_json)


@app.command()
def verify(
    cards: Annotated[list[Path] | None, typer.Argument(help="card.json files, or published folders, whose entries must be there.")] = None,
    ledger: Place = None,
    witness: Witnessed = None,
    signer: Annotated[Path | None, typer.Option(help="The public key (PEM) that must have signed the cards.")] = None,
    as_json: AsJson = False,
) -> None:
    """Check the whole chain of the ledger, that it is not older than its witnesses remember, and that the given cards are in it."""
    from holdfast.wording.ledger import compared_sentence

    book = _open(ledger, witness=witness)
    declared, seen = _read_declarations(cards or [], signer), book.witnesses()
    heads = [head for head, _ in declared]
    found = book.verify(heads, declared)
    if found:
        more = [f"And {len(found) - _SHOWN} more problems."] if len(found) > _SHOWN else []
        raise LedgerBroken(" ".join([*found[:_SHOWN], *more, compared_sentence(seen, len(heads))]))
    head = book.head()
    if as_json:
        print(json.dumps({"problems": [], "head": head, "compared_with": {**seen, "cards": heads}}))
    else:
        print(f"The ledger is as it was written. Head: {head}\n{compared_sentence(seen, len(heads))}")


@app.command(name="accept-restore")
def accept_restore(
    approver: Annotated[str, typer.Option(help="Who accepts it.")],
    reason: Annotated[str, typer.Option(help="Why.")],
    ledger: Place = None,
    witness: Witnessed = None,
    as_json: AsJson = False,
) -> None:
    """Continue with a ledger that was put back to an older copy, or is gone; every release that a witness saw is charged again."""
    from holdfast.ledger import Ledger
    from holdfast.wording.endings import ACCEPTED
    from holdfast.wording.ledger import accepted_sentence

    place = _place(ledger)
    book = Ledger.reopen(place, witness=witness)
    before = book.last_event().seq
    _stands(lambda: book.last_event().seq > before, ACCEPTED)
    lost = book.accept_restore(approver=approver, reason=reason)
    fields = [{"dataset": one.dataset, "id": one.release_id, "charge": one.charge.to_fields()} for one in lost]
    print(json.dumps({"ledger": book.id, "charged": fields}, indent=2) if as_json else accepted_sentence(lost))


@app.command()
def void(
    dataset: Dataset,
    release_id: Annotated[str, typer.Argument(help="The release to give up.")],
    reason: Annotated[str, typer.Option(help="Why.")],
    ledger: Place = None,
    witness: Witnessed = None,
    as_json: AsJson = False,
) -> None:
    """Give up a release that was begun; its charge comes back only if nothing was drawn."""
    from holdfast.wording.endings import SECRET_ELSEWHERE, VOIDED

    book = _open(ledger, witness=witness)
    reservation = book.reservation(dataset, release_id)
    if reservation is None:
        raise LedgerProblem(f"The ledger has no release {release_id!r} of {dataset!r}. See `holdfast ledger show {shlex.quote(dataset)}`.")
    _stands(lambda: _is_void(book, dataset, release_id), VOIDED)
    refunded = book.void(reservation, reason)
    what = "its charge was given back" if refunded else "its charge stays spent, because drawing had begun"
    print(json.dumps({"release": release_id, "refunded": refunded}) if as_json else f"Voided {release_id}: {what}.")
    if reservation.sealed_key is not None and reservation.second_secret is None:
        print(SECRET_ELSEWHERE, file=sys.stderr)


def _is_ledger(place: str) -> bool:
    from holdfast.ledger import Ledger

    try:
        Ledger.open(place)
    except LedgerProblem:
        return False
    return True


def _grants(place: str, dataset: str) -> int:
    from holdfast.ledger import Ledger

    return len(Ledger.open(place).account(dataset).grants) if _is_ledger(place) else 0


def _is_void(book: Ledger, dataset: str, release_id: str) -> bool:
    found = book.reservation(dataset, release_id)
    return found is not None and found.state in ("voided", "voided-spent")


def _read_declarations(cards: list[Path], signer: Path | None) -> list[tuple[str, Any]]:
    """The entry that each card names, and what it declares its release to be disjoint from."""
    from holdfast.publication.signing import check_signer

    found = []
    for given in cards:
        path = given / "card.json" if given.is_dir() else given
        try:
            if not path.is_file():  # a pipe would be waited for
                raise ValueError
            release = json.loads(path.read_text(encoding="utf-8"))["release"]
            head, disjoint = release["ledger"], release.get("disjoint")
            if not isinstance(head, str | None):
                raise TypeError
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            if not given.exists():
                raise LedgerProblem(f"There is no file or folder {given.name!r}. Give card.json files or published folders.") from None
            raise LedgerProblem(f"{path.name!r} is not a readable card. Give card.json files or published folders.") from None
        if signer is not None:
            check_signer(path, signer)
        if head is None:
            raise LedgerProblem(f"The card of {path.parent.name!r} says that no ledger was used.")
        found.append((head, disjoint))
    return found


def _print_balance(book: Ledger, dataset: str, as_json: bool) -> None:
    from holdfast.wording.ledger import exposed_text, ledger_screen

    account = book.account(dataset)
    if not account.protects:
        raise account.unknown(book.datasets())
    if not as_json:
        print(ledger_screen(account, book.last_event()))
        return
    releases = [
        {
            "id": release.release_id,
            "state": release.state,
            "protect": account.unit_of(release.facts),
            "charge": release.charge.to_fields(),
            "costs": None if release.costs is None else release.costs.to_fields(),
            "ledger": release.head,
            "exposed": release.facts.exposed,
            "disjoint": None if release.facts.disjoint is None else release.facts.disjoint.to_fields(),
            "other_records": release.facts.other_records,
        }
        for release in account.releases.values()
    ]
    grants = [{"number": grant.seq, "time": grant.time, **grant.to_fields()} for grant in account.grants]
    back = [{"number": one.grant.seq, "time": one.time, "approver": one.approver, "reason": one.reason} for one in account.taken_back]
    first, *others = (balance.to_fields() for balance in account.balances())
    fields = {"ledger": book.id, **first, "others": others, "units": account.units.to_fields(), "grants": grants, "taken_back": back}
    print(json.dumps({**fields, "releases": releases, "exposed": exposed_text(account.releases.values())}, indent=2))
