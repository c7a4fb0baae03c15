"""What several releases promise together: about the same pair of tables, as the least of the bounds that are valid; and on disjoint sets of
cells.

Losses are composed for one pair at a time: a promise here is what two tables at one distance are promised (`Guarantee.cost`), and it counts
only where the pair is in the relation of every release. Valid bounds at a delta:

    sum              epsilons and deltas add ([DGGY22] Proposition 6, [GGY22] Proposition 2.9; [theory T35])
    equal parts      the optimal composition of k equal promises; unlike ones are each taken as the largest
    zcdp             rhos add (pure e is e^2/2-zCDP); then Proposition 7 of [CKS20], or the optimal conversion. The epsilon of what is
                     only (epsilon, delta) is added to the result, and its delta is taken off first (a calibrated Gaussian has a rho too)
    equal Gaussians  discrete Gaussians with one sigma_squared: their joint loss, exactly (lattice_delta.py)
    pld              privacy loss distributions by dp-accounting, for what has a dominating pair; what is zCDP alone gets half of delta

All but the last are certified in balls. An approximate promise of [DGGY22] Definition 2 is (epsilon r, delta h(r)) for a pair at
distance r. `Guarantee.cost` gives just this, so adding per pair is sharper than adding the parameters.

Releases on disjoint sets of cells, for each unit of distance: `parallel`, proved in [theory T35].
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.balls import ball, enclosure, float_up, precision
from holdfast.exact.formatting import format_exact, format_short, round_up
from holdfast.exact.parameters import Exact, exact_fraction, positive_fraction
from holdfast.lattices.norms import Norm, NormName, norm_of
from holdfast.privacy.conversions import zcdp_epsilon
from holdfast.privacy.equal_parts import MAX_PARTS, optimal_composition
from holdfast.privacy.guarantee import DEFAULT_DELTA, Kind, Promise
from holdfast.privacy.parameters import at_least_one, probability
from holdfast.research.accounting import pld as losses
from holdfast.research.accounting.lattice_delta import IndependentGaussians
from holdfast.research.accounting.optimal import zcdp_epsilon_optimal
from holdfast.research.accounting.pld import short_up
from holdfast.wording.budget import WEAK_EPSILON

Method: TypeAlias = Literal[
    "sum", "equal parts", "zcdp, Proposition 7", "zcdp, optimal conversion", "equal Gaussians", "privacy loss distribution"
]
PLD: Method = "privacy loss distribution"

DIGITS = 12
"""Significant digits of a root of a sum of squares, rounded up."""


@dataclass(frozen=True)
class GaussianPromise(Promise):
    """A promise about the pair with the law behind it, which dominates every mechanism with the promise.

    sigma_squared, sensitivity:  discrete Gaussian noise on a whole number that differs by at most `sensitivity` between the two tables.
                                 Only independent integer noise: noise on a lattice with kept totals has another law.
    """

    sigma_squared: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        if self.kind != "zcdp" or self.rho != self.law.rho:
            raise InvalidParameter("This promise is not the one of that discrete Gaussian. Use GaussianPromise.of.")

    @classmethod
    def of(cls, sigma_squared: Exact, sensitivity: int = 1) -> GaussianPromise:
        variance, reach = positive_fraction(sigma_squared, "sigma_squared"), at_least_one(sensitivity, "sensitivity")
        promise = Promise.zcdp(Fraction(reach * reach) / (2 * variance))
        return cls(promise.kind, promise.epsilon, promise.delta, promise.rho, variance, reach)

    @property
    def law(self) -> losses.EqualGaussians:
        """The noise, once."""
        return losses.EqualGaussians(self.sigma_squared, self.sensitivity)


@dataclass(frozen=True)
class Bound:
    """(epsilon, delta) for the whole composition, and how it was found. `certified`: by exact numbers and balls alone."""

    epsilon: Fraction | float
    delta: Fraction
    method: Method
    certified: bool


@dataclass(frozen=True)
class Bounds:
    """Every bound that was found, and why others were not tried."""

    found: tuple[Bound, ...]
    left_out: tuple[str, ...]

    @property
    def best(self) -> Bound:
        """The smallest epsilon."""
        return min(self.found, key=lambda bound: bound.epsilon)

    @property
    def certified_bound(self) -> Bound:
        """The smallest epsilon among the certified bounds; there always is one."""
        return min((bound for bound in self.found if bound.certified), key=lambda bound: bound.epsilon)


@dataclass(frozen=True)
class Composition:
    """Promises about one pair of tables, taken together.

    Guarantees:  `epsilon`, `rho` and `at(delta)` each hold for the joint publication of all parts, for a pair that lies in the relation of
                 every part. What is asked may depend on earlier publications. The promises themselves must not for `at`: where budgets
                 are chosen along the way, only the sums `epsilon` and `rho` hold, against a grant that was fixed before.
    """

    parts: tuple[Promise, ...]

    @property
    def kind(self) -> Kind:
        """The strongest kind that covers every part."""
        if self.epsilon is not None:
            return "pure"
        return "zcdp" if self.rho is not None else "approximate"

    @property
    def epsilon(self) -> Fraction | None:
        """The sum where every part is pure, else None."""
        pure = all(part.kind == "pure" for part in self.parts)
        return _sum(part.epsilon for part in self.parts) if pure else None

    @property
    def rho(self) -> Fraction | None:
        """The sum where every part has a rho (pure e counts e^2/2), else None."""
        total = Fraction(0)
        for part in self.parts:
            if part.rho is None:
                return None
            total += part.rho
        return total

    @property
    def fixed_delta(self) -> Fraction:
        """The sum of the deltas of parts that have no rho: no smaller delta is covered."""
        return _sum(part.delta for part in self.parts if part.rho is None)

    def at(self, delta: Exact, *, pld: bool = True) -> Bounds:
        """Every valid bound at this delta.

        Given:       delta exact, below 1; zero only where every part is pure. pld=False leaves dp-accounting out.
        Guarantees:  each bound holds; the least is `.best`, the least proved in balls `.certified`.
        """
        chosen = self._delta(delta)
        found = tuple(self._sums(chosen)) + tuple(self._equal(chosen)) + tuple(self._concentrated_bounds(chosen))
        found += tuple(self._equal_gaussians(chosen))
        reason = self._no_pld(chosen, pld)
        if reason is None:
            found += tuple(self._losses(chosen))
        if not found:
            raise InvalidParameter(
                f"delta = {format_exact(chosen)} is used up by approximate promises, whose deltas add up to "
                f"{format_exact(self.fixed_delta)}, and "
                "concentrated ones need some as well. Write a larger delta."
            )
        return Bounds(found, () if reason is None else (f"{PLD}: {reason}",))

    def promise(self, delta: Exact | None = None, *, pld: bool = True) -> Promise:
        """The whole as one promise: pure where all is pure, zcdp where all is concentrated, with (epsilon, delta) as the best bound.

        Given:  delta: by default 1e-10, or what approximate parts add up to and 1e-10 more; not used where all is pure.
        """
        if self.epsilon is not None:
            return Promise("pure", self.epsilon, Fraction(0), self.rho)
        chosen = self.delta_or_default(delta)
        return Promise(self.kind, self.at(chosen, pld=pld).best.epsilon, chosen, self.rho)

    def delta_or_default(self, delta: Exact | None) -> Fraction:
        """The delta asked for, checked; by default 1e-10 more than approximate parts add up to."""
        return self.fixed_delta + DEFAULT_DELTA if delta is None else self._delta(delta)

    def _delta(self, delta: Exact) -> Fraction:
        value = exact_fraction(delta, "delta")
        if value == 0 and self.epsilon is not None:
            return value
        value = probability(value, "delta")
        if value < self.fixed_delta:
            raise InvalidParameter(
                f"The deltas of approximate promises add up to {format_exact(self.fixed_delta)}. delta = {format_exact(value)} "
                "is below that. "
                "Write a larger one."
            )
        return value

    def _sums(self, delta: Fraction) -> Iterator[Bound]:
        if all(part.kind != "zcdp" for part in self.parts) and sum(map(_own_delta, self.parts)) <= delta:
            yield Bound(_sum(part.epsilon for part in self.parts), delta, "sum", True)

    def _equal(self, delta: Fraction) -> Iterator[Bound]:
        if not delta or len(self.parts) > MAX_PARTS or any(part.kind == "zcdp" for part in self.parts):
            return
        epsilon, chance = max(Fraction(part.epsilon) for part in self.parts), max(_own_delta(part) for part in self.parts)
        try:
            yield Bound(optimal_composition(epsilon, chance, len(self.parts), delta), delta, "equal parts", True)
        except InvalidParameter:  # the largest delta, taken for each, is more than there is
            return

    def _concentrated_bounds(self, delta: Fraction) -> Iterator[Bound]:
        """rho of what has one, at the delta that the others leave; their epsilons are added."""
        rho = short_up(_sum(part.rho for part in self.parts if part.rho is not None))
        others = _sum(part.epsilon for part in self.parts if part.rho is None)
        left = -short_up(-(delta - self.fixed_delta))
        if rho == 0 or left <= 0:
            return
        yield Bound(_add(others, zcdp_epsilon(rho, left)), delta, "zcdp, Proposition 7", True)
        yield Bound(_add(others, zcdp_epsilon_optimal(rho, left)), delta, "zcdp, optimal conversion", True)

    def _equal_gaussians(self, delta: Fraction) -> Iterator[Bound]:
        gaussians = [part for part in self.parts if isinstance(part, GaussianPromise)]
        variances = {part.sigma_squared for part in gaussians}
        if len(variances) != 1 or len(gaussians) < len(self.parts):
            return
        try:
            bound = IndependentGaussians([part.sensitivity for part in gaussians], variances.pop()).epsilon(delta)
            yield Bound(bound, delta, "equal Gaussians", True)
        except RequestTooLarge:
            return

    def _no_pld(self, delta: Fraction, wanted: bool) -> str | None:
        """Why dp-accounting is not asked, or None where it is."""
        if not wanted:
            return "not asked for."
        if all(_dominating(part) is None for part in self.parts):
            return "no part has a law that is known to dominate it."
        smallest = losses.SHARE * losses.allowance(len(self.parts))
        if (delta - self.fixed_delta) / 2 < Fraction(smallest):
            return f"a delta near {2 * smallest:g} or below is too small for floating point."
        if not losses.is_installed():
            return "dp-accounting is not installed. Install holdfast[accounting]."
        return None

    def _losses(self, delta: Fraction) -> Iterator[Bound]:
        """Dominating pairs through dp-accounting. What is zCDP alone gets half of the delta that is left, and its epsilon is added."""
        counts = Counter(dominating for part in self.parts if (dominating := _dominating(part)) is not None)
        pairs = [
            losses.EqualPromises(known.epsilon, known.delta, n) for known, n in counts.items() if isinstance(known, losses.EqualPromises)
        ]
        gaussians = [
            losses.EqualGaussians(known.sigma_squared, known.sensitivity, n)
            for known, n in counts.items()
            if isinstance(known, losses.EqualGaussians)
        ]
        rest = short_up(_sum(part.rho for part in self.parts if _dominating(part) is None and part.rho is not None))
        half = -short_up(-(delta - self.fixed_delta) / 2)
        found = losses.pld_epsilon(pairs, gaussians, delta - half if rest else delta)
        if rest:
            found = _add(Fraction(found), zcdp_epsilon_optimal(rest, half)) if math.isfinite(found) else found
        if math.isfinite(found):
            yield Bound(found, delta, PLD, False)


def compose(*promises: Promise) -> Composition:
    """Promises about one pair of tables, taken together.

    Given:       one or more promises (`Guarantee.cost(...)`, `Promise.pure("1/4")`, `GaussianPromise.of(...)`), all about the same pair,
                 each with noise of its own.
    Guarantees:  see Composition. Unknown kinds are refused.
    Reference:   module docstring; [theory T35].
    """
    if not promises:
        raise InvalidParameter("compose() needs at least one promise. Got none.")
    for promise in promises:
        _check(promise)
    return Composition(promises)


def _check(promise: Promise) -> None:
    if not isinstance(promise, Promise) or promise.kind not in ("pure", "zcdp", "approximate"):
        kind = getattr(promise, "kind", type(promise).__name__)
        raise InvalidParameter(f"A promise must be of kind 'pure', 'zcdp' or 'approximate'. Got {kind!r}.")
    if promise.kind != "approximate" and promise.rho is None:
        raise InvalidParameter(f"A promise of kind {promise.kind!r} needs its rho (pure e: e^2/2). It is missing.")


def _dominating(part: Promise) -> losses.EqualPromises | losses.EqualGaussians | None:
    """The pair of laws that dominates every mechanism with this promise, where one is known."""
    if isinstance(part, GaussianPromise):
        return part.law
    return None if part.kind == "zcdp" else losses.EqualPromises(Fraction(part.epsilon), _own_delta(part))


def _own_delta(part: Promise) -> Fraction:
    return Fraction(part.delta) if part.kind == "approximate" else Fraction(0)


def _sum(values: Iterable[Fraction | float]) -> Fraction:
    """An exact sum; a float that was rounded up is taken as the rational it is."""
    return sum((Fraction(value) for value in values), Fraction(0))


def _add(first: Fraction, second: float) -> float:
    return float_up(first + Fraction(second))


def parallel(distance: Norm | NormName, *units: Promise) -> Promise:
    """The promise of releases on disjoint sets of cells, for one unit of distance of the whole table.

    Given:       what each release promises for one unit of this distance (`Guarantee.per_distance()`), all of one kind. That the sets are
                 disjoint is the caller's to know: cells and kept totals decide it, and neither is in a promise.
    Guarantees:  valid for every pair of tables that lies in the relation of every release.
    Reference:   [theory T35].
    """
    norm, kinds = norm_of(distance, "distance"), sorted({unit.kind for unit in units})
    if len(kinds) != 1:
        raise InvalidParameter(
            f"Releases in parallel must be of one kind. Got {', '.join(kinds) or 'none'}. "
            "Give each set of cells its own cost, and compose them for each pair."
        )
    if kinds == ["zcdp"]:
        return Promise.zcdp(max(unit.rho for unit in units if unit.rho is not None))
    epsilons = [Fraction(unit.epsilon) for unit in units]
    if kinds == ["pure"]:
        return Promise.pure(max(epsilons) if norm.parts_add_up else _root_of_squares(epsilons))
    if len(units) > 1 and not norm.parts_add_up:
        raise InvalidParameter(
            f"Approximate promises in {norm} have no parallel composition that holds for every pair. Use zCDP, or compose them for "
            "each pair."
        )
    return Promise.approximate(max(epsilons), max(map(_own_delta, units)))


def _root_of_squares(values: list[Fraction]) -> Fraction:
    """sqrt(sum of squares), exact for one number, else to DIGITS digits and rounded up."""
    positive = [value for value in values if value]
    if len(positive) <= 1:
        return positive[0] if positive else Fraction(0)
    with precision(256):
        return round_up(enclosure(ball(sum(value * value for value in positive)).sqrt()).upper, DIGITS)


def composition_paragraph(composition: Composition, delta: Exact | None = None, *, pld: bool = True) -> str:
    """What the releases promise together, by which bound, with a warning where that is next to nothing."""
    chosen = composition.delta_or_default(delta)
    best = composition.at(chosen, pld=pld).best
    count = "1 release" if len(composition.parts) == 1 else f"{len(composition.parts)} releases together"
    used = Fraction(0) if best.method == "sum" and composition.epsilon is not None else chosen
    extra = f", and a further probability of at most {format_short(used)}" if used else ""
    sentences = [
        f"{count}: between two tables that agree in every total that any of them keeps, the chance of any outcome differs by a factor of "
        f"at most e to the power {format_short(best.epsilon)}{extra} (by: {best.method}).",
    ]
    if not best.certified:
        sentences.append("This bound is pessimistic but was computed in floating point.")
    if best.epsilon > WEAK_EPSILON:
        sentences.append(f"WARNING: an epsilon above {WEAK_EPSILON} promises next to nothing.")
    return " ".join(sentences)
