"""The named laws: Laplace, Gaussian, geometric, with bounds and tilts."""

from __future__ import annotations

from fractions import Fraction
from typing import Self, cast

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import ComputableReal, Enclosure, Real, affine
from holdfast.exact.law import ArmsLaw
from holdfast.exact.parameters import Exact, exact_fraction, optional_integer, positive_fraction
from holdfast.exact.segments import check_reach, gaussian_arms, laplace_arms


class DiscreteLaplace(ArmsLaw):
    """The two-sided geometric law.

    Law:         P[X = k] proportional to exp(-|k| / scale + tilt k), lower <= k <= upper.
    Given:       scale > 0; |tilt| < 1/scale on a side without bound (checked). Without bounds and tilt the variance is
                 2 a / (1 - a)^2 with a = exp(-1/scale).
    Guarantees:  exact draws (docs/exact-numbers.md).
    Reference:   [CKS20]; called double geometric in [GM20].
    """

    def __init__(self, scale: Exact, *, lower: int | None = None, upper: int | None = None, tilt: Exact = 0) -> None:
        checked = positive_fraction(scale, "scale")
        self._build(checked, 1 / checked, lower, upper, tilt)

    @classmethod
    def of_rate(cls, rate: Exact, *, lower: int | None = None, upper: int | None = None, tilt: Exact = 0) -> Self:
        """The law of rate 1/scale: P[X = k] proportional to exp(-rate |k| + tilt k)."""
        checked = positive_fraction(rate, "rate")
        law = cls.__new__(cls)
        law._build(1 / checked, checked, lower, upper, tilt)
        return law

    def _build(self, scale: Fraction, rate: Fraction, lower: int | None, upper: int | None, tilt: Exact) -> None:
        self.scale = scale
        self.tilt = exact_fraction(tilt, "tilt")
        self.lower, self.upper = _bounds(lower, upper)
        arms = laplace_arms(rate + self.tilt, rate - self.tilt, self.lower, self.upper)
        check_reach(arms)
        super().__init__(arms, scale=self.scale, lower=self.lower, upper=self.upper, tilt=self.tilt or None)


class Geometric(ArmsLaw):
    """The one-sided law.

    Law:         P[X = k] proportional to exp(-k / scale), 0 <= k <= upper.
    Given:       scale > 0.
    Guarantees:  exact draws. Two independent ones differ by a discrete Laplace variable of the same scale.
    """

    def __init__(self, scale: Exact, *, upper: int | None = None) -> None:
        checked = positive_fraction(scale, "scale")
        self._build(checked, 1 / checked, upper)

    @classmethod
    def of_rate(cls, rate: Exact, *, upper: int | None = None) -> Self:
        """The law of rate 1/scale: P[X = k] proportional to exp(-rate k)."""
        checked = positive_fraction(rate, "rate")
        law = cls.__new__(cls)
        law._build(1 / checked, checked, upper)
        return law

    def _build(self, scale: Fraction, rate: Fraction, upper: int | None) -> None:
        self.scale = scale
        _, self.upper = _bounds(0, upper)
        arms = laplace_arms(rate, rate, 0, self.upper)
        check_reach(arms)
        super().__init__(arms, scale=self.scale, upper=self.upper)


class DiscreteGaussian(ArmsLaw):
    """The discrete Gaussian law.

    Law:         P[X = k] proportional to exp(-(k - center)^2 / (2 sigma_squared) + tilt k), lower <= k <= upper.
    Given:       sigma_squared > 0. sigma_squared is the law's parameter, an upper bound of its variance when center = 0.
                 A tilt only moves the centre, to center + sigma_squared tilt. A centre may also be an object with a `ball()` method
                 (a computable real) and a repr that names it.
    Guarantees:  exact draws (docs/exact-numbers.md).
    Reference:   [CKS20].
    """

    def __init__(
        self,
        sigma_squared: Exact,
        center: Exact | ComputableReal = 0,
        *,
        lower: int | None = None,
        upper: int | None = None,
        tilt: Exact = 0,
    ) -> None:
        self.sigma_squared = positive_fraction(sigma_squared, "sigma_squared")
        self.tilt = exact_fraction(tilt, "tilt")
        self.lower, self.upper = _bounds(lower, upper)
        self.center = _center(center)
        if isinstance(self.center, Fraction) and abs(self.center) >= 2**61:
            raise InvalidParameter("center must lie strictly between -2^61 and 2^61.")
        middle = affine(self.center, Fraction(1), self.sigma_squared * self.tilt)
        arms = gaussian_arms(self.sigma_squared, middle, self.lower, self.upper)
        check_reach(arms)
        super().__init__(
            arms, sigma_squared=self.sigma_squared, center=self.center or None, lower=self.lower, upper=self.upper, tilt=self.tilt or None
        )

    def variance_bounds(self) -> Enclosure:
        lower, upper = super().variance_bounds()
        whole = isinstance(self.center, Fraction) and self.center.denominator == 1
        if whole and not self.tilt and self.lower is None and self.upper is None:
            upper = min(upper, self.sigma_squared)  # [CKS20]: sub-Gaussian with proxy sigma, so the variance is at most its square
        return Enclosure(lower, upper)


def _center(center: Exact | ComputableReal) -> Real:
    if isinstance(center, int | str | Fraction) or not hasattr(center, "ball"):
        return exact_fraction(cast(Exact, center), "center")
    if type(center).__repr__ is object.__repr__:
        raise InvalidParameter(
            "A centre given as a computable real needs a __repr__ that names the number: it becomes part of the stream's label."
        )
    return center


def _bounds(lower: int | None, upper: int | None) -> tuple[int | None, int | None]:
    lower, upper = optional_integer(lower, "lower"), optional_integer(upper, "upper")
    if lower is not None and upper is not None and lower > upper:
        raise InvalidParameter(f"lower must not exceed upper. Got lower={lower}, upper={upper}.")
    return lower, upper
