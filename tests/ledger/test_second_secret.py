"""What draws the noise again never all passes through the database: the attack on its files, and the file that is kept apart."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

import holdfast as hf
from holdfast.engines.local import run_task
from holdfast.errors import AfterPublication, KeyMisuse, LedgerProblem, WrongState
from holdfast.ledger import Charge, Ledger
from holdfast.ledger import ledger as ledger_module
from holdfast.ledger.releases import ReleaseFacts
from holdfast.ledger.state import keep_secret
from holdfast.randomness.keys import NONCE_BYTES, SALT_BYTES, VERSION, seal
from holdfast.randomness.vault import hmac_sha256, purpose
from tests.publication.bookings import DATA, KEEP, LAPLACE, SECRET, a_release, a_table, interrupted, run, spent, state

WIDE = hf.Universe.product({"area": [f"a{number}" for number in range(24)], "sex": ["F", "M"]})
TRUTH = np.arange(48) ** 2 % 31
"""Counts with 24 free dimensions: no wrong noise fits by chance."""
SEALED_BYTES = 78
"""Version, private, salt, nonce, 32 bytes of key and the tag."""


@pytest.fixture(autouse=True)
def sealing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOLDFAST_KEY_FILE", "HOLDFAST_LEDGER", "HOLDFAST_WITNESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOLDFAST_KEY", SECRET.decode())
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "state"))


def granted(place: str | Path) -> Ledger:
    ledger = Ledger.open(place, create=True, needs_grants=True)
    ledger.grant(DATA, kind="pure", epsilon="3", approver="A. Chief", reason="the census")
    return ledger


def kept_secrets(folder: Path) -> list[Path]:
    return sorted((folder / "state" / "secrets").glob("*"))


class Spy:
    """What a ledger is given to keep, noted on its way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given: dict[str, Any] = {}
        reserve = Ledger.reserve

        def noted(*values: Any, **named: Any) -> Any:
            self.given = named
            return reserve(*values, **named)

        monkeypatch.setattr(Ledger, "reserve", noted)


def hex_runs(content: bytes, size: int) -> set[bytes]:
    """Every text of so many bytes in hexadecimal digits that stands in these files."""
    found: set[bytes] = set()
    for match in re.finditer(rb"[0-9a-f]{%d,}" % (2 * size), content):
        text = match[0]
        found.update(bytes.fromhex(text[at : at + 2 * size].decode()) for at in range(len(text) - 2 * size + 1))
    return found


def opened(sealed: bytes, seconds: Iterable[bytes]) -> bytes | None:
    """The master secret, by whoever has the secret of the office and guesses the second one."""
    salt, rest = sealed[2 : 2 + SALT_BYTES], sealed[2 + SALT_BYTES :]
    key = Scrypt(salt=salt, length=32, n=2**14, r=8, p=1).derive(SECRET)
    for second in seconds:
        try:
            header = f"holdfast sealed key {VERSION}, stream version 6, private 1".encode()
            return AESGCM(hmac_sha256(second, purpose("sealing", is_private=True) + key)).decrypt(
                rest[:NONCE_BYTES], rest[NONCE_BYTES:], header
            )
        except InvalidTag:
            continue
    return None


def reconstructed(master: bytes, digests: Iterable[bytes], published: Any) -> list[list[int]]:
    """The counts behind a published table, one try for each digest: the noise is drawn again and taken off."""
    drawing = hf.plan(a_table(TRUTH, WIDE), KEEP, LAPLACE).drawing
    channel, found = drawing.channel, []
    with hf.NoiseKey.unseal(seal(master, True, SECRET, bytes(32)), SECRET, bytes(32)) as key:
        for digest in digests:
            noise = np.zeros(len(TRUTH), dtype=np.int64)
            with key.derive("release", "r1", channel.identity, digest.hex()) as subkey:
                for task in channel.tasks():
                    with subkey.stream(*task.label) as words:
                        noise[task.cells] = run_task(drawing, task, noise[task.cells], None, words)
            found.append((published - noise).tolist())
    return found


@pytest.mark.postgres
def test_files_of_a_server_do_not_give_the_counts_back(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the close, with the secret of the office, the published folder, and all files of the server: data and write-ahead log."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA attacked")
    spy = Spy(monkeypatch)
    ledger = granted(f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3Dattacked")
    made = a_release(ledger, table=a_table(TRUTH, WIDE))
    (secret_file,) = kept_secrets(tmp_path)
    stolen = secret_file.read_bytes()
    made.save(tmp_path / "out")
    assert state(ledger) == "closed"
    assert kept_secrets(tmp_path) == []
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        (folder,) = connection.execute("SHOW data_directory").fetchone() or ("",)
    content = b"\n".join(path.read_bytes() for path in Path(folder).rglob("*") if path.is_file())

    sealed, digest, second = spy.given["sealed_key"], spy.given["input_digest"], spy.given["second_secret"]
    assert second == stolen
    found = hex_runs(content, SEALED_BYTES)
    assert sealed in found  # deleted rows and the log still hold it
    seconds = hex_runs(content, 32)
    for hidden in (second, second.hex().encode(), digest.encode(), bytes.fromhex(digest)):
        assert hidden not in content
    assert opened(sealed, seconds) is None
    published = made.table.counts
    # The same attack gives every count back to whoever stole the file before the close, and was told the digest.
    master = opened(sealed, [stolen])
    assert master is not None
    assert reconstructed(master, [bytes.fromhex(digest)], published) == [TRUTH.tolist()]
    # Without the digest it does not: what the database holds of it is a hash.
    assert TRUTH.tolist() not in reconstructed(master, seconds, published)


def test_resuming_needs_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another machine it is refused, and the charge stands; where the file is, the same bytes are drawn."""
    ledger = granted(tmp_path / "ledger.db")
    interrupted(ledger, tmp_path / "out")
    (secret_file,) = kept_secrets(tmp_path)
    assert secret_file.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("HOLDFAST_STATE", str(tmp_path / "elsewhere"))
        with pytest.raises(WrongState, match="second secret that sealed its key is not in the state folder"):
            run(Ledger.open(tmp_path / "ledger.db"), tmp_path / "out", resume=True)
        assert (state(ledger), spent(ledger)) == ("drawing", LAPLACE.epsilon * 2)
    assert run(ledger, tmp_path / "out", resume=True)
    assert state(ledger) == "closed"
    assert kept_secrets(tmp_path) == []


def test_a_file_of_another_release_opens_nothing(tmp_path: Path) -> None:
    ledger = granted(tmp_path / "ledger.db")
    interrupted(ledger, tmp_path / "out")
    (secret_file,) = kept_secrets(tmp_path)
    secret_file.write_bytes(bytes(32))
    with pytest.raises(KeyMisuse, match="cannot be opened with these secrets"):
        run(ledger, tmp_path / "out", resume=True)
    secret_file.write_bytes(b"short")
    with pytest.raises(KeyMisuse, match="is damaged"):
        run(ledger, tmp_path / "out", resume=True)
    assert spent(ledger) == LAPLACE.epsilon * 2


def test_it_is_overwritten_before_it_is_removed(tmp_path: Path) -> None:
    ledger = granted(tmp_path / "ledger.db")
    interrupted(ledger, tmp_path / "out")
    (secret_file,) = kept_secrets(tmp_path)
    before = secret_file.read_bytes()
    os.link(secret_file, tmp_path / "seen")  # another name of the same bytes
    held = ledger.reservation(DATA, "r1")
    assert held is not None
    assert held.second_secret == before
    assert ledger.void(held, "a test") is False
    assert not secret_file.exists()
    assert len((tmp_path / "seen").read_bytes()) == len(before)
    assert (tmp_path / "seen").read_bytes() != before


def test_what_a_stop_or_a_void_elsewhere_left_goes_with_the_next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = granted(tmp_path / "ledger.db")
    interrupted(ledger, tmp_path / "out")
    other = granted(tmp_path / "other.db")
    interrupted(other, tmp_path / "elsewhere")
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("HOLDFAST_STATE", str(tmp_path / "away"))
        held = Ledger.open(tmp_path / "ledger.db").reservation(DATA, "r1")
        assert held is not None
        assert held.second_secret is None
        ledger.void(held, "from another machine")
    (tmp_path / "state" / "secrets" / f"{ledger.id}-99").write_bytes(bytes(32))
    assert len(kept_secrets(tmp_path)) == 3
    a_release(ledger, "r2")
    held = ledger.reservation(DATA, "r2")
    assert held is not None
    names = [path.name for path in kept_secrets(tmp_path)]
    assert sorted(names) == sorted([f"{ledger.id}-{held.seq}", f"{other.id}-{other.reservation(DATA, 'r1').seq}"])  # type: ignore[union-attr]


def test_one_that_is_being_reserved_is_not_taken_for_left_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that looks at the ledger between the file and the commit destroyed it, and the release could not be resumed."""
    ledger, other = granted(tmp_path / "ledger"), Ledger.open(tmp_path / "ledger")
    looking = Thread(target=other.check_witness)

    def kept(*values: Any) -> None:
        keep_secret(*values)
        looking.start()
        looking.join(1)

    monkeypatch.setattr(ledger_module, "keep_secret", kept)
    charge, now = Charge("pure", epsilon=Fraction(1, 2)), "2030-04-01T12:00:00Z"
    ledger.reserve(
        DATA, "r1", charge, ReleaseFacts(protect="person"), sealed_key=b"1" * 32, second_secret=b"2" * 32, input_digest="d", now=now
    )
    looking.join()
    assert [path.read_bytes() for path in kept_secrets(tmp_path)] == [b"2" * 32]


def test_a_secret_that_cannot_be_kept_or_destroyed(tmp_path: Path) -> None:
    ledger = granted(tmp_path / "ledger.db")
    (tmp_path / "state" / "secrets").write_text("a file where the folder should be")
    with pytest.raises(LedgerProblem, match=r"could not be kept .* Nothing was charged"):
        a_release(ledger)
    assert state(ledger) is None
    assert spent(ledger) == 0
    (tmp_path / "state" / "secrets").unlink()
    made = a_release(ledger)
    (secret_file,) = kept_secrets(tmp_path)
    secret_file.unlink()
    secret_file.mkdir()
    with pytest.raises(AfterPublication, match="could not be destroyed"):
        made.save(tmp_path / "out")
    assert state(ledger) == "published"
    secret_file.rmdir()
    run(ledger, tmp_path / "out", resume=True)
    assert state(ledger) == "closed"
