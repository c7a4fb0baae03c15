"""Everything a draw needs is loaded, tried and checked before budget is reserved: what fails then costs nothing."""

from __future__ import annotations

import errno
import shutil
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.engines.rehearsal import CELLS, MOST_CELLS, rehearse
from holdfast.errors import HoldfastError, OutputProblem, RequestTooLarge
from holdfast.randomness import NoiseKey
from holdfast.samplers.one_sum_laplace import OneSumLaplace
from holdfast.tables import machine
from tests.publication.bookings import a_ledger, a_release, run, spent, state


def refused(tmp_path: Path, kind: type[Exception], *, match: str, begin: Callable[[Any], Any]) -> None:
    """The release fails so, nothing stands in the ledger, and the next one works."""
    ledger = a_ledger(tmp_path)
    with pytest.raises(kind, match=match):
        begin(ledger)
    assert state(ledger) is None
    assert spent(ledger) == 0
    assert not list(tmp_path.glob(".holdfast*"))


def test_a_sampler_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any) -> Any:
        raise RuntimeError("no draw")

    monkeypatch.setattr(OneSumLaplace, "draw", broken)
    refused(tmp_path, RuntimeError, match="no draw", begin=a_release)


def test_compiled_loops_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "holdfast.samplers._one_sum_compiled", None)
    refused(tmp_path, ImportError, match="_one_sum_compiled", begin=a_release)


def test_memory_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.engines import rehearsal

    check = machine.check_memory
    monkeypatch.setattr(rehearsal, "check_memory", lambda needed, *told: check(needed + (1 << 40), *told))
    monkeypatch.setattr(machine, "available_memory", lambda: 1 << 30)
    refused(tmp_path, RequestTooLarge, match=r"A draw of 4 cells .* 1\.0 GiB are left .* Nothing was charged", begin=a_release)


class TestTheOutputFolder:
    def test_a_full_disk_and_a_used_up_quota(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for number, says in ((errno.ENOSPC, "disk is full"), (errno.EDQUOT, "quota is used up"), (errno.EROFS, "can only be read")):

            def fails(*given: Any, number: int = number, **named: Any) -> None:
                raise OSError(number, "")

            place = tmp_path / str(number)
            place.mkdir()
            with monkeypatch.context() as patched:
                patched.setattr("os.mkdir", fails)
                refused(place, OutputProblem, match=says, begin=partial(run, folder=place / "out"))

    def test_too_little_room(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        usage = shutil.disk_usage(tmp_path)
        monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=10))
        refused(tmp_path, OutputProblem, match="MB of the disk or more, and 0 MB are left", begin=partial(run, folder=tmp_path / "out"))

    def test_the_trial_leaves_nothing(self, tmp_path: Path) -> None:
        ledger = a_ledger(tmp_path)
        run(ledger, tmp_path / "out")
        assert state(ledger) == "closed"
        assert not list(tmp_path.glob(".holdfast*"))


CODES = [str(number) for number in range(300)]
TABLES: dict[str, tuple[hf.Universe, list[Any]]] = {
    "one sum": (hf.Universe.product({"a": CODES, "b": ["x", "y"]}), [hf.margin("b")]),
    "a large sum": (hf.Universe.product({"a": CODES, "b": CODES, "c": ["x", "y"]}), [hf.total()]),
    "a grid": (hf.Universe.product({"a": CODES[:3], "b": CODES[:3]}), [hf.margin("a"), hf.margin("b")]),
    "a large grid": (hf.Universe.product({"a": CODES, "b": CODES, "c": ["x", "y", "z"]}), [hf.margin("a", "c"), hf.margin("b", "c")]),
    "levels": (
        hf.Universe.product({"a": CODES[:4], "b": CODES[:4], "c": CODES[:4]}),
        [hf.margin("a"), hf.margin("b"), hf.margin("c")],
    ),
    "general": (hf.Universe.product({"a": CODES[:9]}), [hf.subset("a", CODES[:5]), hf.subset("a", CODES[3:8])]),
    "free": (hf.Universe.product({"a": CODES[:9]}), []),
}
MECHANISMS = (
    hf.GeneralizedGaussian(sigma_squared="100"),
    hf.RoundedProjection(epsilon="1/4", per="distance"),
    hf.GeneralizedLaplace(epsilon="1/4", per="distance"),
)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=["gaussian", "rounded", "laplace"])
def test_every_kind_of_sampler_is_tried_on_few_cells(name: str, mechanism: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        plan = hf.plan(*TABLES[name], mechanism)
    except HoldfastError:
        assert name in ("a large grid", "levels")  # Laplace noise
        return
    taken: list[int] = []
    stream = NoiseKey.stream

    def counted(key: NoiseKey, *label: Any) -> Any:
        taken.append(0)
        return stream(key, *label)

    monkeypatch.setattr(NoiseKey, "stream", counted)
    rehearse(plan.drawing)
    assert len(taken) == len({type(choice.sampler) for choice in plan.drawing.choices.values()})
    assert CELLS < MOST_CELLS


def test_a_rehearsal_changes_no_draw(tmp_path: Path) -> None:
    """What is drawn afterwards comes from the release's own key."""
    universe, keep = TABLES["one sum"]
    table = hf.Table(universe, np.full(len(universe), 7))
    plan = hf.plan(table, keep, hf.GeneralizedLaplace(epsilon=Fraction(1, 4), per="distance"))
    made = [
        hf.release(table, keep, hf.GeneralizedLaplace(epsilon=Fraction(1, 4), per="distance"), key=NoiseKey.for_tests("same"))
        for _ in range(2)
    ]
    rehearse(plan.drawing)
    again = hf.release(table, keep, hf.GeneralizedLaplace(epsilon=Fraction(1, 4), per="distance"), key=NoiseKey.for_tests("same"))
    assert made[0].table.counts.tolist() == made[1].table.counts.tolist() == again.table.counts.tolist()
