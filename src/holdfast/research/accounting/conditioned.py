"""What conditioning costs on a finite space: the largest log ratio of conditioned laws over all pairs of conforming data sets.

A mechanism M answers a query on a data set x by an output y with weight w(q(x), y). Conditioned on the outputs that conforming data sets
can have, it is M*(x) with P[M*(x) = y] = w(q(x), y) / Z(q(x)), Z the sum over these outputs. For a pair at distance k the paper writes the
largest log ratio as (1 + gamma) k epsilon ([GM20] Theorem 2.1). Its formula (2.5) for gamma looks at the normalisers alone and cannot be
negative; here the whole log ratio is maximised, output by output, so gamma may lie anywhere between -1 and 1. [theory R12], [theory T77]
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from flint import arb

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import Enclosure, Real, ball, enclosure, precision
from holdfast.exact.parameters import Exact
from holdfast.privacy.parameters import at_least_one, budget

BITS = 128

Data = TypeVar("Data", bound=Hashable)
Answer = TypeVar("Answer", bound=Hashable)


@dataclass(frozen=True)
class ConditionedLoss(Generic[Data, Answer]):
    """The pair of conforming data sets, and the output, with the largest log ratio per unit of distance.

    loss: that log ratio, enclosed: `upper` bounds every pair and output, `lower` is reached by this one. distance: of the pair.
    """

    loss: Enclosure
    distance: int
    pair: tuple[Data, Data]
    output: Answer

    @property
    def per_distance(self) -> Enclosure:
        return Enclosure(self.loss.lower / self.distance, self.loss.upper / self.distance)

    def gamma(self, epsilon: Exact, distance: int | None = None) -> Enclosure:
        """gamma with loss = (1 + gamma) k epsilon: k is the pair's distance, or how far someone else counts it."""
        nominal = budget(epsilon, "epsilon") * (self.distance if distance is None else at_least_one(distance, "distance"))
        return Enclosure(self.loss.lower / nominal - 1, self.loss.upper / nominal - 1)


def conditioned_loss(
    data_sets: Iterable[Data],
    *,
    distance: Callable[[Data, Data], int],
    query: Callable[[Data], Answer],
    conforms: Callable[[Data], bool],
    weight: Callable[[Answer, Answer], Real | arb | int],
    outputs: Iterable[Answer] | None = None,
    normaliser: Callable[[Answer], Real | arb] | None = None,
    nearest: bool = False,
) -> ConditionedLoss[Data, Answer] | None:
    """The largest log ratio per unit of distance of a mechanism conditioned on what conforming data sets can answer.

    Given:       a finite space of data sets; a distance, a whole number above 0 for different data sets; `weight(answer, output)`, zero
                 or more, of the mechanism before conditioning, up to a factor that depends on the answer alone: a rational, or a ball at
                 flint's precision. `outputs`: those conditioned on; None for the answers of all conforming data sets. `normaliser`: where
                 the outputs go on without end, the sum of weights over all of them; then `outputs` are those that are compared.
    Guarantees:  `loss.upper` / `distance` bounds log P[M*(x) = y] / P[M*(x') = y] per unit of distance, for every conforming pair (with
                 nearest=True: of the smallest distance there is) and every output listed. Certified. None where no two data sets
                 conform: the neighbourhood is destroyed, and there is nothing to promise.
    Reference:   [GM20] Theorem 2.1 and section 5.1; [theory R12], [theory T77]
    """
    conforming = [x for x in dict.fromkeys(data_sets) if conforms(x)]
    answers = {x: query(x) for x in conforming}
    listed = list(dict.fromkeys(answers.values() if outputs is None else outputs))
    pairs = [(distance(x, other), x, other) for x in conforming for other in conforming if x != other]
    if not pairs:
        return None
    if min(k for k, _, _ in pairs) < 1:
        raise InvalidParameter("Two different data sets have a distance below 1. Distances are whole numbers, 1 or more.")
    smallest = min(k for k, _, _ in pairs)
    with precision(BITS):
        logs = {answer: _log_law(answer, listed, weight, normaliser) for answer in dict.fromkeys(answers.values())}
        losses = {(one, two): _largest(logs[one], logs[two]) for one in logs for two in logs if one != two}
    best: ConditionedLoss[Data, Answer] | None = None
    upper = Fraction(-1)
    for k, x, other in pairs:
        if nearest and k > smallest:
            continue
        found, place = (Enclosure(Fraction(0), Fraction(0)), 0) if answers[x] == answers[other] else losses[answers[x], answers[other]]
        upper = max(upper, found.upper / k)
        if best is None or found.lower / k > best.per_distance.lower:
            best = ConditionedLoss(found, k, (x, other), listed[place])
    assert best is not None
    return ConditionedLoss(Enclosure(best.loss.lower, max(best.loss.upper, upper * best.distance)), best.distance, best.pair, best.output)


def laplace_weight(rate: Exact) -> Callable[[tuple[int, ...], tuple[int, ...]], arb]:
    """exp(-rate |y - answer|_1), the double geometric mechanism before conditioning."""
    exact = budget(rate, "rate")
    return lambda answer, output: (-ball(exact) * sum(abs(a - b) for a, b in zip(answer, output, strict=True))).exp()


def gaussian_weight(sigma_squared: Exact) -> Callable[[tuple[int, ...], tuple[int, ...]], arb]:
    """exp(-|y - answer|_2^2 / (2 sigma_squared))."""
    exact = budget(sigma_squared, "sigma_squared")
    return lambda answer, output: (-ball(1 / (2 * exact)) * sum((a - b) ** 2 for a, b in zip(answer, output, strict=True))).exp()


def l1(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """The l1 distance of two tables."""
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


def paper_examples(epsilon: Exact) -> dict[str, Enclosure]:
    """gamma of the three examples of [GM20] section 5.1, by `conditioned_loss`.

    5.1   No restriction: ten people with or without a trait, their number published. 0.
    5.2   The number of groups of ten is published, and it is mandated that 41 to 50 people have the trait: one output is left. -1.
    4.1   A histogram of two bins, the total kept, rate epsilon / 2 in each cell. One person who changes bin moves the table by 2 in l1 and
          changes the odds by e^epsilon. The paper counts two records at the nominal epsilon: -1/2 ("4.1 as the paper counts"). Per unit of
          l1 distance, where the nominal rate is epsilon / 2: 0 ("4.1 per unit of distance").

    Guarantees:  each enclosed in less than 2^-100 for a budget of ordinary size. In 5.1 and 4.1 outputs go on without end: the normaliser
                 is the same for all data sets; outputs between the answers and one beyond are compared, and further out ratios stay equal.
    """
    cost = budget(epsilon, "epsilon")

    def same_for_all(_: tuple[int, ...]) -> Fraction:
        return Fraction(1)

    trivial = conditioned_loss(
        [(k,) for k in range(11)],
        distance=l1,
        query=lambda x: x,
        conforms=lambda _: True,
        weight=laplace_weight(cost),
        outputs=[(k,) for k in range(-1, 12)],
        normaliser=same_for_all,
    )
    # Data sets by how many people have the trait; vectors with equal numbers have equal laws.
    rounding = conditioned_loss(
        [(k,) for k in range(61)],
        distance=l1,
        query=lambda x: (-(-x[0] // 10),),
        conforms=lambda x: 41 <= x[0] <= 50,
        weight=laplace_weight(cost),
    )
    people = 6
    two_bins = conditioned_loss(
        [(k, people - k) for k in range(people + 1)],
        distance=l1,
        query=lambda x: x,
        conforms=lambda _: True,
        weight=laplace_weight(cost / 2),
        outputs=[(k, people - k) for k in range(-1, people + 2)],
        normaliser=same_for_all,
        nearest=True,
    )
    assert trivial is not None
    assert rounding is not None
    assert two_bins is not None
    return {
        "5.1": trivial.gamma(cost),
        "5.2": rounding.gamma(cost),
        "4.1 as the paper counts": two_bins.gamma(cost, distance=2),
        "4.1 per unit of distance": two_bins.gamma(cost / 2),
    }


def _log_law(
    answer: Answer,
    outputs: list[Answer],
    weight: Callable[[Answer, Answer], Real | arb | int],
    normaliser: Callable[[Answer], Real | arb] | None,
) -> list[arb | None]:
    """log P[M* = y] for each output; None where the probability is zero."""
    weights = [_as_ball(weight(answer, output)) for output in outputs]
    if any(w < 0 or not w.is_finite() or (w.contains(0) and w != 0) for w in weights):
        raise InvalidParameter("A weight is below zero, or is not known to be above it. Give exact weights of zero or more.")
    total = sum(weights, arb(0)) if normaliser is None else _as_ball(normaliser(answer))
    if not total > 0:
        raise InvalidParameter("A conforming data set has no output of positive weight to be conditioned on.")
    return [None if w == 0 else (w / total).log() for w in weights]


def _as_ball(value: Real | arb | int) -> arb:
    return value if isinstance(value, arb) else ball(value)


def _largest(one: list[arb | None], two: list[arb | None]) -> tuple[Enclosure, int]:
    """(the largest difference of logarithms over outputs, the place where it is found)."""
    found: list[tuple[Enclosure, int]] = []
    for place, (here, there) in enumerate(zip(one, two, strict=True)):
        if here is None:
            continue
        if there is None:
            raise InvalidParameter("An output is possible for one conforming data set and not for another: no finite loss bounds the pair.")
        found.append((enclosure(here - there), place))
    best, place = max(found, key=lambda item: item[0].lower)
    return Enclosure(best.lower, max(item.upper for item, _ in found)), place
