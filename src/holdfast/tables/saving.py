"""Writing a table: complete or not at all, never over something else, readable by its owner only."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

from holdfast.errors import InvalidParameter

_CHUNK_ROWS = 2**18


def save_frame(frame: Any, path: str | os.PathLike[str]) -> None:
    """Write a pyarrow.Table to a .csv or .parquet file.

    Guarantees:  the file appears whole or not at all; an existing file is refused; only its owner may read it. What is written reads
                 back as it was: text that is empty or needs it is quoted.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InvalidParameter(f"A table is saved as .csv or .parquet. Got a name that ends in {suffix!r}.")
    if suffix == ".csv" and any("\r" in name for name in frame.column_names):  # it could not be read back
        raise InvalidParameter("A column name with a carriage return cannot be saved as .csv. Rename the column, or save as .parquet.")
    if not target.parent.is_dir():
        raise InvalidParameter(f"The folder for {target.name!r} is not there. Create it first.")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".holdfast-", suffix=suffix)
    try:
        with os.fdopen(handle, "wb") as file:
            _write(frame, file, suffix)
            file.flush()
            os.fsync(file.fileno())
        _publish(name, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _write(frame: Any, file: Any, suffix: str) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    if suffix == ".parquet":
        pq.write_table(frame, file)
        return
    plain = pa.schema([(field.name, field.type.value_type if pa.types.is_dictionary(field.type) else field.type) for field in frame.schema])
    options = pyarrow.csv.WriteOptions(quoting_style="needed")
    with pyarrow.csv.CSVWriter(file, plain, write_options=options) as writer:
        for low in range(0, frame.num_rows, _CHUNK_ROWS):
            writer.write_table(frame.slice(low, _CHUNK_ROWS).cast(plain))


def _publish(name: str, target: Path) -> None:
    """Give the finished file its name: a link fails where something of that name exists, which a rename would replace."""
    try:
        os.link(name, target)
        taken = False
    except FileExistsError:
        taken = True
    if taken:
        raise InvalidParameter(f"{target.name!r} exists already and is not overwritten. Choose another name, or remove it first.")
