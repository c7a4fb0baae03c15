"""The table of a folder, read and compared piece by piece: wherever the pieces are cut, what is found is the same."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from holdfast.card.card import Card
from holdfast.errors import VerificationFailed
from holdfast.tables import formats
from holdfast.tables.measure import COUNTS
from holdfast.verification import table_files
from holdfast.verification.table_files import TableFile, TextSizes, have_same_rows, read_rows
from tests.exposing import exposing
from tests.verification.test_verify_mutations import with_right_checksums

UNIVERSE = hf.Universe.listed({"area": [str((k > 1) + (k > 5)) for k in range(30)], "=place": [str(k) for k in range(30)]})
"""Areas of 2, 4 and 24 cells: their standard deviations differ."""


@pytest.fixture(scope="module", params=["warn", "mark"])
def released(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = exposing(
        hf.release,
        hf.Table(UNIVERSE, np.arange(30)),
        [hf.margin("area")],
        hf.GeneralizedGaussian(rho="1/10", per="distance"),
        key=hf.NoiseKey.for_tests("pieces"),
        release_id="pieces",
    )
    return Path(made.save(tmp_path_factory.mktemp("pieces") / "out", formulas=request.param))


def cut(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Let pieces of every kind be short."""
    monkeypatch.setattr(formats, "GROUP_ROWS", rows)
    monkeypatch.setattr(formats, "_CHUNK_ROWS", rows)
    monkeypatch.setattr(formats, "_BLOCK_BYTES", 90 + 30 * rows)


def both(folder: Path) -> list[TableFile]:
    card = Card.from_json((folder / "card.json").read_text())
    return [TableFile(folder, card, kind, COUNTS) for kind in ("parquet", "csv")]


@pytest.mark.parametrize("rows", [1, 4, 7, 100])
def test_the_same_is_read_however_a_file_is_cut(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    whole = [read_rows(file) for file in both(released)]
    cut(monkeypatch, rows)
    folder = shutil.copytree(released, tmp_path / "out")
    frame = formats.FORMATS["parquet"].read(released / "table.parquet")
    (folder / "table.parquet").unlink()
    formats.save_frame(frame.combine_chunks(), folder / "table.parquet")
    assert pq.ParquetFile(folder / "table.parquet").num_row_groups == -(-30 // rows)
    for file, before in zip(both(folder), whole, strict=True):
        found = read_rows(file)
        assert found.universe == before.universe == UNIVERSE
        assert np.array_equal(found.counts, before.counts)
        assert found.published.all()
        assert found.csv == before.csv == file.card.files["table.csv"].sha256
    assert have_same_rows(*both(folder))
    with_right_checksums(folder)
    assert hf.verify(folder).cells == 30


def other_codes(frame: Any) -> Any:
    codes = frame.column(1).to_pylist()
    return frame.set_column(1, frame.column_names[1], pa.array([*codes[:-1], "x"], pa.string()).dictionary_encode())


def other_numbers(place: int) -> Callable[[Any], Any]:
    def change(frame: Any) -> Any:
        values = frame.column(place).to_pylist()
        values[-1] = not values[-1] if place == 4 else values[-1] + 1
        return frame.set_column(place, frame.column_names[place], pa.array(values, frame.column(place).type))

    return change


@pytest.mark.parametrize("rows", [1, 7, 100])
@pytest.mark.parametrize("change", [other_codes, other_numbers(2), other_numbers(3), other_numbers(4)])
def test_a_difference_in_the_last_row_is_seen(
    released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any], rows: int
) -> None:
    """Between the files; and, where the Parquet file is alone, between it and what follows from the card."""
    cut(monkeypatch, rows)
    folder = shutil.copytree(released, tmp_path / "out")
    (folder / "table.parquet").unlink()
    formats.save_frame(change(formats.FORMATS["parquet"].read(released / "table.parquet").combine_chunks()), folder / "table.parquet")
    assert not have_same_rows(*both(folder))
    with_right_checksums(folder)
    with pytest.raises(VerificationFailed, match=r"table\.csv and table\.parquet differ"):
        hf.verify(folder)


def test_long_texts_are_added_up_over_all_pieces() -> None:
    """One long text, stored once in every group of rows, would fill the memory when codes are joined."""
    piece = pa.table({"code": pa.DictionaryArray.from_arrays(pa.array([0] * 6, pa.int32()), pa.array(["x" * 10]))})
    sizes = TextSizes(1, 100)
    sizes.add(piece)
    with pytest.raises(ValueError, match="too long"):
        sizes.add(piece)


def test_a_csv_file_that_a_release_would_write_is_not_read(released: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checksum says what is in it."""
    monkeypatch.setattr(table_files, "have_same_rows", None)
    monkeypatch.setitem(formats.FORMATS, "csv", formats.Format("csv", formats.FORMATS["csv"].write, None, lambda _: None))  # type: ignore[arg-type]
    hf.verify(released)


def test_a_group_of_a_file_holds_the_texts_that_occur_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a dictionary is written with every group: ten groups of a column of different texts were ten times its size."""
    monkeypatch.setattr(formats, "GROUP_ROWS", 1_000)
    texts, generator = pa.array([f"{k:012d}" for k in range(10_000)]), np.random.default_rng(5)
    for places in (np.arange(10_000), np.arange(10_000)[::-1].copy(), generator.integers(0, 10_000, 10_000), np.zeros(10_000, dtype=int)):
        column = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), texts)
        formats.save_frame(pa.table({"code": column}), path := tmp_path / f"{places[0]}-{places[-1]}.parquet")
        assert formats.FORMATS["parquet"].read(path).column("code").to_pylist() == column.to_pylist()
        used = len({*places.tolist()})
        assert path.stat().st_size < 20 * used + 2 * 10_000 + 5_000
