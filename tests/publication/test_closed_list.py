"""A publication is its closed list of files, each as a release writes it: nothing rides along, whatever the card says, and --force replaces
nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from holdfast.errors import IdenticalRelease, OutputExists, VerificationFailed
from holdfast.publication import folder as folder_module
from holdfast.publication.publication import Publication
from holdfast.verification.verify import published_rows, verify
from tests.publication.test_plots import geojson
from tests.verification.test_verify_tables import TABLES, save_tables

SCRIPTS = [
    "install.sh",
    "table.xlsx",
    "run.exe",
    "table",
    "table.csv.exe",
    "view.txt",
    "map.json",
    "tables.json",
    "table.parquet.csv",
    "x",
]
UNIVERSE = hf.Universe.product({"area": ["a", "b & <c>", "d"], "sex": ["F", "M"]})


def a_release(release_id: str = "one", mechanism: Any = None) -> Publication:
    table = hf.Table(UNIVERSE, np.array([120, 3, 40, 55, 900, 7]))
    chosen = mechanism or hf.GeneralizedLaplace(epsilon="1/2", per="distance")
    return hf.release(table, [hf.margin("sex")], chosen, key=hf.NoiseKey.for_tests("closed"), release_id=release_id)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With everything that a folder can have."""
    home = tmp_path_factory.mktemp("closed")
    return a_release().save(home / "out", view_base=1, map=geojson(home / "m.geojson"), map_code="id")


@pytest.fixture(scope="module")
def cell_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tables(tmp_path_factory.mktemp("closed") / "out")


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "out"))


@pytest.fixture
def keyed(cell_keys: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(cell_keys, tmp_path / "keyed"))


def write_card(folder: Path, card: dict[str, Any]) -> None:
    (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")


def list_files(folder: Path, *more: str) -> None:
    """What a forger does: the checksums of all files that the card lists, and of some more, on a card without a signature."""
    card = json.loads((folder / "card.json").read_text())
    for name in (*card["files"], *more):
        data = (folder / name).read_bytes()
        card["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    write_card(folder, card)


def refusal(folder: Path, check: Callable[..., object] = verify) -> str:
    with pytest.raises(VerificationFailed) as caught:
        check(folder)
    return str(caught.value)


def snapshot_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in sorted(folder.rglob("*"))}


class TestListed:
    def test_a_folder_with_everything_is_in_order(self, folder: Path) -> None:
        assert hf.verify(folder, strict=True).files == len(snapshot_of(folder)) - 1 == 10
        assert hf.load(folder).card.files.keys() == snapshot_of(folder).keys() - {"card.json"}

    @pytest.mark.parametrize("name", SCRIPTS)
    def test_a_card_cannot_list_other_files(self, folder: Path, name: str) -> None:
        (folder / name).write_text("#!/bin/sh\n")
        list_files(folder, name)
        for check in (hf.verify, hf.load, published_rows, lambda place: hf.verify(place, strict=True)):
            assert f"the card lists {name}, which is not a file of a publication" in refusal(folder, check)

    @pytest.mark.parametrize("gone", [["table.csv"], ["table.csv", "view.csv", "view.json"], ["view.json"], ["view.csv"]])
    def test_a_view_goes_with_the_tables(self, folder: Path, gone: list[str]) -> None:
        """Of two formats, the view has both; a view has what explains it."""
        card = json.loads((folder / "card.json").read_text())
        for name in gone:
            (folder / name).unlink()
            del card["files"][name]
        write_card(folder, card)
        said = refusal(folder)
        assert "which is not a file of a publication" in said or f"the card does not list {gone[-1]}" in said

    def test_several_tables_have_a_closed_list_too(self, keyed: Path) -> None:
        assert verify(keyed).files == 7 * len(TABLES) + 1
        for place in (keyed, keyed / "ages"):
            (place / "install.sh").write_text("#!/bin/sh\n")
            assert "'install.sh' is there but not on the card" in refusal(keyed)
            (place / "install.sh").unlink()


class TestPlain:
    @pytest.mark.parametrize("mode", [0o744, 0o654, 0o645, 0o4644, 0o2644])
    def test_a_file_that_can_be_run(self, folder: Path, keyed: Path, mode: int) -> None:
        for place, name in ((folder, "table.csv"), (keyed, "ages/table.csv")):
            (place / name).chmod(mode)
            assert "'table.csv' is marked as a program" in refusal(place)

    def test_a_file_system_without_such_marks(self, folder: Path) -> None:
        """A stick or a share shows every file as a program; what the files hold is checked all the same."""
        for path in folder.iterdir():
            path.chmod(0o777)
        assert hf.verify(folder)

    @pytest.mark.parametrize("mode", [0o4777, 0o2777, 0o6644])
    def test_no_file_system_shows_marks_of_a_file_that_runs_as_its_owner(self, folder: Path, mode: int) -> None:
        """So such a mark is told though every file may be run."""
        for path in folder.iterdir():
            path.chmod(0o777)
        (folder / "report.html").chmod(mode | 0o111)
        said = refusal(folder)
        assert "'report.html' is marked as a program" in said
        assert "table.csv" not in said

    def test_links_and_folders(self, folder: Path) -> None:
        (folder / "table.csv").rename(folder.parent / "table.csv")
        (folder / "table.csv").symlink_to(folder.parent / "table.csv")
        assert "table.csv is a link" in refusal(folder)
        (folder / "table.csv").unlink()
        (folder / "table.csv").mkdir()
        assert "table.csv is no plain file" in refusal(folder)


def with_blank_line(data: bytes) -> bytes:
    first, rest = data.split(b"\n", 1)
    return first + b"\n\n" + rest


def with_blanks(data: bytes) -> bytes:
    return data.replace(b'",', b'", ', 1) if data.startswith(b'"') else data.replace(b": ", b" :  ", 1)


def with_name_twice(data: bytes) -> bytes:
    """The first name of the file once more before itself, with what only some readers see."""
    name = data.split(b'"')[1]
    return data.replace(b"{", b'{"' + name + b'":"the true counts are ...",', 1)


def with_zero(data: bytes) -> bytes:
    """The last number of a line with digits that change nothing."""
    lines = data.split(b"\n")
    head, last = lines[-2].rsplit(b",", 1)
    return b"\n".join([*lines[:-2], head + b",0" + last, b""])


def with_carriage_returns(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


JSON_FILES, CSV_FILES = ("card.json", "view.json", "map.geojson"), ("table.csv", "kept.csv", "exposed.csv", "view.csv")


class TestNothingRidesAlong:
    """What a reader of the file would not notice, with checksums to suit."""

    @pytest.mark.parametrize("name", JSON_FILES)
    @pytest.mark.parametrize("change", [with_blanks, with_name_twice, lambda data: data + b" \n", with_carriage_returns])
    def test_json(self, folder: Path, name: str, change: Callable[[bytes], bytes]) -> None:
        data = (folder / name).read_bytes()
        changed = change(data).replace(b'":', b'": ', 1) if name == "map.geojson" else change(data)
        assert changed != data
        (folder / name).write_bytes(changed)
        if name != "card.json":
            list_files(folder)
        assert name in refusal(folder)

    @pytest.mark.parametrize("name", CSV_FILES)
    @pytest.mark.parametrize("change", [with_blank_line, with_blanks, with_carriage_returns, lambda data: data + b"\n"])
    def test_csv(self, folder: Path, name: str, change: Callable[[bytes], bytes]) -> None:
        data = (folder / name).read_bytes()
        assert change(data) != data
        (folder / name).write_bytes(change(data))
        list_files(folder)
        assert name in refusal(folder)

    @pytest.mark.parametrize("name", ["kept.csv", "view.csv"])
    def test_digits(self, folder: Path, name: str) -> None:
        (folder / name).write_bytes(with_zero((folder / name).read_bytes()))
        list_files(folder)
        assert f"{name} is not written as Holdfast writes it" in refusal(folder)

    @pytest.mark.parametrize("name", ["table.parquet", "view.parquet"])
    def test_notes_in_parquet_files(self, folder: Path, name: str) -> None:
        frame = pq.read_table(folder / name)
        pq.write_table(frame.replace_schema_metadata({"note": "the true counts are ..."}), folder / name, compression="snappy")
        list_files(folder)
        assert f"{name} cannot be read as what its name says" in refusal(folder)

    @pytest.mark.parametrize("name", ["table.parquet", "view.parquet"])
    def test_bytes_between_the_pages_of_parquet_files(self, folder: Path, name: str) -> None:
        data = (folder / name).read_bytes()
        length = int.from_bytes(data[-8:-4], "little")
        (folder / name).write_bytes(data[: -8 - length] + b"the true counts are ..." + data[-8 - length :])
        list_files(folder)
        assert f"{name} cannot be read as what its name says" in refusal(folder)

    @pytest.mark.parametrize("change", [with_blanks, with_name_twice, lambda data: data + b" \n"])
    def test_the_list_of_tables(self, keyed: Path, change: Callable[[bytes], bytes]) -> None:
        data = (keyed / "tables.json").read_bytes()
        (keyed / "tables.json").write_bytes(change(data))
        assert "tables.json" in refusal(keyed)


MORE: dict[str, Callable[[Path], object]] = {
    "thesis.docx": lambda folder: (folder / "thesis.docx").write_text("years of work"),
    ".git": lambda folder: (folder / ".git").mkdir(),
    "card.json.bak": lambda folder: (folder / "card.json.bak").symlink_to("/dev/null"),
    "table.csv": lambda folder: (folder / "table.csv").write_text("corrected by hand"),
    "statement.html": lambda folder: (folder / "statement.html").unlink(),
    "kept.csv": lambda folder: (folder / "kept.csv").chmod(0o755),
    "card.json": lambda folder: (folder / "card.json").write_text((folder / "card.json").read_text() + "\n"),
}


class TestForce:
    def test_a_publication_is_replaced(self, folder: Path) -> None:
        a_release("two").save(folder, force=True)
        assert hf.verify(folder).release_id == "two"
        assert os.listdir(folder.parent) == ["out"]

    @pytest.mark.parametrize("what", MORE)
    def test_anything_more_stays_and_is_named(self, folder: Path, what: str) -> None:
        MORE[what](folder)
        before = snapshot_of(folder)
        with pytest.raises(OutputExists, match="In the way: ") as caught:
            a_release("two").save(folder, force=True)
        assert what in str(caught.value)
        assert snapshot_of(folder) == before
        assert os.listdir(folder.parent) == ["out"]

    def test_files_that_a_forged_card_lists_are_not_lost(self, folder: Path) -> None:
        """A card in a folder of other things makes it no publication."""
        (folder / "thesis.docx").write_text("years of work")
        list_files(folder, "thesis.docx")
        with pytest.raises(OutputExists, match=r"the card lists thesis\.docx, which is not a file of a publication"):
            a_release("two").save(folder, force=True)
        assert (folder / "thesis.docx").read_text() == "years of work"

    def test_a_long_list_is_cut(self, folder: Path) -> None:
        for place in range(15):
            (folder / f"more{place}\n\x1b[1A").write_text("")
        with pytest.raises(OutputExists, match="; and 5 more") as caught:
            a_release("two").save(folder, force=True)
        assert str(caught.value).isprintable()

    def test_the_same_release_is_still_told_apart(self, folder: Path) -> None:
        (folder / "thesis.docx").write_text("years of work")
        with pytest.raises(IdenticalRelease):
            a_release().save(folder, force=True)

    def test_what_comes_while_it_is_replaced_is_put_back(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        exchange = folder_module._exchange

        def late(temporary: Path, place: Path) -> None:
            if not (temporary / "thesis.docx").exists():
                (place / "thesis.docx").write_text("years of work")
            exchange(temporary, place)

        monkeypatch.setattr(folder_module, "_exchange", late)
        with pytest.raises(OutputExists, match=r"'thesis\.docx' is there"):
            a_release("two").save(folder, force=True)
        assert (folder / "thesis.docx").read_text() == "years of work"
