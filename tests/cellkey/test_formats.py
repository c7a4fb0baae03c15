"""Files of other programs, written here by hand from their descriptions: read exactly, and written back as they were."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cellkey import KeySpace, PerturbationTable, RecordKeys, read_table, write_table
from holdfast.cellkey.formats import KINDS, Kind
from holdfast.errors import HoldfastError, InvalidParameter, OutputExists, OutputProblem, UnreadableInput
from tests.cellkey.perturbing import perturb

# i: count, j: published, p: probability, v: noise, p_int_ub: upper bound of the keys. D = 2, js = 1: nothing is published as 1.
PTABLE = """i;j;p;v;p_int_ub
0;0;1;0;1
1;0;0.50000000;-1;0.50000000
1;2;0.50000000;1;1.00000000
2;0;0.16666667;-2;0.16666667
2;2;0.66666667;0;0.83333333
2;4;0.16666667;2;1
3;2;0.20000000;-1;0.20000000
3;3;0.60000000;0;0.80000000
3;4;0.20000000;1;1.00000000
"""
SAS = """i;j;p;v;p_int_lb;p_int_ub
0;0;1;0;0;1
1;0;0.50000000;-1;0;0.50000000
1;2;0.50000000;1;0.50000000;1
2;0;0.16666667;-2;0;0.16666667
2;2;0.66666667;0;0.16666667;0.83333333
2;4;0.16666667;2;0.83333333;1
3;2;0.20000000;-1;0;0.20000000
3;3;0.60000000;0;0.20000000;0.80000000
3;4;0.20000000;1;0.80000000;1
"""
ONS = "pcv,ckey,pvalue\n" + "".join(f"{count},{key},{(key * count) % 3 - 1}\n" for count in (1, 2, 3, 4) for key in range(8))
SUPERSTAR = "0,-1,1,0\n1,0,0,1\n-1,2,0,-1\n0,0,-2,2\n"
FILES: dict[Kind, str] = {"ptable": PTABLE, "sas": SAS, "ons": ONS, "superstar": SUPERSTAR}
REPEAT = {"ons": 2, "superstar": 2}
OURS = PerturbationTable.from_upper_bounds({0: [(0, 10**8)], 1: [(-1, 5 * 10**7), (1, 10**8)],
    2: [(-2, 16666667), (0, 83333333), (2, 10**8)], 3: [(-1, 2 * 10**7), (0, 8 * 10**7), (1, 10**8)]}, 10**8)  # fmt: skip


def read(tmp_path: Path, text: str, kind: Kind | None = None, repeat: int | None = None) -> PerturbationTable:
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    return read_table(path, kind, repeat=repeat)


def refused(tmp_path: Path, text: str, kind: Kind | None = None, repeat: int | None = None) -> str:
    with pytest.raises(HoldfastError) as caught:
        read(tmp_path, text, kind, repeat)
    return str(caught.value)


class TestRead:
    @pytest.mark.parametrize("text", [PTABLE, SAS])
    def test_decimals(self, tmp_path: Path, text: str) -> None:
        found = read(tmp_path, text)
        assert found == OURS
        # Half-open: the bound itself belongs to what comes after it.
        assert found.lookup(np.array([2, 2, 2]), np.array([16666666, 16666667, 83333333], np.uint64)).tolist() == [-2, 0, 2]

    def test_as_other_programs_write_it(self, tmp_path: Path) -> None:
        quoted = (
            '\ufeff"i";"j";"p";"v";"p_int_ub";"type"\r\n' + "\r\n".join(f'{line};"all"' for line in PTABLE.splitlines()[1:]) + "\r\n\r\n"
        )
        assert read(tmp_path, quoted) == OURS
        assert read(tmp_path, PTABLE.replace(";", ",")) == OURS
        assert read(tmp_path, PTABLE.replace(";", "\t")) == OURS
        assert read(tmp_path, PTABLE.replace("0.", ".")) == OURS

    def test_one_line_for_each_key(self, tmp_path: Path) -> None:
        found = read(tmp_path, ONS, repeat=2)
        assert (found.key_size, found.counts, found.repeat) == (8, (1, 2, 3, 4), 2)
        for count in (1, 2, 3, 4):
            assert found.lookup(np.full(8, count), np.arange(8)).tolist() == [(key * count) % 3 - 1 for key in range(8)]
        assert found.lookup(np.array([5, 6, 7]), np.full(3, 1)).tolist() == [(key - 1) for key in (3 % 3, 4 % 3, 3 % 3)]  # rows 3, 4, 3
        lines = ONS.splitlines()
        assert read(tmp_path, "\n".join([lines[0], *reversed(lines[1:])]), repeat=2) == found

    def test_the_rule_for_cell_keys_stays_with_the_table(self, tmp_path: Path) -> None:
        """The example of a record key of 200 among 256 and 64 cell keys: the sum modulo 64 is 8; folded it would be 11. Written anew, the
        table says the same or is not written.
        """
        text = "pcv,ckey,pvalue\n" + "".join(f"1,{key},{key}\n" for key in range(64))
        found = read(tmp_path, text, repeat=1)
        kind: Kind
        for kind in ("ons", "json"):
            write_table(found, tmp_path / kind, kind)
            again = read_table(tmp_path / kind, repeat=1)
            made = perturb(pa.table({"record_key": [200]}), {"all": []}, again, keys=KeySpace(256))
            assert (again, made["all"].column("count").to_pylist()) == (found, [1 + 8])
        for kind in ("ptable", "sas", "superstar"):
            with pytest.raises(InvalidParameter, match="modulo the number of its keys, as ONS does"):
                write_table(found, tmp_path / kind, kind)

    def test_750_rows_go_on_in_turn(self, tmp_path: Path) -> None:
        text = "pcv,ckey,pvalue\n" + "".join(f"{count},{key},{(count + key) % 2}\n" for count in range(1, 751) for key in range(2))
        found = read(tmp_path, text)
        for count in (750, 751, 999, 1000, 1001, 10**6):
            served = count if count <= 750 else (count - 1) % 250 + 501
            assert found.lookup(np.array([count]), np.array([0])).tolist() == [served % 2]

    def test_a_matrix_has_a_line_for_each_key_and_a_column_for_each_count(self, tmp_path: Path) -> None:
        found = read(tmp_path, SUPERSTAR, repeat=2)
        assert (found.key_size, found.counts) == (4, (1, 2, 3, 4))
        assert [found.lookup(np.array([count]), np.array([key])).tolist()[0] for key in range(4) for count in (1, 2, 3, 4)] == [
            0, -1, 1, 0, 1, 0, 0, 1, -1, 2, 0, -1, 0, 0, -2, 2]  # fmt: skip
        assert found.lookup(np.array([5, 6, 7]), np.full(3, 2)).tolist() == [0, -1, 0]

    @pytest.mark.parametrize(("text", "kind"), [(SUPERSTAR, "superstar"), (ONS, "ons")])
    def test_last_rows_that_do_not_divide_the_table_are_refused(self, text: str, kind: Kind, tmp_path: Path) -> None:
        """((count - 1) mod 250) + 501 and "from the first of the last rows" are the same rule only there."""
        assert "documented only if 3 divides 4. Give a repeat that does, or 0" in refused(tmp_path, text, kind, 3)
        for repeat in (0, 1, 2, 4):
            assert read(tmp_path, text, kind, repeat).repeat == repeat


class TestTauArgus:
    """Headers of several versions; bounds of 10 digits beside p as R prints it, with up to 15 digits that count."""

    ROWS = "0;0;1;0;1\n1;0;0.775078850966306;-1;0.775078851\n1;3;0.2249211;2;0.9999999511\n1;4;4.88837341935648e-08;3;1\n"
    BOUNDS = (7750788510, 9999999511, 10**10)

    @pytest.mark.parametrize("head", ['"i";"j";"p";"v";"p_ij_ub"', "i;j;p_ij;v;p_ij_ub", "i;j;p_ij;v;p_int_ub"])
    def test_bounds_decide_and_p_may_be_rounded(self, head: str, tmp_path: Path) -> None:
        found = read(tmp_path, f"{head}\n{self.ROWS}")
        assert (found.key_size, found.rows[1].noise, found.rows[1].upper) == (10**10, (-1, 2, 3), self.BOUNDS)

    def test_p_of_few_digits(self, tmp_path: Path) -> None:
        few = self.ROWS.replace("0.775078850966306", "0.775").replace("0.2249211", ".22").replace("4.88837341935648e-08", "0")
        assert read(tmp_path, f"i;j;p_ij;v;p_ij_ub\n{few}").rows[1].upper == self.BOUNDS
        wrong = few.replace("0.775;", "0.78;")
        assert read(tmp_path, f"i;j;p_ij;v;p_ij_ub\n{wrong}").rows[1].upper == self.BOUNDS  # .775 is .78 to two digits
        assert "Line 3" in refused(tmp_path, f"i;j;p_ij;v;p_ij_ub\n{few.replace('0.775;', '0.773;')}")

    def test_a_column_under_both_names(self, tmp_path: Path) -> None:
        assert "Missing or twice: 'p'" in refused(tmp_path, "i;j;p;p_ij;v;p_ij_ub\n0;0;1;1;0;1\n", "ptable")

    @pytest.mark.parametrize("halves", ["1;0.5;0.5;-0.5;0.5;all\n1;1.5;0.5;0.5;1;all\n", "1;0;0.5;-1;0.5;small\n1;2;0.5;1;1;all\n"])
    def test_magnitudes_have_their_own_message(self, halves: str, tmp_path: Path) -> None:
        told = refused(tmp_path, f"i;j;p;v;p_int_ub;type\n0;0;1;0;1;all\n{halves}")
        assert "is a perturbation table for magnitudes" in told
        assert "Give a table for counts." in told


class TestWritten:
    @pytest.mark.parametrize("kind", FILES)
    def test_reads_back_as_it_was(self, kind: Kind, tmp_path: Path) -> None:
        found = read(tmp_path, FILES[kind], kind, REPEAT.get(kind))
        write_table(found, tmp_path / "again", kind)
        again = read_table(tmp_path / "again", repeat=REPEAT.get(kind))
        assert again == found
        if kind in ("ons", "superstar"):
            assert (tmp_path / "again").read_text(encoding="utf-8") == FILES[kind]
        write_table(found, tmp_path / "own")
        assert read_table(tmp_path / "own") == found

    @settings(max_examples=20)
    @given(
        rows=st.dictionaries(st.integers(1, 9), st.lists(st.integers(-9, 9), min_size=1, max_size=6), min_size=1, max_size=4),
        kind=st.sampled_from(["json", "ptable", "sas", "ons"]),
        data=st.data(),
    )
    def test_any_table(self, rows: dict[int, list[int]], kind: Kind, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
        size = 10 ** data.draw(st.integers(2, 4 if kind == "ons" else 18))
        bounds = {}
        for count, noise in rows.items():
            cuts = data.draw(st.lists(st.integers(1, size - 1), min_size=len(noise) - 1, max_size=len(noise) - 1, unique=True))
            bounds[count] = list(zip(noise, [*sorted(cuts), size], strict=True))
        table = PerturbationTable.from_upper_bounds(bounds, size, folds=kind != "ons")
        path = tmp_path_factory.mktemp("tables") / "table"
        write_table(table, path, kind)
        assert _scaled(read_table(path, kind, repeat=1), table.key_size) == table

    def test_a_matrix_leaves_out_that_a_zero_stays_zero(self, tmp_path: Path) -> None:
        write_table(OURS.rescaled(100), tmp_path / "matrix", "superstar")
        again = read_table(tmp_path / "matrix", "superstar", repeat=1)
        assert (again.counts, again.losses_in_use.plateau) == ((1, 2, 3), OURS.rescaled(100).losses_in_use.plateau)

    def test_what_a_kind_cannot_hold_is_refused(self, tmp_path: Path) -> None:
        binary = PerturbationTable.from_probabilities({1: {0: 1}}, 2**32)
        for kind in ("ptable", "sas", "ons", "superstar"):
            with pytest.raises(InvalidParameter):
                write_table(binary, tmp_path / "file", kind)
        with pytest.raises(InvalidParameter, match="counts 1, 2, 3"):
            write_table(PerturbationTable.from_probabilities({2: {0: 1}, 3: {0: 1}}, 10), tmp_path / "file", "superstar")
        with pytest.raises(InvalidParameter, match="serves all larger"):
            write_table(PerturbationTable.from_probabilities({1: {0: 1}, 2: {0: 1}}, 10, repeat=2), tmp_path / "file", "ptable")
        assert list(tmp_path.iterdir()) == []
        write_table(binary, tmp_path / "file")
        with pytest.raises(OutputExists):
            write_table(binary, tmp_path / "file")


def _scaled(table: PerturbationTable, size: int) -> PerturbationTable:
    """A file in decimals has as many digits as its bounds need."""
    assert Fraction(size, table.key_size).denominator == 1
    return table.rescaled(size)


class TestRefused:
    def test_probabilities_that_do_not_add_up_to_one(self, tmp_path: Path) -> None:
        assert "must end at the key size" in refused(tmp_path, PTABLE.replace("3;4;0.20000000;1;1.00000000\n", ""))
        assert "Line 10" in refused(tmp_path, PTABLE.replace("3;4;0.20000000", "3;4;0.20000003"))

    def test_intervals_that_overlap_or_leave_a_gap(self, tmp_path: Path) -> None:
        overlap = SAS.replace("2;2;0.66666667;0;0.16666667;0.83333333", "2;2;0.66666667;0;0.16666666;0.83333333")
        assert "overlap" in refused(tmp_path, overlap)
        gap = SAS.replace("2;2;0.66666667;0;0.16666667;0.83333333", "2;2;0.66666665;0;0.16666668;0.83333333")
        assert "gap" in refused(tmp_path, gap)
        falling = PTABLE.replace("2;2;0.66666667;0;0.83333333", "2;2;0.66666667;0;0.1")
        assert "Line 6" in refused(tmp_path, falling)

    def test_keys_missing_or_twice(self, tmp_path: Path) -> None:
        assert "missing or twice" in refused(tmp_path, ONS.replace("2,3,-1\n", ""), repeat=2)
        assert "missing or twice" in refused(tmp_path, ONS.replace("2,3,-1\n", "2,2,-1\n"), repeat=2)
        assert "missing or twice" in refused(tmp_path, ONS + "4,7,0\n", repeat=2)

    @pytest.mark.parametrize(
        ("kind", "text"),
        [
            ("ptable", PTABLE.replace("1;2;0.5", "1;3;0.5")),
            ("ptable", PTABLE.replace("0.50000000", "0,50000000")),
            ("ptable", PTABLE.replace("0.50000000;-1", "secret;-1")),
            ("ptable", PTABLE.replace("1;0;0.50000000;-1", "1.0;0;0.50000000;-1")),
            ("ptable", PTABLE.replace("0;0;1;0;1\n", "0;0;1;0;1;9\n")),
            ("ptable", "i;j;p;v;p_int_ub\n"),
            ("ptable", "i;j;p;v\n0;0;1;0\n"),
            ("ptable", PTABLE.replace("0;0;1;0;1\n", "0;0;1;0;1.5\n")),
            ("ons", ONS.replace("1,0,-1", "1,secret,-1")),
            ("superstar", SUPERSTAR + "1,2\n"),
            ("superstar", SUPERSTAR + "1,2,secret\n"),
            ("json", "{}"),
            ("json", "[1, 2]"),
            ("json", '{"kind": "holdfast perturbation table", "version": 2, "key_size": 4, "repeat": 1, "rows": {"1": [[0, 4]]}}'),
            (
                "json",
                '{"kind": "holdfast perturbation table", "version": 2, "key_size": 4, "repeat": 1, "folds": true, "rows": {"1": [[0, 3]]}}',
            ),
            (None, "name,secret\n1,2\n"),
            (None, ""),
            ("magic", PTABLE),
        ],
    )
    def test_files_gone_wrong(self, kind: Kind, text: str, tmp_path: Path) -> None:
        assert "secret" not in refused(tmp_path, text, kind, 1)

    def test_several_tables_in_one_file(self, tmp_path: Path) -> None:
        lines = PTABLE.splitlines()
        text = "\n".join([lines[0] + ";year", *(f"{line};{'2021' if place % 2 else '2022'}" for place, line in enumerate(lines[1:]))])
        assert "several tables" in refused(tmp_path, text)

    def test_a_matrix_needs_repeat(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidParameter, match="SmallN"):
            read(tmp_path, SUPERSTAR)

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableInput):
            read_table(tmp_path / "none")
        with pytest.raises(InvalidParameter, match="Kinds of files"):
            write_table(OURS, tmp_path / "x", "magic")  # type: ignore[arg-type]
        assert set(KINDS) == {*FILES, "json"}


class TestNumbersOfOtherPrograms:
    HEAD = "i;j;p;v;p_int_ub\n"

    def test_exponents_are_exact(self, tmp_path: Path) -> None:
        plain = "1;0;0.4999;-1;0.4999\n1;1;0.0001;0;0.5\n1;2;0.5;1;1\n"
        for place, small in enumerate(("1e-04", "1E-4", ".1e-3", "1.0e-04")):
            (tmp_path / str(place)).mkdir()
            found = read(tmp_path / str(place), self.HEAD + plain.replace("0.0001", small).replace("0.5;1;1", "5e-1;1;1e+00"))
            assert found.rows[1].upper == (4999, 5000, 10000)

    def test_doubles_of_17_digits(self, tmp_path: Path) -> None:
        third = 1 / 3
        bounds = [third, third + third, 1.0]
        lines = [f"1;{place};{third:.17g};{place - 1};{bound:.17g}\n" for place, bound in enumerate(bounds)]
        found = read(tmp_path, self.HEAD + "".join(lines))
        assert found.key_size == 10**17
        assert found.rows[1].upper == (33333333333333331, 66666666666666663, 10**17)

    @pytest.mark.parametrize("bad", ["e-4", "1e1", "0.1e1e1", "1e-19", "2", "1.5", "15e-1", "0,5", "", ".", "1e", "nan"])
    def test_refused(self, tmp_path: Path, bad: str) -> None:
        message = refused(tmp_path, self.HEAD + f"1;0;{bad};-1;0.5\n1;1;0.5;0;1\n")
        assert "Line 2" in message

    def test_a_wrong_p_is_refused(self, tmp_path: Path) -> None:
        """One binary rounding is allowed, no more."""
        lines = "1;0;0.33333333333333431;-1;0.33333333333333331\n1;1;0.66666666666666669;0;1\n"
        assert "p is not the length" in refused(tmp_path, self.HEAD + lines)


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    for write in (lambda path: write_table(OURS, path), RecordKeys.for_tests("x").save):
        with pytest.raises(OutputProblem, match="Check that its folder exists"):
            write(tmp_path / "none" / "x")
