"""Run files of any content: a Run or InvalidRun, and every key has its line."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidRun
from holdfast.mechanisms.keys import FloatText
from holdfast.runfiles.messages import dotted_path, key_lines, parse_toml
from holdfast.runfiles.runfile import load_run
from holdfast.runfiles.sections import Document, keys_at
from tests.examples import examples
from tests.runfiles.test_runfile import DESIGN, FILES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with small tables."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


JUNK = st.recursive(
    st.sampled_from(
        [
            "true",
            "0",
            "-3",
            "0.5",
            "nan",
            "1e400",
            '"x"',
            '"1/4"',
            '"0"',
            '"state"',
            '"counties.csv"',
            "2030-01-01",
            "07:32:00",
            "'''a\nb'''",
            '"\\u0000"',
            '"person"',
        ]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(
            st.sampled_from(["column", "codes", "by", "where", "sets", "matrix", "tree", "prefixes", "state", '"a b"', "x"]),
            inner,
            max_size=3,
        ).map(lambda items: "{" + ", ".join(f"{key} = {value}" for key, value in items.items()) + "}"),
    ),
    max_leaves=6,
)
KEYS = sorted({key for section in Document.model_fields for key in keys_at((section,))})


class TestGarbage:
    """Whatever the file holds: a Run or InvalidRun."""

    @staticmethod
    def read_or_refused(folder: Path, content: bytes) -> None:
        path = folder / "garbage.toml"
        path.write_bytes(content)
        run, told = None, ""
        try:
            run = load_run(path)
        except InvalidRun as error:
            told = str(error)
        assert run is not None or told.startswith(str(path))
        if run is not None:
            assert run.description
            if "delta" not in run.options:  # a pair is calibrated, which takes its time
                unit = run.mechanism.for_distance(run.max_records)
                assert all(getattr(unit, name, None) is None or getattr(unit, name) > 0 for name in ("epsilon", "rho", "sigma_squared"))

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        content=st.one_of(
            st.binary(max_size=200), st.text(alphabet="[]{}=.,#\"'\\\n ab1-_:é", max_size=200).map(lambda text: text.encode())
        )
    )
    def test_any_bytes(self, content: bytes, folder: Path) -> None:
        self.read_or_refused(folder, content)

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(250))
    @given(
        sections=st.fixed_dictionaries(
            {name: st.dictionaries(st.sampled_from(KEYS), JUNK, max_size=4) for name in ("table", "keep", "release")}
        )
    )
    def test_known_keys_with_any_values(self, sections: dict[str, dict[str, str]], folder: Path) -> None:
        """Right values first, some of them replaced, so that later checks are reached too."""
        right: dict[str, dict[str, str]] = {
            "table": {"source": '"counties.csv"', "cells": '["state", "county"]', "count": '"population"'},
            "keep": {},
            "release": {"id": '"a"', "mechanism": '"generalized-laplace"', "epsilon": '"1"'},
        }
        lines = []
        for name, section in sections.items():
            lines += [f"[{name}]", *(f"{key} = {value}" for key, value in {**right[name], **section}.items())]
        self.read_or_refused(folder, "\n".join(lines).encode())

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(300))
    @given(start=st.integers(0, len(DESIGN)), length=st.integers(0, 12), put=st.text(alphabet='[]{}="\n ab1.', max_size=5))
    def test_a_right_file_with_a_scratch(self, start: int, length: int, put: str, folder: Path) -> None:
        self.read_or_refused(folder, (DESIGN[:start] + put + DESIGN[start + length :]).encode())


ANY = st.characters(max_codepoint=0xD7FF, exclude_characters="\x7f")
"""What json writes as TOML reads it."""


class TestLines:
    @pytest.mark.parametrize("text", ["a = [}", "a = [1, }]", "a = {]}", "a = [{b = 1]}", "[a\n}"])
    def test_brackets_that_do_not_match_end(self, text: str) -> None:
        """The scan went on for ever, and noted more and more."""
        assert set(key_lines(text).values()) <= {1, 2}

    def test_every_way_to_write_keys(self) -> None:
        text = '''# a comment with [table] and x = 1
[a]
x = """
[not.a.section]
y = 2
"""
"quoted key".z = [
  1, # one
  [2, 3],
  {p = 1, "q r" = {s = '}'}},
]
[[b.c]]
d = 1
[[b.c]]
d = 2
[b.c.e]
f = "]" # ]
[ g . 'h' ]
i = 1979-05-27T07:32:00Z
'''
        tomllib.loads(text)
        lines = key_lines(text)
        expected: dict[Any, int] = {
            ("a",): 2,
            ("a", "x"): 3,
            ("a", "quoted key"): 7,
            ("a", "quoted key", "z", 0): 8,
            ("a", "quoted key", "z", 1, 1): 9,
            ("a", "quoted key", "z", 2, "q r", "s"): 10,
            ("b", "c"): 12,
            ("b", "c", 0, "d"): 13,
            ("b", "c", 1): 14,
            ("b", "c", 1, "d"): 15,
            ("b", "c", 1, "e"): 16,
            ("b", "c", 1, "e", "f"): 17,
            ("g", "h", "i"): 19,
        }
        assert {place: lines.get(place) for place in expected} == expected
        assert not {("not",), ("y",), ("a", "y")} & lines.keys()

    @given(st.dictionaries(st.text(ANY, max_size=4), JUNK, max_size=5), st.booleans())
    def test_every_place_of_a_document_has_a_line(self, items: dict[str, str], spread: bool) -> None:
        """An oracle: the places that tomllib finds are those that have a line."""
        text = "".join(f"{json.dumps(key)} = {value}\n" + "\n" * spread for key, value in items.items())
        parsed = parse_toml(text)

        def places(value: Any, at: tuple[str | int, ...]) -> set[tuple[str | int, ...]]:
            inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            return ({at} if at else set()).union(*(places(item, (*at, key)) for key, item in inner))

        assert set(key_lines(text)) == places(parsed, ())

    def test_dotted(self) -> None:
        assert dotted_path(("keep", "margins", 0, "a b")) == 'keep.margins[0]."a b"'

    def test_floats_keep_their_text(self) -> None:
        assert parse_toml("x = 1_0.50") == {"x": FloatText("1_0.50")}
