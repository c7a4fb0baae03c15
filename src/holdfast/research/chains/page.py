"""The page of `holdfast diagnose`: how fast chains come to their law, as a table and as figures.

Facts that were not found are None; `--json` has the same. A figure has estimated total variation bounds against sweeps, a line for each
kernel and lag. Its vertical axis is logarithmic and ends at 1, above which a bound says nothing. The shape of the marks shows the kernel,
the line shows the lag, and long dashes show that a curve is not a bound: no meaning depends on colour alone, and a text gives all figures
as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from holdfast.card.parts import Settings
from holdfast.exact.formatting import format_deviation, format_number, format_power
from holdfast.report.figures import svg as draw
from holdfast.report.frame import PageFigure, PageTable, Say, name, render, tag, text
from holdfast.report.page import mechanism_text, names, sentences

LEFT, RIGHT, TOP, PLOT = 42, 14, 12, 170
END, BASE = draw.WIDTH - RIGHT, TOP + PLOT
AXIS, LINE = 52, 17
"""Room under the plot for its axis, and for each line of the legend."""
LOGARITHMIC = 20
"""Times that the longest curve exceeds the shortest for the horizontal axis to be logarithmic."""
MARKS = 8
FLOOR = {"stroke": "#8c1616", "stroke_width": "1.2", "stroke_dasharray": "1 3 6 3"}

INKS = {"metropolis": "#1b4f8a", "line_gibbs": "#a8530b"}
SHAPES = {
    "metropolis": "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z",
    "line_gibbs": "m-3 -3h6v6h-6z",
}


def curve_figure(index: int, title: str, rows: Sequence[RowFacts], say: Say) -> PageFigure:
    """The chart of one shape of block, with its main figures in words. `index` makes names on the page unique.

    Given:       rows with at least one curve each.
    """
    drawn = [(row, curve) for row in rows for curve in row.curves]
    pairs = max(curve.pairs for _, curve in drawn)
    bottom = 1 / (2 * pairs)
    bounds = [curve for _, curve in drawn if curve.is_bound] or [curve for _, curve in drawn]
    begin, end = min(map(_first_seen, bounds)), max(curve.end_sweeps for curve in bounds)
    across, ticks, scale = _across(begin, [curve.end_sweeps for curve in bounds], say)
    up = draw.logarithmic(bottom, 1.0, BASE, TOP)
    legend = [piece for at, (row, curve) in enumerate(drawn) for piece in _legend(row, curve, BASE + AXIS + LINE * at, say)]
    height = BASE + AXIS + LINE * len(drawn) + 8
    text = " ".join(_words(row, curve, say) for row, curve in drawn)
    svg = draw.picture(
        f"curves-{index}",
        say("diagnosis.curve_title", block=title),
        text,
        height,
        *draw.axis_left(up, draw.steps_down(1.0, bottom), LEFT, END, format_power),
        *draw.axis_below(across, ticks, TOP, BASE, scale, END),
        *([draw.line(LEFT, up(3 / pairs), END, up(3 / pairs), **FLOOR)] if pairs > 3 else []),
        *(
            piece
            for at, (row, curve) in enumerate(drawn)
            for piece in _line(row, curve.between(ticks[0], end), across, up, (bottom, at), say)
        ),
        *legend,
        *_floor_legend(BASE + AXIS + LINE * len(drawn), pairs, say),
    )
    return PageFigure(f"curve-figure-{index}", draw.on_page(svg), say("diagnosis.curves_note"), _data(drawn, say), title)


def _data(drawn: Sequence[tuple[RowFacts, CurveFacts]], say: Say) -> PageTable:
    """What the words under the chart say of each curve, as numbers."""
    return PageTable(
        say("diagnosis.curve_data"),
        tuple(say(f"diagnosis.curve_{column}") for column in ("name", "start", "tenth", "end")),
        tuple(
            (
                _name(row, curve, say),
                format_deviation(curve.estimate[0]),
                next((format_deviation(s) for s, v in zip(curve.sweeps, curve.estimate, strict=True) if v < 0.1), "-"),
                format_deviation(curve.end_sweeps) if curve.is_bound else say("diagnosis.no_bound"),
            )
            for row, curve in drawn
        ),
        frozenset({1, 2, 3}),
    )


def _name(row: RowFacts, curve: CurveFacts, say: Say) -> Markup:
    """metropolis, lag 12 sweeps; in steps where that is no whole number of sweeps"""
    whole = curve.lag_sweeps * (row.steps_per_sweep or 1) == curve.lag_steps
    which, count = ("diagnosis.curve_sweeps", curve.lag_sweeps) if whole else ("diagnosis.curve_steps", curve.lag_steps)
    return say(which, kernel=row.kernel, count=int(count))


def _words(row: RowFacts, curve: CurveFacts, say: Say) -> Markup:
    sweeps, values = curve.sweeps, curve.estimate
    told = {"curve": _name(row, curve, say), "end": _many(curve.end_sweeps, say)}
    if not curve.is_bound:
        return say("diagnosis.curve_text_none", met=curve.met, pairs=curve.pairs, **told)
    tenth = next(s for s, v in zip(sweeps, values, strict=True) if v < 0.1)
    if not tenth:
        return say("diagnosis.curve_text_low", start=format_deviation(values[0]), **told)
    return say("diagnosis.curve_text", start=format_deviation(values[0]), tenth=_many(tenth, say), **told)


def _many(sweeps: float, say: Say) -> Markup:
    """So many sweeps, or 1 sweep."""
    return say("diagnosis.many_sweeps", count=1 if sweeps == 1 else 2, number=format_deviation(sweeps))


def _first_seen(curve: CurveFacts) -> float:
    """The sweep from which on the estimate is below 1, as far as the points tell: before it a bound says nothing."""
    high = [sweep for sweep, value in zip(curve.sweeps, curve.estimate, strict=True) if value >= 1]
    return high[-1] if high and high[-1] < curve.end_sweeps else 0.0


def _across(begin: float, ends: Sequence[float], say: Say) -> tuple[draw.Place, list[float], Markup]:
    """Where sweeps stand, the ticks, and what the axis is called. Logarithmic if one kernel is much slower than another."""
    longest, shortest = max(ends), min(ends)
    if longest > LOGARITHMIC * shortest:
        powers = draw.decades(max(shortest / 10, begin), longest)
        place = draw.logarithmic(powers[0], longest, LEFT, END)
        return place, [power for power in powers if power <= longest], say("diagnosis.sweeps_logarithmic")
    ticks = [tick for tick in draw.nice_ticks(begin, longest, 6) if tick <= longest]
    return draw.linear(ticks[0], longest, LEFT, END), ticks, say("diagnosis.sweeps")


def _floor_legend(y: float, pairs: int, say: Say) -> list[Markup]:
    """3/N: below it nothing can be said from N pairs."""
    if pairs <= 3:
        return [draw.label(say("diagnosis.few_pairs"), LEFT, y)]
    return draw.legend_line(y, say("diagnosis.floor", floor=format_deviation(3 / pairs), pairs=pairs), **FLOOR)


def _style(row: RowFacts, curve: CurveFacts) -> dict[str, str]:
    """The line of a lag: thick if assessed, thin if shorter, dotted if longer; long dashes if no bound."""
    out = {"stroke": INKS.get(row.kernel, draw.INK), "stroke_width": "2.2" if curve.assessed else "1.1"}
    if not curve.is_bound:
        return out | {"stroke_dasharray": "9 5"}
    longer = not curve.assessed and curve.lag_steps > (row.lag_steps or 0)
    return out | ({"stroke_dasharray": "2 3"} if longer else {})


def _mark(row: RowFacts, curve: CurveFacts, x: float, y: float) -> Markup:
    ink = INKS.get(row.kernel, draw.INK)
    shape = f"M{draw.coordinate(x)} {draw.coordinate(y)}{SHAPES.get(row.kernel, SHAPES['metropolis'])}"
    return tag("path", d=shape, fill=ink if curve.assessed else "#fff", stroke=ink)


def _line(row: RowFacts, curve: CurveFacts, across: draw.Place, up: draw.Place, lowest: tuple[float, int], say: Say) -> list[Markup]:
    """`lowest`: the value at the lower edge, where nothing is marked, and the number of the line, so that marks of lines stand apart."""
    bottom, at = lowest
    points = [(across(s), up(min(v, 1.0))) for s, v in zip(curve.sweeps, curve.estimate, strict=True)]
    out = [draw.polyline(points, **_style(row, curve))]
    gap = max(1, len(points) // MARKS)
    visible = [point for point, value in zip(points, curve.estimate, strict=True) if value > bottom]
    out += [_mark(row, curve, x, y) for x, y in visible[at % gap :: gap]]
    if not curve.is_bound:
        x, y = points[-1]
        out.append(draw.label(say("diagnosis.no_bound"), max(x - 4, LEFT + 70), min(y + 16, BASE - 6), "end"))
    return out


def _legend(row: RowFacts, curve: CurveFacts, y: float, say: Say) -> list[Markup]:
    which = "none" if not curve.is_bound else "assessed" if curve.assessed else "other"
    text = say(f"diagnosis.legend_{which}", curve=_name(row, curve, say))
    sample = draw.legend_line(y, text, **_style(row, curve))
    return [*sample, _mark(row, curve, 28, y - 4)]


@dataclass(frozen=True)
class CurveFacts:
    """Estimated total variation against sweeps, from pairs of chains at one lag. Where not all pairs met it is no bound."""

    lag_steps: int
    lag_sweeps: int
    assessed: bool
    """Whether the recommended number rests on it; else it is at another lag."""
    pairs: int
    met: int
    is_bound: bool
    end_sweeps: float
    sweeps: tuple[float, ...]
    estimate: tuple[float, ...]
    upper: tuple[float, ...] | None

    def between(self, begin: float, end: float) -> CurveFacts:
        """The curve as a figure shows it: points before `begin` are moved to it, and those after `end` are left out."""
        points = [(max(s, begin), v) for s, v in zip(self.sweeps, self.estimate, strict=True) if s <= end]
        return replace(self, sweeps=tuple(s for s, _ in points), estimate=tuple(v for _, v in points))


@dataclass(frozen=True)
class Movement:
    """How a chain moves once it is there: figures to four digits."""

    acceptance_rate: float
    draws: int | None = None
    effective_sample_size: float | None = None
    """Effective number of draws, for the slowest of the recorded columns."""
    autocorrelation_sweeps: float | None = None
    columns: dict[str, dict[str, float | None]] | None = None
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class RowFacts:
    """One kernel on blocks of one shape."""

    block: str
    kind: str
    shape: tuple[int, ...]
    cells: int
    free_dimensions: int
    blocks: int
    kernel: str
    problem: str | None
    """Why there is no bound; None if there is one."""
    warning: str | None
    steps_per_sweep: int | None
    lag_steps: int | None = None
    lag_sweeps: int | None = None
    pairs: int | None = None
    met: int | None = None
    given_up_after_sweeps: int | None = None
    median_meeting_steps: int | None = None
    median_meeting_sweeps: int | None = None
    largest_meeting_steps: int | None = None
    largest_meeting_sweeps: int | None = None
    recommended_steps: int | None
    recommended_sweeps: int | None
    eta: str | None
    """For one block."""
    added_delta: str | None
    movement: Movement | None
    curves: tuple[CurveFacts, ...]


@dataclass(frozen=True)
class AllBlocksFacts:
    """The error of all blocks together."""

    blocks: int
    eta: str | None
    added_delta: str | None
    text: str


@dataclass(frozen=True)
class TableFacts:
    """The table by its name."""

    name: str
    cells: int


@dataclass(frozen=True)
class MechanismFacts:
    """The mechanism and its parameters, as on a card."""

    name: str
    parameters: Settings


@dataclass(frozen=True)
class ChainsFacts:
    """A whole diagnosis."""

    confidential: bool
    confidential_text: str | None
    table: TableFacts
    kept: tuple[str, ...]
    kept_texts: tuple[str, ...]
    mechanism: MechanismFacts
    pairs: int
    most_sweeps: int
    status: str
    text: str
    verdict: str
    together: AllBlocksFacts
    rows: tuple[RowFacts, ...]


MARK = "CONFIDENTIAL"
SHOWN_CONSTRAINTS = 20


@dataclass(frozen=True)
class DiagnosisFacts:
    """What the page says, in the order of its sections; `templates/diagnosis.html.j2` arranges it."""

    what: Markup
    given: tuple[tuple[Markup, Markup], ...]
    found: PageTable | None
    without_bound: tuple[Markup, ...]
    warnings: tuple[Markup, ...]
    together: Markup
    curves: tuple[PageFigure, ...]
    moving: PageTable | None
    meaning: tuple[Markup, ...]


def diagnosis_html(found: ChainsFacts) -> str:
    """The page of a diagnosis.

    Guarantees:  a pure function of what was found. Every text is escaped; nothing is loaded from elsewhere. What depends on the data
                 says so first: in the title, at the top and at the end, and on every printed page.
    """
    say = Say()
    title = say.plain("diagnosis.title", name=found.table.name)
    return render(
        "diagnosis.html.j2",
        title=title,
        heading=say("diagnosis.title", name=name(found.table.name)),
        eyebrow=say("page.diagnosis"),
        footer=title,
        banner=tag("strong", found.confidential_text) if found.confidential else None,
        mark=MARK if found.confidential else None,
        **vars(diagnosis_facts(found, say)),
    )


def diagnosis_facts(found: ChainsFacts, say: Say) -> DiagnosisFacts:
    """Everything on the page but its frame."""
    rows = found.rows
    bounded = [row for row in rows if row.problem is None]
    moved = [row for row in rows if row.movement is not None]
    return DiagnosisFacts(
        what=sentences((tag("strong", found.verdict), say("diagnosis.what_confidential" if found.confidential else "diagnosis.what"))),
        given=_settings_rows(found, say),
        found=_diagnosis_table(bounded, say) if bounded else None,
        without_bound=tuple(text(f"{row.kernel}, {row.block}: {row.problem}") for row in rows if row.problem is not None),
        warnings=tuple(
            say("diagnosis.warning", kernel=row.kernel, block=row.block, warning=row.warning) for row in rows if row.warning is not None
        ),
        together=say("diagnosis.together", text=found.together.text) if rows else text(found.together.text),
        curves=_curves(rows, say),
        moving=_moving(moved, say) if moved else None,
        meaning=(text(found.text), *(say(f"diagnosis.meaning_{which}") for which in ("sweep", "slow", "met", "eta", "exact"))),
    )


def _settings_rows(found: ChainsFacts, say: Say) -> tuple[tuple[Markup, Markup], ...]:
    kept = found.kept_texts
    return (
        (say("diagnosis.table"), say("diagnosis.cells", count=found.table.cells)),
        (say("diagnosis.kept"), names(say, kept, SHOWN_CONSTRAINTS) if kept else say("diagnosis.kept_nothing")),
        (say("diagnosis.mechanism"), text(mechanism_text(say, found.mechanism.name, found.mechanism.parameters))),
        (say("diagnosis.pairs"), say("diagnosis.pairs_text", pairs=found.pairs, count=found.most_sweeps)),
    )


def _diagnosis_table(rows: Sequence[RowFacts], say: Say) -> PageTable:
    header = ("block", "kernel", "lag", "met", "meeting", "recommended", "eta", "added")
    return PageTable(
        say("diagnosis.caption"),
        tuple(say(f"diagnosis.{column}") for column in header),
        tuple(
            (
                say("diagnosis.blocks", block=row.block, count=row.blocks),
                row.kernel,
                format_number(_number(row.lag_sweeps)),
                say("diagnosis.met_value", met=_number(row.met), pairs=_number(row.pairs)),
                say("diagnosis.meeting_value", median=_number(row.median_meeting_sweeps), longest=_number(row.largest_meeting_sweeps)),
                say("diagnosis.recommended_value", count=row.recommended_sweeps or "-", steps=_number(row.recommended_steps)),
                row.eta or "-",
                "-" if row.added_delta is None else row.added_delta,
            )
            for row in rows
        ),
        frozenset({2, 3, 4, 6, 7}),
    )


def _number(value: int | None) -> int:
    """A figure of a row with a bound, which has all of them."""
    assert value is not None
    return value


def _curves(rows: Sequence[RowFacts], say: Say) -> tuple[PageFigure, ...]:
    shown: dict[str, list[RowFacts]] = {}
    for row in rows:
        if row.curves:
            shown.setdefault(row.block, []).append(row)
    return tuple(
        curve_figure(index, say("diagnosis.blocks", block=label, count=group[0].blocks), group, say)
        for index, (label, group) in enumerate(shown.items())
    )


def _moving(rows: Sequence[RowFacts], say: Say) -> PageTable:
    return PageTable(
        say("diagnosis.moving_caption"),
        tuple(say(f"diagnosis.{column}") for column in ("block", "kernel", "accepted", "effective", "autocorrelation")),
        tuple(_movement(row, say) for row in rows),
    )


def _movement(row: RowFacts, say: Say) -> tuple[str, ...]:
    moved = row.movement
    assert moved is not None
    size, time = moved.effective_sample_size, moved.autocorrelation_sweeps
    missing = moved.note or say("diagnosis.nothing_moved")
    return (
        row.block,
        row.kernel,
        f"{100 * moved.acceptance_rate:.3g} %",
        missing if size is None else say("diagnosis.of_draws", size=format_deviation(size), draws=_number(moved.draws)),
        missing if time is None else format_deviation(time),
    )
