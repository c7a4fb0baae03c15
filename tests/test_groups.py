"""What `make test` leaves to the long group: cases by their names, and examples of properties by their number."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import examples

ROOT = Path(__file__).parents[1]


def test_cases_that_are_not_named_are_long_and_those_named_are_not() -> None:
    """One file is enough: a run of all files fails by itself where a test has no ordinary case."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-n0", "-m", "long"]
    ran = subprocess.run([*command, "tests/exact/test_uniform.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "test_compositions_are_uniform[2-5]" in ran.stdout
    assert "test_compositions_are_uniform[3-3]" not in ran.stdout


@pytest.mark.parametrize(("given", "some"), [(400, 133), (40, 13), (20, 10), (10, 10), (3, 3)])
def test_a_third_of_the_examples_and_never_fewer_than_ten_of_many(given: int, some: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "_chosen", {"all": True})
    assert examples.examples(given) == given
    examples.choose(every=False)
    assert examples.examples(given) == some
