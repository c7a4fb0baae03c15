"""What charts are made of: ticks that do not collide, labels of powers, axes that end where lines end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.card.figure_facts import NoiseLawFacts
from holdfast.report.figures.noise import noise_figure
from holdfast.report.figures.svg import axis_below, linear, on_page, picture, steps_down
from holdfast.report.frame import capital, text
from holdfast.wording.catalogue import Sentences

from .cards import Page


@pytest.mark.parametrize(
    ("low", "ticks"),
    [(0.5, [1.0]), (0.1, [1.0, 0.5, 0.2, 0.1]), (0.01, [1.0, 0.1, 0.01]), (1 / 120, [1.0, 0.1, 0.01])],
)
def test_a_short_logarithmic_axis_has_more_than_its_ends(low: float, ticks: list[float]) -> None:
    assert steps_down(1.0, low) == pytest.approx(ticks)


@given(st.floats(1e-20, 1.0))
def test_steps_down_are_few_and_inside(low: float) -> None:
    ticks = steps_down(1.0, low)
    assert ticks[0] == 1.0
    assert ticks == sorted(ticks, reverse=True)
    assert len(ticks) <= 11
    assert min(ticks) >= low * (1 - 1e-6)


def test_an_axis_ends_where_it_is_told_to() -> None:
    drawn = Page(str(picture("x", "t", "w", 100, *axis_below(linear(0, 10, 20, 320), [0, 4, 8], 0, 80, "sweeps", 320))))
    assert ("20", "320") in {(line["x1"], line["x2"]) for line in drawn.all("line")}
    assert "http" not in on_page(picture("x", "t", "w", 100))


@given(st.lists(st.tuples(st.integers(-40, 40), st.floats(0.001, 1)), min_size=1, max_size=20, unique_by=lambda pair: pair[0]))
def test_bars_of_noise_stand_inside_above_their_values(law: list[tuple[int, float]]) -> None:
    total = sum(share for _, share in law)
    figure = noise_figure(Sentences(), 1, NoiseLawFacts("x", tuple(sorted((value, share / total) for value, share in law))))
    page = Page(figure.svg)
    bars = [(float(bar["x"] or ""), float(bar["width"] or "")) for bar in page.all("rect")]
    assert all(x >= 44 and x + width <= 344 for x, width in bars)
    middles = [round(x + width / 2, 1) for x, width in bars]
    shown = {label["x"] for label in page.all("text") if label["text-anchor"] == "middle"}
    assert shown
    assert all(44 <= float(place or "") <= 344 for place in shown)
    assert middles == sorted(middles)


def test_a_capital_letter_leaves_html_as_it_is() -> None:
    assert capital("exact: so") == "Exact: so"
    assert capital(text("a & b")) == "A &amp; b"
    assert text(capital(text("a & b"))) == "A &amp; b", "not escaped twice"
    assert capital("") == ""
