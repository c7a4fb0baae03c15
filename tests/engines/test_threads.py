"""The same bytes from any number of threads and any size of pieces, from a file to the published counts; failures end all threads."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from holdfast.engines import local
from holdfast.engines.local import run_all
from holdfast.exposure import cells as exposure_cells
from holdfast.invariants import rows
from holdfast.lattices import geography, reduction
from holdfast.tables import cells, columns, readers, session, universe

CELLS = ["state", "county", "block", "sex"]
LEVELS: dict[Any, Any] = {"state": {"sex": "1/4"}, "county": {"total": "1/4"}, "block": "1/2"}
MECHANISMS: dict[str, Any] = {
    "one sum": hf.GeneralizedGaussian(rho="1/10"),
    "laplace": hf.GeneralizedLaplace(epsilon="1/2"),
    "levels": hf.GeneralizedGaussian(rho="1/10", levels=LEVELS),
}
KNOWN = {
    "one sum": "6db614a801e049e1",
    "laplace": "716cb092b8b33721",
    "levels": "319fe7cb19b80576",
}
"""SHA-256 of the published counts, the first 16 digits. They change with the stream version alone."""


def write(path: Path, *, group: int = 1 << 20, dictionaries: bool = True, shuffled: bool = False) -> Path:
    """Counties of one to five blocks, in nine states; blocks and states with codes of some length."""
    rng = np.random.default_rng(5)
    county = np.repeat(np.arange(40), rng.integers(1, 6, 40))
    block = np.repeat(np.arange(len(county)), 2)
    names = {"state": county[block] * 9 // 40, "county": county[block], "block": block, "sex": np.arange(len(block)) % 2}
    texts = {name: pa.array([f"{name}-{code:03}" for code in codes]) for name, codes in names.items()}
    frame = pa.table({**texts, "n": pa.array(rng.integers(0, 40, len(block)))})
    if shuffled:
        frame = frame.take(pa.array(rng.permutation(len(block))))
    pq.write_table(frame, path, row_group_size=group, use_dictionary=dictionaries)
    return path


def published(path: Path, name: str, *, public: bool = True) -> np.ndarray:
    table = hf.Table.from_counts(path, CELLS, "n", public=public)
    return hf.release(table, [hf.margin("state")], MECHANISMS[name], hf.NoiseKey.for_tests(1), release_id="r").table.counts


def in_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for module, name in (
        *((module, "BATCH") for module in (columns, cells, universe, rows, geography, exposure_cells)),
        (readers, "BATCH_ROWS"),
        (session, "BATCH_ROWS"),
        (reduction, "_PIECE"),
    ):
        monkeypatch.setattr(module, name, size)


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_known_answers_from_any_number_of_threads_and_pieces_of_any_size(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = published(write(tmp_path / "t.parquet"), name)
    assert hashlib.sha256(counts.astype("<i8").tobytes()).hexdigest()[:16] == KNOWN[name]
    monkeypatch.setattr(local, "THREADED_CELLS", 0)
    monkeypatch.setattr(readers, "THREADED_ROWS", 10)
    for threads, size in ((1, 1), (2, 7), (5, 64)):
        for module in (local, readers):
            monkeypatch.setattr(module, "processors", lambda threads=threads: threads)
        in_pieces(monkeypatch, size)
        for group, dictionaries in ((11, True), (50, False)):
            path = write(tmp_path / "t.parquet", group=group, dictionaries=dictionaries)
            assert np.array_equal(published(path, name), counts), (threads, size, group)


def test_a_list_in_any_order_gives_the_same_where_it_is_not_public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = published(write(tmp_path / "t.parquet"), "one sum", public=False)
    in_pieces(monkeypatch, 7)
    path = write(tmp_path / "s.parquet", group=13, shuffled=True)
    assert np.array_equal(published(path, "one sum", public=False), counts)


def test_every_task_is_run_once_and_threads_share_them() -> None:
    meet, ran = threading.Barrier(3, timeout=30), []

    def run(task: Any) -> int:
        if task < 3:
            meet.wait()  # three threads at once, or never
        ran.append(task)
        return 2

    told: list[int] = []
    run_all(list(range(50)), run, 3, told.append)  # type: ignore[arg-type]
    assert sorted(ran) == list(range(50))
    assert told == sorted(told)
    assert told[-1] <= 100


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_or_a_signal_ends_all_threads(kind: type[BaseException]) -> None:
    begun = []

    def run(task: Any) -> int:
        begun.append(task)
        if task == 4:
            raise kind("this one")
        return 1

    before = threading.active_count()
    with pytest.raises(kind, match="this one"):
        run_all(list(range(100_000)), run, 2, lambda done: None)  # type: ignore[arg-type]
    assert threading.active_count() == before
    assert len(begun) < 100_000
