"""Files of tables: a long one is read in parts, so that a signal need not wait for all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.tables.formats import FORMATS


@pytest.mark.parametrize(("rows", "parts"), [(0, 1), (4, 1), (5, 2), (12, 3)])
def test_parquet_is_read_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, parts: int) -> None:
    frame = pa.table({"code": pa.array([str(k % 3) for k in range(rows)], pa.string()).dictionary_encode(), "count": list(range(rows))})
    pq.write_table(frame, tmp_path / "table.parquet", row_group_size=4)
    wanted = pq.ParquetFile(tmp_path / "table.parquet").read()
    longest: list[int] = []

    def counted(own: Callable[..., Any]) -> Callable[..., Any]:
        def reading(*given: Any) -> Any:
            longest.append(len(made := own(*given)))
            return made

        return reading

    monkeypatch.setattr(pq.ParquetFile, "read", counted(pq.ParquetFile.read))
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counted(pq.ParquetFile.read_row_group))
    found = FORMATS["parquet"].read(tmp_path / "table.parquet")
    assert found.equals(wanted)
    assert found.schema == wanted.schema
    assert (len(longest), max(longest)) == (parts, min(rows, 4))


def test_a_long_text_in_many_rows_is_read_once(tmp_path: Path) -> None:
    """A file of some kilobytes must not fill the memory: the text is stored once, and is held once."""
    column = pa.array(["x" * 10_000]).take(pa.array([0] * 5_000))
    pq.write_table(pa.table({"code": column}), tmp_path / "table.parquet", dictionary_pagesize_limit=10**6, store_schema=False)
    assert (tmp_path / "table.parquet").stat().st_size < 10_000
    assert FORMATS["parquet"].read(tmp_path / "table.parquet").nbytes < 100_000
