"""The benchmarks run, show every row, and judge by their bars; what no machine changes, keystream per draw, is held to its bar here.

Timings are never tested: they depend on the machine. OpenDP is not needed.
"""

from __future__ import annotations

import json
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import (
    answers,
    cellkey,
    chains,
    conditional,
    laplace,
    lattice,
    levels,
    levels_weighted,
    noise,
    pages,
    release,
    release_cases,
    subspace,
)
from benchmarks.__main__ import GROUPS, main
from benchmarks.report import NOT_RUN, Bar, Report, Row, Table, verdict
from benchmarks.timing import best_of, fresh_interpreter
from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.moves import Swaps
from holdfast.chains.target import ChainTarget
from holdfast.errors import NoExactSampler
from holdfast.invariants import margin
from holdfast.lattices import lattice as lattice_of
from holdfast.randomness import NoiseKey
from holdfast.research.subspace import Changes, InvariantSpace, Query, optimal_covariance, prefix_sums, ranges
from holdfast.tables import Table as Counts
from holdfast.testing.fit import ALPHA, check_p_value
from tests.sums_of_squares import sum_of_squares_p_value

AROUND = (
    "sampler of",
    "draws in batches",
    "`import holdfast`",
    "every public name",
)


@pytest.fixture(scope="module")
def report() -> Report:
    return noise.run(n=1000, rounds=1, rivals=False, streamed=1000)


@pytest.mark.long
class TestNoise:
    def test_every_law_has_its_row_with_every_column(self, report: Report) -> None:
        draws, _ = report.tables
        assert [row.name for row in draws.rows] == [setting.name for setting in noise.SETTINGS]
        assert {len(row.figures) + 1 for row in draws.rows} == {len(draws.headers)}

    def test_the_settings_are_those_of_the_bars(self) -> None:
        assert [setting.size for setting in noise.SETTINGS if setting.is_gaussian] == [1, 100, 10**4, 10**6, 10**12]
        assert [setting.size for setting in noise.SETTINGS if not setting.is_gaussian] == [1, 10, 1000]
        assert (noise.PREPARED.name, noise.OPENDP_CHECKED.name) == ("Gaussian, sigma_squared 10^6", "Gaussian, sigma_squared 10^4")

    def test_everything_around_the_draws_is_measured(self, report: Report) -> None:
        _, around = report.tables
        assert len(around.rows) == len(AROUND)
        for row, part in zip(around.rows, AROUND, strict=True):
            assert part in row.name

    def test_without_opendp_its_bars_stay_open_and_all_others_are_judged(self, report: Report) -> None:
        for row in report.tables[0].rows:
            assert [bar.met is None for bar in row.bars] == [True, False, False]
            assert NOT_RUN in row.figures

    @pytest.mark.parametrize("setting", noise.SETTINGS, ids=lambda setting: setting.name)
    def test_keystream_per_draw_is_within_its_bar(self, setting: noise.Setting) -> None:
        with NoiseKey.for_tests("bytes per draw") as key:
            used = noise.Contenders(setting, 10**5, key).bytes_per_draw
        assert setting.most_bytes == (8.5 if setting.size == 10**12 else 4.2)
        assert 4 <= used <= setting.most_bytes


@pytest.mark.long
class TestReport:
    @pytest.mark.parametrize(
        ("bars", "shown"),
        [
            ((), ""),
            ((Bar("MB", 299, 300), Bar("× NumPy", 3, 3, at_least=True)), "yes"),
            ((Bar("MB", 301, 300), Bar("× NumPy", 3, 3, at_least=True)), "no: MB"),
            ((Bar("MB", 301, 300), Bar("× NumPy", 2.9, 3, at_least=True)), "no: MB, × NumPy"),
            ((Bar("MB", 299, 300), Bar("× OpenDP", None, 3, at_least=True)), "not run: × OpenDP"),
        ],
    )
    def test_verdict(self, bars: tuple[Bar, ...], shown: str) -> None:
        assert verdict(bars) == shown

    def test_file_and_terminal_show_the_same_cells(self, report: Report) -> None:
        terminal = StringIO()
        report.show(Console(file=terminal, width=80))
        page = report.markdown()
        for table in report.tables:
            for row in table.rows:
                assert f"| {' | '.join(row.cells())} |" in page
                assert row.name in terminal.getvalue()
                assert all(cell in terminal.getvalue() for cell in row.cells())
        for text in (page, terminal.getvalue()):
            assert "bars met" in text
            assert "load" in text

    def test_a_markdown_table_has_as_many_cells_in_every_line(self, report: Report) -> None:
        for table in report.tables:
            _, _, *lines = table.markdown().splitlines()
            assert {line.count("|") for line in lines} == {len(table.headers) + 3}


class TestCommand:
    def test_a_missed_bar_fails_nothing_and_the_page_is_written(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        missed = Report("title", "machine", [Table("part", ("measure", "figure"), [Row("slow", ("9 s",), (Bar("s", 9, 1),))])], [])
        main(["all"], {"group": lambda: missed}, tmp_path)
        assert "| slow | 9 s | ≤ 1 s | no: s |" in (tmp_path / "group.md").read_text(encoding="utf-8")
        assert "0 of 1 bars met" in capsys.readouterr().out

    def test_an_error_is_not_hidden(self, tmp_path: Path) -> None:
        with pytest.raises(ZeroDivisionError):
            main(["group"], {"group": lambda: 1 // 0}, tmp_path)  # type: ignore[dict-item, return-value]

    def test_an_unknown_group_is_refused_with_those_that_exist(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as stopped:
            main(["nothing"])
        assert stopped.value.code == 2
        message = capsys.readouterr().err
        assert all(group in message for group in GROUPS)


class TestTiming:
    def test_contenders_take_turns_and_the_first_place_moves(self) -> None:
        calls: list[str] = []
        best = best_of(3, {name: lambda name=name: calls.append(name) for name in "abc"}, lambda: calls.append("|"))  # type: ignore[misc]
        assert "".join(calls) == "abc|bca|cab|"
        assert best.keys() == set("abc")
        assert all(seconds >= 0 for seconds in best.values())

    def test_a_child_of_a_small_parent_does_not_report_our_memory(self) -> None:
        """Bare Python needs some 10 MB; this process, with NumPy and the rest loaded, at least 40."""
        program = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        unit = 1 if sys.platform == "darwin" else 1024
        assert int(fresh_interpreter(program, small_parent=True)) * unit < 40e6

    def test_waiting_is_not_counted_unless_asked_for(self) -> None:
        sleep = {"sleep": lambda: time.sleep(0.05)}
        assert best_of(1, sleep)["sleep"] < 0.04
        assert best_of(1, sleep, clock=time.perf_counter)["sleep"] >= 0.04


@pytest.fixture(scope="module")
def lattice_report() -> Report:
    return lattice.run(sizes=(1000,), records=5000, rounds=1)


class TestLattice:
    def test_every_case_has_its_row_with_every_column(self, lattice_report: Report) -> None:
        files, growth, tabulating = lattice_report.tables
        assert [row.name for row in files.rows] == ["tracts of 2010", "synthetic, 1,000"]
        assert not growth.rows  # one size grows from nothing
        assert {len(row.figures) + 1 for row in files.rows} == {len(files.headers)}
        assert [len(row.figures) + 1 for row in tabulating.rows] == [len(tabulating.headers)]
        assert [bar.limit for bar in tabulating.rows[0].bars] == [2]

    def test_blocks_are_those_of_the_public_function(self, lattice_report: Report, tmp_path: Path) -> None:
        made = lattice.synthetic_case(1000, tmp_path, tmp_path)
        table = Counts.from_counts(made.path, made.columns, made.count)
        found = lattice_of(table.universe, [margin(column) for column in made.keep])
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.blocks.kinds().items())
        figures = lattice_report.tables[0].rows[1].figures
        assert (figures[0], figures[-1]) == (f"{len(table):,}", kinds)

    def test_tracts_are_absent_where_there_is_no_shared_data(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOLDFAST_SHARED", str(tmp_path))
        assert lattice.tract_case(tmp_path).path is None

    def test_the_tracts_have_their_totals(self, shared_data: Path, tmp_path: Path) -> None:
        found = lattice.measure(lattice.tract_case(tmp_path))
        assert found.cells == 73_057
        assert found.kinds.keys() == {"one sum", "exposed"}

    @pytest.mark.parametrize(("times", "met"), [(12.9, True), (13.1, False)])
    def test_ten_times_the_cells_may_cost_thirteen_times_as_much(self, times: float, met: bool) -> None:
        small = lattice.Figures(1_000_008, (1.0, 1.0, 1.0), 2.0, 1.0, 10**8, {})
        large = lattice.Figures(10_000_004, (times, times, times), 2 * times, times, round(times * 10**8), {})
        row = lattice.growth(small, large, judged=True)
        assert [bar.met for bar in row.bars] == [met] * 3
        assert len(row.figures) + 1 == len(lattice.GROWTH)
        assert not lattice.growth(small, large, judged=False).bars


@pytest.fixture(scope="module")
def release_report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_SHARED", str(tmp_path_factory.mktemp("nothing shared")))
        return release.run(sizes=(1000,), grids=((8, 8), (4, 4, 4)), grows=(((500,), (1000,)), ((5, 5), (10, 10))), rounds=1, draws=50)


@pytest.mark.long
class TestRelease:
    def test_every_case_has_its_row_with_every_column(self, release_report: Report) -> None:
        one_sum, grids, growth, real, command, small = release_report.tables
        for table in release_report.tables:
            assert {len(row.figures) + 1 for row in table.rows} == {len(table.headers)}
        assert [row.name for row in one_sum.rows] == [
            "Laplace, epsilon 1/4",
            "Laplace, epsilon 1",
            "Gaussian, sigma_squared 1",
            "Gaussian, sigma_squared 5/2",
            "Gaussian, sigma_squared 100",
            "Gaussian, sigma_squared 10^4",
        ]
        assert [row.figures[0] for row in grids.rows] == ["8 × 8"] * 5 + ["4 × 4 × 4"] * 5
        assert [row.name for row in growth.rows] == ["Laplace, epsilon 1/4", *["Gaussian, sigma_squared 100"] * 2]
        assert [row.name for row in real.rows] == ["counties of 2010"] * 2 + ["tracts of 2010"] * 2
        assert [row.name for row in small.rows] == [f"{side} × {side}, margins kept" for side in (2, 3, 4)]
        assert len(command.rows) == 1

    def test_a_markdown_table_has_as_many_cells_in_every_line(self, release_report: Report) -> None:
        for table in release_report.tables:
            _, _, *lines = table.markdown().splitlines()
            assert {line.count("|") for line in lines} == {len(table.headers) + 3}

    def test_without_shared_data_the_rows_say_so_and_the_bar_stays_open(self, release_report: Report) -> None:
        *_, real, command, _ = release_report.tables
        assert all(release.ABSENT in row.figures for row in [*real.rows, *command.rows])
        assert [bar.met for bar in command.rows[0].bars] == [None]

    def test_small_blocks_are_shown_but_not_judged(self, release_report: Report) -> None:
        one_sum, grids, *_ = release_report.tables
        assert not any(row.bars for row in [*one_sum.rows, *grids.rows])

    def test_the_bars_are_those_asked_for(self) -> None:
        one_sum = release_cases.one_sum_settings(release.SIZES)
        asked = {
            ("Laplace", "1/4"): [5, 1],
            ("Laplace", "1"): [5, 1],
            ("Gaussian", "1"): [20],
            ("Gaussian", "5/2"): [6, 1],
            ("Gaussian", "100"): [6, 1],
            ("Gaussian", "10000"): [6, 1],
        }
        for setting in one_sum:
            limits = [bar.limit for bar in setting.bars(1, 1)]
            assert limits == (asked[setting.law, str(setting.size)] if setting.cells >= 10**5 else [])
        assert {setting.cells for setting in one_sum} == {10**3, 10**4, 10**5, 10**6, 10**7}
        assert len(one_sum) == 5 * len(asked)
        for setting in release_cases.grid_settings(release.GRIDS):
            limits = [bar.limit for bar in setting.bars(1, 1)]
            assert limits == ([] if setting.shape == (100, 100) else [40] if setting.size < 5 else [20])

    def test_a_refused_law_leaves_its_bars_open(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise NoExactSampler("too many tries")

        monkeypatch.setattr(release_cases, "Contenders", refuse)
        setting = release_cases.grid_settings([(1000, 1000)])[0]
        with NoiseKey.for_tests("refused") as key:
            row = release_cases.measure(setting, 1, key, lambda: None)
        assert len(row.figures) + 1 == len(release_cases.HEADERS)
        assert release_cases.REFUSED in row.figures
        assert verdict(row.bars) == "not run: × independent"

    def test_large_blocks_get_a_third_of_the_rounds(self) -> None:
        assert [release_cases.fewer(15, cells) for cells in (10**6, 10**7)] == [15, 5]
        assert release_cases.fewer(1, 10**7) == 1

    @pytest.mark.long
    def test_the_counties_are_released_and_verified(self, shared_data: Path, tmp_path: Path) -> None:
        case = release.real_cases()[0]
        row = release.publish(case, 1, tmp_path, lambda: None)
        assert row.figures[:3] == ("3,143", "51", "Laplace, epsilon 1/4")
        assert len(row.figures) + 1 == len(release.REAL)

    @pytest.mark.long
    def test_the_command_runs_and_is_judged(self, shared_data: Path, tmp_path: Path) -> None:
        row = release.command(1, tmp_path, lambda: None)
        assert len(row.figures) + 1 == len(release.COMMAND)
        assert [bar.limit for bar in row.bars] == [5]
        assert row.bars[0].figure is not None


class TestChains:
    @pytest.mark.long
    def test_every_table_has_its_columns_and_the_bars_of_the_issue(self) -> None:
        report = chains.run(grids=((4, 4), (20, 20)), rounds=1, pairs=4, records=500)
        moves, times, gains, counties, meetings = report.tables
        for table in report.tables:
            assert all(len(row.figures) + 1 == len(table.headers) for row in table.rows)
        assert [[str(bar) for bar in row.bars] for row in moves.rows] == [[], ["≤ 5 × NumPy"]]
        assert all([str(bar) for bar in row.bars] == ["≤ 6 sweeps"] for row in times.rows)
        assert [str(bar) for bar in gains.rows[-1].bars] == ["≥ 5 × energy", "≥ 5 × first cell"]
        assert len(counties.rows) == 2
        assert {row.name for row in meetings.rows} >= {"4 x 4, l1", "4 x 4, l2", "14 cells, l1", "14 cells, l2", "102 counties, l1"}

    def test_a_kernel_whose_pairs_do_not_meet_has_a_row(self) -> None:
        kernel = LineGibbs(ChainTarget.laplace(16, chains.QUARTER), Swaps((4, 4)))
        row = chains.meetings(chains.Case("4 x 4, l1", kernel, 4, lag=4, most_sweeps=1, paper=100.0), lambda: None)
        assert len(row.figures) + 1 == len(chains.MEETINGS)
        assert [bar.met for bar in row.bars] == [None, None]


@pytest.mark.long
def test_laplace_measures_tries_beside_the_same_loop_in_doubles() -> None:
    report = laplace.run(sizes=(4, 10), epsilons=(laplace.JUDGED,), seconds=0.5, records=200)
    for table in report.tables:
        assert all(len(row.figures) + 1 == len(table.headers) for row in table.rows)
    tries, _ = report.tables
    assert [[str(bar) for bar in row.bars] for row in tries.rows] == [["≤ 4 x plain", f"≤ {most} ms/draw"] for most in (1, 10)]


@pytest.mark.long
def test_pages_measures_every_kind_of_release() -> None:
    (table,) = pages.run(side=20).tables
    assert all(len(row.figures) + 1 == len(table.headers) for row in table.rows)
    assert [[str(bar) for bar in row.bars] for row in table.rows] == [["≤ 3 s"]] * 4


@pytest.mark.long
def test_conditional_measures_every_method_with_the_bars_of_the_issue() -> None:
    report = conditional.run(steps=5000, records=200, runs=20, rounds=1, most=40)
    speed, acceptance, counties = report.tables
    assert all(len(row.figures) + 1 == len(table.headers) for table in report.tables for row in table.rows)
    assert [[str(bar) for bar in row.bars] for row in speed.rows] == [[], ["≥ 10 × l1"], ["≥ 50 × l1"]]
    assert [len(row.bars) for row in acceptance.rows] == [0, 0, 0, 2, 2, 2, 0, 0]
    assert len(counties.rows) in (0, len(conditional.SIZES) - 1)
    assert all(bar.met in (True, False) for table in report.tables for row in table.rows for bar in row.bars)


@pytest.mark.long
def test_levels_measures_every_shape_and_law_and_their_growth() -> None:
    found = levels.run(sizes=(13_000, 40_000), rounds=1, redistricting=False)
    draws, beside, growth = found.tables
    assert len(draws.rows) == 2 * len(growth.rows) == 2 * len(levels.SHAPES) * len(levels.LAWS)
    assert all(len(row.figures) + 1 == len(table.headers) for table in found.tables for row in table.rows)
    assert [len(row.bars) for row in draws.rows] == [1, 0, 1, 1, 1, 0] * len(levels.SHAPES)  # the sequential law has a bar at every size
    assert all(len(row.bars) == 1 for row in [*beside.rows, *growth.rows])


@pytest.mark.parametrize("kind", ["shares for levels", "kept levels, sequential law"])
def test_six_columns_are_planned_and_drawn(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    levels_weighted.measured_six(10_000, kind)
    found = json.loads(capsys.readouterr().out)
    assert found["cells"] == 9600
    assert [step for step, _ in found["steps"]] == ["plan", "first draw", "prepared draw"]


def test_tracts_have_a_row_for_every_bar() -> None:
    found = levels_weighted.tract_table({"state": 2, "county": 5, "tract": 40}, many=3_000, rounds=1)
    assert [row.figures[0] for row in found.rows] == ["prepared draw", "plan and draw", "prepared draw, one state"]
    assert [(len(row.figures) + 1, len(row.bars)) for row in found.rows] == [(len(found.headers), 1)] * 3


def test_subspace_beats_spherical_noise_and_stays_near_the_lower_bound() -> None:
    found = subspace.run(sizes=(8, 12), small=(4,))
    errors, bound, pure = found.tables
    assert [len(row.figures) + 1 for table in found.tables for row in table.rows] == [len(subspace.ERRORS)] * 4 + [5] * 4 + [4] * 2
    assert all(bar.met for table in (errors, bound) for row in table.rows for bar in row.bars)
    assert all(float(figure) > 1 for row in pure.rows for figure in row.figures)


def test_subspace_takes_inner_products_for_the_matrix() -> None:
    for workload in subspace.WORKLOADS:
        matrix = prefix_sums(9) if workload == "prefix sums" else ranges(9)
        query = Query.linear(matrix, InvariantSpace([[0] * (len(matrix) - 1) + [1]]))
        found = subspace.case(workload, 9)
        assert found.free == query.invariants.free
        assert found.projected == query.l2_squared * found.free
        assert found.extended == pytest.approx(float(query.projected_l2_squared) * found.free)
        assert found.optimal == pytest.approx(optimal_covariance(Changes.of(query)).trace, rel=1e-6)


@pytest.mark.long
def test_cellkey_measures_tables_and_keys() -> None:
    found = cellkey.run(records=2000, regions=4, codes=3, rounds=1)
    tables, keys = found.tables
    assert [len(row.figures) + 1 for row in tables.rows] == [len(cellkey.HEADERS)] * 2
    assert [len(row.figures) + 1 for row in keys.rows] == [len(cellkey.KEY_HEADERS)] * len(cellkey.SPACES)
    assert all(len(row.bars) == 1 for table in found.tables for row in table.rows)


def test_a_redistricting_table_tells_its_steps_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    levels_weighted.measured({"state": 1, "county": 2, "tract": 3, "group": 4, "block": 6}, people=500)
    found = json.loads(capsys.readouterr().out)
    assert found["cells"] == 6 * 2016
    assert [name for name, *_ in found["steps"]][-2:] == ["prepared draw", "release in memory, planned anew"]
    rows = {(level, margin): values for level, units, margin, *values in found["errors"]}
    assert len(rows) == 5 * 3
    assert rows["state", "total"] == [None, 0, 0]
    assert sum(levels_weighted.SHARES["block"].values()) < 1 == sum(sum(of.values()) for of in levels_weighted.SHARES.values())
    alone, closed, drawn = rows["block", "gq x voting_age x hispanic x race"]
    assert closed < alone
    # What else is measured or kept only takes from the covariance of blocks measured alone: |C| is at most its square, tr C^2 <= |C| tr C.
    cells, most = found["cells"], alone**2
    total, mean = cells * drawn**2, cells * closed**2
    check_p_value(sum_of_squares_p_value(total, mean, most * mean, most), name="redistricting: blocks", n=cells, statistic=total)
    for wrong in (0.8, 1.2):  # a variance a fifth off is seen
        assert sum_of_squares_p_value(wrong * total, mean, most * mean, most) < ALPHA


@pytest.mark.long
def test_answers_measures_the_experiments_of_the_paper() -> None:
    found = answers.run(repetitions=3, steps=(0,), runs=2, trials=2000)
    deaths, counties, errors, bits = found.tables
    assert all(len(row.figures) + 1 == len(table.headers) for table in found.tables for row in table.rows)
    assert (len(deaths.rows), len(counties.rows)) in ((1, len(answers.STATES)), (0, 0))
    assert (len(errors.rows), len(bits.rows)) == (8, 2)
    assert all(bar.met in (True, False) for table in found.tables for row in table.rows for bar in row.bars)
