"""What readers are given of a release within bounds: cards that are made again, columns, pages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import VerificationFailed
from holdfast.publication.publication import Publication
from tests.report.cards import Page

FOUR = hf.Universe.product({"town": ["a", "b", "c", "d"]})
HOMES = hf.Universe.product({"county": ["a", "b"], "kind": ["people", "homes"]})
TOTAL = hf.total()


def saved(folder: Path, table: hf.Table, mechanism: Any, keep: Any = (TOTAL,)) -> tuple[Publication, Path]:
    release = hf.release(table, list(keep), mechanism, hf.NoiseKey.for_tests(1))
    return release, release.save(folder / "out")


# --- columns -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["2030", "5", "[9]", "null", "true", "NaN", '"q"', '{"column": "x"}', "1e5", " 7", "é beds", "[" * 5000])
def test_a_column_may_have_any_name(name: str, tmp_path: Path) -> None:
    """The card has bounds as text: what is a column there is not read as a number."""
    table = hf.Table(FOUR, np.array([1, 2, 0, 4]), public_columns={name: np.full(4, 9)})
    release, folder = saved(tmp_path, table, hf.Conditional(epsilon=1, upper=name, per="distance"))
    hf.verify(folder)
    assert hf.Conditional.from_parameters(release.card.mechanism.parameters) == hf.Conditional(epsilon=1, upper=name, per="distance")


def test_ordinary_names_stand_on_the_card_as_they_are() -> None:
    assert hf.Conditional(epsilon=1, lower="beds", upper="3 beds", per="distance").parameters == {
        "epsilon": "1",
        "per": "distance",
        "lower": "beds",
        "upper": "3 beds",
    }


PEOPLE = hf.subset("kind", ["people"], by=["county"])


@pytest.mark.parametrize("values", [[1, 7, 0, 0], [1, 1, 0], [1, 1, 0, 0, 5]])
def test_every_value_of_a_published_column_counts(values: list[int], tmp_path: Path) -> None:
    """Also those that bound nothing, here of the cells of homes; and there is one for each cell."""
    homes = hf.Table(HOMES, np.array([7, 3, 4, 4]), public_columns={"shelters": np.array([1, 1, 0, 0])})
    _, folder = saved(tmp_path, homes, hf.Conditional(epsilon=1, rows=[hf.at_least(PEOPLE, "shelters")], per="distance"))
    hf.verify(folder)
    path = folder / "card.json"
    card = json.loads(path.read_text())
    card["table"]["public_columns"][0]["values"] = values
    path.write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    with pytest.raises(VerificationFailed, match=r"identity|has [35] values for 4 cells"):
        hf.verify(folder)


# --- pages -------------------------------------------------------------------------------------------------------------------------------


def pages(folder: Path) -> dict[str, str]:
    return {name: Page((folder / f"{name}.html").read_text()).lines for name in ("statement", "report")}


def test_pages_say_that_counts_within_bounds_are_biased_and_no_more_than_is_known(tmp_path: Path) -> None:
    homes = hf.Table(HOMES, np.array([7, 3, 4, 4]))
    _, folder = saved(tmp_path, homes, hf.Conditional(epsilon=1, rows=[hf.at_least(PEOPLE, 1), hf.at_most(TOTAL, 99)], per="distance"))
    for page in pages(folder).values():
        assert "within the public bounds" in page
        assert "biased" in page
        assert not re.search(r"negative\. |may be negative|come out negative|zero on average|Chebyshev|Compare the counts", page)
        assert "not published, not estimated" not in page
        assert "subset(kind in [people]) by county at least 1; total at most 99" in page
        assert "not decided" not in page


def test_pages_of_other_releases_keep_their_advice(tmp_path: Path) -> None:
    _, folder = saved(tmp_path, hf.Table(HOMES, np.array([7, 3, 4, 4])), hf.Conditional(epsilon=1, lower=None, per="distance"))
    found = pages(folder)
    assert "A count may come out negative" in found["statement"]
    assert "A released count can be negative" in found["report"]
