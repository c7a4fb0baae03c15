"""What a release would cost, against what the ledger has left for its data set. Nothing is reserved."""

from __future__ import annotations

from fractions import Fraction

from holdfast.errors import HoldfastError
from holdfast.ledger import Charge
from holdfast.ledger.values import PlannedCharge
from holdfast.publication.booking import ChargedAccount, check_recorded, check_resumable
from holdfast.publication.history import charge_facts
from holdfast.publication.order import Order
from holdfast.publication.plan import Plan


def price(plan: Plan, account: ChargedAccount, order: Order) -> PlannedCharge:
    """What the plan would cost this account."""
    held = account.ledger.account(account.dataset)
    before = account.ledger.reservation(account.dataset, order.release_id)
    begun = before is not None and before.counts
    charge, left, currency, problem = None, None, held.currency, None
    try:
        charge = Charge.of(plan.guarantee)
        if charge.epsilon is None and not held.grants:  # without a limit the currency is what all releases have
            currency = "rho"
        if held.grants:
            facts = charge_facts(plan.facts, plan.guarantee, order.disjoint, order.revised_id)
            spent = held.charged_beside(order.release_id, charge, facts)
            if before is not None and begun and not before.is_open:  # it cannot be resumed on the charge that it has
                spent += held.cost(before.charge)
            left = max(held.granted - spent, Fraction(0))
        if before is not None and begun:
            check_resumable(before, resume=True)
        account.check_charge(plan.drawing.channel, order.release_id, order.disjoint, order.revised_id)
        if charge.kind == "estimated":
            account.check_takes_estimates()
    except HoldfastError as error:
        problem = str(error)
    balance = held.balance() if held.takes_releases else None
    may_resume = account.secret is not None
    return PlannedCharge(
        account.dataset, plan.facts.protected, currency, charge, balance, left, problem, may_resume, begun and problem is None
    )


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
