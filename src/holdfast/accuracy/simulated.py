"""Tables that another run of a release could have given: what they are, and those that need no prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.channels.drawing import Drawing
from holdfast.channels.law import Law
from holdfast.errors import InvalidParameter
from holdfast.exact.law import check_memory
from holdfast.exact.parameters import sample_size
from holdfast.laws import Reads
from holdfast.randomness import NoiseKey
from holdfast.tables.measure import COUNTS, Measure

Ints = NDArray[np.int64]


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
    measure: Measure = COUNTS
    effective_draws: float | None = None
    """The least, over blocks, of what weighted draws of the posterior are worth; None where none were needed."""

    @property
    def values(self) -> NDArray[np.float64]:
        """The tables as doubles: for answers, what their steps stand for."""
        return self.measure.floats(self.tables)

    def __repr__(self) -> str:
        return f"Simulated({len(self.tables)} tables of {self.tables.shape[1]} cells: {self.kind})"


def simulated_errors(drawing: Drawing, n: int, key: NoiseKey | None) -> Simulated:
    """n draws of the public law; refused where what is published depends on the true counts."""
    count = sample_size(n)
    check_memory(count * drawing.channel.facts.lattice.cells)
    target = drawing.channel.target
    if not target.publishes_cells:
        raise InvalidParameter("This release publishes no cells, only totals: they are exact, and there is no noise to simulate.")
    if target.reads is not Reads.NOTHING:
        raise InvalidParameter(
            "What this mechanism publishes depends on the true counts, so other releases can be simulated under a prior only. Give one to "
            "holdfast.research.simulate, such as holdfast.research.priors.Flat()."
        )
    return Simulated(Law.of_drawing(drawing).sample(count, key, label="simulated"), "errors", drawing.channel.facts.measure)
