"""The page of a perturbation table: made from fields alone, every figure in words, every text escaped."""

from __future__ import annotations

import json
import math
import re
from xml.etree import ElementTree

import pytest

from holdfast.cellkey import PerturbationTable, design
from holdfast.cellkey.check import check_design, check_table
from holdfast.publication.cellkey import check_json, design_json
from holdfast.report.cellkey import cellkey_html
from holdfast.report.delta_chart import LOWEST, DeltaCurve, delta_figure
from holdfast.report.frame import Say
from holdfast.wording.cellkey import check_screen, check_sentences
from tests.cellkey.test_formats import OURS

CHECK = check_table(OURS, name="by hand <i>")
DESIGN = check_design(design("0.5", "1e-4"), 2**32).check


def words(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


@pytest.mark.parametrize("page", [cellkey_html(CHECK), cellkey_html(DESIGN)])
def test_pages_are_whole_and_load_nothing(page: str) -> None:
    assert page.startswith("<!DOCTYPE html>")
    assert "<i>" not in page
    assert not re.search(r"(src|href)=|https?://|<script", page)
    for figure in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ElementTree.fromstring(figure)


def test_fields_are_plain() -> None:
    made = check_design(design("0.5", "1e-4"), 2**32)
    for fields in (check_json(CHECK), design_json(made)):
        assert json.loads(json.dumps(fields)).keys() == fields.keys()


def test_a_check_shows_all_its_figures() -> None:
    shown = words(cellkey_html(DESIGN))
    for size in (
        "2⁸ keys: too few, 13 noise values would be lost",
        "2¹⁶ keys: both counts",
        "2³² keys: both counts",
        "2⁶⁴ keys: both counts",
    ):
        assert size in shown
    whole = "2³², as it is Any two such counts, zero and one included 0.501 0 2³², as it is Both counts at least 1 0.00223 3.17"
    large = " ".join(
        f"{size} Both counts at least 25 {figures}" for size, figures in (("2¹⁶", "0.000107 0.511"), ("2³²", "0.0000992 0.499"))
    )
    assert f"{whole} 2⁸, too few: 13 noise values would be lost - - - {large}" in shown
    assert "Both counts at least 25, before rounding" in shown
    assert "do not compose" in shown
    assert "no differential privacy guarantee" in shown
    by_hand = words(cellkey_html(CHECK))
    assert "A count of one is distinguished from zero with probability 0.5, whatever epsilon is." in by_hand
    assert by_hand.count("The noise is 0 with a probability") == 3, "a count without noise has no chart"
    assert "Keys 100,000,000" in by_hand
    assert "0 0 0 100 % none 1 0 1 0 % -1 to 1" in by_hand, "no range of noise where there is none"


def test_zeros_that_stay_are_said_to_tell() -> None:
    """Between counts 0 and 1: what is published above 0 is certain to come from 1."""
    check = check_table(PerturbationTable.from_probabilities({1: {-1: "0.01", 0: "0.99"}, 2: {0: 1}}), name="t")
    assert check.losses.zero_shown is not None
    assert check.losses.zero_shown.up() == pytest.approx(0.99)
    with_row = check_table(PerturbationTable.from_probabilities({0: {0: 1}, 1: {-1: "0.01", 0: "0.99"}, 2: {0: 1}}), name="t")
    assert check_json(with_row)["losses"] == check_json(check)["losses"]
    large = check_table(PerturbationTable.from_probabilities({5: {-1: "0.5", 1: "0.5"}}), name="t")
    assert (large.losses.at_least, large.above_zero) == (5, None)


def test_the_worst_pair_is_the_one_that_reaches_the_highest_plateau_last() -> None:
    """Counts 0 and 1: 1/2, from epsilon 0 on. 2 and 3: 1/2 too, but from ln 2 on: 3/4 - e^epsilon / 8 falls to 1/2 there."""
    rows = {1: {-1: "1/2", 0: "1/4", 1: "1/4"}, 2: {-2: "3/4", 2: "1/4"}, 3: {-3: "1/8", 1: "3/8", 2: "1/2"}}
    check = check_table(PerturbationTable.from_probabilities(rows, repeat=0), name="t")
    assert (check.losses.worst.at_least, check.losses.plateau) == (2, 0.5)
    assert check.losses.plateau_epsilon == pytest.approx(math.log(2))
    assert "counts 2 and 3: delta = 0.5 from epsilon = 0.693148 on" in check_screen(check)


def test_the_figure_has_the_last_delta_at_the_end_of_its_lines() -> None:
    figures = re.findall(r"<svg.*?</svg>", cellkey_html(DESIGN), re.DOTALL)
    numbers = re.findall(r'text-anchor="end"[^>]*>([0-9.]+)<', figures[0])
    assert {"0.501", "0.0000992"} <= set(numbers)


def test_a_table_that_misses_its_target_says_so_first() -> None:
    """At 2^16 keys rounding takes delta(0.5) from 9.913e-5 to 1.085e-4."""
    made = design("0.5", "1e-4")
    missed = check_design(made, 2**16)
    assert missed.delta_of_table == made.quantised(2**16).epsilon_delta().delta("0.5") > 1e-4
    assert check_sentences(missed.check)[0] == design_json(missed)["missed"]
    assert "THE TABLE MISSES THE TARGET: rounded to 2^16 keys it has delta = 0.000109" in words(cellkey_html(missed.check))
    kept = check_design(made, 2**32)
    assert (kept.check.missed, kept.delta_of_table <= 1e-4) == (None, True)
    assert "MISSES" not in cellkey_html(kept.check)


def test_a_curve_that_reaches_zero_is_drawn_to_the_lower_edge() -> None:
    figure = delta_figure(
        "t", [DeltaCurve("a", [(0.0, 0.5), (1.0, 0.0)], "w"), DeltaCurve("b", [(0.0, 1.0), (1.0, LOWEST / 10)], "w")], Say()
    ).picture
    places = [tuple(map(float, point.split(","))) for point in re.findall(r'points="([^"]*)"', figure)[0].split()]
    assert places[0][1] < places[1][1]
    assert len(re.findall("<polyline", figure)) == 2
