"""Diagnoses: made from public facts alone, one row for each shape and kernel, and honest about what was not found."""

from __future__ import annotations

import inspect
import json
import os
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import holdfast as hf
from holdfast.chains.assessment import assess
from holdfast.chains.kernels import DECAYS, KERNELS, chain_seed, kernel_for
from holdfast.chains.meeting import Meetings
from holdfast.chains.protocol import Kernel
from holdfast.channels import Channel, Facts
from holdfast.errors import InvalidParameter, NoMeeting, OutputExists, OutputProblem, RequestTooLarge
from holdfast.invariants.constraints import Constraint
from holdfast.lattices.shapes import Grid, Shape, Whole
from holdfast.laws import L1Laplace, L2Laplace, Reads, Target
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.privacy.estimated import added_delta
from holdfast.research.chains import diagnose as module
from holdfast.research.chains.curve import TotalVariationCurve
from holdfast.research.chains.diagnose import CONFIDENTIAL, NOT_INSTALLED, DiagnosedBlocks, Diagnosis, DiagnosisRow, diagnose
from tests.chains.toy import Refresh
from tests.publication.test_plan import Sealed
from tests.snapshot_files import Snapshot

UNIVERSE = hf.Universe.product({"a": ["x", "y", "z"], "b": ["p", "q", "r"]})
MARGINS = [hf.margin("a"), hf.margin("b")]
LAPLACE = hf.GeneralizedLaplace(epsilon="1/2", per="distance")
FEW: dict[str, Any] = {"pairs": 12, "most_sweeps": 2000}


class ReadingTarget(L1Laplace):
    """A made-up law that depends on counts."""

    reads = Reads.COUNTS


class Reading(hf.GeneralizedLaplace):
    """A made-up mechanism whose law depends on counts."""

    def channel(self, facts: Facts) -> Channel:
        return replace(super().channel(facts), target=ReadingTarget(self.epsilon))


def fields(found: Diagnosis) -> dict[str, Any]:
    """As a reader of the JSON gets them."""
    out: dict[str, Any] = json.loads(json.dumps(found.to_fields(), allow_nan=False))
    return out


def test_no_count_is_read() -> None:
    found = diagnose(Sealed(UNIVERSE), MARGINS, LAPLACE, **FEW)
    assert [row.kernel for row in found.rows] == list(KERNELS)
    assert all(row.steps is not None for row in found.rows)


def test_tables_with_equal_totals_have_the_same_diagnosis() -> None:
    one = np.array([[50, 1, 2], [3, 40, 5], [6, 7, 30]])
    two = one + np.array([[-9, 9, 0], [9, -9, 0], [0, 0, 0]])
    assert (one.sum(axis=0) == two.sum(axis=0)).all()
    assert (one.sum(axis=1) == two.sum(axis=1)).all()
    found = [diagnose(hf.Table(UNIVERSE, counts.ravel()), MARGINS, LAPLACE, **FEW) for counts in (one, two)]
    assert found[0].to_fields() == found[1].to_fields()
    assert str(found[0]) == str(found[1])
    assert found[0].to_html() == found[1].to_html()


@pytest.mark.parametrize(
    ("plain", "mechanism"),
    [
        (LAPLACE, hf.GeneralizedLaplace(epsilon="1/2", sampler="line_gibbs", eta="3/120", per="distance")),
        (
            hf.GeneralizedGaussian(epsilon=1, delta="1e-3", per="distance"),
            hf.GeneralizedGaussian(epsilon=1, delta="1e-3", sampler="line_gibbs", eta="3/120", per="distance"),
        ),
    ],
    ids=["Laplace", "Gaussian"],
)
def test_the_pairs_are_those_of_a_release(plain: Mechanism, mechanism: Mechanism) -> None:
    """With eta = 3/N a release assesses the same pairs and makes the recommended steps."""
    (row,) = diagnose(UNIVERSE, MARGINS, plain, pairs=120, kernels=["line_gibbs"]).rows
    (group,) = hf.plan(UNIVERSE, MARGINS, mechanism).to_fields()["sampler"]["groups"]
    chain = group["chain"]
    assert (row.steps, row.eta) == (chain["steps"], Fraction(1, 40))
    assert row.curve is not None
    assert (row.curve.meetings.lag, int(row.curve.meetings.coupled_steps.max())) == (chain["lag"], chain["largest_meeting"])


def test_the_whole_lattice_under_a_norm_has_the_pairs_of_a_release() -> None:
    mechanism = hf.GeneralizedLaplace(epsilon=1, norm="l2", per="distance")
    keep: list[Constraint] = [hf.margin("a"), hf.subset("a = 'x' and b = 'p'")]
    (row,) = diagnose(UNIVERSE, keep, mechanism, pairs=100, kernels=["metropolis"]).rows
    (shape,) = mechanism.channel(Facts.of(UNIVERSE, keep)).shapes()
    target = L2Laplace(Fraction(1))
    other = assess(kernel_for("metropolis", shape, target), eta="3/100", seed=chain_seed("metropolis", shape, target))
    assert row.steps == other.steps
    assert isinstance(row.part.shape, Whole)
    assert (row.part.shape.size, row.part.shape.dimension) == (8, 5)
    shown = asdict(row.facts(None))
    assert (shown["kind"], shown["cells"], shown["free_dimensions"]) == ("whole", 8, 5)


class TestRows:
    def test_fields_of_a_row(self) -> None:
        found = fields(diagnose(UNIVERSE, MARGINS, LAPLACE, kernels=["line_gibbs"], **FEW))
        assert next(iter(found)) == "confidential"
        assert (found["confidential"], found["confidential_text"], found["status"]) == (False, None, "estimated")
        assert (found["pairs"], found["most_sweeps"]) == (12, 2000)
        (row,) = found["rows"]
        assert (row["block"], row["kind"], row["shape"], row["blocks"]) == ("3 x 3 grid", "grid", [3, 3], 1)
        assert (row["cells"], row["free_dimensions"], row["problem"]) == (9, 4, None)
        assert row["recommended_steps"] == row["recommended_sweeps"] * row["steps_per_sweep"]
        assert 0 <= row["recommended_steps"] - 2 * row["largest_meeting_steps"] < row["steps_per_sweep"]
        assert row["median_meeting_steps"] <= row["largest_meeting_steps"]
        assert (row["met"], row["eta"]) == (12, "1/4")
        added = added_delta(Fraction(1, 2), Fraction(1, 4))
        assert added <= Fraction(row["added_delta"]) <= added * Fraction(101, 100)
        assert found["together"]["added_delta"] == row["added_delta"]
        assert row["movement"]["acceptance_rate"] == 1
        assert 0 < row["movement"]["effective_sample_size"] <= 2 * row["movement"]["draws"]
        assert set(row["movement"]["columns"]) == {"energy", "first cell", "partial sum"}

    def test_curves_fall_to_zero_at_three_lags(self) -> None:
        (row,) = fields(diagnose(UNIVERSE, MARGINS, LAPLACE, kernels=["metropolis"], **FEW))["rows"]
        lags = [curve["lag_steps"] for curve in row["curves"]]
        assert lags == [row["lag_steps"], row["lag_steps"] // 2, 2 * row["lag_steps"]]
        assert [curve["assessed"] for curve in row["curves"]] == [True, False, False]
        for curve in row["curves"]:
            assert curve["is_bound"]
            assert curve["sweeps"] == sorted(set(curve["sweeps"]))
            assert curve["estimate"] == sorted(curve["estimate"], reverse=True)
            assert (curve["estimate"][-1], curve["sweeps"][-1]) == (0, curve["end_sweeps"])
            assert min(curve["upper"]) == 3 / 12

    def test_a_lag_of_one_step_has_no_half(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "kernel_for", lambda name, shape, target: Refresh(16))
        (row,) = diagnose(UNIVERSE, MARGINS, LAPLACE, kernels=["metropolis"], **FEW).rows
        assert row.curve is not None
        assert [curve.meetings.lag for curve in (row.curve, *row.others)] == [1, 2]

    def test_blocks_of_each_shape_are_counted(self) -> None:
        universe = hf.Universe.product({"a": ["x", "y", "z"], "b": ["p", "q"]})
        found = diagnose(
            universe, [hf.margin("a"), hf.subset("a = 'x' and b = 'p'")], hf.GeneralizedLaplace(epsilon="1/100", per="distance"), **FEW
        )
        assert [(part.label, part.blocks) for part in found.parts] == [("one sum of 2 cells", 2)]  # of x, nothing moves
        assert [row.kernel for row in found.rows] == ["metropolis", "line_gibbs"]
        together = asdict(found.together())
        assert (together["blocks"], together["eta"], together["added_delta"]) == (2, "1/2", None)
        assert "which promises nothing" in together["text"]

    def test_two_blocks_and_two_shapes_add(self) -> None:
        """Of a 3 x 2 table with a total for each row: one row of two cells and, beside it, a pair of rows with one total."""
        universe = hf.Universe.product({"a": ["x", "y", "z"], "b": ["p", "q"]})
        found = diagnose(
            universe, [hf.margin("a")], hf.GeneralizedLaplace(epsilon="1/2", per="distance"), kernels=["line_gibbs"], pairs=200
        )
        (row,) = fields(found)["rows"]
        added = added_delta(Fraction(1, 2), 3 * Fraction(3, 200))
        assert added <= Fraction(row["added_delta"]) <= added * Fraction(101, 100)
        keep = [hf.subset("a = 'x'"), hf.subset("a = 'y' or a = 'z'")]
        together = diagnose(
            universe, keep, hf.GeneralizedLaplace(epsilon="1/2", per="distance"), kernels=["line_gibbs"], pairs=200
        ).together()
        assert together.eta == str(2 * Fraction(3689, 200_000))
        assert "2 blocks together of 2 shapes" in together.text

    def test_the_sampler_of_the_run_comes_first(self) -> None:
        named = hf.GeneralizedLaplace(epsilon="1/2", sampler="line_gibbs", per="distance")
        assert [row.kernel for row in diagnose(UNIVERSE, MARGINS, named, **FEW).rows] == ["line_gibbs"]
        both = diagnose(UNIVERSE, MARGINS, named, kernels=["metropolis", "line_gibbs", "metropolis"], **FEW)
        assert [row.kernel for row in both.rows] == ["metropolis", "line_gibbs"]

    @pytest.mark.parametrize(
        ("mechanism", "words"),
        [
            (hf.GeneralizedGaussian(rho="1/10", per="distance"), "give epsilon and delta for a chain"),
            (hf.GeneralizedGaussian(sigma_squared=5), "give epsilon and delta for a chain"),
            (hf.GeneralizedGaussian(epsilon=1, delta="1e-3", per="distance"), "eta = 0.93 to delta"),
        ],
        ids=str,
    )
    def test_gaussians(self, mechanism: Any, words: str) -> None:
        found = diagnose(UNIVERSE, MARGINS, mechanism, kernels=["line_gibbs"], **FEW)
        assert found.rows[0].steps is not None
        assert words in str(found)

    def test_nothing_for_a_chain_to_do(self) -> None:
        found = diagnose(UNIVERSE, [], LAPLACE, **FEW)
        assert found.rows == ()
        assert "Nothing is left for a chain" in str(found)
        assert "Nothing is left for a chain" in found.to_html()
        assert fields(found)["rows"] == []


class TestVerdict:
    """The first line says what the figures come to."""

    @staticmethod
    def first_line(*given: Any, **named: Any) -> str:
        found = diagnose(*given, **named)
        line = str(found).splitlines()[0]
        assert line == f"Verdict    {found.verdict}"
        assert found.verdict in found.to_html()
        return line

    def test_chains_that_meet(self) -> None:
        named: dict[str, Any] = {"kernels": ["line_gibbs"], **FEW}
        (row,) = diagnose(UNIVERSE, MARGINS, LAPLACE, **named).rows
        assert row.steps is not None
        sweeps = row.steps // row.steps_per_sweep
        line = self.first_line(UNIVERSE, MARGINS, LAPLACE, **named)
        assert f"Chains come to their law: take line_gibbs for {sweeps} sweep" in line
        assert line.endswith(f"This is an estimate from {FEW['pairs']} pairs each.")

    def test_chains_that_do_not(self) -> None:
        given = UNIVERSE, MARGINS, hf.GeneralizedLaplace(epsilon="1/10", per="distance")
        line = self.first_line(*given, pairs=20, most_sweeps=5, kernels=["metropolis"])
        assert "No chain can be recommended for" in line
        assert line.endswith("no bound was obtained.")

    def test_nothing_to_do(self) -> None:
        assert "Nothing is left for a chain" in self.first_line(UNIVERSE, [], LAPLACE, **FEW)

    def test_pairs_at_another_lag_that_take_longer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(DiagnosisRow, "warning", "at a lag of 1 sweep a pair took longer")
        assert "Doubtful: line_gibbs for" in self.first_line(UNIVERSE, MARGINS, LAPLACE, kernels=["line_gibbs"], **FEW)


class TestNoBound:
    def test_pairs_that_do_not_meet(self) -> None:
        """Five steps are too few for metropolis at this epsilon. Then the lag is the cap and the curve the share of pairs that are left."""
        found = diagnose(UNIVERSE, MARGINS, hf.GeneralizedLaplace(epsilon="1/10", per="distance"), pairs=20, most_sweeps=5)
        slow, *_ = found.rows
        row = asdict(slow.facts(Fraction(1)))
        assert slow.curve is not None
        met = 20 - slow.curve.meetings.unmet
        assert row["problem"] == f"no bound: {met} of 20 pairs met within 5 sweeps"
        assert (row["recommended_steps"], row["eta"], row["added_delta"], row["median_meeting_steps"]) == (None,) * 4
        assert (row["met"], row["pairs"], row["given_up_after_sweeps"]) == (met, 20, 5)
        (curve,) = row["curves"]
        assert (curve["is_bound"], curve["upper"]) == (False, None)
        assert curve["sweeps"] == (0, 1, 2, 3, 4)  # without the cap, where the figure would be 0
        assert list(curve["estimate"]) == [float((slow.curve.meetings.coupled_steps > step).mean()) for step in range(5)]  # pairs left
        assert row["movement"]["acceptance_rate"] > 0
        assert [r.kernel for r in found.rows] == list(KERNELS)
        assert f"metropolis  {row['problem']}" in str(found)

    def test_a_pilot_that_fails_is_followed_by_few_pairs(self) -> None:
        (row,) = diagnose(
            UNIVERSE, MARGINS, hf.GeneralizedLaplace(epsilon="1/10", per="distance"), pairs=300, most_sweeps=5, kernels=["metropolis"]
        ).rows
        assert row.curve is not None
        assert row.problem == f"no bound: {50 - row.curve.meetings.unmet} of 50 pairs met within 5 sweeps"

    def test_a_pilot_that_fails_does_not_decide(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_pilot(*_: Any, **__: Any) -> None:
            raise NoMeeting("One did not.")

        monkeypatch.setattr(module, "pilot", no_pilot)
        (row,) = diagnose(UNIVERSE, MARGINS, LAPLACE, pairs=60, most_sweeps=900, kernels=["line_gibbs"]).rows
        assert row.curve is not None
        assert (row.problem, row.curve.meetings.pairs) == (None, 60)
        assert row.curve.meetings.lag == row.curve.meetings.most == 900 * row.steps_per_sweep

    def test_without_a_bound_there_is_none_for_all_blocks(self) -> None:
        found = diagnose(
            UNIVERSE, MARGINS, hf.GeneralizedLaplace(epsilon="1/10", per="distance"), pairs=20, most_sweeps=5, kernels=["metropolis"]
        )
        assert asdict(found.together()) == {
            "blocks": 1,
            "eta": None,
            "added_delta": None,
            "text": "No bound was obtained for 3 x 3 grid.",
        }

    def test_a_kernel_too_large_leaves_the_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def make(name: str, shape: Shape, target: Target) -> Kernel:
            if name == "metropolis":
                raise RequestTooLarge("Too large.")
            return kernel_for(name, shape, target)

        monkeypatch.setattr(module, "kernel_for", make)
        found = diagnose(UNIVERSE, MARGINS, LAPLACE, **FEW)
        assert [row.problem for row in found.rows] == ["not used: Too large.", None]
        refused = asdict(found.rows[0].facts(None))
        assert (refused["curves"], refused["movement"], refused["pairs"]) == ((), None, None)
        assert "not used: " in found.to_html()

    def test_the_work_is_bounded_and_the_row_says_so(self, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
        monkeypatch.setattr(module, "steps_allowed", lambda kernel: module.PHASES * 50 * 4)
        (row,) = diagnose(UNIVERSE, MARGINS, hf.GeneralizedLaplace(epsilon="1/10", per="distance"), kernels=["metropolis"], **FEW).rows
        assert row.problem is not None
        snapshot(row.problem, "four sweeps for each pair")
        monkeypatch.setattr(module, "steps_allowed", lambda kernel: module.PHASES * 40)
        (row,) = diagnose(UNIVERSE, MARGINS, LAPLACE, kernels=["metropolis"], **FEW).rows
        assert row.problem is not None
        snapshot(row.problem, "less than one sweep")

    def test_a_block_too_large_for_its_pairs_is_not_begun(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """By a count, and before a kernel is made: a large block took gigabytes."""
        monkeypatch.setattr(DiagnosedBlocks, "kernel", lambda *_: pytest.fail("a kernel was made"))
        universe = hf.Universe.product({"a": [str(i) for i in range(60_000)]})
        found = diagnose(universe, [hf.total()], hf.GeneralizedLaplace(epsilon="1/4", per="distance"))
        assert not found.has_bounds
        assert all("200 pairs of chains on 60,000 cells" in str(row.problem) for row in found.rows)

    def test_other_lags_may_speak_against_the_number(self, snapshot: Snapshot) -> None:
        def curve(lag: int, *times: int, met: bool = True) -> TotalVariationCurve:
            return TotalVariationCurve(Meetings("toy", lag, 50, lag + np.array(times), np.array([True] * (len(times) - 1) + [met]), "seed"))

        part = DiagnosedBlocks("toy", Grid((2, 2)), 1, L1Laplace(Fraction(1)))
        assert DiagnosisRow(part, "toy", None, 2, curve(4, 3, 9), (curve(2, 3, 18),)).warning is None
        longer = DiagnosisRow(part, "toy", None, 2, curve(4, 3, 9), (curve(2, 3, 18), curve(8, 3, 19)))
        snapshot(longer.warning or "", "longer")
        censored = DiagnosisRow(part, "toy", None, 2, curve(4, 3, 9), (curve(2, 3, 50, met=False),))
        snapshot(censored.warning or "", "censored")

    def test_without_arviz(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        found = diagnose(UNIVERSE, MARGINS, LAPLACE, kernels=["metropolis"], **FEW)
        moved = fields(found)["rows"][0]["movement"]
        assert (moved["note"], moved["effective_sample_size"], moved["autocorrelation_sweeps"]) == (NOT_INSTALLED, None, None)
        assert 0 < moved["acceptance_rate"] < 1
        assert "pip install holdfast[diagnose]" in str(found)
        assert "pip install holdfast[diagnose]" in found.to_html()


class TestRefused:
    @pytest.mark.parametrize("mechanism", [hf.RoundedProjection(epsilon=1, per="distance"), hf.Suppression()], ids=str)
    def test_mechanisms_without_chains(self, mechanism: Any) -> None:
        with pytest.raises(InvalidParameter, match=f"'{mechanism.name}' has no chains"):
            diagnose(UNIVERSE, MARGINS, mechanism)

    def test_what_is_no_mechanism(self) -> None:
        with pytest.raises(InvalidParameter, match=r"needs a mechanism.*Got str"):
            diagnose(UNIVERSE, MARGINS, "laplace")  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            ({"kernels": ["gibbs"]}, "kernel must be one of 'metropolis', 'line_gibbs'. Got 'gibbs'"),
            ({"kernels": "metropolis"}, "kernels is a list of names"),
            ({"pairs": 1}, "fewer than 4 pairs of chains. Got pairs = 1"),
            ({"pairs": 2.5}, "pairs"),
            ({"most_sweeps": 0}, "Got most_sweeps = 0"),
        ],
        ids=str,
    )
    def test_arguments(self, wrong: dict[str, Any], words: str) -> None:
        with pytest.raises(InvalidParameter, match=words):
            diagnose(UNIVERSE, MARGINS, LAPLACE, **wrong)


class TestConfidential:
    def test_everything_says_so_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(DECAYS, cast("type[Target]", ReadingTarget), DECAYS[L1Laplace])
        found = diagnose(UNIVERSE, MARGINS, Reading(epsilon="1/2", per="distance"), kernels=["line_gibbs"], **FEW)
        assert str(found).startswith(CONFIDENTIAL + "\n")
        assert list(fields(found).items())[:2] == [("confidential", True), ("confidential_text", CONFIDENTIAL)]
        found.save(tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "<title>CONFIDENTIAL: Chains for count</title>" in page
        assert page.index(CONFIDENTIAL) < page.index("<h1>")
        assert "No count enters" not in page
        assert os.stat(tmp_path / "page.html").st_mode & 0o777 == 0o600

    def test_laws_that_read_nothing_are_not_marked(self) -> None:
        found = diagnose(UNIVERSE, MARGINS, LAPLACE, kernels=["line_gibbs"], **FEW)
        assert "CONFIDENTIAL" not in str(found) + found.to_html()
        assert "No count enters" in found.to_html()


class TestPage:
    def test_it_is_written_once(self, tmp_path: Path) -> None:
        found = diagnose(UNIVERSE, MARGINS, LAPLACE, kernels=["line_gibbs"], **FEW)
        before = os.umask(0o027)
        try:
            found.save(tmp_path / "page.html")
        finally:
            os.umask(before)
        assert (tmp_path / "page.html").read_text(encoding="utf-8") == found.to_html()
        assert os.stat(tmp_path / "page.html").st_mode & 0o777 == 0o640
        with pytest.raises(OutputExists, match=r"'page.html' already exists"):
            found.save(tmp_path / "page.html")
        with pytest.raises(OutputProblem, match="does not exist"):
            found.save(tmp_path / "none" / "page.html")
        assert os.listdir(tmp_path) == ["page.html"]

    def test_a_file_that_appears_in_between_is_left(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found = diagnose(UNIVERSE, [], LAPLACE)
        (tmp_path / "page.html").write_text("mine")
        monkeypatch.setattr(module, "check_page", lambda path: None)
        with pytest.raises(OutputExists):
            found.save(tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text() == "mine"
        assert os.listdir(tmp_path) == ["page.html"]


def test_progress_names_what_is_run_and_ends_full() -> None:
    told: list[tuple[str, int, int]] = []
    diagnose(UNIVERSE, MARGINS, LAPLACE, kernels=["line_gibbs"], progress=lambda *seen: told.append(seen), **FEW)
    last = {what: (done, total) for what, done, total in told}
    head = "line_gibbs, 3 x 3 grid: "
    made, steps = last.pop(head + "diagnostics")
    assert made == steps
    assert last == {head + "pilot": (50, 50), head + "pairs": (12, 12), head + "other lags": (12, 12)}


def test_the_command_has_the_same_defaults() -> None:
    from holdfast.cli.research import diagnose as command

    defaults = {name: parameter.default for name, parameter in inspect.signature(command).parameters.items()}
    assert (defaults["pairs"], defaults["most_sweeps"]) == (module.DEFAULT_PAIRS, module.DEFAULT_SWEEPS)


class TestWorkThatShows:
    """A diagnosis tells what it does every few seconds, can be stopped there, and has an end."""

    def test_conventional_diagnostics_are_told_too(self) -> None:
        """They ran in silence, for as long as they took."""
        told: list[tuple[str, int, int]] = []
        diagnose(UNIVERSE, MARGINS, LAPLACE, kernels=["line_gibbs"], progress=lambda *said: told.append(said), **FEW)
        moving = [(done, total) for what, done, total in told if what == "line_gibbs, 3 x 3 grid: diagnostics"]
        assert moving[0][0] == 0
        assert moving[-1][0] == moving[-1][1] > 0
        assert [done for done, _ in moving] == sorted(done for done, _ in moving)

    @pytest.mark.parametrize("phase", ["pilot", "pairs", "other lags", "diagnostics"])
    def test_ctrl_c_ends_it_in_every_phase(self, phase: str) -> None:
        def stop(what: str, done: int, _: int) -> None:
            if what.endswith(phase) and done:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            diagnose(UNIVERSE, MARGINS, LAPLACE, kernels=["metropolis"], progress=stop, **FEW)

    @pytest.mark.parametrize("name", ["metropolis", "line_gibbs"])
    def test_slices_change_no_figure(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        found = [fields(diagnose(UNIVERSE, MARGINS, LAPLACE, kernels=[name], **FEW))]
        monkeypatch.setattr("holdfast.research.chains.diagnostics.SLICE_NANOSECONDS", 20_000)
        told: list[int] = []
        tell = lambda what, done, total: told.append(done) if what.endswith("diagnostics") else None  # noqa: E731
        found.append(fields(diagnose(UNIVERSE, MARGINS, LAPLACE, kernels=[name], progress=tell, **FEW)))
        assert len(told) > 50
        assert found[0] == found[1]

    def test_what_would_take_too_long_is_not_estimated_and_said_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MOVEMENT_SECONDS", 0)
        found = diagnose(UNIVERSE, MARGINS, LAPLACE, kernels=["line_gibbs"], **FEW)
        (row,) = found.rows
        assert row.problem is None
        assert row.movement is not None
        assert (row.movement.note, row.movement.effective_sample_size) == (module.NOT_ESTIMATED, None)
        assert "not estimated: it would take more than" in str(found)

    def test_all_rows_share_the_time_that_is_allowed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each row of each shape had half an hour for each of its curves."""
        monkeypatch.setattr(module, "steps_allowed", lambda kernel: 60_000 * kernel.steps_per_sweep)
        found = diagnose(UNIVERSE, MARGINS, LAPLACE, pairs=50, most_sweeps=10_000)
        capped = [row.curve.meetings.most // row.steps_per_sweep for row in found.rows if row.curve is not None]
        assert len(capped) == len(found.rows) == 2
        assert sum(module.PHASES * 50 * most for most in capped) <= 60_000
