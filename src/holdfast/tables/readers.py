"""Where data comes from: a text, Parquet or Excel file, anything that exports the Arrow C stream, or a database query.

Every source answers two questions: `batches`, its columns piece by piece, and `scan`, the SQL under which DuckDB reads it.

CSV:  text_files.py says which separators and encodings. Double quotes, a header row, as many fields in every line. All fields are
      text and stay as they are. Quotes stand at both ends of a field, without blanks around them. An unquoted empty field is a missing
      value, a quoted one ("") is the empty text. Blank lines are skipped; in a file of one column a blank line is an empty field.

Lines of CSV that DuckDB lets pass and we do not, because a code would not stay as it is or a field would be lost (`check_csv`): a blank
beside the quotes of a field, which DuckDB drops, so that two codes become one; empty fields after the last column, which it drops too.
"""

from __future__ import annotations

import csv
import logging
import os
import re
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.display import count_of
from holdfast.errors import InvalidParameter, UnknownColumn, UnreadableInput
from holdfast.tables.columns import CodeColumn, CountColumn, Indices
from holdfast.tables.databases import SCHEMES, is_url, open_query
from holdfast.tables.excel import EXCEL_SUFFIXES, ExcelSource
from holdfast.tables.machine import processors
from holdfast.tables.session import (
    BATCH_ROWS,
    Session,
    arrow_batches,
    bad_line,
    guarded_batches,
    identifier,
    private_session,
    quote_sql,
    run_guarded,
)
from holdfast.tables.text_files import (
    NAME_IT,
    TEXT_SUFFIXES,
    Reading,
    file_trouble,
    find_separator,
    header_on_one_line,
    other_separator,
    plain_text,
    written_separator,
)

_KINDS = (
    "Give a path to a .csv, .tsv (also as .gz), .parquet or .xlsx file, a frame (pandas, polars, pyarrow, DuckDB), or a database URL with "
    "a query."
)

logger = logging.getLogger(__name__)

_TELLING = re.compile(r"[:@=\r\n]|password", re.IGNORECASE)
"""Found in a text that names no file: it may be a URL or connection string gone wrong, or the data themselves."""

_CHUNK = 2**22

THREADED_ROWS = 2**16
"""Rows of a piece from which each column is read in by a thread of its own."""

_LONGEST_LINE = 2**24
"""In bytes; DuckDB takes none longer than 2^21."""

_END = rb"(?:\r\n|[\r\n])"


def source_name(data: Any) -> str | None:
    """The name of a file without folder and ending; None for a database, which says nothing of its own, and for data in memory."""
    if is_url(data) or not isinstance(data, str | os.PathLike):
        return None
    return Path(os.fsdecode(data).removesuffix(".gz")).stem or None


class Source(Protocol):
    """One readable input. `label` is what messages call it: the name of a file, without its folder."""

    label: str
    path: Path | None
    """The file that a DuckDB session must be allowed to open, if any."""
    names: tuple[str, ...]

    def types(self) -> Sequence[Any]:
        """The Arrow type of each column."""

    def batches(self, columns: Sequence[int]) -> Generator[list[Any], None, None]:
        """The columns at these places, as lists of Arrow arrays of equal length, in the order of the rows. To be closed after use."""

    def scan(self, session: Session, columns: Sequence[int]) -> str:
        """SQL for a table of these columns, named c0, c1, ...; a frame or query can be scanned once only."""


@contextmanager
def open_source(
    data: Any, query: str | None = None, *, only: Sequence[str] | None = None, reading: Reading | None = None
) -> Iterator[Source]:
    """Open whatever `data` is; a source lives as long as the `with` block. Of a query, the columns in `only` alone are asked for."""
    reading = reading or Reading()
    reading.check()
    if is_url(data):
        reading.refuse("a database", "separator", "encoding", "sheet")
        with open_query(data, query, only, reading.query_seconds) as (label, names, reader):
            yield StreamSource(label, reader, names)
        return
    reading.refuse("no database", "query_seconds")
    if query is not None:
        raise InvalidParameter(
            f"A query belongs to a database URL. Got data of type {type(data).__name__}. Leave query out. {_KINDS}", field="query"
        )
    if isinstance(data, str | os.PathLike):
        with _open_file(Path(data), reading) as source:
            yield source
    elif hasattr(data, "__arrow_c_stream__"):
        reading.refuse("a frame", "separator", "encoding", "sheet")
        label = f"the {type(data).__module__.split('.')[0]} {type(data).__name__}"
        _check_frame(data, label)
        yield StreamSource(label, run_guarded(label, lambda: _stream_reader(data)))
    else:
        raise UnreadableInput(
            f"Data of type {type(data).__name__} cannot be read. {_KINDS} A polars LazyFrame needs .collect() first; "
            "pandas.DataFrame(...) makes a frame of a dict or an array."
        )


def _check_frame(data: Any, label: str) -> None:
    """Refuse what exports a stream but is not a table: a single column, or columns of one name, which pandas does not export."""
    if type(data).__name__ == "Series":
        raise UnreadableInput(f"{_capital(label)} is one column, not a table. In pandas .reset_index() makes a frame of grouped sums.")
    names = [name for name in getattr(data, "columns", ()) if isinstance(name, str)]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise UnknownColumn(
            f"{_capital(label)} has more than one column {twice!r}. Give each column a name of its own.", details={"column": twice}
        )


def find_columns(source: Source, wanted: Sequence[str], found_before: Sequence[str] = ()) -> list[int]:
    """The place of each wanted column; refuses names that do not exist, exist twice, or wanted twice."""
    names = list(source.names)
    for name in wanted:
        if not isinstance(name, str):
            raise InvalidParameter(f"Column names must be text. Got {type(name).__name__}.")
        if wanted.count(name) > 1:
            raise UnknownColumn(f"Column {name!r} is asked for twice. Name each column once.", details={"column": name})
        if names.count(name) != 1:
            found = "has no column" if name not in names else "has more than one column"
            doubt = source.header_doubt() if isinstance(source, CsvSource) and name not in names else None
            told = f"{_capital(source.label)} {found} {name!r}. {doubt or _names_found(names, name, (*wanted, *found_before))}"
            where = "; the first line of a CSV file holds them" if isinstance(source, CsvSource) else ""
            raise UnknownColumn(f"{told} Names must match exactly{where}.", details={"column": name})
    return [names.index(name) for name in wanted]


def _names_found(names: Sequence[str], name: str, asked: Sequence[str]) -> str:
    """The columns as a message may show them. If no name fits there may be no header, and the "names" are the first row of data: then only
    those very close to the requested names are shown.
    """
    named = any(given in names for given in asked)
    plain = {found.strip().casefold(): found for found in names}
    close = [plain[found] for found in get_close_matches(name.strip().casefold(), list(plain), cutoff=0.6 if named else 0.8)]
    near = f"Did you mean {' or '.join(map(repr, close))}? " if close and name not in names else ""
    if named:
        return f"{near}Its columns: {_list_some(names)}."
    odd = " Most names in its first line are empty: is it a title? Take it out." if 2 * list(names).count("") >= len(names) > 1 else ""
    return f"{near}It has {len(names)} columns, none of those asked for.{odd}"


def read_codes(source: Source, columns: Sequence[str], allow_missing: bool = False) -> tuple[tuple[Any, ...], tuple[Indices, ...]]:
    """Per column the distinct codes, in order of first appearance, and the index of every row's code."""
    collected, _ = read_table(source, columns, [], allow_missing)
    return collected


def read_table(
    source: Source, columns: Sequence[str], numbers: Sequence[tuple[str, type[CountColumn]]], allow_missing: bool = False
) -> tuple[tuple[tuple[Any, ...], tuple[Indices, ...]], list[NDArray[np.int64]]]:
    """The codes as `read_codes` gives them, and the columns of numbers, each named with the class that checks it."""
    import pyarrow as pa

    places = find_columns(source, [*columns, *(name for name, _ in numbers)])
    codes = [CodeColumn(name, source.label, allow_missing) for name in columns]
    counts = [kind(name, source.label) for name, kind in numbers]

    logger.debug("Reading %s: columns %s", source.label, ", ".join([*columns, *(name for name, _ in numbers)]))

    def collect() -> tuple[list[tuple[Any, Indices]], list[NDArray[np.int64]]]:
        with ThreadPoolExecutor(processors()) as pool, closing(source.batches(places)) as batches:
            spread: Any = map
            for arrays in batches:
                spread = pool.map if len(arrays[0]) >= THREADED_ROWS else spread
                for _ in spread(lambda column, array: column.add(array), (*codes, *counts), arrays):
                    pass  # what is wrong is raised here, that of the first column first
            made = list(spread(lambda column: column.finish(), codes)), [column.finish() for column in counts]
        pa.default_memory_pool().release_unused()
        return made

    finished, checked = run_guarded(source.label, collect)
    return (tuple(texts for texts, _ in finished), tuple(indices for _, indices in finished)), checked


def is_table_name(path: str | os.PathLike[str]) -> bool:
    """True if a file of this name is read as a table."""
    return _text_suffix(Path(path)) in TEXT_SUFFIXES or Path(path).suffix.lower() in (".parquet", *EXCEL_SUFFIXES)


def _text_suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


@contextmanager
def _open_file(path: Path, reading: Reading) -> Iterator[Source]:
    if _TELLING.search(str(path)) and not os.path.exists(path):
        raise UnreadableInput(
            "The text given names no file. It is left out here, since it may hold a password. Check the path; a database URL needs a query "
            f"and starts with one of {', '.join(f'{scheme}://' for scheme in SCHEMES)}."
        )
    label = f"file {path.name!r}"
    suffix = _text_suffix(path)
    is_text = suffix in TEXT_SUFFIXES
    if not is_table_name(path):
        raise UnreadableInput(f"{_capital(label)} ends in {path.suffix.lower()!r}, which is not known here. {_KINDS}")
    trouble = file_trouble(path)
    if trouble is not None:
        raise UnreadableInput(f"{_capital(label)} {trouble}. (Paths start at the working folder.)")
    if is_text:
        reading.refuse(label, "sheet")
        with plain_text(path, label, reading.encoding) as plain:
            logger.debug("Opened %s as text (encoding %s)", label, reading.encoding or "as the file shows")
            separator = reading.separator or run_guarded(label, lambda: find_separator(plain, label, "\t" if suffix == ".tsv" else ","))
            source = run_guarded(label, lambda: CsvSource(label, plain, separator))
            with header_on_one_line(plain, label, source.names) as source.path:
                yield source
        return
    reading.refuse(label, "separator", "encoding")
    if path.suffix.lower() in EXCEL_SUFFIXES:
        yield ExcelSource(label, path, reading.sheet)
        return
    reading.refuse(label, "sheet")
    if not run_guarded(label, lambda: is_parquet(path)):
        raise UnreadableInput(f"{_capital(label)} is not a Parquet file. Write it anew, or give it the ending of its kind, such as .csv.")
    yield run_guarded(label, lambda: ParquetSource(label, path))


class CsvSource:
    """A UTF-8 file of separated fields, read by DuckDB with every field as text."""

    def __init__(self, label: str, path: Path, separator: str = ",") -> None:
        self.label = label
        self.path: Path | None = path
        self._file = path
        self._separator = separator
        self.names = self._header()
        check_csv(path, label, len(self.names), separator)

    def header_doubt(self) -> str | None:
        """Why the first line may hold more than names; then none of it is shown. Where its line break was lost, the first row is in it."""
        try:
            with self._file.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as lines:
                row = next((row for row in islice(csv.reader(lines, strict=True, delimiter=self._separator), 1, None) if row), None)
        except csv.Error:
            row = []
        if row is not None and len(row) == len(self.names) > 1:
            return None
        more = "no line follows" if row is None else f"the next one has {len(row)}"
        if len(self.names) == 1 and (other := other_separator(self.names[0])) is not None:
            return (
                f"Its first line was read as one field, with separator = {written_separator(self._separator)}. Write {other}, or leave "
                "separator out: it is found. Names are not shown, since counts may be among them."
            )
        if row is not None and len(row) == len(self.names):
            return (
                "It was read as one column, and the name in its first line is another. Write the name that is asked for there; "
                "columns are separated by commas, semicolons, tabs or bars."
            )
        return (
            f"Its first line has {count_of(len(self.names), 'field')}, and {more}: the line break after the header may be missing, or "
            "a title stand above it. Names are not shown, since counts may be among them."
        )

    def types(self) -> Sequence[Any]:
        import pyarrow as pa

        return [pa.string()] * len(self.names)

    def batches(self, columns: Sequence[int]) -> Generator[list[Any], None, None]:
        with private_session(self.path) as session:
            sql = f"SELECT {', '.join(f'f{i}' for i in columns)} FROM {self._read_csv(session)}"
            reader = run_guarded(self.label, lambda: arrow_batches(session.connection.sql(sql)))
            for batch in guarded_batches(self.label, reader):
                yield batch.columns

    def scan(self, session: Session, columns: Sequence[int]) -> str:
        # CSV cannot tell a missing text from an empty one in the way most programs write it: in records both are the empty text.
        fields = ", ".join(f"coalesce(f{i}, '') AS c{place}" for place, i in enumerate(columns))
        return f"(SELECT {fields} FROM {self._read_csv(session)})"

    def _read_csv(self, session: Session) -> str:
        """Columns get names of ours: DuckDB takes 'State' and 'state' for the same."""
        assert session.file is not None
        columns = ", ".join(f"'f{i}': 'VARCHAR'" for i in range(len(self.names)))
        return (
            f"read_csv({quote_sql(session.file)}, columns = {{{columns}}}, auto_detect = false, header = true, "
            f"delim = {quote_sql(self._separator)}, quote = '\"', "
            "escape = '\"', strict_mode = true, null_padding = false, ignore_errors = false, allow_quoted_nulls = false, "
            "encoding = 'utf-8')"
        )

    def _header(self) -> tuple[str, ...]:
        header, problem = [], ""
        try:
            # Bytes that are no UTF-8 become half surrogates, which no UTF-8 text holds: some may already be read that lie further down.
            with self._file.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as lines:
                header = next(csv.reader(lines, strict=True, delimiter=self._separator), [])
            "".join(header).encode()
        except UnicodeEncodeError:
            problem = f"The header of {self.label} is not UTF-8. {NAME_IT}"
        except csv.Error:
            problem = f"The header of {self.label} cannot be read: a quote is misplaced. Put quotes at both ends of a name, or at none."
        if problem:
            raise UnreadableInput(problem, field="encoding" if "UTF-8" in problem else None)
        if not header:
            raise UnreadableInput(f"{_capital(self.label)} has no header. The first line must name the columns.")
        if any("\r" in name for name in header):  # DuckDB would find no line end after it
            raise UnreadableInput(f"A column name of {self.label} holds a carriage return. Take it out of the header.")
        return tuple(header)


def is_parquet(path: Path) -> bool:
    """Whether the file begins as a Parquet file does, plain or encrypted."""
    with path.open("rb") as file:
        return file.read(4) in (b"PAR1", b"PARE")


class ParquetSource:
    """A Parquet file."""

    def __init__(self, label: str, path: Path) -> None:
        import pyarrow.parquet as pq

        self.label = label
        self.path: Path | None = path
        self._file = path
        self._schema = pq.read_schema(path)
        self.names = tuple(self._schema.names)

    def types(self) -> Sequence[Any]:
        return list(self._schema.types)

    def batches(self, columns: Sequence[int]) -> Generator[list[Any], None, None]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = [self.names[i] for i in columns]
        texts = [name for name, kind in zip(self.names, self._schema.types, strict=True) if pa.types.is_string(kind)]
        with pq.ParquetFile(self._file, read_dictionary=texts) as file:
            for batch in guarded_batches(self.label, file.iter_batches(BATCH_ROWS, columns=names)):
                yield [batch.column(name) for name in names]

    def scan(self, session: Session, columns: Sequence[int]) -> str:
        if len({name.casefold() for name in self.names}) < len(self.names):  # names that DuckDB could not tell apart
            return _register(session, self.batches(columns), [self._schema.types[i] for i in columns])
        assert session.file is not None
        fields = ", ".join(f"{identifier(self.names[i])} AS c{place}" for place, i in enumerate(columns))
        return f"(SELECT {fields} FROM read_parquet({quote_sql(session.file)}))"


class StreamSource:
    """An Arrow record batch reader: a frame in memory, or the answer of a query. It can be read once.

    `names` are all columns of the source, where the reader has only some of them.
    """

    def __init__(self, label: str, reader: Any, names: tuple[str, ...] | None = None) -> None:
        self.label = label
        self.path: Path | None = None
        self._reader = reader
        read = tuple(reader.schema.names)
        self.names = read if names is None else names
        self._place = {place: place if read == self.names else read.index(name) for place, name in enumerate(self.names) if name in read}

    def types(self) -> Sequence[Any]:
        return [self._reader.schema.types[self._place[place]] if place in self._place else None for place in range(len(self.names))]

    def batches(self, columns: Sequence[int]) -> Generator[list[Any], None, None]:
        for batch in guarded_batches(self.label, self._reader):
            for low in range(0, batch.num_rows, BATCH_ROWS):  # a frame may come as one batch of any size
                piece = batch.slice(low, BATCH_ROWS)
                yield [piece.column(self._place[i]) for i in columns]

    def scan(self, session: Session, columns: Sequence[int]) -> str:
        types = self.types()
        return _register(session, self.batches(columns), [types[i] for i in columns])


def _register(session: Session, batches: Iterator[list[Any]], types: list[Any]) -> str:
    import pyarrow as pa

    schema = pa.schema([(f"c{place}", kind) for place, kind in enumerate(types)])
    renamed = (pa.RecordBatch.from_arrays(arrays, schema=schema) for arrays in batches)
    session.connection.register("input", pa.RecordBatchReader.from_batches(schema, renamed))
    return "input"


def _stream_reader(data: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatchReader.from_stream(data)


def _list_some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:20]))
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown or "none"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def check_csv(path: Path, label: str, fields: int, separator: str = ",") -> None:
    """Refuse a file with a line that has blanks or tabs beside quotes, or empty fields too many, with the number of the line.

    Time:  one fast pass; a slower one only where a separator ends a line or a blank stands beside a quote, which both may be legal.
    """
    mark = separator.encode()
    blanks = [blank for blank in (b" ", b"\t") if blank != mark]
    if any(_is_suspicious(chunk, mark, blanks) for chunk in _overlapping(path)):
        _check_lines(path, label, fields, mark, b"".join(blanks))


def _is_suspicious(chunk: bytes, mark: bytes, blanks: list[bytes]) -> bool:
    if mark + b"\n" in chunk or mark + b"\r" in chunk:
        return True
    if b'"' not in chunk:
        return False
    return any(pair in chunk for blank in blanks if blank in chunk for pair in (blank + b'"', b'"' + blank))


def _overlapping(path: Path) -> Iterator[bytes]:
    """The file in pieces, each led by the last byte of the one before: a pair is never cut. The end of the file counts as a line end."""
    last = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield last + chunk
            last = chunk[-1:]
    yield last + b"\n"


def _check_lines(path: Path, label: str, fields: int, mark: bytes, blanks: bytes) -> None:
    """Every line must be as the rules want it; a line goes on inside quotes."""
    mark = re.escape(mark)
    field = rb'(?:"(?:[^"]++|"")*+"|(?![%b]*+")[^%b\r\n]*+)' % (blanks, mark)
    some_fields = re.compile(rb"%b(?:%b%b)*+%b" % (field, mark, field, _END))
    lines = re.compile(rb"(?:%b(?:%b%b){%d}%b|[\r\n])*+" % (field, mark, field, fields - 1, _END))
    feeds = returns = 0
    with path.open("rb") as file:
        rest = file.read(3).removeprefix(b"\xef\xbb\xbf")
        while True:
            chunk = file.read(_CHUNK)
            rest += chunk or b"\n"
            good = lines.match(rest)
            end = good.end() if good is not None else 0
            feeds += rest.count(b"\n", 0, end)
            returns += rest.count(b"\r", 0, end)
            rest = rest[end:]
            if (rest and not chunk) or len(rest) > _LONGEST_LINE + _CHUNK:
                raise bad_line(label, (feeds or returns) + 1, "fields" if some_fields.match(rest) else "blank")
            if not chunk:
                return
