"""On the command line a ledger that was put back, deleted, or is in another folder never means "no ledger"."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from holdfast.ledger import Ledger
from tests.running import Run
from tests.test_ledger_by_default import COUNTIES, DEFAULT, LEDGER_PROBLEM, RUN

ACCEPT = ("ledger", "accept-restore", "--approver", "A. Chief", "--reason", "the disk broke")


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "counties.csv").write_text(COUNTIES)
    (folder / "run.toml").write_text(RUN)
    monkeypatch.chdir(folder)
    return folder


def code_of(run: Run, *arguments: str) -> str:
    """The code of the error that a command ends with."""
    done = run(*arguments, "--json")
    assert done.code == LEDGER_PROBLEM, (done.out, done.err)
    return str(json.loads(done.out)["code"])


@pytest.mark.parametrize("how", ["put back", "deleted", "emptied", "exchanged"])
def test_a_ledger_beside_the_run_file_that_is_not_the_one_before(run: Run, work: Path, how: str) -> None:
    assert run("ledger", "create").code == 0
    shutil.copy(DEFAULT, "older")
    assert run("release", "run.toml", "-o", "first").code == 0
    Path(DEFAULT).unlink()
    if how == "put back":
        shutil.copy("older", DEFAULT)
    elif how == "emptied":
        Path(DEFAULT).touch(mode=0o600)
    elif how == "exchanged":
        assert run("ledger", "create", "--ledger", "other").code == 0
        shutil.copy("other", DEFAULT)
    before = sorted(path.name for path in work.iterdir())
    for _ in range(2):
        assert code_of(run, "release", "run.toml", "-o", "second") == "witness-mismatch"
    assert code_of(run, "release", "run.toml", "-o", "second", "--ledger", DEFAULT) in ("witness-mismatch", "ledger-problem")
    price = json.loads(run("plan", "run.toml", "--json").out)["details"]["price"]
    assert "accept-restore" in price["problem"]
    assert sorted(path.name for path in work.iterdir()) == before

    accepted = run(*ACCEPT)
    assert (accepted.code, accepted.err) == (0, "")
    assert "'r1' of 'counties' (epsilon = 0.5)" in accepted.out
    assert run("release", "run.toml", "-o", "second").code == 9  # its id is used up
    Path("run.toml").write_text(RUN.replace('"r1"', '"r2"'))
    assert run("release", "run.toml", "-o", "second").code == 0
    (said,) = json.loads(run("ledger", "show", "--json").out)["datasets"]
    assert (said["spent"], said["recorded"]) == ("1", 2)
    verified = run("ledger", "verify", "first", "second")
    assert verified.code == 0
    assert "Compared with the mark in the state folder" in verified.out
    assert "2 cards" in verified.out
    assert "lost (charged)" in run("ledger", "show", "counties").out


def test_verify_says_what_it_was_compared_with(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("release", "run.toml", "-o", "first").code == 0
    (tmp_path / "second").mkdir()
    found = json.loads(run("ledger", "verify", "first", "--witness", str(tmp_path / "second"), "--json").out)
    head = Ledger.open(DEFAULT).head()
    entry = json.loads(Path("first", "card.json").read_text())["release"]["ledger"]
    assert found == {"problems": [], "head": head, "compared_with": {"state folder": head, "witness": None, "cards": [entry]}}
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "another"))
    said = run("ledger", "verify").out
    assert "Compared with nothing outside it: an older copy would not be noticed. The state folder remembers nothing of it." in said


def test_a_witness_of_the_run_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a folder beside the run file's own place; an account without a home needs it, and says so before anything is charged."""
    monkeypatch.delenv("HOLDFAST_STATE")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")
    assert code_of(run, "release", "run.toml", "-o", "out") == "no-witness"
    assert not Path(DEFAULT).exists()
    Path("run.toml").write_text(RUN + 'witness = "../marks"\n')
    assert code_of(run, "release", "run.toml", "-o", "out") == "no-witness"
    (tmp_path / "marks").mkdir()
    monkeypatch.setenv("HOLDFAST_KEY", "the secret of the office")
    assert run("release", "run.toml", "-o", "out").code == 0
    assert list((tmp_path / "marks").glob("*.mark"))
    Path(DEFAULT).unlink()
    assert code_of(run, "release", "run.toml", "-o", "again") == "witness-mismatch"


def test_an_empty_name_is_no_ledger_and_no_witness(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in (("release", "run.toml", "-o", "out", "--ledger", ""), ("release", "run.toml", "-o", "out", "--ledger", "  ")):
        assert code_of(run, *arguments) == "ledger-problem"
    monkeypatch.setenv("HOLDFAST_LEDGER", "")
    assert code_of(run, "release", "run.toml", "-o", "out") == "ledger-problem"
    monkeypatch.delenv("HOLDFAST_LEDGER")
    monkeypatch.setenv("HOLDFAST_WITNESS", "")
    assert code_of(run, "release", "run.toml", "-o", "out") == "no-witness"
    monkeypatch.delenv("HOLDFAST_WITNESS")
    for key in ("ledger", "witness"):
        Path("run.toml").write_text(RUN + f'{key} = ""\n')
        assert run("release", "run.toml", "-o", "out").code == 7
    assert not Path("out").exists()
    assert not Path(DEFAULT).exists()


def test_a_ledger_that_is_named_and_gone(run: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From another working folder a relative name is another file: refused, and none is made."""
    grant = ("ledger", "grant", "counties", "--epsilon", "3", "--approver", "a", "--reason", "b", "--ledger", "budget.db")
    assert run(*grant).code == 0
    assert run("release", "run.toml", "-o", "out", "--ledger", "budget.db").code == 0
    (work / "elsewhere").mkdir()
    monkeypatch.chdir(work / "elsewhere")
    assert code_of(run, "release", "../run.toml", "-o", "out", "--ledger", "budget.db") == "ledger-problem"
    monkeypatch.setenv("HOLDFAST_LEDGER", "budget.db")
    assert code_of(run, "release", "../run.toml", "-o", "out") == "ledger-problem"
    assert list(Path().iterdir()) == []
    monkeypatch.delenv("HOLDFAST_LEDGER")
    monkeypatch.chdir(work)
    Path("budget.db").unlink()
    assert code_of(run, "release", "run.toml", "-o", "second", "--ledger", "budget.db") == "ledger-problem"
    assert code_of(run, *grant) == "witness-mismatch"
    assert code_of(run, "ledger", "create", "--ledger", "budget.db") == "witness-mismatch"
    assert not Path("budget.db").exists()


def test_a_demo_may_be_deleted_and_made_again(run: Run) -> None:
    for _ in range(2):
        assert run("demo", "-o", "demo").code == 0
        shutil.rmtree("demo")


@pytest.mark.parametrize("release_id", ["demo-2030-census", "education-demo"])
def test_a_demo_makes_nobody_forget_a_release_that_it_did_not_make(run: Run, release_id: str) -> None:
    """Real people in the folder of a deleted demo, or in one that no demo made, under an id such as the demo's own."""
    assert run("demo", "-o", "demo").code == 0
    Path("elsewhere").mkdir()
    shutil.copy("demo/education.csv", "elsewhere")
    text = Path("demo/run.toml").read_text().replace("education-demo", release_id)
    for folder in ("demo", "elsewhere"):
        Path(folder, "run.toml").write_text(text)
        assert run("release", f"{folder}/run.toml", "-o", f"{folder}-out").code == 0
        shutil.rmtree(folder)
        again = run("demo", "-o", folder)
        assert (again.code, again.err.count("Choose another name for the demo's folder")) == (9, 1)
        assert not Path(folder).exists()
        Path(folder).mkdir()
        shutil.copy(f"{folder}-out/table.csv", Path(folder, "education.csv"))
        Path(folder, "run.toml").write_text(text)
        assert code_of(run, "release", f"{folder}/run.toml", "-o", "second") == "witness-mismatch"


def test_a_demo_that_was_stopped_leaves_its_folder_free(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("holdfast.cli.demo.synthesize", stop)  # between the two releases
        assert run("demo", "-o", "demo").code != 0
    assert not Path("demo").exists()
    assert run("demo", "-o", "demo").code == 0
