"""`holdfast init`, `holdfast schema`, `holdfast completion`: what helps to begin.

`init` and `schema` import what they need: that takes 1.3 s, and `--help` and completion in a shell do not wait for it.
"""

from __future__ import annotations

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer.completion import get_completion_inspect_parameters, shell_complete

from holdfast.cli.parts import AsJson
from holdfast.errors import OutOfScope, OutputExists, WrongUse

COMPLETING = "_HOLDFAST_COMPLETE"
"""The variable by which a shell asks for completions."""


class Shell(StrEnum):
    """Shells that are completed."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def init(
    table: Annotated[Path, typer.Argument(help="A file of counts or records (.csv, .tsv, .parquet, .xlsx).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Run file to write; an existing file is not touched.")] = Path("run.toml"),
    count: Annotated[str | None, typer.Option(help="The column of counts.")] = None,
    records: Annotated[bool, typer.Option("--records", help="One row is one record: no column of counts.")] = False,
    cells: Annotated[list[str] | None, typer.Option(help="A column that tells cells apart; repeat for more.")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="A kept margin, county or county:sex, or total; repeat for more. none for no kept total.")
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="The rows are a public list of cells, zeros included.")] = False,
    protect: Annotated[str | None, typer.Option(help="Whose privacy is promised: person, household, ...")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Budget for Laplace noise.")] = None,
    rho: Annotated[str | None, typer.Option(help="Budget for Gaussian noise instead.")] = None,
    per: Annotated[str | None, typer.Option(help="What the budget is for: what --protect names, or distance.")] = None,
    release_id: Annotated[str | None, typer.Option("--id", help="Identifier of the release.")] = None,
    schema: Annotated[bool, typer.Option(help="Write the schema for editors beside the run file, unless it is there.")] = True,
    as_json: AsJson = False,
) -> None:
    """Write a commented run file for a table. Asks on a terminal for what no option says. Warns of rows that add up others."""
    from holdfast.runfiles.schema import BESIDE
    from holdfast.runfiles.starting import (
        TOTAL,
        Choices,
        column_names,
        hidden_totals,
        likely_cells,
        likely_count,
        likely_id,
        named_totals,
        start,
    )
    from holdfast.tables.declarations import checked_protect
    from holdfast.wording import starting as questions
    from holdfast.wording.budget import plural

    if records and count is not None:
        raise WrongUse("--records says that there is no column of counts, and --count names one. Leave one of them out.")
    if epsilon is not None and rho is not None:
        raise WrongUse("--epsilon and --rho are two budgets. Leave one of them out.")
    ask = _Asking(not as_json and sys.stdin.isatty())
    names = column_names(table)
    if not ask.terminal and not (cells and (records or count)):  # a column of counts taken for codes would be read
        listed = ", ".join(map(repr, names))
        raise WrongUse(f"Say with --cells which columns hold codes, and --count which holds counts, or --records. Columns: {listed}.")
    said = None if records else count or ask.text(questions.WHICH_COUNT, likely_count(names) or "none")
    counts = None if said == "none" and said not in names else said
    columns = tuple(cells or ask.ask_list(questions.WHICH_CELLS, likely_cells(names, counts)))
    whose = checked_protect(protect or ask.text(questions.WHOSE, "person"))
    if counts is not None and not ask.yes(questions.WHAT_COUNTED.format(count=counts, many=plural(whose)), questions.YES):
        raise OutOfScope(questions.NOT_COUNTS.format(protected=whose), field="count")
    chosen = Choices(
        cells=columns,
        count=counts,
        keep=tuple(word for word in keep or ask.ask_list(questions.WHICH_TOTALS, [TOTAL]) if word != "none"),
        protect=whose,
        public=public or (counts is not None and ask.yes(questions.IS_PUBLIC, questions.NO)),
        epsilon=epsilon or (None if rho is not None else ask.text(questions.HOW_MUCH, "1")),
        rho=rho,
        per=per,
        release_id=release_id or ask.text(questions.WHICH_ID, likely_id(table)),
    )
    beside = BESIDE if start(table, chosen, output, schema=schema) else None
    for column, codes in named_totals(table, chosen.cells).items() if counts is None else ():
        print(f"holdfast: Warning: {questions.named_like_totals(column, codes)}", file=sys.stderr)
    for column, code in hidden_totals(table, chosen):
        print(f"holdfast: Warning: {questions.looks_like_totals(column, code)}", file=sys.stderr)
    if as_json:
        print(json.dumps({"file": str(output), "schema": beside, "cells": chosen.cells, "count": chosen.count}, indent=2))
    else:
        print(questions.written_sentences(str(output), beside, chosen.count is None))


class _Asking:
    """Asks on a terminal; elsewhere takes what is likely."""

    def __init__(self, terminal: bool) -> None:
        self.terminal = terminal

    def text(self, question: str, likely: str) -> str:
        return str(typer.prompt(question, default=likely)).strip() if self.terminal else likely

    def yes(self, question: str, likely: str) -> bool:
        """The answer to a question of yes or no; asks again for another."""
        from holdfast.wording.starting import YES_OR_NO

        while (said := self.text(question, likely).lower()) not in YES_OR_NO:
            pass
        return YES_OR_NO[said]

    def ask_list(self, question: str, likely: list[str]) -> list[str]:
        said = self.text(question, ", ".join(likely))
        return likely if said == ", ".join(likely) else [part.strip() for part in said.split(",") if part.strip()]


def schema(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; an existing file is not touched.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Print the JSON Schema of run files, by which editors complete and check them."""
    from holdfast.runfiles.schema import schema_text

    if output is None:
        print(schema_text(), end="")
        return
    try:
        with open(output, "w" if force else "x", encoding="utf-8") as file:
            file.write(schema_text())
    except FileExistsError:
        raise OutputExists(f"{output.name!r} exists already. Add --force to replace it.") from None
    print(f"Wrote {output}.")


def completion(context: typer.Context, shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.")]) -> None:
    """Print a script that completes commands and options: in bash, eval "$(holdfast completion bash)"."""
    get_completion_inspect_parameters()
    shell_complete(context.find_root().command, {}, "holdfast", COMPLETING, f"source_{shell.value}")


def answer_shell() -> None:
    """Where a shell asks for completions: let Typer know the shells."""
    if COMPLETING in os.environ:
        get_completion_inspect_parameters()


def add_commands(app: typer.Typer) -> None:
    for command in (init, schema, completion):
        app.command()(command)
