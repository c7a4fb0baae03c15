"""What a release would do, before any confidential count is looked at."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import HoldfastWarning, InvalidParameter
from holdfast.invariants.statements import Statement
from holdfast.lattices import Exposure, exposure
from holdfast.lattices.pinned import rows_say_all, with_pinned
from holdfast.laws.law import LatticeLaw
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.privacy import Guarantee
from holdfast.publication.frame import PublicFrame
from holdfast.tables import Table, Universe
from holdfast.wording import describe
from holdfast.wording.errors import basis_phrase, expected_error_sentences, no_noise_sentences
from holdfast.wording.exposure import exposed_sentences
from holdfast.wording.guarantee import guarantee_fields

NAMES_SHOWN = 20
"""Exposed cells listed by name; the rest is counted."""
MARGIN_WORK = 10**7
"""Cells times sums looked at for the expected error of margins."""
MAX_MARGIN_CODES = 20


@dataclass(frozen=True, eq=False)
class Plan:
    """Public facts about a release: what is kept and exposed, which sampler and why, the promise, the expected error.

    Guarantees:  made from the universe, the kept statements and the mechanism alone; no count was read.
    """

    frame: PublicFrame
    mechanism: Mechanism
    law: LatticeLaw
    exposure: Exposure

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds what the plan was made from; the law is made again, so that no sampler need be pickled."""
        return _made_again, (self.frame, self.mechanism, self.exposure)

    @property
    def guarantee(self) -> Guarantee:
        return self.law.guarantee

    @cached_property
    def deviations(self) -> NDArray[np.float64]:
        """Standard deviation of every cell's noise, to six digits, so that it is the same on every machine."""
        if not self.law.publishes_cells:
            return np.zeros(len(self.frame.universe))
        variances, which = np.unique(self._covariance.diagonal(), return_inverse=True)
        return np.array([float(f"{v**0.5:.6g}") for v in variances])[which]

    @cached_property
    def _covariance(self) -> Any:
        return self.law.covariance()

    def expected_error(self) -> dict[str, Any]:
        """Standard deviations of cells and of one-column margins, where they come from, and a sentence."""
        if not self.law.publishes_cells:
            spread = dict.fromkeys(("smallest", "median", "largest"))
            return {"cell_standard_deviation": spread, "basis": "exact", "words": no_noise_sentences(), "margins": []}
        cells = np.sort(self.deviations)
        smallest, median, largest = (float(cells[i]) for i in (0, len(cells) // 2, -1))
        return {
            "cell_standard_deviation": {"smallest": smallest, "median": median, "largest": largest},
            "basis": basis_phrase(self._covariance.basis, self.law.sampler.status == "exact"),
            "words": expected_error_sentences(smallest, median, largest),
            "margins": self._margins,
        }

    @cached_property
    def _margins(self) -> list[dict[str, Any]]:
        return list(self._margin_errors())

    def _margin_errors(self) -> Iterable[dict[str, Any]]:
        """For each column alone, and for all cells together: the largest standard deviation among the first few sums."""
        universe = self.frame.universe
        for columns in [(), *((column,) for column in universe.columns)]:
            group, codes = universe.group(columns)
            if len(codes) == len(universe) and len(universe) > 1:
                continue
            rows = max(1, min(len(codes), MAX_MARGIN_CODES, MARGIN_WORK // len(universe)))
            largest = max(self._covariance.of((group == row).astype(np.float64)) for row in range(rows))
            yield {"name": f"by {columns[0]}" if columns else "total of the table", "standard_deviation": max(largest, 0.0) ** 0.5}

    def exposed(self) -> dict[str, Any]:
        """Cells published exactly, by name as far as they are few."""
        fixed, pinned = self.exposure.fixed, self.exposure.pinned
        names = [self.frame.universe.cell_name(int(cell)) for cell in np.concatenate([fixed, pinned])[:NAMES_SHOWN]]
        words = exposed_sentences(self.exposure.facts())
        return {"cells": len(fixed) + len(pinned), "names": names, "complete": self.exposure.complete, "words": words}

    def with_totals(self, totals: Sequence[NDArray[np.int64]], table: NDArray[np.int64] | None = None) -> Plan:
        """The same plan, knowing the totals as published: what their values pin is exposed too.

        Given:  one array for each entry of kept.rows; `table`, any table of these totals such as the released one, shows more of what the
                totals say together.
        """
        found = exposure(self.frame.lattice, self.frame.kept, totals)
        if table is None:
            return replace(self, exposure=replace(found, complete=found.complete and rows_say_all(self.frame.lattice, self.frame.kept)))
        return replace(self, exposure=with_pinned(found, self.frame.lattice, table))

    def to_fields(self) -> dict[str, Any]:
        """Everything as plain values, for `--json`."""
        lattice = self.frame.lattice
        return {
            "cells": len(self.frame.universe),
            "kept": {
                "statements": [str(s) for s in self.frame.statements if s.kind == "kept"],
                "identities": [str(s) for s in self.frame.statements if s.kind == "identity"],
                "totals": sum(rows.count for rows in self.frame.kept.rows if rows.kind == "kept"),
                "independent": self.guarantee.exposed.kept_sums,
                "free_dimensions": lattice.dimension,
            },
            "exposed": self.exposed(),
            "mechanism": {"name": self.mechanism.name, "parameters": self.mechanism.parameters, "law": self.law.formula},
            "sampler": {"status": self.law.sampler.status, "groups": [vars(group) for group in self.law.sampler.groups]},
            "guarantee": guarantee_fields(self.guarantee),
            "expected_error": self.expected_error(),
        }

    def __str__(self) -> str:
        fields = self.to_fields()
        kept = fields["kept"]
        lines = [
            f"Table      {fields['cells']} cells by {', '.join(self.frame.universe.columns)} ({self.frame.universe.support})",
            f"Kept       {', '.join(kept['statements']) or 'nothing'}: {kept['totals']} totals, {kept['independent']} independent; "
            f"{kept['free_dimensions']} free dimensions",
            *([f"Always     {', '.join(kept['identities'])}: true of every data set, exposes nothing"] if kept["identities"] else []),
            f"Exposed    {fields['exposed']['words']}",
            f"Mechanism  {', '.join([self.mechanism.name, *(f'{k} = {v}' for k, v in self.mechanism.parameters.items())])}",
            f"Law        {self.law.formula}",
        ]
        for number, group in enumerate(self.law.sampler.groups):
            head = "Sampler" if number == 0 else ""
            blocks = f"{group.blocks} x {group.kind}" if group.blocks > 1 else group.kind
            tail = "an estimate" if group.expected_tries is None else f"{group.expected_tries:.3g} tries expected"
            lines.append(f"{head:<10} {blocks} ({group.cells} cells): {group.sampler}; {group.why}; {tail}")
        error = fields["expected_error"]
        lines.append(f"Error      {error['words']} ({error['basis']})")
        lines.append(f"Promise    {describe(self.guarantee)}")
        return "\n".join(lines)


def plan(table: Table | Universe, keep: Iterable[Statement], mechanism: Mechanism, *, published_totals: Any = None) -> Plan:
    """Everything about a release that can be known without its counts.

    Given:       a table, of which only the declarations are read, or a universe; the kept statements; a mechanism. `published_totals`, one
                 number for each kept total and identity in the order of `keep`, adds the cells that these values pin (counts are not
                 negative).
    Guarantees:  no confidential count is read. Impossible requests are refused here.
    """
    return make_plan(PublicFrame.of(table, keep), mechanism, published_totals)


def make_plan(frame: PublicFrame, mechanism: Mechanism, published_totals: Any = None) -> Plan:
    """The plan from public facts: this function cannot reach a count."""
    if not callable(getattr(mechanism, "law", None)):
        raise InvalidParameter(f"A plan needs a mechanism, such as GeneralizedLaplace(epsilon='1/4'). Got {type(mechanism).__name__}.")
    totals = None if published_totals is None else _by_statement(frame, published_totals)
    law = _law(frame, mechanism)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HoldfastWarning)
        made = Plan(frame, mechanism, law, exposure(frame.lattice, frame.kept))
        return made if totals is None else made.with_totals(totals)


def _law(frame: PublicFrame, mechanism: Mechanism) -> LatticeLaw:
    return mechanism.law(frame.lattice, unit=frame.unit, max_records=frame.max_records)


def _made_again(frame: PublicFrame, mechanism: Mechanism, exposed: Exposure) -> Plan:
    return Plan(frame, mechanism, _law(frame, mechanism), exposed)


def _by_statement(frame: PublicFrame, totals: Any) -> list[NDArray[np.int64]]:
    """One list of published totals as one array for each statement."""
    try:
        flat = np.asarray(list(totals))
    except (TypeError, ValueError):
        flat = np.zeros(0)
    if flat.dtype.kind not in "iu" or flat.shape != (len(frame.kept),):
        raise InvalidParameter(
            f"published_totals takes one whole number for each of the {len(frame.kept)} kept totals and identities, in the order of keep."
        )
    return np.split(flat.astype(np.int64), np.cumsum([rows.count for rows in frame.kept.rows])[:-1])
