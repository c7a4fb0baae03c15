"""An attacker who looks at the low-order bits of one published answer ([theory T122]).

Three answers with their total kept; one person is counted in the first or in the second: (0, 1, 0) or (1, 0, 0), a fair coin. The attacker
sorts the first published answer by its binary exponent and by its lowest bit that is set, learns from trials of which it knows the truth
which class tells, and speaks only where at least nine of ten training cases of a class agreed. Under pure epsilon no guess is right with a
probability above e^epsilon / (1 + e^epsilon), given that it is made: whatever it looks at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

import holdfast as hf
from holdfast.channels import Facts, Law
from holdfast.randomness import NoiseKey
from holdfast.research.subspace import Query, floating_form
from holdfast.research.subspace.spaces import InvariantSpace
from holdfast.subspace import Sensitivities
from holdfast.tables.measure import AnswerGrid

EPSILON = 1
PLACES = 10
ANSWERS = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
FEWEST, SURE = 20, 0.9
"""Training cases of a class from which the attacker dares, and how many of them must agree."""
ALLOWED = math.exp(EPSILON) / (1 + math.exp(EPSILON))

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Attack:
    """How often the attacker spoke on fresh trials, and how often it was right."""

    spoken: int
    right: int

    @property
    def p_value(self) -> float:
        """The probability of so many right guesses or more, at most, where the promise holds."""
        from scipy.stats import binom

        return float(binom.sf(self.right - 1, self.spoken, ALLOWED)) if self.spoken else 1.0


def floating(secrets: NDArray[np.int64], seed: int) -> Floats:
    """What projected Laplace noise publishes in floating point, one row a trial."""
    query = Query(InvariantSpace([[1, 1, 1]]), Sensitivities(l1=Fraction(2)))
    law = floating_form(hf.ProjectedLaplace(epsilon=EPSILON), query)
    return ANSWERS[secrets] + law.answers(np.zeros(3), len(secrets), np.random.default_rng(seed))


def on_the_grid(secrets: NDArray[np.int64], seed: int) -> Floats:
    """The same on a grid: whole steps of 2^-10, which doubles hold exactly."""
    universe = hf.Universe.product({"answer": ["1", "2", "3"]})
    facts = replace(Facts.of(universe, [hf.total()]), measure=AnswerGrid(PLACES, l1=Fraction(2), on_grid=True))
    with NoiseKey.for_tests(seed) as key:
        noise = Law(hf.ProjectedLaplace(epsilon=EPSILON).channel(facts)).sample(len(secrets), key)
    return np.asarray(np.ldexp(ANSWERS[secrets] * 2**PLACES + noise, -PLACES))


def classes(answers: Floats) -> NDArray[np.int64]:
    """The class of each answer: its exponent and that of its lowest bit, both in bounds."""
    mantissa, exponent = np.frexp(answers)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.where(whole == 0, 0, exponent - 53 + np.log2(np.maximum(whole & -whole, 1)))
    return np.asarray(np.clip(exponent, -8, 8) * 256 + np.clip(lowest, -60, 20), dtype=np.int64)


def attack(published: Floats, secrets: NDArray[np.int64], sure: float = SURE) -> Attack:
    """Learn on the first half of the trials, guess on the second."""
    half = len(secrets) // 2
    seen = classes(published[:, 0])
    share = {}
    for own in np.unique(seen[:half]):
        cases = secrets[:half][seen[:half] == own]
        if len(cases) >= FEWEST and max(cases.mean(), 1 - cases.mean()) >= sure:
            share[int(own)] = int(cases.mean() > 0.5)
    guesses = [(share[int(own)], int(truth)) for own, truth in zip(seen[half:], secrets[half:], strict=True) if int(own) in share]
    return Attack(len(guesses), sum(guess == truth for guess, truth in guesses))
