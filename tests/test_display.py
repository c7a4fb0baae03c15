"""Objects fit on a line or two in terminals, whatever they hold, and show no count and no markup of others in notebooks."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.display import html_table, list_names, shorten
from holdfast.exact import DiscreteGaussian, DiscreteLaplace
from holdfast.invariants import compile_rows
from holdfast.research.laws import Computable, Weighted
from tests.examples import examples
from tests.notebooks import notebook_page

TWO_LINES = 240
MANY = [f"{i:05d}" for i in range(10_000)]
SECRET = 7319465
ODD = "two\nlines\r\t\x1b[31m <script>alert('&\")</script> \u2028\U000e0001" + "x" * 500

names = st.text(min_size=1, max_size=300) | st.sampled_from([ODD, "\n", "'\"", "<b>", "é" * 1000])


def table_of(name: str) -> hf.Table:
    universe = hf.Universe.product({name: ["a", "b"], name + "2": ["c"]})
    return hf.Table(universe, np.array([SECRET, 0]), count="n" * 900, protect=name + "u", name=name, cell_keys=np.array([SECRET + 1, 0]))


WIDE = hf.Universe.product({f"column {i}": ["x"] for i in range(10_000)})
LONG = hf.Universe.product({"code": MANY, ODD: ["x"]})
TREE = hf.Hierarchy.from_parents(dict(zip(MANY[1:301], MANY[:300], strict=True)), levels=[f"level {i} {ODD}" for i in range(301)])
BIG = Fraction(10**399 + 1, 10**399)

LARGE: dict[str, Callable[[], Any]] = {
    "wide universe": lambda: WIDE,
    "long universe": lambda: LONG,
    "codes": lambda: WIDE.codes,
    "wide table": lambda: hf.Table(WIDE, np.array([SECRET])),
    "long table": lambda: hf.Table(LONG, np.full(10_000, SECRET), protect=ODD),
    "hierarchy": lambda: TREE,
    "margin": lambda: hf.margin(*MANY),
    "identity": lambda: hf.identity(hf.margin(*MANY), values=0),
    "subset": lambda: hf.subset(ODD, MANY, by=MANY),
    "node": lambda: hf.subset(ODD, node=ODD, by=MANY),
    "condition": lambda: hf.identity(hf.subset(ODD, by=MANY)),
    "areas": lambda: hf.areas(ODD, dict.fromkeys(MANY[:20], MANY), by=MANY),
    "linear": lambda: hf.linear(np.eye(1000, dtype=np.int64), names=MANY[:1000], values=range(1000)),
    "linear of lists": lambda: hf.identity(hf.linear([[1] * 10_000] * 3)),
    "kept": lambda: compile_rows(LONG, [hf.margin("code"), hf.total()]),
    "lattice": lambda: hf.lattice(LONG, [hf.total()]),
    "laplace": lambda: DiscreteLaplace(BIG),
    "gaussian": lambda: DiscreteGaussian(BIG, center=BIG, lower=-(2**61), upper=2**61),
    "weighted": lambda: Weighted(dict.fromkeys(range(10_000), "1/3")),
    "computable": lambda: Computable(ODD, 0, 1, arb),
    "key": lambda: hf.NoiseKey.for_tests(ODD),
}


LONG_NUMBER = Fraction(10**60 + 1, 3 * 10**61)
SQUARE = hf.Universe.product({"a": MANY[:100], "b": MANY[100:200]})
KEEP = {"nothing": [], "rows": [hf.margin("a")], "rows and columns": [hf.margin("a"), hf.margin("b")]}
MECHANISMS: dict[str, Any] = {
    "laplace": hf.GeneralizedLaplace(epsilon=LONG_NUMBER, per="distance"),
    "gaussian": hf.GeneralizedGaussian(epsilon=LONG_NUMBER, delta=LONG_NUMBER / 10**9, per="distance"),
    "gaussian with options": hf.GeneralizedGaussian(
        epsilon=LONG_NUMBER, delta=LONG_NUMBER, calibration="simple", allow_estimated=True, eta=LONG_NUMBER, per="distance"
    ),
    "rounded": hf.RoundedProjection(epsilon=LONG_NUMBER),
    "suppression": hf.Suppression(),
}


class Cells(HTMLParser):
    """The texts of the cells of a table, and every tag that was opened."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def check_line(text: str) -> None:
    assert len(text) <= TWO_LINES, text
    assert text.isprintable(), ascii(text)


def check_html(html: str) -> Cells:
    cells = Cells(html)
    assert set(cells.tags) <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "bdi"}
    assert len(html) < 100_000
    assert str(SECRET)[:-1] not in html
    return cells


@pytest.mark.parametrize("make", LARGE.values(), ids=LARGE.keys())
def test_a_line_or_two_whatever_the_size(make: Callable[[], Any]) -> None:
    thing = make()
    check_line(repr(thing))
    assert str(SECRET) not in repr(thing)
    if hasattr(thing, "_repr_html_"):
        check_html(notebook_page(thing))


@pytest.mark.parametrize("keep", KEEP.values(), ids=KEEP.keys())
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())
def test_releases_and_what_they_are_made_of(mechanism: Any, keep: list[Any]) -> None:
    """With 10,000 cells and numbers of 60 digits: two lines each, and nothing of the counts."""
    check_line(repr(mechanism))
    table = hf.Table(SQUARE, np.full(10_000, SECRET), name=ODD, protect=ODD)
    try:
        plan = hf.plan(table, keep, mechanism)
    except hf.errors.NoExactSampler:
        assert (mechanism.name, keep) == ("generalized-laplace", KEEP["rows and columns"]), "only this has no exact sampler"
        return
    shown = [plan, plan.guarantee, plan.drawing, plan.drawing.channel]
    if plan.mechanism.publishes_cells:
        shown += [plan.law, *([plan.law.covariance()] if keep == KEEP["rows"] else [])]
    if keep == KEEP["rows"]:
        shown.append(hf.release(table, keep, mechanism, release_id="r" * 80, ledger=None))
    for thing in shown:
        check_line(repr(thing))
        assert str(SECRET) not in repr(thing)
        if hasattr(thing, "_repr_html_"):
            check_html(notebook_page(thing))


def test_channels_and_drawings_say_what_is_drawn() -> None:
    plan = hf.plan(SQUARE, [hf.margin("a")], hf.GeneralizedGaussian(rho="1/8", per="distance"))
    assert repr(plan.drawing.channel) == "Channel(gaussian 4; 10000 cells, 100 blocks of 1 shapes)"
    assert repr(plan.drawing) == "Drawing(gaussian 4; 10000 cells, 100 blocks of 1 shapes; sequential Gaussian)"


def test_a_release_in_a_notebook_says_first_that_it_is_not_private() -> None:
    table = hf.Table(hf.Universe.product({"a": ["1", "2"], "b": ["1", "2", "3"]}), np.full(6, SECRET))
    made = {
        key: hf.release(table, [hf.margin("a")], hf.GeneralizedLaplace(epsilon="1/2", per="distance"), key=key, ledger=None)
        for key in (hf.NoiseKey.for_tests(1), None)
    }
    for key, release in made.items():
        promised, _, rows = notebook_page(release).partition("</table>")
        texts = check_html(promised).texts
        shown = dict(zip(texts[1::2], texts[2::2], strict=True))
        assert (texts[1] == "Warning" and texts[2].startswith("NOT PRIVATE: drawn with a test key. ")) == (key is not None)
        assert ("NOT PRIVATE" in notebook_page(release)) == (key is not None)
        assert shown["asked"] == "epsilon = 0.5 per distance"
        assert shown["Kept"] == "by a: 2 totals, 2 independent; 4 free dimensions"
        assert check_html(rows).texts[0].startswith("All 6 rows")
        assert shown["Promise"] == hf.describe(release.guarantee)
    assert hf.describe(release.plan) == hf.describe(release) == hf.describe(release.law) == hf.describe(release.guarantee)


def test_markup_of_others_is_escaped() -> None:
    """Names of columns, codes, units and tables reach notebooks as text, in whatever object shows them."""
    bad = "<img src=x onerror=alert(1)>&\"'"
    universe = hf.Universe.product({bad: [bad, "2"], "b": [bad, "q", "r"]})
    table = hf.Table(universe, np.full(6, SECRET), count=bad + "n", protect=bad, name=bad)
    keep = [hf.margin(bad), hf.identity(hf.subset(bad, [bad], by=["b"]))]
    made = hf.release(table, keep[:1], hf.GeneralizedLaplace(epsilon=1, per="distance"), key=hf.NoiseKey.for_tests("markup"))
    for thing in (table, universe, made.plan, made.guarantee, made, hf.plan(table, keep, hf.Suppression())):
        cells = check_html(notebook_page(thing))
        assert "img" not in cells.tags
        assert "<img" not in notebook_page(thing)


@settings(max_examples=examples(60))
@given(names)
def test_odd_names(name: str) -> None:
    table = table_of(name)
    for thing in (
        table,
        table.universe,
        table.universe.codes,
        hf.margin(name),
        hf.subset(name, [name], by=[name + "2"]),
        hf.areas(name, {name: [name]}),
    ):
        check_line(repr(thing))
    for shown in (table, table.universe):
        check_html(notebook_page(shown))


def test_constraints_read_as_they_are_written() -> None:
    names = {name: getattr(hf, name) for name in ("total", "margin", "subset")}
    for text in (
        "total()",
        "margin('state', 'sex')",
        "subset('age', ['85+', '34'], by=['county'])",
        "subset('county', node='17')",
        "subset('age >= 18')",
    ):
        assert repr(eval(text, names)) == text
        for values in ("7", "[7, 8]"):
            assert repr(hf.identity(eval(text, names), values=eval(values))) == f"identity({text}, values={values})"
    assert repr(hf.identity(hf.subset("age >= 18"))) == "identity(subset('age >= 18'))"
    assert repr(hf.areas("block", {"a": ["1"]}, by=["sex"])) == "areas('block', 1 sets, by=['sex'])"
    assert repr(hf.linear([[1, 2]], ["a"], [3])) == "linear(1 rows, names=['a'], 1 values)"


def test_a_long_law_keeps_its_stream() -> None:
    """The label of a law's stream holds every digit: laws that print alike draw differently."""
    one, other = (DiscreteLaplace(Fraction(10**399 + k, 10**398 + 3)) for k in (10**200, 2 * 10**200))
    assert repr(one) == repr(other)
    assert one.stream_name != other.stream_name
    assert DiscreteLaplace("1/3").stream_name == repr(DiscreteLaplace("1/3"))


def test_a_table_in_a_notebook_shows_declarations_only() -> None:
    tree = hf.Hierarchy.from_prefixes(["17031", "17043"], [2])
    table = hf.Table(hf.Universe.product({"county": tree, "<i>": ["F"]}), np.array([SECRET, 3]), protect="house & home", name="Trial")
    texts = check_html(notebook_page(table)).texts
    assert texts[0] == "Table: Trial"
    shown = dict(zip(texts[1::2], texts[2::2], strict=True))
    assert shown == {
        "protects": "house & home, with at most 1 record",
        "column of counts": "count",
        "hidden": "counts",
        "cells": "2, all combinations",
        "universe": "declared",
        "column county": "2 codes, in a hierarchy with 2 levels",
        "column <i>": "1 code",
    }


@settings(max_examples=examples(60))
@given(st.text(max_size=200), st.integers(12, 80))
def test_shortened_texts(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit
    assert short.isprintable()
    if text.isprintable() and len(text) <= limit:
        assert short == text


def test_lists_and_tables_say_how_much_is_left_out() -> None:
    assert list_names(["a", "b"]) == "a, b"
    assert list_names(["a", "b"], show=repr) == "'a', 'b'"
    assert list_names(MANY, 20) == "00000, 00001, 00002 and 9,997 more"
    texts = Cells(html_table("t", [(name, name) for name in MANY])).texts
    assert texts[-2:] == ["...", "9,960 more"]
