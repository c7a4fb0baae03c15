"""A group's result: tables of figures beside their bars, as Markdown for the file and as Rich tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable

NOT_RUN = "not run"


@dataclass(frozen=True)
class Bar:
    """A limit that a figure should keep; `figure` is None where it was not measured."""

    name: str
    figure: float | None
    limit: float
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        if self.figure is None:
            return None
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g} {self.name}"


@dataclass(frozen=True)
class Row:
    """One line of a table: what is measured, its figures as shown, and the bars on them."""

    name: str
    figures: Sequence[str]
    bars: Sequence[Bar] = ()

    def cells(self) -> list[str]:
        return [self.name, *self.figures, ", ".join(map(str, self.bars)), verdict(self.bars)]


@dataclass(frozen=True)
class Table:
    """Rows under the headers of their name and figures; the columns `bar` and `met?` follow by themselves."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Row]

    def markdown(self) -> str:
        headers = [*self.headers, "bar", "met?"]
        marks = [":--" if self._is_text(column) else "--:" for column in range(len(headers))]
        lines = [headers, marks, *(row.cells() for row in self.rows)]
        return f"## {self.title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def rich(self) -> RichTable:
        table = RichTable(title=self.title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for column, header in enumerate([*self.headers, "bar", "met?"]):
            table.add_column(header, justify="left" if self._is_text(column) else "right")
        for row in self.rows:
            table.add_row(*row.cells())
        return table

    def _is_text(self, column: int) -> bool:
        return column == 0 or column >= len(self.headers)


@dataclass(frozen=True)
class Report:
    """What a group found."""

    title: str
    machine: str
    tables: Sequence[Table]
    notes: Sequence[str]

    def summary(self) -> str:
        """How many bars were met, of those measured."""
        results = [bar.met for table in self.tables for row in table.rows for bar in row.bars if bar.met is not None]
        return f"{sum(results)} of {len(results)} bars met"

    def markdown(self) -> str:
        tables = "\n\n".join(table.markdown() for table in self.tables)
        notes = "\n".join(f"- {note}" for note in self.notes)
        return f"# {self.title}\n\n{self.machine}\n\n**{self.summary()}.**\n\n{tables}\n\n## How it was measured\n\n{notes}\n"

    def show(self, console: Console) -> None:
        """Print the tables in full: a terminal that is too narrow wraps lines rather than losing figures."""
        console.print(f"{self.title}\n{self.machine}\n", markup=False, highlight=False)
        for table in self.tables:
            shown = table.rich()
            width = Measurement.get(console, console.options.update(width=1000, max_width=1000), shown).maximum
            Console(file=console.file, width=max(width, console.width)).print(shown)
        for note in self.notes:
            console.print(f"- {note}", markup=False, highlight=False)
        console.print(self.summary(), markup=False, highlight=False)


def number(value: float | None) -> str:
    """Three significant digits, thousands separated; a word where nothing was measured."""
    if value is None:
        return NOT_RUN
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def verdict(bars: Sequence[Bar]) -> str:
    """yes, or no with the bars missed; a bar on a figure that was not measured is named as open."""
    missed = [bar.name for bar in bars if bar.met is False]
    unmeasured = [bar.name for bar in bars if bar.met is None]
    if missed:
        return f"no: {', '.join(missed)}"
    if unmeasured:
        return f"{NOT_RUN}: {', '.join(unmeasured)}"
    return "yes" if bars else ""
