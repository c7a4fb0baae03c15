"""What several commands have: arguments, and bars on the terminal for the steps that run."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from holdfast.display import Watcher, watching

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
RunFile = Annotated[Path, typer.Argument(help="A run file (TOML): docs/run-files.md.")]


class StepBars:
    """A bar on the terminal for each step that runs, with its name; nothing where output goes to a file."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        parts = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"), TimeElapsedColumn())
        self.bars = Progress(*parts, console=console, transient=True, disable=not console.is_terminal)
        self._tasks: dict[str, TaskID] = {}
        self._logged: set[str] = set()

    def show(self, name: str, done: int, total: int) -> None:
        """A `Watcher`. A step that is over takes those with it that began in it and failed."""
        if name not in self._tasks:
            self.bars.start()
            self._tasks[name] = self.bars.add_task(name, total=None, count="")
        counts = total > 1
        count = f"{done:,} of {total:,}" if counts else ""
        self.bars.update(self._tasks[name], completed=done, total=total if counts else None, count=count)
        if done >= total:
            while name in self._tasks:
                self.bars.remove_task(self._tasks.popitem()[1])
            if not self._tasks:
                self.bars.stop()

    def show_or_log(self, name: str, done: int, total: int) -> None:
        """The same, and where there is no terminal a line for each step that begins."""
        self.show(name, done, total)
        if self.bars.disable and name not in self._logged:
            self._logged.add(name)
            logging.getLogger("holdfast").info("%s", name)

    def stop(self) -> None:
        """Take all bars away."""
        self.bars.stop()


@contextmanager
def showing_steps() -> Iterator[Watcher]:
    """Show every step of the library on the terminal; yields what shows or logs other steps."""
    bars = StepBars()
    try:
        with watching(bars.show):
            yield bars.show_or_log
    finally:
        bars.stop()
