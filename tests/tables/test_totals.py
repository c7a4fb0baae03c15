"""Total rows: refused by their names, read and checked where they are declared, and left out."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import HoldfastError, HoldfastWarning, InvalidCode, InvalidCount, InvalidParameter, UnknownColumn
from holdfast.runfiles.runfile import load_run
from holdfast.tables.totals import TOTAL_NAMES, total_names
from tests.running import Run
from tests.tables.reference import refused

SECRET = 7319465
NAMES = [
    "_T",
    "_t",
    "TOTAL",
    "Total",
    "total.",
    " Tot ",
    "All",
    "all",
    "Sum",
    "Gesamt",
    "Insgesamt",
    "Total general",
    "TOTAL_GENERAL",
    "Итого",
]
PLAIN = ["T", "Town", "All Saints", "Totals Bay", "1", "", "Sumy", "Tote", "t1", "__T__x"]


class TestNames:
    @pytest.mark.parametrize("name", [*NAMES, *TOTAL_NAMES])
    def test_named_like_totals(self, name: str) -> None:
        assert total_names(pa.array(["F", name, "M2"])) == [name]

    def test_not_named_like_totals(self) -> None:
        assert total_names(pa.array(PLAIN)) == []
        assert total_names(pa.array([], pa.string())) == []

    @pytest.mark.parametrize(
        ("codes", "is_total"), [("FMT", True), ("wmt", True), ("HFT", True), ("UT", False), ("TF", False), ("T", False)]
    )
    def test_the_short_name_is_a_total_among_sexes(self, codes: str, is_total: bool) -> None:
        """Elsewhere it may be a town, or stand for true."""
        assert (len(total_names(pa.array(list(codes)))) == 1) is is_total

    def test_the_list_is_in_the_docs(self) -> None:
        page = Path(__file__).parents[2].joinpath("docs", "tables-and-totals.md").read_text(encoding="utf-8")
        assert all(f"`{name}`" in page for name in TOTAL_NAMES)


SOURCES: dict[str, Callable[[list[str], bool], Any]] = {
    "product": lambda codes, allow: hf.Universe.product({"a": codes, "b": ["x"]}, allow_total_names=allow),
    "tree": lambda codes, allow: hf.Universe.product(
        {"a": hf.Hierarchy.from_parents(dict.fromkeys(codes, "top"))}, allow_total_names=allow
    ),
    "listed": lambda codes, allow: hf.Universe.listed({"a": codes}, allow_total_names=allow),
    "counts": lambda codes, allow: hf.Table.from_counts(
        pa.table({"a": codes, "n": [SECRET] * len(codes)}), ["a"], "n", allow_total_names=allow
    ),
    "records": lambda codes, allow: hf.Table.from_records(pa.table({"a": codes}), {"a": codes}, allow_total_names=allow),
    "observed": lambda codes, allow: hf.Table.from_records(pa.table({"a": codes}), ["a"], universe="observed", allow_total_names=allow),
}


@pytest.mark.parametrize("source", SOURCES)
def test_refused_wherever_codes_come_from(source: str) -> None:
    message = refused(InvalidCode, lambda: SOURCES[source](["F", "M", "_T"], False), str(SECRET))
    assert message.startswith("Column 'a' has codes named like totals")
    assert ("_T" in message) is (source != "observed")  # codes that were only seen are not shown
    assert "allow_total_names = true" in message
    SOURCES[source](["F", "M", "_T"], True)


def test_codes_that_a_spreadsheet_made_dates_of_are_warned_of(recwarn: pytest.WarningsRecorder) -> None:
    """10-19 became 19-Oct, and was taken for a code."""
    hf.Universe.product({"age": ["0-9", "19-Oct", "20-29", "May-16"]})
    (warned,) = recwarn.list
    assert warned.category is HoldfastWarning
    assert "Column 'age' has codes like dates: '19-Oct', 'May-16'. Spreadsheets make dates of ranges" in str(warned.message)
    recwarn.clear()
    hf.Universe.product({"day": ["19-Oct", "20-Oct"], "month": ["May", "October-16"], "age": ["10-19", "3-Novem"]})
    hf.Universe.product({"age": ["0-9", "19-Oct"]}, allow_total_names=True)
    assert not recwarn.list


def test_units_of_a_hierarchy_may_be_totals() -> None:
    """What lies above the cells is a sum of them, and no cell."""
    tree = hf.Hierarchy.from_tree("@Total\n@@01\n@@02\n")
    assert len(hf.Universe.product({"county": tree})) == 2


def rows(codes: dict[str, list[str]], totals: dict[str, list[str]], count: Callable[[tuple[str, ...]], int]) -> pa.Table:
    """Every combination of codes and totals, totals first, with what `count` says."""
    listed = list(itertools.product(*(totals.get(column, []) + own for column, own in codes.items())))
    columns = {column: [row[place] for row in listed] for place, column in enumerate(codes)}
    return pa.table({**columns, "n": [count(row) for row in listed]})


CODES = {"a": ["x", "y"], "b": ["p", "q", "r"], "c": ["u", "v"]}
TOTALS = {"a": ["_T"], "b": ["_T", "pq"], "c": ["All"]}
UNDER = {"_T": set("xypqruv"), "All": set("uv"), "pq": set("pq")}
TREES = {"b": hf.Hierarchy.from_parents({"p": "pq", "q": "pq", "r": "other"})}


def add_up(cells: dict[tuple[str, ...], int], row: tuple[str, ...]) -> int:
    return sum(size for cell, size in cells.items() if all(own in UNDER.get(code, {code}) for code, own in zip(row, cell, strict=True)))


class TestDeclared:
    cells: ClassVar = dict(zip(itertools.product(*CODES.values()), range(3, 99, 8), strict=True))

    @pytest.mark.parametrize("public", [False, True])
    @pytest.mark.parametrize("kind", [hf.Table, hf.tables.Declarations])
    def test_the_table_is_that_without_them(self, public: bool, kind: Any) -> None:
        whole = rows(CODES, TOTALS, lambda row: add_up(self.cells, row))
        plain = rows(CODES, {}, lambda row: add_up(self.cells, row))
        made = kind.from_counts(whole, list(CODES), "n", totals=TOTALS, public=public, hierarchies=TREES)
        bare = kind.from_counts(plain, list(CODES), "n", public=public, hierarchies=TREES)
        assert made.universe == bare.universe
        assert made.universe.support == bare.universe.support
        assert kind is not hf.Table or np.array_equal(made.counts, bare.counts)

    def test_of_a_declared_universe(self) -> None:
        universe = hf.Universe.product(CODES, hierarchies=TREES)
        whole = rows(CODES, TOTALS, lambda row: add_up(self.cells, row))
        made = hf.Table.from_counts(whole, list(CODES), "n", universe=universe, totals=TOTALS)
        assert made.counts.tolist() == list(self.cells.values())

    def test_each_row_that_is_no_sum_is_refused(self) -> None:
        """Enumeration: every total row, one more and one less; the message has codes and no number."""
        listed = rows(CODES, TOTALS, lambda row: add_up(self.cells, row))
        universe = hf.Universe.product(CODES, hierarchies=TREES)
        ways: list[dict[str, Any]] = [{"hierarchies": TREES}, {"universe": universe}]
        broken = 0
        for place, row in enumerate(listed.to_pylist()):
            if not any(row[column] in TOTALS[column] for column in CODES):
                continue
            for step, way in itertools.product((-1, 1), ways):
                counts = listed.column("n").to_pylist()
                counts[place] += step
                frame = listed.set_column(3, "n", pa.array(counts))
                message = refused(InvalidCount, partial(hf.Table.from_counts, frame, list(CODES), "n", totals=TOTALS, **way))
                assert f"total row a={row['a']}, b={row['b']}, c={row['c']} of the pyarrow Table is not the sum" in message
                broken += 1
        assert broken == 4 * (listed.num_rows - 12)

    @given(st.lists(st.integers(0, 3), min_size=12, max_size=12), st.randoms(use_true_random=False))
    def test_in_any_order_and_with_any_rows_missing(self, sizes: list[int], random: Any) -> None:
        cells = dict(zip(itertools.product(*CODES.values()), sizes, strict=True))
        listed = rows(CODES, TOTALS, lambda row: add_up(cells, row)).to_pylist()
        random.shuffle(listed)
        kept = [row for row in listed if (row["a"], row["b"], row["c"]) in cells or random.random() < 0.7]
        used = {c: [code for code in codes if any(row[c] == code for row in kept)] for c, codes in TOTALS.items()}
        made = hf.Table.from_counts(
            pa.Table.from_pylist(kept), list(CODES), "n", totals={c: codes for c, codes in used.items() if codes}, hierarchies=TREES
        )
        assert {tuple(made.universe.cell(i).values()): int(n) for i, n in enumerate(made.counts)} == cells

    def test_a_total_of_cells_that_are_not_there(self) -> None:
        frame = pa.table({"town": ["a", "a", "b"], "sex": ["F", "_T", "_T"], "n": [1, 1, 5]})
        assert "town=b, sex=_T" in refused(InvalidCount, lambda: hf.Table.from_counts(frame, ["town", "sex"], "n", totals={"sex": "_T"}))

    @pytest.mark.parametrize(
        ("totals", "error", "said"),
        [
            ({"age": "_T"}, UnknownColumn, "which is not a column of cells"),
            ({"sex": "_U"}, InvalidParameter, "names the code '_U' of column 'sex', which the pyarrow Table does not have"),
            ({"sex": []}, InvalidParameter, "totals has codes"),
            ({"sex": [1]}, InvalidParameter, "totals has codes"),
        ],
    )
    def test_what_does_not_fit(self, totals: Any, error: type[HoldfastError], said: str) -> None:
        frame = pa.table({"sex": ["F", "M", "_T"], "n": [1, 2, 3]})
        assert said in refused(error, lambda: hf.Table.from_counts(frame, ["sex"], "n", totals=totals))

    def test_a_cell_is_no_total(self) -> None:
        universe = hf.Universe.product({"sex": ["F", "M", "X"]})
        frame = pa.table({"sex": ["F"], "n": [1]})
        said = refused(InvalidParameter, lambda: hf.Table.from_counts(frame, ["sex"], "n", universe=universe, totals={"sex": "X"}))
        assert "'X' of column 'sex' is both a total and a cell" in said


RUN = """
[table]
source = "people.csv"
cells = ["region", "sex"]
count = "n"
public = true
{more}
[keep]
margins = [["region"]]
[release]
id = "totals-1"
mechanism = "generalized-laplace"
epsilon = "1"
per = "person"
ledger = "none"
"""
CSV = "region,sex,n\n_T,_T,10\n_T,F,4\n_T,M,6\n01,_T,3\n01,F,1\n01,M,2\n02,_T,7\n02,F,3\n02,M,4\n"


class TestWalk:
    """A CSV file with total rows, as offices have them."""

    @pytest.fixture
    def work(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "people.csv").write_text(CSV)
        return tmp_path

    @pytest.mark.parametrize("command", [("plan", "run.toml"), ("release", "run.toml", "-o", "out")])
    def test_refused(self, work: Path, run: Run, command: tuple[str, ...]) -> None:
        (work / "run.toml").write_text(RUN.format(more=""))
        made = run(*command, "--json")
        fields = json.loads(made.out)
        assert (made.code, fields["code"], fields["field"]) == (5, "invalid-code", "table.cells")
        assert "Column 'region' has codes named like totals: '_T'. Total rows are not cells" in fields["message"]
        assert not (work / "out").exists()

    def test_declared(self, work: Path, run: Run) -> None:
        (work / "run.toml").write_text(RUN.format(more='totals = {region = "_T", sex = "_T"}\nhierarchies = {region = {prefixes = [1]}}'))
        assert "4 cells by region, sex" in run("plan", "run.toml").out
        assert "4 cells, 2 kept totals exact." in run("release", "run.toml", "-o", "out").out
        assert run("verify", "out").code == 0
        assert "_T" not in (work / "out" / "table.csv").read_text()

    def test_not_the_sum(self, work: Path, run: Run) -> None:
        (work / "people.csv").write_text(CSV.replace("02,_T,7", f"02,_T,{SECRET}"))
        (work / "run.toml").write_text(RUN.format(more='totals = {region = "_T", sex = "_T"}'))
        assert run("plan", "run.toml").code == 0  # no count is read
        made = run("release", "run.toml", "-o", "out")
        assert made.code == 5
        assert "The total row region=02, sex=_T of file 'people.csv' is not the sum of its cells." in made.err
        assert str(SECRET) not in made.err

    def test_allowed(self, work: Path, run: Run) -> None:
        (work / "run.toml").write_text(RUN.format(more="allow_total_names = true"))
        assert run("release", "run.toml", "-o", "out").code == 0
        assert run("verify", "out").code == 0

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ('totals = {age = "_T"}', 'cells has no column "age"'),
            ("totals = {}", "must name codes of total rows by column"),
            ("totals = {sex = 1}", "must name codes of total rows by column"),
            ('totals = ["_T"]', "must name codes of total rows by column"),
        ],
    )
    def test_wrong_keys(self, work: Path, run: Run, more: str, said: str) -> None:
        (work / "run.toml").write_text(RUN.format(more=more))
        assert said in run("plan", "run.toml").err

    def test_records_have_none(self, work: Path, run: Run) -> None:
        records = RUN.replace('cells = ["region", "sex"]\ncount = "n"\npublic = true', 'cells = {{sex = ["F", "M"]}}').replace(
            '["region"]', '["sex"]'
        )
        (work / "run.toml").write_text(records.replace('["region"]', '["sex"]').format(more='totals = {sex = "_T"}'))
        assert "this key is for counts: a record is no total" in run("plan", "run.toml").err

    def test_the_promise_that_total_rows_would_break(self, work: Path) -> None:
        """One person who moves changes 2^d rows beside the cell: four in a table of two columns, not one."""
        (work / "run.toml").write_text(RUN.format(more="allow_total_names = true"))
        table = load_run(work / "run.toml").read_table()
        changed = [row for row in table.universe.frame().to_pylist() if row["region"] in ("01", "_T") and row["sex"] in ("F", "_T")]
        assert len(changed) == 4
