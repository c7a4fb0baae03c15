"""Files that hold secrets of the user: read only where nobody else can read them."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.errors import KeyMisuse, OutputProblem


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


def secret_from_environment() -> bytes | None:
    """HOLDFAST_KEY, or the content of the file HOLDFAST_KEY_FILE; None where neither is set."""
    if text := os.environ.get("HOLDFAST_KEY"):
        return text.encode()
    if name := os.environ.get("HOLDFAST_KEY_FILE"):
        try:
            return read_key_file(name).strip()
        except OSError:
            raise OutputProblem("The file that HOLDFAST_KEY_FILE names cannot be read. Check its path and permissions.") from None
    return None
