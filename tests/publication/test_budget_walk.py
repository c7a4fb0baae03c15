"""The way of a budget from the run file to the noise: read once, held as one number, never inverted and inverted back."""

from __future__ import annotations

import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import holdfast as hf
from holdfast.runfiles.runfile import load_run

RUN = """
[table]
source = "t.csv"
cells = ["region", "town"]
count = "people"
public = true
[keep]
margins = [["region"]]
[release]
id = "walk"
mechanism = "{mechanism}"
{name} = "{value}"
per = "distance"
"""


@pytest.mark.parametrize(
    ("mechanism", "name", "value", "inversions"),
    [
        ("generalized-laplace", "epsilon", "191/997", 1),
        ("rounded-projection", "epsilon", "191/997", 1),
        ("generalized-gaussian", "rho", "191/997", 0),
    ],
)
def test_the_walk(mechanism: str, name: str, value: str, inversions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is read once. Target and promise hold that very number. 1 / epsilon is taken once, for the scale in the name of a law on
    the integers; 1 / rho never: sigma_squared is 1 / (2 rho), once.
    """
    (tmp_path / "t.csv").write_text("region,town,people\nn,A,3\nn,B,2\ns,C,5\ns,D,9\n")
    (tmp_path / "run.toml").write_text(RUN.format(mechanism=mechanism, name=name, value=value))
    budget, inverted, read = Fraction(value), Counter[str](), Counter[str]()
    divide = Fraction.__rtruediv__

    def counted(self: Fraction, other: Any) -> Any:
        caller = sys._getframe(1).f_code
        if self == budget and other == 1 and caller.co_name != "_row_words":  # how many words to take at once: no law
            inverted[caller.co_filename] += 1
        return divide(self, other)

    def reading(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == "exact_fraction" and value in frame.f_locals.values():
            read[frame.f_code.co_filename] += 1

    monkeypatch.setattr(Fraction, "__rtruediv__", counted)
    sys.setprofile(reading)
    try:
        run = load_run(tmp_path / "run.toml")
        table = run.read_table()
        release = hf.release(table, run.keep, run.mechanism, key=hf.NoiseKey.for_tests(1))
    finally:
        sys.setprofile(None)
    asked = getattr(run.mechanism, name)
    assert asked == budget
    assert sum(read.values()) == 1
    assert sum(inverted.values()) <= inversions
    assert getattr(release.guarantee, name) == budget
    target: Any = release.plan.drawing.channel.target
    if name == "epsilon":
        assert getattr(target, name) is asked
    else:
        assert target.sigma_squared == 1 / (2 * budget)
