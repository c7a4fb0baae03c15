"""Many processes at once, and processes that are killed: nothing is overspent, nothing is lost, nothing is half done."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> Any:
    command = [sys.executable, "-W", "error", "-m", "tests.ledger.driver", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.long
def test_32_processes_race_for_the_last_budget(place: str) -> None:
    """40 asks for a tenth each: just ten are granted, whoever they are, and the ledger is whole."""
    found = run("race", place, "32")
    assert found["problems"] == []
    assert (found["spent"], found["left"]) == ("1", "0")
    assert all(code in (0, 1, 2) for code in found["codes"])
    assert sum(found["codes"]) * Fraction(1, 10) == 1


@pytest.mark.long
def test_processes_that_make_one_ledger_at_once(place: str) -> None:
    found = run("create", place, "8")
    assert found["codes"] == [0] * 8
    assert len(found["ids"]) == 1
    assert found["problems"] == []


@pytest.mark.long
def test_a_run_killed_at_any_point_can_be_finished(place: str, request: pytest.FixtureRequest) -> None:
    """Killed after every statement, before and after every commit of every step, and from outside at odd moments."""
    if "://" in place:
        import psycopg

        schema = place.rsplit("%3D", 1)[1]
        with psycopg.connect(request.getfixturevalue("server")) as connection:
            for name in ["count", *range(200), *(f"odd{index}" for index in range(10))]:
                connection.execute(f"CREATE SCHEMA {schema}_{name}")
        template = place + "_{}"
    else:
        template = place + ".{}"
    found = run("kill", template, "10")
    points = found[:-10]
    assert len(points) >= 40
    assert all(one["code"] == -9 for one in points)
    for one in found:
        assert one["problems"] == []
        assert one["spent_once"]
        assert one["finished"]
        assert one["had_secrets"] == (one["state"] in ("reserved", "drawing", "staged", "committed", "published"))
    assert {one["state"] for one in points} == {None, "reserved", "drawing", "staged", "committed", "published", "closed"}


def test_a_ledger_that_may_only_be_read() -> None:
    found = run("read_only", "")
    assert found["problems"] == []
    assert found["granted"] == "1"
    assert "Left" in found["shown"]
    for name in ("reserve", "grant"):
        assert "cannot be used with the rights at hand" in found[name]
    assert "cannot be opened" in found["create"]
