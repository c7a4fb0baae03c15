"""Tables of counts: what is read stays as it was, and what is refused is refused without showing it."""

from __future__ import annotations

import copy
import pickle
import stat
from decimal import Decimal
from functools import partial
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import (
    ConfidentialTable,
    DuplicateCells,
    EmptyTable,
    InvalidCode,
    InvalidCount,
    InvalidParameter,
    OutOfScope,
    RequestTooLarge,
    UnknownColumn,
    UnreadableInput,
)
from holdfast.tables import Table, Universe
from tests.tables.reference import ODD_CODES, codes, refused, rows_of

SECRET = "7319465"
"""A count that must not show up anywhere."""


def write(folder: Path, text: str, name: str = "counts.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


class TestReading:
    def test_the_counties(self, shared_data) -> None:
        table = Table.from_counts(shared_data / "county_pop_2010.csv", cells=["state_fips", "county_fips"], count="pop2010")
        assert int(table.counts.sum()) == 308_745_538
        assert len(table) == 3143
        assert table.universe.support == "as listed"
        assert not table.universe.is_product
        assert table.universe.cell_name(0) == "state_fips=01, county_fips=01001"
        assert table.cells == ["state_fips", "county_fips"]
        assert table.count_name == "pop2010"

    def test_sex_by_age_is_a_product_in_order(self, shared_data) -> None:
        table = Table.from_counts(str(shared_data / "county_p12_sex_age_2010.csv"), ["county_fips", "sex", "age"], "total", public=True)
        assert table.universe.is_in_order
        assert table.universe.codes["sex"] == ("M", "F")
        assert table.universe.codes["age"][-1] == "85+"
        assert int(table.counts.sum()) == 308_745_538

    def test_every_kind_of_frame_gives_the_same(self, tmp_path) -> None:
        frame = pa.table(
            {"area": ["01", "1", "02"], "sex": ["F", "M", "F"], "n": pa.array([3, 0, 2**62 - 10], pa.int64()), "other": [0.5, 1.5, 2.5]}
        )
        pq.write_table(frame, tmp_path / "t.parquet")
        frame.to_pandas().to_csv(tmp_path / "t.csv", index=False)
        connection = duckdb.connect()
        connection.register("frame", frame)
        encoded = frame.set_column(0, "area", frame["area"].dictionary_encode()).set_column(1, "sex", frame["sex"].cast(pa.large_string()))
        sources = [
            frame,
            encoded,
            frame.to_pandas(),
            frame.to_pandas().astype({"area": "category"}),
            pl.from_arrow(frame),
            frame.to_reader(),
        ]
        sources += [pl.from_arrow(frame).with_columns(pl.col("area").cast(pl.Categorical)), connection.sql("FROM frame")]
        sources += [tmp_path / "t.parquet", tmp_path / "t.csv", str(tmp_path / "t.csv")]
        for source in sources:
            table = Table.from_counts(source, ["area", "sex"], "n", public=True)
            assert rows_of(table.frame, ["area", "sex", "n"]) == [("01", "F", 3), ("1", "M", 0), ("02", "F", 2**62 - 10)], type(source)
            assert table.counts.dtype == np.int64
            assert table.frame.column_names == ["area", "sex", "n"]

    def test_decimals_without_places_are_whole_numbers(self) -> None:
        """DuckDB's sum() of integers is one."""
        relation = duckdb.sql("SELECT a, sum(n) AS n FROM (VALUES ('x', 1), ('x', 2)) AS t(a, n) GROUP BY a")
        assert Table.from_counts(relation, ["a"], "n").counts.tolist() == [3]

    def test_more_rows_than_one_batch(self, monkeypatch, tmp_path) -> None:
        monkeypatch.setattr("holdfast.tables.readers.BATCH_ROWS", 7)
        frame = pa.table({"a": [f"{i % 50:02}" for i in range(100)], "b": [f"{i // 50}" for i in range(100)], "n": list(range(100))})
        pq.write_table(frame, tmp_path / "t.parquet")
        frame.to_pandas().to_csv(tmp_path / "t.csv", index=False)
        for source in (frame, tmp_path / "t.parquet", tmp_path / "t.csv"):
            table = Table.from_counts(source, ["a", "b"], "n", public=True)
            assert rows_of(table.frame, ["a", "b", "n"]) == rows_of(frame, ["a", "b", "n"])
            assert table.universe.is_product
            bad = write(tmp_path, "a,n\n" + "".join(f"{i},{i}\n" for i in range(40)) + f"x,-{SECRET}\n", "bad.csv")
            assert "row 41 of" in refused(InvalidCount, partial(Table.from_counts, bad, ["a"], "n"), SECRET)

    @given(st.lists(st.tuples(codes, codes), min_size=1, max_size=8, unique=True), st.data())
    def test_odd_codes_survive_saving_and_reading(self, tmp_path_factory, rows, data) -> None:
        counts = data.draw(st.lists(st.integers(0, 2**50), min_size=len(rows), max_size=len(rows)))
        frame = pa.table({"a b": [row[0] for row in rows], 'q"': [row[1] for row in rows], "n": counts})
        table = Table.from_counts(frame, ["a b", 'q"'], "n", public=True, allow_similar_codes=True)
        assert rows_of(table.frame, ["a b", 'q"']) == rows
        folder = tmp_path_factory.mktemp("odd")
        for name in ("t.csv", "t.parquet"):
            table.save(folder / name)
            again = Table.from_counts(folder / name, ["a b", 'q"'], "n", public=True, allow_similar_codes=True)
            assert rows_of(again.frame, ["a b", 'q"']) == rows
            assert again.counts.tolist() == counts
            assert again.universe == table.universe

    def test_each_odd_code_by_hand(self, tmp_path) -> None:
        """Not written by our own writer: quotes only where the format needs them."""
        needs = set('",\n\r')
        lines = [('"' + code.replace('"', '""') + '"' if needs & set(code) or not code else code) + ",1\n" for code in ODD_CODES]
        table = Table.from_counts(write(tmp_path, "code,n\n" + "".join(lines)), ["code"], "n", public=True, allow_similar_codes=True)
        assert table.universe.codes["code"] == tuple(ODD_CODES)

    def test_a_single_cell(self) -> None:
        table = Table.from_counts(pa.table({"a": ["x"], "n": [5]}), ["a"], "n")
        assert (len(table), table.universe.is_product) == (1, True)

    def test_names_that_differ_in_case_and_windows_lines(self, tmp_path) -> None:
        path = write(tmp_path, "\ufeffState,state,n\r\n01,x,1\r\n02,y,2\r\n")
        assert Table.from_counts(path, ["State"], "n").universe.codes["State"] == ("01", "02")
        assert Table.from_counts(path, ["state"], "n").universe.codes["state"] == ("x", "y")

    def test_a_file_name_that_looks_like_a_pattern(self, tmp_path) -> None:
        write(tmp_path, "a,n\nwrong,1\n", "t1.csv")
        assert Table.from_counts(write(tmp_path, "a,n\nx,1\n", "t[1]*'.csv"), ["a"], "n").universe.codes["a"] == ("x",)


class TestBadCounts:
    @pytest.mark.parametrize(
        "value",
        [
            *[f"{SECRET}.0", f"-{SECRET}", f" {SECRET}", f"{SECRET} ", f"+{SECRET}", f'"7,{SECRET}"', f"{SECRET}e3", f"0{SECRET}"],
            *[f"0x{SECRET}", f"{SECRET}\u0663", f'"{SECRET}\n"', "x" + SECRET, SECRET * 9],
            *[f"{2**62}", f"{10**19}", "NaN", "", '""'],
        ],
    )
    def test_in_text(self, value, tmp_path) -> None:
        path = write(tmp_path, f"a,n\nx,0\ny,{value}\n")
        message = refused(InvalidCount, lambda: Table.from_counts(path, ["a"], "n"), SECRET, str(tmp_path))
        assert "column 'n', row 2 of file 'counts.csv'" in message

    @pytest.mark.parametrize("value", [0, 12, 2**62 - 1])
    def test_the_limits_are_legal(self, value, tmp_path) -> None:
        assert Table.from_counts(write(tmp_path, f"a,n\nx,{value}\n"), ["a"], "n").counts.tolist() == [value]
        assert Table.from_counts(pa.table({"a": ["x"], "n": [value]}), ["a"], "n").counts.tolist() == [value]

    @pytest.mark.parametrize(
        "array",
        [
            pa.array([1, -int(SECRET)]),
            pa.array([1, None]),
            pa.array([1, None], pa.int8()),
            pa.array([1, -1], pa.int8()),
            pa.array([1, 2**62]),
            pa.array([1, 2**63], pa.uint64()),
            pa.array([Decimal(1), Decimal(2**62)], pa.decimal128(38, 0)),
            pa.array([Decimal(1), Decimal(-1)], pa.decimal128(5, 0)),
            pa.array(["1", "-" + SECRET]).dictionary_encode(),
        ],
    )
    def test_in_integers(self, array) -> None:
        message = refused(InvalidCount, lambda: Table.from_counts(pa.table({"a": ["x", "y"], "n": array}), ["a"], "n"), SECRET)
        assert "column 'n', row 2 of the pyarrow Table" in message

    @pytest.mark.parametrize("array", [pa.array([1.0, 2.0]), pa.array([True, False]), pa.array([Decimal("1.00"), Decimal("2.00")])])
    def test_other_types(self, array) -> None:
        message = refused(InvalidCount, lambda: Table.from_counts(pa.table({"a": ["x", "y"], "n": array}), ["a"], "n"))
        assert "Cast it to integers" in message
        assert "hf.answer, or [answer] in a run file" in message

    def test_a_total_that_overflows(self, tmp_path) -> None:
        half = 2**61
        path = write(tmp_path, f"a,n\nx,{half}\ny,{half}\n")
        assert "total" in refused(RequestTooLarge, lambda: Table.from_counts(path, ["a"], "n"), str(half), str(2 * half))
        many = pa.table({"a": [str(i) for i in range(64)], "n": [2**62 - 1] * 64})  # the sum wraps around 2^64
        refused(RequestTooLarge, lambda: Table.from_counts(many, ["a"], "n"))
        assert Table.from_counts(pa.table({"a": ["x", "y"], "n": [half, half - 1]}), ["a"], "n").counts.tolist() == [half, half - 1]

    def test_weights(self) -> None:
        frame = pa.table({"a": ["x"], "n": [1]})
        assert "survey weights and magnitudes" in refused(OutOfScope, lambda: Table.from_counts(frame, ["a"], "n", weight="w"))


class TestBadCells:
    def test_duplicates(self, tmp_path) -> None:
        path = write(tmp_path, f"a,b,n\nx,1,{SECRET}\ny,1,2\nx,1,3\n")
        assert "rows 1 and 3" in refused(DuplicateCells, lambda: Table.from_counts(path, ["a", "b"], "n"), SECRET)

    def test_missing_codes(self, tmp_path) -> None:
        path = write(tmp_path, f'a,b,n\nx,1,{SECRET}\n"",1,2\n,2,3\n')
        assert "column 'a', row 3 of file 'counts.csv'" in refused(InvalidCode, lambda: Table.from_counts(path, ["a", "b"], "n"), SECRET)
        frame = pa.table({"a": pa.array(["x", None]).dictionary_encode(), "n": [1, 2]})
        assert "column 'a', row 2 of the pyarrow Table" in refused(InvalidCode, lambda: Table.from_counts(frame, ["a"], "n"))

    @pytest.mark.parametrize(
        "array", [pa.array([1, 2]), pa.array([1.5, 2.5]), pa.array([b"x", b"y"]), pa.array([1, 2]).dictionary_encode()]
    )
    def test_codes_that_are_not_text(self, array) -> None:
        message = refused(InvalidCode, lambda: Table.from_counts(pa.table({"a": array, "n": [1, 2]}), ["a"], "n"))
        assert "Codes must be text. Column 'a'" in message
        assert "Cast it to text" in message

    def test_text_that_is_not_utf8(self) -> None:
        array = pa.array([b"\xff\xfe", b"x"]).view(pa.string())
        refused(InvalidCode, lambda: Table.from_counts(pa.table({"a": array, "n": [1, 2]}), ["a"], "n"))

    def test_columns(self, tmp_path) -> None:
        frame = pa.table([["x"], ["1"], [1], [2]], names=["a", "b", "n", "n"])
        assert "no column 'A'. Did you mean 'a'? Its columns: 'a', 'b', 'n', 'n'" in refused(
            UnknownColumn, lambda: Table.from_counts(frame, ["A"], "n")
        )
        assert "more than one column 'n'" in refused(UnknownColumn, lambda: Table.from_counts(frame, ["a"], "n"))
        assert "'a' is asked for twice" in refused(UnknownColumn, lambda: Table.from_counts(frame, ["a", "a"], "b"))
        assert "'b' is asked for twice" in refused(UnknownColumn, lambda: Table.from_counts(frame, ["a", "b"], "b"))
        refused(InvalidParameter, lambda: Table.from_counts(frame, [], "n"))
        refused(InvalidParameter, lambda: Table.from_counts(frame, "a", "n"))
        path = write(tmp_path, "a,a,n\nx,y,1\n")
        assert "more than one column 'a'" in refused(UnknownColumn, lambda: Table.from_counts(path, ["a"], "n"))

    def test_a_file_without_a_header(self, tmp_path) -> None:
        """Its first row of data must not be taken for names and shown."""
        path = write(tmp_path, f"Smith,1980,{SECRET}\nJones,1981,5\n")
        message = refused(UnknownColumn, lambda: Table.from_counts(path, ["a", "b"], "n"), "Smith", "1980", SECRET)
        assert "has no column 'a'. It has 3 columns, none of those asked for" in message
        assert "first line of a CSV file" in message
        refused(UnknownColumn, lambda: Table.from_records(path, {"a": ["x"]}), "Smith", "1980", SECRET)
        frame = pd.read_csv(path, dtype=str)
        refused(UnknownColumn, lambda: Table.from_counts(frame, ["a", "b"], "n"), "Smith", "1980", SECRET)

    def test_empty(self, tmp_path) -> None:
        refused(EmptyTable, lambda: Table.from_counts(write(tmp_path, "a,n\n"), ["a"], "n"))
        refused(
            EmptyTable, lambda: Table.from_counts(pa.table({"a": pa.array([], pa.string()), "n": pa.array([], pa.int64())}), ["a"], "n")
        )
        assert "no header" in refused(UnreadableInput, lambda: Table.from_counts(write(tmp_path, ""), ["a"], "n"))


class TestBadFiles:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (f"a,n\nx,1\ny,{SECRET},3\n", "Line 3 of file 'counts.csv' has another number of fields"),
            (f"a,b,n\nx,1,1\n{SECRET},3\n", "Line 3 of file 'counts.csv' has another number of fields"),
            (f'a,n\nx,1\n"{SECRET}"z,3\n', "Line 3 of file 'counts.csv' has a quote"),
            (f'a,n\nx,1\n"{SECRET},3\n', "Line 3 of file 'counts.csv' has a quote"),
            (f"a,n\nx,1\r\n{SECRET},3\n", "line ends are mixed"),
        ],
    )
    def test_malformed_csv(self, text, words, tmp_path) -> None:
        path = write(tmp_path, text)
        assert words in refused(UnreadableInput, lambda: Table.from_counts(path, ["a"], "n"), SECRET, str(tmp_path))

    @pytest.mark.parametrize(
        "line",
        [
            *[' "{}",y,1', '"{}" ,y,1', '\t"{}",y,1', '"{}"\t,y,1', 'x, "{}",1', 'x,"{}" ,1', 'x,y, "{}"', 'x,y,"{}" ', '  "{}",y,1'],
            *['"{}"  ,y,1', 'x, "{},y",1', 'x, "{}\ny",1', 'x,"a ""{}""" ,1', 'x, "",{}', 'x,"" ,{}'],
        ],
    )
    @pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r"])
    def test_blanks_beside_quotes(self, line, end, tmp_path) -> None:
        """Without the check {"F", ' "F"', '"F" '} would all be the code F."""
        text = f'a,b,n{end or chr(10)}"x","y",0{end or chr(10)}' + line.format(SECRET) + end
        path = write(tmp_path, text)
        message = refused(UnreadableInput, lambda: Table.from_counts(path, ["a", "b"], "n"), SECRET, str(tmp_path))
        assert "Line 3 of file 'counts.csv' has a blank beside the quotes" in message
        refused(UnreadableInput, lambda: Table.from_records(path, ["a", "b"], universe="observed"), SECRET)

    def test_a_blank_beside_quotes_in_the_header(self, tmp_path) -> None:
        path = write(tmp_path, '"a", "b",n\nx,y,1\n')
        assert "Line 1 of file" in refused(UnreadableInput, lambda: Table.from_counts(path, ["a", "b"], "n"))

    @pytest.mark.parametrize("commas", [",", ",,", ",,,"])
    @pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r"])
    @pytest.mark.parametrize("first", ["x", '"x"', '"x\n,"'])
    def test_empty_fields_too_many(self, commas, end, first, tmp_path) -> None:
        path = write(tmp_path, f"a,b,n{end or chr(10)}{first},y,{SECRET}{commas}{end}")
        message = refused(UnreadableInput, lambda: Table.from_counts(path, ["a", "b"], "n"), SECRET)
        assert "Line 2 of file 'counts.csv' has another number of fields" in message

    @pytest.mark.parametrize("end", ["\n", "\r\n"])
    @pytest.mark.parametrize("chunk", [1, 2, 3, 7, 2**22])
    def test_blanks_commas_and_quotes_that_are_legal(self, end, chunk, tmp_path, monkeypatch) -> None:
        monkeypatch.setattr("holdfast.tables.readers._CHUNK", chunk)
        fields = {
            '" ""F"" "': ' "F" ',
            '""" "': '" ',
            '" """': ' "',
            '", "': ", ",
            '",\n"': ",\n",
            " x ": " x ",
            'x "y" z': 'x "y" z',
            '""': "",
        }
        text = "\ufeffa,n,rest" + end + "".join(f"{field},1,{end}" for field in fields) + end
        for whole in (text, text.rstrip()):
            table = Table.from_counts(write(tmp_path, whole), ["a"], "n", public=True, allow_similar_codes=True)
            assert table.universe.codes["a"] == tuple(fields.values())
        bad = write(tmp_path, text + f'"{SECRET}" ,1,{end}')
        line = 1 + text.count("\n")
        assert f"Line {line} of" in refused(UnreadableInput, lambda: Table.from_counts(bad, ["a"], "n"), SECRET)

    def test_a_quote_that_never_ends_is_not_read_to_the_end(self, tmp_path, monkeypatch) -> None:
        monkeypatch.setattr("holdfast.tables.readers._CHUNK", 8)
        monkeypatch.setattr("holdfast.tables.readers._LONGEST_LINE", 32)
        path = write(tmp_path, 'a,n\nx,1\n" "' + SECRET * 100 + ",1\n")
        assert "Line 3 of" in refused(UnreadableInput, lambda: Table.from_counts(path, ["a"], "n"), SECRET)

    def test_a_carriage_return_in_a_name(self, tmp_path) -> None:
        """DuckDB would find no rows below it."""
        path = write(tmp_path, '"a\r",n\nx,1\n')
        assert "carriage return" in refused(UnreadableInput, lambda: Table.from_counts(path, ["a\r"], "n"))

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_a_line_feed_in_a_name(self, tmp_path, end) -> None:
        """Excel writes such a header where a cell was broken with Alt+Enter. DuckDB by itself takes that feed for the line end."""
        lines = ['a,"b\nc",n', "1,x,3", '2,"y\nz",4']
        path = write(tmp_path, end.join([*lines, ""]))
        table = Table.from_counts(path, ["a", "b\nc"], "n", public=True)
        assert rows_of(table.universe.frame(), table.cells) == [("1", "x"), ("2", "y\nz")]
        assert table.counts.tolist() == [3, 4]
        counted = Table.from_records(path, {"b\nc": ["x", "y\nz", "w"]})
        assert counted.counts.tolist() == [1, 1, 0]
        assert Universe.listed(path, ["b\nc"]).codes["b\nc"] == ("x", "y\nz")

    def test_mixed_line_ends_below_a_name_with_a_line_feed(self, tmp_path) -> None:
        """They are refused as such, and not taken for a file without rows; one kind of line end is read."""
        for cells, count in ((["a", "b\nc"], "n"), (["a\n\n", "b\nc"], "n"), (["\na", "b"], "n\n")):
            header = ",".join(f'"{name}"' for name in (*cells, count))
            for first, then in product(("\n", "\r\n", "\r"), repeat=2):
                path = write(tmp_path, f'{header}{first}1,"x\n",3{then}2,y,4{then}')
                if first == then:
                    table = Table.from_counts(path, cells, count, public=True)
                    assert rows_of(table.universe.frame(), cells) == [("1", "x\n"), ("2", "y")]
                    assert table.counts.tolist() == [3, 4]
                else:
                    assert "line ends are mixed" in refused(UnreadableInput, partial(Table.from_counts, path, cells, count))

    def test_a_ragged_line_far_down(self, tmp_path) -> None:
        rows = "".join(f"{i},1\n" for i in range(300_000))
        path = write(tmp_path, f"a,n\n{rows}{SECRET},1,1\n")
        assert "Line 300002 of file" in refused(UnreadableInput, lambda: Table.from_counts(path, ["a"], "n"), SECRET)

    def test_text_that_is_not_utf8(self, tmp_path) -> None:
        (tmp_path / "x.csv").write_bytes(b"a,n\n\xe6" + SECRET.encode() + b",1\n")
        assert "Line 2 of file 'x.csv' is not UTF-8" in refused(
            UnreadableInput, lambda: Table.from_counts(tmp_path / "x.csv", ["a"], "n"), SECRET
        )
        (tmp_path / "h.csv").write_bytes(b"a\xe6,n\nx,1\n")
        assert "The header of file 'h.csv'" in refused(UnreadableInput, lambda: Table.from_counts(tmp_path / "h.csv", ["a"], "n"))

    def test_a_value_that_imitates_an_error(self, tmp_path) -> None:
        path = write(tmp_path, f'a,n\nx,1\n"CSV Error on Line: {SECRET}\nOriginal",3,4\n')
        refused(UnreadableInput, lambda: Table.from_counts(path, ["a"], "n"), SECRET)

    def test_files_that_are_not_there(self, tmp_path) -> None:
        for name, words in [("no.csv", "does not exist"), ("no.xls", "ends in '.xls'"), ("no", "ends in ''")]:
            assert words in refused(UnreadableInput, partial(Table.from_counts, tmp_path / name, ["a"], "n"), str(tmp_path))
        (tmp_path / "folder.csv").mkdir()
        assert "is a folder" in refused(UnreadableInput, lambda: Table.from_counts(tmp_path / "folder.csv", ["a"], "n"))
        (tmp_path / "bad.parquet").write_text(SECRET)
        refused(UnreadableInput, lambda: Table.from_counts(tmp_path / "bad.parquet", ["a"], "n"), SECRET, str(tmp_path))

    @pytest.mark.parametrize(
        "text",
        [
            *[" postgresql://user:hunter2@host", "postgres+psycopg-binary://user:hunter2@host", "my_db://u:hunter2@h"],
            *["postgresql:user:hunter2@host", "jdbc:postgresql://host/db?password=hunter2", "host=x password=hunter2"],
            *["user@host/hunter2.csv", "HOST=x;PASSWORD hunter2", "Password hunter2.csv", "postgresql:user:hunter2", "://hunter2" * 99],
            *["a,n\nhunter2,1\n", "host=x/hunter2.parquet"],
        ],
    )
    def test_texts_that_may_hold_a_password_or_data(self, text) -> None:
        for data in (text, Path(text)):
            message = refused(UnreadableInput, partial(Table.from_counts, data, ["a"], "n"), "hunter2", "host/", "user")
            assert "The text given names no file" in message
            assert "needs a query and starts with one of sqlite://, postgresql://, duckdb://" in message

    def test_a_name_that_is_too_long(self) -> None:
        assert "does not exist" in refused(
            UnreadableInput, lambda: Table.from_counts("/folder7/" + "x" * 300 + ".csv", ["a"], "n"), "folder7"
        )

    def test_a_file_with_an_equals_sign_in_its_name(self, tmp_path) -> None:
        assert len(Table.from_counts(write(tmp_path, "a,n\nx,1\n", "year=2020.csv"), ["a"], "n")) == 1
        assert "'year=2020.txt' ends in" in refused(
            UnreadableInput, lambda: Table.from_counts(write(tmp_path, "", "year=2020.txt"), ["a"], "n")
        )

    def test_other_things(self) -> None:
        refused(UnreadableInput, lambda: Table.from_counts({"a": ["x"], "n": [1]}, ["a"], "n"))
        refused(UnreadableInput, lambda: Table.from_counts(pl.LazyFrame({"a": ["x"], "n": [1]}), ["a"], "n"))
        refused(
            UnreadableInput, lambda: Table.from_counts(pd.DataFrame({"a": ["x", 7319465], "n": [1, 2]}, dtype=object), ["a"], "n"), SECRET
        )
        refused(InvalidParameter, lambda: Table.from_counts(pa.table({"a": ["x"]}), ["a"], "n", query="SELECT 1"))


class TestConfidential:
    @pytest.fixture
    def table(self) -> Table:
        return Table.from_counts(pa.table({"a": ["x", "y"], "n": [int(SECRET), 5]}), ["a"], "n", protect="household", name="trial")

    def test_counts_are_not_shown(self, table) -> None:
        for text in (repr(table), str(table), f"{table}", repr(table.universe), repr(vars(type(table)))):
            assert SECRET not in text
        assert repr(table) == "Table(2 cells by a; as listed; protects household; counts hidden)"
        assert (table.protect, table.max_records, table.name) == ("household", 1, "trial")

    def test_a_table_cannot_be_pickled(self, table) -> None:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            refused(ConfidentialTable, partial(pickle.dumps, table, protocol), SECRET)
        refused(ConfidentialTable, table.__getstate__, SECRET)
        assert copy.copy(table) is table
        assert copy.deepcopy(table) is table

    def test_counts_cannot_be_changed(self, table) -> None:
        with pytest.raises(ValueError, match="read-only"):
            table.counts[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            table.counts.setflags(write=True)
        with pytest.raises(AttributeError):
            table.counts = table.counts
        mine = np.array([1, 2])
        made = Table(table.universe, mine)
        mine[0] = 9
        assert made.counts.tolist() == [1, 2]
        view = mine.view()
        view.flags.writeable = False
        made = Table(table.universe, view)
        mine[0] = -9
        assert made.counts.tolist() == [9, 2]

    def test_equal_only_to_itself(self, table) -> None:
        assert table == table
        assert table != Table(table.universe, table.counts)

    @pytest.mark.parametrize("counts", [np.array([1.0, 2.0]), np.array([1]), np.array([1, -1]), np.array([1, 2**62]), [1, 2]])
    def test_made_by_hand(self, table, counts) -> None:
        refused(InvalidCount, lambda: Table(table.universe, counts))

    def test_the_name_of_the_counts(self, table) -> None:
        refused(UnknownColumn, lambda: Table(table.universe, table.counts, count="a"))

    @pytest.mark.parametrize("max_records", [0, -1, 1.0, True, "1"])
    def test_wrong_promises(self, table, max_records) -> None:
        refused(InvalidParameter, lambda: Table(table.universe, table.counts, max_records=max_records))
        refused(InvalidParameter, lambda: Table(table.universe, table.counts, protect=" "))

    def test_a_distance_is_nobody(self, table) -> None:
        given = pa.table({"a": ["x", "y"], "n": [1, 5]})
        for make in (
            lambda: Table(table.universe, table.counts, protect="distance"),
            lambda: Table.from_counts(given, ["a"], "n", protect="distance"),
            lambda: Table.from_records(given, {"a": ["x", "y"]}, protect="distance"),
        ):
            assert "names nobody" in str(refused(InvalidParameter, make))


class TestSaving:
    @pytest.fixture
    def table(self) -> Table:
        return Table(Universe.product({"a": ["x", "y"]}), np.array([1, 2]))

    @pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
    def test_never_over_something_else(self, table, name, tmp_path) -> None:
        table.save(tmp_path / name)
        before = (tmp_path / name).read_bytes()
        assert "exists already" in refused(InvalidParameter, lambda: table.save(str(tmp_path / name)), str(tmp_path))
        assert (tmp_path / name).read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == [name]
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600

    def test_a_failure_leaves_nothing(self, table, tmp_path, monkeypatch) -> None:
        def fail(*arguments: object) -> None:
            raise OSError("disk full")

        monkeypatch.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            table.save(tmp_path / "t.csv")
        assert list(tmp_path.iterdir()) == []

    def test_wrong_places(self, table, tmp_path) -> None:
        refused(InvalidParameter, lambda: table.save(tmp_path / "t.xlsx"))
        refused(InvalidParameter, lambda: table.save(tmp_path / "no" / "t.csv"), str(tmp_path))

    @pytest.mark.parametrize("name", ["a\r", "\ra", "a\r\n"])
    def test_a_carriage_return_in_a_name(self, name, tmp_path) -> None:
        for table in (
            Table(Universe.product({name: ["x"]}), np.array([1])),
            Table(Universe.product({"a": ["x"]}), np.array([1]), count=name),
        ):
            assert "carriage return" in refused(InvalidParameter, partial(table.save, tmp_path / "t.csv"))
            assert not (tmp_path / "t.csv").exists()
        table.save(tmp_path / "t.parquet")
        assert Table.from_counts(tmp_path / "t.parquet", ["a"], name).counts.tolist() == [1]
