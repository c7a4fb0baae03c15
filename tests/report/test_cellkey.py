"""Pages of the cell key method: made from fields alone, every figure in words, every text escaped."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from holdfast.cellkey import CellKeys, KeySpace, PerturbationTable, Perturbed, design
from holdfast.publication.cellkey import check_fields, design_fields, perturbed_fields
from holdfast.report.cellkey import cellkey_html, perturbed_html
from holdfast.report.delta_chart import LOWEST, DeltaCurve, delta_figure
from holdfast.report.frame import Say
from tests.cellkey.test_formats import OURS

CHECK = check_fields(OURS, name="by hand <i>")
DESIGN = design_fields(design("0.5", "1e-4"), 2**32)["check"]
TABLES = {"ab": pa.table({"a": ["x", "x"], "b": ["1", "2"], "count": [3, 4]}), "a": pa.table({"a": ["x"], "count": [6]})}
SETTINGS = {
    "record_keys": "2^32",
    "modulus": "4294967296",
    "size": "65536",
    "mixed": False,
    "distance": "0",
    "table_key_size": "65536",
    "weighted": False,
}
MADE = Perturbed(TABLES, {"ab": ("a", "b"), "a": ("a",)}, SETTINGS)
PUBLISHED: dict[str, Any] = {"release": {"id": "r<1>", "dataset": "d", "private": False, "ledger": None}, **perturbed_fields(MADE)}


def words(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


@pytest.mark.parametrize("page", [cellkey_html(CHECK), cellkey_html(DESIGN), perturbed_html(PUBLISHED)])
def test_pages_are_whole_and_load_nothing(page: str) -> None:
    assert page.startswith("<!DOCTYPE html>")
    assert "<i>" not in page
    assert "r<1>" not in page
    assert not re.search(r"(src|href)=|https?://|<script", page)
    for figure in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(figure)


def test_fields_are_plain() -> None:
    for fields in (CHECK, DESIGN, PUBLISHED):
        assert cellkey_html(json.loads(json.dumps(fields))) if "rows" in fields else perturbed_html(json.loads(json.dumps(fields)))


def test_a_check_shows_all_its_figures() -> None:
    shown = words(cellkey_html(DESIGN))
    for size in ("2⁸ keys: too few, 13 noise values would be lost", "2¹⁶ keys: plateau", "2³² keys: plateau", "2⁶⁴ keys: plateau"):
        assert size in shown
    assert "2⁸, too few: 13 noise values would be lost - - 2¹⁶ 0.000107 0.511 2³² 0.0000991 0.498 2⁶⁴ 0.0000991 0.498" in shown
    assert "Before rounding to keys" in shown
    assert "both counts at least 25" in shown
    assert "do not compose" in shown
    assert "no differential privacy guarantee" in shown
    by_hand = words(cellkey_html(CHECK))
    assert "A count of one is distinguished from zero with probability 0.5, whatever epsilon is." in by_hand
    assert by_hand.count("The noise is 0 with a probability") == 3, "a count without noise has no chart"
    assert "Keys 100,000,000" in by_hand
    assert "0 0 0 100 % none 1 0 1 0 % -1 to 1" in by_hand, "no range of noise where there is none"


def test_zeros_that_stay_are_said_to_tell() -> None:
    """Between counts 0 and 1: what is published above 0 is certain to come from 1."""
    fields = check_fields(PerturbationTable.from_probabilities({1: {-1: "0.01", 0: "0.99"}, 2: {0: 1}}), name="t")
    assert fields["losses"]["zero_delta"] == pytest.approx(0.99)
    with_row = check_fields(PerturbationTable.from_probabilities({0: {0: 1}, 1: {-1: "0.01", 0: "0.99"}, 2: {0: 1}}), name="t")
    assert with_row["losses"] == fields["losses"]
    large = check_fields(PerturbationTable.from_probabilities({5: {-1: "0.5", 1: "0.5"}}), name="t")
    assert large["losses"]["zero_delta"] is None


def test_a_report_shows_gaps_and_that_a_test_key_is_none() -> None:
    shown = words(perturbed_html(PUBLISHED))
    assert "ab does not add up to a in 1 of 1 cell: off by 1 on average, by 1 at most." in shown
    assert "NOT PRIVATE" in shown
    private = perturbed_html({**PUBLISHED, "release": {**PUBLISHED["release"], "private": True}})
    assert "NOT PRIVATE" not in private


def test_the_distance_of_cell_keys_is_a_decimal_beside_what_it_does() -> None:
    """Rounded up, with the delta that holds with it."""
    prime = {**SETTINGS, **CellKeys(KeySpace.bits(32), 4294967291, 2**16).to_fields()}
    shown = words(perturbed_html({**PUBLISHED, **perturbed_fields(Perturbed(TABLES, MADE.columns, prime))}))
    assert "Cell keys are 2.33e-9 from uniform at most" in shown
    assert "delta + (1 + e^epsilon) × 2.33e-9" in shown
    assert Fraction(prime["distance"]) <= Fraction("2.33e-9")
    assert "exactly uniform" in words(perturbed_html(PUBLISHED))


def test_weighted_tables_say_that_the_figures_do_not_hold() -> None:
    fields = perturbed_fields(Perturbed(TABLES, MADE.columns, {**SETTINGS, "weighted": True}))
    assert "does not hold for these" in words(perturbed_html({**PUBLISHED, **fields}))
    assert "does not hold" not in words(perturbed_html(PUBLISHED))


def test_a_table_that_misses_its_target_says_so_first() -> None:
    """At 2^16 keys rounding takes delta(0.5) from 9.913e-5 to 1.085e-4."""
    made = design("0.5", "1e-4")
    missed = design_fields(made, 2**16)
    assert missed["delta_of_table"] == made.quantised(2**16).epsilon_delta().delta("0.5") > 1e-4
    assert missed["check"]["text"][0] == missed["missed"]
    assert "THE TABLE MISSES THE TARGET: rounded to 2^16 keys it has delta = 0.000109" in words(cellkey_html(missed["check"]))
    kept = design_fields(made, 2**32)
    assert (kept["missed"], kept["delta_of_table"] <= 1e-4) == (None, True)
    assert "MISSES" not in cellkey_html(kept["check"])


def test_a_curve_that_reaches_zero_is_drawn_to_the_lower_edge() -> None:
    figure = delta_figure(
        "t", [DeltaCurve("a", [(0.0, 0.5), (1.0, 0.0)], "w"), DeltaCurve("b", [(0.0, 1.0), (1.0, LOWEST / 10)], "w")], Say()
    ).picture
    places = [tuple(map(float, point.split(","))) for point in re.findall(r'points="([^"]*)"', figure)[0].split()]
    assert places[0][1] < places[1][1]
    assert len(re.findall("<polyline", figure)) == 2
