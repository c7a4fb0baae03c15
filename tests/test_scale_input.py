"""The made-up census tables of the benchmarks: nested units, all cells of every block, the same bytes for the same size."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from benchmarks import scale_input
from holdfast.runfiles.runfile import load_run


def test_units_are_nested_and_every_block_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    scale_input.write_input(path, 2_000)
    table = hf.Table.from_counts(path, scale_input.COLUMNS, scale_input.COUNT, public=True)
    assert len(table.universe) == 2_000
    sizes = [len(table.universe.group([unit])[1]) for unit in scale_input.UNITS]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 200
    for coarse, fine in zip(scale_input.UNITS, scale_input.UNITS[1:], strict=False):
        assert len(table.universe.group([coarse, fine])[1]) == len(table.universe.group([fine])[1])
    assert 0 < np.count_nonzero(table.counts) < len(table.counts)


def test_pieces_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, pieces = tmp_path / "whole.parquet", tmp_path / "pieces.parquet"
    scale_input.write_input(whole, 3_000)
    monkeypatch.setattr(scale_input, "GROUP_BLOCKS", 7)
    scale_input.write_input(pieces, 3_000)
    assert pq.read_table(pieces).to_pylist() == pq.read_table(whole).to_pylist()


def test_its_run_files_can_be_planned(tmp_path: Path) -> None:
    scale_input.write_input(tmp_path / "people.parquet", 2_000)
    for levels in (False, True):
        (tmp_path / "run.toml").write_text(scale_input.run_file("people.parquet", "scale", levels=levels))
        run = load_run(tmp_path / "run.toml")
        assert hf.plan(run.read_declarations(), run.keep, run.mechanism).info.cells == 2_000
