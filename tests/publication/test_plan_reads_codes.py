"""`holdfast plan` reads no column of counts, and of records with a declared universe nothing: the same bytes, whatever stands there."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.runfiles.runfile import load_run
from holdfast.tables.readers import CsvSource
from tests.running import Run

RUN = """\
[table]
source = "SOURCE"
cells = ["state", "county"]
count = "people"
[keep]
margins = [["state"]]
[release]
id = "counties"
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
"""
STATES, COUNTIES, PEOPLE = ["17", "17", "18", "18"], ["031", "043", "001", "003"], ["41", "12", "7", "21"]
GARBAGE = ["-5", "1,5", "", "many"]
RECORDS = RUN.replace('cells = ["state", "county"]\ncount = "people"', 'cells = {state = ["17", "18"], county = ["031", "043"]}')


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_csv(people: list[str]) -> None:
    rows = (f'{s},{c},"{n}"\n' if "," in n else f"{s},{c},{n}\n" for s, c, n in zip(STATES, COUNTIES, people, strict=True))
    Path("counties.csv").write_text("state,county,people\n" + "".join(rows))


PARTS = ("pilot", "pairs", "other lags", "diagnostics")
"""Of a diagnosis: told one by one where there is no terminal, and nobody asked for JSON."""


def planned(run: Run, command: str = "plan") -> list[str]:
    more = [] if command == "plan" else ["--pairs", "8", "--kernel", "line_gibbs"]
    made = [run(command, "run.toml", *more, *extra) for extra in ([], ["--json"])]
    parts = "" if command == "plan" else "".join(f"holdfast: line_gibbs, one sum of 2 cells: {part}\n" for part in PARTS)
    assert [(one.code, one.err) for one in made] == [(0, parts), (0, "")], made
    return [one.out for one in made]


@pytest.mark.ordinary("plan")
@pytest.mark.parametrize("command", ["plan", "diagnose"])
def test_a_csv_file_whose_counts_are_garbage(run: Run, command: str) -> None:
    Path("run.toml").write_text(RUN.replace("SOURCE", "counties.csv"))
    write_csv(PEOPLE)
    right = planned(run, command)
    write_csv(GARBAGE)
    assert planned(run, command) == right
    assert run("release", "run.toml", "-o", "out").code == 5


def test_the_columns_that_are_asked_of_a_csv_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """An access trace: every column that anything asks of the file while the run is planned."""
    asked: set[str] = set()
    real = CsvSource.batches

    def traced(source: CsvSource, columns: list[int]) -> object:
        asked.update(source.names[place] for place in columns)
        return real(source, columns)

    monkeypatch.setattr(CsvSource, "batches", traced)
    Path("run.toml").write_text(RUN.replace("SOURCE", "counties.csv") + "[table.hierarchies]\ncounty = {prefixes = [1]}\n")
    write_csv(PEOPLE)
    load_run("run.toml").read_declarations()
    assert asked == {"state", "county"}
    load_run("run.toml").read_table()
    assert asked == {"state", "county", "people"}


def test_a_parquet_file_whose_counts_are_destroyed(run: Run) -> None:
    """The bytes of the column of counts are overwritten in the file: whoever reads them fails."""
    Path("run.toml").write_text(RUN.replace("SOURCE", "counties.parquet"))
    pq.write_table(pa.table({"state": STATES, "county": COUNTIES, "people": list(map(int, PEOPLE))}), "counties.parquet")
    right = planned(run)
    column = pq.read_metadata("counties.parquet").row_group(0).column(2)
    start = column.dictionary_page_offset or column.data_page_offset
    data = bytearray(Path("counties.parquet").read_bytes())
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    Path("counties.parquet").write_bytes(data)
    assert planned(run) == right
    assert run("release", "run.toml", "-o", "out").code == 5


def test_a_database_that_cannot_compute_the_counts(run: Run) -> None:
    with sqlite3.connect("census.db") as connection:
        connection.execute("CREATE TABLE t (state TEXT, county TEXT, people INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", zip(STATES, COUNTIES, PEOPLE, strict=True))
    connection.close()
    toml = RUN.replace('"SOURCE"', '"sqlite:///census.db"\nquery = "SELECT state, county, PEOPLE FROM t"')
    Path("run.toml").write_text(toml.replace("PEOPLE", "people"))
    right = planned(run)
    Path("run.toml").write_text(toml.replace("PEOPLE", "abs(-9223372036854775807 - people / people) AS people"))
    assert planned(run) == right
    assert run("release", "run.toml", "-o", "out").code == 5


def test_nothing_of_records_with_a_declared_universe_is_read(run: Run) -> None:
    Path("run.toml").write_text(RECORDS.replace("SOURCE", "people.csv"))
    Path("people.csv").write_text("state,county\n17,031\n18,043\n")
    right = planned(run)
    Path("people.csv").write_bytes(b"\xff\x00 no records at all")
    assert planned(run) == right
    assert run("release", "run.toml", "-o", "out").code == 5


def test_of_an_observed_universe_the_cells_are_read(run: Run) -> None:
    toml = RECORDS.replace("SOURCE", "people.csv").replace('{state = ["17", "18"], county = ["031", "043"]}', '["state", "county"]')
    Path("run.toml").write_text(toml.replace("[keep]", 'universe = "observed"\nid = "number"\n[keep]'))
    Path("people.csv").write_text("state,county,number\n17,031,1\n18,001,2\n18,003,3\n17,043,4\n17,043,5\n")
    declared, table = load_run("run.toml").read_declarations(), load_run("run.toml").read_table()
    assert declared.universe == table.universe
    assert declared.universe.support == "observed"
    right = planned(run)
    Path("people.csv").write_text("state,county,number\n17,031,1\n18,003,1\n18,001,1\n18,001,\n17,043,1\n")
    assert planned(run) == right
    assert run("release", "run.toml", "-o", "out").code == 5
