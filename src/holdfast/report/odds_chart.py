"""What a budget means, in one picture: right guesses without the table and with it, side by side."""

from __future__ import annotations

from fractions import Fraction

from markupsafe import Markup

from holdfast.exact.formatting import format_number
from holdfast.report.frame import Say
from holdfast.report.markup import tag
from holdfast.report.parts import PageFigure, PageTable
from holdfast.wording.odds import Guess

WIDTH, ROW, BAR = 360, 50, 24
"""As wide as a telephone: the text keeps its size there."""


def odds_figure(say: Say, protected: str, guess: Guess) -> PageFigure:
    """Two bars: the largest share of right guesses with the table; without it half of them are right."""
    before, after, odds = Fraction(1, 2), guess.right, guess.odds
    shares = [(say("statement.without_table"), before), (say("statement.with_table"), after)]
    title = say("statement.odds_title", protected=protected, before=hundredths(before), after=hundredths(after))
    picture = tag(
        "svg",
        tag("title", title, id="odds-title"),
        *(piece for at, (label, share) in enumerate(shares) for piece in _bar(say, at * ROW, label, share)),
        *(_half(begin, end, ink) for begin, end, ink in ((16, ROW + 20, "ink"), (ROW + 20, ROW + 20 + BAR, "paper"), (94, 100, "ink"))),
        role="img",
        aria_labelledby="odds-title",
        viewBox=f"0 0 {WIDTH} {2 * ROW}",
        width=str(WIDTH),
        height=str(2 * ROW),
    )
    told = format_number(int(odds)) if odds.isdecimal() else odds
    caption = say("statement.odds_caption" if guess.every_outcome else "statement.odds_caption_average", odds=told)
    if odds == "infinity":
        caption = say("statement.odds_caption_sure")
    header = (say("statement.odds_guess"), say("statement.odds_right"))
    return PageFigure(
        "odds", picture, caption, PageTable(title, header, tuple((label, hundredths(share)) for label, share in shares), frozenset({1}))
    )


def _half(begin: int, end: int, ink: str) -> Markup:
    """A piece of the line at 50 of 100."""
    return tag("line", x1=str(WIDTH / 2), x2=str(WIDTH / 2), y1=str(begin), y2=str(end), stroke=f"var(--{ink})", stroke_dasharray="3 3")


def hundredths(share: Fraction) -> str:
    """59.5, of a share of .595: a share in thousandths, so that nothing is rounded."""
    return format_number(float(100 * share))


def _bar(say: Say, top: int, label: Markup, share: Fraction) -> list[Markup]:
    width = f"{float(WIDTH * share):.1f}"
    said = say("statement.of_hundred", share=hundredths(share))
    common = {"y": str(top + 20), "height": str(BAR)}
    return [
        tag("text", label, x="0", y=str(top + 14), font_size="13", fill="var(--ink)"),
        tag("text", said, x=str(WIDTH), y=str(top + 14), font_size="13", font_weight="bold", text_anchor="end", fill="var(--ink)"),
        tag("rect", x="0", width=str(WIDTH), fill="var(--accent-pale)", stroke="var(--accent)", **common),
        tag("rect", x="0", width=width, fill="var(--accent)", **common),
    ]
