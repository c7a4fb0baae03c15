"""`holdfast init`, `schema` and `completion`: a run file that plan takes, without reading a count."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.errors import InvalidCode
from holdfast.runfiles.runfile import load_run
from holdfast.runfiles.schema import BESIDE, FIRST_LINE, schema_text
from tests.running import Run

ROWS = [(county, sex, 9000 + 7 * place) for place, (county, sex) in enumerate((c, s) for c in ("17031", "51191") for s in "FM")]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "people.csv").write_text("county,sex,population\n" + "".join(f"{c},{s},{n}\n" for c, s, n in ROWS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestInit:
    OPTIONS = ("--count", "population", "--cells", "county", "--cells", "sex")

    def test_options_give_a_run_file_that_plan_takes(self, work: Path, run: Run) -> None:
        made = run(
            "init", "people.csv", *self.OPTIONS, "--keep", "county", "--keep", "total", "--epsilon", "1/2", "--public", "-o", "a.toml"
        )
        assert (made.code, made.err) == (0, "")
        text = (work / "a.toml").read_text()
        assert text.splitlines()[0] == FIRST_LINE == f"#:schema ./{BESIDE}"
        assert (work / BESIDE).read_text(encoding="utf-8") == schema_text()
        found = load_run(work / "a.toml")
        assert (found.id, dict(found.written), found.mechanism.per, len(found.keep)) == ("people-v1", {"epsilon": "1/2"}, "person", 2)
        assert run("plan", "a.toml", "--no-ledger").code == 0

    def test_the_budget_is_for_whom_the_file_protects(self, work: Path, run: Run) -> None:
        for more, per in (((), "household"), (("--per", "distance"), "distance")):
            assert run("init", "people.csv", *self.OPTIONS, "--protect", "household", *more, "-o", f"{per}.toml").code == 0
            found = load_run(work / f"{per}.toml")
            assert (found.mechanism.per, found.read_declarations().protect) == (per, "household")
        wrong = run("init", "people.csv", *self.OPTIONS, "--protect", "household", "--per", "person", "-o", "wrong.toml")
        assert 'must be one of "household", "distance". Got "person".' in wrong.err
        assert not (work / "wrong.toml").exists()

    def test_no_count_is_read_or_told(self, work: Path, run: Run) -> None:
        broken = [f"{c},{s},no number\n" for c, s, _ in ROWS]
        (work / "people.csv").write_text("county,sex,population\n" + "".join(broken))
        assert run("init", "people.csv", *self.OPTIONS).code == 0
        first = (work / "run.toml").read_text()
        (work / "people.csv").write_text("county,sex,population\n" + "".join(f"{c},{s},{n}\n" for c, s, n in ROWS))
        assert run("init", "people.csv", *self.OPTIONS, "-o", "b.toml").code == 0
        assert (work / "b.toml").read_text() == first
        assert not any(str(n) in first for *_, n in ROWS)

    def test_commented_lines_work_when_they_are_taken_in(self, work: Path, run: Run) -> None:
        assert run("init", "people.csv", *self.OPTIONS).code == 0
        path = work / "run.toml"
        labels = ("# [table.labels]", "# county =", "# sex =", "# public", "# name", "# date", "# office", "# approver")
        path.write_text("\n".join(line[2:] if line.startswith(labels) else line for line in path.read_text().splitlines()))
        made = load_run(path).read_declarations()
        assert (made.universe.is_public, made.name) == (True, "Residents by county")
        assert made.universe.labels.code("sex", {"sex": "F"}) == "F"

    def test_records_get_their_codes_and_are_told_to_check_them(self, work: Path, run: Run) -> None:
        made = run("init", "people.csv", "--records", "--cells", "sex", "--rho", "1/10", "--keep", "none", "--no-schema")
        assert "Check the codes" in made.out
        found = load_run(work / "run.toml")
        assert (found.mechanism.name, found.keep) == ("generalized-gaussian", [])
        assert found.read_declarations().universe.codes["sex"] == ("F", "M")
        assert not (work / BESIDE).exists()

    def test_records_with_codes_named_like_totals(self, work: Path, run: Run) -> None:
        (work / "r.csv").write_text("sex,town\nF,All\nM,Sum\n")
        made = run("init", "r.csv", "--records", "--cells", "sex", "--cells", "town", "--keep", "none")
        assert "remove the # before allow_total_names = true" in made.err
        assert run("plan", "run.toml").code == InvalidCode.exit_code
        path = work / "run.toml"
        path.write_text(path.read_text().replace("# allow_total_names", "allow_total_names"))
        assert run("plan", "run.toml").code == 0
        assert load_run(path).read_declarations().universe.codes["town"] == ("All", "Sum")

    def test_without_a_terminal_columns_are_never_guessed(self, work: Path, run: Run) -> None:
        made = run("init", "people.csv", "--json")
        assert made.code == 2
        assert "'county', 'sex', 'population'" in json.loads(made.out)["message"]
        assert not (work / "run.toml").exists()

    def test_a_line_feed_in_a_heading(self, work: Path, run: Run) -> None:
        (work / "people.csv").write_bytes(b'county,"sex\n(code)",population\r\n17031,F,5\r\n17031,M,6\r\n')
        assert run("init", "people.csv", "--count", "population", "--cells", "county", "--cells", "sex\n(code)").code == 0
        assert load_run(work / "run.toml").read_declarations().universe.codes["sex\n(code)"] == ("F", "M")

    @pytest.mark.parametrize("options", [("--records", "--cells", "sex"), OPTIONS])
    def test_a_file_without_rows_is_refused(self, work: Path, run: Run, options: tuple[str, ...]) -> None:
        (work / "people.csv").write_text("county,sex,population\n")
        made = run("init", "people.csv", *options)
        assert made.code != 0
        assert "There are no rows in file 'people.csv'" in made.err
        assert [path.name for path in work.iterdir()] == ["people.csv"]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--count", "people", "--cells", "sex"), "no column 'people'"),
            (("--count", "population", "--cells", "sex", "--keep", "age"), "--keep: no column of cells is called 'age'. Columns: 'sex'."),
            ((*OPTIONS, "--keep", "county,sex"), "Write --keep county:sex."),
            ((*OPTIONS, "--keep", "county:sexe"), "--keep: no column of cells is called 'sexe'. Did you mean 'sex'?"),
            (("--count", "population", "--cells", "county,sex"), "Write --cells county --cells sex."),
            (("--count", "n", "--cells", "sex"), "--count: there is no column 'n'."),
            (("--count", "population", "--cells", "sex", "--epsilon", "0"), "--epsilon: a budget of zero"),
            ((*OPTIONS, "--id", "a b"), "holdfast: --id: must be a text"),
            ((*OPTIONS, "--per", "household"), 'holdfast: --per: must be one of "person", "distance".'),
            (("--records", "--count", "population"), "Leave one of them out"),
            (("--epsilon", "1", "--rho", "1"), "Leave one of them out"),
        ],
    )
    def test_what_is_wrong_is_refused_and_nothing_is_left(self, work: Path, run: Run, options: tuple[str, ...], said: str) -> None:
        made = run("init", "people.csv", *options)
        assert made.code != 0
        assert said in made.err
        assert sorted(path.name for path in work.iterdir()) == ["people.csv"]

    def test_an_existing_file_is_not_touched(self, work: Path, run: Run) -> None:
        (work / "run.toml").write_text("mine")
        assert "exists already" in run("init", "people.csv", *self.OPTIONS).err
        assert (work / "run.toml").read_text() == "mine"

    @pytest.mark.parametrize(
        ("answers", "public"),
        [
            ("\n\n\n\ncounty, total\n\n1/4\nfirst\n", False),  # Return takes what is likely
            ("\n\n\nmaybe\ny\ncounty, total\nyes\n1/4\nfirst\n", True),  # what is neither yes nor no is asked again
        ],
    )
    def test_questions_on_a_terminal(self, work: Path, answers: str, public: bool) -> None:
        made = on_a_terminal(answers)
        assert made.returncode == 0, made.stderr
        for question, likely in (
            ("holds the counts", "population"),
            ("tell cells apart", "county, sex"),
            ("Whose privacy is promised", "person"),
            ("in population count persons, each once?", "yes"),
            ("must be exact", "total"),
            ("Is the list of cells public", "no"),
            ("Budget", "1"),
            ("Identifier", "people-v1"),
        ):
            assert question in made.stdout
            assert f"[{likely}]" in made.stdout
        found = load_run(work / "run.toml")
        assert (found.id, len(found.keep), dict(found.written)) == ("first", 2, {"epsilon": "1/4"})
        assert found.read_declarations().universe.is_public is public

    def test_amounts_are_refused_with_the_word_for_them(self, work: Path) -> None:
        made = on_a_terminal("\n\nhousehold\nno\n")
        assert made.returncode == 5
        assert "Do the numbers in population count households, each once?" in made.stdout
        assert "Sums of amounts are real-valued answers" in made.stderr
        assert "hf.answer" in made.stderr
        assert not (work / "run.toml").exists()

    @pytest.mark.parametrize("said", ["y", "Yes", "no"])
    def test_yes_is_nobody(self, work: Path, run: Run, said: str) -> None:
        for told in (on_a_terminal(f"\n\n{said}\n").stderr, run("init", "people.csv", *self.OPTIONS, "--protect", said).err):
            assert f"whose privacy is promised, such as 'person' or 'household'. Got '{said}'" in told
        assert not (work / "run.toml").exists()

    def test_rows_named_like_totals_are_declared(self, work: Path, run: Run) -> None:
        sums = [f"{county},_T,{9000 * 2 + 7 * (4 * place + 1)}\n" for place, county in enumerate(("17031", "51191"))]
        with (work / "people.csv").open("a") as file:
            file.write("".join(sums))
        made = run("init", "people.csv", *self.OPTIONS, "--keep", "county")
        assert (made.code, made.err) == (0, "")
        assert (work / "run.toml").read_text().count("_T") == 1 + 1  # the line, and what is said of the key; not among the labels
        assert 'totals = {sex = "_T"}' in (work / "run.toml").read_text()
        assert load_run(work / "run.toml").read_table().universe.codes["sex"] == ("F", "M")

    def test_rows_that_add_up_others_are_warned_of(self, work: Path, run: Run) -> None:
        """By the counts, for the eyes of the office: the run file is as without them."""
        text = "county,sex,population\n" + "".join(f"{c},{s},{n}\n" for c in "ab" for s, n in (("F", 3), ("M", 4), ("X", 7)))
        (work / "people.csv").write_text(text)
        made = run("init", "people.csv", *self.OPTIONS)
        assert made.code == 0
        assert "In column 'sex', each count of 'X' is the sum of those of the other codes." in made.err
        assert 'totals = {sex = "X"}' in made.err
        first = (work / "run.toml").read_text()
        (work / "people.csv").write_text(text.replace("a,X,7", "a,X,8"))
        assert run("init", "people.csv", *self.OPTIONS, "-o", "b.toml").err == ""
        assert (work / "b.toml").read_text() == first


def on_a_terminal(answers: str) -> subprocess.CompletedProcess[str]:
    """`holdfast init` with these answers, and then the end of the input."""
    ours, theirs = os.openpty()
    os.write(ours, answers.encode() + b"\x04")
    made = subprocess.run(
        [sys.executable, "-m", "holdfast", "init", "people.csv"], stdin=theirs, text=True, capture_output=True, timeout=60
    )
    os.close(ours)
    os.close(theirs)
    return made


@pytest.mark.parametrize("command", ["", "init", "release", "ledger grant", "cellkey perturb"])
def test_help_shows_flags_without_a_value(run: Run, command: str) -> None:
    told = run(*command.split(), "--help").out
    assert "--help" in told
    assert "bool" not in told


def test_schema_is_printed_or_written_once(work: Path, run: Run) -> None:
    assert run("schema").out == schema_text()
    assert run("schema", "-o", "s.json").code == 0
    assert (work / "s.json").read_text(encoding="utf-8") == schema_text()
    assert "exists already" in run("schema", "-o", "s.json").err
    assert run("schema", "-o", "s.json", "--force").code == 0


def test_completions_of_commands_options_and_choices(work: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def completed(words: str) -> list[str]:
        monkeypatch.setenv("_HOLDFAST_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
        made = run().out.split()
        monkeypatch.delenv("_HOLDFAST_COMPLETE")
        return made

    assert completed("holdfast pl") == ["plan"]
    assert completed("holdfast plan --no") == ["--no-ledger"]
    assert completed("holdfast completion ") == ["bash", "zsh", "fish"]
    assert "grant" in completed("holdfast ledger ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_every_shell(run: Run, shell: str) -> None:
    script = run("completion", shell).out
    assert f"complete_{shell}" in script
    assert "_HOLDFAST_COMPLETE" in script
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=script, text=True, capture_output=True).stderr == ""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_with_the_script(tmp_path: Path, run: Run) -> None:
    (tmp_path / "holdfast").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdfast "$@"\n')
    (tmp_path / "holdfast").chmod(0o755)
    asked = 'COMP_WORDS=(holdfast rel); COMP_CWORD=1; _holdfast_completion holdfast; echo "${COMPREPLY[@]}"'
    script = run("completion", "bash").out + "\n" + asked
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert subprocess.run(["bash", "-c", script], text=True, capture_output=True, env=environment).stdout == "release\n"
