"""What a reader may come to believe: posterior against prior, for each pair of tables that the promise covers.

For a secret pair. Let x and x' be two tables with the same kept totals at cost epsilon. Whatever the reader believed before, and whatever
is published, Bayes' rule multiplies the odds of x against x' by P[output | x] / P[output | x'], which is between e^-epsilon and e^epsilon.
Nothing else is assumed. If the reader is left with just these two, a prior probability p of x becomes one between

    p / (p + (1 - p) e^epsilon)    and    p e^epsilon / (p e^epsilon + 1 - p).

For one person. Theorem 1.3 of [GM20] says more: the posterior probability that person i has value w is between e^-epsilon and e^epsilon
times the prior. Its proof compares P[output | x_i = w] with P[output | x_i = w']. These average over what the reader believes about the
others, so it NEEDS that the prior holds x_i independent of the rest: then both averages are over the same tables, pairs at cost epsilon.

It fails without. Twenty people who are known to be equal, and a count published with epsilon = 1/4 for each person: "person 1 has it" is
the same as "all twenty have it", two tables at cost 20/4 = 5, and .5 becomes .993. Kept totals make people dependent in the same way: the
smallest change of a 2 x 2 table with rows and columns kept moves four cells, and the odds by e^(4 epsilon). So statements here are made for
pairs.
"""

from __future__ import annotations

from fractions import Fraction

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import Enclosure, ball, enclosure, float_up, precision
from holdfast.exact.parameters import Exact
from holdfast.privacy.guarantee import Promise
from holdfast.privacy.parameters import at_least_one, not_negative, probability

BITS = 256


def posterior_bound(prior: Exact, promise: Promise | Exact) -> Enclosure:
    """Between which probabilities the belief in one table of a secret pair lies after the release.

    Given:       prior: the belief, before, that it is this table and not the other, between 0 and 1. A pure promise for the pair, or its
                 epsilon, exact.
    Guarantees:  for every output; both ends rounded outwards. A promise with a delta bounds no posterior (with probability delta anything
                 may be revealed) and is refused.
    Reference:   Bayes' rule; module docstring.
    """
    p, epsilon = probability(prior, "prior"), pure_epsilon(promise)
    with precision(BITS):
        odds = ball(p / (1 - p))
        low, high = odds * (-ball(epsilon)).exp(), odds * ball(epsilon).exp()
        lower = enclosure(low / (1 + low)).lower
        upper = enclosure(1 / (1 + 1 / high)).upper
    return Enclosure(max(lower, Fraction(0)), min(upper, Fraction(1)))


def posterior_bound_if_independent(prior: Exact, epsilon: Exact) -> Enclosure:
    """[e^-epsilon prior, e^epsilon prior], at most 1: Theorem 1.3, for one person's value.

    Given:       that under the prior this person's value is INDEPENDENT of everyone else's, with no kept total that ties them; epsilon as
                 promised between any two tables that differ in this person alone. Without independence this is no bound: see
                 `equal_people_posterior`.
    Reference:   [GM20] Theorem 1.3.
    """
    p, cost = probability(prior, "prior"), not_negative(epsilon, "epsilon")
    with precision(BITS):
        lower, upper = enclosure(ball(p) * (-ball(cost)).exp()).lower, enclosure(ball(p) * ball(cost).exp()).upper
    return Enclosure(lower, min(upper, Fraction(1)))


def equal_people_posterior(people: int, epsilon: Exact, prior: Exact = "1/2") -> Enclosure:
    """The counter-example: people known to be equal, all or none with a trait, and their number published with discrete Laplace noise.

    Law:         noise exp(-epsilon |z|), which is epsilon-differentially private for one person. An output of `people` or more has
                 likelihoods in the ratio e^(people epsilon).
    Guarantees:  encloses the posterior probability that person 1 has the trait, given such an output: far above e^epsilon prior.
    """
    count, cost, p = at_least_one(people, "people"), not_negative(epsilon, "epsilon"), probability(prior, "prior")
    with precision(BITS):
        return enclosure(1 / (1 + ball((1 - p) / p) * (-count * ball(cost)).exp()))


def pure_epsilon(promise: Promise | Exact) -> Fraction:
    """The epsilon of a pure promise; any other promise is refused."""
    if not isinstance(promise, Promise):
        return not_negative(promise, "epsilon")
    if promise.kind != "pure":
        raise InvalidParameter(
            f"A posterior is bounded by a pure promise only. This one is of kind {promise.kind!r}: with a small probability anything may "
            "be revealed. State its epsilon and delta instead."
        )
    return promise.epsilon if isinstance(promise.epsilon, Fraction) else Fraction(float_up(Fraction(promise.epsilon)))
