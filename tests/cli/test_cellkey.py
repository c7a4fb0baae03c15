"""`holdfast cellkey` as a user meets it: what is printed, written, recorded and refused."""

from __future__ import annotations

import json
import random
import signal
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.cellkey import CellKeys, KeySpace, PerturbationTable, RecordKeys, design_rows, read_table, write_table
from holdfast.errors import IdenticalRelease
from holdfast.ledger import Ledger
from holdfast.wording.cellkey import NOT_PRIVATE
from holdfast.wording.endings import NOTHING_CHARGED, standing_sentences
from tests.cellkey.perturbing import ALMOST_SILENT, perturb
from tests.cellkey.test_formats import ONS, OURS, PTABLE, SUPERSTAR
from tests.running import Run
from tests.snapshot_files import Snapshot

SECRET = RecordKeys.for_tests("cli")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = random.Random(3)
    lines = [f"p{place},{rng.choice('NSEW')},{rng.randrange(9)}" for place in range(500)]
    Path("people.csv").write_text("\n".join(["id,region,age", *lines]) + "\n", encoding="utf-8")
    write_table(OURS, "noise.json")
    SECRET.save("secret.json")
    return tmp_path


PERTURB = ("cellkey", "perturb", "people.csv", "--table", "ages=region:age", "--table", "regions=region", "--table", "all=")
MADE = (*PERTURB, "--noise", "noise.json", "--id", "id", "--secret", "secret.json", "--keys", "0.8", "-o", "out")


class TestDesign:
    def test_the_example_of_the_paper(self, run: Run, folder: Path, snapshot: Snapshot) -> None:
        done = run("cellkey", "design", "--epsilon", "0.5", "--delta", "1e-4", "-o", "made.json", "--page", "made.html")
        assert done.code == 0
        snapshot(done.out)
        assert "Small      counts 1 to 24 have rows of largest entropy, with no such promise" in done.out
        table = read_table("made.json")
        assert (table.key_size, table.counts) == (2**32, tuple(range(26)))
        # Two cell keys of the paper's Example 2.
        assert table.lookup(np.array([25, 25]), np.array([2552, 1200124], np.uint64)).tolist() == [-25, -23]
        assert "2¹⁶ keys" in Path("made.html").read_text(encoding="utf-8")

    def test_for_machines(self, run: Run, folder: Path) -> None:
        done = run("cellkey", "design", "--epsilon", "0.5", "--delta", "1e-4", "--json")
        found = json.loads(done.out)
        assert (found["D"], found["epsilon"], found["delta"]) == (25, "1/2", "1/10000")
        others = {name: (other["D"], other["gamma"]) for name, other in found["others"].items()}
        assert others == {"best": (25, "1/82"), "smallest": (24, "1/78"), "laplace": (16, None)}
        assert all(other["delta"] <= 1e-4 for other in found["others"].values())
        losses = found["check"]["losses"]
        assert {name: one["worst"] for name, one in losses.items()} == {"all": 0, "from_1": 6, "design": 25}
        assert losses["design"]["plateau"] <= 1e-4 < losses["from_1"]["plateau"] < losses["all"]["plateau"] == pytest.approx(0.5)
        lost = {size["key_size"]: size["lost"] for size in found["check"]["key_sizes"]}
        assert lost == {"2^8": 13, "2^16": 0, "2^32": 0, "2^64": 0}

    def test_a_table_that_misses_the_target(self, run: Run, folder: Path) -> None:
        shown = run("cellkey", "design", "--epsilon", "0.5", "--delta", "1e-4", "--key-size", "2^16", "-o", "made.json").out
        assert "With keys  delta = 0.000108455 at epsilon = 1/2, in the table with 2^16 keys: ABOVE WHAT WAS ASKED" in shown
        assert "- THE TABLE MISSES THE TARGET" in shown

    @pytest.mark.parametrize(
        ("ask", "keys"),
        [
            (("--epsilon", "0.5", "--delta", "1e-4"), "2^32"),
            (("--epsilon", "3", "--delta", "0.1", "--kind", "ptable", "--key-size", "0.8"), "0.8"),
            (("--max", "2", "--variance", "1", "--js", "1", "--stay", "0.3"), "2^32"),
            (("--max", "2", "--variance", "1", "--js", "1", "--stay", "0.5", "--allow-short", "--kind", "sas", "--key-size", "0.8"), "0.8"),
            (("--max", "2", "--variance", "3/4", "--key-size", "256", "--kind", "ons"), "256"),
            (("--max", "2", "--variance", "3/4", "--key-size", "256", "--kind", "superstar"), "256"),
        ],
    )
    def test_perturb_takes_the_designed_table(self, ask: tuple[str, ...], keys: str, run: Run, folder: Path) -> None:
        """A row for every count there can be: cells of 1, 2, 3, ..., 31 people, and all 496 together."""
        assert run("cellkey", "design", *ask, "-o", "made").code == 0
        lines = [f"p{size}-{place},c{size}" for size in range(1, 32) for place in range(size)]
        Path("few.csv").write_text("\n".join(["id,kind", *lines]) + "\n", encoding="utf-8")
        tables = ("--table", "kinds=kind", "--table", "all=", "--noise", "made", "--id", "id", "--secret", "secret.json", "--keys", keys)
        repeat = ("--repeat", "1") if {"ons", "superstar"} & {*ask} else ()
        done = run("cellkey", "perturb", "few.csv", *tables, *repeat, "--no-ledger", "-o", "out")
        assert done.code == 0, done.err
        assert done.out.startswith(NOT_PRIVATE)  # a test secret
        (total,) = Path("out/all/table.csv").read_text(encoding="utf-8").splitlines()[1:]
        assert 471 <= int(total.split(",")[1]) <= 521

    def test_rows_from_a_range_and_a_variance(self, run: Run, folder: Path) -> None:
        """The law of every count, as design_rows has it: no result 1, mean 0, variance 1, at least .3 of no noise where that can be."""
        ask = ("cellkey", "design", "--max", "2", "--variance", "1", "--js", "1", "--stay", "0.3")
        done = run(*ask, "-o", "made.json", "--page", "made.html")
        assert "Worst pair counts 0 and 1: delta = 0.5 from epsilon = 0 on: no epsilon gets below it" in done.out
        table = read_table("made.json")
        assert table == design_rows(2, 1, js=1, stay="0.3").quantised(2**32)
        assert table.counts == (0, 1, 2, 3, 4)
        assert all(row.probabilities.get(0, 0) >= Fraction(3, 10) for row in table.rows.values() if row.count != 1)
        assert {value for row in table.rows.values() for value in row.results} == {0, 2, 3, 4, 5, 6}
        assert "Both counts at least 1" in Path("made.html").read_text(encoding="utf-8")
        assert json.loads(run(*ask, "--json").out)["losses"]["from_1"]["worst"] == 1
        assert "--allow-short" in run(*ask[:-1], "0.6").err

    @pytest.mark.parametrize(
        "ask", [(), ("--epsilon", "1"), ("--max", "2"), ("--max", "2", "--variance", "1", "--delta", "0.1"), ("--js", "1")]
    )
    def test_one_of_two_ways_to_ask(self, ask: tuple[str, ...], run: Run, folder: Path) -> None:
        done = run("cellkey", "design", *ask)
        assert (done.code, "needs --epsilon and --delta, or --max and --variance" in done.err) == (2, True)

    def test_refused(self, run: Run, folder: Path) -> None:
        assert run("cellkey", "design", "--epsilon", "0.5", "--delta", "2").code == 2
        none = run("cellkey", "design", "--epsilon", "0", "--delta", "0.1")
        assert (none.code, "Take a small epsilon" in none.err, "suppression" in none.err) == (2, True, False)
        assert "too small" in run("cellkey", "design", "--epsilon", "0.5", "--delta", "1e-4", "--key-size", "2^8").err
        ask = ("cellkey", "design", "--epsilon", "1", "--delta", "1e-3", "-o", "noise.json")
        assert run(*ask).code == 9  # it exists
        decimals = run(*ask[:-1], "new.csv", "--kind", "ptable")  # 2^32 keys are no decimals
        assert (decimals.code, "--key-size 0.8" in decimals.err) == (2, True)
        assert run(*ask[:-1], "fresh.json", "--page", "noise.json").code == 9
        assert not Path("fresh.json").exists()  # both places are looked at first
        assert run(*ask[:-1], "new.csv", "--kind", "ptable", "--key-size", "0.8").code == 0
        assert read_table("new.csv").key_size == 10**8


class TestCheck:
    def test_a_table_by_hand(self, run: Run, folder: Path, snapshot: Snapshot) -> None:
        Path("ptable.csv").write_text(PTABLE, encoding="utf-8")
        done = run("cellkey", "check", "ptable.csv", "-o", "page.html")
        assert done.code == 0
        snapshot(done.out)
        assert "polyline" in Path("page.html").read_text(encoding="utf-8")
        assert run("cellkey", "check", "ptable.csv", "-o", "page.html").code == 9

    @pytest.mark.parametrize(("text", "words"), [(ONS, ["--repeat", "2"]), (SUPERSTAR, ["--repeat", "1", "--kind", "superstar"])])
    def test_other_files(self, run: Run, folder: Path, text: str, words: list[str]) -> None:
        Path("table.csv").write_text(text, encoding="utf-8")
        done = run("cellkey", "check", "table.csv", "--json", *words)
        assert done.code == 0
        assert json.loads(done.out)["table"]["first"] == 1

    def test_describe_says_the_same(self, run: Run, folder: Path) -> None:
        shown = run("cellkey", "check", "noise.json", "--json").out
        assert " ".join(json.loads(shown)["text"]) == hf.describe(OURS)

    def test_negative_counts_are_warned_of(self, run: Run, folder: Path) -> None:
        write_table(PerturbationTable.from_probabilities({1: {-1: "1/2", 1: "1/2"}, 2: {-4: "1/2", 4: "1/2"}}), "bad.json")
        told = "Published counts may be negative, down to -2"
        assert told in run("cellkey", "check", "bad.json").out
        assert told not in run("cellkey", "check", "noise.json").out
        assert told in run(*("bad.json" if word == "noise.json" else "2^32" if word == "0.8" else word for word in MADE)).out

    def test_a_threshold_of_ons(self, run: Run, folder: Path) -> None:
        """What ONS leaves out is published as 0, wherever the same key gives a value below the threshold."""
        assert "No count is published as 1 to 9" in run("cellkey", "check", "noise.json", "--threshold", "10").out
        assert run(*MADE, "--no-ledger").code == 0
        assert "published as 1 to 9" in run(*MADE[:-1], "cut", "--no-ledger", "--threshold", "10").out
        before, after = (
            [int(line.split(",")[2]) for line in Path(name, "ages/table.csv").read_text(encoding="utf-8").splitlines()[1:]]
            for name in ("out", "cut")
        )
        assert min(before) < 10 <= max(before)
        assert after == [count for count in before if count >= 10]  # cells as they occur: those of 0 are not listed
        card = json.loads(Path("cut/ages/card.json").read_text(encoding="utf-8"))
        assert (card["guarantee"]["keyed"]["least_result"], card["guarantee"]["keyed"]["zero_delta"]) == (10, "0")

    def test_refused(self, run: Run, folder: Path) -> None:
        Path("bad.csv").write_text(PTABLE.replace("1.00000000", "0.99000000"), encoding="utf-8")
        assert run("cellkey", "check", "bad.csv").code != 0
        assert run("cellkey", "check", "none.csv").code != 0
        assert run("cellkey", "check", "noise.json", "--kind", "magic").code == 2


class TestPerturb:
    def test_writes_a_folder_and_records_it(self, run: Run, folder: Path, snapshot: Snapshot) -> None:
        done = run(*MADE)
        assert done.code == 0, done.err
        entry = json.loads(Path("out/tables.json").read_text(encoding="utf-8"))["ledger"]
        snapshot(done.out.replace(entry, "ENTRY"))
        assert sorted(path.name for path in Path("out").iterdir()) == ["ages", "all", "regions", "tables.json"]
        book = Ledger.open("holdfast-ledger.sqlite")
        assert book.balance("people").cell_key == 1
        assert book.balance("people").spent == 0
        assert book.verify([entry]) == []
        space = KeySpace.decimals(8)
        tables = {"ages": ["region", "age"]}
        expected = perturb(SECRET.add("people.csv", "id", space), tables, OURS, keys=CellKeys(space))["ages"]
        lines = Path("out/ages/table.csv").read_text(encoding="utf-8").splitlines()[1:]
        assert [line.split(",")[2] for line in lines] == [str(count) for count in expected.column("count").to_pylist()]
        assert "NOT PRIVATE" in Path("out/ages/report.html").read_text(encoding="utf-8")  # the keys are those of a test

    def test_from_another_folder_it_is_the_same_ledger(self, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The one beside the data: else the same id could be published again from anywhere."""
        assert run(*MADE).code == 0
        (folder / "elsewhere").mkdir()
        monkeypatch.chdir(folder / "elsewhere")
        again = run(*(f"../{word}" if word.endswith((".csv", ".json")) else word for word in MADE))
        assert (again.code, "already holds the release 'out'" in again.err) == (IdenticalRelease.exit_code, True)
        assert list(Path().iterdir()) == []

    def test_the_same_again_on_another_day(self, run: Run, folder: Path) -> None:
        assert run(*MADE).code == 0
        lines = Path("people.csv").read_text(encoding="utf-8").splitlines()
        Path("people.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n", encoding="utf-8")
        assert run(*MADE[:-1], "again").code == 0
        for name in ("ages/table.csv", "regions/table.csv", "all/table.csv"):
            assert (Path("out") / name).read_bytes() == (Path("again") / name).read_bytes()

    def test_nothing_confidential_is_written(self, run: Run, folder: Path) -> None:
        """With other keys and no noise the same bytes come out: neither keys nor noise are anywhere."""
        write_table(ALMOST_SILENT, "silent.json")
        SECRET.derive("other").save("other.json")
        for secret in ("secret", "other"):
            words = [f"{secret}.json" if word == "secret.json" else "silent.json" if word == "noise.json" else word for word in MADE[:-1]]
            assert run(*words, secret, "--name", "r", "--no-ledger").code == 0
        for path in filter(Path.is_file, Path("secret").rglob("*")):
            assert path.read_bytes() == (Path("other") / path.relative_to("secret")).read_bytes()

    def test_for_machines_and_columns_of_keys(self, run: Run, folder: Path) -> None:
        frame = SECRET.add("people.csv", "id", KeySpace(4096))
        rows = [",".join(map(str, row.values())) for row in frame.to_pylist()]
        Path("keyed.csv").write_text("\n".join([",".join(frame.column_names), *rows]) + "\n", encoding="utf-8")
        words = ["keyed.csv" if word == "people.csv" else word for word in PERTURB]
        ask = (*words, "--noise", "noise.json", "--keys", "4096", "--no-ledger", "-o")
        assert "--rescale" in run(*ask, "out").err
        done = run(*ask, "out", "--json", "--rescale")
        found = json.loads(done.out)
        assert "fitted from 100000000 to 4096 keys" in " ".join(found["text"])
        assert (found["release"], found["test_key"], found["ledger"]) == ("out", False, None)
        parameters = json.loads(Path("out/ages/card.json").read_text(encoding="utf-8"))["mechanism"]["parameters"]
        assert [parameters[name] for name in ("keys", "modulus", "size")] == ["2^12", "4096", "4096"]
        assert run(*ask, "two", "--modulus", "256", "--rescale").code == 0
        write_table(ALMOST_SILENT, "silent.json")
        silent = run(*words, "--noise", "silent.json", "--keys", "4096", "--no-ledger", "--rescale", "--json", "-o", "silent")
        assert "fitted" not in " ".join(json.loads(silent.out)["text"])  # its law is the same with any number of keys

    def test_a_prime_tells_how_uneven_it_is(self, run: Run, folder: Path) -> None:
        write_table(ALMOST_SILENT, "silent.json")
        words = ["silent.json" if word == "noise.json" else "2^32" if word == "0.8" else word for word in MADE]
        assert "delta + (1 + e^epsilon) × 2.33e-9" in run(*words, "--modulus", "4294967291", "--no-ledger").out
        assert "far from uniform" in run(*words[:-1], "two", "--modulus", "3000000019", "--no-ledger").err

    def test_files_of_ons_take_the_sum_modulo_their_keys(self, run: Run, folder: Path) -> None:
        """Keys of 4096 and a table of 8 keys: ONS does not fold by XOR."""
        frame = SECRET.add("people.csv", "id", KeySpace(4096))
        Path("ons.csv").write_text(ONS, encoding="utf-8")
        words = ["ons.csv" if word == "noise.json" else "4096" if word == "0.8" else word for word in MADE]
        assert run(*words, "--repeat", "2").code == 0
        table = read_table("ons.csv", repeat=2)
        made, folded = (
            perturb(frame, {"ages": ["region", "age"]}, table, keys=rule)["ages"].column("count").to_pylist()
            for rule in (CellKeys(KeySpace(4096), 8), CellKeys(KeySpace(4096), size=8))
        )
        assert made != folded
        by_default = perturb(frame, {"ages": ["region", "age"]}, table, keys=KeySpace(4096))["ages"]
        assert by_default.column("count").to_pylist() == made  # Python folded them
        lines = Path("out/ages/table.csv").read_text(encoding="utf-8").splitlines()[1:]
        assert [int(line.split(",")[2]) for line in lines] == made

    def test_other_noise_for_the_same_data_set_is_refused(self, run: Run, folder: Path) -> None:
        """Eight releases with eight secrets would be eight draws of noise for the same records."""
        assert run(*MADE).code == 0
        SECRET.derive("other").save("other.json")
        write_table(ALMOST_SILENT, "silent.json")
        frame = SECRET.add("people.csv", "id", KeySpace.decimals(8))
        rows = [",".join(map(str, row.values())) for row in frame.to_pylist()]
        Path("keyed.csv").write_text("\n".join([",".join(frame.column_names), *rows]) + "\n", encoding="utf-8")
        changed = {
            "secret of the record keys": {"secret.json": "other.json"},
            "rule for cell keys and perturbation table": {"noise.json": "silent.json", "0.8": "2^32"},
        }
        for part, swaps in changed.items():
            done = run(*(swaps.get(word, word) for word in MADE[:-1]), "again")
            assert (done.code, f"have another {part}: the same records" in done.err) == (12, True), done.err
            assert not Path("again").exists()
        columns = ["keyed.csv" if word == "people.csv" else word for word in PERTURB]
        done = run(*columns, "--noise", "noise.json", "--keys", "0.8", "--dataset", "people", "-o", "again")
        assert "another secret of the record keys" in done.err  # whose keys a column holds is not known
        assert Ledger.open("holdfast-ledger.sqlite").balance("people").cell_key == 1
        done = run(*("other.json" if word == "secret.json" else word for word in MADE[:-1]), "again", "--other-noise")
        assert done.code == 0
        assert "Earlier tables may have other noise, which the publisher allowed" in done.out
        assert "Earlier tables may have other noise" in Path("again/ages/report.html").read_text(encoding="utf-8")
        assert SECRET.fingerprint not in Path("out/ages/card.json").read_text(encoding="utf-8")

    def test_another_column_of_keys_or_identifiers_is_other_noise(self, run: Run, folder: Path) -> None:
        """The same records with two columns of keys, or of identifiers, have two draws of noise under one secret, known or not."""
        lines = Path("people.csv").read_text(encoding="utf-8").splitlines()
        keys = random.Random(5)
        rows = [f"{line},q{place},{keys.random():.8f},{keys.random():.8f}" for place, line in enumerate(lines[1:])]
        Path("people.csv").write_text("\n".join([f"{lines[0]},id2,k1,k2", *rows]) + "\n", encoding="utf-8")
        columns = (*PERTURB, "--noise", "noise.json", "--keys", "0.8")
        for begin, option, names in (((*MADE[:-4], "--keys", "0.8"), "--id", ("id", "id2")), (columns, "--key", ("k1", "k2"))):
            named = ("--dataset", option.strip("-"), "--other-records", "another test")
            assert run(*begin, option, names[0], *named, "-o", f"first{option}").code == 0
            assert run(*begin, option, names[0], *named, "-o", f"same{option}").code == 0
            done = run(*begin, option, names[1], *named, "-o", "again")
            assert (done.code, "have another column of keys or identifiers: the same records" in done.err) == (12, True), done.err
            assert not Path("again").exists()

    def test_another_name_for_the_data_set_does_not_avoid_the_refusal(self, run: Run, folder: Path) -> None:
        """A data set is only a name: `--dataset other` gave the same records a second draw of noise."""
        assert run(*MADE).code == 0
        SECRET.derive("other").save("other.json")
        again = tuple("other.json" if word == "secret.json" else word for word in MADE[:-1])
        done = run(*again, "again", "--dataset", "other")
        assert (done.code, "Cell key releases of 'people' in this ledger have another secret" in done.err) == (12, True), done.err
        assert not Path("again").exists()
        assert run(*again, "again", "--dataset", "People").code == 12
        assert run(*again, "again", "--dataset", "people", "--other-records", "people abroad").code == 12  # it is the same data set
        assert run(*again, "again", "--dataset", "other", "--other-records", " ").code == 2
        done = run(*again, "again", "--dataset", "other", "--other-noise")
        assert (done.code, "Earlier tables may have other noise" in done.out) == (0, True), done.err
        assert run("verify", "again").code == 0

    def test_other_records_are_told_apart_in_words(self, run: Run, folder: Path) -> None:
        """Once for a data set; the ledger records and shows it, and the pages say nothing of other noise."""
        assert run(*MADE).code == 0
        SECRET.derive("other").save("other.json")
        again = tuple("other.json" if word == "secret.json" else word for word in MADE[:-1])
        done = run(*again, "again", "--dataset", "other", "--other-records", "people abroad")
        assert (done.code, "may have other noise" in done.out) == (0, False), done.err
        assert run("verify", "again").code == 0
        held = Ledger.open("holdfast-ledger.sqlite").reservation("other", "again")
        assert held is not None
        assert held.facts.other_records == "people abroad"
        assert "other records: people abroad" in run("ledger", "show", "other").out
        assert json.loads(run("ledger", "show", "other", "--json").out)["releases"][0]["other_records"] == "people abroad"
        assert run(*again, "third", "--dataset", "other").code == 0  # both data sets go on with their own noise
        assert run(*MADE[:-1], "fourth").code == 0
        assert run(*again, "fifth", "--dataset", "a third").code == 12  # of these nobody said so

    def test_other_noise_that_another_process_records_meanwhile(self, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Earlier releases were looked at before the transaction that records this one."""
        real = Ledger.reserve

        def slower(self: Ledger, dataset: str, release_id: str, charge: Any, facts: Any, **more: Any) -> Any:
            other = replace(facts, noise={**facts.noise, "secret": "another"})
            real(self, dataset, "faster", charge, other, sealed_key=None, input_digest="none", now="2026-01-01T00:00:00Z")
            return real(self, dataset, release_id, charge, facts, **more)

        monkeypatch.setattr(Ledger, "reserve", slower)
        done = run(*MADE)
        assert (done.code, "have another secret of the record keys: the same records" in done.err) == (12, True), done.err
        assert not Path("out").exists()
        assert Ledger.open("holdfast-ledger.sqlite").reservation("people", "out") is None

    def test_stopped_before_it_is_complete(self, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing is left behind, as is said, and the same command may be run again."""

        def stop(*_: object) -> None:
            signal.raise_signal(signal.SIGINT)

        with monkeypatch.context() as stopped:
            stopped.setattr("holdfast.publication.folder.save_pieces", stop)
            done = run(*MADE)
        assert (done.code, NOTHING_CHARGED in done.err) == (130, True), done.err
        held = Ledger.open("holdfast-ledger.sqlite").reservation("people", "out")
        assert held is not None
        assert held.state == "voided"
        assert run(*MADE).code == 0

    def test_what_is_said_of_a_stopped_release(self) -> None:
        """The same command goes on with it, without a key."""
        for state in ("reserved", "drawing", "staged", "committed"):
            said = standing_sentences(state, True, "the same command", "my data", "out", ["--ledger", "here.sqlite"])
            assert "with: the same command" in said
            assert "HOLDFAST_KEY" not in said

    def test_mixed_keys(self, run: Run, folder: Path) -> None:
        assert run(*MADE, "--mix").code == 0
        space = KeySpace.decimals(8)
        tables = {"ages": ["region", "age"]}
        frame = SECRET.add("people.csv", "id", space)
        made, plain = (perturb(frame, tables, OURS, keys=CellKeys(space, mixed=mixed))["ages"] for mixed in (True, False))
        lines = Path("out/ages/table.csv").read_text(encoding="utf-8").splitlines()[1:]
        assert [line.split(",")[2] for line in lines] == [str(count) for count in made.column("count").to_pylist()]
        assert made != plain
        assert ", mixed" in Path("out/ages/report.html").read_text(encoding="utf-8")
        assert "rule for cell keys" in run(*MADE[:-1], "again").err  # a second draw of noise

    def test_similar_codes(self, run: Run, folder: Path) -> None:
        text = Path("people.csv").read_text(encoding="utf-8")
        Path("people.csv").write_text(text.replace("p7,", "p7x,").replace(",N,", ",n,", 3), encoding="utf-8")
        assert "--allow-similar-codes" in run(*MADE).err
        assert run(*MADE, "--allow-similar-codes").code == 0

    def test_keys_of_a_test_are_called_out(self, run: Run, folder: Path) -> None:
        assert run(*MADE).out.startswith("NOT PRIVATE: ")
        RecordKeys.generate().save("real.json")
        done = run(*("real.json" if word == "secret.json" else word for word in MADE[:-1]), "real", "--no-ledger")
        assert (done.code, "NOT PRIVATE" in done.out) == (0, False)

    def test_a_column_record_key_beside_a_secret_is_not_read(self, run: Run, folder: Path) -> None:
        assert run(*MADE).code == 0
        lines = Path("people.csv").read_text(encoding="utf-8").splitlines()
        Path("people.csv").write_text("\n".join([f"{lines[0]},record_key", *(f"{line},7" for line in lines[1:])]) + "\n", encoding="utf-8")
        assert run(*MADE[:-1], "again").code == 0
        for name in ("ages/table.csv", "regions/table.csv", "all/table.csv"):
            assert (Path("out") / name).read_bytes() == (Path("again") / name).read_bytes()
        for column in ("record_key", "id"):
            done = run(*MADE[:-1], "third", "--table", f"t={column}")
            assert (done.code, "which holds keys" in done.err) == (5, True), done.err
        assert not Path("third").exists()

    def test_refused_and_nothing_is_written(self, run: Run, folder: Path) -> None:
        Path("twice.csv").write_text("id,region,age\na,N,1\na,S,2\n", encoding="utf-8")
        before = sorted(path.name for path in folder.iterdir())
        cases = [
            [word if word != "people.csv" else "twice.csv" for word in MADE],
            [*MADE, "--table", "ages=region"],
            [*MADE, "--table", "nothing"],
            [*MADE, "--table", "other=region,age"],
            [word if word != "0.8" else "0.99" for word in MADE],
            [word if word != "id" else "number" for word in MADE],
            [word for word in MADE if word not in ("--id", "id")],
            [word if word != "secret.json" else "people.csv" for word in MADE],
            [*MADE[:-1], "no/such/folder"],
            [*MADE[:-1], "secret.json"],
        ]
        for words in cases:
            done = run(*words)
            assert (done.code not in (0, 1), done.out) == (True, ""), words
            assert SECRET._master.hex() not in done.err
        assert sorted(path.name for path in folder.iterdir()) == before

    def test_a_data_set_with_a_budget_takes_none(self, run: Run, folder: Path) -> None:
        grant = run("ledger", "grant", "people", "--epsilon", "1", "--approver", "a", "--reason", "b")
        assert grant.code == 0
        done = run(*MADE)
        assert done.code == 12
        assert "no budget pays for it" in done.err
        assert not Path("out").exists()
