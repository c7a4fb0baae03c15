"""The published table on a page: all rows of a short one, of another the first of every group. No script runs on a page, so readers
search it with the browser.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from markupsafe import Markup

from holdfast.card.card import Card
from holdfast.card.figure_facts import Row, RowGroup, RowsFacts
from holdfast.report.frame import MAX_NAME, PageSection, Say, join, name, paragraph, shorten_name, table, tag
from holdfast.report.page import SHOWN_COLUMNS, noun, nouns, say_of
from holdfast.wording.figures import deviation_text


def rows_section(card: Card, facts: RowsFacts) -> PageSection:
    """The section of the published table."""
    say, what, is_bound = say_of(card), noun(card), card.expected_error.found == "upper bound"
    pieces = [rows_table(say, facts, facts.rows, first_title(say, len(facts.rows), facts.cells), what, is_bound=is_bound)]
    if facts.cells > len(facts.rows):
        groups = join(
            *(
                tag("details", tag("summary", title), rows_table(say, facts, group.rows, title, what, is_bound=is_bound))
                for group in facts.groups
                for title in [_group_title(say, group)]
            )
        )
        by = tag("summary", say("report.rows_by", level=name(facts.level)))
        pieces.append(tag("details", by, tag("div", groups, class_="groups")) if facts.level else groups)
        is_whole = facts.cells == sum(len(group.rows) for group in facts.groups)
        pieces.append(paragraph(say("report.rows_search" if is_whole else "report.rows_files", count=facts.cells), class_="note"))
    return PageSection("table", say("report.rows", **nouns(card)), join(*pieces))


def _group_title(say: Say, group: RowGroup) -> Markup:
    if group.name:
        return say("report.rows_group", name=name(group.name), count=group.size)
    return first_title(say, len(group.rows), group.size)


def first_title(say: Say, shown: int, rows: int) -> Markup:
    """The title of the first rows, or of all where there are no more."""
    return say("report.rows_all" if shown == rows else "report.rows_first", count=rows, shown=shown)


def rows_table(
    say: Say, facts: RowsFacts, rows: Sequence[Row], caption: str, what: str, *, is_bound: bool = False, is_planned: bool = False
) -> Markup:
    """The rows as a table; what no row has is left out. `what`: "count" or "value"; `is_planned`: there are no numbers yet."""
    every = (*facts.rows, *(row for group in facts.groups for row in group.rows))
    joined = len(facts.columns) > SHOWN_COLUMNS  # so many would not stand side by side
    names, *codes = [(", ".join(parts),) if joined else parts for parts in (facts.columns, *(row.codes for row in rows))]
    header = [shorten_name(column, MAX_NAME) for column in names]
    columns: list[list[str]] = [[name(row[place]) for row in codes] for place in range(len(header))]
    first = len(header)
    if not is_planned:
        header.append(say.plain("figures.published", **say.plain.nouns(what)))
        columns.append([say("report.rows_none") if row.value is None else f"{Decimal(row.value):,f}" for row in rows])
    if any(row.deviation is not None for row in every):
        header.append(say.plain("figures.sd"))
        columns.append([deviation_text(say.plain, row.deviation, what, is_bound=is_bound) for row in rows])
    if any(row.exposed for row in every):
        header.append(say.plain("report.rows_exposed"))
        columns.append([say("report.rows_yes") if row.exposed else "" for row in rows])
    return table(caption, header, zip(*columns, strict=True), frozenset(range(first, len(header))))
