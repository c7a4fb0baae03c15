"""What a ledger counts, as frozen values: charges, grants and balances; and how numbers and names are read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, cast, get_args

from holdfast.display import Json, read_as
from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import format_amount, format_exact, format_ratio, round_down, unit_in_last_place
from holdfast.exact.parameters import Exact
from holdfast.privacy.conversions import zcdp_epsilon
from holdfast.privacy.guarantee import Guarantee
from holdfast.privacy.parameters import budget, not_negative, probability

ChargeKind: TypeAlias = Literal["pure", "zcdp", "estimated", "cell-key"]
Currency: TypeAlias = Literal["epsilon", "rho"]
GrantKind: TypeAlias = Literal["pure", "zcdp", "approximate"]
State: TypeAlias = Literal["reserved", "drawing", "staged", "committed", "published", "closed", "voided", "voided-spent", "lost"]

OPEN: tuple[State, ...] = ("reserved", "drawing", "staged", "committed", "published")
"""States in which a release may still be resumed: the ledger holds its sealed key and a check of its input."""
ESTIMATED = (
    "Noise drawn by a Markov chain has an estimated promise, which cannot be added up with others: no budget pays for it. Use an exact "
    "sampler (sampler = 'auto'), a ledger that sets no limit, or none (--no-ledger)."
)
CELL_KEY = (
    "The cell key method gives no differential privacy guarantee, so no budget pays for it. Record the release in a data set of its own "
    "without a grant, in a ledger that sets no limit, or in none (--no-ledger)."
)
UNCOUNTED: Mapping[ChargeKind, str] = {"estimated": ESTIMATED, "cell-key": CELL_KEY}
"""Kinds of charges without a number, and why an account with a limit refuses them."""
GRANT_NEEDS: dict[GrantKind, tuple[str, ...]] = {"pure": ("epsilon",), "zcdp": ("rho",), "approximate": ("epsilon", "delta")}
_EXACT = re.compile("-?[0-9]+(/[1-9][0-9]*)?")
_LONGEST = 4000
"""Characters below which the text of a number is read again; one charge or grant of the longest parameters has about 2000."""
_SUM_DIGITS = 30
"""Digits of a sum whose exact text would be longer."""
MAX_NAME = 200
"""Longest name of a data set or release, in characters."""
MAX_TEXT = 2000
"""Longest reason, approver or legal reference."""
RHO_DIGITS = 12
"""Digits of the rho that an approximate grant is converted to, rounded down."""


@dataclass(frozen=True)
class Charge:
    """What one release costs one person who changes cell.

    Given:       kind "pure": epsilon >= 0, and rho at most epsilon^2 / 2 (what is proved for that pair; by default just this).
                 kind "zcdp": rho > 0, no epsilon. kind "estimated": no number, since an estimate has no sum; only an account without a
                 limit takes it. kind "cell-key": no number, since the cell key method promises none; recorded as such, in such an account.
                 delta is None: releases that hold only up to a delta have no sum here, and are refused.
    Guarantees:  epsilon and rho are exact, so that sums are.
    """

    kind: ChargeKind
    epsilon: Fraction | None = None
    rho: Fraction | None = Fraction(-1)
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        if self.kind in UNCOUNTED:
            if self.epsilon is not None or self.delta is not None:
                raise InvalidParameter(f"A charge of kind {self.kind!r} has no number. Leave epsilon and delta out.")
            object.__setattr__(self, "rho", None)
            return
        if self.kind not in get_args(ChargeKind) or self.delta is not None:
            raise InvalidParameter(
                f"A charge is of kind 'pure' or 'zcdp' and has no delta. Got kind {self.kind!r}. A release that is promised only up to a "
                "delta cannot be added up with others yet: use a mechanism with a pure or a zCDP promise."
            )
        if self.kind == "zcdp":
            if self.epsilon is not None:
                raise InvalidParameter("A charge of kind 'zcdp' has a rho only. Leave epsilon out.")
            object.__setattr__(self, "rho", budget(cast(Exact, self.rho), "rho"))  # one that is None is refused there
            return
        if self.epsilon is None:
            raise InvalidParameter("A charge of kind 'pure' needs epsilon.")
        epsilon = not_negative(self.epsilon, "epsilon")
        largest = epsilon * epsilon / 2
        rho = largest if self.rho == -1 else not_negative(cast(Exact, self.rho), "rho")
        if rho > largest:
            raise InvalidParameter(
                f"Pure epsilon = {format_exact(epsilon)} is {format_exact(largest)}-zCDP. Got a larger rho. Leave rho out."
            )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "rho", rho)

    @classmethod
    def of(cls, guarantee: Guarantee) -> Charge:
        """The charge of a release with this guarantee: its cost for a person who moves all of their records from one cell to another, or
        for real-valued answers is replaced by any other.

        This pair is taken also where the kept totals let no person change alone, or where the promise is for a person who comes or goes:
        other releases share the account.
        """
        return cls.at(guarantee, guarantee.replacing)

    @classmethod
    def at(cls, guarantee: Guarantee, distance: int | Fraction) -> Charge:
        """What the release costs two tables at this distance, l1 or squared l2 as the guarantee has it."""
        if guarantee.status == "estimated":
            return cls("estimated")
        if guarantee.kind == "cell-key":
            return cls("cell-key")
        if guarantee.kind == "approximate" and guarantee.rho is None:
            return cls("approximate")  # type: ignore[arg-type]  # refused, with the message for it
        promise = guarantee.cost(distance)
        assert promise.rho is not None
        if guarantee.kind != "pure":
            return cls("zcdp", rho=promise.rho)
        return cls("pure", epsilon=Fraction(promise.epsilon), rho=promise.rho)  # a float is the root of 2, rounded up

    def times(self, changes: int) -> Charge:
        """Return the charge for so many changes at once: epsilon grows with their number, rho with its square [theory T231]."""
        if changes == 1 or self.rho is None:
            return self
        return Charge(self.kind, None if self.epsilon is None else self.epsilon * changes, self.rho * changes**2)

    def to_fields(self) -> dict[str, str | None]:
        """JSON-ready, exact."""
        return {"kind": self.kind, "epsilon": format_ratio(self.epsilon), "rho": format_ratio(self.rho), "delta": format_ratio(self.delta)}

    @classmethod
    def from_fields(cls, fields: Json) -> Charge:
        """What `to_fields` wrote; ValueError, KeyError or TypeError where it did not."""
        said = read_as(dict, fields)
        rho, kind = read_exact(said["rho"]), cast(ChargeKind, said["kind"])  # another kind is refused when the charge is made
        if (rho is None) is not (kind in UNCOUNTED) or said["delta"] is not None:
            raise ValueError("a charge needs rho and has no delta")
        return cls(kind, read_exact(said["epsilon"]), rho)

    def __str__(self) -> str:
        """The parameter that is promised."""
        if self.rho is None:
            return "an estimate" if self.kind == "estimated" else "cell keys, no DP guarantee"
        return f"epsilon = {format_amount(self.epsilon)}" if self.epsilon is not None else f"rho = {format_amount(self.rho)}"


@dataclass(frozen=True)
class Costs:
    """What one release costs two other pairs of tables than one person's move, which is its charge.

    per_distance: two tables that differ by one in one count. smallest_secret: two tables as near as its kept totals allow; `secret_is_more`
    where that is farther than one person's move, because no person can change alone.
    """

    per_distance: Charge
    smallest_secret: Charge
    secret_is_more: bool

    @classmethod
    def of(cls, guarantee: Guarantee) -> Costs:
        secret = guarantee.smallest_secret
        return cls(Charge.at(guarantee, 1), Charge.at(guarantee, secret), secret > guarantee.moving)

    def to_fields(self) -> dict[str, Json]:
        """JSON-ready, exact."""
        charges = {"per_distance": self.per_distance.to_fields(), "smallest_secret": self.smallest_secret.to_fields()}
        return {**charges, "secret_is_more": self.secret_is_more}

    @classmethod
    def from_fields(cls, fields: Json) -> Costs:
        """What `to_fields` wrote; ValueError, KeyError or TypeError where it did not."""
        said = read_as(dict, fields)
        unit, secret = Charge.from_fields(said["per_distance"]), Charge.from_fields(said["smallest_secret"])
        return cls(unit, secret, read_as(bool, said["secret_is_more"]))


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A budget for one data set, and who gave it, why.

    limit is what counts: epsilon for kind "pure", else rho. For kind "approximate", rho is what epsilon and delta were converted to when
    the grant was made: from then on the limit is fixed, so that budgets may be chosen adaptively below it.
    """

    dataset: str
    kind: GrantKind
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction | None = None
    protect: str = "person"
    approver: str
    reason: str
    legal: str | None = None
    time: str = ""
    seq: int = 0
    """The number of the event that made it; 0 before it is recorded."""

    @property
    def currency(self) -> Currency:
        """The parameter that is added up."""
        return "epsilon" if self.kind == "pure" else "rho"

    @property
    def limit(self) -> Fraction:
        """How much of the account's currency was granted."""
        value = self.epsilon if self.currency == "epsilon" else self.rho
        assert value is not None
        return value

    def to_fields(self) -> dict[str, str | None]:
        """JSON-ready, exact; without data set and time, which are columns of the event."""
        numbers = {name: format_ratio(getattr(self, name)) for name in ("epsilon", "rho", "delta")}
        return {"kind": self.kind, **numbers, **{name: getattr(self, name) for name in ("protect", "approver", "reason", "legal")}}

    @classmethod
    def from_fields(cls, dataset: str, time: str, seq: int, fields: Mapping[str, Json]) -> Grant:
        """What `to_fields` wrote; ValueError, KeyError or TypeError where it did not."""
        numbers = {name: read_exact(fields[name]) for name in ("epsilon", "rho", "delta")}
        kind = cast(GrantKind, fields["kind"])  # another one has no needs
        needed = {*GRANT_NEEDS[kind], *(() if kind == "pure" else ("rho",))}
        if {name for name, value in numbers.items() if value is not None} != needed or any((value or 1) <= 0 for value in numbers.values()):
            raise ValueError("a grant has other parameters than its kind")
        return cls.of(dataset, kind, numbers, fields, time, seq)

    @classmethod
    def of(
        cls, dataset: str, kind: GrantKind, numbers: Mapping[str, Fraction | None], texts: Mapping[str, Json], time: str, seq: int = 0
    ) -> Grant:
        """With texts that are checked here."""
        return cls(
            dataset=dataset,
            kind=kind,
            epsilon=numbers.get("epsilon"),
            rho=numbers.get("rho"),
            delta=numbers.get("delta"),
            protect=name_of(texts["protect"], "protect"),
            approver=text_of(texts["approver"], "approver"),
            reason=text_of(texts["reason"], "reason"),
            legal=None if texts["legal"] is None else text_of(texts["legal"], "legal"),
            time=time,
            seq=seq,
        )

    def __str__(self) -> str:
        """What was granted, with its own parameters."""
        names = GRANT_NEEDS[self.kind]
        return ", ".join(f"{name} = {format_amount(getattr(self, name), up=False)}" for name in names)


@dataclass(frozen=True)
class TakenBack:
    """A grant that was taken back before anything of it was spent, and who did it, why."""

    grant: Grant
    approver: str
    reason: str
    time: str


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
    others: tuple[PlannedCharge, ...] = ()
    """The same for every other unit that the account protects."""

    @property
    def cost(self) -> Fraction | None:
        """The charge in the account's currency; None where it has none there."""
        return None if self.charge is None else self.charge.epsilon if self.currency == "epsilon" else self.charge.rho

    def to_fields(self) -> dict[str, Json]:
        """JSON-ready, exact."""
        granted, spent = (None, None) if self.balance is None else (self.balance.granted, self.balance.spent)
        numbers = {"cost": self.cost, "granted": granted, "spent": spent, "left": self.left}
        return {
            **{"dataset": self.dataset, "protect": self.protect, "currency": self.currency},
            **{name: format_ratio(value) for name, value in numbers.items()},
            **{"problem": self.problem, "resumable": self.resumable, "begun": self.begun},
            "others": [other.to_fields() for other in self.others],
        }


def read_grant(
    dataset: str, kind: GrantKind | None, parameters: Mapping[str, Exact | None], texts: Mapping[str, str | None], time: str
) -> Grant:
    """A new grant from what a user wrote; whatever is missing, superfluous or inexact is refused. kind None: by the numbers."""
    if kind is None:
        kind = "zcdp" if parameters["rho"] is not None else "approximate" if parameters["delta"] is not None else "pure"
    if kind not in GRANT_NEEDS:
        raise InvalidParameter(f"kind must be one of {', '.join(map(repr, GRANT_NEEDS))}. Got {kind!r}.")
    needed = GRANT_NEEDS[kind]
    for name, value in parameters.items():
        if (value is None) == (name in needed):
            advice = "is missing" if value is None else "must be left out"
            raise InvalidParameter(f"A grant of kind {kind!r} has {' and '.join(needed)}: {name} {advice}.")
    numbers = {name: (probability if name == "delta" else budget)(value, name) for name, value in parameters.items() if value is not None}
    if kind == "approximate":
        numbers["rho"] = largest_rho(numbers["epsilon"], numbers["delta"])
    return Grant.of(dataset, kind, numbers, texts, time)


def largest_rho(epsilon: Exact, delta: Exact) -> Fraction:
    """The largest rho of 12 digits for which Proposition 7 of [CKS20] proves (epsilon, delta).

    Given:       epsilon > 0, 0 < delta < 1, exact.
    Guarantees:  zcdp_epsilon(result, delta) <= epsilon, checked for what is returned. Where the search is not sharp, it is smaller.
    """
    epsilon, delta = budget(epsilon, "epsilon"), probability(delta, "delta")

    def is_proved(rho: Fraction) -> bool:
        return Fraction(zcdp_epsilon(rho, delta)) <= epsilon

    low = high = Fraction(1)
    while is_proved(high):
        low, high = high, high * 4
    while not is_proved(low):
        low, high = low / 4, low
        if low < Fraction(1, 10**400):
            raise InvalidParameter(f"epsilon = {format_exact(epsilon)} with this delta leaves no budget. Write a larger epsilon or delta.")
    while high - low > low / 10 ** (RHO_DIGITS + 2):
        middle = round_down((low + high) / 2, RHO_DIGITS + 4)
        low, high = (middle, high) if is_proved(middle) else (low, middle)
    found = round_down(low, RHO_DIGITS)
    step = unit_in_last_place(found, RHO_DIGITS)
    while not is_proved(found):  # only where the bound is not monotone in its last digits
        found -= step
    return found


def sum_text(values: Iterable[Fraction]) -> str:
    """A sum of grants as `format_ratio` writes it, rounded down to 30 digits where `read_exact` would not read it again."""
    total = sum(values, Fraction(0))
    text = str(format_ratio(total))
    return text if len(text) < _LONGEST else str(format_ratio(round_down(total, _SUM_DIGITS)))


def read_exact(text: Json) -> Fraction | None:
    """What `format_ratio` wrote, and nothing else: one number has one text."""
    if text is None:
        return None
    if not isinstance(text, str) or len(text) >= _LONGEST or _EXACT.fullmatch(text) is None:  # an exponent would fill the memory
        raise ValueError("not a number as it is written here")
    value = Fraction(text)
    if str(value) != text:
        raise ValueError("a number that is not in lowest terms")
    return value


def name_of(value: object, what: str) -> str:
    """A name that is a key: kept as it is, never trimmed or normalised; what cannot be stored or read on a screen is refused."""
    name = text_of(value, what, MAX_NAME)
    if any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in name):
        raise InvalidParameter(f"{what} must not hold control characters or line breaks. Got {name!a}. Write a name on one line.")
    return name


def text_of(value: object, what: str, longest: int = MAX_TEXT) -> str:
    """A text that can be stored in every database, not empty and not too long."""
    if not isinstance(value, str) or not value.strip():
        found = "an empty one" if isinstance(value, str) else type(value).__name__
        raise InvalidParameter(f"{what} must be a text that is not empty. Got {found}.")
    if len(value) > longest:
        raise InvalidParameter(f"{what} must have at most {longest} characters. Got {len(value)}.")
    if "\0" in value or any(0xD800 <= ord(letter) < 0xE000 for letter in value):
        raise InvalidParameter(f"{what} holds a character that no database stores: {value[:40]!a}. Write it without.")
    return value
