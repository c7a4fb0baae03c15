"""Algebra that runs long inside one call: refused with a figure, or made in a child that can be ended."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flint import fmpz_mat

import holdfast as hf
from holdfast.errors import InvalidParameter, NoExactSampler, RequestTooLarge
from holdfast.lattices import algebra, components, gram_schmidt, long_calls, smith

CALLS: dict[str, Callable[[fmpz_mat], Any]] = {
    "rank": algebra.rank,
    "pivot columns": algebra.pivot_columns,
    "echelon form": algebra.echelon_form,
    "determinant": algebra.determinant_squared,
    "kernel": algebra.kernel_basis,
    "short basis": algebra.reduced_basis,
    "split": lambda matrix: components.finest_split(matrix.transpose()),
    "Smith form": smith.smith,
    "orthogonal basis": lambda matrix: gram_schmidt.gram_schmidt(matrix).determinants,
}


def dense(rows: int, columns: int, bits: int) -> fmpz_mat:
    chosen = random.Random(f"{rows} x {columns}")
    return fmpz_mat(rows, columns, [chosen.randrange(-(2**bits) + 1, 2**bits) for _ in range(rows * columns)])


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name not in ("split", "kernel"))) for name in CALLS])
def test_a_child_gives_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = fmpz_mat([[2, 0, 0], [1, 3, 0], [4, 5, 6], [7, 8, 10]])
    here = CALLS[name](matrix)
    made: list[str] = []
    in_child = long_calls.in_child

    def noted(module: str, function: str, *arguments: Any) -> Any:
        made.append(function)
        return in_child(module, function, *arguments)

    monkeypatch.setattr(long_calls, "in_child", noted)
    monkeypatch.setattr(long_calls, "MOMENT", -1.0)
    assert CALLS[name](matrix) == here
    assert made


def test_errors_of_a_child_are_raised_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_calls, "MOMENT", -1.0)
    with pytest.raises(InvalidParameter, match="independent"):
        gram_schmidt.gram_schmidt([[1, 2], [2, 4]])


def test_a_child_that_is_killed_and_one_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RequestTooLarge, match="ended by the system"):
        long_calls.in_child("os", "_exit", 3)
    monkeypatch.setattr(long_calls, "MOMENT", -1.0)
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    assert algebra.rank([[1, 2], [2, 4]]) == 1


def test_no_secret_goes_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_KEY", "secret")
    monkeypatch.setenv("OTHER", "kept")
    assert long_calls.in_child("os", "getenv", "HOLDFAST_KEY") is None
    assert long_calls.in_child("os", "getenv", "OTHER") == "kept"


class TestDenseMatrices:
    """350 kept rows over 400 cells, entries of 31 bits: it ran for hours."""

    matrix = np.random.default_rng(7).integers(-(2**31) + 1, 2**31, size=(350, 400))
    figure = r"350 x 400 whole numbers of up to 31 bits would take about [0-9,]+ minutes, which is refused"

    def test_samplers_are_refused(self) -> None:
        universe = hf.Universe.product({"cell": [str(number) for number in range(400)]})
        with pytest.raises(RequestTooLarge, match=self.figure):
            hf.plan(universe, [hf.linear(self.matrix)], hf.GeneralizedGaussian(sigma_squared="100"))

    def test_a_smith_form_is_refused(self) -> None:
        with pytest.raises(RequestTooLarge, match=self.figure):
            smith.smith(self.matrix)

    def test_matrices_of_zeros_and_ones_are_not(self) -> None:
        """600 overlapping sums over 800 cells have minors near 1: a Hermite form takes seconds."""
        chosen = np.zeros((600, 800), dtype=np.int64)
        for row in range(600):
            chosen[row, row : row + 3] = 1
        assert long_calls.estimated_seconds("Hermite form", algebra.as_matrix(chosen)) < 60


def test_ordinary_sizes_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child takes longer to begin than they take in all."""
    monkeypatch.setattr(long_calls, "in_child", None)
    for rows, columns, bits in ((3, 5, 31), (20, 30, 10), (40, 60, 1)):
        for name in ("kernel", "split"):
            assert CALLS[name](dense(rows, columns, bits)) is not None, "in this process: there is no child to ask"


STOPPED = """
    import os, signal, sys, threading, time
    from flint import fmpz_mat
    from holdfast.lattices import algebra, gram_schmidt, long_calls, smith
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what it puts in the background with SIGINT ignored
    long_calls.MOST_SECONDS = float("inf")
    matrix = fmpz_mat(250, 300, [pow(3, k, 2**61 - 1) % 2**31 for k in range(250 * 300)])
    large = fmpz_mat(300, 60, [pow(3, k, 2**3217 - 1) for k in range(300 * 60)])
    print("begun", flush=True)
    threading.Timer(AFTER, os.kill, [os.getpid(), signal.SIGINT]).start()
    try:
        CALL
    except KeyboardInterrupt:
        print("stopped")
"""
PHASES = {
    "Hermite form": "algebra.kernel_basis(matrix)",
    "short basis": "algebra.reduced_basis(large)",
    "Smith form": "smith.smith(matrix)",
    "orthogonal basis": "gram_schmidt.gram_schmidt(large)",
}


def program(call: str, after: float) -> str:
    return textwrap.dedent(STOPPED).replace("CALL", call).replace("AFTER", str(after))


@pytest.mark.parametrize(
    "call", [pytest.param(call, id=name, marks=[pytest.mark.long] * (name != "Hermite form")) for name, call in PHASES.items()]
)
def test_a_long_call_is_stopped(call: str) -> None:
    """The watch-dog is for hangs: what is stopped here would take minutes."""
    ran = subprocess.run([sys.executable, "-c", program(call, 2.0)], capture_output=True, text=True, timeout=40, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "begun\nstopped\n", "")


def children_of(pid: int) -> list[int]:
    found = []
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8") as file:
                if int(file.read().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(entry))
        except OSError:
            continue
    return found


@pytest.mark.long
def test_a_child_ends_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", program(PHASES["Hermite form"], 1000.0)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "begun\n"
        begun = time.monotonic()
        while not (children := children_of(parent.pid)):
            assert time.monotonic() - begun < 30
            time.sleep(0.05)
        time.sleep(2)  # so that it has said that it wants to end with its parent
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    begun = time.monotonic()
    while any(os.path.exists(f"/proc/{child}") for child in children):
        assert time.monotonic() - begun < 30
        time.sleep(0.05)


def test_l2_refusals_prepare_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2,000 cells neither the samplers of the parts nor a pilot can say that rejection ends."""
    from holdfast.samplers import l2_laplace

    for module, name in ((l2_laplace, "estimate_acceptance"), (l2_laplace, "L2Rejection")):
        monkeypatch.setattr(module, name, None)
    codes = [str(number) for number in range(1000)]
    universe = hf.Universe.product({"a": codes, "b": ["x", "y"]})
    with pytest.raises(NoExactSampler, match=r"would need more than 1e\+20 tries"):
        hf.plan(universe, [hf.margin("b")], hf.GeneralizedLaplace(epsilon="1", norm="l2", per="distance"))
