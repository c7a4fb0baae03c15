"""Sentences about a publication view: what it is, and how far it is from the true counts on average."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.card.parts import ViewInfo

SIZES = ((0, 0), (1, 9), (10, 99), (100, 499), (500, None))
"""Size classes: from, to; None where there is no end."""


def size_name(size: tuple[int, int | None]) -> str:
    """For example "10 to 99"."""
    low, high = size
    return f"{low} or more" if high is None else (f"{low}" if low == high else f"{low} to {high}")


def view_sentence(base: int, nonnegative: bool, private: bool, *, kept: bool, promised: bool) -> str:
    """What a view is, beside its file. `kept`: whether there are kept totals; `promised`: whether the release has a guarantee."""
    what = " and ".join(text for text in ("not negative" if nonnegative else "", f"multiples of {base}" if base > 1 else "") if text)
    said = (
        f"A publication view: the released counts changed so that they are {what}{', with every kept total exact' if kept else ''}. These "
        "are not the released counts, and they are biased: take the released counts for sums, comparisons and models. The view was made "
        f"from the published files alone, so it {'has the promise of the release and costs no budget' if promised else 'reveals no more'}."
    )
    return said if private else f"{said} NOT PRIVATE: the noise of the release came from a test key."


def moved_sentences(moved: Sequence[tuple[str, int]]) -> Iterator[str]:
    """Say by how much totals that are not kept differ from the released ones; nothing where none does."""
    if moved:
        most = "; ".join(f"{largest:,} ({level})" for level, largest in moved)
        yield f"Totals that are not kept change too, a released one by up to {most}: take these from the released table."


def bias_sentence(draws: int, has_law: bool) -> str:
    """How the table of biases was found, or why there is none."""
    if not has_law:
        return (
            "No bias is given: what this release publishes depends on the true counts in other ways than by adding noise of one law, or "
            "was drawn by a Markov chain."
        )
    if not draws:
        return "No bias is given: kept totals cross over so many cells that simulating it would take too long."
    return (
        f"Bias: the mean of the view less the true count, by the size of the true count, over {draws:,} releases simulated from the public "
        "law. The true table is not known; this view, to the base of 1, takes its place, also for the sizes."
    )


def totals_no_multiples(base: int, named: Sequence[tuple[str, int]], number: int, fitting: Sequence[int]) -> str:
    """A base that kept totals are no multiples of."""
    shown = ", ".join(f"{total:,} ({name})" for name, total in named)
    more = f" and {number - len(named):,} more" if number > len(named) else ""
    others = "take a base of 1, which always fits" if fitting == [1] else f"take a base that fits ({', '.join(map(str, fitting))})"
    are = "is no multiple" if number == 1 else "are no multiples"
    return (
        f"Kept totals stay exact, and sums of multiples of {base} are multiples of {base}; but {shown}{more} {are} of {base}. What can be "
        f"done: {others}; or round what you print of the view and say that it does not add up; or keep other totals in the next release."
    )


def not_in_folder(base: int, *, bounded: bool) -> str:
    """A view that cannot be promised before the noise is drawn."""
    found = "a table of multiples" if base > 1 else "whole numbers"
    why = "the noise depends on the true counts" if bounded else f"kept totals cross in three ways or more, and only a search finds {found}"
    other = "" if bounded else ", or keep two nested families of totals, such as counties and sex by age"
    return (
        f"Here {why}, so a view is not written with the release: it might fail after the draw. Leave view_base out and make the view of "
        f"the published folder: holdfast view{other}."
    )


NO_BIAS = "none"
BIAS_HEADER = ("Level", "True size", "Units", "Bias", "Standard error")


def bias_rows(view: ViewInfo) -> list[tuple[str, ...]]:
    """The table of biases; empty if none were simulated."""
    return [(line.label, line.size, f"{line.units:,}", *_bias(line.bias, line.standard_error)) for line in view.bias.lines]


def _bias(bias: float, error: float) -> tuple[str, str]:
    """Bias and its standard error; none where the mean was the same in every draw, as that of kept totals."""
    return (NO_BIAS, "-") if bias == 0 == error else (f"{bias:+.3f}", f"{error:.3f}")


def changed_sentence(view: ViewInfo) -> str:
    return f"{view.changed:,} of {view.cells:,} cells differ from their released count."


def view_lines(view: ViewInfo) -> list[str]:
    """What the command prints: a sentence, and a line for each size class."""
    out = [view.text, changed_sentence(view)]
    lines = [tuple(title.lower() for title in BIAS_HEADER), *bias_rows(view)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = ["  ".join((line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:]))) for line in lines]
    return [*out, view.bias.text, *(shown if len(shown) > 1 else ())]
