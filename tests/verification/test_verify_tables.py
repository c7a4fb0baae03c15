"""`holdfast verify` on a release of several tables: what was checked, and what is not as it was."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

import holdfast as hf
from holdfast.cellkey import CellKeys, KeySpace, PerturbationTable
from holdfast.errors import HoldfastError, InvalidParameter, VerificationFailed
from holdfast.publication.tables import describe_tables, find_gaps
from holdfast.verification.verify import published_rows, verify
from tests.cellkey.perturbing import release_tables
from tests.running import Run
from tests.snapshot_files import Snapshot

RECORDS = pa.table(
    {"region": ["N", "S", "N", "E"] * 40, "age": ["1", "2", "1"] * 53 + ["1"], "record_key": [place * 7919 % 256 for place in range(160)]}
)
NOISE = PerturbationTable.from_probabilities({1: {0: "1/2", 1: "1/2"}, 2: {-1: "1/4", 0: "1/2", 1: "1/4"}}, 2**8)
RULE = CellKeys.for_table(KeySpace.bits(8), NOISE)
TABLES: dict[str, Any] = {"ages": ["region", "age"], "regions": ["region"], "all": []}


def save_tables(folder: Path, records: Any = RECORDS, tables: Any = TABLES, **more: Any) -> Path:
    return release_tables(records, tables, NOISE, keys=RULE, release_id="ages").save(folder, **more)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tables(tmp_path_factory.mktemp("tables") / "out")


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "out"))


def read(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "tables.json").read_text(encoding="utf-8")))


def write(folder: Path, said: dict[str, Any]) -> None:
    """With checksums that suit the cards."""
    for table in said["tables"]:
        if (card := folder / table["name"] / "card.json").is_file():
            table["card"] = hashlib.sha256(card.read_bytes()).hexdigest()
    (folder / "tables.json").write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")


def test_what_is_said(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    monkeypatch.chdir(folder.parent)
    done = run("verify", "out", "--strict")
    assert (done.code, done.err) == (0, "")
    snapshot(done.out)
    fields = json.loads(run("verify", "out", "--json").out)
    assert (fields["tables"], fields["files"], fields["private"], fields["totals"]) == (3, 22, True, 0)
    assert fields["cells"] == sum(len(hf.load("out", table=name).table) for name in TABLES)


def test_what_is_asked_for_and_not_there(folder: Path) -> None:
    with pytest.raises(InvalidParameter, match="keep no totals"):
        verify(folder, folder / "ages" / "table.csv")
    with pytest.raises(VerificationFailed, match="holds several tables: ages, regions, all"):
        published_rows(folder)


def test_every_card_is_signed(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    (tmp_path / "key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "key.pub").write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    folder = save_tables(tmp_path / "out", sign=tmp_path / "key")
    assert verify(folder, signer=tmp_path / "key.pub").signed_by is not None
    plain = save_tables(tmp_path / "plain")
    with pytest.raises(VerificationFailed, match="Table ages: "):
        verify(plain, signer=tmp_path / "key.pub")


def list_again(folder: Path, names: Sequence[str]) -> None:
    """tables.json with checksums and gaps that suit the folders, as whoever drops or renames a table would make it."""
    made = {name: hf.load(folder / name) for name in names}
    digests = {name: hashlib.sha256((folder / name / "card.json").read_bytes()).hexdigest() for name in made}
    gaps = find_gaps({name: one.table for name, one in made.items()})
    (folder / "tables.json").write_text(describe_tables(made, digests, gaps).to_json())


def test_a_table_that_was_dropped_is_noticed(folder: Path) -> None:
    shutil.rmtree(folder / "all")
    list_again(folder, ["ages", "regions"])
    with pytest.raises(VerificationFailed, match=r"tables\.json: the cards list other tables: ages, regions, all"):
        verify(folder)


@pytest.mark.parametrize("swap", [False, True])
def test_a_table_that_was_renamed_is_noticed(folder: Path, swap: bool) -> None:
    """To a name of its own, or two for one another."""
    (folder / "all").rename(folder / "new")
    if swap:
        (folder / "regions").rename(folder / "all")
        (folder / "new").rename(folder / "regions")
    list_again(folder, ["ages", "regions", "all" if swap else "new"])
    with pytest.raises(VerificationFailed, match="has the name all on its card"):
        verify(folder)


def test_every_card_names_all_tables(folder: Path) -> None:
    for name in TABLES:
        card = hf.load(folder, table=name).card
        assert (card.release.tables, card.release.table_name) == (tuple(TABLES), name)


def test_a_table_of_another_release_is_noticed(folder: Path, tmp_path: Path) -> None:
    """Each table is in order by itself; together they are not one release."""
    for name, more in (("id", {"release_id": "other"}), ("noise", {"release_id": "ages", "mix": True})):
        other = release_tables(RECORDS, TABLES, NOISE, keys=RULE, **more).save(tmp_path / name)
        place = Path(shutil.copytree(folder, tmp_path / f"{name}-mixed"))
        shutil.rmtree(place / "all")
        shutil.copytree(other / "all", place / "all")
        hf.verify(place / "all")
        write(place, read(place))
        with pytest.raises(VerificationFailed, match="not of one release"):
            verify(place)


def test_a_table_by_another_mechanism_is_noticed(folder: Path) -> None:
    table = hf.Table.from_records(RECORDS, ["region"], universe="observed")
    shutil.rmtree(folder / "regions")
    hf.release(table, [], hf.GeneralizedLaplace(epsilon="1", per="distance"), ledger=None, release_id="ages").save(folder / "regions")
    write(folder, read(folder))
    with pytest.raises(VerificationFailed, match="regions is not by the cell key method"):
        verify(folder)


def changed(said: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    inner = said
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = to
    return said


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "gap": (lambda said: changed(said, "gaps", 0, "unequal", to=0), "gaps does not follow"),
    "gap in words": (lambda said: changed(said, "gaps", 0, "text", to="It adds up."), "gaps does not follow"),
    "no gaps": (lambda said: changed(said, "gaps", to=[]), "gaps does not follow"),
    "id": (lambda said: changed(said, "release", to="other"), "release does not follow"),
    "test key": (lambda said: changed(said, "test_key", to=True), "test_key does not follow"),
    "ledger": (lambda said: changed(said, "ledger", to=f"{'0' * 32}:1:{'0' * 64}"), "ledger does not follow"),
    "table left out": (lambda said: said["tables"].pop(), "'all' is there but not on the card"),
    "twice": (lambda said: said["tables"].append(said["tables"][0]), "two tables share a name"),
    "missing": (lambda said: said["tables"].append({**said["tables"][0], "name": "more"}), "more is missing"),
    "unknown": (lambda said: changed(said, "more", to=1), "missing, unknown or wrong values"),
    "path": (lambda said: changed(said, "tables", 0, "name", to="../x"), r"wrong values \(tables\)"),
    "text": (lambda said: changed(said, "release", to="x\nSigned by the office"), r"wrong values \(release\)"),
    "no table": (lambda said: changed(said, "tables", to=[]), r"wrong values \(tables\)"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_does_not_follow_is_said(folder: Path, name: str) -> None:
    change, words = CHANGES[name]
    said = read(folder)
    change(said)
    write(folder, said)
    with pytest.raises(VerificationFailed, match=words) as found:
        verify(folder)
    assert str(found.value).isprintable()


@pytest.mark.parametrize("name", ["table.csv", "report.html", "card.json"])
def test_changed_files_of_a_table(folder: Path, name: str) -> None:
    with open(folder / "ages" / name, "a") as file:
        file.write("\n")
    with pytest.raises(VerificationFailed, match=r"ages was changed" if name == "card.json" else f"Table ages: .*{name} has"):
        verify(folder)


def test_blanks_carry_no_message(folder: Path) -> None:
    (folder / "tables.json").write_text(json.dumps(read(folder), indent=3) + "\n")
    with pytest.raises(VerificationFailed, match=r"tables\.json is not written as Holdfast writes it"):
        verify(folder)


def put(folder: Path, name: str, content: bytes | None) -> None:
    """A file in place of what is there; None: a link to a device without end."""
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to("/dev/zero") if content is None else (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("more\nSigned by the office", b""),
        ("tables.json", b"[" * 10**5),
        ("tables.json", b"{}"),
        ("tables.json", b"\xff"),
        ("tables.json", b'{"release": "a", "release": "b"}'),
        ("tables.json", None),
        ("ages/table.csv", None),
        ("ages/card.json", None),
        ("ages/card.json", b"{}"),
    ],
)
def test_hostile_folders(folder: Path, name: str, content: bytes | None) -> None:
    put(folder, name, content)
    with pytest.raises(HoldfastError) as found:
        verify(folder)
    assert type(found.value) is VerificationFailed
    assert str(found.value).isprintable()


def test_a_link_in_place_of_a_table_is_not_followed(folder: Path, tmp_path: Path) -> None:
    shutil.move(folder / "all", tmp_path / "elsewhere")
    (folder / "all").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(VerificationFailed, match="all is no folder"):
        verify(folder)


def test_codes_that_a_spreadsheet_would_run_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    records = RECORDS.set_column(0, "region", pa.array(["=1+1", "S"] * 80))
    with caplog.at_level(logging.WARNING, "holdfast"):
        save_tables(tmp_path / "out", records, {"regions": ["region"]})
    assert ["'region' begin with =, +, - or @" in record.getMessage() for record in caplog.records] == [True]
    verify(tmp_path / "out")


def test_a_table_that_is_there_twice_is_noticed(folder: Path) -> None:
    """Under two names, with gaps made anew: each by itself is in order."""
    shutil.copytree(folder / "regions", folder / "again")
    list_again(folder, [*TABLES, "again"])
    with pytest.raises(VerificationFailed, match="two tables share a card"):
        verify(folder)
