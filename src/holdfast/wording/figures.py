"""What the figures tell, in words of one language, and their numbers as readers see them.

`noun` is what the table holds, "count" or "value", as `Sentences.nouns` takes it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from holdfast.card.figure_facts import AreasFacts, Bar, GridFacts, Ranked, SharesFacts, Sizes, SpreadFacts
from holdfast.exact.formatting import format_deviation, format_percent, format_published, format_three, format_tick, format_up
from holdfast.wording.catalogue import Sentences

TOTAL = "whole table"
CELLS = "cells"
"""Names of levels for who asks for a figure; `level_text` says them in another language."""


def level_text(say: Sentences, name: str) -> str:
    """The name of a level on a figure."""
    return {TOTAL: say("figures.level_total"), CELLS: say("figures.level_cells")}.get(name, name)


def level_by_margin(say: Sentences, level: str, margin: str | None) -> str:
    """ "county, by sex"; "county, by all other columns"."""
    if margin is None:
        return level_text(say, level)
    return say("figures.by_all", level=level) if margin == "detailed" else say("figures.by", level=level, margin=margin)


def between(say: Sentences, low: str, high: str) -> str:
    """12 to 40; one number where they are alike."""
    return low if low == high else say("figures.between", low=low, high=high)


NIL = 0.01
"""A standard deviation of counts below this is next to none: by Chebyshev's inequality 9,999 of 10,000 such counts are as they were."""


def is_nil(value: float, noun: str) -> bool:
    """Whether a standard deviation is so small that it is not shown as a number; those of answers depend on their grid."""
    return noun == "count" and 0 < value < NIL


def deviation_text(say: Sentences, value: float | None, noun: str, *, is_bound: bool = False) -> str:
    """A standard deviation: "7.2", "exact", "below 0.01", "not known"."""
    if not value:
        return say("page.not_known" if value is None else "page.exact")
    return say("page.nil", limit=str(NIL)) if is_nil(value, noun) else format_deviation(value, is_bound=is_bound)


def error_text(say: Sentences, spreads: Sequence[SpreadFacts]) -> str:
    """Every row of the chart."""
    return "; ".join(f"{level_by_margin(say, spread.name, spread.margin)}: {spread_text(say, spread)}" for spread in spreads) + "."


def spread_text(say: Sentences, spread: SpreadFacts) -> str:
    """3.15 (exact to 3.16); one number where all are alike."""
    if spread.median is None or spread.smallest is None or spread.largest is None:
        return say("page.not_known")
    if spread.largest == 0:
        return say("page.exact")
    exact = say("page.exact")
    low, middle, high = (format_three(value) if value else exact for value in (spread.smallest, spread.median, spread.largest))
    if spread.looked_at != spread.units:
        which = "figures.spread_one" if low == high else "figures.spread_some"
        return say(which, middle=middle, low=low, high=high, looked_at=spread.looked_at)
    return middle if low == high else say("page.range", middle=middle, low=low, high=high)


def relative_header(say: Sentences, limits: Sequence[float]) -> tuple[str, ...]:
    return (
        say("figures.relative_level"),
        say("figures.relative_numbers"),
        *(say("figures.relative_above", limit=format_percent(limit)) for limit in limits),
    )


def class_text(say: Sentences, limits: Sequence[float]) -> tuple[str, ...]:
    """No noise; up to 5 %; ...; above 50 %."""
    shown = [format_percent(limit) for limit in limits]
    return (
        say("page.no_noise"),
        *(say("figures.class_up", limit=limit) for limit in shown),
        say("figures.class_above", limit=shown[-1]),
    )


def relative_text(say: Sentences, shares: Sequence[SharesFacts], limits: Sequence[float]) -> str:
    """For every level the shares above each limit."""
    return "; ".join(f"{level_text(say, found.name)}: {_shares(say, found, limits)}" for found in shares) + "."


def _shares(say: Sentences, found: SharesFacts, limits: Sequence[float]) -> str:
    count = found.numbers or 1
    shown = ((format_percent(found.above(place) / count), format_percent(limit)) for place, limit in enumerate(limits))
    return ", ".join(say("figures.share_above", share=share, limit=limit) for share, limit in shown)


def size_text(say: Sentences, sizes: Sizes, noun: str) -> str:
    """The first and the last class, and what has no dot."""
    first, last = format_three(sizes.classes[0].median), format_three(sizes.classes[-1].median)
    told = say("figures.size_same" if first == last else "figures.size_range", first=first, last=last, **say.nouns(noun))
    which = {(True, True): "both", (True, False): "exact", (False, True): "zero"}.get((sizes.exact > 0, sizes.not_positive > 0))
    if which is None:
        return told
    return f"{told} {say(f'figures.size_left_{which}', exact=sizes.exact, not_positive=sizes.not_positive)}"


def interval_text(say: Sentences, bar: Bar) -> str | None:
    """The ends of a bar's interval; None where it has none."""
    return None if bar.low is None or bar.high is None else between(say, format_published(bar.low), format_published(bar.high))


def ranked_title(say: Sentences, ranked: Ranked, noun: str) -> str:
    which = "figures.ranked_cells" if ranked.level == CELLS else "figures.ranked_level"
    intervals = "" if ranked.intervals in ("none", "unknown") else "_intervals"
    return say(f"{which}{intervals}", level=level_text(say, ranked.level), **say.nouns(noun))


def ranked_text(say: Sentences, ranked: Ranked) -> str:
    """The bars in words."""
    shown = ((bar.name, format_published(bar.value), interval_text(say, bar)) for bar in ranked.bars)
    return "; ".join(f"{name}: {value}{'' if ends is None else f' ({ends})'}" for name, value, ends in shown) + "."


def ranked_caption(say: Sentences, ranked: Ranked, noun: str) -> str:
    """What all bars have in common, what the lines are, and how many bars are not shown."""
    how = say(f"figures.intervals_{ranked.intervals}", level=format_percent(ranked.confidence), factor="1.96", **say.nouns(noun))
    shown = len(ranked.bars)
    which = "ranked_all" if shown == ranked.units else "ranked_some" if ranked.level == CELLS else "ranked_some_sums"
    told = f"{how} {say(f'figures.{which}', shown=shown, units=ranked.units)}"
    return f"{say('figures.ranked_shared', names=', '.join(ranked.shared_parts))} {told}" if ranked.shared_parts else told


def heat_caption(say: Sentences, grid: GridFacts, noun: str) -> str:
    told = say("figures.shades", **say.nouns(noun))
    return f"{told} {say('figures.heat_corner')}" if has_deviations(grid) else told


def has_deviations(grid: GridFacts) -> bool:
    """Whether any standard deviation is known: without one nothing is marked."""
    return any(deviation is not None for row in grid.deviations for deviation in row)


def heat_text(say: Sentences, grid: GridFacts, known: Sequence[float], limit: float, noun: str) -> str:
    """Size, range and how many are marked."""
    pairs = [pair for values, spreads in zip(grid.values, grid.deviations, strict=True) for pair in zip(values, spreads, strict=True)]
    marked = sum(value is not None and bool(sd) and (sd or 0.0) > limit * max(value, 0.0) for value, sd in pairs)
    size = {"rows": len(grid.rows), "columns": len(grid.columns)}
    if not known:
        return say("figures.heat_nothing", **size)
    told = say("figures.heat_text", **size, **_ends(known), **say.nouns(noun))
    return f"{told} {_marked_text(say, marked, len(known), limit) if has_deviations(grid) else say('figures.marked_unknown')}"


def _ends(known: Sequence[float]) -> dict[str, str]:
    return {"low": format_published(min(known)), "high": format_published(max(known))}


def _marked_text(say: Sentences, marked: int, numbers: int, limit: float) -> str:
    return say("figures.marked" if marked else "figures.marked_none", marked=marked, numbers=numbers, limit=format_percent(limit))


def shade_text(say: Sentences, edges: Sequence[float]) -> tuple[str, ...]:
    """Up to 12; up to 40; above 40."""
    if not edges:
        return (say("figures.shade_all"),)
    shown = [format_tick(edge) for edge in edges]
    return (*(say("figures.shade_to", edge=edge) for edge in shown), say("figures.shade_above", edge=shown[-1]))


def map_caption(say: Sentences, areas: AreasFacts, noun: str) -> str:
    """How the map is read, and what it lacks."""
    told = f"{say('figures.shades', **say.nouns(noun))} {say('figures.map_dot')}"
    return f"{told} {say('figures.map_left', count=areas.without_area)}" if areas.without_area else told


def map_text(say: Sentences, areas: AreasFacts, known: Sequence[float], marked: int, limit: float, noun: str) -> str:
    """Number of areas, range, how many are marked."""
    count = len(areas.areas)
    if not known:
        return say("figures.map_nothing", areas=count)
    return f"{say('figures.map_text', areas=count, **_ends(known), **say.nouns(noun))} {_marked_text(say, marked, len(known), limit)}"


def noise_place(say: Sentences, cells: int) -> str:
    """Where a cell stands, for the title of its chart."""
    return say("figures.noise_alone") if cells == 1 else say("figures.noise_block", cells=cells)


def noise_header(say: Sentences, simulated: bool) -> tuple[str, ...]:
    columns = ("share", "error") if simulated else ("probability",)
    return (say("figures.noise_value"), *(say(f"figures.noise_{column}") for column in columns))


def noise_text(
    say: Sentences,
    law: Sequence[tuple[int, float]],
    draws: int | None,
    error: float,
    width: int,
    reach: int | None,
    most_off: float = 0.0,
) -> str:
    """Probability of no noise, the values that hold 95 of 100, and what a bar is; for simulated shares their error too, and for computed
    probabilities how far each may be off.
    """
    zero = format_percent(math.fsum(p for k, p in law if k == 0))
    if draws is None:
        within = f"{format_up(100 * Fraction(most_off), 2)}\u00a0%"
        told = [say("figures.noise_law_within", within=within) if most_off else say("figures.noise_law")]
        told.append(say("figures.noise_zero", zero=zero))
    else:
        told = [say("figures.noise_draws", draws=draws, zero=zero, error=format_percent(error))]
    if reach is not None:
        told.append(say("figures.noise_inside_about" if most_off or draws is not None else "figures.noise_inside", low=-reach, high=reach))
    if width > 1:
        told.append(say("figures.noise_bars", width=width))
    return " ".join(told)
