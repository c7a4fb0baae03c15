"""Memory is compared with what the machine has before it is taken."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.errors import RequestTooLarge
from holdfast.tables import machine

GIB = 1 << 30


@pytest.fixture
def sixteen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "available_memory", lambda: 16 * GIB)


CODES = [f"{number:04}" for number in range(1000)]


@pytest.mark.usefixtures("sixteen")
class TestAThousandMillionCells:
    universe = hf.Universe.product({"a": CODES, "b": CODES, "c": CODES})

    @pytest.mark.parametrize("keep", [[], [hf.margin("a")]], ids=["nothing", "a margin"])
    def test_a_plan_is_refused_with_both_figures(self, keep: list[Any]) -> None:
        with pytest.raises(RequestTooLarge, match=r"1,000,000,000 cells .* of memory or more, and 16\.0 GiB are left"):
            hf.plan(self.universe, keep, hf.GeneralizedLaplace(epsilon="1", per="distance"))

    def test_a_table_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine, "available_memory", lambda: 4 * GIB)
        (tmp_path / "counts.csv").write_text("a,b,c,count\n0001,0001,0001,3\n")
        with pytest.raises(RequestTooLarge, match=r"7\.5 GiB of memory or more, and 4\.0 GiB are left"):
            hf.Table.from_counts(tmp_path / "counts.csv", cells=["a", "b", "c"], count="count", universe=self.universe)

    def test_many_constraints_over_many_cells(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine, "available_memory", lambda: GIB)
        universe = hf.Universe.product({"a": CODES, "b": CODES[:500]})
        with pytest.raises(RequestTooLarge, match="500,000 cells with 256 kept constraints"):
            hf.lattice(universe, (hf.subset("a", [code]) for code in CODES))


def test_what_the_system_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = machine.available_memory()
    assert found is None or found > 0
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("600000\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 100000\n")
    monkeypatch.setattr(machine, "_GROUP", tmp_path)
    assert machine.memory_of_group() == 500_000
    assert machine.available_memory() == 500_000
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.memory_of_group() is None


def test_the_limit_of_the_process() -> None:
    program = "import holdfast.tables.machine as m; print(m.memory_of_process())"
    limit = 4 * GIB
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert 0 < int(ran.stdout) < limit
    assert machine.memory_of_process() is None or resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def test_where_nothing_is_said_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("memory_of_machine", "memory_of_group", "memory_of_process"):
        monkeypatch.setattr(machine, name, lambda: None)
    assert machine.available_memory() is None
    machine.check_memory(1 << 60, "Anything", "")


def test_a_number_of_bytes_beyond_any_float_is_refused_in_words() -> None:
    with pytest.raises(RequestTooLarge, match="GiB"):
        machine.check_memory(10**400, "The table", "Use fewer cells.")
