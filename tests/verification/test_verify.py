"""Anyone's check of a folder: whatever was changed in it is noticed."""

from __future__ import annotations

import csv
import hashlib
import importlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

import holdfast as hf
from holdfast.errors import HoldfastError, InvalidParameter, UnreadableInput, VerificationFailed
from holdfast.verification.recompute import Verified
from holdfast.wording.verification import verified_sentences
from tests.snapshot_files import Snapshot

UNIVERSE = hf.Universe.product({"state": ["01", "02"], "sex": ["F", "M"], "age": ["1", "2"]})
COUNTS = np.array([11, 22, 33, 44, 55, 66, 77, 88])
KEEP: list[Any] = [
    hf.total(),
    hf.margin("state", "sex"),
    hf.subset("age >= 2", by=["state"]),
    hf.linear([[2, -3, 0, 0, 0, 0, 0, 0]]),
    hf.linear([[0, 0, 0, 0, 0, 0, 2, -3]]),
]
HEAD = "kept,name,state,sex,age,total"
FILES = ["card.json", "exposed.csv", "kept.csv", "report.html", "statement.html", "table.csv", "table.parquet"]
KEEP_ONE: list[Any] = [hf.margin("state"), hf.subset("age >= 2", by=["state"])]


def write_keys(folder: Path, name: str, seed: int) -> tuple[Path, Path]:
    key = Ed25519PrivateKey.from_private_bytes(bytes([seed] * 32))
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    private.chmod(0o600)
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    folder = tmp_path_factory.mktemp("keys")
    return {name: write_keys(folder, name, seed) for seed, name in enumerate(("office", "other"))}


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, tuple[Path, Path]]) -> dict[str, Path]:
    """One folder with every kind of constraint, one with simple ones, one of suppression, and a signed one."""
    parent = tmp_path_factory.mktemp("originals")
    table = hf.Table(UNIVERSE, COUNTS)
    laplace = hf.GeneralizedLaplace(epsilon="1/2", per="distance")
    key = hf.NoiseKey.for_tests
    simple = hf.release(table, KEEP_ONE, laplace, key=key("verify"), release_id="simple")
    fixing: list[Any] = [hf.margin("state"), hf.subset("age = 1 and sex = 'F'", by=["state"])]
    return {
        "simple": simple.save(parent / "simple"),
        "signed": simple.save(parent / "signed", sign=keys["office"][0]),
        "csv": simple.save(parent / "csv", formats=["csv"]),
        "suppressed": hf.release(table, fixing, hf.Suppression(), release_id="suppressed", ledger=None, allow_exposed=2).save(
            parent / "suppressed"
        ),
        "linear": hf.release(table, [hf.total(), *KEEP[3:]], laplace, key=key("linear"), release_id="linear").save(parent / "linear"),
    }


@pytest.fixture
def copy(originals: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    return lambda name: Path(shutil.copytree(originals[name], tmp_path / name))


def read_card(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "card.json").read_text(encoding="utf-8")))


def with_right_checksums(folder: Path, card: dict[str, Any] | None = None) -> None:
    """What a clever forger does: the card fits the files again."""
    made = card or read_card(folder)
    for name in made["files"]:
        data = (folder / name).read_bytes()
        made["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    (folder / "card.json").write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def change_table(folder: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    frame = change(pq.read_table(folder / "table.parquet"))
    pq.write_table(frame, folder / "table.parquet")
    plain = pa.table({n: frame.column(n).cast(pa.string()) if i < 3 else frame.column(n) for i, n in enumerate(frame.column_names)})
    pa.csv.write_csv(plain, folder / "table.csv")


def with_counts(frame: pa.Table, counts: list[int | None]) -> pa.Table:
    return frame.set_column(3, "count", pa.array(counts, pa.int64()))


class TestInOrder:
    def test_what_is_said(self, originals: dict[str, Path], snapshot: Snapshot) -> None:
        found = hf.verify(originals["simple"])
        assert (found.cells, found.totals, found.files, found.private, found.signed_by) == (8, 4, 6, False, None)
        snapshot(str(found))

    def test_all_constraints(self, tmp_path: Path) -> None:
        tree = hf.Hierarchy.from_prefixes(["011", "012", "021"], [2], levels=["state", "county"])
        universe = hf.Universe.product({"county": ["011", "012", "021"], "age": ["1", "2", "3"]}, hierarchies={"county": tree})
        keep: list[Any] = [
            hf.total(),
            hf.subset("county", node="01"),
            hf.areas("county", {"A": ["011", "021"], "B": ["011"]}),
            hf.identity(hf.subset("county = 11 and age = 1", by=["county", "age"])),
        ]
        made = hf.release(
            hf.Table(universe, np.array([0, 1, 2, 3, 4, 5, 6, 7, 8])), keep, hf.RoundedProjection(epsilon=1, per="distance"), ledger=None
        )
        assert hf.verify(made.save(tmp_path / "out")).totals == 4

    def test_an_observed_universe(self, tmp_path: Path) -> None:
        records = pa.table({"a": ["x", "y", "x", "z"], "b": ["1", "2", "1", "1"]})
        table = hf.Table.from_records(records, ["a", "b"], universe="observed")
        made = hf.release(table, [hf.total()], hf.GeneralizedGaussian(rho=1, per="distance"), ledger=None)
        assert hf.verify(made.save(tmp_path / "out")).cells == 3


class TestDamage:
    @pytest.mark.ordinary("exposed", "table")
    @pytest.mark.parametrize("name", [file for file in FILES if file != "card.json"])
    def test_any_changed_byte_of_a_file_is_noticed(self, copy: Callable[[str], Path], name: str) -> None:
        folder = copy("simple")
        data = (folder / name).read_bytes()
        step = max(1, len(data) // 150)
        for place in [*range(0, len(data), step), len(data) - 1]:
            changed = bytearray(data)
            changed[place] ^= 1 << place % 8
            (folder / name).write_bytes(changed)
            with pytest.raises(VerificationFailed, match=f"{name} was changed"):
                hf.verify(folder)

    @pytest.mark.ordinary("at 0")
    @pytest.mark.parametrize("first", [0, 11, 22, 33], ids=lambda first: f"from one at {first}")
    def test_any_changed_byte_of_a_signed_card_is_noticed(
        self, copy: Callable[[str], Path], keys: dict[str, tuple[Path, Path]], first: int
    ) -> None:
        folder = copy("signed")
        data = (folder / "card.json").read_bytes()
        for place in range(first, len(data), 44):
            changed = bytearray(data)
            changed[place] ^= 1
            (folder / "card.json").write_bytes(changed)
            with pytest.raises(VerificationFailed):
                hf.verify(folder, signer=keys["office"][1])

    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
    def test_truncated_files(self, copy: Callable[[str], Path], name: str, share: float) -> None:
        folder = copy("simple")
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(len(data) * share)])
        with pytest.raises(VerificationFailed, match=name.replace(".", r"\.")):
            hf.verify(folder)

    @pytest.mark.parametrize("name", FILES)
    def test_missing_files(self, copy: Callable[[str], Path], name: str) -> None:
        folder = copy("simple")
        (folder / name).unlink()
        with pytest.raises(VerificationFailed, match="no readable card" if name == "card.json" else f"{name} is missing"):
            hf.verify(folder)

    @pytest.mark.parametrize("name", ["extra.csv", ".hidden", "table.xlsx"])
    def test_extra_files(self, copy: Callable[[str], Path], name: str) -> None:
        folder = copy("simple")
        (folder / name).write_text("")
        with pytest.raises(VerificationFailed, match=rf"'{name}' is there but not on the card"):
            hf.verify(folder)

    def test_swapped_files(self, copy: Callable[[str], Path]) -> None:
        folder = copy("simple")
        (folder / "report.html").rename(folder / "x")
        (folder / "statement.html").rename(folder / "report.html")
        (folder / "x").rename(folder / "statement.html")
        with pytest.raises(VerificationFailed, match=r"report\.html has \d+ bytes instead of \d+; statement\.html has"):
            hf.verify(folder)

    def test_no_folder_at_all(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        for place, said in (
            (tmp_path / "none", "There is no folder"),
            (tmp_path, r"no readable card\.json"),
            (tmp_path / "file", "is a file"),
        ):
            with pytest.raises(VerificationFailed, match=said):
                hf.verify(place)

    @pytest.mark.parametrize("name", ["exposed.csv", "kept.csv", "report.html", "statement.html"])
    def test_a_card_that_leaves_out_a_file(self, copy: Callable[[str], Path], name: str) -> None:
        folder = copy("simple")
        card = read_card(folder)
        del card["files"][name]
        (folder / name).unlink()
        with_right_checksums(folder, card)
        with pytest.raises(VerificationFailed, match=f"the card does not list {name}"):
            hf.verify(folder)


class TestForgery:
    """Checksums fit, and still what was published cannot be what the card says."""

    def refused(self, folder: Path, words: str) -> None:
        with_right_checksums(folder)
        with pytest.raises(VerificationFailed, match=words):
            hf.verify(folder)

    def test_the_copy_itself_is_in_order(self, copy: Callable[[str], Path]) -> None:
        folder = copy("simple")
        change_table(folder, lambda frame: frame)
        with_right_checksums(folder)
        assert hf.verify(folder).release_id == "simple"

    def test_a_changed_count(self, copy: Callable[[str], Path]) -> None:
        folder = copy("simple")
        change_table(folder, lambda f: with_counts(f, [n + (i == 0) for i, n in enumerate(f.column("count").to_pylist())]))
        self.refused(folder, r"state=01.: the table adds up to 111, kept\.csv says 110")

    def test_a_count_changed_in_one_table_only(self, copy: Callable[[str], Path]) -> None:
        folder = copy("simple")
        text = (folder / "table.csv").read_text().splitlines()
        row = text[1].split(",")
        text[1] = ",".join([*row[:3], str(int(row[3]) + 1), *row[4:]])
        (folder / "table.csv").write_text("\n".join(text) + "\n")
        self.refused(folder, r"table\.csv and table\.parquet differ")

    def test_a_standard_deviation_changed_in_one_table_only(self, copy: Callable[[str], Path]) -> None:
        folder = copy("simple")
        text = (folder / "table.csv").read_text()
        deviation = text.splitlines()[1].rsplit(",", 2)[1]
        (folder / "table.csv").write_text(text.replace(f",{deviation},", ",0.1,", 1))
        self.refused(folder, r"table\.csv and table\.parquet differ")

    @pytest.mark.parametrize("place", [0, 3, 6])
    def test_another_column(self, copy: Callable[[str], Path], place: int) -> None:
        """Such as one of true counts."""
        folder = copy("simple")
        change_table(folder, lambda f: f.add_column(place, "true", pa.array(COUNTS)))
        self.refused(folder, r"table\.parquet has other columns than codes, count, standard deviation and exposed")

    def test_counts_that_are_left_out(self, copy: Callable[[str], Path]) -> None:
        """Empty counts must not switch the check off."""
        folder = copy("simple")
        change_table(folder, lambda f: with_counts(f, [None if i == 7 else n + 1 for i, n in enumerate(f.column("count").to_pylist())]))
        self.refused(folder, r"1 counts are missing in the table")

    def test_a_changed_total(self, copy: Callable[[str], Path]) -> None:
        folder = copy("simple")
        (folder / "kept.csv").write_text((folder / "kept.csv").read_text().replace(",110\n", ",111\n"))
        self.refused(folder, r"kept\.csv says 111")

    @pytest.mark.parametrize(("old", "new"), [("state=01", "state=02"), ("margin(state)", "margin(sex)")])
    def test_changed_names_of_totals(self, copy: Callable[[str], Path], old: str, new: str) -> None:
        folder = copy("simple")
        (folder / "kept.csv").write_text((folder / "kept.csv").read_text().replace(old, new))
        self.refused(folder, r"kept\.csv does not list the totals that the card states")

    @pytest.mark.parametrize("rows", [slice(0, 0), slice(0, -1), slice(1, None)])
    def test_totals_left_out(self, copy: Callable[[str], Path], rows: slice) -> None:
        folder = copy("simple")
        head, *lines = (folder / "kept.csv").read_text().splitlines(keepends=True)
        (folder / "kept.csv").write_text(head + "".join(lines[rows]))
        self.refused(folder, r"kept\.csv does not list")

    @pytest.mark.parametrize("text", ["", "a,b,c\n", f"{HEAD}\nx\n", f"{HEAD}\nx,y,,,,z\n", "kept,name,total\n", "\0", "\udcff"])
    def test_totals_that_are_none(self, copy: Callable[[str], Path], text: str) -> None:
        folder = copy("simple")
        (folder / "kept.csv").write_text(text, errors="surrogateescape")
        self.refused(folder, r"kept\.csv cannot be read as what its name says")

    def test_renamed_cells(self, copy: Callable[[str], Path]) -> None:
        folder = copy("simple")
        change_table(folder, lambda f: f.set_column(1, "sex", pa.array(["M", "M", "F", "F"] * 2)))
        self.refused(folder, "other cells, or another order")

    def test_rows_left_out_or_repeated(self, copy: Callable[[str], Path]) -> None:
        folder = copy("simple")
        change_table(folder, lambda f: f.slice(0, 7))
        self.refused(folder, r"table\.parquet has 7 rows instead of 8")
        change_table(folder, lambda f: pa.concat_tables([f, f.slice(0, 1)]))
        self.refused(folder, "table and constraints do not fit together: A cell is listed more than once")

    @pytest.mark.parametrize("rows", [1, 7, 9])
    def test_rows_of_a_text_file(self, copy: Callable[[str], Path], rows: int) -> None:
        folder = copy("csv")
        head, *lines = (folder / "table.csv").read_text().splitlines(keepends=True)
        (folder / "table.csv").write_text(head + "".join([*lines, lines[0]][:rows]))
        self.refused(folder, rf"table\.csv has {rows} rows instead of 8")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "cannot be read as what its name says"),
            ("\n", "cannot be read as what its name says"),
            ("a,b\n1\n", "cannot be read as what its name says"),
            ("state,sex,age,count\n01,F,1,x\n", "has other columns than codes, count"),
            ("state\n01\n", "has other columns than codes, count"),
        ],
    )
    def test_a_table_that_is_none(self, copy: Callable[[str], Path], text: str, words: str) -> None:
        folder = copy("csv")
        (folder / "table.csv").write_text(text)
        self.refused(folder, rf"table\.csv {words}")

    @pytest.mark.parametrize("place", [3, 4, 5])
    def test_numbers_that_are_none(self, copy: Callable[[str], Path], place: int) -> None:
        folder = copy("csv")
        head, first, *lines = (folder / "table.csv").read_text().splitlines()
        fields = first.split(",")
        fields[place] = "x"
        (folder / "table.csv").write_text("\n".join([head, ",".join(fields), *lines]) + "\n")
        self.refused(folder, r"table\.csv cannot be read as what its name says")

    def test_constraints_that_are_none(self, copy: Callable[[str], Path]) -> None:
        changes: list[list[dict[str, Any]]] = [
            [{"type": "margin", "kind": "kept", "columns": ["other"]}],
            [{}],
            [{"type": "linear", "kind": "kept"}],
        ]
        for change in changes:
            folder = copy("simple")
            card = read_card(folder)
            card["kept"]["definitions"] = change
            with_right_checksums(folder, card)
            with pytest.raises(VerificationFailed, match="table and constraints do not fit together"):
                hf.verify(folder)
            shutil.rmtree(folder)

    def test_fewer_constraints_than_totals(self, copy: Callable[[str], Path]) -> None:
        folder = copy("simple")
        card = read_card(folder)
        card["kept"]["definitions"] = card["kept"]["definitions"][:1]
        with_right_checksums(folder, card)
        with pytest.raises(VerificationFailed, match="does not list"):
            hf.verify(folder)


class TestSuppression:
    def test_in_order(self, originals: dict[str, Path], snapshot: Snapshot) -> None:
        found = hf.verify(originals["suppressed"])
        assert found.suppressed
        snapshot(str(found))
        assert pq.read_table(originals["suppressed"] / "table.parquet").column("count").to_pylist() == [11, *[None] * 3, 55, *[None] * 3]

    def test_a_cell_that_should_not_be_there(self, copy: Callable[[str], Path]) -> None:
        folder = copy("suppressed")
        change_table(folder, lambda f: with_counts(f, [11, 22, None, None, 55, None, None, None]))
        with_right_checksums(folder)
        with pytest.raises(VerificationFailed, match="1 counts are in the table that suppression leaves out"):
            hf.verify(folder)

    def test_an_exposed_cell_that_is_changed(self, copy: Callable[[str], Path]) -> None:
        folder = copy("suppressed")
        change_table(folder, lambda f: with_counts(f, [12, None, None, None, 55, None, None, None]))
        with_right_checksums(folder)
        with pytest.raises(VerificationFailed, match=r"state=01.: the table adds up to 12, kept\.csv says 11"):
            hf.verify(folder)


class TestSignatures:
    def test_made_and_checked(self, originals: dict[str, Path], keys: dict[str, tuple[Path, Path]]) -> None:
        """Only a key that the reader named is called the signer's: anyone can sign with a key of their own."""
        found = hf.verify(originals["signed"], signer=keys["office"][1])
        assert found.signed_by is not None
        assert f"Signed by {found.signed_by}, the key that you named." in str(found)
        unnamed = hf.verify(originals["signed"])
        assert unnamed == replace(found, signed_by=None, unchecked_key=found.signed_by)
        assert f"Carries a signature by an unchecked key, {found.signed_by}" in str(unnamed)
        assert "signed by" not in str(unnamed).lower()
        assert "Not signed." in str(hf.verify(originals["simple"]))

    def test_a_tampered_card_with_right_checksums(self, copy: Callable[[str], Path]) -> None:
        folder = copy("signed")
        card = read_card(folder)
        card["release"]["test_key"] = False
        with_right_checksums(folder, card)
        with pytest.raises(VerificationFailed, match="the signature does not fit the card"):
            hf.verify(folder)

    def test_another_signer(self, originals: dict[str, Path], keys: dict[str, tuple[Path, Path]]) -> None:
        with pytest.raises(VerificationFailed, match=r"^The card is signed, but not by the key that you named \('.*'\)"):
            hf.verify(originals["signed"], signer=keys["other"][1])

    def test_no_signature_where_one_is_asked_for(self, copy: Callable[[str], Path], keys: dict[str, tuple[Path, Path]]) -> None:
        folder = copy("signed")
        card = read_card(folder)
        card["signature"] = None
        (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
        with pytest.raises(VerificationFailed, match="the card is not signed"):
            hf.verify(folder, signer=keys["office"][1])

    def test_a_signers_key_that_is_none(self, originals: dict[str, Path], keys: dict[str, tuple[Path, Path]]) -> None:
        with pytest.raises(
            InvalidParameter, match=r"is a private key\. Make the public one: openssl pkey -in priv\.pem -pubout -out pub\.pem"
        ):
            hf.verify(originals["signed"], signer=keys["office"][0])


def official(path: Path, columns: dict[str, list[Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
class TestAgainst:
    def test_a_kept_margin(self, originals: dict[str, Path], tmp_path: Path, suffix: str) -> None:
        right = official(tmp_path / f"right.{suffix}", {"state": ["02", "01"], "people": [286, 110]})
        assert hf.verify(originals["simple"], against=right).official_totals == 2
        wrong = official(tmp_path / f"wrong.{suffix}", {"state": ["02", "01"], "people": [286, 111]})
        with pytest.raises(VerificationFailed, match="state=01: released 110, official 111"):
            hf.verify(originals["simple"], against=wrong)
        fewer = official(tmp_path / f"fewer.{suffix}", {"state": ["02"], "people": [286]})
        with pytest.raises(VerificationFailed, match="state=01: not among the official totals"):
            hf.verify(originals["simple"], against=fewer)
        more = official(tmp_path / f"more.{suffix}", {"state": ["02", "01", "03"], "people": [286, 110, 0]})
        with pytest.raises(VerificationFailed, match="state=03: not among the released totals"):
            hf.verify(originals["simple"], against=more)

    def test_totals_by_columns_that_are_not_kept(self, originals: dict[str, Path], tmp_path: Path, suffix: str) -> None:
        file = official(tmp_path / f"sex.{suffix}", {"sex": ["F", "M"], "people": [1, 2]})
        with pytest.raises(InvalidParameter, match=r"does not keep totals by sex.*It keeps margin\(state\)"):
            hf.verify(originals["simple"], against=file)

    def test_the_whole_table_in_another_order(self, originals: dict[str, Path], tmp_path: Path, suffix: str) -> None:
        cells = [UNIVERSE.cell(i) for i in range(8)]
        order = [5, 1, 7, 0, 2, 4, 6, 3]
        columns = {c: [cells[i][c] for i in order] for c in ("age", "state", "sex")}
        whole = official(tmp_path / f"whole.{suffix}", {**columns, "count": COUNTS[order].tolist()})
        for name, number in (("simple", 4), ("linear", 3), ("suppressed", 4)):
            assert hf.verify(originals[name], against=whole).official_totals == number
        changed = COUNTS + np.array([0, 1, 0, 0, 0, 0, 0, -1])
        wrong = official(tmp_path / f"changed.{suffix}", {**columns, "count": changed[order].tolist()})
        with pytest.raises(VerificationFailed, match="row 1: released -44, official -47; row 1: released -110, official -107") as caught:
            hf.verify(originals["linear"], against=wrong)
        assert "22" not in str(caught.value)

    def test_a_whole_table_of_other_cells(self, originals: dict[str, Path], tmp_path: Path, suffix: str) -> None:
        cells = [UNIVERSE.cell(i) for i in range(7)]
        columns = {c: [cell[c] for cell in cells] for c in UNIVERSE.columns}
        file = official(tmp_path / f"part.{suffix}", {**columns, "count": COUNTS[:7].tolist()})
        with pytest.raises(InvalidParameter, match=r"other cells than the release \(7 and 8 rows\)"):
            hf.verify(originals["linear"], against=file)
        columns["age"] = ["9"] * 7
        file = official(tmp_path / f"other.{suffix}", {"number": [1] * 7, **{c: [f"{i}" for i in range(7)] for c in UNIVERSE.columns}})
        with pytest.raises(InvalidParameter, match="other cells than the release"):
            hf.verify(originals["simple"], against=file)

    @pytest.mark.parametrize("plain", [True, False])
    def test_constraint_name_total(self, originals: dict[str, Path], tmp_path: Path, suffix: str, plain: bool) -> None:
        """As kept.csv has them, or without its columns of codes."""
        with open(originals["linear"] / "kept.csv", newline="", encoding="utf-8") as text:
            head, *rows = list(csv.reader(text))
        columns: dict[str, list[Any]] = {name: [row[i] for row in rows] for i, name in enumerate(head)}
        columns["total"] = [int(total) for total in columns["total"]]
        if plain:
            columns = {name: columns[name] for name in ("kept", "name", "total")}
        file = official(tmp_path / f"kept.{suffix}", columns)
        assert hf.verify(originals["linear"], against=file).official_totals == 3
        columns["total"][1] += 1  # the first of two rows of one name
        wrong = official(tmp_path / f"wrong.{suffix}", columns)
        with pytest.raises(VerificationFailed, match="row 1: released -44, official -43"):
            hf.verify(originals["linear"], against=wrong)
        none = official(tmp_path / f"none.{suffix}", {**columns, "total": ["x", "y", "z"]})
        with pytest.raises(UnreadableInput, match="without a constraint, a name or a whole number"):
            hf.verify(originals["linear"], against=none)

    def test_columns_that_are_none(self, originals: dict[str, Path], tmp_path: Path, suffix: str) -> None:
        given: list[dict[str, list[Any]]] = [{"x": [1]}, {"state": ["01"]}, {"state": ["01"], "n": [1], "m": [2]}]
        for columns in given:
            file = official(tmp_path / f"none.{suffix}", columns)
            with pytest.raises(InvalidParameter, match="should have columns of codes"):
                hf.verify(originals["simple"], against=file)

    def test_a_file_that_is_none(self, originals: dict[str, Path], tmp_path: Path, suffix: str) -> None:
        (tmp_path / f"none.{suffix}").write_bytes(b"\xff\xfe\0")
        for path in (tmp_path / f"none.{suffix}", tmp_path / f"missing.{suffix}"):
            with pytest.raises(HoldfastError) as caught:
                hf.verify(originals["simple"], against=path)
            assert isinstance(caught.value, UnreadableInput)


def test_the_public_name_is_the_function_whatever_was_loaded_before(originals: dict[str, Path]) -> None:
    """Loading a module of a package puts it in the place of a function of the same name."""
    importlib.import_module("holdfast.verification.verify")
    assert hf.verify(originals["simple"]).release_id == "simple"


def test_against_a_table(originals: dict[str, Path]) -> None:
    assert hf.verify(originals["simple"], against=hf.Table(UNIVERSE, COUNTS)).official_totals == 4
    with pytest.raises(VerificationFailed, match="official"):
        hf.verify(originals["simple"], against=hf.Table(UNIVERSE, COUNTS + 1))


class TestOfficialFiles:
    """Files as offices have them, and what is said of those that cannot be read."""

    def test_semicolons(self, originals: dict[str, Path], tmp_path: Path) -> None:
        (tmp_path / "official.csv").write_text("state;people\n01;110\n02;286\n")
        assert hf.verify(originals["simple"], against=tmp_path / "official.csv").official_totals == 2
        text = (originals["simple"] / "kept.csv").read_text().replace(",", ";")
        (tmp_path / "kept.csv").write_text(text)
        assert hf.verify(originals["simple"], against=tmp_path / "kept.csv").official_totals == 4

    def test_a_file_that_does_not_exist_is_said_not_to(self, originals: dict[str, Path], tmp_path: Path) -> None:
        with pytest.raises(UnreadableInput, match=r"'none\.csv' does not exist"):
            hf.verify(originals["simple"], against=tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("totals", "cells", "suppressed", "said"),
    [
        (12, 1800, False, "12 kept totals add up over 1,800 cells."),
        (1, 1, False, "1 kept total adds up over 1 cell."),
        (0, 1, False, "1 cell, no kept total."),
        (1, 4, True, "1 kept total listed."),
    ],
)
def test_one_total_is_one_total(totals: int, cells: int, suppressed: bool, said: str) -> None:
    found = Verified("r", cells, 6, True, ("report.html",), totals, suppressed=suppressed)
    assert verified_sentences(found)[0] == f"Release r: 6 files as the card says, {said}"
