"""Files of a folder, written anew from what was read of them.

Two texts can be read as the same table: with blanks, empty lines, quotes or other spellings of a number, which could carry what nobody
checked. So what `verify` read of a file is written as a release writes it, and must give the same bytes.
"""

from __future__ import annotations

import hashlib
import io
from typing import Any

from holdfast.tables.formats import FORMATS, mark_frame


class _Digest(io.RawIOBase):
    """A file of which only the checksum is kept."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._sha256.update(data)
        return len(data)

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()


def is_csv_of(frame: Any, sha256: str, *, marked: bool = False) -> bool:
    """Whether the CSV file with this checksum is what a release writes of a pyarrow.Table; `marked`: with formulas marked."""
    file = _Digest()
    FORMATS["csv"].write(mark_frame(frame) if marked else frame, file)  # type: ignore[arg-type]
    return file.hexdigest() == sha256
