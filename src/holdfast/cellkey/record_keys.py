"""Record keys from identifiers: a keyed function, so that a record keeps its key wherever it is stored, sorted, copied or left out.

The function is AES-256-CMAC (SP 800-38B) of the identifier's UTF-8 text, its 16 bytes read as one little-endian number and reduced modulo
the number of keys. The key of the function is made for this number of keys alone. It is computed for many records at once: the messages of
a batch are cut into blocks of 16 bytes, all first blocks are encrypted in one call, then all second ones. `slow_key` is the same for one
record by the library's own CMAC.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.keys import KeySpace
from holdfast.errors import InvalidCode, InvalidParameter, KeyMisuse, OutputExists, OutputProblem, TooManyRecords, UnreadableInput
from holdfast.randomness.keys import read_key_file
from holdfast.randomness.labels import encode_label
from holdfast.randomness.vault import KEY_BYTES, NotCopied, hmac_sha256, start_cmac, start_ecb
from holdfast.tables.columns import KEY_COLUMN, arrow_numbers, check_unicode, text_array
from holdfast.tables.readers import Source, find_columns, open_source
from holdfast.tables.session import run_guarded
from holdfast.tables.text_files import Reading

BATCH = 2**16
"""Records handled at a time: their blocks stay in the processor's cache."""
BLOCK = 16
LONGEST = 4096
"""Bytes of the longest identifier."""

_FILE_KIND = "holdfast record keys"
_FILE_VERSION = 1
_PUBLIC_TEST_SECRET = b"holdfast test record keys: NOT PRIVATE"


class RecordKeys(NotCopied):
    """The long-lived secret from which an office's records get their keys.

    Given:       AES-256-CMAC and HMAC-SHA-256 behave as pseudorandom functions; the secret came from the operating system (`generate`).
    Guarantees:  equal identifiers get equal keys, on every day and in every subset; keys of different identifiers are independent and
                 uniform up to size / 2^128 for each key. Keys of another number of keys are independent of these: 8-bit keys tell
                 nothing about 32-bit keys. So stay with one number: tables made with two have two draws of noise. The secret is
                 not shown, copied or pickled; `save` writes it, for its owner only.
    Not promised: secrecy of past tables if the secret is lost. It lives as long as tables of the population are made, so it is not the
                 NoiseKey of a release, which dies with it.

    Use one for each population and unit: `derive("census 2030", "households")`.
    """

    __slots__ = ("_master", "is_private")
    _master: bytes
    is_private: bool

    def __init__(self, *_: object, **__: object) -> None:
        raise KeyMisuse("Record keys are not built directly. Use RecordKeys.generate() once and save(), later RecordKeys.load().")

    @classmethod
    def _open(cls, master: bytes, is_private: bool) -> Self:
        made = object.__new__(cls)
        made._master, made.is_private = master, is_private
        return made

    def _cmac_key(self, space: KeySpace) -> bytes:
        """Decimals of d digits are whole numbers below 10^d, so that the size alone tells spaces apart."""
        return hmac_sha256(self._master, _purpose("keys of records") + encode_label((str(space.size),)))

    @classmethod
    def generate(cls) -> Self:
        """A new secret of 256 bits from the operating system."""
        return cls._open(os.urandom(KEY_BYTES), True)

    @classmethod
    def for_tests(cls, seed: int | str) -> Self:
        """A secret anyone can recompute from `seed`: for tests and examples. `is_private` is False."""
        return cls._open(hmac_sha256(_PUBLIC_TEST_SECRET, encode_label((seed,))), False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The secret that `save` wrote; refused where others may read the file."""
        try:
            found = json.loads(read_key_file(path).decode("ascii"))
            if (found["kind"], found["version"]) != (_FILE_KIND, _FILE_VERSION) or not isinstance(found["private"], bool):
                raise ValueError
            secret = bytes.fromhex(found["secret"])
            if len(secret) != KEY_BYTES:
                raise ValueError
        except OSError:
            problem = "cannot be opened"
        except (ValueError, KeyError, TypeError, RecursionError):
            problem = "holds no record keys of this version"
        else:
            return cls._open(secret, found["private"])
        raise UnreadableInput(f"File {Path(path).name!r} {problem}. Give the file that RecordKeys.save wrote; what it holds is not shown.")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the secret to a new file that only its owner may read. Whoever has it can take the noise off every table: guard it."""
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            handle = None
        except OSError:
            raise OutputProblem(f"File {Path(path).name!r} cannot be written. Check that its folder exists and can be used.") from None
        if handle is None:
            raise OutputExists(f"File {Path(path).name!r} exists. A secret is never written over another: choose a new name.")
        with os.fdopen(handle, "w", encoding="ascii") as file:
            fields = {"kind": _FILE_KIND, "version": _FILE_VERSION, "private": self.is_private, "secret": self._master.hex()}
            file.write(json.dumps(fields, indent=1) + "\n")

    def derive(self, *names: str | int) -> Self:
        """The secret of one population or unit: its keys are independent of those of every other name."""
        return self._open(hmac_sha256(self._master, _purpose("derived") + encode_label(names)), self.is_private)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that tell whether the same secret was used. They tell nothing else and may be published."""
        return hmac_sha256(self._master, _purpose("fingerprint"))[:8].hex()

    def keys(self, identifiers: Any, space: KeySpace) -> NDArray[np.uint64]:
        """One key for each identifier, in their order. CONFIDENTIAL.

        Given:       identifiers: a list of text, or an Arrow array of text or integers (written as plain digits); all different.
        Refused:     missing identifiers, two that are equal, longer ones than 4,096 bytes. Messages hold none of them.
        """
        import pyarrow as pa

        given = identifiers if isinstance(identifiers, pa.Array | pa.ChunkedArray) else _texts_array(identifiers)
        chunks = given.chunks if isinstance(given, pa.ChunkedArray) else [given]
        return self._keys_of([_as_text(chunk, "identifiers", "the list") for chunk in chunks], space, "the list of identifiers")

    def add(
        self,
        data: Any,
        id: str,
        space: KeySpace,
        *,
        name: str = KEY_COLUMN,
        query: str | None = None,
        reading: Reading | None = None,
    ) -> Any:
        """The records of a file, frame or query with their keys as one more column, as a pyarrow.Table. CONFIDENTIAL.

        Identifiers are the same record if they are the same text, character by character. The number 7 and the text "7" are the same;
        "07" and "7 " are others, and so is an accented letter that is written as two characters. Clean identifiers before: a person
        under two of them has two keys. Decimal keys are written as text ("0.00000731"), others as unsigned integers.
        """
        import pyarrow as pa

        with open_source(data, query, reading=reading) as source:
            (place,) = find_columns(source, [id])
            if name in source.names:
                raise InvalidParameter(f"Column {name!r} of {source.label} exists. Give the new column another name.", field="name")
            columns = _all_columns(source)
            texts = [_as_text(chunk, id, source.label) for chunk in columns[place].chunks]
            keys = self._keys_of(texts, space, f"column {id!r} of {source.label}")
            return pa.table([*columns, _column_of(keys, space)], names=[*source.names, name])

    def slow_key(self, identifier: str, space: KeySpace) -> int:
        """The key of one record, by the library's CMAC and Python's integers: what `keys` computes in bulk."""
        mac = start_cmac(self._cmac_key(space))
        mac.update(identifier.encode())
        return int.from_bytes(mac.finalize(), "little") % space.size

    def _keys_of(self, texts: Iterable[Any], space: KeySpace, what: str) -> NDArray[np.uint64]:
        secret = self._cmac_key(space)
        tags = [tag for array in texts for tag in _tags(array, secret)]
        both = np.concatenate(tags) if tags else np.zeros((0, 2), dtype="<u8")
        _check_distinct(both, what)
        return _reduce_tags(both, space)

    def _refuse_copy(self) -> NoReturn:
        raise KeyMisuse("Record keys cannot be copied or pickled: the copy would hold the secret. Use save() and load().")

    def __repr__(self) -> str:
        kind = "private" if self.is_private else "for tests: NOT PRIVATE"
        return f"RecordKeys({kind}, fingerprint {self.fingerprint})"


def _purpose(what: str) -> bytes:
    """Not tied to the version of the streams of releases: keys of records must stay what they are for as long as the population is used."""
    return f"holdfast record keys, version 1: {what};".encode("ascii")


def _tags(texts: Any, secret: bytes) -> Iterator[NDArray[np.uint64]]:
    """The 16 bytes of each CMAC as two 64-bit numbers, low one first."""
    cipher = start_ecb(secret)
    first = _double_block(cipher.update(bytes(BLOCK)))
    masks = np.frombuffer(_double_block(first), np.uint8), np.frombuffer(first, np.uint8)
    for low in range(0, len(texts), BATCH):
        data, starts, sizes = _bytes_of(texts.slice(low, BATCH))
        blocks = np.maximum(-(-sizes // BLOCK), 1)
        out = np.empty((len(sizes), 2), dtype="<u8")
        for count in np.unique(blocks).tolist():
            rows = np.flatnonzero(blocks == count)
            message = _pad_messages(data, starts[rows], sizes[rows], count, masks)
            state = np.zeros((len(rows), BLOCK), np.uint8)
            for place in range(count):
                state = np.frombuffer(cipher.update((state ^ message[:, place]).tobytes()), np.uint8).reshape(-1, BLOCK)
            out[rows] = state.view("<u8")
        yield out


def _double_block(block: bytes) -> bytes:
    """Twice a block in the field of SP 800-38B."""
    value = int.from_bytes(block, "big") << 1
    return ((value ^ 0x87) & (2**128 - 1) if value >> 128 else value).to_bytes(BLOCK, "big")


def _pad_messages(
    data: NDArray[np.uint8],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    blocks: int,
    masks: tuple[NDArray[np.uint8], NDArray[np.uint8]],
) -> NDArray[np.uint8]:
    """Messages of so many blocks, the last one padded and masked as CMAC wants it: shape (messages, blocks, 16)."""
    width = blocks * BLOCK
    columns = np.arange(width)
    inside = columns < sizes[:, None]
    places = np.minimum(starts[:, None] + columns, max(len(data) - 1, 0))
    message = np.where(inside, data[places], np.uint8(0)) if len(data) else np.zeros((len(sizes), width), np.uint8)
    short = np.flatnonzero(sizes < width)
    message[short, sizes[short]] = 0x80
    message = message.reshape(len(sizes), blocks, BLOCK)
    message[:, -1] ^= np.where((sizes < width)[:, None], masks[0], masks[1])
    return message


def _reduce_tags(tags: NDArray[np.uint64], space: KeySpace) -> NDArray[np.uint64]:
    """Numbers of 128 bits modulo the number of keys, in 64-bit integers."""
    low, high = tags[:, 0].astype(np.uint64), tags[:, 1].astype(np.uint64)
    if space.is_power_of_two:
        return low & np.uint64(space.size - 1)
    size = np.uint64(space.size)
    bits = 64 - space.size.bit_length()  # a remainder times 2^bits, and as much again, fits in 64 bits
    if bits < 1:
        raise InvalidParameter(f"Keys are made for powers of two, and for other numbers up to 2^63. Got {space.size}.", field="space")
    value = high % size
    done = 0
    while done < 64:
        step = min(bits, 64 - done)
        piece = (low >> np.uint64(64 - done - step)) & np.uint64(2**step - 1)
        value = ((value << np.uint64(step)) + piece) % size
        done += step
    return value


def _check_distinct(tags: NDArray[np.uint64], what: str) -> None:
    """Equal identifiers have equal tags; different ones have different tags but for a chance below n^2 / 2^129."""
    low = np.sort(tags[:, 0])
    repeated = np.unique(low[1:][low[1:] == low[:-1]])
    if not len(repeated):
        return
    found = [tuple(tag) for tag in tags[np.isin(tags[:, 0], repeated)].tolist()]
    if len(set(found)) < len(found):
        raise TooManyRecords(
            f"Two records have the same identifier in {what}, so they would have the same key. "
            "Give every record an identifier of its own; where a person has several records, join it with a number."
        )


def _bytes_of(texts: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """The bytes of an Arrow array of text, where each text starts, and its length."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8), bounds[:-1], np.diff(bounds)


def _texts_array(identifiers: Any) -> Any:
    import pyarrow as pa

    listed = list(identifiers)
    if not all(isinstance(one, str) for one in listed):
        raise InvalidCode("Identifiers must be text, or an Arrow array of text or integers. Write them as text, leading zeros included.")
    return run_guarded("the list of identifiers", lambda: pa.array(listed, pa.string()))


def _as_text(array: Any, name: str, source: str) -> Any:
    """An Arrow array of type string, with nothing missing and nothing too long."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(array.type):
        texts = array.cast(pa.string())
    else:
        kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise InvalidCode(f"Identifiers must be text or integers. Column {name!r} of {source} has type {array.type}.")
        texts = text_array(array)
    check_unicode(texts, name, source)
    if texts.null_count or (len(texts) and pc.min(pc.binary_length(texts)).as_py() == 0):
        raise TooManyRecords(f"In column {name!r} of {source}, records have no identifier. Fill it in: keys are made from it.")
    if len(texts) and pc.max(pc.binary_length(texts)).as_py() > LONGEST:
        raise InvalidCode(f"In column {name!r} of {source}, an identifier is longer than {LONGEST} bytes. Give shorter ones.")
    return texts


def _all_columns(source: Source) -> list[Any]:
    import pyarrow as pa

    pieces = list(source.batches(range(len(source.names))))
    kinds = source.types()
    return [pa.chunked_array([piece[place] for piece in pieces], type=kinds[place]) for place in range(len(source.names))]


def _column_of(keys: NDArray[np.uint64], space: KeySpace) -> Any:
    """Keys as an Arrow array: unsigned integers, or decimals as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if space.digits is None:
        return arrow_numbers(keys if space.size > 2**32 else keys.astype(np.uint32))
    digits = pc.utf8_lpad(arrow_numbers(keys).cast(pa.string()), width=space.digits, padding="0")
    return pc.binary_join_element_wise(pa.scalar("0"), digits, ".")
