"""The page of a diagnosis: well formed, self-contained, and readable without seeing its figures or their colours."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from markupsafe import Markup

from holdfast.report.figures.svg import WIDTH
from holdfast.report.frame import Say, join, tag
from holdfast.research.chains.page import (
    LEFT,
    PLOT,
    RIGHT,
    TOP,
    AllBlocksFacts,
    ChainsFacts,
    CurveFacts,
    MechanismFacts,
    Movement,
    RowFacts,
    TableFacts,
    curve_figure,
    diagnosis_html,
)
from tests.report.cards import HOSTILE, Page
from tests.snapshot_files import Snapshot


def a_curve(lag: int, end: int, **changes: Any) -> dict[str, Any]:
    """A bound that falls evenly to zero, with two steps a sweep."""
    sweeps = [end * i / 20 for i in range(21)]
    return {
        "lag_steps": 2 * lag,
        "lag_sweeps": lag,
        "assessed": False,
        "pairs": 200,
        "met": 200,
        "is_bound": True,
        "end_sweeps": float(end),
        "sweeps": sweeps,
        "estimate": [1.25 * (1 - i / 20) for i in range(21)],
        "upper": [1.5] * 21,
    } | changes


def a_row(kernel: str, end: int, **changes: Any) -> dict[str, Any]:
    return {
        "block": "4 x 4 grid",
        "kind": "grid",
        "shape": [4, 4],
        "cells": 16,
        "free_dimensions": 9,
        "blocks": 3,
        "kernel": kernel,
        "problem": None,
        "warning": None,
        "steps_per_sweep": 2,
        "lag_steps": 20,
        "lag_sweeps": 10,
        "pairs": 200,
        "met": 200,
        "given_up_after_sweeps": 10_000,
        "median_meeting_steps": end,
        "median_meeting_sweeps": end // 2,
        "largest_meeting_steps": 2 * end,
        "largest_meeting_sweeps": end,
        "recommended_steps": 4 * end,
        "recommended_sweeps": 2 * end,
        "eta": "3/200",
        "added_delta": "0.0343",
        "movement": {
            "acceptance_rate": 0.284,
            "draws": 8000,
            "effective_sample_size": 121.2,
            "autocorrelation_sweeps": 65.99,
            "columns": {},
            "note": None,
        },
        "curves": [a_curve(10, end, assessed=True), a_curve(5, end), a_curve(20, end)],
    } | changes


def censored(kernel: str) -> dict[str, Any]:
    """A row without a bound."""
    left = a_curve(100, 100, assessed=True, is_bound=False, met=3, upper=None)
    left |= {"sweeps": left["sweeps"][:-1], "estimate": [1 - i / 100 for i in range(20)]}
    words = "no bound: 3 of 200 pairs met within 100 sweeps"
    absent = dict.fromkeys(
        ("median_meeting_sweeps", "largest_meeting_sweeps", "recommended_steps", "recommended_sweeps", "eta", "added_delta")
    )
    return a_row(kernel, 100, problem=words, curves=[left], met=3, lag_steps=200, lag_sweeps=100, **absent)


FIELDS: dict[str, Any] = {
    "confidential": False,
    "confidential_text": None,
    "table": {"name": "education", "cells": 48},
    "kept": ["margin(a)", "margin(b)"],
    "kept_texts": ["by a", "by b"],
    "mechanism": {"name": "generalized-laplace", "parameters": {"epsilon": "1/4", "norm": "l1"}},
    "pairs": 200,
    "most_sweeps": 10_000,
    "status": "estimated",
    "text": "Estimated, not proved.",
    "verdict": "Chains come to their law: take line_gibbs for 40 sweeps.",
    "together": {"blocks": 3, "eta": "9/200", "added_delta": "0.103", "text": "eta = 0.045 for 3 blocks together."},
    "rows": [a_row("metropolis", 9000), a_row("line_gibbs", 40), censored("other")],
}


def facts_of(fields: dict[str, Any]) -> ChainsFacts:
    """The facts of plain values; a text may be anything."""
    rows = tuple(
        RowFacts(
            **{
                **row,
                "shape": tuple(row["shape"]),
                "movement": None if row["movement"] is None else Movement(**row["movement"]),
                "curves": tuple(CurveFacts(**curve) for curve in row["curves"]),
            }
        )
        for row in fields["rows"]
    )
    parts = {
        "table": TableFacts(**fields["table"]),
        "mechanism": MechanismFacts(**fields["mechanism"]),
        "together": AllBlocksFacts(**fields["together"]),
    }
    return ChainsFacts(**{**fields, **parts, "rows": rows})


def drawn(rows: list[dict[str, Any]]) -> Markup:
    """The picture with its caption."""
    figure = curve_figure(0, "x", facts_of({**FIELDS, "rows": rows}).rows, Say())
    return join(figure.picture, tag("figcaption", figure.caption))


def read(**changes: Any) -> Page:
    return Page(diagnosis_html(facts_of({**FIELDS, **changes})))


class TestWords:
    def test_it_says_what_a_reader_needs(self, snapshot: Snapshot) -> None:
        """The figures too, in words."""
        snapshot(read().lines)

    def test_a_lag_that_is_no_whole_number_of_sweeps(self) -> None:
        row = a_row("line_gibbs", 40, curves=[a_curve(2, 40, lag_steps=3), a_curve(1, 40, lag_steps=1), a_curve(1, 40)])
        text = read(rows=[row]).text
        for words in ("line_gibbs, lag 3 steps", "line_gibbs, lag 1 step", "line_gibbs, lag 1 sweep"):
            assert words in text

    def test_one_sweep(self) -> None:
        text = read(most_sweeps=1, rows=[a_row("line_gibbs", 40, recommended_sweeps=1, recommended_steps=2)]).text
        assert "given up after 1 sweep " in text
        assert "1 sweep (2 steps)" in text
        assert "1 sweeps" not in text

    def test_a_warning_is_shown(self) -> None:
        row = a_row("line_gibbs", 40, warning="at a lag of 4 sweeps a pair took 90 sweeps, more than are recommended")
        assert f"Warning: line_gibbs, 4 x 4 grid: {row['warning']}" in read(rows=[row]).text

    def test_no_delta_and_no_diagnostics(self) -> None:
        moved = dict.fromkeys(("draws", "effective_sample_size", "autocorrelation_sweeps", "columns")) | {"acceptance_rate": 1.0}
        note = {"note": "not installed: pip install holdfast[diagnose]"}
        text = read(rows=[a_row("line_gibbs", 40, added_delta=None, movement={**moved, **note})]).text
        assert "3/200 -" in text
        assert "100 % not installed: pip install holdfast[diagnose]" in text
        assert "100 % nothing moved" in read(rows=[a_row("line_gibbs", 40, movement={**moved, "note": None})]).text

    def test_nothing_was_run(self) -> None:
        page = read(rows=[], together={**FIELDS["together"], "text": "Nothing is left for a chain."})
        assert "Nothing is left for a chain." in page.text
        assert page.all("svg") == []

    def test_confidential_is_said_first_and_last(self) -> None:
        words = "CONFIDENTIAL: this law depends on the data."
        html = diagnosis_html(facts_of({**FIELDS, "confidential": True, "confidential_text": words}))
        page = Page(html)
        assert page.text.startswith(f"CONFIDENTIAL: Chains for education {words}")
        assert page.text.endswith(words)
        assert "No count enters" not in page.text
        assert '@top-center { content: "CONFIDENTIAL"' in html
        assert "CONFIDENTIAL" not in diagnosis_html(facts_of(FIELDS))


class TestFigures:
    def test_one_for_each_block_with_names_of_its_own(self) -> None:
        page = read(rows=[a_row("metropolis", 90), a_row("line_gibbs", 40), a_row("line_gibbs", 30, block="one sum of 5 cells")])
        identifiers = [attributes["id"] for which in ("title", "desc") for attributes in page.all(which) if "id" in attributes]
        assert identifiers == ["curves-0-title", "curves-1-title", "curves-0-words", "curves-1-words"]
        assert [(svg["role"], svg["aria-labelledby"]) for svg in page.all("svg")] == [("img", "curves-0-title"), ("img", "curves-1-title")]
        assert len(page.all("polyline")) == 9
        assert len(page.all("figcaption")) == len(page.all("desc")) == 2

    def test_nothing_is_told_by_colour_alone(self) -> None:
        page = Page(drawn([a_row("metropolis", 90), a_row("line_gibbs", 60), censored("line_gibbs")]))

        def style(line: dict[str, str | None]) -> tuple[str | None, ...]:
            return line["stroke-width"], line.get("stroke-dasharray")

        lines = [style(line) for line in page.all("polyline")]
        assert lines[:3] == [("2.2", None), ("1.1", None), ("1.1", "2 3")]  # assessed, shorter, longer lag
        assert lines[3:6] == lines[:3]
        assert lines[6] == ("2.2", "9 5")
        shapes = {(path["stroke"], re.sub(r"^M\S+ [\d.]+m", "", path["d"] or "")) for path in page.all("path")}
        assert len(shapes) == len({shape for _, shape in shapes}) == 2
        assert page.text.count("not a bound") == 3  # at its line, in the legend, and in words

    @pytest.mark.parametrize(
        "rows",
        [
            [a_row("metropolis", 9000), a_row("line_gibbs", 1)],
            [a_row("line_gibbs", 1)],
            [a_row("line_gibbs", 37)],
            [censored("metropolis")],
            [a_row("other", 40, curves=[a_curve(1, 1, pairs=2, met=2)])],
            [a_row("line_gibbs", 1, curves=[a_curve(1, 1, end_sweeps=1e-4, sweeps=[0.0, 1e-4], estimate=[0.5, 0.0])])],
            [a_row("line_gibbs", 1, curves=[a_curve(1, 1, is_bound=False, sweeps=[0.0], estimate=[1.0])])],
        ],
        ids=range(7),
    )
    def test_lines_stay_inside_and_fall(self, rows: list[dict[str, Any]]) -> None:
        page = Page(drawn(rows))
        for line in page.all("polyline"):
            points = [tuple(map(float, point.split(","))) for point in (line["points"] or "").split()]
            assert all(LEFT <= x <= WIDTH - RIGHT and TOP <= y <= TOP + PLOT for x, y in points)
            assert points == sorted(points)
            assert [y for _, y in points] == sorted(y for _, y in points)

    def test_the_floor_is_drawn_where_it_says_something(self) -> None:
        assert "3/N = 0.015: less cannot be said from 200 pairs" in Page(drawn([a_row("line_gibbs", 40)])).text
        few = a_row("line_gibbs", 40, curves=[a_curve(1, 40, pairs=3, met=3, assessed=True)])
        assert "So few pairs say nothing" in Page(drawn([few])).text

    def test_the_axis_is_logarithmic_only_where_kernels_are_far_apart(self) -> None:
        near, far = ([a_row("metropolis", end), a_row("line_gibbs", 40)] for end in (800, 801))
        assert "logarithmic" not in Page(drawn(near)).text
        assert "sweeps (logarithmic scale)" in Page(drawn(far)).text

    def test_the_axis_begins_where_a_bound_begins_to_say_something(self) -> None:
        """It began at 0, and a curve that stays above 1 for long was a line along the upper edge. What is no bound makes it no longer."""
        falls = {"sweeps": [float(i) for i in range(0, 401, 20)], "estimate": [2.0] * 15 + [0.9, 0.7, 0.5, 0.3, 0.1, 0.0]}
        late = a_row("line_gibbs", 400, curves=[a_curve(1, 400, assessed=True, **falls)])
        without = a_curve(100, 9000, is_bound=False, upper=None, sweeps=[450.0 * i for i in range(20)], estimate=[1.0] * 20)
        for rows in ([late], [late, a_row("metropolis", 9000, problem="no bound", curves=[without])]):
            page = Page(drawn(rows))
            assert "logarithmic" not in page.text
            first = [tuple(map(float, point.split(","))) for point in (page.all("polyline")[0]["points"] or "").split()]
            assert [x > LEFT for x, _ in first] == [False] * 15 + [True] * 6  # the axis begins at 280, the last sweep at 1 or more
            assert first[-1][0] == WIDTH - RIGHT
            assert re.search(r"(?<![\d.])280(?![\d.])", page.text)


class TestForm:
    def test_it_can_be_read_by_everyone(self) -> None:
        page = read()
        assert page.all("html") == [{"lang": "en"}]
        assert len(page.all("main")) == len(page.all("h1")) == 1
        assert len(page.all("caption")) == len(page.all("table")) == 3, "found, moving, and the data of the figure"
        assert all(attributes.get("scope") in ("row", "col") for attributes in page.all("th"))

    def test_it_loads_nothing_and_runs_nothing(self) -> None:
        page = read()
        assert {element for element, _, _ in page.elements}.isdisjoint({"script", "link", "img", "iframe", "object", "a"})
        assert not any(name in ("src", "href") or name.startswith("on") for _, attributes, _ in page.elements for name in attributes)
        assert not re.search(r"url\(|@import|https?:", diagnosis_html(facts_of(FIELDS)))
        (policy,) = (meta["content"] for meta in page.all("meta") if "http-equiv" in meta)
        assert policy == "default-src 'none'; style-src 'unsafe-inline'"

    @pytest.mark.parametrize("hostile", HOSTILE, ids=lambda value: ascii(value)[:30])
    def test_hostile_text_changes_no_element(self, hostile: str) -> None:
        def page(text: str) -> Page:
            fields = copy.deepcopy(FIELDS)
            fields["table"]["name"], fields["kept_texts"] = text, [text]
            fields["mechanism"] = {"name": text, "parameters": {text: text}}
            fields["text"] = fields["together"]["text"] = text
            for row in fields["rows"]:
                row |= {"block": text, "problem": row["problem"] and text, "warning": text}
            html = diagnosis_html(facts_of(fields))
            assert html.encode("utf-8")
            return Page(html)

        assert page(hostile).elements == page("harmless").elements
        assert page(hostile).comments == 0

    def test_the_same_fields_give_the_same_bytes(self) -> None:
        assert diagnosis_html(facts_of(FIELDS)) == diagnosis_html(facts_of(copy.deepcopy(FIELDS)))
