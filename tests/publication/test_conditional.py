"""The conditional mechanism from end to end: every table of small releases against the enumerated law, bounds, columns, cards, refusals."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.channels.layout import BoundsLayout
from holdfast.engines.local import run_task
from holdfast.errors import (
    ContradictingTotals,
    HoldfastError,
    InexactParameter,
    InvalidConstraint,
    InvalidParameter,
    InvalidRun,
    NoTableWithin,
    OutsideBounds,
)
from holdfast.invariants.inequalities import Inequality
from holdfast.laws import ConditionalGaussian, ConditionalLaplace, Gaussian, L1Laplace
from holdfast.privacy.guarantee import Conditioning
from holdfast.runfiles.runfile import load_run
from holdfast.testing import check_fit_categories

FOUR = hf.Universe.product({"town": ["a", "b", "c", "d"]})
GRID = hf.Universe.product({"sex": ["F", "M"], "age": ["x", "y", "z"]})
HOMES = hf.Universe.product({"county": ["a", "b"], "kind": ["people", "homes"]})
PEOPLE, DWELLINGS = (hf.subset("kind", [kind], by=["county"]) for kind in ("people", "homes"))
TOTAL, SEX, AGE = hf.total(), hf.margin("sex"), hf.margin("age")


def fibre(x: tuple[int, ...], keep: list[Any], universe: hf.Universe, holds: Callable[[tuple[int, ...]], bool], top: int) -> Iterator[Any]:
    """Every table of counts up to `top` with the kept totals of x that `holds`, by brute force."""
    rows = hf.lattice(universe, keep).matrix.toarray()
    same = rows @ np.array(x)
    return (y for y in product(range(top + 1), repeat=len(x)) if np.array_equal(rows @ np.array(y), same) and holds(y))


UPPER, BEDS = (2, 3, 2, 1), (1, 1, 0, 2)
CASES: dict[str, tuple[Any, hf.Universe, list[Any], tuple[int, ...], Callable[[tuple[int, ...]], bool], int]] = {
    "one sum with upper bounds": (
        hf.Conditional(epsilon=1, upper=UPPER, per="distance"),
        FOUR,
        [TOTAL],
        (1, 0, 2, 0),
        lambda y: all(map(int.__le__, y, UPPER)),
        3,
    ),
    "2 x 3, not negative": (hf.Conditional(epsilon=1, per="distance"), GRID, [SEX, AGE], (1, 0, 2, 1, 1, 0), lambda _: True, 3),
    "2 x 3, best gamma": (hf.Conditional(epsilon=1, gamma="best", per="distance"), GRID, [SEX, AGE], (0, 1, 1, 2, 1, 0), lambda _: True, 3),
    "facilities": (
        hf.Conditional(epsilon=1, lower="n", upper="3 n", per="distance"),
        FOUR,
        [TOTAL],
        (1, 2, 0, 4),
        lambda y: all(n <= v <= 3 * n for v, n in zip(y, BEDS, strict=True)),
        6,
    ),
    "gaussian, 2 x 3": (
        hf.Conditional(rho="1/4", noise="gaussian", per="distance"),
        GRID,
        [SEX, AGE],
        (1, 0, 2, 1, 1, 0),
        lambda _: True,
        3,
    ),
    "binary": (hf.Conditional(epsilon=1, upper=1, per="distance"), FOUR, [TOTAL], (1, 0, 1, 0), lambda y: max(y) <= 1, 1),
    "binary, nothing kept": (hf.Conditional(epsilon=1, upper=1, per="distance"), FOUR, [], (1, 0, 1, 0), lambda y: max(y) <= 1, 1),
    "people at least homes": (
        hf.Conditional(epsilon=1, upper=3, rows=[hf.at_least(PEOPLE, DWELLINGS)], per="distance"),
        HOMES,
        [TOTAL],
        (2, 1, 1, 1),
        lambda y: y[0] >= y[1] and y[2] >= y[3] and max(y) <= 3,
        3,
    ),
}


def table_of(universe: hf.Universe, x: tuple[int, ...]) -> hf.Table:
    return hf.Table(universe, np.array(x), public_columns={"n": np.array(BEDS)} if len(x) == 4 else {})


@pytest.mark.parametrize("name", CASES)
def test_releases_fit_the_enumerated_law(name: str) -> None:
    mechanism, universe, keep, x, holds, top = CASES[name]
    table = table_of(universe, x)
    drawing = hf.plan(table, keep, mechanism).drawing
    target = drawing.channel.target
    assert isinstance(target, ConditionalLaplace | ConditionalGaussian)
    assert drawing.is_exact
    changes = {y: [abs(a - b) for a, b in zip(x, y, strict=True)] for y in fibre(x, keep, universe, holds, top)}
    if isinstance(target, ConditionalLaplace):
        weights = {y: math.exp(-target.rate * sum(z)) for y, z in changes.items()}
    else:
        weights = {y: math.exp(-sum(k * k for k in z) / (2 * target.sigma_squared)) for y, z in changes.items()}
    whole, n = sum(weights.values()), 600
    drawn = np.tile(table.counts, (n, 1))
    with hf.NoiseKey.for_tests(name) as key:
        for task in drawing.channel.tasks():
            with key.stream(*task.label) as words:
                published = run_task(drawing, task, np.tile(table.counts[task.cells], (n, 1)), None, words)
            drawn[:, task.cells] = published.reshape(n, *task.cells.shape)
    assert len(weights) > 2
    check_fit_categories(Counter(map(tuple, drawn.tolist())), {y: w / whole for y, w in weights.items()}, name=f"conditional, {name}")


# --- rates, promises and words ----------------------------------------------------------------------------------------------------------


def planned(mechanism: Any, keep: Any = (TOTAL,), universe: hf.Universe = FOUR) -> Any:
    return hf.plan(universe, list(keep), mechanism)


def test_what_bounds_cost() -> None:
    """epsilon is the whole budget: the law has what gamma leaves of it."""
    default, best = (
        planned(hf.Conditional(epsilon="1/2", per="distance")),
        planned(hf.Conditional(epsilon="1/2", gamma="best", per="distance")),
    )
    assert (
        default.drawing.channel.target
        == ConditionalLaplace(Fraction(1, 4))
        == planned(hf.Conditional(epsilon="1/2", gamma=1, per="distance")).drawing.channel.target
    )
    assert default.guarantee.conditioning.gamma == 1
    assert Fraction(1, 4) < best.drawing.channel.target.rate < Fraction(1, 2)
    for plan in (default, best):
        found = plan.guarantee
        assert found.epsilon == Fraction(1, 2) == (1 + found.conditioning.gamma) * found.conditioning.rate
        assert found.conditioning.rate == plan.drawing.channel.target.rate
        assert found.relation.within_bounds
        assert plan.deviations is None
        assert plan.expected_error.basis == "unknown"


def test_without_inequalities_it_is_the_generalized_laplace_mechanism() -> None:
    """Conditioning on equalities alone costs nothing: the same law, bytes and budget."""
    table = hf.Table(FOUR, np.array([5, 6, 7, 8]))
    plan = hf.plan(table, [TOTAL], hf.Conditional(epsilon="1/2", lower=None, per="distance"))
    assert plan.drawing.channel.target == L1Laplace(Fraction(1, 2))
    assert plan.guarantee.conditioning == Conditioning(Fraction(1, 2), Fraction(0), "equalities")
    both = [
        hf.release(table, [TOTAL], m, hf.NoiseKey.for_tests(5))
        for m in (hf.Conditional(epsilon="1/2", lower=None, per="distance"), hf.GeneralizedLaplace(epsilon="1/2", per="distance"))
    ]
    assert both[0].table.counts.tolist() == both[1].table.counts.tolist()
    assert hf.plan(table, [TOTAL], hf.Conditional(epsilon="1/2", lower=None, gamma=0, per="distance")).guarantee == plan.guarantee


def test_a_budget_for_one_person() -> None:
    plan = planned(hf.Conditional(epsilon="1/2", per="person"))
    assert plan.drawing.channel.target == ConditionalLaplace(Fraction(1, 8))
    assert plan.guarantee.per_person().epsilon == Fraction(1, 2)


def test_what_is_left_of_a_neighbourhood() -> None:
    """Rows and columns keep one person from moving alone; a cell between equal bounds has one table."""
    found = planned(hf.Conditional(epsilon=1, per="distance"), [SEX, AGE], GRID).guarantee.conditioning
    assert (found.blocks, found.disrupted, found.destroyed) == (1, 1, 0)
    found = planned(hf.Conditional(epsilon=1, lower=[0, 2, 0, 0], upper=[9, 2, 9, 9], per="distance"), []).guarantee.conditioning
    assert (found.blocks, found.disrupted, found.destroyed) == (4, 0, 1)
    assert "in 1 of 4 there is one table only" in hf.describe(
        planned(hf.Conditional(epsilon=1, lower=[0, 2, 0, 0], upper=[9, 2, 9, 9], per="distance"), []).guarantee
    )


def test_gaussian_noise() -> None:
    """rho is the whole budget; where no cost is proved it is refused; without inequalities it is the generalized Gaussian."""
    plan = planned(hf.Conditional(rho="1/10", noise="gaussian", per="person"))
    assert plan.drawing.channel.target == ConditionalGaussian(Fraction(20))
    assert plan.guarantee.rho == Fraction(1, 20) == 2 * plan.guarantee.conditioning.rate
    assert plan.guarantee.per_person().rho == Fraction(1, 10)
    assert planned(hf.Conditional(rho="1/10", noise="gaussian", per="distance"), []).drawing.channel.target == ConditionalGaussian(
        Fraction(5)
    )
    assert planned(hf.Conditional(rho="1/10", noise="gaussian", lower=None, per="distance")).drawing.channel.target == Gaussian(Fraction(5))
    with pytest.raises(InvalidParameter, match="no proven cost"):
        planned(hf.Conditional(rho="1/10", noise="gaussian", rows=[hf.at_most(hf.subset("town", ["a", "b"]), 5)], per="distance"))
    made: list[Callable[[], Any]] = [
        lambda: hf.Conditional(rho="1/10", per="distance"),
        lambda: hf.Conditional(epsilon=1, noise="gaussian", per="distance"),
        lambda: hf.Conditional(epsilon=1, rho=1, per="distance"),
        lambda: hf.Conditional(),
        lambda: hf.Conditional(rho=1, noise="gaussian", gamma="best", per="distance"),
        lambda: hf.Conditional(epsilon=1, noise="cauchy", per="distance"),  # type: ignore[arg-type]
    ]
    for wrong in made:
        with pytest.raises(InvalidParameter):
            wrong()


def test_words(snapshot: Callable[..., None]) -> None:
    table = hf.Table(FOUR, np.array([1, 2, 0, 4]), public_columns={"beds": np.array([1, 1, 0, 2])})
    snapshot(
        str(hf.plan(table, [TOTAL], hf.Conditional(epsilon="1/2", lower="beds", upper="3 beds", gamma="best", per="distance"))),
        "with a column",
    )
    snapshot(str(planned(hf.Conditional(epsilon="1/2", rows=[hf.at_most(TOTAL, 9)], per="distance"), [SEX, AGE], GRID)), "with a row")


def test_what_a_promise_with_delta_says_about_odds() -> None:
    """Two cells under one sum, far from their bounds: the law of the odds of the true table is that of one integer. They grow by more than
    e^epsilon with a probability above delta, so that the sentence has to be the weaker one of [theory T78], which holds."""
    plan = hf.plan(hf.Universe.product({"town": ["a", "b"]}), [TOTAL], hf.Conditional(rho="1/100", noise="gaussian", per="person"))
    assert plan.drawing.channel.target == ConditionalGaussian(Fraction(100))
    lead = plan.guarantee.per_person()
    assert lead is not None
    steps = np.arange(-600, 601)  # to x + k (1, -1), at squared distance 2 k^2; log odds against x + (1, -1): (1 - 2 k) / 100
    p = np.exp(-(steps**2) / 100)
    p /= p.sum()
    log_odds = (1 - 2 * steps) / 100
    assert p[log_odds > float(lead.epsilon)].sum() > 8 * float(lead.delta)
    assert p[log_odds > float(lead.epsilon) + math.log(2)].sum() <= 2 * float(lead.delta)
    words = hf.describe(plan.guarantee)
    assert "by a factor of more than 2 e^0.865 with a probability of at most 2e-10" in words
    assert "further probability of 1e-10" not in words
    exact = hf.describe(planned(hf.Conditional(epsilon="1/2", per="distance")).guarantee)
    assert "odds between two such tables that differ in one person by a factor between e^-1 and e^1" in exact


# --- public columns ----------------------------------------------------------------------------------------------------------------------


def test_columns_that_bounds_come_from_are_exposed_and_verified(tmp_path: Path) -> None:
    table = hf.Table(FOUR, np.array([1, 2, 0, 4]), public_columns={"beds": np.array([1, 1, 0, 2]), "other": np.zeros(4, dtype=np.int64)})
    release = hf.release(
        table, [TOTAL], hf.Conditional(epsilon="1/2", lower="beds", upper="3 beds", per="distance"), hf.NoiseKey.for_tests(1)
    )
    card = json.loads((release.save(tmp_path / "out") / "card.json").read_text())
    assert card["exposed"]["columns"] == ["beds"]
    assert card["table"]["public_columns"] == [{"name": "beds", "values": [1, 1, 0, 2]}]
    assert card["guarantee"]["conditioning"]["gamma"] == "1"
    hf.verify(tmp_path / "out")
    beds = np.array([1, 1, 0, 2])
    assert (release.table.counts >= beds).all()
    assert (release.table.counts <= 3 * beds).all()
    # the third cell is known to be empty, whatever the data: nothing exposes it
    assert card["exposed"]["cells"] == 0


def test_a_total_at_its_bound_exposes_every_cell() -> None:
    release = hf.release(
        hf.Table(FOUR, np.array([1, 1, 1, 1])), [TOTAL], hf.Conditional(epsilon=1, upper=1, per="distance"), hf.NoiseKey.for_tests(1)
    )
    assert release.card.exposed.by_values == 4
    assert "within the bounds" in release.card.exposed.text


RUN = """
[table]
source = "homes.csv"
cells = ["town"]
count = "people"
public_columns = ["beds"]
public = true
[keep]
total = true
[release]
id = "homes"
mechanism = "conditional"
epsilon = "1/2"
per = "distance"
lower = "beds"
upper = "99 beds"
gamma = "best"
rows = [{subset = "town", codes = ["a", "b"], at_least = 2, at_most = {subset = "town", codes = ["c", "d"]}}]
"""


def test_a_run_file(tmp_path: Path) -> None:
    (tmp_path / "homes.csv").write_text("town,people,beds\na,1,1\nb,2,1\nc,3,2\nd,4,2\n")
    (tmp_path / "run.toml").write_text(RUN)
    run = load_run(tmp_path / "run.toml")
    left, right = (hf.subset("town", codes) for codes in (["a", "b"], ["c", "d"]))
    assert run.mechanism == hf.Conditional(
        epsilon="1/2", lower="beds", upper="99 beds", rows=[hf.at_least(left, 2), hf.at_most(left, right)], gamma="best", per="distance"
    )
    assert type(run.mechanism).from_parameters(run.mechanism.parameters) == run.mechanism
    table, declared = run.read_table(), run.read_declarations()
    assert table.public_columns["beds"].tolist() == declared.public_columns["beds"].tolist() == [1, 1, 2, 2]
    plan = hf.plan(declared, run.keep, run.mechanism)
    layout = plan.drawing.channel.layout
    assert isinstance(layout, BoundsLayout)
    assert layout.inequalities.lower.tolist() == [1, 1, 2, 2]
    assert [(cells.tolist(), c.tolist(), least) for cells, c, least in layout.inequalities.rows] == [
        ([0, 1], [1, 1], 2),
        ([0, 1, 2, 3], [-1, -1, 1, 1], 0),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lower = 0.5", "whole number"),
        ('lower = ["x"]', "whole number"),
        ("upper = true", "whole number"),
        ('noise = "gaussian"', "gaussian noise takes rho, not epsilon"),
        ('rho = "1/10"', "laplace noise takes epsilon, not rho"),
        ("gamma = 2", '0, 1 or "best"'),
        ("rows = 3", "list of tables"),
        ('rows = [{margin = ["town"]}]', "at_least or at_most"),
        ("rows = [{at_least = 3}]", "one side of a row"),
        ('rows = [{margin = ["town"], at_least = 0.5}]', "whole number"),
    ],
)
def test_run_files_that_are_refused(tmp_path: Path, line: str, said: str) -> None:
    lines = [kept for kept in RUN.splitlines() if kept.split(" =")[0] not in ("lower", "upper", "gamma", "rows")]
    (tmp_path / "homes.csv").write_text("town,people,beds\na,1,1\n")
    (tmp_path / "run.toml").write_text("\n".join([*lines, line]) + "\n")
    with pytest.raises(InvalidRun, match=said) as caught:
        load_run(tmp_path / "run.toml")
    assert "run.toml" in str(caught.value)


# --- what is refused ---------------------------------------------------------------------------------------------------------------------


def test_a_table_outside_the_bounds_is_refused_without_a_value(tmp_path: Path) -> None:
    """The same words for every such table, and nothing is charged."""
    mechanism = hf.Conditional(
        epsilon="1/2", upper=40, rows=[hf.at_least(hf.subset("town", ["a"]), hf.subset("town", ["b"]))], per="distance"
    )
    messages = set()
    for counts in ([7319, 0, 0, 0], [0, 7320, 0, 0], [5, 6, 0, 0]):
        ledger = hf.privacy.Ledger.open(tmp_path / f"{counts[0]}.db", create=True, needs_grants=True)
        ledger.grant("t", kind="pure", epsilon="9", approver="A", reason="r")
        with pytest.raises(OutsideBounds) as caught:
            hf.release(hf.Table(FOUR, np.array(counts), name="t"), [], mechanism, ledger=ledger, release_id="x")
        messages.add(str(caught.value))
        assert ledger.account("t").balance().spent == 0
    (message,) = messages
    assert not any(digit in message for digit in "0123456789")


def test_bounds_that_no_table_has_are_refused_with_a_witness() -> None:
    cases: list[tuple[Any, Any, str]] = [
        (hf.Conditional(epsilon=1, lower=2, upper=1, per="distance"), [], "cell town=a, 2, is above its upper bound, 1"),
        (
            hf.Conditional(epsilon=1, upper=1, rows=[hf.at_least(TOTAL, 5)], per="distance"),
            [],
            "needs a sum of 5 or more, and the bounds of its cells allow at most 4",
        ),
        (
            hf.Conditional(epsilon=1, lower=3, per="distance"),
            [hf.identity(TOTAL, 10)],
            "'total' is 10, and the bounds of its cells add up to at least 12",
        ),
        (
            hf.Conditional(epsilon=1, upper=3, per="distance"),
            [hf.linear([[1, 1, 1, 1]], values=[13])],
            "'row 1' is 13, and the bounds of its cells allow at most 12",
        ),
    ]
    for mechanism, keep, said in cases:
        with pytest.raises(NoTableWithin) as caught:
            planned(mechanism, keep)
        assert said in str(caught.value)
    sums = "needs 5 or more of a sum of which row 2 of the inequalities allows at most 4"
    for above, below in ((hf.at_least(TOTAL, 5), hf.at_most(TOTAL, 4)), (hf.at_least(TOTAL, 5), hf.at_most(hf.linear([[2, 2, 2, 2]]), 9))):
        with pytest.raises(NoTableWithin, match=f"Row 1 of the inequalities {sums}"):
            planned(hf.Conditional(epsilon=1, rows=[above, below], per="distance"), [])
    planned(hf.Conditional(epsilon=1, rows=[hf.at_least(TOTAL, 4), hf.at_most(TOTAL, 4)], per="distance"), [TOTAL])
    with pytest.raises(NoTableWithin, match="needs 19 or more of a sum of which the total 'total' allows at most 18"):
        hf.plan(FOUR, [TOTAL], hf.Conditional(epsilon=1, rows=[hf.at_least(TOTAL, 19)], per="distance"), published_totals=[18])
    with pytest.raises(NoTableWithin, match="The total 'total' needs 18 or more"):
        hf.plan(FOUR, [TOTAL], hf.Conditional(epsilon=1, rows=[hf.at_most(TOTAL, 17)], per="distance"), published_totals=[18])
    with pytest.raises(NoTableWithin, match="allow at most 12"):
        hf.plan(FOUR, [TOTAL], hf.Conditional(epsilon=1, upper=3, per="distance"), published_totals=[13])
    with pytest.raises(ContradictingTotals):  # rows of a table against its columns, where each alone is possible
        hf.plan(GRID, [SEX, AGE], hf.Conditional(epsilon=1, upper=[5, 5, 5, 0, 0, 5], per="distance"), published_totals=[1, 5, 3, 2, 1])


def test_parameters_that_are_refused() -> None:
    wrong: list[tuple[type[HoldfastError], Callable[[], Any]]] = [
        (InexactParameter, lambda: hf.Conditional(epsilon=1, lower=0.5, per="distance")),
        (InexactParameter, lambda: hf.Conditional(epsilon=1, upper=[1, 2.0, 3, 4], per="distance")),
        (InvalidParameter, lambda: hf.Conditional(epsilon=1, lower=True, per="distance")),
        (InvalidParameter, lambda: hf.Conditional(epsilon=1, lower={}, per="distance")),
        (InvalidParameter, lambda: hf.Conditional(epsilon=1, upper=2**62, per="distance")),
        (InvalidParameter, lambda: hf.Conditional(epsilon=1, lower="none", per="distance")),
        (InvalidParameter, lambda: hf.Conditional(epsilon=1, rows=[TOTAL], per="distance")),  # type: ignore[list-item]
        (InvalidParameter, lambda: hf.Conditional(epsilon=1, gamma=2, per="distance")),  # type: ignore[arg-type]
        (InvalidParameter, lambda: hf.Conditional(epsilon=1, gamma=1.0, per="distance")),  # type: ignore[arg-type]
        (InvalidParameter, lambda: hf.Conditional(epsilon=1, gamma=0.0, per="distance")),  # type: ignore[arg-type]
        (InexactParameter, lambda: hf.Conditional(epsilon=1, upper=np.array(5.0), per="distance")),
        (InvalidParameter, lambda: hf.Conditional(epsilon=1, upper=np.ones((2, 2), dtype=np.int64), per="distance")),
        (InvalidParameter, lambda: hf.Conditional()),
        (InvalidParameter, lambda: hf.Table.from_records([], ["town"], universe="observed", public_columns=["beds"])),
        (InvalidParameter, lambda: planned(hf.Conditional(epsilon=1, gamma=0, per="distance"))),
        (InvalidParameter, lambda: planned(hf.Conditional(epsilon=1, upper=[1, 2, 3], per="distance"))),
        (InvalidConstraint, lambda: planned(hf.Conditional(epsilon=1, upper="beds", per="distance"))),
        (InvalidConstraint, lambda: hf.at_least(TOTAL, 0.5)),
        (InvalidConstraint, lambda: hf.at_least(hf.identity(TOTAL, 4), 1)),
        (InvalidConstraint, lambda: hf.at_most(3, 1)),  # type: ignore[arg-type]
        (InvalidConstraint, lambda: planned(hf.Conditional(epsilon=1, rows=[hf.at_least(TOTAL, [1, 2])], per="distance"))),
        (InvalidConstraint, lambda: planned(hf.Conditional(epsilon=1, rows=[hf.at_least(PEOPLE, TOTAL)], per="distance"), [], HOMES)),
    ]
    for error, make in wrong:
        with pytest.raises(error) as caught:
            make()
        assert str(caught.value).endswith((".", "'"))
        assert str(caught.value)[:4] != "the "


def test_a_row_on_a_level_says_that_levels_are_not_taken() -> None:
    tree = hf.Hierarchy({"N": None, "S": None, "a": "N", "b": "N", "c": "S", "d": "S"}, ["state", "town"])
    universe = hf.Universe.product({"town": tree})
    for row in (hf.at_least(hf.margin("state"), 1), hf.at_least(TOTAL, hf.margin("state"))):
        with pytest.raises(InvalidConstraint, match="levels of hierarchies are not taken"):
            hf.plan(universe, [], hf.Conditional(epsilon=1, rows=[row], per="distance"))
    with pytest.raises(InvalidConstraint, match="there is no column 'country'"):
        hf.plan(universe, [], hf.Conditional(epsilon=1, rows=[hf.at_least(hf.margin("country"), 1)], per="distance"))


def test_a_number_in_an_array_is_a_number() -> None:
    assert hf.Conditional(epsilon=1, upper=np.array(5), per="distance") == hf.Conditional(epsilon=1, upper=5, per="distance")
    assert hf.at_least(TOTAL, np.array(5)) == hf.at_least(TOTAL, 5)


def test_lists_go_by_rows_of_the_file_or_are_refused(tmp_path: Path) -> None:
    """A list that is not public is put in the order of its codes: bounds written in the order of the file would bound other cells."""
    source = tmp_path / "towns.csv"
    source.write_text("town,people,most\nB,4,4\nA,7,9\n")
    moved = hf.Table.from_counts(source, ["town"], "people", public_columns=["most"])
    for mechanism in (
        hf.Conditional(epsilon=1, upper=[4, 9], per="distance"),
        hf.Conditional(epsilon=1, rows=[hf.at_most(hf.margin("town"), [4, 9])], per="distance"),
    ):
        with pytest.raises((InvalidParameter, InvalidConstraint), match="public_columns"):
            hf.plan(moved, [], mechanism)
        declared = hf.Table.from_counts(source, ["town"], "people", public=True)
        assert hf.plan(declared, [], mechanism).guarantee.relation.within_bounds
    released = hf.release(moved, [TOTAL], hf.Conditional(epsilon=1, upper="most", per="distance"), hf.NoiseKey.for_tests(1))
    assert (released.table.counts <= [9, 4]).all()


def test_a_block_that_is_too_large_says_what_is_drawn_instead() -> None:
    large = hf.Universe.product({"state": [str(i) for i in range(51)], "age": [str(i) for i in range(24)]})
    with pytest.raises(hf.errors.NoExactSampler, match="such as one margin"):
        planned(hf.Conditional(epsilon=1, upper=1, per="distance"), [hf.margin("state"), hf.margin("age")], large)
    assert planned(hf.Conditional(epsilon=1, upper=1, per="distance"), [hf.margin("state")], large).drawing.is_exact


def test_a_column_has_one_value_in_each_sum() -> None:
    table = hf.Table(FOUR, np.array([1, 2, 0, 4]), public_columns={"beds": np.array([1, 1, 0, 2])})
    with pytest.raises(InvalidConstraint, match="different values in the cells of one sum"):
        hf.plan(table, [], hf.Conditional(epsilon=1, rows=[hf.at_least(TOTAL, "beds")], per="distance"))
    hf.plan(table, [], hf.Conditional(epsilon=1, rows=[hf.at_least(hf.subset("town", ["a", "b"]), "3 beds")], per="distance"))


# --- any bounds --------------------------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_totals_and_bounds_hold_in_every_release(data: st.DataObject) -> None:
    x = np.array(data.draw(st.lists(st.integers(0, 6), min_size=6, max_size=6)))
    lower = [data.draw(st.none() | st.integers(0, int(v))) for v in x]
    upper = [data.draw(st.none() | st.integers(int(v), 9)) for v in x]
    keep = data.draw(st.sampled_from([[], [TOTAL], [SEX], [AGE], [SEX, AGE]]))
    rows: list[Inequality] = []
    if data.draw(st.booleans()):
        rows = [hf.at_most(hf.subset("sex", ["F"]), int(x[:3].sum()) + data.draw(st.integers(0, 3)))]
    mechanism = hf.Conditional(
        epsilon="1/2", lower=lower, upper=upper, rows=rows, gamma=data.draw(st.sampled_from([None, "best"])), per="distance"
    )
    if all(bound is None for bound in (*lower, *upper)) and not rows:
        return
    made = hf.release(hf.Table(GRID, x), keep, mechanism, hf.NoiseKey.for_tests("any"))
    y = made.table.counts
    for kept in made.plan.facts.kept.rows:
        assert np.array_equal(kept.totals(y), kept.totals(x))
    assert all((low is None or low <= v) and (high is None or v <= high) for v, low, high in zip(y, lower, upper, strict=True))
    assert not rows or y[:3].sum() <= rows[0].bound
    assert type(mechanism).from_parameters(mechanism.parameters) == mechanism


def test_twins_differ_in_released_counts_only(tmp_path: Path) -> None:
    """Two tables with the same kept totals within the same bounds."""
    cards = []
    for name, counts in (("one", [9, 0, 0, 1]), ("other", [2, 3, 4, 1])):
        table = hf.Table(FOUR, np.array(counts))
        release = hf.release(
            table, [TOTAL], hf.Conditional(epsilon="1/2", upper=9, gamma="best", per="distance"), hf.NoiseKey.for_tests(2), release_id="x"
        )
        card = json.loads((release.save(tmp_path / name) / "card.json").read_text())
        del card["files"]
        cards.append(card)
    assert cards[0] == cards[1]
