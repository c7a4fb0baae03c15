"""The group `scale`: stages are timed apart, and one that is slower than on the page before fails it (see `make bench GROUP=scale`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import scale
from benchmarks.report import Report, Row, Table


def page(read: float, promise: float, duckdb: float = 2.0) -> str:
    """A page of results of one table."""
    releases = Row("1 cells", (*(f"{read:.2f}" for _ in scale.RELEASE), "9", "9", f"{duckdb:.2f}", "9", "9", "9"))
    checks = Row("1 cells", (*(f"{promise:.2f}" for _ in scale.VERIFY), "9", "9", f"{duckdb:.2f}", "9", "9"))
    tables = (
        Table("Release", ("table", *(f"{stage} s" for stage in scale.RELEASE), *scale.TOTALS, "file MB"), [releases]),
        Table("Verify", ("table", *(f"{stage} s" for stage in scale.VERIFY), *scale.TOTALS), [checks]),
    )
    return Report("title", "machine", tables, ["a note"]).markdown()


def test_stages_are_read_from_a_page_of_results() -> None:
    found = scale.stage_ratios(page(3, 1))
    assert found == {("1 cells", stage): 1.5 for stage in scale.RELEASE} | {("1 cells", stage): 0.5 for stage in scale.VERIFY}


@pytest.mark.parametrize(
    ("read", "promise", "duckdb", "slower"),
    [
        (3, 1, 2, []),
        (3.58, 1, 2, []),
        (3.7, 1, 2, scale.RELEASE),
        (3.7, 1, 3, []),  # so is DuckDB
        (2, 1, 1, [*scale.RELEASE, *scale.VERIFY]),
        (3, 1.3, 2, scale.VERIFY),
    ],
)
def test_a_stage_is_slower_beyond_a_fifth_of_its_time(read: float, promise: float, duckdb: float, slower: list[str]) -> None:
    found = scale.slower_stages(page(3, 1), page(read, promise, duckdb))
    assert [line.partition(" of 1 cells: ")[0] for line in found] == list(slower)


def test_what_takes_next_to_nothing_is_not_compared_by_ratios() -> None:
    assert scale.slower_stages(page(0.1, 0.1), page(0.29, 0.29)) == []
    assert scale.slower_stages(page(0.1, 0.1), page(0.31, 0.29)) != []


@pytest.mark.long
def test_a_table_is_measured_from_file_to_verified_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And a committed page on which every stage took next to nothing fails the group; the page stays."""
    monkeypatch.chdir(Path(__file__).parents[1])
    report = scale.run(sizes=(20_000,), rounds=1, results=tmp_path / "scale.md")
    assert [row.name for table in report.tables for row in table.rows] == ["20,000 cells", "20,000 cells, with levels"] * 2
    for table in report.tables:
        for row in table.rows:
            assert len(row.figures) + 1 == len(table.headers)
            assert all(float(figure.replace(",", "")) >= 0 for figure in row.figures)
    ratios = scale.stage_ratios(report.markdown())
    assert {stage for (_, stage), ratio in ratios.items() if ratio > 0} >= {"read", "plan", "draw", "pages", "promise", "compare"}
    monkeypatch.setattr(scale, "LEAST", 0.0)
    quick = page(0.001, 0.001, 1000).replace("1 cells", "20,000 cells")
    (tmp_path / "scale.md").write_text(quick)
    with pytest.raises(scale.Slower, match=r"times DuckDB, 0\.00 before"):
        scale.run(sizes=(20_000,), rounds=1, results=tmp_path / "scale.md")
    assert (tmp_path / "scale.md").read_text() == quick
