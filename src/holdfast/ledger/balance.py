"""What is spent of a budget and what is left, and what one more release would be charged."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from holdfast.exact.formatting import format_ratio
from holdfast.ledger.values import Charge, Currency, GrantKind


@dataclass(frozen=True)
class Balance:
    """Grants to a data set, what is spent and what is left, in one currency; for one person (or what `protect` names) changing cell.

    kind, granted, left: None for an account without a limit. spent counts every release that was not voided before it drew, except
    `estimated` releases by Markov chains, which have no sum, and `cell_key` releases, which promise nothing that could be added up. For
    kind "approximate", epsilon and delta are what was granted: all releases together, if they use all of rho, are
    (epsilon, delta)-differentially private for one person (or what `protect` names).

    all_charges is the sum of all charges, whatever was declared.

    per_distance and smallest_secret are the same sum for two tables that differ by one in one count, and for two tables as near as each
    release's own kept totals allow; None where a release does not say, and with real-valued answers, which are no counts. Where releases
    were declared disjoint, both are the largest over components, for a change in the tables of one component: a person who goes from
    the tables of A to those of B changes one count in each, and costs e_A + e_B of these figures [theory T193].
    `secret_is_more`: for some release that is farther than one person's move, so that a grant buys more there than it says.
    """

    dataset: str
    kind: GrantKind | None
    protect: str
    currency: Currency
    granted: Fraction | None
    spent: Fraction
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    recorded: int = 0
    estimated: int = 0
    cell_key: int = 0
    per_distance: Fraction | None = None
    smallest_secret: Fraction | None = None
    secret_is_more: bool = False
    all_charges: Fraction = Fraction(0)

    @property
    def left(self) -> Fraction | None:
        """What a release may still cost that joins the component with the largest sum, and no other. One that declares nothing joins all
        of them: see `left_undeclared`.
        """
        return None if self.granted is None else self.granted - self.spent

    @property
    def left_undeclared(self) -> Fraction | None:
        """What a release that declares nothing may still cost; the charges of all others then add up."""
        return None if self.granted is None else max(self.granted - self.all_charges, Fraction(0))

    def to_fields(self) -> dict[str, str | int | None]:
        """JSON-ready, exact."""
        numbers = ("granted", "spent", "left", "all_charges", "left_undeclared", "epsilon", "delta", "per_distance", "smallest_secret")
        return {
            **{name: getattr(self, name) for name in ("dataset", "kind", "protect", "currency")},
            **{name: format_ratio(getattr(self, name)) for name in numbers},
            **{name: getattr(self, name) for name in ("secret_is_more", "recorded", "estimated", "cell_key")},
        }


@dataclass(frozen=True)
class PlannedCharge:
    """What a release would be charged for one person who changes cell, against the balance of its data set. Nothing is reserved."""

    dataset: str
    protect: str
    currency: Currency
    charge: Charge | None
    """None: it cannot be charged (`problem` says why)."""
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

    @property
    def cost(self) -> Fraction | None:
        """The charge in the account's currency; None where it has none there."""
        return None if self.charge is None else self.charge.epsilon if self.currency == "epsilon" else self.charge.rho

    def to_fields(self) -> dict[str, str | bool | None]:
        """JSON-ready, exact."""
        granted, spent = (None, None) if self.balance is None else (self.balance.granted, self.balance.spent)
        numbers = {"cost": self.cost, "granted": granted, "spent": spent, "left": self.left}
        return {
            **{"dataset": self.dataset, "protect": self.protect, "currency": self.currency},
            **{name: format_ratio(value) for name, value in numbers.items()},
            **{"problem": self.problem, "resumable": self.resumable, "begun": self.begun},
        }
