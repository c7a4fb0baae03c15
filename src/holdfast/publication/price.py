"""What a release would cost, against what the ledger has left for its data set. Nothing is reserved."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from holdfast.errors import HoldfastError
from holdfast.ledger import Balance, Charge
from holdfast.ledger.disjoint import Disjoint
from holdfast.publication.booking import Account
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
    problem: str | None
    """Why the ledger would refuse the release; None: it would take it."""
    resumable: bool
    """True if a secret seals the key, so that an interrupted draw can be resumed."""

    def to_fields(self) -> dict[str, Any]:
        """JSON-ready, exact."""
        held = dict.fromkeys(("granted", "spent", "left"), None) if self.balance is None else self.balance.to_fields()
        return {
            **{"dataset": self.dataset, "protect": self.protect, "currency": self.currency},
            "cost": None if self.cost is None else str(self.cost),
            **{name: held[name] for name in ("granted", "spent", "left")},
            **{"problem": self.problem, "resumable": self.resumable},
        }


def price(plan: Plan, account: Account, release_id: str, disjoint: Disjoint | None = None) -> Price:
    """What the plan would cost this account."""
    held = account.ledger.account(account.dataset)
    cost, currency, problem = None, held.currency, None
    try:
        charge = Charge.of(plan.guarantee)
        if charge.epsilon is None and not held.grants:  # without a limit the currency is what all releases have
            currency = "rho"
        cost = charge.epsilon if currency == "epsilon" else charge.rho
        account.check_charge(plan.drawing.channel, release_id, disjoint)
        if charge.kind == "estimated":
            account.check_takes_estimates()
    except HoldfastError as error:
        problem = str(error)
    balance = held.balance() if held.takes_releases else None
    return Price(account.dataset, plan.facts.protected, currency, cost, balance, problem, account.secret is not None)


def without_ledger(plan: Plan, dataset: str, problem: str) -> Price:
    """Where the ledger of the release cannot be used."""
    return Price(dataset, plan.facts.protected, "epsilon", None, None, problem, False)
