"""The JSON Schema of run files, from the declarations by which they are read: editors complete and check run files by it.

run.schema.json beside this file is made from it (`python -m holdfast.runfiles.schema` rewrites it). It takes every run file that
`load_run` takes; what goes together, and whether files exist, only `load_run` knows. Draft 7, which editors of TOML know.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from holdfast.mechanisms.registry import MECHANISMS
from holdfast.runfiles.sections import SECTIONS, AnswerDocument, Document, ReleaseSection
from holdfast.wording.run_keys import said_of

SCHEMA_FILE = Path(__file__).with_name("run.schema.json")
BESIDE = "holdfast.schema.json"
"""Name of the schema's file beside a run file."""
FIRST_LINE = f"#:schema ./{BESIDE}"
"""The first line of a run file: editors find the schema by it."""


def run_schema() -> dict[str, Any]:
    """With the mechanisms that are registered now."""
    modes = [(model, "validation") for model in (Document, AnswerDocument)]
    _, made = models_json_schema(modes, ref_template="#/definitions/{model}")  # type: ignore[arg-type]
    parts = {name: _plain(part) for name, part in made["$defs"].items()}
    counts, answers = parts.pop(Document.__name__), parts.pop(AnswerDocument.__name__)
    _add_mechanisms(parts[ReleaseSection.__name__])
    for section, model in SECTIONS.items():
        _describe(parts[model.__name__]["properties"], section)
    properties = {**answers["properties"], **counts["properties"]}
    _describe(properties, "")
    shared = counts["properties"].keys() & answers["properties"].keys()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "urn:holdfast:run",
        "title": "Run file of a Holdfast release",
        "type": "object",
        "properties": properties,
        "required": [name for name in counts["required"] if name in answers["required"]],
        "oneOf": [{"required": [name]} for part in (counts, answers) for name in part["required"] if name not in shared],
        "additionalProperties": False,
        "definitions": dict(sorted(parts.items())),
    }


def _add_mechanisms(release: dict[str, Any]) -> None:
    """The keys of every mechanism; which of them one mechanism needs, and which it does not know."""
    shapes: dict[str, list[Any]] = {}
    for made in MECHANISMS.values():
        for key in made.run_file_keys:
            known = shapes.setdefault(key.name, [])
            if key.shape not in known:
                known.append(key.shape)
    release["properties"] |= {name: _one_shape(found) for name, found in shapes.items()}
    release["additionalProperties"] = False
    release["allOf"] = [
        {
            "if": {"properties": {"mechanism": {"const": name}}, "required": ["mechanism"]},
            "then": {
                "required": [key.name for key in made.run_file_keys if key.required],
                "properties": {strange: False for strange in shapes if strange not in {key.name for key in made.run_file_keys}},
            },
        }
        for name, made in MECHANISMS.items()
    ]


def _one_shape(found: list[Any]) -> Any:
    """What any of several mechanisms takes under one key: of lists of words, all of them."""
    if len(found) > 1 and all("enum" in shape for shape in found):
        return {**found[0], "enum": list(dict.fromkeys(word for shape in found for word in shape["enum"]))}
    return copy.deepcopy(found[0]) if len(found) == 1 else {"anyOf": found}


def _describe(properties: dict[str, Any], section: str) -> None:
    """Each key with its sentence, also in tables that mechanisms list. Draft 7 ignores what is beside a reference."""
    for name, shape in properties.items():
        if (said := said_of(section, name)) is not None:
            properties[name] = {"description": said, **({"allOf": [shape]} if "$ref" in shape else shape)}
        own = shape.get("items", {}).get("properties")
        if own is not None:
            _describe(own, name)


def _plain(part: Any) -> Any:
    """Without what says nothing of a TOML file: there is no null, and titles repeat the names of keys."""
    if isinstance(part, list):
        return [_plain(one) for one in part if one != {"type": "null"}]
    if not isinstance(part, dict):
        return part
    kept = {name: _plain(value) for name, value in part.items() if not _says_nothing(name, value)}
    only = kept.get("anyOf")
    return {**only[0], **{name: value for name, value in kept.items() if name != "anyOf"}} if only and len(only) == 1 else kept


def _says_nothing(name: str, value: Any) -> bool:
    return (name == "default" and value is None) or (name == "title" and isinstance(value, str))


def schema_text() -> str:
    return json.dumps(run_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
    print(f"Wrote {SCHEMA_FILE.name}.")
