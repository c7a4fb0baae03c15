"""kept.csv and exposed.csv: they join with the table, and list all of it."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from holdfast.errors import VerificationFailed
from holdfast.publication.listings import kept_header
from tests.exposing import exposing
from tests.publication.twin_reports import with_the_numbers_of

LAPLACE = hf.GeneralizedLaplace(epsilon="1/4", per="distance")
GEOGRAPHY = hf.Universe.listed({"state": list("AAABBC"), "county": list("123124")})
COUNTS = np.array([5, 0, 2, 0, 0, 4])


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def saved(folder: Path, table: hf.Table, keep: Any, mechanism: Any = LAPLACE) -> Path:
    return exposing(hf.release, table, keep, mechanism, hf.NoiseKey.for_tests("listings"), release_id="r").save(folder)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("original") / "out", hf.Table(GEOGRAPHY, COUNTS), [hf.margin("state")])


class TestKept:
    def test_one_column_for_each_key(self, tmp_path: Path) -> None:
        universe = hf.Universe.product({"state": ["N", "S"], "sex": ["F", "M"], "age": ["0", "1", "2"]})
        areas = hf.areas("state", {"all": ["N", "S"]}, by=["sex"])
        linear = hf.linear([[1] * 6 + [0] * 6], names=["north"])
        keep = [hf.total(), hf.margin("state"), hf.margin("sex", "state"), hf.subset("age", ["1", "2"], by=["sex"]), areas, linear]
        table = hf.Table(universe, np.arange(12))
        found = rows(saved(tmp_path / "out", table, keep) / "kept.csv")
        assert list(found[0]) == ["kept", "name", "state", "sex", "age", "total"]
        assert [(r["state"], r["sex"], r["age"], r["total"]) for r in found] == [
            ("", "", "", "66"),
            ("N", "", "", "15"),
            ("S", "", "", "51"),
            ("N", "F", "", "3"),  # the columns of the table in its order, the totals in that of the constraint
            ("S", "F", "", "21"),
            ("N", "M", "", "12"),
            ("S", "M", "", "30"),
            ("", "F", "", "18"),
            ("", "M", "", "30"),
            ("", "F", "", "24"),
            ("", "M", "", "42"),
            ("", "", "", "15"),
        ]
        assert found[-1]["name"] == "north"

    def test_it_joins_with_the_table(self, tmp_path: Path) -> None:
        """Codes that need quotes, the empty code, and what looks like a missing one."""
        codes = ['x,"y"', "line\nbreak", "", " 01", "\r1", "NULL"]
        universe = hf.Universe.product({"a": codes, "b": ["1", "2", "3"]})
        table = hf.Table(universe, np.arange(18))
        folder = saved(tmp_path / "out", table, [hf.margin("a"), hf.margin("b")])
        hf.verify(folder)
        kept = f"read_csv('{folder}/kept.csv', all_varchar=true, allow_quoted_nulls=false)"
        query = f"""SELECT count(*), bool_and(k.total::BIGINT = t.n) FROM {kept} k JOIN
            (SELECT a, sum("count") AS n FROM '{folder}/table.parquet' GROUP BY a) t USING (a) WHERE k.kept = 'margin(a)'"""
        assert duckdb.sql(query).fetchall() == [(6, True)]

    def test_columns_of_the_table_keep_their_names(self, tmp_path: Path) -> None:
        columns = ["kept", "name", "total", "kept_total", "why", "count\r"]
        assert kept_header(columns) == ["kept_kept", "kept_name", *columns, "kept_kept_total"]
        universe = hf.Universe.product({column: ["1", "2"] for column in columns})
        table = hf.Table(universe, np.arange(64), count="exposed")
        release = hf.release(table, [hf.margin("why"), hf.margin(*columns[1:])], LAPLACE, ledger=None)
        folder = release.save(tmp_path / "out", formats=["parquet"])  # Arrow cannot read a carriage return in a header
        hf.verify(folder)
        assert hf.verify(folder, against=folder / "kept.csv").official_totals == 34
        assert list(rows(folder / "kept.csv")[0]) == kept_header(columns)
        assert pq.read_schema(folder / "table.parquet").names[-2:] == ["standard_deviation", "exposed_exposed"]

    def test_nothing_is_kept(self, tmp_path: Path) -> None:
        folder = saved(tmp_path / "out", hf.Table(GEOGRAPHY, COUNTS), [])
        hf.verify(folder)
        assert (folder / "kept.csv").read_text() == '"kept","name","state","county","total"\n'
        assert (folder / "exposed.csv").read_text() == '"state","county","count","why","with"\n'


class TestExposed:
    def test_all_exposed_cells_with_codes_and_why(self, tmp_path: Path) -> None:
        """State C has one county; the total of state B is 0."""
        folder = saved(tmp_path / "out", hf.Table(GEOGRAPHY, COUNTS), [hf.margin("state")])
        assert [tuple(r.values()) for r in rows(folder / "exposed.csv")] == [
            ("B", "1", "0", "values", ""),
            ("B", "2", "0", "values", ""),
            ("C", "4", "4", "structure", ""),
        ]
        card = json.loads((folder / "card.json").read_text())["exposed"]
        assert (card["cells"], card["by_structure"], card["by_values"]) == (3, 1, 2)

    def test_the_table_marks_them(self, tmp_path: Path) -> None:
        folder = saved(tmp_path / "out", hf.Table(GEOGRAPHY, COUNTS), [hf.margin("state")])
        assert [r["exposed"] for r in rows(folder / "table.csv")] == ["false"] * 3 + ["true"] * 3
        assert pq.read_table(folder / "table.parquet").column("exposed").to_pylist() == [False] * 3 + [True] * 3

    def test_identities_expose_nothing(self, tmp_path: Path) -> None:
        keep = [hf.margin("state"), hf.identity(hf.subset("state = 'B' and county = 1"))]
        folder = saved(tmp_path / "out", hf.Table(GEOGRAPHY, np.array([5, 1, 2, 0, 7, 4])), keep)
        assert [tuple(r.values()) for r in rows(folder / "exposed.csv")] == [
            ("B", "2", "7", "structure", ""),
            ("C", "4", "4", "structure", ""),
        ]
        hf.verify(folder)

    def test_suppressed_cells(self, tmp_path: Path) -> None:
        """What the values pin is left out of the table, and known all the same."""
        folder = saved(tmp_path / "out", hf.Table(GEOGRAPHY, COUNTS), [hf.margin("state")], hf.Suppression())
        hf.verify(folder)
        assert [r["count"] for r in rows(folder / "table.csv")] == [""] * 5 + ["4"]
        assert [r["why"] for r in rows(folder / "exposed.csv")] == ["values", "values", "structure"]

    def test_cards_and_pages_have_a_few_examples_and_name_the_file(self, tmp_path: Path) -> None:
        """A long list of cells stood on card and report."""
        universe = hf.Universe.product({"a": [f"code{i:02}" for i in range(40)], "b": ["1", "2", "3"]})
        table = hf.Table(universe, np.arange(120))
        folder = saved(tmp_path / "out", table, [hf.margin("a"), hf.subset("b", ["1"], by=["a"])])
        card = json.loads((folder / "card.json").read_text())["exposed"]
        assert (card["cells"], len(card["names"])) == (40, 5)
        for page in ("statement.html", "report.html"):
            text = (folder / page).read_text()
            assert "listed in exposed.csv" in text.lower()
            assert "code02" in text
            assert text.count("code39") == 0 or page == "report.html"  # the kept totals of the report are their own list
        assert len(rows(folder / "exposed.csv")) == 40

    @pytest.mark.parametrize("observed", [True, False])
    def test_twins_have_the_same_files(self, tmp_path: Path, observed: bool) -> None:
        """Equal kept totals, other counts: all that is said of exposed cells is the same."""
        if observed:
            records = {"a": list("xxyy") + list("xxyy"), "b": list("pqpq") + list("pqpq")}, {"a": list("xxyyxxyy"), "b": list("pqpqpppq")}
            tables = [hf.Table.from_records(pa.table(given), ["a", "b"], universe="observed", name="t") for given in records]
            keep = [hf.margin("a")]
        else:
            tables = [hf.Table(GEOGRAPHY, counts, name="t") for counts in (COUNTS, np.array([1, 5, 1, 0, 0, 4]))]
            keep = [hf.margin("state")]
        folders = [saved(tmp_path / f"{i}", table, keep) for i, table in enumerate(tables)]
        for name in ("kept.csv", "exposed.csv", "statement.html"):
            assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
        assert with_the_numbers_of(*folders) == (folders[1] / "report.html").read_bytes()
        marks = [pq.read_table(folder / "table.parquet").column("exposed") for folder in folders]
        assert marks[0] == marks[1]


class TestVerify:
    """Checksums fit, and still the folder is not what its kept totals expose."""

    @pytest.mark.parametrize(
        ("name", "old", "new", "words"),
        [
            ("exposed.csv", '"values"', '"structure"', r"exposed\.csv is not what the kept totals expose"),
            ("exposed.csv", '"B","1",0,"values",""\n', "", r"exposed\.csv is not what the kept totals expose"),
            ("exposed.csv", '"C","4",4,', '"C","4",5,', r"exposed\.csv is not what the kept totals expose"),
            ("kept.csv", '"state=A","A"', '"state=A","B"', r"kept\.csv does not list the totals"),
            ("kept.csv", '"state=A","A",', '"state=A","A","1"', r"kept\.csv does not list the totals"),
            ("card.json", '"by_structure": 1', '"by_structure": 2', r"exposed\.by_structure is 2; the rest of the folder gives 1"),
            ("card.json", '"state=C', '"state=A', r"exposed\.names\.0 is .state=A"),
            ("table.csv", "true", "false", r"3 entries of the column .exposed. do not follow from the card"),
        ],
    )
    def test_what_is_exposed_is_computed_again(self, original: Path, tmp_path: Path, name: str, old: str, new: str, words: str) -> None:
        folder = Path(shutil.copytree(original, tmp_path / "out"))
        self.change(folder / name, lambda text: text.replace(old, new))
        if name == "table.csv":
            (folder / "table.parquet").unlink()
        with pytest.raises(VerificationFailed, match=words):
            hf.verify(folder)

    @staticmethod
    def change(path: Path, change: Callable[[str], str]) -> None:
        path.write_text(change(path.read_text()))
        place = path.parent / "card.json"
        card = json.loads(place.read_text())
        if path.name == "table.csv":
            del card["files"]["table.parquet"]
        for name in card["files"]:
            data = (path.parent / name).read_bytes()
            card["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        place.write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
