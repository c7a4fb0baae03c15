"""The files that a table is written to and read back from: one row for each format. Writing is complete or not at all, never over something
else, and readable by its owner only.

Texts that a spreadsheet would run when it opens a CSV file begin with = + - @, a tab or a carriage return, and are not numbers. Marked,
such a text has one more apostrophe before it, by which spreadsheets know a text. Apostrophes that stand there already change nothing, so
that unmarking gives every text back as it was.
"""

from __future__ import annotations

import contextlib
import csv
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, get_args

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.tables.columns import arrow_numbers, numpy_values
from holdfast.tables.universe import Universe

_CHUNK_ROWS = 2**18
GROUP_ROWS = 2**19
"""Rows of a group in a Parquet file, which has a dictionary of its own, with the texts that occur in it."""
_DICTIONARY_BYTES = 2**30
"""Beyond so many bytes Arrow would write the texts of a group once more, row by row."""
_UNPACKED_BY_LITTLE = ("SNAPPY", "UNCOMPRESSED")
"""Compressions of Parquet that grow by a factor of some 20 at most."""
_PARQUET_FRAME = 12
"""Bytes of a Parquet file that are neither pages nor metadata: four letters at either end, and the length of the metadata."""
_BLOCK_BYTES = 2**23
"""Bytes of a CSV file that are read at once; no row has more."""
_ARROW_SCHEMA = b"ARROW:schema"
_WRITER = re.compile(r"parquet-cpp-arrow version [0-9]{1,4}(\.[0-9]{1,4}){0,3}")
"""What wrote our Parquet files, whatever its version."""


@dataclass(frozen=True)
class Format:
    """A format. `write` puts tables of pyarrow that follow one another into an open file; `pieces` gives them back with codes as they
    were, cut in other places, with some columns or all. `rows` is how many a file says it has, before it is read: a few bytes may declare
    a table of any size. None where only reading tells; then the size of the file limits it.
    """

    name: str
    write: Callable[[Iterable[Any], BinaryIO], None]
    pieces: Callable[..., Iterator[Any]]
    rows: Callable[[Path], int | None]

    def read(self, path: Path) -> Any:
        """The whole table."""
        import pyarrow as pa

        return pa.concat_tables(self.pieces(path))

    @property
    def suffix(self) -> str:
        return f".{self.name}"


def _write_parquet(pieces: Iterable[Any], file: BinaryIO) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema, every = _with_schema(pieces)
    with pq.ParquetWriter(file, schema, compression="snappy", dictionary_pagesize_limit=_DICTIONARY_BYTES) as writer:
        for piece in every:
            for low in range(0, max(piece.num_rows, 1), GROUP_ROWS):
                columns = [_with_own_texts(column) for column in piece.slice(low, GROUP_ROWS).columns]
                writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=GROUP_ROWS)


def _with_schema(pieces: Iterable[Any]) -> tuple[Any, Iterator[Any]]:
    """(what the first of the pieces says of all, the pieces)."""
    every = iter(pieces)
    first = next(every)
    return first.schema, chain([first], every)


def _with_own_texts(column: Any) -> Any:
    """The same column; a dictionary has only the texts that occur in it, since all of a dictionary is written."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or column.num_chunks != 1 or column.null_count:
        return column
    chunk = column.chunk(0)
    indices = numpy_values(chunk.indices)
    if len(indices) == 0:
        return column
    low, reach = int(indices.min()), int(np.ptp(indices)) + 1
    own = indices - low
    occurs = np.zeros(reach, dtype=np.bool_)
    occurs[own] = True
    texts = chunk.dictionary.slice(low, reach)
    if not occurs.all():
        places = np.flatnonzero(occurs)
        texts, number = texts.take(arrow_numbers(places)), np.empty(reach, dtype=own.dtype)
        number[places] = np.arange(len(places), dtype=own.dtype)
        own = number[own]
    return pa.DictionaryArray.from_arrays(arrow_numbers(own), texts)


def _parquet_pieces(path: Path, columns: Sequence[str] | None = None) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        _check_nothing_more(file, path.stat().st_size)
        texts = [field.name for field in file.schema_arrow if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
    # Texts stay as they are stored, each once: a long one repeated in many rows would fill the memory.
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        if file.num_row_groups < 2:
            yield file.read(columns)
        else:
            for place in range(file.num_row_groups):  # a signal is answered in between
                yield file.read_row_group(place, columns)


def _parquet_rows(path: Path) -> int:
    """Rows by the metadata. ValueError where parts of it disagree, or where pages are packed in a way that we never use: others unpack to
    thousands of times their size.
    """
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        metadata = file.metadata
        groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
        chunks = [(group, group.column(place)) for group in groups for place in range(group.num_columns)]
        rows = sum(group.num_rows for group in groups)
        if rows != metadata.num_rows or any(group.num_rows != chunk.num_values for group, chunk in chunks):
            raise ValueError("the metadata disagree")
        if any(chunk.compression not in _UNPACKED_BY_LITTLE for _, chunk in chunks):
            raise ValueError("another compression")
        return int(rows)


def _check_nothing_more(file: Any, size: int) -> None:
    """ValueError where a Parquet file of so many bytes holds anything beside its pages and what describes them: notes, which readers would
    show as the publisher's, or bytes that no reader sees.
    """
    schema, metadata = file.schema_arrow, file.metadata
    groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
    pages = sum(group.column(place).total_compressed_size for group in groups for place in range(group.num_columns))
    notes = (metadata.metadata or {}).keys() - {_ARROW_SCHEMA}
    if notes or schema.metadata or any(field.metadata for field in schema) or not _WRITER.fullmatch(metadata.created_by):
        raise ValueError("it has notes")
    if pages + metadata.serialized_size + _PARQUET_FRAME != size:
        raise ValueError("it has bytes that are no table")


def _write_csv(pieces: Iterable[Any], file: BinaryIO) -> None:
    schema, every = _with_schema(pieces)
    if any("\r" in name for name in schema.names):  # it could not be read back
        raise InvalidParameter("A column name with a carriage return cannot be saved as .csv. Rename the column, or save as .parquet.")
    write_csv(every, file)


def write_csv(pieces: Iterable[Any], file: BinaryIO, *, header: bool = True) -> None:
    """Text that is empty or needs it is quoted, so that it reads back as it was; what is missing is left empty, without quotes."""
    import pyarrow as pa
    import pyarrow.csv

    schema, every = _with_schema(pieces)
    plain = pa.schema([(field.name, field.type.value_type if pa.types.is_dictionary(field.type) else field.type) for field in schema])
    if any(pa.types.is_decimal(field.type) for field in plain):
        if header:
            file.write((",".join(map(_plain, schema.names)) + "\n").encode())
        for piece in every:
            file.writelines(_plain_lines(piece.cast(plain)))
        return
    options = pyarrow.csv.WriteOptions(quoting_style="needed", include_header=header)
    with pyarrow.csv.CSVWriter(file, plain, write_options=options) as writer:
        for piece in every:
            for low in range(0, piece.num_rows, _CHUNK_ROWS):
                writer.write_table(piece.slice(low, _CHUNK_ROWS).cast(plain))


def _plain_lines(frame: Any) -> Iterator[bytes]:
    """The same where there are decimals, which Arrow would write as 0E-16: in plain digits, all of their places."""
    for row in zip(*(column.to_pylist() for column in frame.columns), strict=True):
        yield (",".join(map(_plain, row)) + "\n").encode()


def _plain(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        doubled = cell.replace('"', '""')
        return f'"{doubled}"'
    if isinstance(cell, bool):
        return str(cell).lower()
    return repr(cell) if isinstance(cell, int | float) else f"{cell:f}"


def _csv_pieces(path: Path, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Every column as text, so that codes stay as they are."""
    import pyarrow as pa
    import pyarrow.csv

    with open(path, encoding="utf-8", newline="") as file:
        names = next(csv.reader(file), [])
    options = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        quoted_strings_can_be_null=False,
        strings_can_be_null=True,
        null_values=[""],
        include_columns=columns,
    )
    blocks = pyarrow.csv.ReadOptions(block_size=_BLOCK_BYTES)
    parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
    with pyarrow.csv.open_csv(path, read_options=blocks, parse_options=parsing, convert_options=options) as reader:
        yield reader.schema.empty_table()
        for batch in reader:
            yield pa.Table.from_batches([batch])


FORMATS = {
    made.name: made
    for made in (Format("parquet", _write_parquet, _parquet_pieces, _parquet_rows), Format("csv", _write_csv, _csv_pieces, lambda _: None))
}
"""By name, in the order in which they are written."""


def save_frame(frame: Any, path: str | os.PathLike[str]) -> None:
    """Write a pyarrow.Table to a .csv or .parquet file, as `save_pieces` does."""
    save_pieces([frame], path)


def save_pieces(pieces: Iterable[Any], path: str | os.PathLike[str]) -> None:
    """Write tables of pyarrow that follow one another to a .csv or .parquet file.

    Guarantees:  the file appears whole or not at all; an existing file is refused; only its owner may read it. What is written reads
                 back as it was.
    """
    target = Path(path)
    chosen = table_format(target)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".holdfast-", suffix=target.suffix.lower())
    try:
        with os.fdopen(handle, "wb") as file:
            chosen.write(pieces, file)
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
        got = f"a name that ends in {suffix!r}" if suffix else "a name without an ending"
        raise InvalidParameter(f"A table is saved as {known}. Got {got}.")
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


Formulas: TypeAlias = Literal["warn", "mark"]
FORMULAS: tuple[str, ...] = get_args(Formulas)

_BEGINS = r"'*[=+\-@\t\r]"
_NUMBER = r"'*[+-]?[0-9]*(?:[.,][0-9]+)?"


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would run it, marked or not."""
    return re.match(_BEGINS, text) is not None and re.fullmatch(_NUMBER, text) is None


def mark(text: str) -> str:
    return f"'{text}" if is_formula(text) else text


def unmark(text: str) -> str:
    """What `mark` was given; ValueError where a formula is not marked."""
    if not is_formula(text):
        return text
    if not text.startswith("'"):
        raise ValueError("a formula that is not marked")
    return text[1:]


def mark_frame(frame: Any) -> Any:
    """A pyarrow.Table with its texts and names marked."""
    import pyarrow as pa

    columns = [marked_column(column) for column in frame.columns]
    return pa.Table.from_arrays(columns, names=[mark(name) for name in frame.column_names])


def marked_column(column: Any) -> Any:
    """A column of texts, marked; any other column as it is."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        marked = [pa.DictionaryArray.from_arrays(chunk.indices, _marked_texts(chunk.dictionary)) for chunk in chunks]
        return pa.chunked_array(marked, column.type)
    return _marked_texts(column) if pa.types.is_string(column.type) else column


def _marked_texts(texts: Any) -> Any:
    import pyarrow.compute as pc

    return pc.if_else(_formulas(texts), pc.binary_join_element_wise("'", texts, ""), texts)


def unmark_frame(frame: Any, codes: int) -> Any:
    """What `mark_frame` was given, of which the first columns are codes; ValueError where a formula is not marked."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = list(frame.columns)
    for place, column in enumerate(columns[:codes]):
        formulas = _formulas(column)
        if pc.any(pc.and_(formulas, pc.invert(pc.starts_with(column, "'")))).as_py():
            raise ValueError("a formula that is not marked")
        columns[place] = pc.if_else(formulas, pc.utf8_slice_codeunits(column, 1), column)
    return pa.Table.from_arrays(columns, names=[unmark(name) for name in frame.column_names])


def _formulas(column: Any) -> Any:
    """Return which texts are formulas; missing ones are not."""
    import pyarrow.compute as pc

    begins = pc.fill_null(pc.match_substring_regex(column, f"^{_BEGINS}"), fill_value=False)
    if not pc.any(begins).as_py():
        return begins
    return pc.fill_null(pc.and_(begins, pc.invert(pc.match_substring_regex(column, f"^(?:{_NUMBER})$"))), fill_value=False)


def formula_columns(universe: Universe, others: Iterable[str] = ()) -> list[str]:
    """Columns of which the name or a code is a formula, and names among the others that are."""
    import pyarrow.compute as pc

    found = [column for column in universe.columns if is_formula(column) or pc.any(_formulas(universe.code_array(column))).as_py()]
    return [*found, *filter(is_formula, others)]
