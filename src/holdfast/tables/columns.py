"""One column at a time: codes become small integers beside a list of distinct codes, counts become checked 64-bit integers.

Columns arrive in pieces (Arrow arrays), so that memory holds four bytes per code and eight per count, not the text of a whole file.
Messages name the source, the column and the row (1 is the first row of data, a header is not counted), never the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidCode, InvalidCount

COUNT_LIMIT = 2**62
"""Every count, and every sum of counts, stays below this, so that a sum or difference of two fits in 64 bits."""

KEY_BITS = 32
"""Record keys and cell keys are whole numbers from 0 to 2^32 - 1; a cell's key is the sum of its records' keys modulo 2^32."""

KEY_LIMIT = 2**KEY_BITS

Indices = NDArray[np.signedinteger]
"""Places among codes, in integers as small as their number allows: products of them need wider ones."""
BATCH = 2**18
"""Rows of a large array that are worked on at a time, so that no second array of its size is made."""

MISSING = -1
"""The index of a missing code, where missing codes are allowed."""

KEY_COLUMN = "record_key"
UNKNOWN = "unknown"
"""The secret behind a column of keys."""


@dataclass(frozen=True, eq=False, repr=False)
class CellKeySums:
    """What the cell key method reads of the records of each cell beside their number. Sums and weights are CONFIDENTIAL.

    sums:     per cell, that of the keys of its records modulo `modulus`; 0 in empty cells.
    weights:  per cell, that of the weights of its records times 10^6, as Python's integers; None where records have no weights.
    space:    what record keys are, as the rule for cell keys writes it.
    column:   the column of keys, or of the identifiers that keys were made from; secret: the fingerprint of the secret, if it is known.
    """

    sums: NDArray[Any]
    weights: NDArray[Any] | None = None
    modulus: int = KEY_LIMIT
    space: str = f"2^{KEY_BITS}"
    column: str = KEY_COLUMN
    secret: str = UNKNOWN
    is_private: bool = True
    """False where the keys were made by a test secret."""

    def of(self, cells: NDArray[np.int64]) -> CellKeySums:
        """The same of some cells, in their shape."""
        return replace(self, sums=self.sums[cells], weights=None if self.weights is None else self.weights[cells])

    def spread(self, cells: NDArray[np.int64], size: int) -> CellKeySums:
        """The same put into these places of `size` cells; the others are empty."""
        sums = np.zeros(size, self.sums.dtype)
        sums[cells] = self.sums
        if self.weights is None:
            return replace(self, sums=sums)
        weights = np.zeros(size, dtype=object)
        weights[cells] = self.weights
        return replace(self, sums=sums, weights=weights)

    def to_bytes(self) -> bytes:
        """As many for each cell, so that no two inputs have the same."""
        weights = [] if self.weights is None else self.weights.ravel().tolist()
        return bytes(self.sums.astype("<u8").tobytes() + b"".join(weight.to_bytes(16, "little") for weight in weights))


_PLAIN_COUNT = r"\A(?:0|[1-9][0-9]{0,18})\z"

_COUNT_RULE = (
    "A count is a whole number from 0 to 2^62 - 1 in plain digits: no sign, point, blank, separator or leading zero. "
    'Write 1234, not "1,234", "1.234", "1 234" or "1234,0". Hidden counts ("<5", blanks) must be the true ones again; a zero is written 0. '
    "Real-valued answers go to hf.answer, or [answer] in a run file."
)

_COUNT_ADVICE = (
    "Cast it to integers at the source; missing values (NaN) make a column one of floats, so fill them in first. Sums of amounts, means "
    "and shares are real-valued answers: use hf.answer, or [answer] in a run file."
)

_KEY_RULE = f"A key is a whole number from 0 to 2^{KEY_BITS} - 1 in plain digits: no sign, point, blank, separator or leading zero."

_KEY_ADVICE = "Cast it to integers at the source. Multiply keys that are fractions from 0 to 1 by 2^32 and round down."


class CodeColumn:
    """Collects the codes of one column.

    Given:       Arrow arrays of text, or of a dictionary of text; anything else is refused, since a number has lost its leading zeros.
    Guarantees:  the distinct codes in order of first appearance, exactly as given, and for each row the index of its code.
                 A missing code is refused with its row, or gets the index MISSING where `allow_missing` says so.
    """

    def __init__(self, name: str, source: str, allow_missing: bool = False) -> None:
        self._name = name
        self._source = source
        self._allow_missing = allow_missing
        self._texts: list[Any] = []
        self._places = _Growing(np.dtype(np.int8))
        """For each row the place of its code in all texts so far."""
        self._places_used = 0

    def add(self, array: Any) -> None:
        """The next rows of the column."""
        check_code_type(array.type, self._name, self._source)
        coded = _used_texts(array)
        if coded.null_count and not self._allow_missing:
            row = self._places.size + 1 + int(np.flatnonzero(coded.is_null().to_numpy(zero_copy_only=False))[0])
            raise InvalidCode(
                f"A code is missing: {_place(self._name, row, self._source)}. "
                'Fill it in; an empty text may be a code of its own, written "" with quotes in a CSV file.'
            )
        first = self._places_used
        self._texts.append(coded.dictionary)
        self._places_used += len(coded.dictionary)
        indices = coded.indices.fill_null(MISSING - first) if coded.null_count else coded.indices
        self._places.add(numpy_values(indices) + np.int32(first), index_type(self._places_used))

    def finish(self) -> tuple[Any, Indices]:
        """The distinct codes (an Arrow array of text) and the index of each row's code, in integers as small as they may be."""
        import pyarrow as pa

        texts = pa.chunked_array(self._texts, pa.string()).dictionary_encode()
        codes = texts.chunk(0).dictionary if len(texts) else pa.array([], pa.string())
        check_unicode(codes, self._name, self._source)
        kind = index_type(len(codes))
        of_place = np.concatenate([*(numpy_values(chunk.indices) for chunk in texts.chunks), [MISSING]]).astype(kind)
        places, self._texts = self._places.finish(), []
        indices = places if places.dtype == kind else np.empty(len(places), dtype=kind)
        for low in range(0, len(places), BATCH):
            indices[low : low + BATCH] = of_place[places[low : low + BATCH]]
        return codes, indices


class _Growing:
    """An array that grows at its end, and to a wider type, without a second copy of it."""

    def __init__(self, kind: np.dtype[Any]) -> None:
        self._array = np.empty(0, dtype=kind)
        self.size = 0

    def add(self, values: NDArray[Any], kind: type[np.signedinteger]) -> None:
        """Append values; `kind` holds all there are by now."""
        if np.dtype(kind) > self._array.dtype:
            self._array = self._array.astype(kind)
        end = self.size + len(values)
        if end > len(self._array):
            self._array.resize(max(end, len(self._array) * 9 // 8), refcheck=False)  # large arrays are moved by the system, not copied
        self._array[self.size : end] = values
        self.size = end

    def finish(self) -> NDArray[Any]:
        """All values; the array is empty afterwards."""
        whole, self._array = self._array, self._array[:0].copy()
        whole.resize(self.size, refcheck=False)
        self.size = 0
        return whole


def _used_texts(array: Any) -> Any:
    """Text as an Arrow dictionary of those texts that occur, in order of first appearance; no missing one among them."""
    import pyarrow as pa

    if not pa.types.is_dictionary(array.type) or array.dictionary.null_count:
        return text_array(array).dictionary_encode()
    texts = array.dictionary.cast(pa.string()) if pa.types.is_string_view(array.dictionary.type) else array.dictionary
    used = array.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(used.indices, texts.take(used.dictionary).cast(pa.string()))


def index_type(codes: int) -> type[np.signedinteger]:
    """The smallest integers that number so many codes; signed, for MISSING."""
    return next(kind for kind in (np.int8, np.int16, np.int32) if codes <= np.iinfo(kind).max)


class CountColumn:
    """Collects the counts of one column.

    Given:       Arrow arrays of integers, of decimals without places, or of text in plain digits.
    Guarantees:  int64 values from 0 to 2^62 - 1, none changed; anything else is refused with its row.
    """

    _limit = COUNT_LIMIT
    _what = "count"
    _rule = _COUNT_RULE
    _advice = _COUNT_ADVICE

    def __init__(self, name: str, source: str) -> None:
        self._name = name
        self._source = source
        self._values = _Growing(np.dtype(np.int64))

    def add(self, array: Any) -> None:
        """The next rows of the column."""
        import pyarrow as pa

        kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        plain = array.dictionary_decode() if kind != array.type and not _is_text(kind) else array
        integers = self._from_text(text_array(array)) if _is_text(kind) else plain
        if not (pa.types.is_integer(integers.type) or pa.types.is_null(integers.type) or _is_whole_decimal(integers.type)):
            raise InvalidCount(
                f"{self._what.capitalize()}s must be whole numbers. Column {self._name!r} of {self._source} has type {array.type}. "
                + self._advice
            )
        self._values.add(self._check_integers(integers), np.int64)

    def finish(self) -> NDArray[np.int64]:
        """All counts, in order."""
        return self._values.finish()

    def _from_text(self, text: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        right = pc.match_substring_regex(text, _PLAIN_COUNT)
        self._refuse_first(pc.invert(right.fill_null(False) if right.null_count else right))
        return text.cast(pa.uint64())

    def _check_integers(self, integers: Any) -> NDArray[np.int64]:
        import pyarrow as pa
        import pyarrow.compute as pc

        if integers.null_count:
            self._refuse_first(integers.is_null())
        if pa.types.is_integer(integers.type):  # by NumPy: Arrow's comparisons with a number load pandas, if only to see that it is none
            values = numpy_values(integers)
            self._refuse_first((values < 0) | (values >= self._limit))
        else:
            self._refuse_first(pc.or_(pc.greater_equal(integers, pa.scalar(self._limit, pa.int64())), pc.less(integers, 0)))
        return numpy_values(integers.cast(pa.int64()))

    def _refuse_first(self, bad: Any) -> None:
        rows = np.flatnonzero(bad if isinstance(bad, np.ndarray) else numpy_values(bad))
        if len(rows):
            place = _place(self._name, self._values.size + 1 + int(rows[0]), self._source)
            raise InvalidCount(f"This is not a {self._what}: {place}. {self._rule}")


class CellKeyColumn(CountColumn):
    """Collects the keys of all cells: as for counts, but from 0 to 2^32 - 1."""

    _limit = KEY_LIMIT
    _what = "cell key"
    _rule = _KEY_RULE
    _advice = _KEY_ADVICE


def record_key_sql(
    kind: Any, column: str, name: str, source: str, *, size: int = KEY_LIMIT, digits: int | None = None, advice: str = _KEY_ADVICE
) -> str:
    """SQL for the record keys in `column`, whose Arrow type is `kind`, as UBIGINT below `size`, or NULL where no valid key stands.

    With `digits` keys are decimals of so many digits. They are exact only as text or as Arrow decimals: a float has lost what was written,
    and is refused.
    """
    import pyarrow as pa

    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    text = f"{column}::VARCHAR"
    if digits is not None:
        if not (_is_text(value) or pa.types.is_decimal(value)):
            raise InvalidCount(
                f"Decimal keys must be text or exact decimals. Column {name!r} of {source} has type {kind}. Write them as text, or as "
                f"whole numbers over 10^{digits} with another key space."
            )
        # Zeros that an Arrow decimal of larger scale adds at the end are no more digits.
        part = f"regexp_extract({text}, '^0?\\.([0-9]{{1,{digits}}})0*$', 1)"
        return (
            f"CASE WHEN regexp_full_match({text}, '0?\\.[0-9]{{1,{digits}}}0*') THEN rpad({part}, {digits}, '0')::UBIGINT "
            f"WHEN {text} = '0' THEN 0::UBIGINT END"
        )
    if _is_text(value):
        key = f"CASE WHEN regexp_full_match({text}, '0|[1-9][0-9]*') THEN TRY_CAST({text} AS UBIGINT) END"
    elif pa.types.is_integer(value) or pa.types.is_null(value) or (_is_whole_decimal(value) and value.bit_width <= 128):
        key = f"TRY_CAST({column} AS UBIGINT)"
    else:
        raise InvalidCount(f"Record keys must be whole numbers. Column {name!r} of {source} has type {kind}. {advice}")
    return f"CASE WHEN {key} < {size} THEN {key} END"  # 2^64 is no UBIGINT, and compares as what it is


def invalid_record_key(name: str, row: int, source: str) -> InvalidCount:
    """The error for a row whose record key is missing or out of range."""
    return InvalidCount(f"This is not a record key: {_place(name, row, source)}. {_KEY_RULE}")


def check_code_type(kind: Any, name: str, source: str) -> None:
    """Refuse a column of codes that is not text."""
    import pyarrow as pa

    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (_is_text(value) or pa.types.is_null(value)):
        raise InvalidCode(
            f"Codes must be text. Column {name!r} of {source} has type {kind}. "
            'Cast it to text at the source, where "01" is still known to be "01" and not 1.'
        )


def check_unicode(texts: Any, name: str, source: str) -> None:
    """Refuse text that is not UTF-8: Arrow takes the word of whoever made it, and Python would quote the bytes later."""
    import pyarrow as pa

    try:
        texts.validate(full=True)
        valid = True
    except pa.ArrowInvalid:
        valid = False
    if not valid:
        raise InvalidCode(f"Column {name!r} of {source} holds text that is not valid UTF-8. Convert it to UTF-8 at the source.")


def text_array(array: Any) -> Any:
    """The same text as a plain Arrow array of type string, whichever of Arrow's forms of text it came in."""
    import pyarrow as pa

    plain = array
    if pa.types.is_dictionary(array.type):
        # Its texts first: Arrow cannot decode a dictionary of string views.
        plain = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.string())).dictionary_decode()
    return plain if pa.types.is_string(plain.type) else plain.cast(pa.string())


def exact_total(counts: NDArray[np.int64]) -> int:
    """The sum of numbers above -2^62 and below 2^62, without overflow."""
    largest = max(int(counts.max(initial=0)), -int(counts.min(initial=0)))
    if largest * len(counts) < 2**63:
        return int(counts.sum())
    high, low = counts >> 31, counts & (2**31 - 1)
    return (int(high.sum()) << 31) + int(low.sum())


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to, nor made writable again."""
    contiguous = np.ascontiguousarray(array)
    return np.frombuffer(memoryview(contiguous.data).toreadonly().cast("B"), dtype=contiguous.dtype) if len(contiguous) else contiguous


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_whole_decimal(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_decimal(kind)) and kind.scale == 0


def _place(column: str, row: int, source: str) -> str:
    return f"column {column!r}, row {row} of {source}"


def arrow_numbers(values: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> Any:
    """Numbers as an Arrow array that shares their memory. (pyarrow.array looks at its argument through pandas, which takes a third of a
    second to load where it is installed; to_numpy does, too.)
    """
    import pyarrow as pa

    values = np.ascontiguousarray(values)
    bitmap = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [bitmap, pa.py_buffer(values)])


def arrow_texts(texts: Sequence[str]) -> Any:
    """Texts as an Arrow array of type string; for few of them, where pandas need not be loaded for more."""
    import pyarrow as pa

    coded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, coded)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(coded), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(coded))])


def numpy_values(array: Any) -> NDArray[Any]:
    """The numbers or truth values of an Arrow array without missing ones; numbers share its memory."""
    import pyarrow as pa

    assert not array.null_count
    _, data = array.buffers()
    if pa.types.is_boolean(array.type):
        bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little") if data is not None else np.zeros(0, dtype=np.uint8)
        return bits[array.offset : array.offset + len(array)].astype(np.bool_)
    kind = np.dtype(array.type.to_pandas_dtype())
    return np.frombuffer(data, dtype=kind)[array.offset : array.offset + len(array)] if data is not None else np.zeros(0, dtype=kind)


def free_name(wanted: str, taken: Iterable[str], prefix: str) -> str:
    """The name of a column of ours; with a prefix, as often as it takes, where the table has a column of that name."""
    while wanted in taken:
        wanted = f"{prefix}_{wanted}"
    return wanted
