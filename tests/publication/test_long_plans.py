"""Plans never run long: draws for the expected error are capped by a count, and what was not estimated is said to be so everywhere."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast as hf
from holdfast.channels import covariance
from holdfast.publication import report_facts
from holdfast.samplers.coupling.sampler import CouplingLaplace
from holdfast.samplers.protocol import cell_draws
from holdfast.samplers.table import choose
from tests.running import Run

LAPLACE = hf.GeneralizedLaplace(epsilon="1/4", per="distance")


def grid(size: int) -> hf.tables.Universe:
    codes = [str(i) for i in range(size)]
    return hf.tables.Universe.product({"a": codes, "b": codes})


def two_regions() -> hf.Table:
    """A region of 3 x 3 cells and one of 8 x 8."""
    cells = [("small", i, j) for i in range(3) for j in range(3)] + [("large", i, j) for i in range(8) for j in range(8)]
    columns = {name: [str(cell[place]) for cell in cells] for place, name in enumerate(("region", "a", "b"))}
    return hf.Table.from_counts(pa.table(columns | {"n": [7] * len(cells)}), cells=["region", "a", "b"], count="n", public=True)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Cell draws of public figures, as expected; more than a few seconds' worth fails before it is made."""
    found: list[float] = []
    real = covariance.public_draws

    def counted(sampler: Any, label: Any, count: int | None) -> Any:
        cost = cell_draws(sampler)
        found.append((int(min(10_000, max(5_000_000 / cost, 100))) if count is None else count) * cost)
        assert sum(found) <= 55_000_000, "a plan draws for minutes"
        return real(sampler, label, count)

    monkeypatch.setattr(covariance, "public_draws", counted)
    monkeypatch.setattr(report_facts, "public_draws", counted)
    return found


@pytest.fixture
def sums_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deviations of small grids come from draws, as those of larger ones do."""
    monkeypatch.setattr("holdfast.laws.families.grid_laplace_variance", lambda *_: None)


@pytest.fixture
def rejection(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Coupling from the past costs too much everywhere: what draws long is rejection."""
    monkeypatch.setattr("holdfast.samplers.coupling.sampler.TWO_WAY_ATOM_COST", 1e12)
    choose.cache_clear()
    yield
    choose.cache_clear()


def test_a_plan_of_a_grid_by_coupling_from_the_past(drawn: list[float]) -> None:
    """What rejection draws in half a minute takes milliseconds, so that its error is estimated; the plan says which sampler and why."""
    plan = hf.plan(grid(10), [hf.margin("a"), hf.margin("b")], LAPLACE)
    error = plan.expected_error
    assert (error.basis, error.cells_not_estimated) == ("estimated", 0)
    assert error.largest is not None
    assert abs(error.largest / 19.36**0.5 - 1) < 6.5 * error.error + 0.002, "the variance that long chains have, known to half a percent"
    (group,) = plan.to_fields()["sampler"]["groups"]
    assert group["sampler"] == "grid 10 x 10: coupling from the past"
    assert re.fullmatch(
        r"faster than rejection: about [0-9]+ milliseconds? a draw, where rejection would take about [0-9]+ seconds", group["why"]
    )
    assert 1 <= group["expected_tries"] < 2
    assert len(drawn) == 1


def exact_cell_variance() -> float:
    """Of a cell of 3 x 3 under l1 noise at epsilon 1, by enumeration: an entry of 12 would have a chance below e^-40."""
    a, b, c, d = np.meshgrid(*[np.arange(-11, 12)] * 4, sparse=True)
    others = (a + b, c + d, a + c, b + d, a + b + c + d)
    weights = np.exp(-1.0 * sum(abs(entry) for entry in (a, b, c, d, *others)))
    return float((weights * a**2).sum() / weights.sum())


def test_tries_are_weighed_where_most_of_them_would_be_thrown_away(sums_unknown: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate agrees with enumeration; with equal weights it would not. Too little room for enough tries, and there is none."""
    monkeypatch.setattr(covariance, "FEW_TRIES", 1)
    monkeypatch.setattr(covariance, "PILOT_CELLS", 1)
    mechanism = hf.GeneralizedLaplace(epsilon=1, sampler="coupling_from_past", per="distance")
    keep = [hf.margin("a"), hf.margin("b")]
    monkeypatch.setattr(covariance, "LEAST_DRAWS", 3_000)
    found = hf.plan(grid(3), keep, mechanism)
    exact, error = exact_cell_variance() ** 0.5, found.expected_error
    assert error.basis == "estimated"
    assert 0 < error.error < 0.03
    assert error.median is not None
    assert abs(error.median / exact - 1) < 5 * error.error
    real = CouplingLaplace.draw_weighed
    monkeypatch.setattr(CouplingLaplace, "draw_weighed", lambda *given: (real(*given)[0], np.zeros(given[1])))
    equal = hf.plan(grid(3), keep, mechanism).expected_error
    assert equal.median is not None
    assert abs(equal.median / exact - 1) > 5 * equal.error
    monkeypatch.setattr(covariance, "COSTLY_CELLS", 1e5)
    assert hf.plan(grid(3), keep, mechanism).expected_error.basis == "not estimated"


def test_weights_that_leave_few_tries_give_no_figure(sums_unknown: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covariance, "PILOT_CELLS", 1)
    monkeypatch.setattr(covariance, "FEW_TRIES", 1)
    real = CouplingLaplace.draw_weighed
    monkeypatch.setattr(CouplingLaplace, "draw_weighed", lambda *given: (real(*given)[0], -10.0 * np.arange(given[1])))
    mechanism = hf.GeneralizedLaplace(epsilon=1, sampler="coupling_from_past", per="distance")
    assert hf.plan(grid(3), [hf.margin("a"), hf.margin("b")], mechanism).expected_error.basis == "not estimated"


def test_a_few_draws_of_many_cells_that_are_alike_say_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """l2 noise on 8 x 8 cells, with room for 30 draws: once not estimated, although 1,470 free values are known then."""
    keep, mechanism = [hf.margin("a"), hf.margin("b")], hf.GeneralizedLaplace(epsilon=1, norm="l2", per="distance")
    plan = hf.plan(grid(8), keep, mechanism)
    cost = cell_draws(next(iter(plan.drawing.choices.values())).noise)
    monkeypatch.setattr(covariance, "PILOT_CELLS", 1)
    few, usual = [], plan.expected_error
    for room in (30, 9):
        monkeypatch.setattr(covariance, "COSTLY_CELLS", room * cost * 1.01)
        few.append(hf.plan(grid(8), keep, mechanism).expected_error)
    assert [error.basis for error in (usual, *few)] == ["estimated", "estimated", "not estimated"]
    assert usual.median is not None
    assert few[0].median is not None
    assert 0.01 < few[0].error < 0.1
    assert abs(few[0].median / usual.median - 1) < 5 * few[0].error


@pytest.mark.parametrize("size", [8, 10])
def test_a_plan_of_a_grid_whose_draws_are_long(drawn: list[float], rejection: None, size: int) -> None:
    """10 x 10 ran for minutes in silence, 8 x 8 for most of one."""
    plan = hf.plan(grid(size), [hf.margin("a"), hf.margin("b")], LAPLACE)
    error = plan.to_fields()["expected_error"]
    assert (error["basis"], error["cells_not_estimated"]) == ("not estimated", size * size)
    assert set(error["cell_standard_deviation"].values()) == {None}
    assert {margin["name"]: margin["standard_deviation"] for margin in error["margins"]} == {
        "total of the table": 0.0,
        "by a": 0.0,
        "by b": 0.0,
    }
    assert "was not estimated, because draws of this noise take too long" in str(plan)
    assert report_facts.noise_charts(plan.drawing) == []
    assert drawn == []


def test_what_can_be_estimated_still_is(drawn: list[float], rejection: None, sums_unknown: None, tmp_path: Path) -> None:
    """Part of a table: the plan, the card, the released table and `verify` agree on what is known."""
    table = two_regions()
    keep = [hf.margin("region", "a"), hf.margin("region", "b")]
    made = hf.release(table, keep, LAPLACE, key=hf.NoiseKey.for_tests(1), release_id="r1")
    error = made.plan.expected_error
    assert (error.basis, error.cells_not_estimated) == ("estimated", 64)
    assert error.smallest is not None
    assert 1 < error.smallest <= (error.largest or 0) < 10
    cell = np.eye(len(table))
    found = made.plan.covariance
    assert found is not None
    assert found.of(cell[0]) > 1
    assert np.isnan(found.of(cell[9]))
    assert found.of(cell[:9].sum(axis=0)) == pytest.approx(0, abs=1e-9)
    assert found.of(cell[9:17].sum(axis=0)) == 0
    deviations = made.table.standard_deviations
    assert deviations is not None
    assert np.isnan(deviations).tolist() == [False] * 9 + [True] * 64
    assert made.table.frame.column("standard_deviation").null_count == 64
    assert "It was not estimated for 64 cells" in made.card.expected_error.text
    assert "nan" not in json.dumps(made.card.to_dict())
    made.save(tmp_path / "out")
    assert hf.verify(tmp_path / "out").totals == 22
    assert drawn


def test_small_grids_are_estimated_as_before(drawn: list[float]) -> None:
    error = hf.plan(grid(6), [hf.margin("a"), hf.margin("b")], LAPLACE).expected_error
    assert (error.basis, error.cells_not_estimated) == ("estimated", 0)


def test_costly_shapes_share_one_allowance(sums_unknown: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many shapes, each within the cap, are not estimated without end; which are, follows from their order alone."""
    cells = [(str(r), str(i), str(j)) for r in range(4) for i in range(3 + r) for j in range(3)]
    columns = {name: [cell[place] for cell in cells] for place, name in enumerate(("region", "a", "b"))}
    table = hf.Table.from_counts(pa.table(columns | {"n": [1] * len(cells)}), cells=["region", "a", "b"], count="n")
    monkeypatch.setattr(covariance, "PILOT_CELLS", 1000)
    monkeypatch.setattr(covariance, "COSTLY_CELLS", 30_000)
    keep = [hf.margin("region", "a"), hf.margin("region", "b")]
    found = [np.isnan(np.asarray(hf.plan(table, keep, LAPLACE).deviations)) for _ in range(2)]
    assert (found[0] == found[1]).all()
    assert 0 < found[0].sum() < len(cells)


def test_a_long_draw_is_announced(run: Run, rejection: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an expectation, not by a clock; where the output is no terminal, too."""
    monkeypatch.chdir(tmp_path)
    text = (
        '[table]\nsource = "t.csv"\ncells = ["a", "b"]\ncount = "n"\n[keep]\nmargins = [["a"], ["b"]]\n[release]\nid = "r1"\n'
        'mechanism = "generalized-laplace"\nepsilon = "1/4"\nper = "distance"\n'
    )
    Path("run.toml").write_text(text)
    from holdfast.engines.local import BoundRelease

    def stop(*_: object) -> None:
        logging.getLogger("holdfast").info("drawing now")
        raise hf.errors.OutputProblem("stopped")

    monkeypatch.setattr(BoundRelease, "draw", stop)
    for size, announced in ((3, False), (10, True)):
        Path("t.csv").write_text("a,b,n\n" + "".join(f"{i},{j},{i + j}\n" for i in range(size) for j in range(size)))
        made = run("release", "run.toml", "-o", "out", "--no-ledger")
        assert made.code == 9
        assert ("Drawing takes" in made.err.partition("drawing now")[0]) == announced
