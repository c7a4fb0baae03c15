"""Whoever reads a publication can say who must have signed it: every reader, by command and in Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

import holdfast as hf
from holdfast import research
from holdfast.errors import InvalidParameter, VerificationFailed
from holdfast.runfiles.runfile import load_run
from holdfast.verification.verify import published_rows
from tests.running import Run

CODES = {"state": ["17", "17", "17", "18", "18"], "county": ["031", "043", "097", "001", "003"]}
RUN = """\
[table]
source = "counties.csv"
cells = ["state", "county"]
count = "people"
public = true
[keep]
margins = [["state"]]
[release]
id = "later"
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
ledger = "none"
revises = "FOLDER"
revises_signer = "PEM"
"""


def write_keys(folder: Path, name: str, seed: int) -> None:
    key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
    (folder / f"{name}.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / f"{name}.pem").chmod(0o600)
    (folder / f"{name}.pub").write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three folders with the same table: signed by the office, by a stranger, by nobody."""
    place = tmp_path_factory.mktemp("signed")
    for seed, name in enumerate(("office", "stranger"), 1):
        write_keys(place, name, seed)
    table = hf.Table(hf.Universe.listed(CODES), np.array([5195, 932, 714, 35, 385]))
    for name, sign in {"good": place / "office.pem", "other": place / "stranger.pem", "bare": None}.items():
        made = hf.release(
            table,
            [hf.margin("state")],
            hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
            key=hf.NoiseKey.for_tests("s"),
            release_id="towns",
        )
        made.save(place / name, sign=sign)
    rows = ["state,county,people", "17,031,5195", "17,043,932", "17,097,714", "18,001,35", "18,003,385"]
    (place / "counties.csv").write_text("\n".join(rows) + "\n")
    return place


@pytest.fixture
def place(saved: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(saved)
    return saved


READERS: dict[str, Callable[[Path, Path], Any]] = {
    "verify": lambda folder, signer: hf.verify(folder, signer=signer),
    "load": lambda folder, signer: hf.load(folder, signer=signer),
    "published_rows": lambda folder, signer: published_rows(folder, signer=signer),
    "simulate": lambda folder, signer: research.simulate(folder, 3, signer=signer),
    "posterior": lambda folder, signer: research.posterior(folder, research.priors.Poisson(1000.0), 0, signer=signer),
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "verify": ("verify", "FOLDER"),
    "interval": ("interval", "FOLDER", "--where", "county = '031'"),
    "view": ("view", "FOLDER"),
}
REFUSED = {
    "other": "The card is signed, but not by the key that you named ('office.pub'). Check that this is the key the office publishes",
    "bare": "The card is not signed, and --signer asks for a signature.",
}


@pytest.mark.parametrize("reader", READERS)
def test_in_python(place: Path, reader: str) -> None:
    read = READERS[reader]
    assert read(place / "good", place / "office.pub") is not None
    for name, why in REFUSED.items():
        with pytest.raises(VerificationFailed, match=f"^{re.escape(why)}"):  # and not that the folder is broken
            read(place / name, place / "office.pub")


@pytest.mark.parametrize("command", COMMANDS)
def test_by_command(place: Path, run: Run, command: str) -> None:
    def call(folder: str) -> Any:
        return run(*(folder if part == "FOLDER" else part for part in COMMANDS[command]), "--signer", "office.pub")

    assert call("good").code == 0
    for name, why in REFUSED.items():
        ran = call(name)
        assert (ran.code, ran.out) == (VerificationFailed.exit_code, "")
        assert why in ran.err


def test_the_release_that_is_revised(place: Path, run: Run, tmp_path: Path) -> None:
    """Its totals stand on the card of the revision; nothing checked whose they are, nor whether a signature holds."""
    for name, code in {"good": 0, "other": VerificationFailed.exit_code, "bare": VerificationFailed.exit_code}.items():
        (place / "later.toml").write_text(RUN.replace("FOLDER", name).replace("PEM", "office.pub"))
        ran = run("release", "later.toml", "-o", tmp_path / name)
        assert ran.code == code, ran.err
        assert REFUSED.get(name, "") in ran.err
        assert (tmp_path / name).exists() == (name == "good")


def test_a_signer_of_no_release_is_refused(place: Path) -> None:
    (place / "later.toml").write_text(RUN.replace('revises = "FOLDER"\n', "").replace("PEM", "office.pub"))
    with pytest.raises(hf.errors.InvalidRun, match="revises_signer goes with revises"):
        load_run(place / "later.toml")


def test_cards_that_a_ledger_is_compared_with(place: Path, run: Run, tmp_path: Path) -> None:
    """The ledger's own check of cards asks too, also of card.json alone; other files of the folder are not read by it."""
    ledger = tmp_path / "ledger.sqlite"
    text = RUN.replace('revises = "FOLDER"\nrevises_signer = "PEM"\n', 'sign = "office.pem"\n').replace('"none"', f'"{ledger}"')
    (place / "booked.toml").write_text(text)
    assert run("ledger", "create", "--ledger", ledger).code == 0
    assert run("release", "booked.toml", "-o", tmp_path / "out").code == 0
    for card in (tmp_path / "out", tmp_path / "out" / "card.json"):
        assert run("ledger", "verify", card, "--ledger", ledger, "--signer", "office.pub").code == 0
        ran = run("ledger", "verify", card, "--ledger", ledger, "--signer", "stranger.pub")
        assert (ran.code, ran.out) == (VerificationFailed.exit_code, "")
        assert REFUSED["other"].replace("office.pub", "stranger.pub") in ran.err


def test_what_was_read_before_has_no_signature_to_check(place: Path) -> None:
    for source in (hf.load(place / "good"), hf.load(place / "good", signer=place / "office.pub")):
        with pytest.raises(InvalidParameter, match="checked when a folder is read"):
            research.simulate(source, 3, signer=place / "office.pub")
