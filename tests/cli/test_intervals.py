"""`holdfast interval`: what it prints, what machines get, what it refuses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import InvalidParameter
from holdfast.wording.intervals import CUT, METHODS, NamedIntervals, PlainInterval, interval_lines
from tests.running import Ran
from tests.snapshot_files import Snapshot

CODES = {"state": ["17", "17", "17", "18", "18"], "county": ["031", "043", "097", "001", "003"]}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = hf.Table(hf.Universe.listed(CODES), np.array([5195, 932, 714, 35, 385]))
    release = hf.release(
        table,
        [hf.margin("state")],
        hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
        key=hf.NoiseKey.for_tests("cli"),
        release_id="towns",
    )
    return release.save(tmp_path_factory.mktemp("cli") / "out")


@pytest.fixture
def folder(saved: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(saved.parent)
    return saved


def test_what_it_prints(folder: Path, run: Callable[..., Ran], snapshot: Snapshot) -> None:
    asked: list[list[str]] = [
        ["--where", "county = '031'"],
        ["--where", "county = '031'", "--where", "state = '17'", "--level", "0.9"],
        ["--where", "county = '031'", "--minus", "county = '043'"],
        ["--where", "county = '001'", "--percent-of", "state = '18'", "--nonnegative"],
        ["--where", "county = '031'", "--over", "county = '003'"],
        ["--where", "county = '031'", "--over", "county = '001'", "--level", "0.999"],
        ["--by", "county"],
        ["--by", "state"],
        ["--by", "county", "--each"],
    ]
    for arguments in asked:
        ran = run("interval", "out", *arguments)
        assert ran.code == 0
        snapshot(ran.out, " ".join(arguments))


def test_machines_get_what_python_gives(folder: Path, run: Callable[..., Ran]) -> None:
    loaded = hf.load(folder)
    made = json.loads(run("interval", "out", "--where", "county = '031'", "--minus", "county = '043'", "--json").out)
    assert (made["level"], made["joint"]) == (0.95, None)
    (one,) = made["intervals"]
    assert one.pop("name") == "county = '031' minus county = '043'"
    assert one == loaded.interval({"county": "031"}, 0.95, minus={"county": "043"}).to_fields()
    several = json.loads(run("interval", "out", "--by", "state", "--by", "county", "--level", "0.9", "--json").out)
    assert several["joint"] == "union bound"
    assert [one["name"] for one in several["intervals"]][:2] == ["state 17, county 031", "state 17, county 043"]
    assert [one["high"] for one in several["intervals"]] == [one.high for one in loaded.intervals(by=["state", "county"], level=0.9)]
    drawn = json.loads(run("interval", "out", "--where", "county = '031'", "--method", "simulated", "--json").out)["intervals"]
    assert (drawn[0]["method"], drawn[0]["doubt"], drawn[0]["covered"]) == ("simulated", 1e-6, None)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--where", "county = '999'"], 2, "'999' is not a code of the column 'county'"),
        (["--where", "county = '031'", "--level", "1"], 2, "between 0 and 1"),
        (["--where", "county ="], 2, "cannot be used"),
        (["--where", "town = 'a'"], 2, "no column"),
        (["--where", "county = '031'", "--minus", "town = 'a'"], 2, "no column"),
        ([], 2, "--where"),
        (["--by", "town"], 2, "The table has the columns state, county"),
        (["--by", "state,county"], 2, "Write state:county."),
        (["--by", "state x county"], 2, "Write state:county."),
        (["--by", "state", "--where", "county = '031'", "--where", "county = '043'"], 2, "take one condition"),
        (["--by", "state", "--minus", "county = '031'"], 2, "no --minus"),
        (["--by", "state", "--level", "95"], 2, "For 95 % write 0.95."),
        (["--where", "county = x31"], 2, "put a code in single quotes: write = 'x31'"),
        (["--where", "county = '031'", "--where", "county = '001'", "--minus", "county = '043'"], 2, "each for itself. Say so with --each"),
        (["--where", "county = '031'", "--minus", "county = '043'", "--over", "county = '043'"], 2, "one thing"),
    ],
)
def test_what_it_refuses(arguments: list[str], code: int, said: str, folder: Path, run: Callable[..., Ran]) -> None:
    ran = run("interval", "out", *arguments)
    assert ran.code == code
    assert said in ran.err
    assert not ran.out


def test_a_margin_of_the_cells_that_meet_a_condition(folder: Path, run: Callable[..., Ran]) -> None:
    """--by beside --where was refused."""
    made = json.loads(run("interval", "out", "--by", "state:county", "--where", "county in ('031', '003')", "--each", "--json").out)
    assert [one["name"] for one in made["intervals"]] == [
        "state 17, county 031, county in ('031', '003')",
        "state 18, county 003, county in ('031', '003')",
    ]
    assert [one["codes"] for one in made["intervals"]] == [{"state": "17", "county": "031"}, {"state": "18", "county": "003"}]
    loaded = hf.load(folder)
    for one in made["intervals"]:
        alone = loaded.interval(one["codes"])
        assert (one["low"], one["high"]) == (alone.low, alone.high)
    wide = loaded.intervals("county != '043'", by="state", simultaneous=False)
    assert [one.published for one in wide] == [loaded.interval({"state": "17", "county": ["031", "097"]}).published, 420]
    assert wide.frame.column_names[0] == "state"
    with pytest.raises(InvalidParameter, match="take one condition"):
        loaded.intervals(["county = '031'"], by="state")


def test_a_changed_folder_is_refused(folder: Path, tmp_path: Path, run: Callable[..., Ran]) -> None:
    card = shutil.copytree(folder, tmp_path / "changed") / "card.json"
    text = card.read_text()
    assert '"0.5"' in text
    card.write_text(text.replace('"0.5"', '"0.4"'))
    ran = run("interval", str(card.parent), "--where", "county = '031'")
    assert ran.code == 10
    assert "not what its card says" in ran.err


def asked(*intervals: PlainInterval, nonnegative: bool | None = None) -> NamedIntervals:
    return NamedIntervals(("x",) * len(intervals), intervals, 0.9, None, nonnegative)


def test_ends_are_rounded_outwards() -> None:
    one = PlainInterval(2 / 3, 0.12345678, 1234.56789, "simulated", None, 1e-6)
    first, second, *_ = interval_lines(asked(one, replace(one, low=None, high=0.0)))
    assert first == "x: published 0.666667; the true number lies from 0.123456 to 1,234.57."
    assert second == "x: published 0.666667; the true number lies from no lower bound to 0."


def test_counts_below_zero_have_a_hint() -> None:
    one = PlainInterval(2, -1, 5, "convolution", None, 0.0)
    for cut, low, told in ((False, -1, True), (False, 0, False), (False, None, False), (True, -1, False), (None, -1, False)):
        assert (interval_lines(asked(replace(one, low=low), nonnegative=cut))[-1] == CUT) is told


def test_the_hint_is_for_sums_of_counts(folder: Path, run: Callable[..., Ran]) -> None:
    asked = ["interval", "out", "--where", "county = '001'"]
    for more, cut in (([], False), (["--minus", "county = '031'"], None), (["--over", "state = '17'"], False), (["--nonnegative"], True)):
        made = json.loads(run(*asked, *more, "--json").out)
        assert made["nonnegative"] is cut


def test_nothing_is_said_about_chance_where_there_is_none() -> None:
    kept = PlainInterval(12, 12, 12, "kept", 1.0, 0.0)
    share = replace(kept, published=100 * 45 / 189, low=100 * 45 / 189, high=100 * 45 / 189)
    open_ended = PlainInterval(3.5, None, None, "lattice sum", None, 0.0)
    assert interval_lines(asked(kept)) == ["x: 12, exactly.", METHODS["kept"]]
    assert interval_lines(asked(share))[0] == "x: 23.8095, without error but for the digits left out."
    (line,) = interval_lines(asked(open_ended))
    assert line == "x: published 3.5; nothing is known of the true number, because what it is divided by may be 0."
    both = interval_lines(asked(kept, replace(kept, high=14, method="lattice sum")))
    assert both[2] == "Each of these holds with probability 0.9 or more, whatever the true numbers are."
