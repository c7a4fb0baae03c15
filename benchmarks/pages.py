"""Group `pages`: how long statement and report of a release of about a million cells take to make."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
import polars as pl

import holdfast as hf
from benchmarks.report import Bar, Report, Row, Table, number
from benchmarks.timing import Steps, load, machine
from holdfast.publication.listings import shown_rows
from holdfast.publication.order import Order
from holdfast.publication.pipeline import draw
from holdfast.publication.report_facts import report_facts
from holdfast.report.report import report_html
from holdfast.report.statement import statement_html

MOST_SECONDS = 3.0
HEADERS = ("release", "cells", "facts s", "statement s", "report s", "all s", "statement kB", "report kB")
COLUMNS = ("area", "age", "work")


@dataclass(frozen=True)
class Case:
    """A full table of these axes, the margins it keeps, and its noise."""

    name: str
    axes: tuple[int, ...]
    kept: tuple[str, ...]
    mechanism: hf.GeneralizedGaussian | hf.GeneralizedLaplace


def cases(side: int) -> list[Case]:
    """Tables of about side^2 cells: one kept margin, two that cross, three of a three-way table."""
    third = round(side ** (2 / 3))
    gaussian, laplace = hf.GeneralizedGaussian(rho="1/10", per="distance"), hf.GeneralizedLaplace(epsilon="1/4", per="distance")
    return [
        Case(f"{side} x {side}, totals of areas, Laplace", (side, side), ("area",), laplace),
        Case(f"{side} x {side}, totals of areas, Gaussian", (side, side), ("area",), gaussian),
        Case(f"{side} x {side}, both margins, Gaussian", (side, side), ("area", "age"), gaussian),
        Case(f"{third} x {third} x {third}, three margins, Gaussian", (third, third, third), ("area", "age", "work"), gaussian),
    ]


def measure(case: Case) -> Row:
    """Processor time of a first time: nothing is known of the release but its plan."""
    cells = prod(case.axes)
    codes = np.unravel_index(np.arange(cells), case.axes)
    columns = COLUMNS[: len(case.axes)]
    counts = np.random.default_rng(1).geometric(0.01, cells) - 1
    frame = pl.DataFrame({name: axis.astype(str) for name, axis in zip(columns, codes, strict=True)} | {"people": counts})
    table = hf.Table.from_counts(frame, list(columns), "people")
    plan = hf.plan(table, [hf.margin(column) for column in case.kept], case.mechanism)
    release = draw(plan, table, Order("bench"))
    card = release.card
    kept_rows = shown_rows(release.kept_rows, plan.facts.kept, release.table.measure)
    marks = [time.process_time()]
    facts = report_facts(release.plan, release.table)
    marks.append(time.process_time())
    statement = statement_html(card)
    marks.append(time.process_time())
    report = report_html(card, kept_rows, facts)
    marks.append(time.process_time())
    seconds = [*(after - before for before, after in pairwise(marks)), marks[-1] - marks[0]]
    figures = [f"{cells:,}", *map(number, seconds), *(number(len(page.encode()) / 1e3) for page in (statement, report))]
    return Row(case.name, figures, [Bar("s", seconds[-1], MOST_SECONDS)])


def run(*, side: int = 1000) -> Report:
    """Measure everything."""
    load_before, listed = load(), cases(side)
    rows: list[Row] = []
    measure(cases(20)[-1])  # imports and templates
    with Steps("pages", len(listed)) as steps:
        for case in listed:
            rows.append(measure(case))
            steps.done(f"pages: {case.name}")
    return Report(
        "Benchmark group pages", f"{machine()}; load {load_before} before, {load()} after", (Table("Pages", HEADERS, rows),), _notes()
    )


def _notes() -> Sequence[str]:
    return [
        "Processor time, each release once, after its card was made: facts of the figures from plan and published table, then both pages."
    ]
