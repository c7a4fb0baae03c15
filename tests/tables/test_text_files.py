"""Files as offices have them: semicolons, tabs, other encodings, compressed, Excel; recognised, or refused with the key to write."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.errors import HoldfastError, InvalidCode, InvalidCount, InvalidParameter, InvalidRun, UnknownColumn, UnreadableInput
from holdfast.runfiles.runfile import load_run
from tests.running import Run
from tests.tables.reference import refused

SECRET = 918273645546
HEADER, ROWS = ["Land", "Straße", "Zahl"], [["01", "Nord", str(SECRET)], ["01", "Süd", "12"], ["02", "Öst", "0"]]
COUNTS = [SECRET, 12, 0]


def text(separator: str = ",", end: str = "\n") -> str:
    return end.join(separator.join(row) for row in [HEADER, *ROWS]) + end


def read(path: Path, **more: Any) -> hf.Table:
    return hf.Table.from_counts(path, ["Land", "Straße"], "Zahl", **more)


def check(table: hf.Table) -> None:
    assert table.counts.tolist() == COUNTS
    assert table.universe.codes["Land"] == ("01", "02")
    assert table.universe.codes["Straße"] == ("Nord", "Süd", "Öst")


class TestSeparators:
    @pytest.mark.ordinary(".csv-", ".tsv.gz-;", ".CSV-,")
    @pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".CSV"])
    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    def test_recognised(self, tmp_path: Path, separator: str, suffix: str, end: str) -> None:
        path, data = tmp_path / f"t{suffix}", text(separator, end).encode()
        path.write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)
        check(read(path))
        check(read(path, separator=separator))

    def test_quotes_and_other_separators_inside_fields(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        path.write_text('Land;"Straße";Zahl\n"01";"a, b";3\n"01";"c; ""d""";4\n')
        assert read(path).universe.codes["Straße"] == ("a, b", 'c; "d"')

    def test_records(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv.gz"
        path.write_bytes(gzip.compress("nr;sex\n1;F\n2;M\n3;F\n".encode("utf-16")))
        assert hf.Table.from_records(path, {"sex": ["F", "M"]}, id="nr").counts.tolist() == [2, 1]
        path.write_bytes(gzip.compress(b"nr;sex\n;F\n2;M\n"))
        assert "no identifier" in refused(hf.errors.TooManyRecords, lambda: hf.Table.from_records(path, {"sex": ["F", "M"]}, id="nr"))
        (tmp_path / "t.tsv").write_bytes(b"nr\tsex\n\tF\n2\tM\n")
        refused(hf.errors.TooManyRecords, lambda: hf.Table.from_records(tmp_path / "t.tsv", {"sex": ["F", "M"]}, id="nr"))

    @pytest.mark.parametrize("data", ["a;b,c;n\n1;2,3;4\n", "a;b\nx\ny;1\nz\n"])
    def test_refused_with_the_key_to_write_where_it_cannot_be_told(self, tmp_path: Path, data: str) -> None:
        path = tmp_path / "t.csv"
        path.write_text(data)
        message = refused(UnreadableInput, lambda: hf.Table.from_counts(path, ["a"], "n"))
        assert 'separator = ";"' in message
        assert 'separator = ","' in message

    def test_ragged_lines_are_told_with_their_number(self, tmp_path: Path) -> None:
        path = tmp_path / "t.csv"
        path.write_text(text(";") + f"03;x;{SECRET};1\n")
        assert "Line 5" in refused(UnreadableInput, lambda: read(path, separator=";"), str(SECRET))
        path.write_text(text(";") + f'03; "x";{SECRET}\n')
        assert "Line 5" in refused(UnreadableInput, lambda: read(path), str(SECRET))
        path.write_text(text("\t") + f"03\tx\t{SECRET}\t\n")
        assert "Line 5" in refused(UnreadableInput, lambda: read(path, separator="\t"), str(SECRET))

    def test_a_wrong_separator(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text(text())
        assert refused(InvalidParameter, lambda: read(tmp_path / "t.csv", separator="::")).startswith("separator is one of")

    def test_another_separator_than_the_file_has(self, tmp_path: Path) -> None:
        """The message spoke of a missing line break."""
        for own, other in (",;", ";,", "\t,"):
            (tmp_path / "t.csv").write_text(text(own))
            message = refused(UnknownColumn, partial(read, tmp_path / "t.csv", separator=other), str(SECRET), HEADER[1])
            written = '"\\t"' if own == "\t" else f'"{own}"'
            assert f'Its first line was read as one field, with separator = "{other}". Write separator = {written}' in message


class TestEncodings:
    @pytest.mark.parametrize("encoding", ["windows-1252", "iso-8859-1", "utf-16", "utf-16-le", "cp850", "utf-8", "utf-8-sig"])
    @pytest.mark.parametrize("packed", [False, True])
    def test_named(self, tmp_path: Path, encoding: str, packed: bool) -> None:
        path, data = tmp_path / f"t.csv{'.gz' if packed else ''}", text(";").encode(encoding)
        path.write_bytes(gzip.compress(data) if packed else data)
        check(read(path, encoding=encoding))
        assert sorted(os.listdir(tmp_path)) == [path.name]

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
    def test_recognised_by_its_mark(self, tmp_path: Path, encoding: str) -> None:
        (tmp_path / "t.csv").write_bytes(text(";").encode(encoding))
        check(read(tmp_path / "t.csv"))

    @pytest.mark.parametrize("where", ["header", "line"])
    def test_another_one_is_refused_with_the_key_to_write(self, tmp_path: Path, where: str) -> None:
        data = text(";").encode("windows-1252") if where == "header" else text(";").replace("ß", "ss").encode("windows-1252")
        (tmp_path / "t.csv").write_bytes(data)
        column = "Straße" if where == "header" else "Strasse"
        message = refused(UnreadableInput, lambda: hf.Table.from_counts(tmp_path / "t.csv", ["Land", column], "Zahl"), str(SECRET))
        assert 'encoding = "windows-1252"' in message
        assert "is not UTF-8" in message

    def test_a_wrong_one(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_bytes(text(";").encode("windows-1252"))
        message = refused(UnreadableInput, lambda: read(tmp_path / "t.csv", encoding="ascii"), str(SECRET))
        assert "is not text in ascii, at line 1" in message
        refused(InvalidParameter, lambda: read(tmp_path / "t.csv", encoding="latin-seventeen"))
        refused(InvalidParameter, lambda: read(tmp_path / "t.csv", encoding="rot13"))

    def test_a_damaged_archive(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text().encode())[:-9])
        assert "cannot be unpacked" in refused(UnreadableInput, lambda: read(tmp_path / "t.csv.gz"), str(SECRET))
        (tmp_path / "t.csv.gz").write_text(text())
        assert "cannot be unpacked" in refused(UnreadableInput, lambda: read(tmp_path / "t.csv.gz"), str(SECRET))

    def test_copies_are_private_and_removed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import tempfile

        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        (tmp_path / "t.csv").write_bytes(text().encode("utf-16"))
        seen = []
        from holdfast.tables.readers import open_source

        with open_source(tmp_path / "t.csv") as source:
            assert source.path is not None
            seen.append(source.path.parent.stat().st_mode & 0o777)
        assert seen == [0o700]
        assert os.listdir(tmp_path) == ["t.csv"]


class TestOddFiles:
    @pytest.mark.parametrize("written", ["1,5", "1.234", "1 234", "12,0", "1e3"])
    def test_a_decimal_comma_is_refused_with_what_to_write(self, tmp_path: Path, written: str) -> None:
        path = tmp_path / "t.csv"
        path.write_text(text(";").replace(str(SECRET), written))
        message = refused(InvalidCount, lambda: read(path), f"{written};")
        assert "row 1" in message
        assert 'Write 1234, not "1,234", "1.234", "1 234"' in message

    def test_a_title_above_the_header(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("Bevölkerung 2030,,\n" + text())
        assert "is it a title?" in refused(UnknownColumn, lambda: read(tmp_path / "t.csv"), "Bev")

    def test_names_with_blanks(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text(text().replace("Straße,", "Straße ,"))
        assert "Did you mean 'Straße '?" in refused(UnknownColumn, lambda: read(tmp_path / "t.csv"))

    def test_misspelt_columns_are_blamed_with_the_nearest_names(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("state,county,people\n17,031,3\n")
        message = refused(UnknownColumn, lambda: hf.Table.from_counts(tmp_path / "t.csv", ["sate", "county"], "people"))
        assert "no column 'sate'. Did you mean 'state'? Its columns: 'state', 'county', 'people'" in message
        message = refused(UnknownColumn, lambda: hf.Table.from_counts(tmp_path / "t.csv", ["State", "County"], "People"))
        assert "Did you mean 'state'?" in message

    @pytest.mark.parametrize(
        "content",
        [
            "state,county,people17,031,918273\n18,001,12\n",
            "people,state,county918273,17,031\n12,18,001\n",
            "county,people,state031,918273,17\n",
            'state,county,people17,031,918273\n18,"001,12\n',
            "state,county,people17,031,918273\n\n\n18,001,12\n",
        ],
    )
    def test_a_header_that_lost_its_line_break_shows_no_count(self, tmp_path: Path, content: str) -> None:
        """The first row stood among the names that the message listed, and a close match showed one that a count was glued to."""
        (tmp_path / "t.csv").write_text(content)
        for columns, count in ((["state", "county"], "people"), (["stat", "county"], "people"), (["state", "county"], "peoples")):
            work: Callable[[], object] = lambda: hf.Table.from_counts(tmp_path / "t.csv", columns, count)  # noqa: B023, E731
            message = refused(UnknownColumn, work, "918273", "031", "people17", "Its columns")
            assert "the line break after the header may be missing" in message

    def test_a_file_without_a_header_shows_nothing_of_its_first_row(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text(f"17,Cook,{SECRET}\n17,Lake,12\n")
        message = refused(
            UnknownColumn, lambda: hf.Table.from_counts(tmp_path / "t.csv", ["state", "county"], "people"), str(SECRET), "Cook"
        )
        assert "none of those asked for" in message

    @pytest.mark.parametrize("given", [{"separator": ";"}, {"encoding": "utf-8"}, {"sheet": "x"}])
    def test_settings_that_do_not_belong(self, tmp_path: Path, given: dict[str, Any]) -> None:
        import pyarrow as pa

        frame = pa.table({"Land": ["1"], "Straße": ["x"], "Zahl": [1]})
        (name,) = given
        work: Callable[[], object] = lambda: hf.Table.from_counts(frame, ["Land"], "Zahl", **given)  # noqa: E731
        assert f"Leave {name} out" in refused(InvalidParameter, work)
        if name == "sheet":
            (tmp_path / "t.csv").write_text(text())
            assert "an Excel file" in refused(InvalidParameter, lambda: read(tmp_path / "t.csv", sheet="x"))


AS_NOBODY = """
import os, sys, tempfile
import holdfast as hf
from holdfast.runfiles.runfile import load_run
with tempfile.NamedTemporaryFile(suffix=".csv") as file:  # everything is loaded while it can be
    file.write(b"a,n\\nx,1\\n")
    file.flush()
    hf.Table.from_counts(file.name, ["a"], "n")
os.setuid(65534)
try:
    hf.Table.from_counts(sys.argv[1], ["a"], "n") if sys.argv[2] == "table" else load_run(sys.argv[1])
except hf.errors.HoldfastError as error:
    print(error)
"""


class TestPermissions:
    @pytest.fixture
    def closed(self) -> Any:
        """A folder that everyone can enter, with a file and a folder that only root may read."""
        import shutil
        import tempfile

        if os.getuid() != 0:
            pytest.skip("needs to become another user")
        folder = Path(tempfile.mkdtemp())
        folder.chmod(0o755)
        (folder / "inner").mkdir()
        for place in (folder / "t.csv", folder / "inner" / "t.csv"):
            place.write_text("a,n\nx,1\n")
        (folder / "t.csv").chmod(0o600)
        (folder / "inner").chmod(0o700)
        yield folder
        shutil.rmtree(folder)

    def told(self, path: Path, what: str = "table") -> str:
        done = subprocess.run([sys.executable, "-c", AS_NOBODY, path, what], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def test_a_file_without_permission_is_blamed_on_the_permission(self, closed: Path) -> None:
        assert self.told(closed / "t.csv").startswith("File 't.csv' may not be read by this user.")
        assert self.told(closed / "inner" / "t.csv").startswith("File 't.csv' cannot be reached: a folder on the way may not be entered")

    def test_in_a_run_file(self, closed: Path) -> None:
        run = '[table]\nsource = "FILE"\ncells = ["a"]\ncount = "n"\n[keep]\n[release]\nid = "r"\nmechanism = "suppression"\n'
        for name, words in (("t.csv", "may not be read by this user"), ("inner/t.csv", "a folder on the way may not be entered")):
            (closed / "run.toml").write_text(run.replace("FILE", name))
            said = self.told(closed / "run.toml", "run")
            assert "table.source: file 't.csv' " in said
            assert words in said


RUN = """\
[table]
source = "t.csv"
cells = ["Land", "Straße"]
count = "Zahl"
KEYS
[keep]
margins = [["Land"]]
[release]
id = "r"
mechanism = "generalized-laplace"
epsilon = "1"
per = "person"
"""


class TestRunFiles:
    def load(self, tmp_path: Path, keys: str, data: bytes) -> hf.Table:
        (tmp_path / "t.csv").write_bytes(data)
        (tmp_path / "run.toml").write_text(RUN.replace("KEYS", keys))
        return load_run(tmp_path / "run.toml").read_table()

    def test_the_keys_are_those_of_python(self, tmp_path: Path) -> None:
        check(self.load(tmp_path, 'separator = ";"\nencoding = "windows-1252"', text(";").encode("windows-1252")))
        check(self.load(tmp_path, 'separator = "\\t"', text("\t").encode()))

    @pytest.mark.parametrize(
        ("keys", "field", "words"),
        [
            ('separator = ":"', "table.separator", "must be one of"),
            ('encoding = "none"', "table.encoding", "must be the name of a text encoding"),
            ("sheet = 1", "table.sheet", "must be a text"),
        ],
    )
    def test_wrong_keys(self, tmp_path: Path, keys: str, field: str, words: str) -> None:
        with pytest.raises(InvalidRun, match=words) as caught:
            self.load(tmp_path, keys, text().encode())
        assert caught.value.field == field

    @pytest.mark.parametrize(
        ("old", "new", "field"),
        [
            ('"Zahl"', '"Zahlen"', "table.count"),
            ('cells = ["Land", "Straße"]', 'cells = ["Land", "Strasze"]', "table.cells"),
            ("KEYS", 'sheet = "x"', "table.sheet"),
            ("KEYS", 'encoding = "ascii"', "table.encoding"),
        ],
    )
    def test_what_is_wrong_is_blamed_on_its_key(self, tmp_path: Path, run: Run, old: str, new: str, field: str) -> None:
        (tmp_path / "t.csv").write_text(text())
        (tmp_path / "run.toml").write_text(RUN.replace(old, new).replace("KEYS", ""))
        with pytest.raises(HoldfastError) as caught:
            load_run(tmp_path / "run.toml").read_table()
        assert caught.value.field == field
        assert json.loads(run("plan", tmp_path / "run.toml", "--json").out)["field"] == field

    def test_kept_columns_and_cells_that_differ_in_spelling(self, tmp_path: Path) -> None:
        """Which of the two is misspelt cannot be known here: the message names both."""
        (tmp_path / "t.csv").write_text(text())
        (tmp_path / "run.toml").write_text(RUN.replace('cells = ["Land"', 'cells = ["Lnad"').replace("KEYS", ""))
        with pytest.raises(InvalidRun, match=r'no column "Land"\. Did you mean Lnad\? One of the two is misspelt, here or under cells'):
            load_run(tmp_path / "run.toml")


class TestExcel:
    @pytest.fixture
    def book(self, tmp_path: Path) -> Any:
        openpyxl = pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")
        made = openpyxl.Workbook()
        made.active.title = "Data"
        made.active.append(HEADER)
        for land, street, number in ROWS:
            made.active.append([land, street, int(number)])
        made.file = tmp_path / "t.xlsx"
        return made

    def test_read(self, book: Any) -> None:
        book.save(book.file)
        check(read(book.file))
        check(read(book.file, sheet="Data"))
        assert hf.Table.from_records(book.file, {"Land": ["01", "02", "03"]}).counts.tolist() == [2, 1, 0]

    def test_a_column_that_nobody_asked_for_may_hold_anything(self, book: Any) -> None:
        book.active["D1"] = "Remark"
        book.active["D2"], book.active["D3"] = 5, "five"
        book.save(book.file)
        assert hf.Table.from_records(book.file, {"Land": ["01", "02", "03"]}).counts.tolist() == [2, 1, 0]
        message = refused(UnreadableInput, lambda: hf.Table.from_records(book.file, {"Remark": ["five"]}))
        assert "Column 'Remark' of file 't.xlsx' holds texts and other values" in message

    def test_several_sheets_are_refused_with_the_key_to_write(self, book: Any) -> None:
        book.create_sheet("Notes").append(["nothing"])
        book.save(book.file)
        message = refused(UnreadableInput, lambda: read(book.file))
        assert 'Its sheets: "Data", "Notes". Write sheet = "Data"' in message
        assert "no sheet 'Dta'" in refused(UnreadableInput, lambda: read(book.file, sheet="Dta"))
        check(read(book.file, sheet="Data"))

    def test_codes_that_excel_holds_as_numbers(self, book: Any) -> None:
        for row in (2, 3, 4):
            book.active.cell(row, 1).value = 1
        book.save(book.file)
        assert "Codes must be text" in refused(InvalidCode, lambda: read(book.file))
        book.active.cell(2, 1).value = "01"
        book.save(book.file)
        assert "Format the whole column as text" in refused(UnreadableInput, lambda: read(book.file), str(SECRET))

    def test_counts_that_are_none(self, book: Any) -> None:
        book.active.cell(3, 3).value = 1.5
        book.save(book.file)
        refused(InvalidCount, lambda: read(book.file), str(SECRET))

    def test_what_is_no_workbook(self, tmp_path: Path) -> None:
        pytest.importorskip("openpyxl", reason="the extra `excel` is not installed")
        (tmp_path / "t.xlsx").write_text(text())
        assert "cannot be read as an Excel workbook" in refused(UnreadableInput, lambda: read(tmp_path / "t.xlsx"), str(SECRET))


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "t.xlsx").write_text("x")
    assert "pip install holdfast[excel]" in refused(UnreadableInput, lambda: read(tmp_path / "t.xlsx"))
