"""Tables by the cell key method in one call, recorded nowhere: what a release of them publishes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import holdfast as hf
from holdfast.cellkey import CellKeys, KeySpace, PerturbationTable, tabulate
from holdfast.cellkey.tabulate import TOTAL
from holdfast.publication.tables import Publications

ALMOST_SILENT = PerturbationTable.from_probabilities({**{count: {0: 1} for count in range(1, 600)}, 600: {0: "1/2", 1: "1/2"}}, 2**16)
"""No noise on the counts of any test: others with the same counts are published alike, whatever their keys."""


def release_tables(
    data: Any, tables: Any, noise: PerturbationTable, *, keys: KeySpace | CellKeys | None = None, ledger: Any = None, **more: Any
) -> Publications:
    """The tables as one release; `more` is for the release, the mechanism or the tabulation, by its name."""
    mechanism = {name: more.pop(name) for name in ("mix", "other_noise", "other_records") if name in more}
    of_release = {name: more.pop(name) for name in ("release_id", "dataset") if name in more}
    made = hf.CellKey(table=noise, keys=keys, weighted="weight" in more, **mechanism)
    return hf.release(tabulate(data, tables, made, **more), [], made, ledger=ledger, **of_release)


def perturb(data: Any, tables: Any, noise: PerturbationTable, **more: Any) -> Mapping[str, Any]:
    """Codes and published counts of each table, as pyarrow.Tables; of all records together the count alone."""
    made = {name: one.table for name, one in release_tables(data, tables, noise, **more).items()}
    columns = {name: [] if one.cells == [TOTAL] else one.cells for name, one in made.items()}
    return {name: one.frame.select([*columns[name], one.count_name]) for name, one in made.items()}
