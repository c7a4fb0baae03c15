"""The commands that need research: how fast chains come to their law, and made-up populations. No release goes this way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.parts import AsJson, RunFile, showing_steps
from holdfast.display import step
from holdfast.errors import NoMeeting


def diagnose(
    run_file: RunFile,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Page (HTML) to write; an existing file is not touched.")] = None,
    pairs: Annotated[int, typer.Option(help="Coupled pairs of chains for each curve.")] = 200,
    kernel: Annotated[
        list[str] | None,
        typer.Option(help="Kernel to look at (metropolis, line_gibbs); repeat for more. By default the run's own, or all."),
    ] = None,
    most_sweeps: Annotated[int, typer.Option(help="Sweeps after which a pair that has not met is given up.")] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Show how many steps Markov chains need for a release: meeting times, curves, diagnostics. Nothing is drawn for a release."""
    from holdfast.research.chains.diagnose import check_page
    from holdfast.research.chains.diagnose import diagnose as run_chains
    from holdfast.runfiles.runfile import load_run

    run = load_run(run_file)
    if output is not None:
        check_page(output)
    with step("Reading the codes"):
        table = run.read_declarations()
    with showing_steps() as show:
        progress = None if as_json else show
        found = run_chains(table, run.keep, run.mechanism, kernels=kernel or None, pairs=pairs, most_sweeps=most_sweeps, progress=progress)
    if output is not None:
        found.save(output)
    if found.has_bounds or not as_json:
        print(json.dumps(found.to_fields(), indent=2) if as_json else found)
    if output is not None and not as_json:
        print(f"Read {output}")
    if not found.has_bounds:
        told = "For some shape of blocks no kernel gave a bound: a release by chains would be refused."
        raise NoMeeting(told, details=found.to_fields())


def synth(
    path: Annotated[Path, typer.Argument(help="File to write: .parquet or .csv; an existing file is not touched.")],
    people: Annotated[int, typer.Option(help="Number of people.")] = 100_000,
    seed: Annotated[str, typer.Option(help="The same seed gives the same population.")] = "1",
    what: Annotated[str, typer.Option(help="counts (one row per cell, zeros included) or records (one row per person).")] = "counts",
    level: Annotated[str, typer.Option(help="Counts by state, county, tract or block.")] = "county",
    by: Annotated[
        list[str] | None,
        typer.Option(help="Counts by this column too (sex, age, age_group, voting_age, gq, hispanic, race); repeatable."),
    ] = None,
    states: Annotated[int | None, typer.Option(help="Number of states; by default it follows from the number of people.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a made-up population with states, counties, tracts, blocks, households: for trials and benchmarks."""
    from holdfast.research.synth import synthesize

    population = synthesize(people, seed, states=states)
    population.save(path, what, level=level, by=tuple(by or ()))
    areas = {name: population.areas(name) for name in ("state", "county", "tract", "block")}
    if as_json:
        print(json.dumps({"file": path.name, "what": what, "people": people, "areas": areas}))
    else:
        print(f"{path.name}: {what} of {people:,} made-up people in {areas['state']:,} states, {areas['county']:,} counties")
