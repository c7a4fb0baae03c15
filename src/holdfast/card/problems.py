"""What is wrong with the text of a card, in words: for readers of a folder that somebody else made."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from holdfast.card.card import SCHEMA_VERSION, Card, schema
from holdfast.card.fields import SIGNIFICANT_DIGITS


def other_version(text: str) -> str | None:
    """The schema version of a card that is not of this one; None where there is none to be read."""
    try:
        version = json.loads(text).get("schema_version")
    except (ValueError, AttributeError, RecursionError):
        return None
    return version if isinstance(version, str) and re.fullmatch(r"[0-9]{1,3}\.[0-9]{1,3}", version) and version != SCHEMA_VERSION else None


MAX_PROBLEMS = 1_000
"""No more are put into words: who made the card decides how many there are."""


def problems(text: str) -> list[str]:
    """What is wrong with the text of a card, one line each: the field, the kind of value found, what is expected. Empty if it is a card."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        return [f"The card: found text that is not JSON{where}, expected a JSON object."]
    try:
        Card.from_json(text)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)[:MAX_PROBLEMS]
        return list(dict.fromkeys(_in_text(str(detail["type"]), detail["loc"], values) for detail in details))  # unions complain twice
    return []


def _in_text(kind: str, loc: Sequence[int | str], values: Any) -> str:
    if kind == "json_invalid":
        return "The card: found text that is not JSON, expected a JSON object."
    if kind == "digits":
        return f"The card: found a number of more digits than cards have, expected at most {SIGNIFICANT_DIGITS} significant ones."
    if kind == "repeated":
        return f"{_path(loc)}: found more than once, expected once."
    if kind == "extra_forbidden":
        return f"{_path(loc)}: found a field that is not known, expected only the fields of card.schema.json."
    path, node = _resolve(loc)
    if loc and loc[-1] == "[key]":
        return f"{_path(path[:-1])}: found the name {_quote_name(str(path[-1]))}, expected {_key_text(_resolve(path[:-1])[1])}."
    if kind == "missing":
        return f"{_path(path)}: found nothing, expected {_expected_kind(node)}."
    for part in path:
        values = values[part]
    if kind == "date":
        return f"{_path(path)}: found text that is no day of the calendar, expected year-month-day."
    if kind == "software":
        return f"{_path(path)}: found an object without some of {', '.join(node['required'])}, expected all of them."
    found = f"a list of {len(values)}" if isinstance(values, list) and "prefixItems" in node else _kind_of(values)
    return f"{_path(path)}: found {found}, expected {_expected_kind(node)}."


def _resolve(loc: Sequence[int | str]) -> tuple[tuple[int | str, ...], Mapping[str, Any]]:
    """The longest start of a location that is a place in a card, and the schema of that place: the rest names members of unions."""
    whole = schema()
    node: Mapping[str, Any] = whole
    path: list[int | str] = []
    for part in loc:
        if part == "[key]":
            break
        inner = next(filter(None, (_inside(member, part) for member in _members(node, whole))), None)
        if inner is None:
            break
        node = inner
        path.append(part)
    members = _members(node, whole)
    return tuple(path), members[0] if len(members) == 1 else {"anyOf": members}


def _members(node: Mapping[str, Any], whole: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "$ref" in node:
        node = whole["$defs"][node["$ref"].rsplit("/", 1)[-1]]
    return [leaf for member in node["anyOf"] for leaf in _members(member, whole)] if "anyOf" in node else [node]


def _inside(node: Mapping[str, Any], part: int | str) -> Mapping[str, Any] | None:
    if isinstance(part, int):
        return dict(enumerate(node.get("prefixItems", ()))).get(part, node.get("items"))
    # Names of a free object are either all allowed or of one pattern.
    free = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
    inner = node.get("properties", {}).get(part, free[0])
    return inner if isinstance(inner, Mapping) else None


def _expected_kind(node: Mapping[str, Any]) -> str:
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(map(_expected_kind, node["anyOf"])))
    if "const" in node:
        return f"the text {_quote_name(node['const'])}"
    if "enum" in node:
        return "one of " + ", ".join(map(_quote_name, node["enum"]))
    at_least = f" of at least {node['minimum']:g}" if "minimum" in node else ""
    if node["type"] == "string" and "pattern" in node:
        return f"text of the form {node['pattern']}"
    if node["type"] == "string" and "minLength" in node:
        return "text that is not empty"
    if "prefixItems" in node:
        return f"a list of {len(node['prefixItems'])}"
    return f"{_KINDS[node['type']]}{at_least}"


def _key_text(node: Mapping[str, Any]) -> str:
    patterns = node.get("patternProperties")
    return f"names of the form {' or '.join(patterns)}" if patterns else "names that are not empty"


_KINDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):  # before int: True is an int
        return _KINDS["boolean"]
    if isinstance(value, float) and not math.isfinite(value):
        return "a number that is not finite"
    kinds = {str: "string", int: "integer", float: "number", type(None): "null", list: "array", dict: "object"}
    if value == "":
        return "empty text"
    return "a negative number" if isinstance(value, int | float) and value < 0 else _KINDS[kinds[type(value)]]


def _path(loc: Sequence[int | str]) -> str:
    """guarantee.per_distance, sampler.groups[0].kind, files["table.csv"].sha256; names are escaped: a damaged file may hold anything."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.isidentifier() and part.isascii() and len(part) <= 60:
            text += f".{part}" if text else part
        else:
            text += f"[{_quote_name(part)}]"
    return text or "The card"


def _quote_name(name: str) -> str:
    return json.dumps(name if len(name) <= 60 else name[:60] + "...")
