"""What a published folder says is exposed, computed again from its kept totals."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.channels import Facts
from holdfast.invariants.rows import Kept
from holdfast.lattices import exposure
from holdfast.publication.card import Card
from holdfast.publication.listings import EXPOSED_FILE, STRUCTURE, KeptLine, exposed_csv
from holdfast.publication.plan import exposed_fields, exposure_after
from holdfast.tables.columns import numpy_values

Array = np.ndarray[Any, Any]


def exposed_problems(
    place: Path, card: Card, frames: dict[str, Any], lines: Sequence[KeptLine], made: tuple[Facts, Array], published: Array
) -> Iterator[str]:
    """Whether exposed.csv, the marks in the table and the card are what the kept totals expose.

    Given:       tables that agree, and kept totals that add up. Where cells are suppressed no table has the totals: what
                 their values pin is then not computed again.
    """
    import pyarrow as pa

    facts, counts = made
    said = (place / EXPOSED_FILE).read_bytes()
    marked = numpy_values(next(iter(frames.values())).columns[-1].cast(pa.bool_()).combine_chunks())
    if int(marked.sum()) != card.exposed.cells:
        yield f"the table marks {int(marked.sum())} cells as exposed, the card has {card.exposed.cells}"
    if not published.all():
        fixed = [line for line in csv.reader(said.decode().splitlines(keepends=True)) if line[-1] == STRUCTURE]
        if len(fixed) != len(exposure(facts.lattice, facts.kept).fixed):
            yield f"{EXPOSED_FILE} does not list the cells that the kept totals fix"
        return
    found = exposure_after(facts, _totals(facts.kept, lines, counts), counts)
    if exposed_csv(found, counts, card.table.count) != said:
        yield f"{EXPOSED_FILE} is not what the kept totals expose"
    if not np.array_equal(np.flatnonzero(marked), found.cells):
        yield "the table marks other cells as exposed than those that follow from the kept totals"
    if exposed_fields(found) != card.exposed.model_dump(mode="json"):
        yield "the card says otherwise what the kept totals expose"


def _totals(kept: Kept, lines: Sequence[KeptLine], counts: Array) -> list[Array]:
    """As kept.csv has them; of identities, which it does not list, as the table has them."""
    listed = iter(lines)
    return [
        np.array([next(listed).total for _ in range(rows.count)], dtype=np.int64) if rows.kind == "kept" else rows.totals(counts)
        for rows in kept.rows
    ]
