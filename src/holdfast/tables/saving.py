"""Writing a table: complete or not at all, never over something else, readable by its owner only."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

from holdfast.errors import InvalidParameter
from holdfast.tables.formats import FORMATS, Format


def save_frame(frame: Any, path: str | os.PathLike[str]) -> None:
    """Write a pyarrow.Table to a .csv or .parquet file.

    Guarantees:  the file appears whole or not at all; an existing file is refused; only its owner may read it. What is written reads
                 back as it was.
    """
    target = Path(path)
    chosen = table_format(target)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".holdfast-", suffix=target.suffix.lower())
    try:
        with os.fdopen(handle, "wb") as file:
            chosen.write(frame, file)
            file.flush()
            os.fsync(file.fileno())
        _publish(name, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def table_format(target: Path) -> Format:
    """The format that a name ends in; a name that no table can have is refused."""
    suffix = target.suffix.lower()
    chosen = FORMATS.get(suffix.removeprefix("."))
    if chosen is None:
        known = " or ".join(sorted(made.suffix for made in FORMATS.values()))
        raise InvalidParameter(f"A table is saved as {known}. Got a name that ends in {suffix!r}.")
    if not target.parent.is_dir():
        raise InvalidParameter(f"The folder for {target.name!r} does not exist. Create it first.")
    return chosen


def _publish(name: str, target: Path) -> None:
    """Give the finished file its name: a link fails where something of that name exists, which a rename would replace."""
    try:
        os.link(name, target)
        taken = False
    except FileExistsError:
        taken = True
    if taken:
        raise InvalidParameter(f"{target.name!r} exists already and is not overwritten. Choose another name, or remove it first.")
