"""What a release would do, before any confidential count is looked at."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.channels import Drawing, Facts, Law, choose_samplers
from holdfast.channels.covariance import Covariance, covariance_of
from holdfast.channels.drawing import Progress
from holdfast.display import html_table
from holdfast.errors import HoldfastWarning, InvalidParameter
from holdfast.invariants.statements import Statement
from holdfast.lattices import Exposure, exposure
from holdfast.lattices.pinned import rows_say_all, with_pinned
from holdfast.laws import Reads
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.privacy import Guarantee
from holdfast.tables import Table, Universe
from holdfast.wording.plan import plan_fields, plan_text

MARGIN_WORK = 10**7
"""Cells times sums looked at for the expected error of margins."""
MAX_MARGIN_CODES = 20


@dataclass(frozen=True)
class ExpectedError:
    """Standard deviations of the noise, from the law alone; None where they depend on the data.

    basis:    what the figures are; `of_target`: they are those of the law that a chain aims at.
    margins:  (column, or None for the whole table; the largest standard deviation among the first few of its sums).
    """

    smallest: float | None
    median: float | None
    largest: float | None
    basis: Literal["exact", "upper bound", "estimated", "unknown"]
    of_target: bool
    margins: tuple[tuple[str | None, float], ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """Public facts about a release: what is kept and exposed, which sampler and why, the promise, the expected error.

    Guarantees:  made from the universe, the kept statements and the mechanism alone; no count was read. A pickle holds the samplers as they
                 were chosen and assessed: nothing is done again.
    """

    mechanism: Mechanism
    drawing: Drawing
    exposure: Exposure

    @property
    def facts(self) -> Facts:
        return self.drawing.channel.facts

    @property
    def guarantee(self) -> Guarantee:
        return self.drawing.guarantee

    @property
    def law(self) -> Law:
        """The law of the noise; refused where what is published depends on the counts."""
        made = Law(self.drawing.channel)
        made.__dict__["drawing"] = self.drawing
        return made

    @cached_property
    def deviations(self) -> NDArray[np.float64] | None:
        """Standard deviation of every cell's noise, to six digits, so that it is the same on every machine; None where it depends on the
        data.
        """
        if self.covariance is None:
            return None if self.drawing.channel.target.publishes_cells else np.zeros(len(self.facts.universe))
        variances, which = np.unique(self.covariance.diagonal(), return_inverse=True)
        return np.array([float(f"{v**0.5:.6g}") for v in variances])[which]

    @cached_property
    def covariance(self) -> Covariance | None:
        """Of the noise; None where there is none, or it depends on the data."""
        target = self.drawing.channel.target
        return covariance_of(self.drawing) if target.publishes_cells and target.reads is Reads.NOTHING else None

    @cached_property
    def expected_error(self) -> ExpectedError:
        """Standard deviations of cells and of one-column margins."""
        if self.covariance is None or self.deviations is None:
            basis: Literal["exact", "unknown"] = "unknown" if self.drawing.channel.target.publishes_cells else "exact"
            return ExpectedError(None, None, None, basis, False, ())
        cells = np.sort(self.deviations)
        smallest, median, largest = (float(cells[i]) for i in (0, len(cells) // 2, -1))
        return ExpectedError(smallest, median, largest, self.covariance.basis, not self.drawing.is_exact, tuple(self._margins()))

    def _margins(self) -> Iterable[tuple[str | None, float]]:
        """For all cells together, and for each column alone."""
        assert self.covariance is not None
        universe = self.facts.universe
        for column in (None, *universe.columns):
            group, codes = universe.group(() if column is None else (column,))
            if len(codes) == len(universe) and len(universe) > 1:
                continue
            rows = max(1, min(len(codes), MAX_MARGIN_CODES, MARGIN_WORK // len(universe)))
            largest = max(self.covariance.of((group == row).astype(np.float64)) for row in range(rows))
            yield column, max(largest, 0.0) ** 0.5

    def to_fields(self) -> dict[str, Any]:
        """Everything as plain values, for `--json` and cards."""
        return plan_fields(self)

    def __str__(self) -> str:
        return plan_text(self)

    def __repr__(self) -> str:
        return f"Plan({len(self.facts.universe)} cells, {self.mechanism!r}, {self.exposure.cells} cells exposed)"

    def _repr_html_(self) -> str:
        return html_table([line.split(maxsplit=1) for line in str(self).splitlines()])


def plan(
    table: Table | Universe,
    keep: Iterable[Statement],
    mechanism: Mechanism,
    *,
    published_totals: Any = None,
    progress: Progress | None = None,
) -> Plan:
    """Everything about a release that can be known without its counts.

    Given:       a table, of which only the declarations are read, or a universe; the kept statements; a mechanism. `published_totals`, one
                 number for each kept total and identity in the order of `keep`, adds the cells that these values pin (counts are not
                 negative). `progress` is called with (pairs done, pairs in all) where Markov chains are assessed, which may take minutes.
    Guarantees:  no confidential count is read. Impossible requests are refused here.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(f"A plan needs a mechanism, such as GeneralizedLaplace(epsilon='1/4'). Got {type(mechanism).__name__}.")
    facts = Facts.of(table, keep)
    return prepare(facts if published_totals is None else facts.with_totals(published_totals), mechanism, progress)


def prepare(facts: Facts, mechanism: Mechanism, progress: Progress | None = None) -> Plan:
    """The first step of every release, from public facts: this function cannot reach a count."""
    drawing = choose_samplers(mechanism.channel(facts), progress)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HoldfastWarning)
        found = exposure(facts.lattice, facts.kept, facts.published_totals)
    if facts.published_totals is not None:
        found = found.limited(rows_say_all(facts.lattice, facts.kept))
    return Plan(mechanism, drawing, found)


def exposure_after(facts: Facts, totals: list[NDArray[np.int64]], table: NDArray[np.int64]) -> Exposure:
    """What is exposed once these totals are published; `table`, any table of these totals such as the released one, shows more of what
    they say together.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HoldfastWarning)
        return with_pinned(exposure(facts.lattice, facts.kept, totals), facts.lattice, table)
