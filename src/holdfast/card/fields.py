"""Kinds of values on a card: texts, counts, numbers of six digits; and the base of all its parts."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Context
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict
from pydantic_core import PydanticCustomError

MAX_IDENTIFIER = 100
IDENTIFIER_PATTERN = rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_IDENTIFIER - 1}}}"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

SIGNIFICANT_DIGITS = 6
"""Enough for any reader; few enough that the last bits of a platform's mathematics never show."""


def _nearest(value: float) -> float:
    return float(Context(prec=SIGNIFICANT_DIGITS, rounding=ROUND_HALF_EVEN).create_decimal(repr(value))) + 0.0  # no minus zero


def is_day(value: object) -> bool:
    """Whether this text is a day of the calendar, as year-month-day."""
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return False
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        return False
    return True


def real_date(value: str) -> str:
    if not is_day(value):
        raise PydanticCustomError("date", "not a day of the calendar")
    return value


def repeated_names(names: Iterable[str]) -> list[str]:
    """The names that are there more than once, each once. Linear: whoever made the file decides how many there are."""
    seen: set[str] = set()
    again: dict[str, None] = {}
    for name in names:
        if name in seen:
            again[name] = None
        seen.add(name)
    return list(again)


def with_holdfast(value: dict[str, str | int]) -> dict[str, str | int]:
    if missing := [name for name in ("holdfast", "python", "stream_version") if name not in value]:
        raise PydanticCustomError("software", "missing: {names}", {"names": ", ".join(missing)})
    return value


Identifier: TypeAlias = Annotated[str, Field(pattern=f"^{IDENTIFIER_PATTERN}$")]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False), AfterValidator(_nearest)]
Spread: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False), AfterValidator(_nearest)]
# A list is accepted for a tuple, so that a card can be made from plain values; what is inside stays strict.
Texts: TypeAlias = Annotated[tuple[Text, ...], Strict(False)]
Settings: TypeAlias = dict[Text, str | int | Number | bool | None]
PublicFile: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
Sha256: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
LedgerEntry: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{32}:[1-9][0-9]{0,17}:[0-9a-f]{64}$")]


class CardPart(BaseModel):
    """A part of a card, or the whole: frozen, checked when it is made."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them."""
        return self.model_dump(mode="json", by_alias=True)

    def to_json(self) -> str:
        """The text of a file: fields in the order of the schema, two blanks of indent, a newline at the end."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
