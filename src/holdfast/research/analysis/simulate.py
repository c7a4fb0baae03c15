"""`simulate(release, n)`: what other releases could have looked like."""

from __future__ import annotations

import os

import numpy as np

from holdfast.accuracy.simulated import Simulated, simulated_errors
from holdfast.exact.law import check_memory
from holdfast.exact.parameters import sample_size
from holdfast.laws import Reads
from holdfast.randomness import NoiseKey
from holdfast.research.analysis.posterior import DRAWS, blocks_read, generator
from holdfast.research.analysis.priors import Prior, check_prior
from holdfast.research.analysis.published import Published, Source, published
from holdfast.research.analysis.tables import Ints
from holdfast.samplers.protocol import InputSampler


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
    source = published(release, signer)
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
    return Simulated(made, "posterior predictive", None, min(effective) if effective else None)


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
