"""The JSON Schema of run files says what their reader says: the same keys, no file refused that is read, and ordinary mistakes found."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from holdfast.mechanisms.registry import MECHANISMS
from holdfast.runfiles import sections as sections
from holdfast.runfiles.schema import SCHEMA_FILE, run_schema, schema_text
from holdfast.runfiles.sections import keys_at
from holdfast.runfiles.starting import Choices, start
from holdfast.wording.run_keys import KEYS, comment_of

ROOT = Path(__file__).parents[2]
PAGES = [(ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("run-files.md", "levels.md", "conditioning.md", "answers.md")]
EXAMPLES = [text for page in PAGES for text in re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE) if "[release]\n" in text]
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
SILENT = {"$schema", "$id", "title", "description", "default", "examples", "definitions", "if", "then"}


@pytest.fixture(autouse=True)
def own_mechanisms_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests register toys."""
    for name, made in list(MECHANISMS.items()):
        if not made.__module__.startswith("holdfast."):
            monkeypatch.delitem(MECHANISMS, name)


def fits(value: Any, schema: Any, whole: dict[str, Any]) -> bool:
    """Whether a value fits a schema of draft 7: the slow and obvious way, for the words that ours uses. A word it does not know fails."""
    if isinstance(schema, bool):
        return schema
    found = []
    for word, said in schema.items():
        match word:
            case "$ref":
                found.append(fits(value, whole["definitions"][said.removeprefix("#/definitions/")], whole))
            case "type":
                allowed = [said] if isinstance(said, str) else said
                found.append(any(isinstance(value, TYPES[name]) and (name == "boolean") == isinstance(value, bool) for name in allowed))
            case "enum":
                found.append(any(type(value) is type(one) and value == one for one in said))
            case "const":
                found.append(value == said)
            case "pattern":
                found.append(not isinstance(value, str) or re.search(said, value) is not None)
            case "minLength" | "minItems":
                found.append(not isinstance(value, str | list) or len(value) >= said)
            case "minProperties":
                found.append(not isinstance(value, dict) or len(value) >= said)
            case "maxLength":
                found.append(not isinstance(value, str) or len(value) <= said)
            case "minimum":
                found.append(not isinstance(value, int) or value >= said)
            case "maximum":
                found.append(not isinstance(value, int) or value <= said)
            case "items":
                found.append(not isinstance(value, list) or all(fits(one, said, whole) for one in value))
            case "properties":
                found.append(not isinstance(value, dict) or all(fits(value[name], of, whole) for name, of in said.items() if name in value))
            case "additionalProperties":
                rest = (
                    [] if not isinstance(value, dict) else [one for name, one in value.items() if name not in schema.get("properties", {})]
                )
                found.append(all(fits(one, said, whole) for one in rest))
            case "required":
                found.append(not isinstance(value, dict) or all(name in value for name in said))
            case "anyOf":
                found.append(any(fits(value, one, whole) for one in said))
            case "oneOf":
                found.append(sum(fits(value, one, whole) for one in said) == 1)
            case "allOf":
                found.append(all(fits(value, one, whole) for one in said))
            case _:
                assert word in SILENT, word
    if "if" in schema and fits(value, schema["if"], whole):
        found.append(fits(value, schema["then"], whole))
    return all(found)


def as_json(value: Any) -> Any:
    """What an editor checks: days are texts."""
    if isinstance(value, dict):
        return {name: as_json(one) for name, one in value.items()}
    if isinstance(value, list):
        return [as_json(one) for one in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def accepted(toml: str) -> bool:
    whole = run_schema()
    return fits(as_json(tomllib.loads(toml)), whole, whole)


def test_the_file_in_the_package_is_the_one_that_is_made():
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text()


@pytest.mark.parametrize("name", sorted(sections.SECTIONS))
def test_every_table_has_the_keys_that_the_reader_knows(name):
    schema = run_schema()["definitions"][sections.SECTIONS[name].__name__]
    assert sorted(schema["properties"]) == sorted(set(keys_at((name,))))
    assert schema["additionalProperties"] is False
    own = sections.SECTIONS[name].model_fields
    assert sorted(schema.get("required", [])) == sorted(field.alias or key for key, field in own.items() if field.is_required())


def test_every_mechanism_needs_and_refuses_what_its_keys_say():
    release = run_schema()["definitions"]["ReleaseSection"]
    every = {key.name for made in MECHANISMS.values() for key in made.run_file_keys}
    said = {rule["if"]["properties"]["mechanism"]["const"]: rule["then"] for rule in release["allOf"]}
    assert list(said) == list(MECHANISMS) == release["properties"]["mechanism"]["enum"]
    for name, made in MECHANISMS.items():
        keys = {key.name for key in made.run_file_keys}
        assert said[name]["required"] == [key.name for key in made.run_file_keys if key.required]
        assert said[name]["properties"] == dict.fromkeys(every - keys, False)


@pytest.mark.parametrize("made", list(MECHANISMS.values()), ids=list(MECHANISMS))
def test_shapes_of_keys_take_their_examples_and_no_float(made):
    for key in made.run_file_keys:
        (example,) = key.shape["examples"]
        assert fits(example, key.shape, {})
        assert not fits(0.25, key.shape, {})


@pytest.mark.parametrize("toml", EXAMPLES, ids=range(len(EXAMPLES)))
def test_run_files_of_the_pages_are_accepted(toml):
    assert accepted(toml)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[keep]", "[keeps]"),
        ("margins", "margin"),
        ('epsilon   = "0.25"', "epsilon = 0.25"),
        ('epsilon   = "0.25"', ""),
        ('epsilon   = "0.25"', 'epsilon = "0.25"\nrho = "1"'),
        ("generalized-laplace", "laplace"),
        ("counties-2030-v1", "counties 2030"),
        ("[table]", "[table]\nmax_records = 0"),
        ('["parquet", "csv"]', '["xlsx"]'),
        ("[keep]", "[answer]\n[keep]"),
        ("[keep]", "[table.labels]\nstate = {names = 1}\n[keep]"),
    ],
)
def test_mistakes_are_found(old, new):
    assert old in EXAMPLES[0]
    assert not accepted(EXAMPLES[0].replace(old, new, 1))


def described(properties: dict[str, Any], place: str) -> dict[str, str | None]:
    """The sentence of every key, also of tables in lists."""
    found = {}
    for name, shape in properties.items():
        found[f"{place}.{name}"] = shape.get("description")
        found |= described(shape.get("items", {}).get("properties", {}), f"{place}.{name}")
    return found


def test_every_key_has_one_sentence_from_one_source():
    whole = run_schema()
    found = described(whole["properties"], "run file")
    for section, model in sections.SECTIONS.items():
        found |= described(whole["definitions"][model.__name__]["properties"], section)
    assert len(found) > 100
    for key, said in found.items():
        assert said is not None, key
        assert re.fullmatch(r"[A-Z][^\n]{8,130}\.", said), key
        assert not re.search(r"[.!?] [A-Z]", said), key  # one sentence
    every = {sentence for keys in KEYS.values() for sentence in keys.values()}
    assert set(found.values()) == every  # none is left over


def test_words_beside_a_reference_are_read():
    """Draft 7 passes over what stands beside $ref, so that editors would not show it."""
    text = json.loads(schema_text())

    def beside(part: Any) -> bool:
        if isinstance(part, list):
            return any(map(beside, part))
        return isinstance(part, dict) and (("$ref" in part and len(part) > 1) or any(map(beside, part.values())))

    assert not beside(text)


@pytest.mark.parametrize(
    ("section", "key", "words"),
    [
        ("release", "mechanism", "generalized-laplace"),
        ("release", "sampler", "coupling_from_past"),
        ("release", "per", "person"),
        ("release", "formulas", "mark"),
        ("release", "noise", "gaussian"),
        ("release", "norm", "l2"),
        ("release", "calibration", "tight"),
        ("release", "view_base", 3),
        ("release", "gamma", "best"),
        ("table", "separator", ";"),
    ],
)
def test_words_to_choose_from_are_completed(section, key, words):
    found = run_schema()["definitions"][sections.SECTIONS[section].__name__]["properties"][key]
    assert words in (found if "enum" in found else found["anyOf"][0])["enum"]


def test_the_first_run_file_has_the_same_sentences(tmp_path):
    (tmp_path / "t.csv").write_text("county,sex,people\n1,F,3\n")
    chosen = Choices(("county", "sex"), "people", ("total", "county"), public=True)
    start(tmp_path / "t.csv", chosen, tmp_path / "run.toml")
    section, seen = "", 0
    for line in (tmp_path / "run.toml").read_text().splitlines():
        section = line[1:-1] if line.startswith("[") else section
        key, sign, rest = line.removeprefix("# ").partition(" = ")
        if sign and "{" not in rest:
            assert rest.partition(" # ")[2] == comment_of(section, key)
            seen += 1
    assert seen == 17


def test_the_schema_is_plain_json_without_a_host():
    whole = json.loads(schema_text())
    assert whole["$schema"] == "http://json-schema.org/draft-07/schema#"  # a name, which nobody fetches
    assert "http" not in schema_text().replace(whole["$schema"], "")
