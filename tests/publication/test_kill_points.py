"""Releases through a ledger that are killed at every step, or race: no output without a committed spend, no spend lost, the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import BudgetExceeded, IdenticalRelease, OutputProblem, WrongState
from holdfast.ledger.state import LOCK_SECONDS, WAITING
from tests.ledger.conftest import place, server  # noqa: F401  # fixtures
from tests.publication.ledger_driver import CODES

ROOT = Path(__file__).parents[2]
TRIALS = 400
"""Ledgers at hand for one test on PostgreSQL, each in a schema of its own."""
DONE = 0
REFUSED_STATE, REFUSED_BUDGET = CODES[WrongState], CODES[BudgetExceeded]
REFUSED_CLOSED, REFUSED_OUTPUT = CODES[IdenticalRelease], CODES[OutputProblem]


def drive(*arguments: str) -> Any:
    command = [sys.executable, "-W", "error", "-m", "tests.publication.ledger_driver", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    assert set(done.stderr.splitlines()) <= {WAITING % LOCK_SECONDS}  # many processes take turns
    return json.loads(done.stdout)


@pytest.fixture
def template(place: str, request: pytest.FixtureRequest) -> str:  # noqa: F811
    """Places by number: {} stands for it."""
    if "://" not in place:
        return place + ".{}"
    import psycopg

    schema = place.rsplit("%3D", 1)[1]
    with psycopg.connect(request.getfixturevalue("server")) as connection:
        for number in range(TRIALS):
            connection.execute(f"CREATE SCHEMA {schema}_{number}")
    return place + "_{}"


@pytest.mark.long
def test_killed_at_every_point_and_resumed(template: str) -> None:
    """Before and after every statement, commit, file and part of the draw; then resumes, killed too, and resumed again.

    After each kill: a folder under the final name only where the ledger says committed or later, the charge spent just where it is
    reserved, a sound ledger. After the resume: folder, ledger and all files beside it as after a run without a kill. A second resume is
    refused and changes nothing.
    """
    found = drive("kill", template, "no", "0", "12")
    assert found["wrong"] == []
    assert len(found["points"]) >= 88  # a later version may add points, not lose them
    assert len(found["points"]) + found["resumes"] >= 110
    assert found["resumes"] >= 20
    kinds = Counter(found["points"])
    assert kinds["os.rename"] == 9  # of the folder; of the second secret, and of the witness after each write
    assert kinds["a part is drawn"] == 4  # each of three, and the end of the step
    assert kinds["before the commit"] >= 9
    assert {"os.mkdir", "os.chmod", "open", "shutil.rmtree", "after a statement", "after the end"} <= kinds.keys()
    assert list(found["states"]) == ["None", "reserved", "drawing", "staged", "committed", "published", "closed"]


@pytest.mark.long
def test_killed_while_another_release_is_replaced(tmp_path: Path) -> None:
    """With force: until the spend is committed the folder is the old one, and no part of the old one is left in the end."""
    found = drive("kill", f"{tmp_path}/ledger{{}}", "force", "170", "30")
    assert found["wrong"] == []
    assert set(found["states"]) == {"drawing", "staged", "committed", "published", "closed"}
    assert Counter(found["points"])["os.rmdir"] == 2  # of the trial folder, and of what was replaced


@pytest.mark.long
def test_without_a_secret_what_was_not_staged_cannot_be_resumed(tmp_path: Path) -> None:
    found = drive("without_secret", f"{tmp_path}/ledger{{}}")
    assert {"reserved", "drawing", "staged", "committed"} <= found.keys()
    for state, told in found.items():
        for one in told:
            assert one["problems"] == []
            if state in ("reserved", "drawing"):
                assert one["code"] == REFUSED_STATE
                assert one["same"]
                assert one["refunded"] == (state == "reserved")
                assert one["spent"] == ("0" if state == "reserved" else "1/2")
            else:
                assert one["code"] == (REFUSED_CLOSED if state == "closed" else DONE)
                assert one["spent"] == "1/2"


@pytest.mark.long
def test_many_processes_one_release(place: str) -> None:  # noqa: F811
    """One reserves; the others find it begun, or closed, or its folder there already. One folder, one charge."""
    found = drive("race", place, "16", "one", "no")
    assert found["codes"].count(DONE) == 1
    assert set(found["codes"]) <= {DONE, REFUSED_STATE, REFUSED_CLOSED, REFUSED_OUTPUT}
    assert (found["left"], found["bad"], found["problems"]) == (["r1"], [], [])
    assert (found["spent"], found["reserved"]) == ("1/2", 1)


@pytest.mark.long
def test_many_processes_go_on_with_one_release(place: str) -> None:  # noqa: F811
    """All resume what was killed while it was drawn: they draw the same, one publishes, and no folder is half written or left over."""
    found = drive("race", place, "16", "one", "resume")
    assert found["codes"].count(DONE) >= 1
    assert set(found["codes"]) <= {DONE, REFUSED_STATE, REFUSED_CLOSED}
    assert (found["left"], found["bad"], found["problems"]) == (["r1"], [], [])
    assert (found["spent"], found["reserved"]) == ("1/2", 1)


@pytest.mark.long
def test_many_processes_race_for_the_last_budget(place: str) -> None:  # noqa: F811
    """Two releases fit, a third would not: just two succeed, with a folder each."""
    found = drive("race", place, "24", "own", "no")
    assert Counter(found["codes"]) == {DONE: 2, REFUSED_BUDGET: 22}
    assert (len(found["left"]), found["bad"], found["problems"]) == (2, [], [])
    assert (found["spent"], found["reserved"]) == ("1", 2)
