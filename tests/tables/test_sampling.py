"""Records of one person beyond the limit: refused, or left out by a key, so that one person changes no more than the limit."""

from __future__ import annotations

import csv
import itertools
import json
from collections import Counter
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidParameter, KeyMisuse, OutputProblem, OutsideUniverse, TooManyRecords
from holdfast.tables.declarations import Declarations
from holdfast.tables.sampling import left_out
from tests.examples import examples
from tests.running import Run
from tests.tables.reference import refused

KEY = b"a secret of the office, 32 bytes"
CELLS = {"sex": ["F", "M"], "age": ["0", "1"]}
Records = list[tuple[str, str, str]]
"""Identifier, sex, age."""


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "sample.key"
    path.write_bytes(KEY + b"\n")
    path.chmod(0o600)
    return path


def frame(records: Records) -> pa.Table:
    return pa.table({name: pa.array([row[place] for row in records], pa.string()) for place, name in enumerate(("id", "sex", "age"))})


def count(data: Any, key: Path | None, limit: int = 2, **more: Any) -> list[int]:
    given = {"cells": CELLS, "id": "id", "max_records": limit, "over": "sample", "sample_key": key, **more}
    return hf.Table.from_records(data, **given).counts.tolist()  # type: ignore[no-any-return]


def by_hand(people: dict[str, Counter[tuple[str, ...]]], limit: int) -> Counter[tuple[str, ...]]:
    """The counted records, of `left_out` alone."""
    out: Counter[tuple[str, ...]] = Counter()
    for own in people.values():
        out.update(own)
    out.subtract(left_out([(name, (), codes, size) for name, own in people.items() for codes, size in own.items()], limit, KEY))
    return out


class TestPrivacy:
    codes = (("F",), ("M",), ("X",))

    @cache  # noqa: B019
    def choice(self, own: tuple[int, ...], limit: int) -> tuple[int, ...]:
        found = by_hand({"p": Counter(dict(zip(self.codes, own, strict=True)))}, limit)
        return tuple(found[code] for code in self.codes)

    @pytest.mark.parametrize("limit", [1, 2, 3])
    def test_one_person_changes_at_most_the_limit(self, limit: int) -> None:
        """Enumeration: pairs of data sets that differ in one person, of up to three records of each of three kinds ([theory T210])."""
        others: dict[str, Counter[tuple[str, ...]]] = {"a": Counter({("F",): 4, ("M",): 1}), "b": Counter({("X",): 1})}
        tables = []
        for own in itertools.product(range(4), repeat=3):
            found = by_hand({**others, "p": Counter(dict(zip(self.codes, own, strict=True)))}, limit)
            rest = by_hand(others, limit)
            alone = tuple(found[code] - rest[code] for code in self.codes)
            assert alone == self.choice(own, limit)  # whoever else is there
            assert all(0 <= kept <= had for kept, had in zip(alone, own, strict=True))
            assert sum(alone) == min(sum(own), limit)
            tables.append([found[code] for code in self.codes])
        for one, other in itertools.combinations(tables, 2):
            gained = sum(max(b - a, 0) for a, b in zip(one, other, strict=True))
            lost = sum(max(a - b, 0) for a, b in zip(one, other, strict=True))
            assert max(gained, lost) <= limit

    def test_the_choice_is_even(self) -> None:
        """Of two records of different kinds each is chosen for about half of the people."""
        chosen = sum(by_hand({str(i): Counter({("F",): 1, ("M",): 1})}, 1)[("F",)] for i in range(2000))
        assert 850 < chosen < 1150  # 6.7 standard deviations


SOME: Records = [("a", "F", "0")] * 3 + [("a", "M", "1"), ("b", "F", "1"), ("c", "M", "0"), ("c", "M", "1"), ("c", "F", "0")]


class TestReading:
    def test_as_by_hand(self, key: Path) -> None:
        people: dict[str, Counter[tuple[str, ...]]] = {}
        for name, *codes in SOME:
            people.setdefault(name, Counter())[tuple(codes)] += 1
        for limit in (1, 2, 3, 4):
            found = by_hand(people, limit)
            assert count(frame(SOME), key, limit) == [found[cell] for cell in itertools.product(*CELLS.values())]

    @settings(max_examples=examples(30), deadline=None)
    @given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("FM"), st.sampled_from("01")), min_size=1, max_size=12), st.randoms())
    def test_the_order_of_rows_changes_nothing(self, tmp_path_factory: pytest.TempPathFactory, records: Records, random: Any) -> None:
        path = tmp_path_factory.mktemp("key") / "key"
        path.write_bytes(KEY)
        path.chmod(0o600)
        first = count(frame(records), path)
        assert sum(first) == sum(min(2, size) for size in Counter(name for name, *_ in records).values())
        random.shuffle(records)
        assert count(frame(records), path) == first

    def test_nor_does_the_format_or_how_it_is_cut(self, key: Path, tmp_path: Path) -> None:
        people = [(str(1000 + n % 7), "FM"[n % 2], "01"[n % 3 % 2]) for n in range(40)]
        whole = frame(people)
        first = count(whole, key)
        with (tmp_path / "r.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("id", "sex", "age"), *people])
        pq.write_table(whole, tmp_path / "r.parquet", row_group_size=3)
        numbers = whole.set_column(0, "id", pa.array([int(name) for name, *_ in people]))
        coded = whole.set_column(1, "sex", whole.column("sex").dictionary_encode())
        pieces = pa.concat_tables([whole.slice(at, 5) for at in range(0, 40, 5)])
        for data in (tmp_path / "r.csv", tmp_path / "r.parquet", numbers, coded, pieces):
            assert count(data, key) == first

    def test_another_key_chooses_others(self, key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        people = [(str(n % 50), "FM"[n // 50 % 2], "01"[n // 100]) for n in range(200)]
        first = count(frame(people), key, 1)
        monkeypatch.setenv("HOLDFAST_KEY", KEY.decode())
        assert count(frame(people), None, 1) == first
        monkeypatch.setenv("HOLDFAST_KEY", "another secret of the office")
        assert count(frame(people), None, 1) != first

    def test_the_universe_does_not_depend_on_the_choice(self, key: Path) -> None:
        """Records outside are refused though they are left out. Observed cells are each known to hold 1 or more, which a cell whose
        records are left out does not: kept totals of the rest would contradict that, or pin cells that they do not pin.
        """
        for odd in ("X", None):
            records: Any = [*SOME, ("a", odd, "0")]
            refused(OutsideUniverse, partial(count, frame(records), key, 1))
        observed: Any = {"universe": "observed", "id": "id", "max_records": 1, "over": "sample", "sample_key": key}
        for read in (hf.Table.from_records, Declarations.from_records):
            assert "takes a declared universe" in refused(InvalidParameter, partial(read, frame(SOME), ["sex", "age"], **observed))

    def test_tables_by_other_columns_count_the_same_records(self, key: Path) -> None:
        """With columns that tell records apart: each table is that of one and the same choice."""
        visits = [(str(n % 9), "FM"[n // 9 % 2], "01"[n // 18 % 2], str(n // 9)) for n in range(54)]
        whole = frame([row[:3] for row in visits]).append_column("visit", pa.array([row[3] for row in visits]))
        by: dict[str, Any] = {"sample_by": ["visit"], "limit": 2}
        both = count(whole, key, **by)
        assert sum(both) == 18
        assert count(whole, key, cells={"sex": ["F", "M"]}, **by) == [both[0] + both[1], both[2] + both[3]]
        assert count(whole, key, cells={"age": ["0", "1"]}, **by) == [both[0] + both[2], both[1] + both[3]]
        numbers = whole.set_column(3, "visit", pa.array([int(row[3]) for row in visits]))
        assert count(numbers.take(list(range(54))[::-1]), key, **by) == both

    def test_nobody_beyond_the_limit(self, key: Path) -> None:
        assert count(frame(SOME), key, 4) == hf.Table.from_records(frame(SOME), CELLS, id="id", max_records=4).counts.tolist()

    def test_what_does_not_go_together(self, key: Path, tmp_path: Path) -> None:
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"over": "cut"}, "over must be one of 'refuse', 'sample'"),
            ({"id": None}, "over='sample' takes records with an identifier"),
            ({"record_key": "sex"}, "and no record_key="),
            ({"over": "refuse"}, "sample_key= and sample_by= go with over='sample'"),
            ({"over": "refuse", "sample_key": None, "sample_by": ["age"]}, "sample_key= and sample_by= go with over='sample'"),
            ({"sample_by": "age"}, "sample_by is a list of column names"),
            ({"key": None}, "needs a secret of at least 16 bytes"),
        ]
        for more, said in wrong:
            assert said in refused(InvalidParameter, partial(count, frame(SOME), **{"key": key, **more}))
        (tmp_path / "short").write_bytes(b"short")
        (tmp_path / "short").chmod(0o600)
        refused(InvalidParameter, lambda: count(frame(SOME), tmp_path / "short"))
        refused(OutputProblem, lambda: count(frame(SOME), tmp_path / "none"))
        unnamed: Any = [*SOME, (None, "F", "0")]
        assert "records have no identifier" in refused(TooManyRecords, lambda: count(frame(unnamed), key))
        key.chmod(0o644)
        refused(KeyMisuse, lambda: count(frame(SOME), key))


RUN = """
[table]
source = "records.csv"
id = "id"
{more}
[table.cells]
sex = ["F", "M"]
age = ["0", "1"]
[keep]
total = true
[release]
id = "sampled-1"
mechanism = "generalized-laplace"
epsilon = "1"
per = "person"
ledger = "none"
"""
SAMPLED = "Of a person with more than 2 records, a secret key chooses which 2 are counted."
KEPT = "Kept totals are those of the counted records."


class TestWalk:
    @pytest.fixture
    def work(self, key: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        folder = key.parent
        monkeypatch.chdir(folder)
        with (folder / "records.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("id", "sex", "age"), *SOME])
        return folder

    def test_exceeded(self, work: Path, run: Run) -> None:
        """The advice keeps the protection: once it was to give every record an identifier of its own."""
        (work / "run.toml").write_text(RUN.format(more="max_records = 2"))
        made = run("release", "run.toml", "-o", "out", "--json")
        fields = json.loads(made.out)
        assert (made.code, fields["code"]) == (5, "too-many-records")
        assert "Raise max_records (the same promise then needs more noise)" in fields["message"]
        assert 'over = "sample"' in fields["message"]
        assert 'over = "sample"' in fields["what_to_do"]
        assert "own identifier" not in fields["message"] + fields["what_to_do"]

    def test_a_plan_says_that_the_secret_is_missing(self, work: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("HOLDFAST_KEY", "HOLDFAST_KEY_FILE"):
            monkeypatch.delenv(name, raising=False)
        (work / "run.toml").write_text(RUN.format(more='max_records = 2\nover = "sample"'))
        planned = run("plan", "run.toml")
        assert planned.code == 0
        assert "Missing    A sample of each person's records needs a secret" in planned.out
        assert "Next  " not in planned.out
        assert "needs a secret" in json.loads(run("plan", "run.toml", "--json").out)["missing"]
        assert run("release", "run.toml", "-o", "out").code != 0
        monkeypatch.setenv("HOLDFAST_KEY", KEY.decode())
        assert "Missing" not in run("plan", "run.toml").out

    def test_sampled(self, work: Path, run: Run) -> None:
        (work / "run.toml").write_text(RUN.format(more='max_records = 2\nover = "sample"\nsample_key = "sample.key"'))
        planned = run("plan", "run.toml")
        assert planned.code == 0
        assert f"{SAMPLED} {KEPT}" in planned.out
        assert run("release", "run.toml", "-o", "out").code == 0
        assert run("verify", "out").code == 0
        card = json.loads((work / "out" / "card.json").read_text())
        assert (card["table"]["over"], card["table"]["max_records"]) == ("sample", 2)
        assert [w["text"] for w in card["warnings"] if w["kind"] == "truncated"] == [f"RECORDS MAY BE LEFT OUT. {SAMPLED} {KEPT}"]
        statement = (work / "out" / "statement.html").read_text()
        assert SAMPLED in statement
        assert "with more than 2 records in the table is protected less" not in statement
        assert "total,,,5" in (work / "out" / "kept.csv").read_text().replace('"', "")  # 2 of a, 1 of b, 2 of c

    def test_how_many_were_left_out_is_not_told(self, work: Path, key: Path) -> None:
        """Two tables of equal counts, one of them of many more records: the same card."""
        few, many = [("a", "F", "0")] * 3, [("a", "F", "0")] * 300
        given: dict[str, Any] = {"id": "id", "max_records": 2, "over": "sample", "sample_key": key}
        noise = hf.GeneralizedLaplace(epsilon="1")
        made = [
            hf.release(hf.Table.from_records(frame(records), CELLS, **given), [hf.total()], noise, key=hf.NoiseKey.for_tests(1))
            for records in (few, many)
        ]
        assert made[0].card.to_dict() == made[1].card.to_dict()

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ('over = "cut"', 'must be one of "refuse", "sample"'),
            ('over = "sample"', "needs a secret of at least 16 bytes"),
            ('over = "sample"\nsample_key = "none.key"', "does not exist"),
            ('sample_key = "sample.key"', 'this key goes with over = "sample"'),
            ('sample_by = ["age"]', 'this key goes with over = "sample"'),
            ('over = "sample"\nsample_key = "sample.key"\nsample_by = ["visit"]', "has no column 'visit'"),
            ('over = "sample"\nsample_key = "sample.key"\nrecord_key = "rkey"', "record_key do not go together"),
        ],
    )
    def test_wrong_keys(self, work: Path, run: Run, more: str, said: str) -> None:
        (work / "run.toml").write_text(RUN.format(more=more))
        made = run("release", "run.toml", "-o", "out")
        assert made.code != 0
        assert said in made.err

    def test_a_sample_needs_an_identifier(self, work: Path, run: Run) -> None:
        (work / "run.toml").write_text(RUN.replace('id = "id"\n', "", 1).format(more='over = "sample"'))
        assert 'over = "sample" needs id' in run("plan", "run.toml").err
