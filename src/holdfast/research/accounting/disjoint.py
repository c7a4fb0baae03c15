"""Releases on disjoint sets of cells: what they promise together for each unit of distance.

Let v be the difference of two tables with the same kept totals, v_i its part on the i-th set of cells, and let the i-th release use its own
set only, with noise of its own. For one pair the losses add. Then

    pure, l1          sum e_i |v_i|_1 <= max e_i  sum |v_i|_1 = max e_i |v|_1.
    pure, l2          sum e_i |v_i|_2 <= sqrt(sum e_i^2) |v|_2 (Cauchy-Schwarz), and no less: in l2 parts that change together do add up.
    zcdp, l2          sum rho_i |v_i|_2^2 <= max rho_i |v|_2^2.
    zcdp, l1          sum rho_i |v_i|_1^2 <= max rho_i (sum |v_i|_1)^2 = max rho_i |v|_1^2.
    approximate, l1   each part is (e_i r_i, delta_i h_(e_i)(r_i)), h_e(r) = (e^(e r) - 1) / (e^e - 1), r_i whole. h_e(r) grows with e for
                      r >= 1. With e the largest, h_e is convex and h_e(0) = 0, so sum h_e(r_i) <= h_e(sum r_i): (max e_i, max delta_i).
    approximate, l2   refused: r_1 + r_2 may exceed r.

Where only one of the sets changes (one person who stays inside it), the cost is that set's own cost, which is at most this.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.formatting import format_exact, round_up
from holdfast.lattices.norms import Norm, norm_of
from holdfast.privacy.guarantee import Guarantee, Kind

DIGITS = 12
"""Significant digits of a root of a sum of squares, rounded up."""


@dataclass(frozen=True)
class Rate:
    """What is promised for each unit of distance (zcdp: of squared distance). Pass `parameters()` to Guarantee.from_secrets."""

    kind: Kind
    distance: Norm
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", norm_of(self.distance, "distance"))

    def parameters(self) -> dict[str, Any]:
        return {"kind": self.kind, "distance": self.distance, "epsilon": self.epsilon, "rho": self.rho, "delta": self.delta}

    def __str__(self) -> str:
        names = (name for name in ("epsilon", "rho", "delta") if getattr(self, name) is not None)
        return f"{self.kind} in {self.distance}: " + ", ".join(f"{name} = {format_exact(getattr(self, name))}" for name in names)


def parallel(*releases: Guarantee | Rate) -> Rate:
    """The promise of releases on disjoint sets of cells, for each unit of distance of the whole table.

    Given:       one or more guarantees of one kind and one distance. That the sets are disjoint is the caller's to know: cells and kept
                 totals decide it, and neither is in a guarantee.
    Guarantees:  valid for every pair of tables that lies in the relation of every release.
    Reference:   module docstring.
    """
    if not releases:
        raise InvalidParameter("parallel() needs at least one guarantee. Got none.")
    kinds, distances = sorted({release.kind for release in releases}), sorted({release.distance.name for release in releases})
    if len(kinds) > 1 or len(distances) > 1:
        raise InvalidParameter(
            f"Releases in parallel must be of one kind and one distance. Got {', '.join(kinds)} in {', '.join(distances)}. "
            "Give each set of cells its own cost, and compose them for each pair."
        )
    kind, distance = releases[0].kind, releases[0].distance
    if kind == "zcdp":
        return Rate(kind, distance, rho=max(_present(release.rho) for release in releases))
    epsilons = [_present(release.epsilon) for release in releases]
    if kind == "pure":
        return Rate(kind, distance, epsilon=max(epsilons) if distance.parts_add_up else _root_of_squares(epsilons))
    if len(releases) > 1 and not distance.parts_add_up:
        raise InvalidParameter(
            f"Approximate promises in {distance} have no parallel composition that holds for every pair. Use zCDP, or compose them for "
            "each pair."
        )
    return Rate(kind, distance, epsilon=max(epsilons), delta=max(_present(release.delta) for release in releases))


def _root_of_squares(values: list[Fraction]) -> Fraction:
    """sqrt(sum of squares), exact for one number, else to DIGITS digits and rounded up."""
    positive = [value for value in values if value]
    if len(positive) <= 1:
        return positive[0] if positive else Fraction(0)
    with precision(256):
        return round_up(enclosure(ball(sum(value * value for value in positive)).sqrt()).upper, DIGITS)


def _present(value: Fraction | None) -> Fraction:
    assert value is not None
    return value
