"""The law of largest entropy on finitely many integers under mean, variance and order constraints, by its convex dual.

Every constraint is written as E[T_a(Z)] = 0 or E[T_a(Z)] >= 0. The solution has the form p(v) proportional to exp(sum_a lambda_a T_a(v))
with lambda_a >= 0 for inequalities, and lambda_a = 0 where an inequality is not tight [theory T85]. The multipliers minimise a smooth
convex function. Newton steps in doubles find which constraints are tight; then the multipliers are refined at 256 bits, and what is
claimed of them is checked by balls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, arb_mat
from numpy.typing import NDArray

from holdfast.cellkey.noise import NoiseLaw
from holdfast.exact.balls import ball, enclosure, precision

TOLERANCE = Fraction(1, 1 << 150)
"""Tight constraints hold to this, proved. Where only a law with zero probabilities solves the problem, the steps do not get there."""
SLACK = Fraction(1, 10**12)
"""Other inequalities hold to this, proved."""

_BITS = 256
_NEWTON_STEPS = 1000
_REFINEMENTS = 30
_LARGEST_MULTIPLIER = 1e4
_RIDGE = 1e-11
_LONGEST_STEP = 8.0
_SETTLED = Fraction(1, 1 << 200)
_CUT = Fraction(1, 1 << 200)
"""Multipliers cut to 256 bits change probabilities by far less than this. No figure rests on it: only where a table's bounds round."""
_CLOSE = 1e-11


@dataclass(frozen=True)
class MomentConstraint:
    """E[T(Z)] = 0, or >= 0 where it is an inequality: `values` are T at each noise value, exact."""

    name: str
    values: tuple[Fraction, ...]
    is_equality: bool = False


@dataclass(frozen=True)
class Optimum:
    """The law found, with what proves it.

    Fields:      `multipliers`: by name, of the tight constraints. `residual`: bound of |E[T]| over tight constraints. `slack`: the smallest
                 E[T] over the other inequalities. `gap`: no law that keeps the constraints has an entropy larger by more than this.
    """

    law: NoiseLaw
    multipliers: Mapping[str, Fraction]
    residual: Fraction
    slack: Fraction | None
    gap: Fraction


def largest_entropy(noise: Sequence[int], constraints: Sequence[MomentConstraint], count: int) -> Optimum | None:
    """The law of largest entropy that keeps the constraints; None where none was found with all probabilities above zero.

    Guarantees:  what is returned was checked by balls: tight constraints to TOLERANCE, other inequalities to SLACK, multipliers of
                 inequalities zero or more.
    """
    features = np.array([[float(value) for value in constraint.values] for constraint in constraints])
    is_equality = np.array([constraint.is_equality for constraint in constraints])
    multipliers = _minimum_of_dual(features, is_equality)
    if multipliers is None:
        return None
    tight = [a for a in range(len(constraints)) if is_equality[a] or multipliers[a] > 0]
    return _certify_optimum(noise, constraints, tight, multipliers[tight], count)


def _minimum_of_dual(features: NDArray[np.float64], is_equality: NDArray[np.bool_]) -> NDArray[np.float64] | None:
    """The multipliers that minimise log sum_v exp(sum_a lambda_a T_a(v)), those of inequalities zero or more; None without a minimum.

    Newton steps on the multipliers that are free to move, projected onto zero or more, with halving until the function falls enough. A
    multiplier is held at zero where it is zero and its constraint holds with room: moving it up would not help.
    """
    multipliers = np.zeros(len(features))
    chances, value = _chances(features, multipliers)
    close = _CLOSE * np.max(np.abs(features), axis=1)
    for _ in range(_NEWTON_STEPS):
        gradient = features @ chances
        free = is_equality | (multipliers > 0) | (gradient < -close)
        if np.all(np.abs(gradient[free]) <= close[free]):
            return multipliers
        centred = features[free] - gradient[free, None]
        hessian = (centred * chances) @ centred.T
        scale = 1 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
        step = np.zeros(len(features))
        # The ridge lets a step leave along a direction in which the function is linear; projection then ends it at zero.
        with np.errstate(over="ignore", invalid="ignore"):
            step[free] = -scale * np.linalg.solve(hessian * np.outer(scale, scale) + _RIDGE * np.eye(len(scale)), scale * gradient[free])
            change = step @ features
        if not np.all(np.isfinite(change)):  # all probability lies on one value, and the constraints still do not hold: no minimum
            return None
        size = min(1.0, _LONGEST_STEP / max(float(np.ptp(change)), 1e-300))  # beyond it the quadratic model is worthless
        while True:
            moved = multipliers + size * step
            moved = np.where(is_equality, moved, np.maximum(moved, 0.0))
            trial, trial_value = _chances(features, moved)
            if trial_value <= value + 1e-4 * float(gradient @ (moved - multipliers)) + 1e-15 or size < 1e-12:
                break
            size /= 2
        multipliers, chances, value = moved, trial, trial_value
        if np.max(np.abs(multipliers)) > _LARGEST_MULTIPLIER:
            return None
    return None


def _chances(features: NDArray[np.float64], multipliers: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    exponents = multipliers @ features
    top = float(exponents.max())
    weights = np.exp(exponents - top)
    total = float(weights.sum())
    return weights / total, top + float(np.log(total))


def _certify_optimum(
    noise: Sequence[int], constraints: Sequence[MomentConstraint], tight: Sequence[int], start: NDArray[np.float64], count: int
) -> Optimum | None:
    multipliers = _refine_multipliers([constraints[a] for a in tight], start)
    if multipliers is None:
        return None
    exponents = [_dot(multipliers, [constraints[a].values[k] for a in tight]) for k in range(len(noise))]
    law = NoiseLaw(noise, exponents, count=count, tolerance=_CUT)
    with precision(_BITS):
        chances = law.balls()
        means = [enclosure(_mean(constraint.values, chances)) for constraint in constraints]
    residuals = {a: max(abs(means[a].lower), abs(means[a].upper)) for a in tight}
    slacks = [means[a].lower for a in range(len(constraints)) if a not in tight]
    signs = [factor for a, factor in zip(tight, multipliers, strict=True) if not constraints[a].is_equality]
    if max(residuals.values()) > TOLERANCE or min(slacks, default=Fraction(0)) < -SLACK or min(signs, default=Fraction(0)) < 0:
        return None
    gap = sum((abs(factor) * residuals[a] for a, factor in zip(tight, multipliers, strict=True)), Fraction(0))
    names = {constraints[a].name: factor for a, factor in zip(tight, multipliers, strict=True)}
    return Optimum(law, names, max(residuals.values()), min(slacks, default=None), gap)


def _refine_multipliers(tight: Sequence[MomentConstraint], start: NDArray[np.float64]) -> list[Fraction] | None:
    """The multipliers to about 200 bits, as exact dyadic numbers; None where the equations are singular."""
    multipliers = [Fraction(float(value)) for value in start]
    columns = list(zip(*(constraint.values for constraint in tight), strict=True))
    for _ in range(_REFINEMENTS):
        with precision(2 * _BITS):
            weights = [ball(_dot(multipliers, column)).exp() for column in columns]
            total = sum(weights[1:], weights[0])
            chances = [weight / total for weight in weights]
            means = [_mean(constraint.values, chances) for constraint in tight]
            covariance = [
                [_mean(_products(a, b), chances) - x * y for b, y in zip(tight, means, strict=True)]
                for a, x in zip(tight, means, strict=True)
            ]
            try:
                step = arb_mat(covariance).solve(arb_mat([[mean] for mean in means]))
            except ZeroDivisionError:
                return None
            moved = [enclosure(ball(factor) - step[i, 0]) for i, factor in enumerate(multipliers)]
        before, multipliers = multipliers, [Fraction(round((low + high) / 2 * (1 << _BITS)), 1 << _BITS) for low, high in moved]
        if max(abs(new - old) for new, old in zip(multipliers, before, strict=True)) < _SETTLED:
            return multipliers
    return None


def _dot(multipliers: Sequence[Fraction], values: Sequence[Fraction]) -> Fraction:
    return sum((factor * value for factor, value in zip(multipliers, values, strict=True)), Fraction(0))


def _products(one: MomentConstraint, other: MomentConstraint) -> list[Fraction]:
    return [a * b for a, b in zip(one.values, other.values, strict=True)]


def _mean(values: Sequence[Fraction], chances: Sequence[arb]) -> arb:
    total = arb(0)
    for value, chance in zip(values, chances, strict=True):
        total += ball(value) * chance
    return total
