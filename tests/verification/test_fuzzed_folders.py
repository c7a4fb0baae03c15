"""Random changes of folders and cards, from seeds: whatever stands there, `verify` answers in its own words, or with an error of ours.

300 changes run in the ordinary tests, 6,000 more in the long group. Half of them come with checksums that fit, so that what lies behind the
checksums meets them too.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import HoldfastError
from holdfast.verification.verify import published_rows, verify
from tests.verification.test_verify_tables import save_tables

QUICK, LONG = 150, 6_150
MARK = "Signed by the office\n\x1b[1A\u202e"
"""Stands in many changes and must not come out as it is."""

VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 2**31, 2**63, -(2**63), 10**40, 0.5, 1e308, -0.0),
    *("", "0", MARK, "a" * 5000, "1/0", "1e999999999", "-1", "nan", "[" * 500, "\x00", "\ud7ff", "../x", "table.csv", "declared", "exact"),
    *([], {}, [[]], [MARK], {"": 1}, {MARK: MARK}, [None] * 3, [1, 2, 3], {"type": "margin", "kind": "kept", "columns": []}),
]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("originals")
    universe = hf.Universe.product({"area": ["a", "b", "c"], "sex": ["F", "M"]})
    table, keep = hf.Table(universe, np.arange(10, 70, 10)), (hf.margin("area"), hf.subset("sex", ["F"]))
    drawn = {
        "laplace": hf.release(
            table, [hf.margin("area")], hf.GeneralizedLaplace(epsilon="1/2", per="distance"), key=hf.NoiseKey.for_tests("f"), release_id="l"
        ),
        "gaussian": hf.release(
            table, keep, hf.GeneralizedGaussian(rho="1/2", per="distance"), key=hf.NoiseKey.for_tests("f"), release_id="g"
        ),
        "suppressed": hf.release(table, [hf.margin("area")], hf.Suppression(), release_id="s", ledger=None),
        "bounds": hf.release(
            table,
            [hf.margin("area")],
            hf.Conditional(epsilon="1/2", upper=200, gamma="best", per="distance"),
            release_id="b",
            ledger=None,
        ),
    }
    return [*(release.save(place / name) for name, release in drawn.items()), save_tables(place / "tables")]


def card_of(folder: Path) -> Path:
    return folder / ("card.json" if (folder / "card.json").exists() else "tables.json")


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def inner_places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every value inside."""
    found: list[tuple[Any, Any]] = []
    for name, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found += [(value, name), *inner_places(inner)]
    return found


def change_card(folder: Path, rng: random.Random) -> None:
    """Some fields replaced, left out, given twice or put elsewhere."""
    path = card_of(folder)
    card = json.loads(path.read_text(encoding="utf-8"))
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        container, name = rng.choice(inner_places(card))
        kind = rng.randrange(4)
        if kind == 0:
            del container[name]
        elif kind == 1 and isinstance(container, dict):
            container[rng.choice(["more", MARK, "id", "kind"])] = rng.choice(VALUES)
        elif kind == 2:
            other, place = rng.choice(inner_places(card))
            container[name] = json.loads(json.dumps(other[place]))
        else:
            container[name] = json.loads(json.dumps(rng.choice(VALUES)))
        if not inner_places(card):
            break
    path.write_text(json.dumps(card, ensure_ascii=rng.random() < 0.5), encoding="utf-8")


def change_bytes(folder: Path, rng: random.Random) -> None:
    """Bytes of one file flipped, put in, cut out, repeated, or taken from another file."""
    path = rng.choice(files_in(folder))
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 3, 20))):
        low = rng.randrange(len(data) + 1)
        high = min(len(data), low + rng.choice((1, 1, 4, 100)))
        kind = rng.randrange(5)
        if kind == 0:
            data[low:high] = rng.randbytes(high - low)
        elif kind == 1:
            data[low:low] = rng.choice([b"\xff\xff\xff\xff", b"\n", b'"', b",", b"=1+1", MARK.encode(), b"\x00", b"9" * 50])
        elif kind == 2:
            del data[low:high]
        elif kind == 3:
            data[low:low] = data[low:high]
        else:
            other = rng.choice(files_in(folder)).read_bytes()
            data[low:high] = other[low:high]
    path.write_bytes(bytes(data))


def change_files(folder: Path, rng: random.Random) -> None:
    """A file taken away, emptied, exchanged, turned into something else, or one more."""
    path = rng.choice(files_in(folder))
    kind = rng.randrange(6)
    if kind == 0:
        (folder / rng.choice(["more", MARK.replace("/", ""), ".hidden"])).write_text("")
        return
    if kind == 1:
        other = rng.choice(files_in(folder))
        path.write_bytes(other.read_bytes())
        return
    path.unlink()
    makers: list[Callable[[], object]] = [
        path.touch,
        path.mkdir,
        lambda: os.mkfifo(path),
        lambda: path.symlink_to("/dev/zero"),
        lambda: None,
    ]
    rng.choice(makers)()


def fit_checksums(folder: Path) -> None:
    """What a forger does before the folder is handed on."""
    path = card_of(folder)
    try:
        card = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except ValueError:
        return
    if not isinstance(card, dict) or not isinstance(card.get("files"), dict):
        return
    for name in card["files"]:
        if "/" not in name and "\x00" not in name and len(name) < 200 and (folder / name).is_file():
            data = (folder / name).read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            card["files"][name] = {"sha256": digest, "bytes": len(data)} if path.name == "card.json" else digest
    path.write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def check_one(original: Path, place: Path, seed: int) -> bool:
    """Whether the changed folder verifies. Whatever is said of it is ours."""
    rng = random.Random(seed)
    shutil.rmtree(place, ignore_errors=True)
    folder = Path(shutil.copytree(original, place))
    change = rng.choices((change_card, change_bytes, change_files), weights=(5, 4, 1))[0]
    change(folder, rng)
    if rng.random() < 0.5:
        fit_checksums(folder)
    for check in (verify, published_rows):
        try:
            told = str(check(folder)) if check is verify else ""
            refused = False
        except HoldfastError as error:
            told, refused = str(error), True
            assert told.isprintable(), (seed, told)
        assert MARK not in told, (seed, told)
        assert len(told) < 10_000, (seed, told[:500])
        if not refused and check is verify:
            assert all(line.startswith(OURS) for line in told.splitlines()), (seed, told)
            return True
    return False


OURS = (
    "Release ",
    "Recomputed and equal: ",
    "Not compared: ",
    "Carries a signature by an unchecked key",
    "Not signed",
    "NOT PRIVATE",
    "Tables by the cell key method, not a release",
    "Not checked, ",
    "The cell key method gives no differential privacy",
)
"""How every line begins that verify may print of a folder in order."""


def run_seeds(originals: list[Path], place: Path, seeds: range) -> int:
    """How many of them still verify: a blank put into the card, or a field that only a signature protects."""
    return sum(check_one(originals[seed % len(originals)], place, seed) for seed in seeds)


def test_some_changes(originals: list[Path], tmp_path: Path) -> None:
    assert run_seeds(originals, tmp_path / "changed", range(QUICK)) < QUICK // 10


@pytest.mark.long
def test_many_changes(originals: list[Path], tmp_path: Path) -> None:
    assert run_seeds(originals, tmp_path / "changed", range(QUICK, QUICK + LONG)) < LONG // 10
