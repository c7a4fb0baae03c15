"""How far released counts are from the true ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.channels.layout import LevelError
from holdfast.display import count_of
from holdfast.exact.formatting import format_deviation, format_number, round_figure
from holdfast.mechanisms.registry import MECHANISMS
from holdfast.wording.figures import NIL, is_nil


def is_unbiased(mechanism: str) -> bool:
    """True if the mechanism of this name is known to be unbiased in every cell."""
    return mechanism in MECHANISMS and MECHANISMS[mechanism].is_unbiased


def has_long_tails(mechanism: str) -> bool:
    """True if the noise of the mechanism of this name is known to be made of Laplace noise."""
    return mechanism in MECHANISMS and MECHANISMS[mechanism].has_long_tails


def leaves_cells_out(mechanism: str) -> bool:
    """True if the mechanism of this name is known to leave out the cells that the kept totals do not fix."""
    return mechanism in MECHANISMS and not MECHANISMS[mechanism].publishes_cells


_BASES = {
    "exact": "exact",
    "upper bound": "proved upper bounds",
    "approximate": "approximate: those of continuous noise of the same form",
    "estimated": "estimated from draws of the public law",
    "not estimated": "not estimated",
    "unknown": "not known",
}


def error_sentences(
    smallest: float | None,
    median: float | None,
    largest: float | None,
    basis: str,
    not_estimated: int = 0,
    noun: str = "count",
    rounded: bool = False,
    kept: bool = True,
    rough: bool = False,
) -> str:
    """From the standard deviations of the cells' noise; None where none is added, where it depends on the data, or where it was not
    estimated. `noun`: what is released; `rounded`: after it was brought to a grid; `kept`: whether there are kept totals; `rough`: of an
    estimate with few digits.
    """
    exact = " Kept totals have no error." if kept else ""
    if basis == "estimated" and not largest:
        return (
            f"The error of a released {noun} averages to zero. Its standard deviation is too small to be estimated: in every draw of the "
            f"public law it was 0.{exact}"
        )
    if smallest is None or median is None or largest is None:
        if basis == "unknown":
            return f"The error of a released count depends on the counts, so nothing is said about it here.{exact}"
        if basis == "not estimated":
            return (
                "The error of a released count averages to zero. Its standard deviation was not estimated, because draws of this noise "
                f"take too long.{exact}"
            )
        return f"No noise is added: counts that the kept totals do not fix are left out.{exact}"
    cells = count_of(f"{not_estimated:,}", "cell")
    missing = f" It was not estimated for {cells}, because draws of such noise take too long." if not_estimated else ""
    is_bound = basis == "upper bound"
    most = "at most " if is_bound else "about " if rough or basis == "approximate" else ""
    low, middle, high = (format_number(round_figure(value, 3, is_bound=is_bound)) for value in (smallest, median, largest))
    what, apart = ("noise", " Rounding the answers to the grid is not noise, and not counted here.") if rounded else ("error", "")
    if is_nil(largest, noun):
        size = f"below {NIL}"
    elif median:
        size = f"{most}{middle} for a typical cell{f' ({low} to {high})' if low != high else ''}"
    else:  # a typical cell, which kept totals fix, says nothing about those with noise
        size = f"0 for half of the cells or more, and {'' if is_bound else 'up to '}{most}{high} for the others"
    exact = f" Kept totals have no {what}." if kept else ""
    return f"The {what} of a released {noun} averages to zero; its standard deviation is {size}.{missing}{exact}{apart}"


def basis_phrase(basis: str, error: float, law_is_exact: bool) -> str:
    """How the standard deviations were found, and one standard error of an estimate."""
    off = f", standard error {round_figure(100 * error, 2, is_bound=True):g} %" if basis == "estimated" and 0 < error < 1 else ""
    return _BASES[basis] + off + ("" if law_is_exact else "; of the law that the chain aims at")


def asked_name(name: str) -> str:
    """A level or margin of several columns as --target takes it: sex:age."""
    return name.replace(" x ", ":")


def level_lines(levels: Sequence[LevelError], basis: str) -> Iterator[str]:
    """A small table: a bound of the standard deviation of every level and margin, proved or not."""
    if not levels:
        return
    most = "about" if basis == "approximate" else "at most"
    rows = [
        ("level", "margin", "units", f"standard deviation, {most}"),
        *((asked_name(e.level), asked_name(e.margin), str(e.units), _spread(e)) for e in levels),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        yield f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}"


def _spread(found: LevelError) -> str:
    if found.largest == 0:
        return "0, exact"
    low, middle, high = (format_deviation(value, is_bound=True) for value in (found.smallest, found.median, found.largest))
    return high if low == high else f"{middle} ({low} to {high})"
