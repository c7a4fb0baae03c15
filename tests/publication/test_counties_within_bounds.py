"""All counties of the 2010 census in one release: totals, sexes and voting age kept, no count below zero."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from benchmarks.conditional import county_table
from benchmarks.paper_table import AGES, MINORS, sexes_and_ages


@pytest.mark.long
def test_every_county_is_drawn_exactly_and_keeps_its_sums_and_bounds(shared_data: Path) -> None:
    """The largest county has ten million people, the smallest eighty: windows do not grow with counts, and zeros stay within bounds.

    Cells of zero can only rise: their mean error is above that of cells of a hundred and more by far more than both standard errors.
    """
    table, kept = county_table(shared_data / "county_p12_sex_age_2010.csv")
    made = hf.release(table, kept, hf.Conditional(epsilon=1, per="distance"), key=hf.NoiseKey.for_tests("counties within bounds"))
    x, y = (counts.reshape(-1, 2 * AGES) for counts in (table.counts, made.table.counts))
    assert len(x) == 3143
    assert made.guarantee.status == "exact"
    assert made.card.sampler.groups[0].sampler == "class totals by convolution, then cells"
    assert (x @ sexes_and_ages(MINORS, AGES - MINORS).T == y @ sexes_and_ages(MINORS, AGES - MINORS).T).all()
    assert y.min() == 0
    errors = y - x
    zeros, large = errors[x == 0], errors[x >= 100]
    assert zeros.min() == 0
    spread = zeros.std() / np.sqrt(zeros.size) + large.std() / np.sqrt(large.size)
    assert zeros.mean() > large.mean() + 4 * spread
    assert abs(large.mean()) < 6 * large.std() / np.sqrt(large.size)
