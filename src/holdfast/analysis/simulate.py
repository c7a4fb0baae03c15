"""`simulate(release, n)`: what other releases could have looked like."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.analysis.posterior import DRAWS, blocks_read, generator
from holdfast.analysis.priors import Prior, check_prior
from holdfast.analysis.published import Published, published
from holdfast.analysis.tables import Ints
from holdfast.errors import InvalidParameter
from holdfast.exact.law import check_memory
from holdfast.exact.parameters import sample_size
from holdfast.laws import Reads
from holdfast.publication.release import Release
from holdfast.randomness import NoiseKey
from holdfast.samplers.protocol import InputSampler
from holdfast.tables.grid import Grid


@dataclass(frozen=True, eq=False)
class Simulated:
    """`tables`: one simulated table a row.

    "errors":                what another release would add to the true counts: draws of the public law, which sees no data. Exact, and
                             nothing is assumed. Of answers that are rounded to a grid, what it would add to the rounded ones: the
                             rounding is the same in every release, and no noise.
    "posterior predictive":  published counts of another release of the same unknown table: a true table drawn from its posterior under
                             the stated prior (in floating point; from weighted draws where the posterior is), and then the mechanism.
    """

    tables: Ints
    kind: Literal["errors", "posterior predictive"]
    grid: Grid | None = None
    """For real-valued answers: `tables` are then in steps of it."""
    effective_draws: float | None = None
    """The least, over blocks, of what weighted draws of the posterior are worth; None where none were needed."""

    @property
    def values(self) -> NDArray[np.float64]:
        """The tables as doubles: for answers, what their steps stand for."""
        return self.tables.astype(np.float64) if self.grid is None else self.grid.floats(self.tables)

    def __repr__(self) -> str:
        return f"Simulated({len(self.tables)} tables of {self.tables.shape[1]} cells: {self.kind})"


def simulate(
    release: Release | str | os.PathLike[str], n: int, prior: Prior | None = None, *, draws: int = DRAWS, key: NoiseKey | None = None
) -> Simulated:
    """n tables that another run of this release could have given.

    Given:       a release, or its folder, which is verified first. Without a prior: the errors, where the noise sees no data. With one:
                 published counts, by way of the posterior. Where the law depends on the true counts (bounds), a prior is needed.
    Guarantees:  public files only; `kind` says what was simulated. Every simulated release keeps the published totals.
    """
    source, count = published(release), sample_size(n)
    reads = source.drawing.channel.target.reads
    check_memory(count * len(source.universe))
    if prior is None:
        if reads is not Reads.NOTHING:
            raise InvalidParameter(
                "What this mechanism publishes depends on the true counts, so other releases can be simulated under a prior only. Give "
                "one, such as holdfast.priors.Flat()."
            )
        return Simulated(source.plan.law.sample(count, key, label="simulated"), "errors", source.plan.facts.grid)
    source.check_counts()
    check_prior(prior, len(source.universe))
    random = generator(None if key is None else key.derive("true tables"))
    tables = np.broadcast_to(source.counts, (count, len(source.universe))).copy()
    effective: list[float] = []
    for cells, block in blocks_read(source, prior, draws, None if key is None else key.derive("weights")):
        tables[:, cells] = block.draw(count, random)
        worth = getattr(block, "effective", None)
        effective += [] if worth is None else [worth]
    made = (
        _published_again(source, tables, key) if reads is Reads.COUNTS else tables + source.plan.law.sample(count, key, label="simulated")
    )
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
