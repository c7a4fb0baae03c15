"""Files that somebody put into the current folder: none is imported, taken as settings, or mistaken for something else by its name."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf

SPY = "open({!r}, 'a').write(__name__ + '\\n')\n"


def run_in(folder: Path, program: str, **environment: str) -> str:
    """What a program prints that is run in this folder, by an interpreter that itself imports nothing from there."""
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    command = [sys.executable, "-P", "-c", textwrap.dedent(program)]
    done = subprocess.run(command, cwd=folder, env={**kept, **environment}, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("entry", [None, "", "."])
def test_a_child_imports_nothing_from_the_current_folder(tmp_path: Path, entry: str | None) -> None:
    """Neither before it knows where to import from, nor after; also where we ourselves may import from there."""
    seen = tmp_path / "seen"
    for name in ("pickle", "copyreg", "numpy", "flint", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(SPY.format(str(seen)))
    program = f"""
        import sys
        from flint import fmpz_mat
        from holdfast.lattices import algebra, long_calls
        entry = {entry!r}
        if entry is not None:
            sys.path.insert(0, entry)
        long_calls.MOMENT = -1.0
        print(algebra.rank(fmpz_mat([[1, 2], [2, 4]])))
    """
    assert run_in(tmp_path, program) == "1"
    assert not seen.exists(), seen.read_text()


def test_numba_takes_no_settings_from_the_current_folder(tmp_path: Path) -> None:
    """Where compiled code is kept would be one of them: it is loaded from there, and run. What the environment says is taken."""
    folder, modules = tmp_path / "work", tmp_path / "modules"
    folder.mkdir()
    modules.mkdir()
    (folder / ".numba_config.yaml").write_text("cache_dir: planted\n")
    (modules / "yaml.py").write_text("def safe_load(file):\n    return dict([file.read().strip().split(': ')])\n")  # enough of PyYAML
    program = """
        from holdfast.exact import _compiled
        from numba.core import config
        first = config.CACHE_DIR
        config.reload_config()
        print([first, config.CACHE_DIR])
    """
    path = os.pathsep.join([str(modules), *filter(None, [os.environ.get("PYTHONPATH")])])
    assert run_in(folder, program, PYTHONPATH=path) == "['', '']"
    assert run_in(folder, program, PYTHONPATH=path, NUMBA_CACHE_DIR=str(modules)) == str([str(modules)] * 2)
    assert sorted(path.name for path in folder.iterdir()) == [".numba_config.yaml"]


@pytest.mark.parametrize("name", ["md:data.duckdb", "sqlite:data.duckdb", ":memory:x", "data[1]*?.duckdb", "s3:data.duckdb"])
def test_the_name_of_a_duckdb_file_is_only_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """DuckDB takes some beginnings of a name for a service, another kind of database, or none."""
    import duckdb

    monkeypatch.chdir(tmp_path)
    made = duckdb.connect("plain.duckdb")
    made.execute("CREATE TABLE towns AS SELECT 'a' AS region, 3 AS people")
    made.close()
    Path("plain.duckdb").rename(name)
    table = hf.Table.from_counts(f"duckdb:///{name}", ["region"], "people", query="SELECT region, people FROM towns", public=True)
    assert np.array_equal(table.counts, [3])
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_missing_table_is_not_looked_for_among_variables() -> None:
    import duckdb
    import pyarrow as pa

    from holdfast.tables.session import private_session

    with private_session() as session:
        towns = pa.table({"region": ["a"]})
        with pytest.raises(duckdb.CatalogException, match="towns"):
            session.connection.sql("SELECT * FROM towns")
        assert towns.num_rows == 1
