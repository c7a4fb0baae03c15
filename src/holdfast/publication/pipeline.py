"""The one way from a plan to a folder: draw, then publish; the same with a ledger and without, from Python and from the command line.

`prepare` (plan.py) makes the plan. `draw` reserves the budget and draws. `complete` (publication.py) writes the folder, commits the
spend and gives the folder its name. `carry_out` is all of it for one order, or the rest of it where an earlier run was interrupted.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, overload

import numpy as np

from holdfast.cellkey.tabulate import check_names
from holdfast.channels import Facts
from holdfast.display import Watcher, watching
from holdfast.engines.local import BoundRelease
from holdfast.errors import HoldfastError, HoldfastWarning, InvalidParameter, NotAcknowledged
from holdfast.exposure import Exposure
from holdfast.invariants.constraints import Constraint
from holdfast.ledger import Charge
from holdfast.ledger.disjoint import Disjoint
from holdfast.ledger.values import PlannedCharge
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.publication.booking import (
    EMBEDDED,
    Booked,
    Booking,
    ChargedAccount,
    RecordedIn,
    begin,
    begin_tables,
    check_begun_here,
    check_recorded,
    check_resumable,
    check_same,
    find_book,
    resume_release,
)
from holdfast.publication.folder import Output, try_to_write
from holdfast.publication.history import charge_facts, find_together, with_earlier
from holdfast.publication.listings import fixed_csv, name_totals
from holdfast.publication.order import UNNAMED, Order, check_allow_exposed
from holdfast.publication.plan import Plan, check_mechanism, decide_exposure, exposure_after, prepare
from holdfast.publication.publication import (
    Publication,
    PublishedTable,
    check_extras,
    check_writable,
    compare_revision,
    complete,
    release_info,
)
from holdfast.publication.tables import PartBooking, Publications
from holdfast.randomness import NoiseKey
from holdfast.randomness.keys import secret_from_environment
from holdfast.tables import Declarations, Table
from holdfast.wording.answers import nobody_warning
from holdfast.wording.exposure import not_acknowledged_sentences, undecided_sentence

ALLOW_EXPOSED = "release.allow_exposed"


@overload
def release(
    table: Mapping[str, Table],
    keep: Iterable[Constraint],
    mechanism: Mechanism,
    key: None = None,
    ledger: RecordedIn = EMBEDDED,
    release_id: str | None = None,
    *,
    dataset: str | None = None,
    date: str | None = None,
    office: str | None = None,
    approver: str | None = None,
) -> Publications: ...


@overload
def release(
    table: Table,
    keep: Iterable[Constraint],
    mechanism: Mechanism,
    key: NoiseKey | None = None,
    ledger: RecordedIn = EMBEDDED,
    release_id: str | None = None,
    *,
    dataset: str | None = None,
    date: str | None = None,
    allow_exposed: int = 0,
    office: str | None = None,
    approver: str | None = None,
    disjoint: Mapping[str, Any] | None = None,
    beside: Iterable[Publication] = (),
    progress: Watcher | None = None,
) -> Publication: ...


def release(
    table: Table | Mapping[str, Table],
    keep: Iterable[Constraint],
    mechanism: Mechanism,
    key: NoiseKey | None = None,
    ledger: RecordedIn = EMBEDDED,
    release_id: str | None = None,
    *,
    dataset: str | None = None,
    date: str | None = None,
    allow_exposed: int = 0,
    office: str | None = None,
    approver: str | None = None,
    disjoint: Mapping[str, Any] | None = None,
    beside: Iterable[Publication] = (),
    progress: Watcher | None = None,
) -> Publication | Publications:
    """Draw the noise and add it: y = x + z with every kept total of x, checked as integers.

    The release is charged now. Call save(), or the charge is lost:

        import holdfast as hf
        table = hf.Table.from_counts("counties.csv", cells=["state", "county"], count="population")
        release = hf.release(table, [hf.margin("state")], hf.GeneralizedLaplace(epsilon="1/4", per="distance"), release_id="counties-2030")
        release.save("out")

    Given:       a table, the kept constraints, a mechanism. `key=None` takes a fresh secret key and erases it; a test key marks the release
                 as not private. `release_id` names the release (letters, digits, . _ -); `date`, `office` and `approver` (who publishes it,
                 who approved it) are written on card and statement as given.
                 `allow_exposed` is how many true counts may be published because the kept totals fix them; any other number of them is
                 refused before anything is charged.
                 Budget of `dataset` (by default the table's name, or that of its file) is reserved in the `ledger` before anything is
                 drawn, and `save` commits it; the key is then always a fresh one. "embedded" is what the command uses where none is
                 named: that of HOLDFAST_LEDGER, else holdfast-ledger.sqlite, here in the working directory, made if needed. With
                 ledger=None nothing is recorded, and a second draw of the same id is not noticed; card and repr say so. The same holds
                 with a test key, unless a ledger is given, which refuses it.
                 `disjoint`, such as {"from": ["north-2030"], "because": "no one is registered in both regions"}, declares that no person
                 is in this table and in those of these releases of the ledger. Their charges then add up only where other
                 releases connect them; ids and reason are on card and statement. `beside` are earlier releases of the data set, read from
                 their folders by hf.load: what their published totals and those of this one tell together is computed from them; of the
                 other releases in the ledger only which totals they keep is known. `progress` is called with (name of a step, done, in
                 all).
                 Several tables by name, as `hf.cellkey.tabulate` makes them, are one release by the cell key method: a `Publications`.
    Guarantees:  what `release.guarantee` says, and that no noise or true count stays behind in the release.
    """
    if isinstance(table, Mapping):
        if (key, allow_exposed, disjoint, tuple(beside)) != (None, 0, None, ()):
            raise InvalidParameter("Several tables take no key, allow_exposed, disjoint or beside: their noise is that of their records.")
        named = dataset or next((one.dataset for one in table.values() if isinstance(one, Table)), None)
        account = _account(ledger, None, release_id, named or UNNAMED)
        return _release_tables(table, keep, mechanism, account, Order(release_id or UNNAMED, date, None, 0, office, approver))
    if not isinstance(table, Table):
        raise InvalidParameter(
            f"A release takes (table, keep, mechanism), the first a Table. Got {type(table).__name__}. "
            "Build a table with Table.from_counts or from_records."
        )
    check_mechanism(mechanism, "A release")
    if key is not None and not isinstance(key, NoiseKey):
        raise InvalidParameter(f"key is a NoiseKey, or None for a fresh one. Got {type(key).__name__}.")
    declared = None if disjoint is None else Disjoint.read(disjoint)
    check_allow_exposed(allow_exposed)
    order = Order(
        UNNAMED if release_id is None else release_id,
        date,
        None,
        allow_exposed,
        office,
        approver,
        declared,
        tuple(given.as_earlier for given in beside),
    )
    account = _account(ledger, key, release_id, dataset or table.dataset or UNNAMED)
    if account is not None:
        account.check_unsaved(order.release_id)
    check_recorded(order, account)
    with watching(progress):
        made = plan_release(table, keep, mechanism, account, order)
        return draw(made, table, order, account, key=key)


def _release_tables(
    tables: Mapping[str, Table], keep: Iterable[Constraint], mechanism: Mechanism, account: ChargedAccount | None, order: Order
) -> Publications:
    """Several tables as one release: drawn first, since the records fix their noise, then recorded."""
    check_names(tables)
    check_mechanism(mechanism, "A release")
    if not all(isinstance(table, Table) for table in tables.values()):
        raise InvalidParameter("Every table of a release is a Table, such as hf.cellkey.tabulate makes.", field="table")
    noise = {name: mechanism.fixed_noise(table) for name, table in tables.items()}
    fixed = next(iter(noise.values()))
    if fixed is None:
        raise InvalidParameter("Only the cell key method releases several tables at once. Release each table by itself.", field="table")
    if any(other != fixed for other in noise.values()):
        raise InvalidParameter("The tables have keys of other columns or secrets. Tabulate the same records at once.", field="table")
    kept = list(keep)
    drawn = {name: draw(plan_release(table, kept, mechanism, None, order), table, order) for name, table in tables.items()}
    booking = begin_tables({name: made.plan for name, made in drawn.items()}, fixed, order.release_id, account)
    part = PartBooking(booking)
    names = tuple(drawn)
    about = {
        name: release_info(order, made.private, booking).model_copy(update={"tables": names, "table_name": name})
        for name, made in drawn.items()
    }
    return Publications({name: replace(made, about=about[name], source=part) for name, made in drawn.items()}, booking)


def _account(ledger: RecordedIn, key: NoiseKey | None, release_id: str | None, dataset: str) -> ChargedAccount | None:
    """Where a release from Python is charged; None without a ledger. What it would refuse is refused before anything is prepared."""
    if ledger == EMBEDDED and key is not None and not key.is_private:
        return None
    book = find_book(ledger)
    if book is None:
        return None
    if key is not None:
        raise InvalidParameter(
            "A release through a ledger draws a fresh key of its own. Leave key out, or release without a record: ledger=None.", field="key"
        )
    if release_id is None:
        raise InvalidParameter(
            "release_id is missing: every release is recorded under a name of its own. Give one, such as release_id='counties-2030-v1'; "
            "or release without a record: ledger=None.",
            field="release_id",
        )
    return ChargedAccount(book, dataset, secret_from_environment())


def plan_release(
    table: Table | Declarations,
    keep: Iterable[Constraint],
    mechanism: Mechanism,
    account: ChargedAccount | None,
    order: Order,
) -> Plan:
    """The plan of a release; what the account would refuse is refused before samplers are prepared, which may take long."""
    asked = partial(ChargedAccount.check_charge, release_id=order.release_id, disjoint=order.disjoint, revised=order.revised_id)
    check = None if account is None else partial(asked, account)
    made = prepare(Facts.of(Declarations.of(table), keep), mechanism, check=check, disjoint=order.disjoint)
    if made.guarantee.answers is not None and made.guarantee.person is None:
        warnings.warn(nobody_warning(made.guarantee), HoldfastWarning, stacklevel=4)
    others = () if account is None else account.ledger.account(account.dataset).releases.values()
    return with_earlier(made, others, order) if others or order.beside else made


def draw(
    plan: Plan,
    table: Table,
    order: Order,
    account: ChargedAccount | None = None,
    *,
    key: NoiseKey | None = None,
) -> Publication:
    """Reserve the budget of an account, if one is given, and draw. Unsaved, the charge is spent and nothing is published.

    Given:       `key`, for a release without account: a test key, or one of the user's own; None takes a fresh one and erases it.
    Guarantees:  every kept total of the table holds in what is released; no noise and no true count stay behind.
    """
    check_acknowledged(plan.exposure, order.allow_exposed)
    plan = for_table(plan, table)
    booking, bound = begin(plan, table, order, account, key)
    return _draw_release(plan, order, booking, bound)


def for_table(plan: Plan, table: Table) -> Plan:
    """The plan with what the kept totals of this table decide. Of the counts it reads these totals, which the release publishes."""
    if table.universe is not plan.facts.universe and table.universe != plan.facts.universe:
        return plan  # refused when a key is bound to it
    return decide_exposure(plan, [rows.totals(table.counts) for rows in plan.facts.kept.rows])


def carry_out(
    plan: Plan,
    table: Table,
    order: Order,
    output: Output,
    account: ChargedAccount | None = None,
    *,
    resume: bool = False,
) -> str | None:
    """Draw and publish; or, with `resume`, go on where an earlier call was interrupted. Returns the ledger's entry.

    Guarantees:  no output without a committed spend; no second draw of one release; see booking.py.
    """
    found = None if account is None else account.ledger.reservation(account.dataset, order.release_id)
    plan = for_table(plan, table)
    if account is None or found is None or found.state == "voided":
        check_writable(output, plan, order.release_id)
        try_to_write(output.folder, len(plan.facts.universe))
        check_acknowledged(plan.exposure, order.allow_exposed, output.folder, marked=output.formulas == "mark")
        release = draw(plan, table, order, account)
        return complete(release.booking, output, release)
    check_resumable(found, resume)
    check_begun_here(found)
    begun = Booked(account, found, plan.drawing.channel.identity)
    if begun.is_staged:  # nothing is written any more, so formats and signing key do not matter; the folder holds what was drawn
        check_same(found, plan, order)
        return complete(begun, output, None)
    output.check()
    check_extras(output, plan)
    check_acknowledged(plan.exposure, order.allow_exposed, output.folder, marked=output.formulas == "mark")
    booking, bound = resume_release(found, plan, table, order, account)
    return complete(booking, output, _draw_release(plan, order, booking, bound))


def _draw_release(plan: Plan, order: Order, booking: Booking, bound: BoundRelease) -> Publication:
    """The release. Its kept totals are public now: the cells that their values pin are exposed, and listed as such."""
    facts, target = plan.facts, plan.drawing.channel.target
    counts = bound.draw()
    totals = [rows.totals(counts) for rows in facts.kept.rows]
    for values in totals:
        values.setflags(write=False)
    exposure = exposure_after(plan.drawing.channel, totals, counts)
    if plan.earlier.held or plan.earlier.beside:
        exposure = replace(exposure, together=find_together(plan, exposure, order.release_id, totals))
    shown = None
    private = bound.subkey.is_private and not (plan.drawing.channel.needs_cell_keys and bound.table.has_test_keys)
    if not target.publishes_cells:  # only cells that the kept totals fix keep their count; nothing is drawn, so no key matters
        shown = np.zeros(len(counts), dtype=np.bool_)
        shown[facts.lattice.exposed_cells] = True
        counts, private = np.where(shown, counts, 0), True
    table = PublishedTable(facts.universe, counts, facts.count_name, plan.deviations, shown, exposure.cells, facts.measure)
    about = release_info(order, private, booking)
    revision = None if order.revises is None else compare_revision(*order.revises, name_totals(facts.kept, totals))
    return Publication(plan, table, tuple(totals), exposure, about, revision, booking)


def check_acknowledged(exposure: Exposure, allowed: int | None, beside: Path | None = None, *, marked: bool = False) -> None:
    """Raise NotAcknowledged if the kept totals fix another number of cells than is allowed: before anything is drawn or charged.

    Counted are the cells that the kept totals fix whatever their values are, alone or with those of earlier releases. Identities fix
    cells too, and expose nothing, so these are not counted. What the values of the totals pin is known after the draw only: it is counted
    apart, on card, pages and in exposed.csv.

    Given:       `allowed`, None for any number; the folder that would be written, beside which the list of the cells goes, with formulas
                 marked if so.
    Guarantees:  depends on the kept constraints and the list of cells alone. The list holds codes, no counts; no other file is touched.
    """
    cells = exposure.to_acknowledge
    if allowed is None or cells == allowed:
        return
    listed = None if beside is None or not cells else _write_list(beside, fixed_csv(exposure, marked=marked))
    said = [undecided_sentence(exposure.facts()), "" if exposure.together is None else exposure.together.facts.text]
    told = not_acknowledged_sentences(cells, allowed, " ".join(filter(None, said)), listed)
    raise NotAcknowledged(told, field=ALLOW_EXPOSED, details={"exposed": cells, "allowed": allowed, "list": listed})


def _write_list(folder: Path, content: bytes) -> str | None:
    """The name of a file with this content: `out-exposed.csv` beside `out`, or with a number where another file has that name."""
    for number in itertools.count(1):
        path = folder.absolute().with_name(f"{folder.name}-exposed{'' if number == 1 else f'-{number}'}.csv")
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
            return path.name
        except FileExistsError:
            if path.is_file() and path.read_bytes() == content:
                return path.name
        except OSError:
            return None
    raise AssertionError


def price(plan: Plan, account: ChargedAccount, order: Order) -> PlannedCharge:
    """Return what the plan would cost this account: first the unit that the release protects, then every other one."""
    held, own = account.ledger.account(account.dataset), plan.facts.protected
    before = account.ledger.reservation(account.dataset, order.release_id)
    begun = before is not None and before.counts
    charge, problem = None, None
    try:
        charge = Charge.of(plan.guarantee)
        if before is not None and begun:
            check_resumable(before, resume=True)
        account.check_charge(plan.drawing.channel, order.release_id, order.disjoint, order.revised_id)
        if charge.kind == "estimated":
            account.check_takes_estimates()
    except HoldfastError as error:
        problem = str(error)
    if held.protects and own not in held.protects:
        return refused_price(plan, account.dataset, str(problem))
    facts = charge_facts(plan.facts, plan.guarantee, order.disjoint, order.revised_id)
    is_over = before is not None and begun and not before.is_open  # it cannot be resumed on the charge that it has
    resumable, is_begun = account.secret is not None, begun and problem is None
    parts = []
    for unit in dict.fromkeys((own, *held.protects)):
        cost = None if charge is None else held.charge_for(unit, charge, facts)
        currency = held.currency(unit)
        if cost is not None and cost.epsilon is None and held.limit(unit) is None:  # without a limit the currency is what all have
            currency = "rho"
        left = None
        if charge is not None and held.limit(unit) is not None:
            spent = held.charged_beside(unit, order.release_id, charge, facts)
            if before is not None and is_over:
                spent += held.cost(held.charge_for(unit, before.charge, before.facts), currency)
            left = max(held.sum_of_grants(unit) - spent, Fraction(0))
        balance = held.balance(unit) if held.takes_releases else None
        parts.append(PlannedCharge(account.dataset, unit, currency, cost, balance, left, problem, resumable, is_begun))
    return replace(parts[0], others=tuple(parts[1:]))


def price_without_ledger(plan: Plan, dataset: str, order: Order) -> PlannedCharge | None:
    """The refusal of an order that needs a ledger, where none is used; else None, as nothing is charged."""
    try:
        check_recorded(order, None)
    except HoldfastError as error:
        return refused_price(plan, dataset, str(error))
    return None


def refused_price(plan: Plan, dataset: str, problem: str) -> PlannedCharge:
    """Where the ledger of the release cannot be used."""
    return PlannedCharge(dataset, plan.facts.protected, "epsilon", None, None, None, problem, False)
