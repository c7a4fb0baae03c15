"""What a release would cost, against what the ledger has left for its data set. Nothing is reserved."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from holdfast.errors import HoldfastError
from holdfast.ledger import Charge
from holdfast.ledger.values import PlannedCharge
from holdfast.publication.booking import ChargedAccount, check_recorded, check_resumable
from holdfast.publication.history import charge_facts
from holdfast.publication.order import Order
from holdfast.publication.plan import Plan


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
            left = max(held.granted(unit) - spent, Fraction(0))
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
