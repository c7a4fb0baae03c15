"""Real-valued answers with linear invariants: noise in the null space of the invariants, for any query whose sensitivity is known.

Answers are released on a grid of multiples of a step, with noise that is exact on the lattice of moves in steps of the grid, for pairs with
the same invariants ([theory T110], [theory T111]). The paper's form in floating point is `holdfast.research.floating_answer`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, Self

from holdfast.channels import Channel, Facts
from holdfast.display import step_text
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.parameters import Exact
from holdfast.lattices.grid_rounding import movement
from holdfast.lattices.norms import L1, NORMS, Norm, NormName
from holdfast.laws import Gaussian, Rounded
from holdfast.mechanisms import keys
from holdfast.mechanisms.keys import InvalidKey
from holdfast.mechanisms.mechanism import Mechanism, promise, read_per
from holdfast.mechanisms.requests import check_choice
from holdfast.privacy.calibration import pair_sigma_squared
from holdfast.privacy.guarantee import Answers, AnswersNorm
from holdfast.privacy.parameters import DISTANCE, budget, ordinary, probability
from holdfast.tables.measure import MOST_DECIMALS, AnswerGrid

Calibration = Literal["analytic", "paper"]
_CALIBRATIONS = ("analytic", "paper")
_NO_DISTANCE = "answers have a sensitivity, and a budget for whoever moves them by that much"
_GRID_BY_PAIR = "on the grid the least noise proved for one person is taken, and no other calibration. Leave calibration out."


class SubspaceMechanism(Mechanism):
    """A mechanism of `hf.answer`. Its budget is for one person, who moves the answers by at most their sensitivity."""

    norm: ClassVar[NormName]
    """In which distance the sensitivity counts."""
    of_projection: ClassVar[bool] = False
    """Whether it is the sensitivity of the query's projection, where that is known."""
    takes_answers = is_unbiased = True
    per: str | None = None

    def answers(self, facts: Facts) -> Answers:
        """How far one person can move the answers on the grid; what does not fit together is refused."""
        grid = facts.measure.as_grid(f"{type(self).__name__} is for real-valued answers, whose sensitivity is known. Use hf.answer.")
        norm, sensitivity = NORMS[self.norm], grid.sensitivity(self.norm)
        moved = Fraction(0) if grid.on_grid else _rounding_distance(facts, norm)
        reach = _reach(grid, norm, sensitivity, moved)
        replacing = _whole_steps(grid, norm, sensitivity * 2**norm.power, moved) if grid.neighbours == "add-remove" else reach
        kind: AnswersNorm = "l1" if norm is L1 else "l2 squared"
        return Answers(grid.step, kind, sensitivity, reach, replacing, grid.on_grid, grid.neighbours)


def _rounding_distance(facts: Facts, norm: Norm) -> Fraction:
    """What rounding to the grid can add to a distance, in steps and squared for l2."""
    found = movement(facts.lattice)
    return found.l1 if norm is L1 else found.l2_squared


def _reach(grid: AnswerGrid, norm: Norm, sensitivity: Fraction, moved: Fraction) -> int:
    """How far apart two neighbours with the same invariants are on the grid, in steps and squared for l2 ([theory T110])."""
    steps = sensitivity / grid.step**norm.power
    if moved > steps:
        finer = _finer(grid, norm, moved / steps)
        raise InvalidParameter(
            f"A grid of steps of {grid.step_text} is too coarse: rounding the answers to it can move them farther than one person "
            f"can. {finer}, or on_grid where the answers of every data set are multiples of the step.",
            field="step",
        )
    reach = _whole_steps(grid, norm, sensitivity, moved)
    if reach < 1:
        raise InvalidParameter(
            f"The sensitivity is less than one step of the grid, {grid.step_text}: no person could change an answer. Use a smaller step.",
            field="step",
        )
    return reach


def _whole_steps(grid: AnswerGrid, norm: Norm, apart: Fraction, moved: Fraction) -> int:
    """How far apart two answers are on the grid that are so far apart before.

    Both lie on the grid, so that the distance is a whole number: the part of a step that the bound has beyond it is never reached.
    """
    steps = apart / grid.step**norm.power
    found = math.floor(steps + moved) if norm is L1 else _floor_of_sum(steps, moved)
    if found >= 2**62:
        raise RequestTooLarge(
            f"The sensitivity is too large for steps of {grid.step_text}: {'' if norm is L1 else 'the square of '}their number must "
            "be below 2^62. Use a larger step, or give the answers in a larger unit.",
            field="sensitivity",
        )
    return found


def _finer(grid: AnswerGrid, norm: Norm, excess: Fraction) -> str:
    """Advice: a power of ten as step, with which rounding moves answers by at most a tenth of the sensitivity."""
    needed = (grid.step / 10) ** norm.power / excess
    steps = (Fraction(1, 10**k) for k in range(MOST_DECIMALS + 1))
    step = next((step for step in steps if step**norm.power <= needed), None)
    if step is None:
        return "No step is small enough: multiply answers and sensitivity by a constant, such as 1000"
    return f'Write step = "{step_text(step)}"'


def _floor_of_sum(one: Fraction, other: Fraction) -> int:
    """The whole part of (sqrt(one) + sqrt(other))^2 = one + other + sqrt(4 one other), exactly."""
    whole, square = one + other, 4 * one * other
    n = math.floor(whole) + math.isqrt(math.floor(square)) + 2
    while n > whole and (n - whole) ** 2 > square:
        n -= 1
    return n


def _read_protected(per: str | None) -> str | None:
    """The argument `per`; raise InvalidParameter for "distance"."""
    if per == DISTANCE:
        raise InvalidParameter(f"per='distance': {_NO_DISTANCE}. Leave per out.", field="per")
    return read_per(per)


def _check_key(per: str | None) -> str | None:
    if per == DISTANCE:
        raise InvalidKey("per", f'{_NO_DISTANCE}. Write per = "person", or what the file protects.')
    return per


@dataclass(frozen=True, init=False, repr=False)
class _Laplace(SubspaceMechanism):
    """Laplace noise: one epsilon."""

    epsilon: Fraction
    per: str | None
    norm = "l1"
    has_long_tails = True
    run_file_keys = (keys.Key("epsilon", keys.budget, '"0.25"', required=True),)

    def __init__(self, *, epsilon: Exact, per: str | None = None) -> None:
        self._set(epsilon=ordinary(budget(epsilon, "epsilon"), "epsilon"), per=_read_protected(per))

    @classmethod
    def from_run_file(cls, values: Mapping[str, object], per: str | None) -> Self:
        return super().from_run_file(values, _check_key(per))

    def make_channel(self, facts: Facts) -> Channel:
        answers = self.answers(facts)
        rate = self.epsilon / answers.reach
        return Channel(facts, Rounded(rate), promise(facts, "pure", "l1", answers=answers, epsilon=rate))


class ProjectedLaplace(_Laplace):
    """Independent Laplace noise, projected on the null space of the invariants.

    Given:       epsilon for one person, who moves the answers by at most their l1 sensitivity.
    Guarantees:  pure. On the grid: rounded projection at epsilon over the reach in steps, for pairs with the same invariants. Its mean is
                 the answers as brought to the grid, whose invariants it keeps. In floating point: [GGY22] Theorem 3.1, for research.
    Reference:   [GGY22] Theorem 3.1; [theory R10], [theory T111].
    """

    name = "projected-laplace"


class ExtendedLaplace(_Laplace):
    """Laplace noise for the free part of the answers, extended to all of them.

    Given:       epsilon for one person.
    Guarantees:  pure. On the grid this is the law of ProjectedLaplace: a basis of the null space that is orthonormal has no rational
                 coordinates. In floating point: [GGY22] Theorem 3.3, with the l1 sensitivity of the coordinates in a recorded basis.
    Reference:   [GGY22] Theorem 3.3; [theory R10], [theory T111].
    """

    name = "extended-laplace"


@dataclass(frozen=True, init=False, repr=False)
class _Gaussian(SubspaceMechanism):
    """Gaussian noise: epsilon with delta, or rho."""

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    calibration: Calibration
    per: str | None
    norm = "l2"
    run_file_keys = (
        keys.Key("rho", keys.budget, '"1/10"'),
        keys.Key("epsilon", keys.budget, '"0.25"'),
        keys.delta_key("projected-laplace"),
    )

    def __init__(
        self,
        *,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        rho: Exact | None = None,
        calibration: Calibration = "analytic",
        per: str | None = None,
    ) -> None:
        if (epsilon is None) is not (delta is None) or (epsilon is None) is (rho is None):
            raise InvalidParameter("A Gaussian takes epsilon with delta, or rho. Give one of the two.")
        self._set(
            epsilon=None if epsilon is None else ordinary(budget(epsilon, "epsilon"), "epsilon"),
            delta=None if delta is None else ordinary(probability(delta, "delta"), "delta"),
            rho=None if rho is None else ordinary(budget(rho, "rho"), "rho"),
            calibration=check_choice(calibration, _CALIBRATIONS, "calibration"),
            per=_read_protected(per),
        )

    @classmethod
    def from_run_file(cls, values: Mapping[str, object], per: str | None) -> Self:
        given = {name for name in ("rho", "epsilon", "delta") if name in values}
        if given not in ({"rho"}, {"epsilon", "delta"}):
            wrong = "rho" if "rho" in given or not given else "delta" if "epsilon" in given else "epsilon"
            raise InvalidKey(wrong, "a Gaussian takes epsilon with delta, or rho. Give one of the two.")
        numbers = {name: values.get(name) for name in ("rho", "epsilon", "delta")}
        return cls._from_checked(**numbers, calibration="analytic", per=_check_key(per))

    def make_channel(self, facts: Facts) -> Channel:
        answers = self.answers(facts)
        if self.calibration != "analytic":
            raise InvalidParameter(f"calibration={self.calibration!r}: {_GRID_BY_PAIR}")
        if self.rho is not None:
            sigma_squared = answers.reach / (2 * self.rho)
        else:
            assert self.epsilon is not None
            assert self.delta is not None
            sigma_squared = pair_sigma_squared(self.epsilon, self.delta, distance_squared=answers.reach)
        made = promise(facts, "zcdp", "l2", answers=answers, rho=1 / (2 * sigma_squared))
        return Channel(facts, Gaussian(sigma_squared), made)


class ProjectedGaussian(_Gaussian):
    """Independent Gaussian noise, projected on the null space of the invariants.

    Given:       epsilon with delta, or rho, for one person, who moves the answers by at most their l2 sensitivity.
    Guarantees:  on the grid: the Gaussian on the lattice of moves, zCDP for pairs with the same invariants, and (epsilon, delta) by
                 Proposition 7 of [CKS20], proved for the noise taken. Its mean is the answers as brought to the grid, whose invariants it
                 keeps. In floating point: [GGY22] Theorem 3.1 with analytic calibration, for research; `calibration="paper"` takes the
                 paper's constant, and checks it.
    Reference:   [GGY22] Theorem 3.1; [theory R7], [theory T111].
    """

    name = "projected-gaussian"


class ExtendedGaussian(_Gaussian):
    """Gaussian noise for the free part of the answers, extended to all of them.

    Given:       as for ProjectedGaussian; where the sensitivity of the projected answers is given, which is never larger, it is that. Of a
                 query matrix both take that of neighbours with the same invariants.
    Guarantees:  as for ProjectedGaussian. With one sensitivity the two have one law.
    Reference:   [GGY22] Theorem 3.3 and Corollary 3.6; [theory R7], [theory T111].
    """

    name = "extended-gaussian"
    of_projection = True
