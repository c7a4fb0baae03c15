"""The `holdfast` command: arguments in, one library call, text or JSON out. Nothing is decided here."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from holdfast import __version__
from holdfast.errors import HoldfastError

# Tracebacks never show local variables: they could hold keys or confidential counts.
app = typer.Typer(
    name="holdfast",
    help="Private count tables whose mandated totals hold exactly.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")] = False,
) -> None:
    """Private count tables whose mandated totals hold exactly."""


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Draw exact noise and set it beside its certified law: an embedded example, in seconds."""
    from holdfast.demo import run_demo

    result = run_demo()
    if as_json:
        print(json.dumps(dataclasses.asdict(result), indent=2))
        return
    table = Table(title=f"{result.draws:,} exact draws from {result.law}")
    table.add_column("noise", justify="right")
    table.add_column("certified probability", justify="right")
    table.add_column("expected", justify="right")
    table.add_column("drawn", justify="right")
    table.add_column("")
    widest = max(row.drawn for row in result.rows)
    for row in result.rows:
        table.add_row(
            f"{row.value:+d}", f"{row.probability:.9f}", f"{row.expected:,.1f}", f"{row.drawn:,}", "#" * round(24 * row.drawn / widest)
        )
    console = Console()
    console.print(table)
    console.print(f"Variance at most {result.variance:.12g}. Beyond the rows shown: probability at most {result.tail_below:.3g}.")
    console.print("Every draw follows this law exactly: integers and certified intervals decide, no rounding does.")


@app.command()
def warm() -> None:
    """Compile the fast loops and keep them for later runs."""
    from holdfast.warm import warm as compile_loops

    print(f"compiled loops ready ({compile_loops():.1f} s)")


@app.command()
def synth(
    path: Annotated[Path, typer.Argument(help="File to write: .parquet or .csv; an existing file is not touched.")],
    people: Annotated[int, typer.Option(help="Number of people.")] = 100_000,
    seed: Annotated[str, typer.Option(help="The same seed gives the same population.")] = "1",
    what: Annotated[str, typer.Option(help="counts (one row per cell, zeros included) or records (one row per person).")] = "counts",
    level: Annotated[str, typer.Option(help="Counts by state, county, tract or block.")] = "county",
    by: Annotated[
        list[str] | None, typer.Option(help="Counts by this column too (sex, age, age_group, voting_age, gq); repeat for more.")
    ] = None,
    states: Annotated[int | None, typer.Option(help="Number of states; by default it follows from the number of people.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a made-up population with states, counties, tracts, blocks, households: for trials and benchmarks."""
    from holdfast.tables.synth import synthesize

    population = synthesize(people, seed, states=states)
    population.save(path, what, level=level, by=tuple(by or ()))
    areas = {name: population.areas(name) for name in ("state", "county", "tract", "block")}
    if as_json:
        print(json.dumps({"file": path.name, "what": what, "people": people, "areas": areas}))
    else:
        print(f"{path.name}: {what} of {people:,} made-up people in {areas['state']:,} states, {areas['county']:,} counties")


def main() -> None:
    """Entry point: our own errors become one message and an exit code; anything else is a bug and shows its traceback."""
    try:
        app()
    except HoldfastError as error:
        print(f"holdfast: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    main()
