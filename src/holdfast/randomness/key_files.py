"""Files that hold secrets of the user: read only where nobody else can read them."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.errors import KeyMisuse


def read_key_file(path: str | os.PathLike[str]) -> bytes:
    """The content of a key file; OSError where it cannot be read, KeyMisuse where its group or others may read or change it."""
    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        content = file.read()
    if mode & 0o077:
        name = Path(path).name
        raise KeyMisuse(
            f"The key file {name!r} can be read or changed by others (mode {mode & 0o777:04o}). Use chmod 600 on it. If others may have "
            "read it, make a new key."
        )
    return content
