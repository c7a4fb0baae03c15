"""Identifiers of ledgers: 32 hexadecimal digits, and nothing else, wherever one is read.

An identifier names files in the state folder. So a text from a database, a mark, a card or a file of places becomes a `LedgerId` only here,
and only a `LedgerId` becomes part of a file's name.
"""

from __future__ import annotations

import re
import secrets
from typing import Any, NewType

LedgerId = NewType("LedgerId", str)

_ID = re.compile("[0-9a-f]{32}")


def new_ledger_id() -> LedgerId:
    """A random identifier, for a new ledger."""
    return LedgerId(secrets.token_hex(16))


def read_ledger_id(value: Any) -> LedgerId:
    """Return the value as an identifier. Raise ValueError if it is not one."""
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise ValueError("the identifier of a ledger has 32 hexadecimal digits")
    return LedgerId(value)
