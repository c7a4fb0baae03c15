"""The parts of a page: nothing gets onto it unescaped, and numbers read as they should."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

import holdfast as hf
from holdfast.mechanisms import MECHANISMS
from holdfast.report.frame import name, shorten_name, table, tag, text
from holdfast.report.page import cost_rows, is_suppressed, settings

from .cards import HOSTILE, Page, a_card


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda value: ascii(value)[:30])
def test_text_is_escaped_where_ever_it_stands(hostile: str) -> None:
    html = tag("p", hostile, tag("b", hostile), title=hostile)
    page = Page(html)
    assert [element for element, _, _ in page.elements] == ["p", "b"]
    assert list(page.all("p")[0]) == ["title"]
    assert html.encode("utf-8")
    assert not any(ord(character) < 32 and character != "\n" for character in html)


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_ordinary_text_comes_back_as_it_was(value: str) -> None:
    page = Page(tag("span", value))
    assert "".join(page.pieces) == value


@given(st.text())
def test_any_text_makes_a_well_formed_element(value: str) -> None:
    html = tag("td", value, class_=value)
    assert len(Page(html).elements) == 1
    html.encode("utf-8")


def test_control_characters_are_shown() -> None:
    assert text("a\x1b[31m\x00\u202e\ud800") == "a\\x1b[31m\\x00\\u202e\\ud800"
    assert text("two\nlines\tand more") == "two lines and more"


def test_html_is_not_escaped_twice() -> None:
    assert text(text("<&>")) == "&lt;&amp;&gt;"
    assert tag("p", Markup("<b>x</b>")) == "<p><b>x</b></p>\n"


def test_what_is_added_to_markup_is_escaped() -> None:
    """Also by operators and methods of text: forgetting to escape a value leaves no hole."""
    assert text("{x} & y").format(x="<b>") == "&lt;b&gt; &amp; y"
    assert text("a & ") + "<b>" == "a &amp; &lt;b&gt;"
    assert Markup("; ").join(["<b>", tag("b", "x")]) == "&lt;b&gt;; <b>x</b>"


def test_a_long_name_is_shortened() -> None:
    assert name("x" * 120) == f"<bdi>{'x' * 120}</bdi>"
    assert name("x" * 121) == f"<bdi>{'x' * 79}…{'x' * 40}</bdi>"


def test_each_part_of_a_long_name_is_shortened_and_none_dropped() -> None:
    region, branch = (
        "Administrative region of the " + "southern and " * 8 + "provinces",
        "Manufacture of " + "basic metals and " * 9 + "scrap",
    )
    women, men = (shorten_name(f"{region}, {branch}, {sex}", 120) for sex in ("women", "men"))
    assert women.startswith("Administrative region of the south")
    assert ", Manufacture of basic metals" in women
    assert women.endswith("scrap, women")
    assert men.endswith("scrap, men")
    assert shorten_name(f"{region}, North, women", 60).endswith(", North, women"), "short parts stay whole"
    assert shorten_name("a" * 90 + "b" * 90, 120) != shorten_name("a" * 90 + "b" * 89 + "c", 120), "the end tells them apart"


@given(st.text(max_size=300), st.integers(1, 130))
def test_a_shortened_name_fits_and_a_short_one_is_left_alone(value: str, room: int) -> None:
    made = shorten_name(value, room)
    assert len(made) <= room
    assert made == value or (len(value) > room and "…" in made)


def test_settings() -> None:
    assert settings({"sigma_squared": "100", "rho": None, "norm": "l1"}) == "sigma squared 100, norm l1"
    assert settings({}) == "-"


def test_cost_rows_lead_with_what_was_asked_for() -> None:
    rows = cost_rows(a_card())
    assert rows == [
        ("As requested", "epsilon 0.192 for each unit of l1 distance between two tables"),
        ("One person", "epsilon 0.384"),
        ("Each unit of l1 distance between two tables", "epsilon 0.192"),
    ]
    alone = cost_rows(a_card(guarantee__per_person=None, guarantee__asked=None))
    assert alone[0][1].startswith("No person can change alone")
    assert alone[-1] == ("The smallest change that keeps every total (2 in l1 distance)", "epsilon 0.384")


def test_cost_rows_say_a_number_once() -> None:
    """What was asked for one person is not said again for one person, and no number of another kind of promise stands beside it."""
    asked = {"per": "person", "parameters": {"epsilon": "48/125"}, "text": "epsilon = 0.384 for one person who changes cell"}
    assert [label for label, _ in cost_rows(a_card(guarantee__asked=asked))] == [
        "As requested",
        "Each unit of l1 distance between two tables",
    ]
    other = {"per": "person", "parameters": {"epsilon": "47/125"}, "text": "another"}
    assert "One person" in dict(cost_rows(a_card(guarantee__asked=other)))
    costs = {"distance": 2, "kind": "zcdp", "epsilon": "2.88182800918", "delta": "1e-10", "rho": "0.1"}
    l2 = {"guarantee__distance": "l2", "guarantee__squared": True}
    rows = cost_rows(a_card(**l2, guarantee__per_person=costs, guarantee__smallest_secret={**costs, "found": "exact"}))
    assert ("One person", "rho 0.1 (epsilon 2.89 with delta 1e-10)") in rows, "rounded up"
    assert rows[-1][0] == "Each unit of squared l2 distance between two tables"


def test_tables_are_readable_without_seeing_them() -> None:
    page = Page(table("Caption", ("a", "b"), [("x", "1"), ("<y>", "2")]))
    assert len(page.all("caption")) == 1
    assert [attributes["scope"] for attributes in page.all("th")] == ["col", "col", "row", "row"]
    assert len(page.all("td")) == 2
    assert "<y>" in page.text


def test_columns_of_numbers_end_at_the_right() -> None:
    made = table("t", ("a", "b", "c"), [("x", "y", "7")], numbers={2})
    assert made.count('class="number"') == 2


def test_what_is_left_out_is_asked_of_the_mechanism_and_not_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Withheld(hf.Suppression):
        name = "withheld"

    monkeypatch.setitem(MECHANISMS, "withheld", Withheld)
    assert [is_suppressed(a_card(mechanism__name=name)) for name in ("withheld", "suppression", "generalized-laplace", "unknown")] == [
        True,
        True,
        False,
        False,
    ]
