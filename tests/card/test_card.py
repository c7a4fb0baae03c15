"""The card: models and schema file agree, a card survives being written and read, and what is wrong with one is said in words."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from holdfast.card.card import SCHEMA_FILE, Card, canonical_bytes, schema, schema_text
from holdfast.card.problems import problems
from tests.report.cards import CARD, card_values

SIGNATURE = {"algorithm": "Ed25519", "public_key": "ab" * 32, "value": "cd" * 64}


def text_of(card: dict[str, Any]) -> str:
    return json.dumps(card)


class TestSchema:
    def test_the_file_is_what_the_models_give(self) -> None:
        """If this fails after a change of the models: python -m holdfast.card.card"""
        assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text()
        assert json.loads(schema_text()) == schema()

    def test_every_field_has_a_description_and_nothing_else_is_allowed(self) -> None:
        whole = schema()
        objects = [whole, *whole["$defs"].values()]
        assert {"Signature", "GuaranteeInfo", "SamplerGroup"} <= set(whole["$defs"])
        for node in objects:
            assert node["additionalProperties"] is False
            assert node["description"].endswith(".")
            assert node["required"] == list(node["properties"])
            for name, field in node["properties"].items():
                # A field without words of its own has those of what it points to.
                described = field if "description" in field else whole["$defs"][field["$ref"].rsplit("/", 1)[-1]]
                assert described["description"].endswith("."), name

    def test_title(self) -> None:
        assert schema()["title"] == "Card of a Holdfast release"


class TestRoundTrip:
    def test_text_to_card_to_text(self) -> None:
        card = Card.from_json(text_of(CARD))
        text = card.to_json()
        assert Card.from_json(text) == card
        assert Card.from_json(text).to_json() == text
        assert json.loads(text) == CARD == card.to_dict()
        assert text.endswith("}\n")
        assert text.startswith('{\n  "schema_version": "5.0",\n  "release": {\n    "id": ')

    def test_keys_come_in_the_order_of_the_schema_whatever_the_order_given(self) -> None:
        backwards = {key: CARD[key] for key in reversed(CARD)}
        text = Card.from_json(text_of(backwards)).to_json()
        assert list(json.loads(text)) == list(CARD)
        assert text == Card.from_json(text_of(CARD)).to_json()

    def test_plain_python_values_are_accepted_as_they_are_in_json(self) -> None:
        assert Card.model_validate(card_values()) == Card.from_json(text_of(CARD))

    def test_a_card_is_frozen(self) -> None:
        card = Card.model_validate(CARD)
        with pytest.raises(ValidationError):
            card.schema_version = "5.0"
        with pytest.raises(ValidationError):
            card.release.test_key = True

    def test_codes_stay_as_they_are(self) -> None:
        names = ["Ærø", " 01", "<b>", 'a"b', "你好", "\u202e", "line\nbreak"]
        card = Card.model_validate(card_values(exposed__names=names))
        assert "Ærø" in card.to_json()
        assert list(Card.from_json(card.to_json()).exposed.names) == names

    def test_what_may_be_null(self) -> None:
        card = card_values(guarantee__per_person=None, table__max_records=None, expected_error__cell_standard_deviation__median=None)
        card["sampler"]["groups"][0]["expected_tries"] = None
        assert Card.model_validate(card).to_dict() == card

    def test_values_keep_their_kind(self) -> None:
        values = {"a": True, "b": 1, "c": 1.5, "d": "1", "e": None, "f": 10**30}
        again = Card.from_json(Card.model_validate(card_values(mechanism__parameters=values)).to_json())
        assert [(type(v), v) for v in again.mechanism.parameters.values()] == [(type(v), v) for v in values.values()]


class TestFloats:
    @pytest.mark.parametrize(
        ("given", "shown"), [(0.1 + 0.2, 0.3), (7.25000000001, 7.25), (1 / 3, 0.333333), (-0.0, 0.0), (123456789.0, 123457000.0)]
    )
    def test_spreads_are_rounded_to_six_digits(self, given: float, shown: float) -> None:
        card = Card.model_validate(card_values(expected_error__cell_standard_deviation__median=given))
        median = card.expected_error.cell_standard_deviation.median
        assert median == shown
        assert math.copysign(1, median or 0.0) == 1

    @given(st.floats(min_value=0, allow_infinity=False, max_value=1e300))
    def test_rounding_again_changes_nothing(self, value: float) -> None:
        card = Card.model_validate(card_values(expected_error__cell_standard_deviation__median=value))
        assert Card.from_json(card.to_json()) == card

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_numbers_that_are_not_finite_are_refused(self, value: float) -> None:
        text = text_of(card_values(expected_error__cell_standard_deviation__median=value))
        with pytest.raises(ValidationError):
            Card.from_json(text)
        assert len(problems(text)) == 1
        assert problems(text)[0].startswith("expected_error.cell_standard_deviation.median: found a number that is not finite")


def a_label(entry: list[Any]) -> list[dict[str, Any]]:
    return [{"column": "sex", "name": None, "by": ["sex"], "codes": [entry]}]


class TestProblems:
    def test_a_card_has_none(self) -> None:
        assert problems(text_of(CARD)) == []
        assert problems(text_of(card_values(signature=SIGNATURE))) == []

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"extra": 1}, "extra: found a field that is not known, expected only the fields of card.schema.json."),
            ({"table__extra": 1}, "table.extra: found a field that is not known, expected only the fields of card.schema.json."),
            ({"schema_version": "1.1"}, 'schema_version: found text, expected the text "5.0".'),
            ({"release": None}, "release: found null, expected an object."),
            ({"release__test_key": "yes"}, "release.test_key: found text, expected true or false."),
            ({"release__test_key": 1}, "release.test_key: found a whole number, expected true or false."),
            ({"table__protect": ""}, "table.protect: found empty text, expected text that is not empty."),
            ({"release__id": ""}, "release.id: found empty text, expected text of the form ^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$."),
            ({"release__id": "a\nb"}, "release.id: found text, expected text of the form ^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$."),
            ({"release__id": "a\n"}, "release.id: found text, expected text of the form ^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$."),
            ({"release__date": "2030-02-30"}, "release.date: found text that is no day of the calendar, expected year-month-day."),
            (
                {"release__ledger": 5},
                "release.ledger: found a whole number, expected text of the form ^[0-9a-f]{32}:[1-9][0-9]{0,17}:[0-9a-f]{64}$ or null.",
            ),
            ({"table__cells": "3143"}, "table.cells: found text, expected a whole number of at least 0."),
            ({"table__cells": 3143.5}, "table.cells: found a number, expected a whole number of at least 0."),
            ({"table__cells": True}, "table.cells: found true or false, expected a whole number of at least 0."),
            ({"table__cells": -1}, "table.cells: found a negative number, expected a whole number of at least 0."),
            ({"table__columns": "state"}, "table.columns: found text, expected a list."),
            ({"table__columns": ["state", 5]}, "table.columns[1]: found a whole number, expected text that is not empty."),
            ({"table__universe": "guessed"}, 'table.universe: found text, expected one of "declared", "as listed", "observed".'),
            ({"table__universe_digest": "abc"}, "table.universe_digest: found text, expected text of the form ^sha256:[0-9a-f]{64}$."),
            ({"sampler__groups": [7]}, "sampler.groups[0]: found a whole number, expected an object."),
            ({"guarantee__per_person": []}, "guarantee.per_person: found a list, expected an object or null."),
            (
                {"mechanism__parameters": {"epsilon": [1]}},
                "mechanism.parameters.epsilon: found a list, expected text or a whole number or a number or true or false or null.",
            ),
            (
                {"software": {"holdfast": "0.1.0"}},
                "software: found an object without some of holdfast, python, stream_version, expected all of them.",
            ),
            (
                {"files": {"table.csv": {"sha256": "ab" * 32}}},
                'files["table.csv"].bytes: found nothing, expected a whole number of at least 0.',
            ),
            (
                {"files": {"../table.csv": {"sha256": "ab" * 32, "bytes": 1}}},
                'files: found the name "../table.csv", expected names of the form ^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$.',
            ),
            ({"table__labels": a_label([["F"], 7])}, "table.labels[0].codes[0][1]: found a whole number, expected text that is not empty."),
            ({"table__labels": a_label(["F", "women"])}, "table.labels[0].codes[0][0]: found text, expected a list."),
            ({"table__labels": a_label([["F"], "a", "b"])}, "table.labels[0].codes[0]: found a list of 3, expected a list of 2."),
            ({"mechanism__parameters": {"": 1}}, 'mechanism.parameters: found the name "", expected names that are not empty.'),
            ({"signature": {**SIGNATURE, "algorithm": "none"}}, 'signature.algorithm: found text, expected the text "Ed25519".'),
        ],
        ids=str,
    )
    def test_each_is_said_in_words(self, changes: dict[str, Any], words: str) -> None:
        text = text_of(card_values(**changes))
        assert problems(text) == [words]
        with pytest.raises(ValidationError):
            Card.from_json(text)

    @pytest.mark.ordinary(",)", "guarantee", "release", "files")
    @pytest.mark.parametrize(
        "path", [(part,) for part in CARD] + [(part, key) for part in CARD if isinstance(CARD[part], dict) for key in CARD[part]], ids=str
    )
    def test_every_field_that_is_missing_is_named(self, path: tuple[str, ...]) -> None:
        if path[0] == "files" and len(path) == 2:
            return  # which files there are is free
        card = card_values()
        place = card
        for part in path[:-1]:
            place = place[part]
        del place[path[-1]]
        found = problems(text_of(card))
        if path[0] == "software" and len(path) == 2:
            assert (found != []) == (path[1] in ("holdfast", "python", "stream_version"))
            return
        assert len(found) == 1
        assert found[0].startswith(".".join(path) + ": found nothing, expected ")

    def test_all_problems_are_listed_at_once(self) -> None:
        found = problems(text_of(card_values(release__test_key=0, table__cells=-5, extra=1)))
        assert [line.split(":")[0] for line in found] == ["release.test_key", "table.cells", "extra"]

    @pytest.mark.parametrize("text", ["", "{", "[1, 2", "\x00", "[" * 100_000, '{"a": 1,}'])
    def test_text_that_is_not_json(self, text: str) -> None:
        (line,) = problems(text)
        assert line.startswith("The card: found text that is not JSON")
        with pytest.raises(ValidationError):
            Card.from_json(text)

    @pytest.mark.parametrize("text", ["[]", "5", "null", '"card"'])
    def test_json_that_is_no_object(self, text: str) -> None:
        (line,) = problems(text)
        assert line.startswith("The card: found ")
        assert line.endswith(", expected an object.")

    def test_a_field_given_twice_is_refused(self) -> None:
        text = text_of(CARD).replace('"test_key": false', '"test_key": true, "test_key": false')
        assert problems(text) == ["test_key: found more than once, expected once."]
        with pytest.raises(ValidationError):
            Card.from_json(text)

    def test_no_value_of_the_file_is_repeated_and_names_are_harmless(self) -> None:
        secret = "VALUE\x1b[31m"
        text = text_of(card_values(table__cells=secret, **{"na\x1bme": 1, "n" * 1000: 1}))
        lines = problems(text)
        assert len(lines) == 3
        assert not any("VALUE" in line or "\x1b" in line or len(line) > 200 for line in lines)
        with pytest.raises(ValidationError) as caught:
            Card.from_json(text)
        assert "VALUE" not in str(caught.value)


class TestCanonicalBytes:
    def test_form(self) -> None:
        signed = canonical_bytes(Card.model_validate(card_values(release__office="Ærø")))
        values = json.loads(signed)
        assert "signature" not in values
        assert values == {key: value for key, value in card_values(release__office="Ærø").items() if key != "signature"}
        assert signed == json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
        assert "Ærø".encode() in signed
        assert b"\n" not in signed

    def test_the_signature_does_not_enter_and_everything_else_does(self) -> None:
        plain = canonical_bytes(Card.model_validate(CARD))
        assert canonical_bytes(Card.model_validate(card_values(signature=SIGNATURE))) == plain
        assert canonical_bytes(Card.from_json(Card.model_validate(CARD).to_json())) == plain
        changes: list[dict[str, Any]] = [{"release__test_key": True}, {"guarantee__per_distance__epsilon": "1"}, {"files": {}}]
        for change in changes:
            assert canonical_bytes(Card.model_validate(card_values(**change))) != plain

    def test_the_order_of_keys_does_not_enter(self) -> None:
        backwards = {key: CARD[key] for key in reversed(CARD)}
        backwards["software"] = {key: CARD["software"][key] for key in reversed(CARD["software"])}
        assert canonical_bytes(Card.model_validate(backwards)) == canonical_bytes(Card.model_validate(CARD))


class _Counted(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        _Counted.compared += 1
        return str.__eq__(self, other)


@pytest.mark.parametrize("times", [1, 2])
def test_names_given_twice_are_found_in_linear_time(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """By the comparisons of names: with 2,000 names, looking for each of them among all takes four million."""
    plain, names = json.loads, [f"name{place}" for place in range(2_000)] * times

    def counting(text: str, **options: Any) -> Any:
        if (hook := options.pop("object_pairs_hook", None)) is None:
            return plain(text, **options)
        return plain(text, object_pairs_hook=lambda pairs: hook([(_Counted(name), value) for name, value in pairs]), **options)

    given = json.dumps(CARD["software"])
    more = ", ".join(f'"{name}": 1' for name in names)
    text = json.dumps(CARD).replace(given, f"{given[:-1]}, {more}}}")
    monkeypatch.setattr(_Counted, "compared", 0)
    monkeypatch.setattr(json, "loads", counting)
    assert len(problems(text)) == (0 if times == 1 else 1_000)
    assert _Counted.compared <= 10 * len(names)
