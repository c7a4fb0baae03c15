"""Facts of a release that code reads later, checked when they are read from the ledger: whoever can write it chose them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.errors import InvalidParameter
from holdfast.ledger.disjoint import DISJOINT, DISTANCE, Disjoint
from holdfast.ledger.values import MAX_NAME, MAX_TEXT, name_of, read_exact

MAX_RECORDS = 2**62
"""The most records of one person that a release can say."""


def check_facts(facts: Mapping[str, Any]) -> None:
    """Raise InvalidParameter where a fact that is there is of another kind than Holdfast writes. Others are left as they are."""
    for name, is_right in _RIGHT.items():
        if name in facts and not _holds(is_right, facts[name]):
            raise InvalidParameter(f"The fact {name!r} of a release is not one that Holdfast writes. Leave it out.")


def _holds(is_right: Callable[[Any], bool], value: Any) -> bool:
    try:
        return is_right(value)
    except (ValueError, TypeError):
        return False


def _is_name(value: Any) -> bool:
    return bool(name_of(value, "name"))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_RECORDS


def _is_software(value: Any) -> bool:
    """Versions by the names of packages."""
    return isinstance(value, Mapping) and all(_is_text(version) or _is_number(version) for version in value.values())


def _is_grant(value: Any) -> bool:
    """What `grant_facts` writes."""
    if not isinstance(value, Mapping) or set(value) != {"kind", "epsilon", "rho", "delta", "grants", "approver"}:
        return False
    numbers = [read_exact(value[name]) for name in ("epsilon", "rho", "delta")]
    is_said = value["kind"] in ("pure", "zcdp", "approximate") and _is_text(value["approver"])
    return is_said and _is_number(value["grants"]) and value["grants"] > 0 and all(number is None or number > 0 for number in numbers)


def _is_declaration(value: Any) -> bool:
    """A declaration that no person is in two tables, as `Disjoint.read` takes it."""
    return value is None or bool(Disjoint.read(value))


_RIGHT: dict[str, Callable[[Any], bool]] = {
    "protect": _is_name,
    "max_records": lambda value: _is_number(value) and value > 0,
    "mechanism": lambda value: isinstance(value, str) and len(value) <= MAX_NAME,
    "parameters": lambda value: isinstance(value, Mapping),
    "universe": lambda value: isinstance(value, Mapping),
    "constraints": lambda value: isinstance(value, list) and all(isinstance(one, Mapping) for one in value),
    "revision_of": lambda value: value is None or _is_name(value),
    "noise": lambda value: isinstance(value, Mapping),
    "stream_version": _is_number,
    "software": _is_software,
    "grant": _is_grant,
    "other_records": _is_text,
    DISJOINT: _is_declaration,
    DISTANCE: lambda value: isinstance(value, str) and len(value) <= MAX_NAME,
}
