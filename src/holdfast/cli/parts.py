"""What several commands have: arguments, and signs on the terminal that something runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
RunFile = Annotated[Path, typer.Argument(help="A run file (TOML): docs/run-files.md.")]


@contextmanager
def working(what: str) -> Iterator[None]:
    """A moving sign on the terminal while something runs; nothing where output goes to a file."""
    with Console(stderr=True).status(what, spinner="line"):  # in ASCII
        yield


def _bar(unit: str) -> Progress:
    """A progress bar on the terminal only, with the task's description before it."""
    parts = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} of {task.total:,.0f} " + unit))
    console = Console(stderr=True)
    return Progress(*parts, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def drawing(cells: int) -> Iterator[Callable[[int, int], None]]:
    """A progress bar over cells."""
    with _bar("cells") as bar:
        task = bar.add_task("Drawing", total=cells)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def coupling(quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar over pairs of chains, or over the steps of chains. Where there is no terminal, a line for each part that begins; none
    where quiet.
    """
    begun: set[str] = set()
    with _bar("done") as bar:
        task = bar.add_task("", visible=False)

        def tell(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total, visible=True)
            if bar.disable and not quiet and what not in begun:
                begun.add(what)
                logging.getLogger("holdfast").info("%s", what)

        yield tell


@contextmanager
def planning() -> Iterator[Callable[[int, int], None]]:
    """A moving sign while a plan is made; where chains are assessed for it, a progress bar over their pairs instead."""
    sign, bar = Console(stderr=True).status("Planning", spinner="line"), _bar("pairs")
    task = bar.add_task("Assessing chains", total=1)

    def show_assessed(done: int, total: int) -> None:
        if not bar.live.is_started:
            sign.stop()
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        with sign:
            yield show_assessed
    finally:
        bar.stop()
