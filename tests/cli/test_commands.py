"""The command line as a user meets it: what it prints, what it returns, what it leaves on the disk.

Most runs are in this process, through `main()`; signals and the installed command need a process of their own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

import holdfast as hf
from holdfast.wording.guarantee import promise_lines
from tests.publication.twin_reports import with_the_numbers_of
from tests.running import Ran
from tests.snapshot_files import Snapshot

SECRET = 918273645546
"""A count that occurs in no text by chance."""
COUNTIES = f"state,county,people\n17,031,{SECRET}\n17,043,12\n17,097,5\n18,001,7\n18,003,21\n19,001,3\n"
TWIN = f"state,county,people\n17,031,{SECRET - 5}\n17,043,10\n17,097,12\n18,001,0\n18,003,28\n19,001,3\n"

RUN = """\
[table]
source = "counties.csv"
cells = ["state", "county"]
count = "people"
public = true
[keep]
margins = [["state"]]

[release]
id = "counties"
allow_exposed = 1
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run file and its table, which is the current one."""
    (tmp_path / "counties.csv").write_text(COUNTIES)
    (tmp_path / "run.toml").write_text(RUN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class TestFromNothingToAVerifiedFolder:
    def test_plan_release_verify(self, work: Path, run: Callable[..., Ran], snapshot: Snapshot) -> None:
        before = everything(work)
        planned = run("plan", "run.toml")
        assert (planned.code, planned.err) == (0, "")
        snapshot(planned.out, "holdfast plan run.toml")
        assert everything(work) == before
        made = run("release", "run.toml", "-o", "out")
        assert (made.code, made.err) == (0, "")
        entry = json.loads((work / "out" / "card.json").read_text())["release"]["ledger"]
        snapshot(made.out.replace(entry, "ENTRY"), "holdfast release run.toml -o out")
        checked = run("verify", "out")
        assert (checked.code, checked.err) == (0, "")
        snapshot(checked.out, "holdfast verify out")
        kept = (work / "out" / "kept.csv").read_text().splitlines()
        assert kept == [
            '"kept","name","state","county","total"',
            f'"margin(state)","state=17","17",,{SECRET + 17}',
            '"margin(state)","state=18","18",,28',
            '"margin(state)","state=19","19",,3',
        ]
        for page in (planned.out, made.out, checked.out, (work / "out" / "report.html").read_text()):
            assert str(SECRET) not in page

    def test_the_promise_on_the_screen_is_that_of_the_card(self, work: Path, run: Callable[..., Ran]) -> None:
        """A state without people: its counties take no noise, and the promise is for tables without negative counts."""
        (work / "counties.csv").write_text("state,county,people\n17,031,0\n17,043,0\n18,001,4\n18,003,7\n")
        (work / "run.toml").write_text(RUN.replace("allow_exposed = 1", "allow_exposed = 0"))
        told = run("release", "run.toml", "-o", "out", "--no-ledger")
        card = json.loads((work / "out" / "card.json").read_text())["guarantee"]
        assert "no negative count" in card["relation"]
        assert "\n".join(promise_lines(hf.load("out").guarantee)) in told.out
        fields = json.loads(run("release", "run.toml", "-o", "second", "--no-ledger", "--json").out)["guarantee"]
        assert fields["relation_fields"] == card["relation_fields"]
        assert fields["text"] == card["text"]

    def test_against_official_totals(self, work: Path, run: Callable[..., Ran], snapshot: Snapshot) -> None:
        run("release", "run.toml", "-o", "out")
        (work / "official.csv").write_text(f"state,total\n17,{SECRET + 17}\n18,28\n19,3\n")
        snapshot(run("verify", "out", "--against", "official.csv").out, "they agree")
        (work / "official.csv").write_text(f"state,total\n17,{SECRET + 17}\n18,29\n19,3\n")
        wrong = run("verify", "out", "--against", "official.csv")
        assert (wrong.code, wrong.out) == (10, "")
        snapshot(wrong.err, "they do not")

    def test_a_signed_release(self, work: Path, run: Callable[..., Ran]) -> None:
        key = Ed25519PrivateKey.generate()
        (work / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        (work / "key.pem").chmod(0o600)
        (work / "key.pub").write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        (work / "run.toml").write_text(RUN + 'sign = "key.pem"\n')
        assert run("release", "run.toml", "-o", "out").code == 0
        assert "Signed by" in run("verify", "out", "--signer", "key.pub").out
        (work / "key.pem").write_text("no key")
        (work / "run.toml").write_text(RUN.replace('"counties"', '"counties-2"') + 'sign = "key.pem"\n')
        wrong = run("release", "run.toml", "-o", "second")
        assert (wrong.code, wrong.out) == (2, "")
        assert "is not a readable Ed25519 private key" in wrong.err
        assert not (work / "second").exists()

    @pytest.mark.ordinary("rho", "rounded", "l2", "suppression")
    @pytest.mark.parametrize(
        "said",
        [
            'mechanism = "generalized-gaussian"\nrho = "1/10"\nper = "person"',
            'mechanism = "generalized-gaussian"\nepsilon = "1"\ndelta = "1e-6"\nper = "person"',
            'mechanism = "rounded-projection"\nepsilon = "1"\nper = "distance"',
            'mechanism = "generalized-laplace"\nnorm = "l2"\nepsilon = "1"\nper = "person"',
            'mechanism = "suppression"\nformats = ["csv"]\ndate = "2030-04-01"',
        ],
    )
    def test_every_mechanism(self, work: Path, run: Callable[..., Ran], said: str) -> None:
        (work / "run.toml").write_text(RUN.split("mechanism")[0] + said + "\n")
        assert run("plan", "run.toml").code == 0
        assert run("release", "run.toml", "-o", "out").code == 0
        assert run("verify", "out", "--against", "counties.csv").code == 0

    def test_suppression_publishes_what_the_totals_fix_and_nothing_else(self, work: Path, run: Callable[..., Ran]) -> None:
        (work / "run.toml").write_text(RUN.split("mechanism")[0] + 'mechanism = "suppression"\n')
        assert run("release", "run.toml", "-o", "out").code == 0
        assert (work / "out" / "table.csv").read_text().splitlines() == [
            '"state","county","people","standard_deviation","exposed"',
            '"17","031",,,false',
            '"17","043",,,false',
            '"17","097",,,false',
            '"18","001",,,false',
            '"18","003",,,false',
            '"19","001",3,0,true',
        ]
        assert "3 kept totals listed." in run("verify", "out").out
        assert str(SECRET).encode() not in b"".join(everything(work / "out").values())


class TestTwins:
    """[theory T54], through the command: two tables with equal kept totals. (Fresh keys, so the released counts differ.)"""

    def test_nothing_but_the_released_counts_differs(
        self, tmp_path: Path, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs, folders = [], []
        for name, table in (("one", COUNTIES), ("two", TWIN)):
            folder = tmp_path / name
            folder.mkdir()
            (folder / "counties.csv").write_text(table)
            (folder / "run.toml").write_text(RUN)
            monkeypatch.chdir(folder)
            made = ("release", "run.toml", "-o", "out", "--no-ledger")  # entries of two ledgers differ by chance
            commands = [("plan", "run.toml"), ("plan", "run.toml", "--json"), made, ("verify", "out")]
            runs.append([run(*command) for command in [*commands, (*made, "--force"), ("verify", "--json", "out")]])
            folders.append(everything(folder / "out"))
        assert runs[0] == runs[1]
        assert [one.code for one in runs[0]] == [0, 0, 0, 0, 9, 0]
        first, second = folders
        assert list(first) == list(second)
        assert {name for name in first if first[name] != second[name]} == {"table.csv", "table.parquet", "report.html", "card.json"}
        assert with_the_numbers_of(tmp_path / "one" / "out", tmp_path / "two" / "out") == second["report.html"]
        cards = [json.loads(files["card.json"]) for files in folders]
        for card in cards:
            del card["files"]["table.csv"], card["files"]["table.parquet"], card["files"]["report.html"]
        assert cards[0] == cards[1]


class TestOutputFolder:
    def test_an_existing_folder_and_force(self, work: Path, run: Callable[..., Ran], snapshot: Snapshot) -> None:
        assert run("release", "run.toml", "-o", "out", "--no-ledger").code == 0
        before = everything(work)
        again = run("release", "run.toml", "-o", "out", "--no-ledger")
        assert (again.code, again.out) == (9, "")
        snapshot(again.err, "there already")
        identical = run("release", "run.toml", "-o", "out", "--force", "--no-ledger")
        assert (identical.code, identical.out) == (9, "")
        snapshot(identical.err, "the same release")
        assert everything(work) == before
        (work / "run.toml").write_text(RUN.replace('"counties"', '"counties-2"'))
        other = run("release", "run.toml", "-o", "out")
        assert (other.code, other.out) == (9, "")
        snapshot(other.err, "another release")
        forced = run("release", "run.toml", "-o", "out", "--force")
        assert forced.code == 0
        assert "\nIt replaced the release counties in out.\n" in forced.out
        assert run("verify", "out").out.startswith("Release counties-2:")

    def test_force_on_what_is_no_release(self, work: Path, run: Callable[..., Ran]) -> None:
        (work / "out").mkdir()
        (work / "out" / "thesis").write_text("mine")
        for force in ([], ["--force"]):
            refused = run("release", "run.toml", "-o", "out", *force)
            assert refused.code == 9
            assert "'out' already exists and holds no release that could be replaced. Choose another name." in refused.err
        assert (work / "out" / "thesis").read_text() == "mine"

    def test_a_missing_parent(self, work: Path, run: Callable[..., Ran], snapshot: Snapshot) -> None:
        wrong = run("release", "run.toml", "-o", "none/out")
        assert (wrong.code, wrong.out) == (9, "")
        snapshot(wrong.err)


def changed(old: str, new: str) -> str:
    assert old in RUN
    return RUN.replace(old, new)


BIG = "a,b,n\n" + "".join(f"{i},{j},{i + j}\n" for i in range(20) for j in range(20))
GRID = RUN.replace('["state", "county"]', '["a", "b"]').replace('"people"', '"n"').replace('[["state"]]', '[["a"], ["b"]]')
GRID = GRID.replace("allow_exposed = 1\n", "")
TOO_SMALL = GRID.replace('"1/2"', '"1/1000"')  # an epsilon below what coupling from the past takes
BAD: dict[str, tuple[str, str, int]] = {
    "unknown key": (changed("epsilon =", "epsilom ="), COUNTIES, 7),
    "missing file": (changed("counties.csv", "none.csv"), COUNTIES, 7),
    "budget of zero": (changed('"1/2"', '"0"'), COUNTIES, 7),
    "epsilon as a float": (changed('"1/2"', "0.5"), COUNTIES, 7),
    "delta of 0": (
        changed('laplace"\nepsilon = "1/2"', 'gaussian"\nepsilon = "1"\ndelta = "0"'),
        COUNTIES,
        7,
    ),
    "delta of 1": (
        changed('laplace"\nepsilon = "1/2"', 'gaussian"\nepsilon = "1"\ndelta = "1"'),
        COUNTIES,
        7,
    ),
    "not TOML": ("[table", COUNTIES, 7),
    "everything fixed": (changed('[["state"]]', '[["state", "county"]]'), COUNTIES, 6),
    "unknown column kept": (changed('[["state"]]', '[["sate"]]'), COUNTIES, 7),
    "unknown code": (changed('margins = [["state"]]', 'subsets = [{column = "state", codes = ["99"]}]'), COUNTIES, 6),
    "no exact sampler": (TOO_SMALL, BIG, 8),
    "noise beyond 64 bits": (changed('"1/2"', '"1e-18"'), COUNTIES, 2),
    "a negative count": (RUN, COUNTIES.replace(f",{SECRET}", f",-{SECRET}"), 5),
    "a count that is none": (RUN, COUNTIES.replace(f",{SECRET}", f",{SECRET}.5"), 5),
    "the same cell twice": (RUN, f"{COUNTIES}17,031,{SECRET}\n", 5),
    "no such column": (changed('count = "people"', 'count = "persons"'), COUNTIES, 5),
    "ragged rows": (RUN, COUNTIES + f"17,999,{SECRET},1\n", 5),
    "wrong declared total": (
        changed('margins = [["state"]]', 'linear = [{matrix = [[1, 1, 0, 0, 0, 0]], names = ["pair"], values = [5]}]').replace(
            "allow_exposed = 1\n", ""
        ),
        COUNTIES,
        6,
    ),
}


class TestBadInput:
    @pytest.mark.parametrize("name", BAD)
    def test_one_message_the_documented_code_and_nothing_written(
        self, work: Path, run: Callable[..., Ran], name: str, snapshot: Snapshot
    ) -> None:
        toml, table, code = BAD[name]
        (work / "run.toml").write_text(toml)
        (work / "counties.csv").write_text(table)
        before = everything(work)
        ran = run("release", "run.toml", "-o", "out")
        assert (ran.code, ran.out) == (code, "")
        assert ran.err.startswith("holdfast: ")
        assert ran.err.count("\n") == 1
        snapshot(ran.err)
        assert str(SECRET) not in ran.err
        assert everything(work) == before
        assert not (work / "out").exists()
        if name not in ("wrong declared total", "a negative count", "a count that is none"):  # they need the counts
            planned = run("plan", "run.toml")
            assert (planned.code, planned.out, planned.err) == (code, "", ran.err)

    def test_the_grid_is_refused_with_both_alternatives(self, work: Path, run: Callable[..., Ran]) -> None:
        (work / "run.toml").write_text(TOO_SMALL)
        (work / "counties.csv").write_text(BIG)
        assert "GeneralizedGaussian" in run("plan", "run.toml").err
        (work / "run.toml").write_text(TOO_SMALL.replace("generalized-laplace", "rounded-projection"))
        assert run("release", "run.toml", "-o", "out").code == 0
        assert run("verify", "out").code == 0

    def test_a_run_file_that_is_not_there(self, work: Path, run: Callable[..., Ran]) -> None:
        ran = run("plan", "none.toml")
        assert (ran.code, ran.out) == (7, "")
        assert "none.toml" in ran.err

    @pytest.mark.parametrize("name", ["table.csv", "table.parquet", "kept.csv", "card.json", "report.html"])
    def test_a_tampered_folder(self, work: Path, run: Callable[..., Ran], name: str) -> None:
        run("release", "run.toml", "-o", "out")
        data = (work / "out" / name).read_bytes()
        (work / "out" / name).write_bytes(data[:-20])
        ran = run("verify", "out")
        assert (ran.code, ran.out) == (10, "")
        assert ran.err.startswith("holdfast: The folder is not what its card says: ")
        assert name in ran.err

    def test_a_folder_that_is_none(self, work: Path, run: Callable[..., Ran]) -> None:
        assert run("verify", "none").code == 10
        assert run("verify", ".").code == 10

    @pytest.mark.parametrize("arguments", [["--wrong"], ["release", "run.toml"], ["plan"], ["unknown"], ["verify", "a", "b"]])
    def test_wrong_use_returns_2(self, work: Path, run: Callable[..., Ran], arguments: list[str]) -> None:
        ran = run(*arguments)
        assert ran.code == 2
        assert ran.out == ""

    def test_a_question_ends_as_one(self, run: Callable[..., Ran]) -> None:
        assert run("ver").err == "holdfast: No such command 'ver'. Did you mean 'verify'? See: holdfast --help\n"


class TestPlanSeesNoCount:
    def test_the_plan_of_two_tables_with_the_same_cells(self, work: Path, run: Callable[..., Ran]) -> None:
        first = [run("plan", "run.toml", *extra) for extra in ([], ["--json"])]
        (work / "counties.csv").write_text("state,county,people\n17,031,0\n17,043,1\n17,097,2\n18,001,3\n18,003,4\n19,001,99\n")
        assert [run("plan", "run.toml", *extra) for extra in ([], ["--json"])] == first

    def test_nor_does_a_comparison_of_mechanisms(self, work: Path, run: Callable[..., Ran]) -> None:
        first = [run("plan", "run.toml", "--compare", *extra) for extra in ([], ["--json"])]
        assert [(ran.code, ran.err) for ran in first] == [(0, "")] * 2
        assert first[0].out.splitlines()[1].startswith("generalized-laplace (asked)        epsilon = 0.5")
        found = json.loads(first[1].out)
        assert (found["protect"], found["budget"]) == ("person", "epsilon = 0.5")
        assert {row["mechanism"] for row in found["rows"]} > {"generalized-gaussian", "conditional", "suppression"}
        (work / "counties.csv").write_text(TWIN)
        assert [run("plan", "run.toml", "--compare", *extra) for extra in ([], ["--json"])] == first
        assert set(os.listdir(work)) == {"counties.csv", "run.toml"}


class TestJson:
    def test_every_command_prints_one_object(self, work: Path, run: Callable[..., Ran]) -> None:
        commands: list[list[str]] = [
            ["plan", "run.toml", "--json"],
            ["release", "run.toml", "-o", "out", "--json"],
            ["verify", "out", "--json"],
            ["demo", "--json", "-o", "demo"],
            ["synth", "people.csv", "--people", "1000", "--json"],
            ["warm", "--json"],
        ]
        found = {}
        for command in commands:
            ran = run(*command)
            assert (ran.code, ran.err) == (0, ""), command
            found[command[0]] = json.loads(ran.out)
        assert found["plan"]["kept"]["totals"] == 3
        assert found["release"]["id"] == "counties"
        assert found["verify"]["totals"] == 3
        assert [part["card"]["release"]["test_key"] for part in found["demo"]["parts"]] == [False, False]


class TestDemo:
    def test_it_prints_table_promise_and_report_and_its_files_verify(self, work: Path, run: Callable[..., Ran]) -> None:
        ran = run("demo", "-o", "demo")
        assert (ran.code, ran.err) == (0, "")
        for words in (
            "Ash",
            "higher",
            "total",
            "No person can change alone",
            "Report: demo/education/report.html",
        ):
            assert words in ran.out
        assert ran.out.count("kept totals add up") == 2
        for part in ("education", "geography"):
            assert hf.verify(work / "demo" / part).private
        assert run("release", "demo/run.toml", "-o", "by-hand").code == 0  # as the last line says
        assert "demo/run.toml" in ran.out
        again = run("demo", "-o", "demo")
        assert (again.code, again.out) == (9, "")
        assert run("demo", "-o", "counties.csv/x").code == 9

    def test_without_a_folder_it_takes_a_temporary_one(self, work: Path, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
        import tempfile

        monkeypatch.setattr(tempfile, "tempdir", str(work))
        assert run("demo").code == 0
        (made,) = work.glob("holdfast-demo-*")
        assert (made / "education" / "report.html").is_file()


class TestProcess:
    """What only a process of its own can show."""

    def test_the_installed_command(self, work: Path) -> None:
        ran = subprocess.run([Path(sys.executable).with_name("holdfast"), "plan", "none.toml"], capture_output=True, text=True, timeout=60)
        assert (ran.returncode, ran.stdout) == (7, "")
        assert ran.stderr.startswith("holdfast: none.toml")

    @pytest.mark.parametrize(("sent", "code"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.long), (signal.SIGTERM, 143)])
    def test_stopped_in_the_middle_of_writing(self, tmp_path: Path, sent: signal.Signals, code: int) -> None:
        """The signal is sent once the unfinished folder is there: at that moment files are being written."""
        codes: dict[str, Any] = {name: [f"{name}{i}" for i in range(n)] for name, n in (("a", 100), ("b", 100), ("c", 60))}
        pq.write_table(pa.table({name: values[:1] for name, values in codes.items()}), tmp_path / "people.parquet")
        listed = "\n".join(f"{name} = {json.dumps(values)}" for name, values in codes.items())
        (tmp_path / "run.toml").write_text(
            f'[table]\nsource = "people.parquet"\n[table.cells]\n{listed}\n[keep]\ntotal = true\n[release]\nid = "large"\n'
            'mechanism = "generalized-laplace"\nepsilon = "1"\nper = "person"\n'
        )
        before = everything(tmp_path)
        command = [sys.executable, "-m", "holdfast.cli.commands", "release", "run.toml", "-o", "out", "--no-ledger"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None and not any(name.startswith(".holdfast-unfinished-") for name in os.listdir(tmp_path)):
                time.sleep(0.002)
            process.send_signal(sent)
            out, err = process.communicate(timeout=100)
        assert (process.returncode, out) == (code, "")
        assert err == "holdfast: stopped. Nothing was charged, and nothing was left behind.\n"
        assert everything(tmp_path) == before
        assert sorted(os.listdir(tmp_path)) == ["people.parquet", "run.toml"]


SQUARE = "a,b,n\n" + "".join(f"{i},{j},{SECRET + 10 * i + j}\n" for i in range(3) for j in range(3))
SQUARE_TWIN = SQUARE.replace(f"0,0,{SECRET}\n", f"0,0,{SECRET - 7}\n").replace(f"0,1,{SECRET + 1}\n", f"0,1,{SECRET + 8}\n")
SQUARE_TWIN = SQUARE_TWIN.replace(f"1,0,{SECRET + 10}\n", f"1,0,{SECRET + 17}\n").replace(f"1,1,{SECRET + 11}\n", f"1,1,{SECRET + 4}\n")


class TestDiagnose:
    FEW = ("--pairs", "20", "--kernel", "line_gibbs", "--kernel", "metropolis")
    PARTS = ("pilot", "pairs", "other lags", "diagnostics")

    @pytest.fixture
    def square(self, work: Path) -> Path:
        (work / "run.toml").write_text(GRID)
        (work / "counties.csv").write_text(SQUARE)
        return work

    def test_the_table_and_the_page(self, square: Path, run: Callable[..., Ran], snapshot: Snapshot) -> None:
        ran = run("diagnose", "run.toml", "-o", "page.html", *self.FEW)
        told = [f"holdfast: {kernel}, 3 x 3 grid: {part}" for kernel in ("line_gibbs", "metropolis") for part in self.PARTS]
        assert (ran.code, ran.err.splitlines()) == (0, told)
        snapshot(ran.out)
        page = (square / "page.html").read_text(encoding="utf-8")
        assert page.startswith("<!DOCTYPE html>")
        assert page.count("<svg ") == 1
        assert str(SECRET)[:6] not in ran.out + page

    def test_a_release_by_chains(self, square: Path, run: Callable[..., Ran]) -> None:
        (square / "run.toml").write_text(GRID + 'sampler = "line_gibbs"\neta = "3/100"\n')
        ran = run("release", "run.toml", "-o", "out", "--no-ledger")
        assert ran.code == 0, ran.err
        assert "of 100 times (an estimate and not a proof); without the table 50." in ran.out
        card = json.loads((square / "out" / "card.json").read_text())
        assert (card["sampler"]["status"], card["guarantee"]["status"], card["guarantee"]["kind"]) == (
            "estimated",
            "estimated",
            "approximate",
        )
        (group,) = card["sampler"]["groups"]
        assert (group["chain"]["pairs"], group["chain"]["eta"], group["expected_tries"]) == (100, "3/100", None)
        assert card["guarantee"]["parameters"]["eta"] == "0.03"
        assert card["expected_error"]["basis"].endswith("; of the law that the chain aims at")
        for page in ("statement.html", "report.html"):
            text = (square / "out" / page).read_text(encoding="utf-8")
            assert "was estimated" in text
            assert "in exact numbers" not in text
        assert run("verify", "out").code == 0
        older = (square / "out" / "card.json").read_text().replace('"schema_version": "5.0"', '"schema_version": "1.0"')
        (square / "out" / "card.json").write_text(older)
        ran = run("verify", "out")
        assert ran.code == 10
        assert "schema version '1.0', which this version of Holdfast does not read" in ran.err

    def test_a_ledger_takes_no_estimate_and_says_so_before_anything_runs(
        self, square: Path, run: Callable[..., Ran], snapshot: Snapshot
    ) -> None:
        (square / "run.toml").write_text(GRID + 'sampler = "line_gibbs"\n')
        run("ledger", "grant", "counties", "--epsilon", "9", "--approver", "a", "--reason", "b", "--ledger", "ledger.sqlite")
        before = everything(square)
        ran = run("release", "run.toml", "-o", "out", "--ledger", "ledger.sqlite")
        assert (ran.code, ran.out) == (12, "")
        snapshot(ran.err)
        assert everything(square) == before

    def test_no_bound_is_no_success(self, square: Path, run: Callable[..., Ran]) -> None:
        ran = run("diagnose", "run.toml", "--pairs", "20", "--kernel", "metropolis", "--most-sweeps", "1")
        assert ran.code == 13
        assert "no bound" in ran.out
        assert "no kernel gave a bound" in ran.err
        assert ran.err.count("holdfast: metropolis, 3 x 3 grid: pilot\n") == 1  # standard error is no terminal here: a line for each part

    def test_json_and_without_a_page(self, square: Path, run: Callable[..., Ran]) -> None:
        before = everything(square)
        ran = run("diagnose", "run.toml", "--json", *self.FEW)
        assert (ran.code, ran.err) == (0, "")
        found = json.loads(ran.out)
        assert [(row["kernel"], row["met"], row["eta"]) for row in found["rows"]] == [
            ("line_gibbs", 20, "3/20"),
            ("metropolis", 20, "3/20"),
        ]
        assert everything(square) == before

    def test_twins(self, square: Path, run: Callable[..., Ran]) -> None:
        def all_of() -> tuple[list[Ran], bytes]:
            ran = [run("diagnose", "run.toml", *self.FEW, *more) for more in (["--json"], ["-o", "page.html"])]
            page = (square / "page.html").read_bytes()
            (square / "page.html").unlink()
            return ran, page

        first = all_of()
        (square / "counties.csv").write_text(SQUARE_TWIN)
        assert SQUARE_TWIN != SQUARE
        assert all_of() == first

    def test_the_sampler_of_the_run_and_pairs_that_do_not_meet(self, square: Path, run: Callable[..., Ran]) -> None:
        (square / "run.toml").write_text(GRID + 'sampler = "metropolis"\n')
        ran = run("diagnose", "run.toml", "--pairs", "10", "--most-sweeps", "3")
        assert (ran.code, "no kernel gave a bound" in ran.err) == (13, True)
        (line,) = (line for line in ran.out.splitlines() if line.startswith("3 x 3 grid"))
        assert "metropolis" in line
        assert "of 10 pairs met within 3 sweeps" in line

    @pytest.mark.parametrize(
        ("arguments", "code", "words"),
        [
            (["--kernel", "gibbs"], 2, "kernel must be one of"),
            (["--pairs", "1"], 2, "fewer than 4 pairs"),
            (["--most-sweeps", "0"], 2, "most_sweeps = 0"),
            (["-o", "counties.csv"], 9, "'counties.csv' already exists and is not overwritten"),
            (["-o", "none/page.html"], 9, "does not exist. Create it first."),
        ],
        ids=str,
    )
    def test_refused(self, square: Path, run: Callable[..., Ran], arguments: list[str], code: int, words: str) -> None:
        before = everything(square)
        ran = run("diagnose", "run.toml", *arguments)
        assert (ran.code, ran.out) == (code, "")
        assert ran.err.count("\n") == 1
        assert words in ran.err
        assert everything(square) == before

    def test_a_mechanism_without_chains(self, square: Path, run: Callable[..., Ran]) -> None:
        (square / "run.toml").write_text(GRID.replace("generalized-laplace", "rounded-projection"))
        ran = run("diagnose", "run.toml")
        assert (ran.code, ran.out) == (2, "")
        assert "'rounded-projection' has no chains" in ran.err

    def test_bars_on_a_terminal(self, square: Path, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")  # Rich takes the stream for a terminal
        monkeypatch.setattr("holdfast.chains.sampler.known_samplers", {})  # a test before this one may have assessed the same chain
        (square / "run.toml").write_text(GRID + 'sampler = "line_gibbs"\neta = "1/40"\n')
        planned = run("plan", "run.toml")
        assert planned.code == 0
        assert "Assessing chains" in planned.err
        assert "line_gibbs" in planned.out
        diagnosed = run("diagnose", "run.toml", "--pairs", "20")
        assert diagnosed.code == 0
        assert "line_gibbs, 3 x 3 grid: " in diagnosed.err
        (square / "run.toml").write_text(GRID)
        assert "Assessing chains" not in run("plan", "run.toml").err
