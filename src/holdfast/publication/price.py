"""What a release would cost, against what the ledger has left for its data set. Nothing is reserved."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.ledger import Balance, Charge
from holdfast.publication.booking import ChargedAccount, check_recorded, check_resumable
from holdfast.publication.history import charge_facts
from holdfast.publication.order import Order
from holdfast.publication.plan import Plan


@dataclass(frozen=True)
class Price:
    """The charge for one person who changes cell, in the account's currency; None where it has none there (`problem` says why)."""

    dataset: str
    protect: str
    currency: str
    cost: Fraction | None
    balance: Balance | None
    """None: nothing was granted to the data set and nothing recorded of it yet."""
    left: Fraction | None
    """What this release may cost: what was granted, less the charges of those that may share a person with it, directly or through others.
    None: no limit is set.
    """
    problem: str | None
    """Why the ledger would refuse the release; None: it would take it."""
    resumable: bool
    """True if a secret seals the key, so that an interrupted draw can be resumed."""
    begun: bool = False
    """True if the release was begun before and is not finished: its charge is in the ledger already."""

    def to_fields(self) -> dict[str, Any]:
        """JSON-ready, exact."""
        held = dict.fromkeys(("granted", "spent"), None) if self.balance is None else self.balance.to_fields()
        return {
            **{"dataset": self.dataset, "protect": self.protect, "currency": self.currency},
            "cost": None if self.cost is None else str(self.cost),
            **{name: held[name] for name in ("granted", "spent")},
            "left": None if self.left is None else str(self.left),
            **{"problem": self.problem, "resumable": self.resumable, "begun": self.begun},
        }


def price(plan: Plan, account: ChargedAccount, order: Order) -> Price:
    """What the plan would cost this account."""
    held = account.ledger.account(account.dataset)
    before = account.ledger.reservation(account.dataset, order.release_id)
    begun = before is not None and before.counts
    cost, left, currency, problem = None, None, held.currency, None
    try:
        charge = Charge.of(plan.guarantee)
        if charge.epsilon is None and not held.grants:  # without a limit the currency is what all releases have
            currency = "rho"
        cost = charge.epsilon if currency == "epsilon" else charge.rho
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
    return Price(
        account.dataset, plan.facts.protected, currency, cost, balance, left, problem, account.secret is not None, begun and problem is None
    )


def price_without_ledger(plan: Plan, dataset: str, order: Order) -> Price | None:
    """The refusal of an order that needs a ledger, where none is used; else None, as nothing is charged."""
    try:
        check_recorded(order, None)
    except HoldfastError as error:
        return refused_price(plan, dataset, str(error))
    return None


def refused_price(plan: Plan, dataset: str, problem: str) -> Price:
    """Where the ledger of the release cannot be used."""
    return Price(dataset, plan.facts.protected, "epsilon", None, None, None, problem, False)
