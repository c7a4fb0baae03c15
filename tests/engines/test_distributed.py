"""Agents that publish together: every kept total exact whoever holds what, the law of one party, and what a shared key does not protect."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.engines.distributed import AgentPart, publish_part
from holdfast.errors import InvalidParameter, RequestTooLarge, StreamReused
from holdfast.tables.measure import AnswerGrid

TOWNS = hf.Universe.product({"town": ["a", "b", "c"], "sex": ["F", "M"]})
TRUE = np.array([7, 0, 3, 12, 5, 1])
ROWS = [hf.linear([[2, -1, 0, 3, 0, 0], [0, 1, 1, 0, 5, -2]])]
MARGINS = [hf.margin("town"), hf.margin("sex")]

CASES: dict[str, tuple[list[Any], Any]] = {
    "one total, laplace": ([hf.total()], hf.GeneralizedLaplace(epsilon="1/2", per="distance")),
    "margins, gaussian": (MARGINS, hf.GeneralizedGaussian(rho="1/10", per="distance")),
    "margins, rounded projection": (MARGINS, hf.RoundedProjection(epsilon="1/4", per="distance")),
    "any rows, gaussian": (ROWS, hf.GeneralizedGaussian(rho="1/10", per="distance")),
    "any rows, rounded projection": (ROWS, hf.RoundedProjection(epsilon="1/4", per="distance")),
    "nothing kept": ([], hf.GeneralizedLaplace(epsilon="1/2", per="distance")),
}
SPLITS = [[[0], [1], [2], [3], [4], [5]], [[5, 0], [1, 2, 3], [4]], [list(range(6))]]


def _parts(case: str, cells: list[list[int]], seed: str, true: np.ndarray = TRUE) -> list[AgentPart]:
    """Every agent makes the plan and opens the key by itself."""
    keep, mechanism = CASES[case]
    out = []
    for own in cells:
        with hf.NoiseKey.for_tests(seed) as key:
            out.append(publish_part(hf.plan(TOWNS, keep, mechanism).drawing, own, true[own], key=key, release_id="r1"))
    return out


def _joined(parts: list[AgentPart]) -> np.ndarray:
    out = np.full(6, 2**40)
    for part in parts:
        out[part.cells] = part.values
    return out


@pytest.mark.parametrize("case", CASES)
def test_totals_hold_and_the_noise_is_that_of_one_party_however_cells_are_shared_out(case: str) -> None:
    keep, mechanism = CASES[case]
    published = [_joined(_parts(case, cells, "parts")) for cells in SPLITS]
    for together in published:
        assert np.array_equal(together, published[-1])
        for rows in hf.plan(TOWNS, keep, mechanism).facts.kept.rows:
            assert np.array_equal(rows.totals(together), rows.totals(TRUE))


def test_an_agents_part_depends_on_no_other_number() -> None:
    others = TRUE.copy()
    others[[0, 2, 3, 4]] = 1000
    mine = [_parts("any rows, gaussian", [[1, 5]], "parts", true)[0].values for true in (TRUE, others)]
    assert np.array_equal(mine[0], mine[1])


def test_noise_is_drawn_by_the_plan_s_sampler_from_streams_of_this_release() -> None:
    keep, mechanism = CASES["margins, gaussian"]
    drawing = hf.plan(TOWNS, keep, mechanism).drawing
    with hf.NoiseKey.for_tests("parts") as key, hf.NoiseKey.for_tests("parts") as again:
        part = publish_part(drawing, range(6), np.zeros(6, dtype=np.int64), key=key, release_id="r1")
        subkey = again.derive("part of a release", "r1", drawing.channel.identity)
        (task,) = drawing.channel.tasks()
        assert np.array_equal(part.values[task.cells], drawing.choice(task.shape).noise.draw(1, subkey.stream(*task.label)))
        other = publish_part(drawing, range(6), np.zeros(6, dtype=np.int64), key=key, release_id="r2")
    assert not np.array_equal(part.values, other.values)


def test_any_agent_can_take_off_everybodys_noise_and_the_promise_says_so() -> None:
    parts = _parts("margins, rounded projection", SPLITS[0], "parts")
    (noise,) = _parts("margins, rounded projection", [list(range(6))], "parts", np.zeros(6, dtype=np.int64))  # what agent 0 can do alone
    assert np.array_equal(_joined(parts) - noise.values, TRUE)
    for part in parts:
        assert part.guarantee.key_is_shared
        assert part.guarantee.key_is_shared
        assert "against: outsiders only" in repr(part.guarantee)
        assert "against outsiders only" in hf.describe(part.guarantee)
    alone = hf.plan(TOWNS, *CASES["margins, rounded projection"]).guarantee
    assert not alone.key_is_shared
    assert "outsiders" not in hf.describe(alone)


def test_a_key_for_two_releases_of_changed_numbers_would_tell_the_change() -> None:
    """Why every release takes a fresh key: the input is not in the subkey, so that equal names draw equal noise."""
    changed = TRUE + np.array([1, -1, 0, 0, -1, 1])
    first, second = (_joined(_parts("margins, gaussian", SPLITS[0], "parts", true)) for true in (TRUE, changed))
    assert np.array_equal(second - first, changed - TRUE)


def test_what_is_refused() -> None:
    plan = hf.plan(TOWNS, *CASES["margins, gaussian"])
    with hf.NoiseKey.for_tests("refused") as key:
        for cells in ([], [0, 0], [6], [-1], [[0]], [0.5]):
            with pytest.raises(InvalidParameter, match="each once, by its number from 0 to 5"):
                publish_part(plan.drawing, cells, [1] * len(cells), key=key, release_id="r")  # type: ignore[arg-type]
        for values in ([1], [0.5, 1.0], [1, 2, 3]):
            with pytest.raises(InvalidParameter, match="one whole number for each of its 2 cells"):
                publish_part(plan.drawing, [0, 1], values, key=key, release_id="r")  # type: ignore[arg-type]
        reads = hf.plan(TOWNS, [hf.total()], hf.Conditional(epsilon="1/2", per="distance"))
        with pytest.raises(InvalidParameter, match="reads no data"):
            publish_part(reads.drawing, [0], [1], key=key, release_id="r")
        publish_part(plan.drawing, [0], [1], key=key, release_id="r")
        with pytest.raises(StreamReused, match="fresh key"):
            publish_part(plan.drawing, [1], [1], key=key, release_id="r")


def test_a_plan_that_would_round_to_its_grid_is_refused() -> None:
    """Owners cannot round by themselves, and the promise of such a plan counts rounding that nobody did."""
    grid = AnswerGrid(Fraction(1, 64), l1=Fraction(1))
    plan = hf.plan(hf.Table(TOWNS, np.zeros(6, dtype=np.int64), measure=grid), [hf.total()], hf.ProjectedLaplace(epsilon="1/2"))
    with pytest.raises(InvalidParameter, match="Make the plan with on_grid=True"):
        publish_part(plan.drawing, [0], [1], key=hf.NoiseKey.for_tests("off"), release_id="r")


@pytest.mark.parametrize("value", [2**62, -(2**62), 2**63, 2**64 - 1])
def test_numbers_that_leave_the_range_are_refused_and_not_shown(value: int) -> None:
    plan = hf.plan(TOWNS, *CASES["margins, gaussian"])
    with pytest.raises(RequestTooLarge, match="Give smaller numbers") as problem:
        publish_part(plan.drawing, [0], [value], key=hf.NoiseKey.for_tests("large"), release_id="r")
    assert str(value) not in str(problem.value)


def test_a_part_needs_the_key_that_agents_share() -> None:
    plan = hf.plan(TOWNS, *CASES["margins, gaussian"])
    with pytest.raises(InvalidParameter, match="the NoiseKey that all agents share"):
        publish_part(plan.drawing, [0], [1], key=None, release_id="r")  # type: ignore[arg-type]
