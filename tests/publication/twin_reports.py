"""Reports of two tables with equal kept totals."""

from __future__ import annotations

from pathlib import Path

import holdfast as hf
from holdfast.publication.listings import shown_rows
from holdfast.publication.report_facts import report_facts
from holdfast.report.report import report_html


def with_the_numbers_of(first: Path, second: Path) -> bytes:
    """The report of one folder, made again with the published numbers of the other: all else that enters it is of the first."""
    one, other = hf.load(first), hf.load(second)
    card = one.card.model_copy(update={"files": {}, "signature": None})
    kept_rows = shown_rows(one.kept_rows, one.plan.facts.kept, one.table.measure)
    return report_html(card, kept_rows, report_facts(one.plan, other.table)).encode()
