"""How loops are compiled: kept in a folder where there is one, in memory where not, and announced once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
from holdfast.exact._loop_compiled import loop
SOURCE
print(loop(NAME)(21))
"""
LOOPS = "def double(x):\n    return 2 * x\ndef triple(x):\n    return 3 * x\n"
KEPT, IN_MEMORY = "some seconds for each kind of noise, once on this machine", "NUMBA_CACHE_DIR"


@pytest.mark.ordinary("True")
@pytest.mark.parametrize("has_a_file", [True, False])
def test_compiled_and_announced_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_a_file: bool) -> None:
    """Code that stands in no file has no folder to be kept in either, as for a user without a home and a read-only installation. Where
    there is a folder, the second process compiles another loop, and says nothing: ten commands said so ten times.
    """
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache")) if has_a_file else monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "loops.py").write_text(LOOPS)
    program = PROGRAM.replace("SOURCE", "from loops import double, triple" if has_a_file else LOOPS)
    said = []
    for name, made in (("double", "42"), ("triple", "63")):
        ran = subprocess.run(
            [sys.executable, "-c", program.replace("NAME", name)], cwd=tmp_path, capture_output=True, text=True, timeout=100
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        *announced, result = ran.stdout.splitlines()
        assert result == made
        said.append(announced)
    first, second = said
    (line,) = first
    assert (KEPT in line, IN_MEMORY in line) == (has_a_file, not has_a_file)
    assert second == ([] if has_a_file else first), "the message is given once"
    assert len([*tmp_path.rglob("*.nbi")]) == (2 if has_a_file else 0)  # both are kept


SPOILED = """\
import logging, os, pathlib, shutil, sys
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
from holdfast.exact._loop_compiled import loop
from loops import double, triple
made = loop(double), loop(triple)
SPOIL
print(made[0](21), made[1](14))
"""
SPOILS = {
    "the folder is a file now": "shutil.rmtree('cache'); pathlib.Path('cache').write_text('')",
    "what it holds is damaged": "[path.write_bytes(b'damaged') for path in pathlib.Path('cache').rglob('*.nb*')]",
}


@pytest.mark.long
@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_a_cache_that_cannot_be_used_is_told_and_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: str) -> None:
    """It ended a release after its budget was charged."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "loops.py").write_text(LOOPS)
    said = []
    for what in ("", spoil):
        program = SPOILED.replace("SPOIL", what)
        ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert (ran.returncode, ran.stderr, ran.stdout.splitlines()[-1]) == (0, "", "42 42")
        said.append(ran.stdout)
    assert "compiled in memory" not in said[0]
    assert said[1].count("they are compiled in memory. Name another folder in NUMBA_CACHE_DIR.") == 1
