"""Codes that people take for one are refused: one leading blank published a true count."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidCode
from holdfast.runfiles.runfile import load_run
from holdfast.tables.similar import fold_code, similar_codes
from tests.tables.reference import refused

COUNTS = pa.table({"county": ["031", " 031", "043"], "sex": ["F", "F", "F"], "n": [900, 1, 77]})

PAIRS = {
    "leading blank": ("031", " 031"),
    "trailing blank": ("031", "031 "),
    "inner blank": ("NewYork", "New York"),
    "no-break space": ("New York", "New\u00a0York"),
    "zero width": ("031", "\u200b031"),
    "byte order mark": ("031", "\ufeff031"),
    "variation selector": ("031", "031\ufe0f"),
    "joiner": ("031", "0\u034f31"),
    "filler": ("031", "031\u3164"),
    "empty Braille pattern": ("031", "031\u2800"),
    "zero width before an accent": ("\u00e9", "e\u200b\u0301"),
    "tab": ("031", "031\t"),
    "case": ("f", "F"),
    "case outside of ASCII": ("straße", "STRASSE"),
    "final sigma": ("ΟΣ", "ος"),
    "NFC": ("Ærø é", "Ærø e\u0301"),
    "NFKC": ("1", "１"),
    "empty": ("", " "),
}

SOURCES: dict[str, Callable[[list[str], bool], Any]] = {
    "product": lambda codes, allow: hf.Universe.product({"a": codes, "b": ["x"]}, allow_similar_codes=allow),
    "tree": lambda codes, allow: hf.Universe.product(
        {"a": hf.Hierarchy.from_parents(dict.fromkeys(codes, "top"))}, allow_similar_codes=allow
    ),
    "listed": lambda codes, allow: hf.Universe.listed({"a": codes}, allow_similar_codes=allow),
    "counts": lambda codes, allow: hf.Table.from_counts(
        pa.table({"a": codes, "n": [7319465] * len(codes)}), ["a"], "n", allow_similar_codes=allow
    ),
    "records": lambda codes, allow: hf.Table.from_records(pa.table({"a": codes}), {"a": codes}, allow_similar_codes=allow),
    "observed": lambda codes, allow: hf.Table.from_records(pa.table({"a": codes}), ["a"], universe="observed", allow_similar_codes=allow),
}


@pytest.mark.ordinary("product", "leading", "accent", "NFKC", "empty-")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("pair", PAIRS)
def test_codes_that_differ_only_in_blanks_case_or_unicode_form(source, pair) -> None:
    codes = ["zz", *PAIRS[pair]]
    message = refused(InvalidCode, lambda: SOURCES[source](codes, False), "7319465")
    assert "column 'a'" in message
    assert "allow_similar_codes" in message
    if source == "observed":  # the codes are those of single records
        assert not any(code.strip() and repr(code) in message for code in codes)
    assert len(SOURCES[source](codes, True)) == 3


def test_the_codes_are_listed() -> None:
    message = refused(InvalidCode, lambda: hf.Table.from_counts(COUNTS, ["county", "sex"], "n"))
    assert "column 'county' differ only in blanks, case or Unicode form: '031' and ' 031'. " in message


@pytest.mark.parametrize("codes", [["01", "1"], ["a-b", "ab"], ["é", "e"], ["1.0", "10"], ["+", "-"], ["O", "0"]])
def test_other_codes_are_taken_as_they_are(codes) -> None:
    for make in SOURCES.values():
        assert len(make(codes, False)) == 2


letters = st.sampled_from([*"aAbB1 \t", "é", "e", "\u0301", "É", "ß", "s", "Ａ", "\u200b", "\u00a0", "ﬁ", "f", "i"])


@given(st.lists(st.text(letters, max_size=4), min_size=1, max_size=12, unique=True))
@example(["a", "A"])
@example(["b", "é", "a", "B"])
@example(["é", "e\u200b\u0301"])
def test_groups_are_those_of_all_pairs(codes) -> None:
    """Against every pair of codes, by a folding written for this test."""

    def same(a: str, b: str) -> bool:
        first, second = ("".join(unicodedata.normalize("NFKC", c).split()).replace("\u200b", "") for c in (a, b))
        return unicodedata.normalize("NFKC", first.casefold()) == unicodedata.normalize("NFKC", second.casefold())

    alike = {frozenset(pair) for pair in itertools.combinations(codes, 2) if same(*pair)}
    found = {frozenset(pair) for group in similar_codes(pa.array(codes, pa.string())) for pair in itertools.combinations(group, 2)}
    assert found == alike
    assert all(fold_code(a) == fold_code(b) for a, b in map(sorted, found))


def test_in_a_run_file(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text('county,n\n031,900\n" 031",1\n')
    table, rest = '[table]\nsource = "c.csv"\ncells = ["county"]\ncount = "n"\n', '[keep]\n[release]\nid = "x"\nmechanism = "suppression"\n'
    (tmp_path / "run.toml").write_text(table + rest)
    assert "'031' and ' 031'" in refused(InvalidCode, lambda: load_run(tmp_path / "run.toml").read_table())
    (tmp_path / "run.toml").write_text(table + "allow_similar_codes = true\n" + rest)
    assert len(load_run(tmp_path / "run.toml").read_table()) == 2


def test_a_release_with_similar_codes_is_verified_and_stays_readable(tmp_path: Path) -> None:
    table = hf.Table.from_counts(COUNTS, ["county"], "n", allow_similar_codes=True)
    made = hf.release(
        table, [hf.total()], hf.GeneralizedLaplace(epsilon="1/2", per="distance"), hf.NoiseKey.for_tests(1), release_id="similar"
    )
    made.save(tmp_path / "out")
    assert hf.verify(tmp_path / "out").cells == 3
