"""Mechanisms that read input, one that the product does not know (one file and one row) and the cell key method, go the whole way: plan,
ledger, release, resume after a kill, card, verify, report, command line.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.cellkey import PerturbationTable, write_table
from holdfast.errors import InvalidParameter
from holdfast.ledger import Ledger
from holdfast.mechanisms import MECHANISMS
from holdfast.mechanisms.keys import InvalidKey
from holdfast.randomness import NoiseKey
from holdfast.testing.fit import ALPHA, check_fit_categories, chi_square_p_value
from tests.toys.conditional import ByEnumeration, ToyConditional, compositions

ROOT = Path(__file__).parents[2]
del MECHANISMS[ToyConditional.name]  # known to the processes started here, and not to the other tests of this one
NOISE = PerturbationTable.from_probabilities({1: {-1: "1/2", 1: "1/2"}}, 2**32)
CONDITIONAL = """
[table]
source = "towns.csv"
cells = ["region", "town"]
count = "people"
public = true
[keep]
margins = [["region"]]
[release]
id = "toy"
mechanism = "toy-conditional"
epsilon = "1/2"
per = "distance"
ledger = "ledger.sqlite"
"""
KEYS = """
[table]
source = "towns.csv"
cells = ["region", "town"]
count = "people"
public = true
cell_key = "ckey"
[keep]
[release]
id = "toy"
mechanism = "cell-key"
perturbation_table = "noise.json"
ledger = "ledger.sqlite"
"""
RUNS = {"toy-conditional": CONDITIONAL, "cell-key": KEYS}
TOWNS = "region,town,people,ckey\nnorth,A,3,5\nnorth,B,2,4000000000\nsouth,C,0,0\nsouth,D,1,7\n"


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.toys.command", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOLDFAST_KEY": "a secret of sixteen bytes or more", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def start(tmp_path: Path, name: str) -> None:
    (tmp_path / "towns.csv").write_text(TOWNS)
    (tmp_path / "run.toml").write_text(RUNS[name])
    write_table(NOISE, tmp_path / "noise.json")
    if name == "cell-key":
        Ledger.open(tmp_path / "ledger.sqlite", create=True, needs_grants=False)
        return
    granted = run(
        tmp_path, "ledger", "grant", "towns", "--ledger", "ledger.sqlite", "--epsilon", "5", "--approver", "A", "--reason", "test"
    )
    assert granted.returncode == 0, granted.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", [*RUNS])
def test_it_goes_the_whole_way(tmp_path: Path, name: str) -> None:
    start(tmp_path, name)
    planned = run(tmp_path, "plan", "run.toml", "--json")
    assert planned.returncode == 0, planned.stderr
    fields = json.loads(planned.stdout)
    assert fields["mechanism"]["name"] == name
    assert fields["expected_error"]["cell_standard_deviation"] == {"smallest": None, "median": None, "largest": None}
    killed = run(tmp_path, "release", "run.toml", "-o", "out", TOY_KILL=str(tmp_path / "drawn.json"))
    assert killed.returncode == -9
    assert not (tmp_path / "out").exists()
    again = run(tmp_path, "release", "run.toml", "-o", "out")
    assert again.returncode != 0
    assert "--resume" in again.stderr
    resumed = run(tmp_path, "release", "run.toml", "-o", "out", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert not list(tmp_path.glob(".holdfast*"))
    with open(tmp_path / "out/table.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["people"]) for row in rows] == json.loads((tmp_path / "drawn.json").read_text())
    assert {row["standard_deviation"] for row in rows} == {""}
    verified = run(tmp_path, "verify", "out", "--json")
    assert verified.returncode == 0, verified.stderr
    card = json.loads((tmp_path / "out/card.json").read_text())
    assert card["mechanism"]["name"] == fields["mechanism"]["name"]
    assert card["release"]["ledger"] is not None
    for page in ("statement.html", "report.html"):
        assert fields["mechanism"]["name"].replace("-", " ").capitalize() in (tmp_path / "out" / page).read_text()
    shown = run(tmp_path, "ledger", "show", "towns", "--ledger", "ledger.sqlite", "--json")
    assert shown.returncode == 0, shown.stderr
    refused = run(tmp_path, "release", "run.toml", "-o", "second")
    assert refused.returncode != 0


def table(counts: list[int], keys: list[int] | None = None) -> hf.Table:
    universe = hf.Universe.product({"region": ["north", "south"], "town": ["A", "B"]})
    return hf.Table(universe, np.array(counts, dtype=np.int64), cell_keys=None if keys is None else np.array(keys, dtype=np.int64))


def test_the_conditional_law_by_enumeration() -> None:
    """Every published table has the total of its block and no negative count; frequencies agree with the enumerated law, and would not
    with one whose epsilon is a quarter off.
    """
    sampler = ByEnumeration(3, ToyConditional(epsilon="1/2").epsilon)
    x = np.array([[2, 1, 0]] * 20_000, dtype=np.int64)
    with NoiseKey.for_tests("toy conditional").stream("a") as words:
        drawn = sampler.publish(x, None, words)
    assert (drawn.sum(axis=1) == 3).all()
    assert (drawn >= 0).all()
    counts = Counter(map(tuple, drawn.tolist()))
    check_fit_categories(counts, enumerated(x[0], 0.25), name="toy conditional law")
    wrong = enumerated(x[0], 0.25 * 1.25)
    order = list(wrong)
    assert chi_square_p_value([counts[y] for y in order], [wrong[y] for y in order], len(x)) < ALPHA


def enumerated(x: Any, rate: float) -> dict[tuple[int, ...], float]:
    weights = {y: float(np.exp(-rate * np.abs(np.array(y) - x).sum())) for y in compositions(int(x.sum()), len(x))}
    return {y: weight / sum(weights.values()) for y, weight in weights.items()}


def test_input_reaches_only_the_engine() -> None:
    """Twin tables have the same plan; the same key on other counts or other cell keys draws from another subkey."""
    keep = [hf.margin("region")]
    first, second = table([3, 2, 0, 1]), table([2, 3, 1, 0])
    assert (
        hf.plan(first, keep, ToyConditional(epsilon="1/2")).to_fields() == hf.plan(second, keep, ToyConditional(epsilon="1/2")).to_fields()
    )
    key = NoiseKey.for_tests(1)
    made = hf.release(first, keep, ToyConditional(epsilon="1/2"), key=key, release_id="a")
    assert made.table.counts.reshape(2, 2).sum(axis=1).tolist() == [5, 1]
    assert (made.table.counts >= 0).all()
    looked_up = hf.release(table([3, 0, 0, 1], [5, 0, 0, 4000000000]), [], hf.CellKey(table=NOISE), key=key, release_id="b").table.counts
    assert looked_up.tolist() == [2, 0, 0, 2]


def test_what_is_missing_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="record_key or cell_key"):
        hf.release(table([3, 2, 0, 1]), [], hf.CellKey(table=NOISE), ledger=None)
    with pytest.raises(InvalidKey, match='per = "distance"'):
        ToyConditional.from_run_file({"epsilon": Fraction(1, 2)}, "person")
    with pytest.raises(InvalidParameter, match="one unit of distance only"):
        ToyConditional(epsilon="1/2")._with(per="person").for_distance(1)
    with pytest.raises(InvalidParameter, match="depends on the counts"):
        ToyConditional(epsilon="1/2").law(hf.lattice(table([3, 2, 0, 1]).universe, [hf.margin("region")]))


def test_a_target_gets_what_it_declares_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with cell keys: what reads counts alone is given none, since only declared input enters the digest."""
    given: list[Any] = []

    def publish(self: ByEnumeration, counts: Any, cell_keys: Any, words: Any) -> Any:
        given.append(cell_keys)
        return counts

    monkeypatch.setattr(ByEnumeration, "publish", publish)
    hf.release(table([3, 2, 0, 1], [5, 8, 0, 7]), [hf.margin("region")], ToyConditional(epsilon="1/2"), key=NoiseKey.for_tests(1))
    assert given
    assert all(keys is None for keys in given)
