"""Folders that somebody made to mislead, hang or exhaust who verifies them: one error of ours, at once, and nothing that poses as ours."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from holdfast.card.problems import MAX_PROBLEMS, problems, whole_schema
from holdfast.cellkey import RecordKeys, read_table
from holdfast.display import printable
from holdfast.errors import (
    HoldfastError,
    InvalidParameter,
    InvalidRun,
    LedgerProblem,
    OutputExists,
    RequestTooLarge,
    UnreadableInput,
    VerificationFailed,
)
from holdfast.ledger import Ledger
from holdfast.publication.folder import Output, check_output
from holdfast.publication.given_files import (
    MAX_JSON_BYTES,
    MAX_JSON_DEPTH,
    MAX_JSON_VALUES,
    Unfit,
    check_digest,
    check_json,
    read_plain,
)
from holdfast.runfiles.runfile import load_run
from holdfast.verification.verify import published_rows
from tests.publication.bookings import a_ledger, a_release
from tests.running import Run
from tests.verification.test_verify_mutations import forge, with_change, with_right_checksums

POSE = "simple: all in order.\nSigned by 00ff, the key that you named.\x1b[1A\u202e"
"""What a forger would like us to print."""


@pytest.fixture(autouse=True)
def clock() -> Iterator[None]:
    """What waits for a pipe or reads without end fails, instead of hanging."""

    def ended(*_: object) -> None:
        raise AssertionError("it would not have ended")

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    parent = tmp_path_factory.mktemp("originals")
    universe = hf.Universe.product({"area": ["a", "b", "c"], "sex": ["F", "M"]})
    table = hf.Table(universe, np.arange(10, 70, 10))
    made = hf.release(
        table,
        [hf.margin("area")],
        hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
        key=hf.NoiseKey.for_tests("h"),
        release_id="simple",
    )
    return {"both": made.save(parent / "both"), "parquet": made.save(parent / "parquet", formats=["parquet"])}


@pytest.fixture
def folder(originals: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(originals["both"], tmp_path / "both"))


def read_card(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "card.json").read_text(encoding="utf-8")))


def refusal(folder: Path, kind: type[HoldfastError] = VerificationFailed) -> str:
    """The one message; it stands on one line, and everything in it prints."""
    with pytest.raises(kind) as found:
        hf.verify(folder)
    assert str(found.value).isprintable()
    assert len(str(found.value)) < 10_000
    return str(found.value)


class TestPosing:
    """Text of a folder that is printed."""

    def test_an_identifier_is_one(self, folder: Path) -> None:
        """It was printed as it stood: three lines, two of them the forger's."""
        forge(folder, with_change(read_card(folder), ("release", "id"), POSE), None)
        assert "card.json: release.id: found text, expected text of the form" in refusal(folder)

    def test_an_identifier_of_an_earlier_release_is_one(self, folder: Path) -> None:
        revision = {"of": POSE, "changed": 0, "totals": []}
        forge(folder, with_change(read_card(folder), ("kept", "revision"), revision), None)
        assert "card.json: kept.revision.of: found text" in refusal(folder)

    def test_a_version_that_is_none_is_not_repeated(self, folder: Path) -> None:
        forge(folder, with_change(read_card(folder), ("software", "holdfast"), f"9.{POSE}"), None)
        told = str(hf.verify(folder))
        assert "Signed by" not in told
        assert "sentences and pages, which the card says another version of Holdfast made; they could say anything" in told

    def test_names_of_files(self, folder: Path) -> None:
        (folder / POSE.replace("/", "")).write_text("")
        assert "'simple: all in order.\\nSigned by 00ff" in refusal(folder).replace("\\\\", "\\")

    def test_columns_constraints_and_names_of_totals(self, tmp_path: Path) -> None:
        """All of them were repeated as they stood."""
        universe = hf.Universe.product({POSE: [POSE, "b"], "sex": ["F", "M"]})
        made = hf.release(
            hf.Table(universe, np.array([1, 2, 3, 4])),
            [hf.margin(POSE)],
            hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
            release_id="r",
            ledger=None,
        )
        folder = made.save(tmp_path / "posing", formats=["parquet"])
        told = str(hf.verify(folder))
        assert "Signed by" not in told
        frame = pq.read_table(folder / "table.parquet")
        counts = [n + 1 for n in frame.column("count").to_pylist()]
        pq.write_table(frame.set_column(2, "count", pa.array(counts)), folder / "table.parquet")
        with_right_checksums(folder)
        assert "the table adds up to" in refusal(folder)
        (tmp_path / "official.csv").write_text("sex,n\nF,3\nM,4\n")
        shutil.rmtree(folder)
        made.save(folder)
        with pytest.raises(InvalidParameter, match="does not keep totals by sex") as found:
            hf.verify(folder, tmp_path / "official.csv")
        assert str(found.value).isprintable()

    def test_a_name_of_any_length_is_cut(self, folder: Path) -> None:
        card = read_card(folder)
        card["mechanism"]["name"] = "x" * 10**6
        forge(folder, card, None)
        refusal(folder)

    @pytest.mark.parametrize("text", ["a\nb", "a\rb", "a\x1b[2Kb", "a\u202eb", "a\x00b", "a\x85b", "a\u2028b", "a\ud800b"])
    def test_what_does_not_print_is_escaped(self, text: str) -> None:
        assert printable(text).isprintable()
        assert printable(text) != printable("ab")
        assert printable("Ærø, 1 %") == "Ærø, 1 %"


def fifo(path: Path) -> None:
    os.mkfifo(path)


def link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_nothing(path: Path) -> None:
    path.symlink_to(path.parent / "nothing")


def link_to_a_file(path: Path) -> None:
    (path.parent.parent / "elsewhere").write_text("")
    path.symlink_to(path.parent.parent / "elsewhere")


def a_folder(path: Path) -> None:
    path.mkdir()


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, working_in(path.parent):
        made.bind(path.name)


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """The path of a socket is short."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


KINDS = [fifo, link_to_zero, link_to_nothing, link_to_a_file, a_folder, a_socket]


class TestPlainFilesOnly:
    """A pipe was waited for, /dev/zero read until memory was gone, a link followed out of the folder."""

    @pytest.mark.parametrize("name", ["card.json", "table.csv", "table.parquet", "kept.csv", "report.html"])
    @pytest.mark.parametrize("put", KINDS)
    def test_another_kind_of_file(self, folder: Path, name: str, put: Callable[[Path], None]) -> None:
        (folder / name).unlink()
        put(folder / name)
        told = refusal(folder)
        kind = "is a link" if put in (link_to_zero, link_to_nothing, link_to_a_file) else "is no plain file"
        assert f"{name}: it {kind}" in told if name == "card.json" else f"{name} {kind}" in told

    @pytest.mark.parametrize("put", KINDS)
    def test_beside_the_files_of_the_card(self, folder: Path, put: Callable[[Path], None]) -> None:
        put(folder / "more")
        assert "'more' is there but not on the card" in refusal(folder)

    @pytest.mark.parametrize("put", [fifo, link_to_zero])
    def test_a_folder_that_would_be_replaced(self, folder: Path, put: Callable[[Path], None]) -> None:
        (folder / "card.json").unlink()
        put(folder / "card.json")
        with pytest.raises(OutputExists, match="holds no release that could be replaced"):
            check_output(Output(folder, force=True), ["area"], "other", "0" * 64)

    @pytest.mark.parametrize("put", [fifo, link_to_zero])
    def test_official_totals(self, folder: Path, tmp_path: Path, put: Callable[[Path], None]) -> None:
        put(tmp_path / "official.csv")
        with pytest.raises(UnreadableInput, match="is no ordinary file"):
            hf.verify(folder, tmp_path / "official.csv")

    def test_a_file_that_may_not_be_read(self, folder: Path) -> None:
        """As root in a forked child that becomes another user. It was a traceback."""
        hf.verify(folder)  # loads what is needed
        for path in (folder, *folder.parents):
            if path == folder or path.name.startswith(("pytest", "popen", "test_")):
                path.chmod(path.stat().st_mode | 0o055)
        for name in ("kept.csv", "card.json"):
            (folder / name).chmod(0o000)
            child = os.fork() if os.geteuid() == 0 else None
            if child == 0:
                code = 99
                try:
                    os.setuid(65534)
                    code = 0 if "may not be read by this user" in refusal(folder) else 98
                finally:
                    os._exit(code)
            if child is None:
                assert "may not be read by this user" in refusal(folder)
            else:
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def repeated_groups(path: Path, times: int) -> None:
    """A Parquet file whose metadata name one group of rows many times: it claims so many times its rows, in a few bytes for each."""
    metadata = pq.read_metadata(path)
    whole = pq.read_metadata(path)
    for _ in range(times - 1):
        whole.append_row_groups(metadata)
    whole.write_metadata_file(path.with_name("footer"))
    data, footer = path.read_bytes(), path.with_name("footer").read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[: -8 - size] + footer[4:])
    path.with_name("footer").unlink()


class TestSizes:
    def test_a_small_file_that_claims_many_rows(self, folder: Path) -> None:
        """4 x 10^8 rows in some megabytes: all of them were unpacked."""
        rows = 200_000
        frame = pq.read_table(folder / "table.parquet")
        pq.write_table(frame.take(pa.array(np.zeros(rows, dtype=np.int64))), folder / "table.parquet")
        repeated_groups(folder / "table.parquet", 2000)
        assert (folder / "table.parquet").stat().st_size < 7e6
        assert pq.read_metadata(folder / "table.parquet").num_rows == 4 * 10**8
        with_right_checksums(folder)
        assert "table.parquet has 400000000 rows instead of 6" in refusal(folder)

    def test_a_card_that_claims_them_too(self, originals: dict[str, Path], tmp_path: Path) -> None:
        folder = Path(shutil.copytree(originals["parquet"], tmp_path / "claims"))
        forge(folder, with_change(read_card(folder), ("table", "cells"), 4 * 10**10), None)
        assert "Checking 40,000,000,000 cells, as the card has, would need about" in refusal(folder, RequestTooLarge)

    def test_metadata_that_disagree(self, folder: Path) -> None:
        """The total is right; the groups have more."""
        repeated_groups(folder / "table.parquet", 2)
        with_right_checksums(folder)
        assert "table.parquet has 12 rows instead of 6" in refusal(folder)

    @pytest.mark.parametrize("compression", ["gzip", "zstd", "brotli"])
    def test_compressions_that_unpack_to_thousands_of_times_their_size(self, folder: Path, compression: str) -> None:
        pq.write_table(pq.read_table(folder / "table.parquet"), folder / "table.parquet", compression=compression)
        with_right_checksums(folder)
        assert "table.parquet cannot be read as what its name says" in refusal(folder)

    def test_one_long_code_for_many_rows(self, tmp_path: Path) -> None:
        cells = 2000
        universe = hf.Universe.product({"area": [str(place) for place in range(cells)], "kind": ["k"]})
        made = hf.release(
            hf.Table(universe, np.ones(cells, dtype=np.int64)),
            [hf.total()],
            hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
            ledger=None,
        )
        folder = made.save(tmp_path / "long", formats=["parquet"])
        frame = pq.read_table(folder / "table.parquet")
        long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(cells, dtype=np.int32)), pa.array(["k" * 10**6]))
        pq.write_table(frame.set_column(1, "kind", long), folder / "table.parquet")  # 2 GB of text in a file of 1 MB
        with_right_checksums(folder)
        assert (folder / "table.parquet").stat().st_size < 2e6
        assert "table.parquet cannot be read as what its name says" in refusal(folder)

    @pytest.mark.parametrize("name", ["table.csv", "kept.csv", "statement.html", "exposed.csv"])
    def test_a_file_larger_than_the_numbers_of_the_card_allow(self, folder: Path, name: str) -> None:
        """A terabyte of nothing takes no room on the forger's disk. All of it was read for its checksum."""
        os.truncate(folder / name, 10**12)
        card = read_card(folder)
        assert f"{name} has 1000000000000 bytes instead of {card['files'][name]['bytes']}" in refusal(folder)
        card["files"][name]["bytes"] = 10**12
        (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
        assert f"the card says 1000000000000 bytes for {name}, more than its {3 if name == 'kept.csv' else 6} rows can have" in refusal(
            folder
        )

    def test_a_folder_of_very_many_files(self, folder: Path) -> None:
        for place in range(1000):
            (folder / f"more-{place}").touch()
        assert "is there but not on the card; and 1" in refusal(folder)


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


class TestJson:
    """card.json before it is read."""

    def test_a_card_of_a_terabyte(self, folder: Path) -> None:
        os.truncate(folder / "card.json", 10**12)
        assert f"has more than {MAX_JSON_BYTES:,} bytes" in refusal(folder)

    def test_very_many_problems_are_put_into_words_from_one_schema(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        card = json.loads((folder / "card.json").read_text())
        card["kept"]["constraints"] = [1] * 5_000
        (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
        whole_schema.cache_clear()
        assert "constraints" in refusal(folder)
        assert whole_schema.cache_info().misses == 1
        assert len(problems((folder / "card.json").read_text())) <= MAX_PROBLEMS

    def test_a_file_of_nothing_is_not_read_for_hours(self, tmp_path: Path) -> None:
        (tmp_path / "table.csv").touch()
        os.truncate(tmp_path / "table.csv", 2**40)
        with pytest.raises(Unfit, match="mostly empty"):
            check_digest(tmp_path / "table.csv", 2**50, "")

    def test_a_name_with_a_zero_byte(self) -> None:
        with pytest.raises(VerificationFailed, match="no folder"):
            hf.verify("a\0b")

    @pytest.mark.parametrize("depth", [MAX_JSON_DEPTH + 1, 190, 990, 10**6])
    @pytest.mark.parametrize("around", ["{}", '{{"kept": {{"definitions": [{{"type": {}}}]}}}}', '{{"a": "\\\\", "b": {}, "c": "]"}}'])
    def test_nesting(self, folder: Path, depth: int, around: str) -> None:
        (folder / "card.json").write_text(around.format(nested(depth)))
        assert f"is nested more than {MAX_JSON_DEPTH} deep" in refusal(folder)

    @pytest.mark.parametrize("depth", [50, 90])
    def test_nesting_within_the_limit_is_judged_by_the_fields(self, folder: Path, depth: int) -> None:
        card = read_card(folder)
        card["kept"]["definitions"] = [{"type": "margin", "kind": "kept", "columns": json.loads(nested(depth))}]
        (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
        assert "table and constraints do not fit together" in refusal(folder)

    def test_very_many_values(self, folder: Path) -> None:
        (folder / "card.json").write_bytes(b"[" + b"0," * (MAX_JSON_VALUES + 1) + b"0]")
        assert "holds more than 16,777,216 values" in refusal(folder)

    def test_brackets_in_texts_do_not_count(self) -> None:
        check_json(json.dumps({"a": "[" * 1000, "b": '\\"[[' * 1000, '"[{': "\\"}).encode())
        with pytest.raises(Unfit, match="nested"):
            check_json(b'{"a": "\\\\", "b": ' + nested(MAX_JSON_DEPTH).encode() + b"}")

    @pytest.mark.parametrize("text", ["", "{", "\x00", '"', "nul", "[1,]", '{"a": 1e999}', "9" * 5000, "\ufeff{}"])
    def test_text_that_is_no_card(self, folder: Path, text: str) -> None:
        (folder / "card.json").write_text(text)
        refusal(folder)

    def test_bytes_that_are_no_text(self, folder: Path) -> None:
        (folder / "card.json").write_bytes(b"\xff\xfe{}")
        assert "it is not UTF-8" in refusal(folder)

    def test_reading_stops_at_the_limit(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"12345")
        assert read_plain(tmp_path / "file", 5) == b"12345"
        with pytest.raises(Unfit, match="has more than 4 bytes"):
            read_plain(tmp_path / "file", 4)


class TestRevised:
    """`revises` names a folder of an earlier release."""

    @pytest.mark.parametrize("content", [b"", b"\xff\xff", b"a,b\n", b"\x00" * 100, b'kept,name,area,sex,total\nx,y,,,"', b"[" * 10**5])
    def test_a_broken_list_of_totals(self, folder: Path, content: bytes) -> None:
        """Checksums fit: it was a traceback."""
        (folder / "kept.csv").write_bytes(content)
        with_right_checksums(folder)
        with pytest.raises(VerificationFailed, match=r"kept\.csv cannot be read as what its name says"):
            published_rows(folder)

    @pytest.mark.parametrize("put", KINDS)
    def test_another_kind_of_file(self, folder: Path, put: Callable[[Path], None]) -> None:
        (folder / "kept.csv").unlink()
        put(folder / "kept.csv")
        with pytest.raises(VerificationFailed, match=r"kept\.csv is (a link|no plain file)"):
            published_rows(folder)

    def test_a_whole_one(self, folder: Path) -> None:
        name, rows = published_rows(folder)
        assert (name, [row[2] for row in rows]) == ("simple", [30, 70, 110])


DEEP = "[" * 10**5


class TestNestedElsewhere:
    """JSON of other files and fields: each was a traceback."""

    def test_cards_given_to_the_ledger(self, folder: Path, tmp_path: Path, run: Run) -> None:
        Ledger.open(tmp_path / "ledger.db", create=True, needs_grants=True)
        for put in (lambda path: path.write_text(DEEP), fifo, link_to_zero):
            (folder / "card.json").unlink()
            put(folder / "card.json")
            done = run("ledger", "verify", folder, "--ledger", tmp_path / "ledger.db")
            assert (done.code, done.out) == (LedgerProblem.exit_code, "")
            assert "'card.json' is not a readable card" in done.err

    def test_bounds_of_a_mechanism(self, tmp_path: Path) -> None:
        table = hf.Table(hf.Universe.product({"area": ["a", "b"], "sex": ["F", "M"]}), np.array([1, 2, 3, 4]))
        bounds = hf.Conditional(epsilon="1/2", upper=9, rows=[hf.at_most(hf.subset("sex", ["F"]), 9)], gamma="best", per="distance")
        folder = hf.release(table, [hf.margin("area")], bounds, release_id="r", ledger=None).save(tmp_path / "bounds")
        card = with_change(read_card(folder), ("mechanism", "parameters", "rows"), DEEP)
        (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
        assert "No conditional has these parameters" in refusal(folder)

    def test_perturbation_tables_and_secrets_of_record_keys(self, tmp_path: Path) -> None:
        (tmp_path / "deep.json").write_text(DEEP)
        (tmp_path / "deep.json").chmod(0o600)
        with pytest.raises(UnreadableInput):
            read_table(tmp_path / "deep.json", "json")
        with pytest.raises(HoldfastError, match="no record keys"):
            RecordKeys.load(tmp_path / "deep.json")

    def test_a_run_file(self, tmp_path: Path) -> None:
        (tmp_path / "run.toml").write_text(f"a = {DEEP}")
        with pytest.raises(InvalidRun, match="nested too deep"):
            load_run(tmp_path / "run.toml")


def test_a_lock_that_cannot_be_removed_does_not_hide_that_a_release_was_published(tmp_path: Path) -> None:
    """Something else stands in its place by then. It was a traceback after the release."""
    output = Output(tmp_path / "out")
    ledger = a_ledger(tmp_path)
    made = a_release(ledger)
    with made.booking.exclusive_folder(output) as temporary:
        lock = temporary.with_name(f"{temporary.name}.lock")
        lock.unlink()
        lock.mkdir()
    assert lock.is_dir()
