"""hf.allocate: shares and budgets for a wanted accuracy, from Python and from the command line, and whether releases have it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.accuracy.allocate import Allocation
from holdfast.channels import Facts
from holdfast.errors import InexactParameter, InvalidParameter
from holdfast.tables import Hierarchy, Universe
from holdfast.testing import ALPHA
from holdfast.testing.fit import check_p_value
from holdfast.wording.budget import AllocationFacts, ReachedLine, allocation_lines
from tests.running import Ran

ROUNDED = 1 + 2e-3
"""What four digits of rho and short shares may cost."""


def universe_of(*counties: int, sexes: str = "FM") -> Universe:
    """States of so many counties, by sex."""
    rows = [(f"s{s}", f"s{s}c{c:02}", x) for s, many in enumerate(counties) for c in range(many) for x in sexes]
    return Universe.listed({name: [row[place] for row in rows] for place, name in enumerate(("state", "county", "sex"))})


UNEVEN = universe_of(3, 2, 7, 3)
STATES = [hf.margin("state")]
WORKLOADS: list[tuple[str, Mapping[Any, Any]]] = [
    ("counties", {"county": 5}),
    ("counties and their sexes", {"county": {"total": 3, "detailed": "4.5"}}),
    ("every level", {"total": {"sex": 5}, "state": {"sex": 4}, "county": {"total": 2, "sex": 3}}),
]


def planned(universe: Universe, keep: list[Any], found: Allocation) -> dict[tuple[str, str], float]:
    """The largest standard deviation of each level and margin, as the plan shows it."""
    channel: Any = found.mechanism.channel(Facts.of(universe, keep))
    levels = list(channel.layout.errors(channel.target))
    return {(row.level, row.margin): row.largest for row in levels} | {(row.level, "detailed"): row.largest for row in levels}


@pytest.mark.parametrize("per", ["distance", "person"])
@pytest.mark.parametrize(("name", "workload"), WORKLOADS, ids=[name for name, _ in WORKLOADS])
def test_the_budget_reaches_every_target_and_a_smaller_one_does_not(name: str, workload: Mapping[Any, Any], per: Any) -> None:
    found = hf.allocate(UNEVEN, STATES, workload, per=per)
    assert sum(share.share for share in found.shares) == 1
    shown = planned(UNEVEN, STATES, found)
    for row in found.reached:
        assert row.target is not None
        assert shown[row.level, row.margin] == pytest.approx(row.deviation, rel=1e-12)
        assert row.deviation <= float(row.target) * (1 + 1e-12)
    assert max(row.deviation / float(row.target or 1) for row in found.reached) > 1 - 1e-3  # rho is rounded up in its fourth digit
    assert 1 <= found.within < 1.012  # one hundredth is for cells of which nothing is asked
    assert found.equal > 1.1


@pytest.mark.parametrize(("name", "workload"), WORKLOADS, ids=[name for name, _ in WORKLOADS])
def test_what_nobody_asked_for_is_listed_too(name: str, workload: Mapping[Any, Any]) -> None:
    """A target for county totals left county by sex with fifty times as much, and nothing said so."""
    found = hf.allocate(UNEVEN, STATES, workload, per="person")
    channel: Any = found.mechanism.channel(Facts.of(UNEVEN, STATES))
    noisy = {(row.level, row.margin): row.largest for row in channel.layout.errors(channel.target) if row.largest}
    rest = {(row.level, row.margin): row.deviation for row in found.others}
    assert rest.items() <= noisy.items()
    reached = {(row.level, "sex" if row.margin == "detailed" else row.margin) for row in found.reached}
    assert noisy.keys() - rest.keys() == reached
    assert not rest.keys() & reached
    assert ("The rest" in str(found)) is bool(rest)
    for row in found.to_fields()["others"]:
        assert f"{row['level']:<7}{row['margin']:<7}".strip().split() in [
            line.removeprefix("The rest").split()[:2] for line in str(found).splitlines()
        ]


def test_one_table_alone_has_the_budget_of_its_formula() -> None:
    """Without kept totals a table of variance t^2 costs rho = 1 / (2 t^2); for one person, who moves, twice that."""
    universe = Universe.product({"county": [str(i) for i in range(9)]})
    assert hf.allocate(universe, [], {"county": 5}, per="distance").rho == Fraction(1, 50)
    assert hf.allocate(universe, [], {"county": 5}, per="person").rho == Fraction(1, 25)
    declared = hf.Table(universe, np.zeros(9, dtype=np.int64), max_records=3)
    assert hf.allocate(declared, [], {"county": 5}, per="person").rho == 9 * Fraction(1, 25)
    assert hf.allocate(universe, [], {"county": "2.5"}, per="distance").shares[0].share == 1


def test_one_kept_total_lowers_the_budget_by_the_formula() -> None:
    """n cells with one total kept have variance sigma^2 (1 - 1/n)."""
    found = hf.allocate(Universe.product({"county": [str(i) for i in range(10)]}), [hf.total()], {"county": 3}, per="distance")
    assert found.rho == Fraction(1, 18) * Fraction(9, 10)


@settings(max_examples=12)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.lists(st.integers(1, 40), min_size=3, max_size=3), st.booleans())
def test_any_targets_are_reached(counties: list[int], targets: list[int], kept: bool) -> None:
    """The proof of how good it is holds: rho is at most 0.3 % above the least of any shares."""
    universe, keep = universe_of(*counties, 2), STATES if kept else []
    workload = {"state": {"sex": targets[0]}, "county": {"total": targets[1], "sex": targets[2]}}
    found = hf.allocate(universe, keep, workload, per="distance")
    shown = planned(universe, keep, found)
    assert all(shown[row.level, row.margin] <= float(row.target or 0) * (1 + 1e-12) for row in found.reached)
    assert 1 - 1e-9 <= found.within < 1.003


def test_every_goal_is_best_at_its_own() -> None:
    """Each goal's figure, computed from the plan, is best for its own shares."""
    workload = {"state": {"sex": 1}, "county": {"total": 1, "sex": 1}}
    numbers = {("state", "sex"): 4 * 2, ("county", "total"): 15, ("county", "sex"): 30}
    figures: dict[str, Callable[[Mapping[tuple[str, str], Any]], float]] = {
        "sum": lambda v: sum(float((v[key] ** 2).sum()) * (2 if key[1] == "sex" else 1) for key in numbers),
        "largest": lambda v: max(float(v[key].max()) for key in numbers),
        "relative": lambda v: max(float(v[key].max()) * many for key, many in numbers.items()),
    }
    reached: dict[str, Mapping[tuple[str, str], Any]] = {}
    for goal in figures:
        made = hf.plan(UNEVEN, STATES, hf.allocate(UNEVEN, STATES, workload, goal=goal, rho="1/10", per="distance").mechanism)  # type: ignore[arg-type]
        channel: Any = made.drawing.channel
        reached[goal] = {(level, margin): d for level, margin, d in channel.layout.deviations(channel.target)}
    for goal, figure in figures.items():
        assert all(figure(reached[goal]) <= figure(other) * ROUNDED for other in reached.values())
        assert figure(reached[goal]) < min(figure(other) for name, other in reached.items() if name != goal)


def test_shares_of_a_goal_do_not_depend_on_rho() -> None:
    small, large = (hf.allocate(UNEVEN, STATES, {"county": 1}, goal="sum", rho=rho, per="distance") for rho in ("1/100", 3))
    assert small.shares == large.shares
    assert large.reached[0].deviation == pytest.approx(small.reached[0].deviation / math.sqrt(300))


def test_levels_of_a_hierarchy_and_tuples_of_columns() -> None:
    """The finest level is found where it is not named: its cells are published, and need a share."""
    tree = Hierarchy.from_parents({"A1": "A", "A2": "A", "B1": "B", "B2": "B", "B3": "B"}, levels=["state", "own"])
    universe = Universe.product({"county": ["A1", "A2", "B1", "B2", "B3"], "sex": ["F", "M"]}, hierarchies={"county": tree})
    found = hf.allocate(universe, [], {"state": 5}, per="distance")
    assert [(share.level, share.margin, share.share) for share in found.shares] == [
        ("state", "total", Fraction(99, 100)),
        ("county", "detailed", Fraction(1, 100)),
    ]
    rows = [(s, c, x) for s in "AB" for c in "12" for x in "FM"]  # county codes repeat
    repeated = Universe.listed({name: [row[place] for row in rows] for place, name in enumerate(("state", "county", "sex"))})
    named = hf.allocate(repeated, STATES, {("state", "county"): {"total": 4, ("sex",): 4}}, per="distance")
    assert named.reached[0].level == "state:county"
    assert hf.plan(repeated, STATES, named.mechanism).guarantee.rho == named.rho


def _upper_tail(total: float, n: int) -> float:
    """The probability that the sum of squares of n independent numbers is as large, where each is sub-Gaussian with variance at most 1: at
    most exp(-x) above n + 2 sqrt(n x) + 2 x (Hsu, Kakade and Zhang 2012, Theorem 1). Sums of this noise are so ([theory R7]).
    """
    root = (math.sqrt(2 * max(total, n) - n) - math.sqrt(n)) / 2  # of x: n + 2 sqrt(n x) + 2 x = total
    return math.exp(-(root**2))


def test_releases_have_the_accuracy_that_was_asked_for() -> None:
    """Squared errors of one county of each state, which are independent: no larger than the target's; a budget a third smaller shows."""
    universe = universe_of(*[3] * 250)
    table = hf.Table(universe, np.random.default_rng(1).integers(0, 500, len(universe)))
    found = hf.allocate(universe, STATES, {"county": {"total": 4, "sex": 6}}, per="distance")
    group = universe.group(["county"])[0]
    true = np.bincount(group, table.counts)

    def squares(mechanism: Any, label: str) -> tuple[float, int]:
        total, n = 0.0, 0
        for number in range(4):
            made = hf.release(table, STATES, mechanism, key=hf.NoiseKey.for_tests(f"{label} {number}"))
            error = np.bincount(group, made.table.counts) - true
            total, n = total + float((error[::3].astype(np.float64) ** 2).sum()) / 16, n + 250
        return total, n

    total, n = squares(found.mechanism, "allocate")
    check_p_value(_upper_tail(total, n), name="errors of counties beside their target", n=n, statistic=total)
    assert total > 0.7 * n  # the target is used up: no smaller noise was bought
    low = hf.GeneralizedGaussian(
        rho=found.rho * Fraction(2, 3), levels={s.level: dict(_margins(found, s.level)) for s in found.shares}, per="distance"
    )
    assert _upper_tail(*squares(low, "too little")) < ALPHA


def _margins(found: Allocation, level: Any) -> list[tuple[Any, Fraction]]:
    return [(share.margin, share.share) for share in found.shares if share.level == level]


@pytest.mark.parametrize(
    ("workload", "more", "told"),
    [
        ({"county": 0}, {}, "county, total: a standard deviation of 0 needs an infinite budget. Keep these totals exactly"),
        ({"county": -1}, {}, "the standard deviation of 'county' is negative. Write a number above 0"),
        ({"county": "1e-200"}, {}, "the square of a number must lie between 1e-150 and 1e150"),
        ({"state": 5}, {}, "state, total is kept exactly: its error is 0, and it needs no budget. Leave it out"),
        ({"town": 5}, {}, "there is no level 'town'. Known: 'state', 'county', 'sex', 'total'"),
        ({"countie": 5}, {}, "there is no level 'countie'. Did you mean 'county'? Known"),
        ({("state", "conty"): 5}, {}, "there is no column 'conty'. Did you mean 'county'? Columns"),
        ({"county": {"age": 5}}, {}, "there is no column or level 'age' beside the units of 'county'"),
        ({("state", "county"): {"sexe": 5}}, {}, "beside the units of 'state:county'. Did you mean 'sex'? Margins"),
        ({"county": {"sex": 5, "detailed": 4}}, {}, "a margin is named twice, by two of its names"),
        ({}, {}, "A workload is a mapping from levels to a standard deviation"),
        ({3: 4}, {}, "a level is named by a text or a tuple of columns"),
        ({"county": 5}, {"rho": 1}, "goal='targets' finds rho: leave it out"),
        ({"county": 5}, {"goal": "sum"}, "goal='sum' divides a budget: give rho"),
        ({"county": 0}, {"goal": "sum", "rho": 1}, "a weight of 0 asks for nothing. Leave it out"),
        ({"county": "1e99"}, {"goal": "sum", "rho": 1}, "Write a number of ordinary size"),
        ({"county": 5}, {"goal": "best"}, "goal"),
        ({"county": 5}, {"per": "household"}, "per"),
    ],
)
def test_what_is_refused(workload: Any, more: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        hf.allocate(UNEVEN, STATES, workload, **more)
    assert told in str(refused.value)


def test_a_float_is_refused_with_what_to_write() -> None:
    with pytest.raises(InexactParameter, match=r"'2.5'"):
        hf.allocate(UNEVEN, STATES, {"county": 2.5}, per="distance")


RUN = """\
[table]
source = "people.csv"
cells = ["state", "county", "sex"]
count = "people"
public = true
[keep]
margins = [["state"]]
[release]
id = "people"
mechanism = "generalized-gaussian"
rho = "1/10"
per = "person"
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [",".join(UNEVEN.cell(cell).values()) + ",7\n" for cell in range(len(UNEVEN))]
    (tmp_path / "people.csv").write_text("state,county,sex,people\n" + "".join(rows))
    (tmp_path / "run.toml").write_text(RUN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_line_finds_the_budget(work: Path, run: Callable[..., Ran]) -> None:
    """The same as in Python, for the person of the run file; the lines it prints make a run file with that plan."""
    printed = run("plan", "run.toml", "--no-ledger", "--target", "county=5", "--target", "county:sex = 4")
    assert (printed.code, printed.err) == (0, "")
    fields = json.loads(run("plan", "run.toml", "--no-ledger", "--target", "county=5", "--target", "county:sex=4", "--json").out)
    same = hf.allocate(UNEVEN, STATES, {"county": {"total": 5, "sex": 4}}, per="person")
    assert fields["allocation"] == same.to_fields()
    assert str(same) in printed.out
    found = re.search(r"in place of the budget:\n\n(.*)\n\n(.*, in place of the shares .*):\n\n((.+\n)+)", printed.out)
    assert found is not None
    assert found[2].startswith("At the end of the file")
    assert f"{found[1]}\n{found[3]}" == fields["allocation"]["run_file"] + "\n"
    Path("run.toml").write_text(RUN.replace('rho = "1/10"', found[1]) + found[3])  # pasted as it says, into a file as init writes it
    again = run("plan", "run.toml", "--no-ledger")
    shown, _, to_do = again.out.partition("Next ")
    assert printed.out.endswith(shown)
    assert to_do == "      holdfast release run.toml -o out --no-ledger\n"
    levels = {(row["level"], row["margin"]): row["largest"] for row in fields["expected_error"]["levels"]}
    assert levels["county", "total"] <= 5
    assert levels["county", "sex"] <= 4


@pytest.mark.parametrize(
    ("targets", "told"),
    [
        (["county"], "--target 'county' is no target. Write county=5"),
        (["=5"], "is no target"),
        (["county:=5"], "is no target"),
        (["county x sex=5"], "or county:sex=7.5"),
        (["county=5", "county=4"], "county is named twice"),
        (["county=0"], "needs an infinite budget"),
        (["county=five"], "'county'"),
        (["state=5"], "kept exactly"),
        (["countie=5"], "Did you mean 'county'?"),
        (
            ["county,sex=5"],
            "Did you mean 'county'? Known: 'state', 'county', 'sex', 'total'; several columns are a tuple, with --target a:b/=5.",
        ),
    ],
)
def test_the_command_line_refuses(targets: list[str], told: str, work: Path, run: Callable[..., Ran]) -> None:
    refused = run("plan", "run.toml", *(part for target in targets for part in ("--target", target)))
    assert refused.code == 2
    assert told in refused.err
    assert not refused.out


def test_a_mechanism_without_shares_has_no_targets(work: Path, run: Callable[..., Ran]) -> None:
    Path("run.toml").write_text(RUN.replace("generalized-gaussian", "generalized-laplace").replace("rho", "epsilon"))
    refused = run("plan", "run.toml", "--target", "county=5")
    assert refused.code == 2
    assert "which generalized-laplace does not do" in refused.err


def test_machines_get_numbers_of_six_digits_and_bounds_are_rounded_up() -> None:
    found = hf.allocate(UNEVEN, STATES, {"county": {"total": 5, "sex": "7/3"}}, per="person")
    fields = found.to_fields()
    for row, reached in zip(fields["reached"], found.reached, strict=True):
        assert reached.deviation * (1 - 1e-11) <= row["reached"] <= reached.deviation * (1 + 1e-5)
    assert found.within * (1 - 1e-11) <= fields["within"] <= found.within * (1 + 1e-5)
    assert fields["equal_shares"] == pytest.approx(found.equal, rel=1e-5)
    written = json.dumps(fields)
    assert not re.search(r"\d\.\d{6}|\d{7}", written), written


def test_what_is_reached_at_most_is_rounded_up() -> None:
    for reached, said in (
        (4.99914, "at most 5 "),
        (4.9981, "at most 4.999 "),
        (0.0123401, "at most 0.01235 "),
        (1234567.0, "at most 1235000 "),
    ):
        row = ReachedLine("county", "total", "5", reached)
        lines = list(allocation_lines(AllocationFacts("targets", "1", "distance", [], [row], [], 1.0, 1.0, "")))
        assert said in lines[2]


def test_codes_that_repeat_are_told_with_the_column_they_repeat_under(work: Path, run: Callable[..., Ran]) -> None:
    rows = [f"{state},{county},{sex},7\n" for state, county in (("1", "001"), ("1", "003"), ("2", "001")) for sex in "FM"]
    (work / "people.csv").write_text("state,county,sex,people\n" + "".join(rows))
    refused = run("plan", "run.toml", "--target", "county=5")
    assert (refused.code, refused.out) == (2, "")
    told = "Codes of 'county' repeat under those of 'state': name the level by both columns, ('state', 'county'), on the command line"
    assert told in refused.err
    assert run("plan", "run.toml", "--no-ledger", "--target", "state:county/=5").code == 2
    assert run("plan", "run.toml", "--no-ledger", "--target", "state:county/total=5").code == 0


def test_one_share_is_not_compared_with_itself() -> None:
    facts = AllocationFacts("targets", "1", "distance", [], [], [], 1.0, 1.0, "")
    assert list(allocation_lines(facts))[-1].endswith("a rho more than 0.1 % lower; equal shares do as well.")
    assert "more than 0.59 % lower" in list(allocation_lines(replace(facts, within=1.005802)))[-1]  # proved, and printed as 0.58 once
    assert "more than 0.58 % lower" in list(allocation_lines(replace(facts, within=1.0058)))[-1]
    assert list(allocation_lines(replace(facts, equal_shares=1.5)))[-1].endswith("equal shares have one 1.5 times as large.")


@pytest.mark.parametrize(("target", "word"), [("1/2", "about"), ("5", "at most")])
def test_a_standard_deviation_without_a_proof_is_said_to_be_approximate(target: str, word: str) -> None:
    """Narrow noise that the sequential law draws; the plan says about too."""
    universe = hf.Universe.product({"a": [str(i) for i in range(50)], "b": [str(i) for i in range(40)]})
    found = hf.allocate(universe, [hf.total()], {("a", "b"): {"total": target}}, goal="targets", per="distance")
    assert found.is_approximate is (word == "about")
    assert f"  {word} " in str(found)
    plan = hf.plan(universe, [hf.total()], found.mechanism)
    assert (plan.expected_error.basis == "approximate") is found.is_approximate
