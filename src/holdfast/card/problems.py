"""What is wrong with the text of a card, in words: for readers of a folder that somebody else made."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from holdfast.card.card import SCHEMA_VERSION, Card, schema
from holdfast.card.parts import SIGNIFICANT_DIGITS


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
        return f"{_path(path)}: found an object without some of {', '.join(node.required)}, expected all of them."
    found = f"a list of {len(values)}" if isinstance(values, list) and node.prefix_items else _kind_of(values)
    return f"{_path(path)}: found {found}, expected {_expected_kind(node)}."


class Node(BaseModel):
    """A place in the schema of a card, as far as words are made of it."""

    model_config = ConfigDict(frozen=True)

    ref: str | None = Field(default=None, alias="$ref")
    defs: dict[str, Node] = Field(default={}, alias="$defs")
    any_of: tuple[Node, ...] = Field(default=(), alias="anyOf")
    type: str = "object"
    const: str | None = None
    enum: tuple[str, ...] = ()
    minimum: float | None = None
    pattern: str | None = None
    min_length: int | None = Field(default=None, alias="minLength")
    prefix_items: tuple[Node, ...] = Field(default=(), alias="prefixItems")
    items: Node | None = None
    properties: dict[str, Node] = {}
    pattern_properties: dict[str, Node] = Field(default={}, alias="patternProperties")
    additional_properties: Node | bool = Field(default=True, alias="additionalProperties")
    required: tuple[str, ...] = ()

    def members(self) -> tuple[Node, ...]:
        """The place itself, or the members of its union."""
        if self.ref is not None:
            return whole_schema().defs[self.ref.rsplit("/", 1)[-1]].members()
        return tuple(leaf for member in self.any_of for leaf in member.members()) if self.any_of else (self,)

    def inside(self, part: int | str) -> Node | None:
        """The place of an entry; None where there is none."""
        if isinstance(part, int):
            return dict(enumerate(self.prefix_items)).get(part, self.items)
        # Names of a free object are either all allowed or of one pattern.
        free = [*self.pattern_properties.values(), self.additional_properties]
        inner = self.properties.get(part, free[0])
        return None if isinstance(inner, bool) else inner


@functools.cache
def whole_schema() -> Node:
    """The schema of a card, read once: a card may have very many problems."""
    return Node.model_validate(schema())


def _resolve(loc: Sequence[int | str]) -> tuple[tuple[int | str, ...], Node]:
    """The longest start of a location that is a place in a card, and that place: the rest names members of unions."""
    node, path = whole_schema(), list[int | str]()
    for part in loc:
        inner = None if part == "[key]" else next(filter(None, (member.inside(part) for member in node.members())), None)
        if inner is None:
            break
        node = inner
        path.append(part)
    members = node.members()
    return tuple(path), members[0] if len(members) == 1 else Node(anyOf=members)


def _expected_kind(node: Node) -> str:
    if node.any_of:
        return " or ".join(dict.fromkeys(map(_expected_kind, node.any_of)))
    if node.const is not None:
        return f"the text {_quote_name(node.const)}"
    if node.enum:
        return "one of " + ", ".join(map(_quote_name, node.enum))
    if node.type == "string" and node.pattern is not None:
        return f"text of the form {node.pattern}"
    if node.type == "string" and node.min_length is not None:
        return "text that is not empty"
    if node.prefix_items:
        return f"a list of {len(node.prefix_items)}"
    return f"{_KINDS[node.type]}{'' if node.minimum is None else f' of at least {node.minimum:g}'}"


def _key_text(node: Node) -> str:
    patterns = node.pattern_properties
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
