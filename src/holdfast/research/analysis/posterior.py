"""What a reader of a release can ask: `posterior(release, prior, query)`, what the published files say about a sum of true counts under a
stated prior; and `simulate(release, n)`, what other releases could have looked like.

A reader has the published counts and the public law they were drawn from (`Published`), and nothing else is read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holdfast.accuracy.queries import Query, coefficients
from holdfast.accuracy.simulated import Simulated, simulated_errors
from holdfast.channels.drawing import Drawing
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.law import check_memory
from holdfast.exact.parameters import sample_size
from holdfast.laws import ConditionalGaussian, ConditionalLaplace, Reads
from holdfast.publication.plan import Plan
from holdfast.publication.publication import Publication
from holdfast.randomness import NoiseKey
from holdfast.research.analysis.blocks import Read, block_posterior, check_posterior
from holdfast.research.analysis.conditioned import conditioned_posterior
from holdfast.research.analysis.priors import Prior, check_prior
from holdfast.research.analysis.tables import BlockPosterior, Floats, Ints, Method, Numbers
from holdfast.samplers.protocol import InputSampler
from holdfast.tables import Universe
from holdfast.verification.verify import load

Source = Publication | str | os.PathLike[str]
"""A release, a loaded one, or the folder it was saved in."""

ROUNDING = 1e-9
"""What rounding and tables left out may change in any probability, where nothing is drawn."""
MAX_VALUES = 1 << 22
DRAWS = 4_000


@dataclass(frozen=True, eq=False)
class Published:
    """Released counts, and the plan that says their law. Nothing confidential."""

    universe: Universe
    counts: Ints
    plan: Plan

    def check_counts(self) -> None:
        """Refuse real-valued answers where a prior of counts is asked for."""
        self.plan.facts.measure.check_counts("These are real-valued answers, and priors are of counts. release.interval needs no prior.")

    @property
    def drawing(self) -> Drawing:
        return self.plan.drawing


def readable(source: Source, signer: str | os.PathLike[str] | None = None) -> Publication:
    """A publication, or its folder, which is verified first. `signer`: the public key that must have signed the folder's card."""
    if not isinstance(source, str | os.PathLike | Publication):
        raise InvalidParameter(f"Give a release, or the folder it was saved in. Got {type(source).__name__}.")
    if not isinstance(source, Publication):
        return load(source, signer=signer)
    if signer is not None:
        raise InvalidParameter("A signature is checked when a folder is read. Give the folder, or load it with signer=.", field="signer")
    return source


def read_published(source: Source, signer: str | os.PathLike[str] | None = None) -> Published:
    """As `readable`; refused where there is nothing to infer from."""
    again = readable(source, signer)
    found = Published(again.table.universe, again.table.counts, again.plan)
    target = found.drawing.channel.target
    if not target.publishes_cells:
        raise InvalidParameter("This release publishes no cells, only totals: they are exact, and there is nothing to infer from.")
    if target.reads is Reads.CELL_KEYS:
        raise InvalidParameter("This release looked its noise up by keys: it has no law from which a posterior follows.")
    return found


@dataclass(frozen=True, eq=False)
class Posterior:
    """Law:         of a sum of true counts, given what is published and the prior.
    Guarantees:  `values` with `probabilities`. method: "enumeration" and "convolution" are off by `error`, 1e-9, at most; "monte carlo":
                 `error` is one standard error of any probability, at most 1/2 over the square root of `effective_draws`.
    """

    values: Ints
    probabilities: Floats
    method: Method
    error: float
    effective_draws: float | None

    @property
    def mean(self) -> float:
        return float(self.values @ self.probabilities)

    @property
    def variance(self) -> float:
        return float(((self.values - self.mean) ** 2) @ self.probabilities)

    @property
    def standard_deviation(self) -> float:
        return math.sqrt(self.variance)

    def quantile(self, p: float) -> int:
        """The least value that is not exceeded with probability p or more."""
        if not 0 < p < 1:
            raise InvalidParameter(f"A quantile is asked for with a probability between 0 and 1. Got {p}.")
        return int(self.values[min(int(np.searchsorted(np.cumsum(self.probabilities), p)), len(self.values) - 1)])

    def interval(self, level: float) -> tuple[int, int]:
        """Both ends included; the true number lies below, and above, with probability (1 - level) / 2 at most."""
        if not 0 < level < 1:
            raise InvalidParameter(f"level is a probability between 0 and 1, such as 0.9. Got {level}.")
        rising = np.cumsum(self.probabilities)
        falling = np.cumsum(self.probabilities[::-1])[::-1]
        outside = (1 - level) / 2
        low = int(np.searchsorted(rising, outside, side="right"))
        high = int(np.flatnonzero(falling > outside)[-1]) if (falling > outside).any() else 0
        return int(self.values[min(low, len(self.values) - 1)]), int(self.values[max(high, low)])

    def probability(self, least: int | None = None, most: int | None = None) -> float:
        """Probability that the number is from `least` to `most`; None: no bound."""
        inside = np.ones(len(self.values), dtype=np.bool_)
        if least is not None:
            inside &= self.values >= least
        if most is not None:
            inside &= self.values <= most
        return min(1.0, float(self.probabilities[inside].sum()))

    def __repr__(self) -> str:
        low, high = self.interval(0.9)
        drawn = "" if self.effective_draws is None else f", error {self.error:.1g}"
        figures = f"mean {self.mean:.6g}, standard deviation {self.standard_deviation:.3g}, 90 % in [{low}, {high}]"
        return f"Posterior({figures}; {self.method}{drawn})"


def posterior(
    release: Source,
    prior: Prior,
    query: Query,
    *,
    draws: int = DRAWS,
    key: NoiseKey | None = None,
    signer: str | os.PathLike[str] | None = None,
) -> Posterior:
    """What the published files say about a sum of true counts.

    Given:       a release, or its folder, which is verified first. A prior of `holdfast.research.priors`. query: a cell's number; codes
                 such as {"state": "17"} for the sum of all cells with them; or whole numbers, one for each cell. `draws` and `key` are
                 for the Monte Carlo, where there is one; `key=None` is fresh. Draws of the public law itself come from a public
                 key. `signer`: the public key (PEM) that must have signed the folder's card.
    Guarantees:  Bayes' rule with the very law of the release and the published kept totals; public files only. The result says how it was
                 computed and how far off it may be. It is not a promise: whoever believes another prior gets another answer.
    """
    return posterior_of(read_published(release, signer), prior, query, draws, key)


def posterior_of(source: Published, prior: Prior, query: Query, draws: int = DRAWS, key: NoiseKey | None = None) -> Posterior:
    """The same from what was read."""
    source.check_counts()
    check_prior(prior, len(source.universe))
    wanted = coefficients(query, source.universe)
    found: Numbers = Numbers(np.zeros(1, dtype=np.int64), np.ones(1), "enumeration", None)
    spread = 0.0
    for cells, block in blocks_read(source, prior, draws, key, wanted):
        part = block.law(wanted[cells])
        found = _sum(found, part)
        spread += 0.0 if part.effective is None else 1 / (4 * part.effective)
    fixed = wanted.copy()
    for task in source.drawing.channel.tasks():
        fixed[task.cells.ravel()] = 0
    values = found.values + int((fixed * source.counts).sum())
    error = ROUNDING if spread == 0 else math.sqrt(spread)
    return Posterior(values, found.probabilities, found.method, error, None if spread == 0 else 1 / (4 * spread))


def blocks_read(
    source: Published, prior: Prior, draws: int, key: NoiseKey | None, wanted: Ints | None = None
) -> Iterator[tuple[Ints, BlockPosterior]]:
    """(cells, posterior) of every block; of those only whose cells have a coefficient, where coefficients are given."""
    count = sample_size(draws)
    if count < 1:
        raise InvalidParameter("draws is a whole number above 0.")
    random = generator(key)
    for task in source.drawing.channel.tasks():
        rows = task.cells if wanted is None else task.cells[wanted[task.cells].any(axis=1)]
        for cells in rows:
            label = (*map(str, task.label), str(int(cells[0])))
            yield cells, _posterior_of_block(Read(source.drawing, task.shape, cells, source.counts[cells], prior, count, random, label))


def _posterior_of_block(read: Read) -> BlockPosterior:
    """By the law of the noise: whether it reads the counts."""
    target = read.drawing.channel.target
    if isinstance(target, ConditionalLaplace | ConditionalGaussian):
        return check_posterior(conditioned_posterior(read, target))
    return block_posterior(read)


def generator(key: NoiseKey | None) -> np.random.Generator:
    """NumPy's generator, seeded from the key or afresh: what is drawn for readers needs no exact law."""
    if key is None:
        return np.random.default_rng()
    if not isinstance(key, NoiseKey):
        raise InvalidParameter(f"key is a NoiseKey, or None for a fresh one. Got {type(key).__name__}.")
    with key.stream("analysis") as words:
        return np.random.default_rng(words.take(8).tolist())


def _sum(one: Numbers, other: Numbers) -> Numbers:
    """Law of the sum of two independent numbers."""
    if len(one.values) * len(other.values) > MAX_VALUES * 16:
        raise RequestTooLarge("This sum has too many possible values. Ask about fewer cells.")
    if len(one.values) == 1:
        values, p = other.values + one.values[0], other.probabilities
    elif len(other.values) == 1:
        values, p = one.values + other.values[0], one.probabilities
    else:
        sums, where = np.unique(one.values[:, None] + other.values, return_inverse=True)
        values, p = sums, np.bincount(where.ravel(), weights=np.outer(one.probabilities, other.probabilities).ravel()).astype(np.float64)
    order: dict[Method, int] = {"enumeration": 0, "convolution": 1, "monte carlo": 2}
    rising = np.argsort(values, kind="stable")
    return Numbers(values[rising], p[rising], max(one.method, other.method, key=order.__getitem__), None)


def simulate(
    release: Source,
    n: int,
    prior: Prior | None = None,
    *,
    draws: int = DRAWS,
    key: NoiseKey | None = None,
    signer: str | os.PathLike[str] | None = None,
) -> Simulated:
    """n tables that another run of this release could have given.

    Given:       a release, or its folder, which is verified first; `signer`: the public key (PEM) that must have signed its card. Without
                 a prior: the errors, where the noise sees no data. With one: published counts, by way of the posterior. Where the law
                 depends on the true counts (bounds), a prior is needed.
    Guarantees:  public files only; `kind` says what was simulated. Every simulated release keeps the published totals.
    """
    source = read_published(release, signer)
    if prior is None:
        return simulated_errors(source.plan.drawing, n, key)
    count = sample_size(n)
    check_memory(count * len(source.universe))
    source.check_counts()
    check_prior(prior, len(source.universe))
    random = generator(None if key is None else key.derive("true tables"))
    tables = np.broadcast_to(source.counts, (count, len(source.universe))).copy()
    effective: list[float] = []
    for cells, block in blocks_read(source, prior, draws, None if key is None else key.derive("weights")):
        tables[:, cells] = block.draw(count, random)
        worth = getattr(block, "effective", None)
        effective += [] if worth is None else [worth]
    reads_counts = source.drawing.channel.target.reads is Reads.COUNTS
    made = _published_again(source, tables, key) if reads_counts else tables + source.plan.law.sample(count, key, label="simulated")
    return Simulated(made, "posterior predictive", effective_draws=min(effective, default=None))


def _published_again(source: Published, tables: Ints, key: NoiseKey | None) -> Ints:
    """The mechanism on simulated tables."""
    out = tables.copy()
    own = NoiseKey.generate() if key is None else key
    try:
        for task in source.drawing.channel.tasks():
            sampler = source.drawing.choice(task.shape).sampler
            assert isinstance(sampler, InputSampler)
            for row, cells in enumerate(task.cells):
                with own.stream("simulated", *task.label, row) as words:
                    out[:, cells] = sampler.publish(np.ascontiguousarray(tables[:, cells]), None, words)
    finally:
        if key is None:
            own.close()
    return out
