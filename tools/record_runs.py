"""Record what the command line does with the run files of tests/runs, so that two versions of the code can be compared.

    python tools/record_runs.py record OUT.json [--src SRC] [--only WORD]
    python tools/record_runs.py compare OLD.json NEW.json

Every run file is run in a copy of the folder: `plan`, `plan --json`, `release -o out`, `verify out`. Lines `#before: ARGUMENTS` and
`#after: ARGUMENTS` of a run file are commands around these (a grant, an earlier release, `ledger show`); a line `#slow` leaves the plans
out. Recorded are output, exit codes, the card, kept totals, the text of the pages, and the table. What chance decides is dropped: released
counts (those with no error stay), checksums and sizes of files that hold them, hashes of the ledger, signatures, today's date.

`compare` prints every difference once, with all places and run files where it occurs, and returns 1 if there is any. Texts are compared by
sentence, JSON by path; the order of keys does not count.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parent.parent
RUNS = ROOT / "tests" / "runs"
SECONDS = 300
"""A command that takes longer is ended, and recorded so."""
AT_ONCE = 2

Record: TypeAlias = dict[str, Any]
"""What one run file did: texts, exit codes and JSON by name."""

RANDOM = [
    (re.compile(r"[0-9a-f]{32}:[0-9]+:[0-9a-f]{64}"), "<ledger entry>"),
    (re.compile(r"^(Ledger +)[0-9a-f]{32}", re.MULTILINE), r"\1<ledger>"),
    (re.compile(r"^(  )20[0-9]{2}-[0-9]{2}-[0-9]{2}(?=  )", re.MULTILINE), r"\1<day>"),
]


def record(src: Path, only: str = "") -> dict[str, Record]:
    """The records of all run files whose name holds this word."""
    names = sorted(path.name for path in RUNS.glob("*.toml") if only in path.name)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(lambda name: _record_one(name, src), names), strict=True))


def _record_one(name: str, src: Path) -> Record:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="holdfast-record-") as made:
        folder = Path(made).resolve() / "runs"
        shutil.copytree(RUNS, folder)
        _write_key(folder)
        found: Record = {}

        def run(*arguments: str) -> None:
            said = shlex.join(arguments).replace(name, "RUN")
            found[f"{said} (again)" if said in found else said] = _run(arguments, folder, src)

        for command in _commands(folder / name, "before"):
            run(*command)
        if "#slow" not in (folder / name).read_text(encoding="utf-8").splitlines():
            run("plan", name)
            run("plan", name, "--json")
        run("release", name, "-o", "out")
        if (folder / "out").exists():
            found |= _published(folder / "out")
            run("verify", "out")
        for command in _commands(folder / name, "after"):
            run(*command)
    print(f"{time.monotonic() - began:6.1f} s  {name}", file=sys.stderr)
    return found


def _commands(path: Path, when: str) -> list[list[str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [shlex.split(line.removeprefix(f"#{when}: ")) for line in lines if line.startswith(f"#{when}: ")]


def _write_key(folder: Path) -> None:
    """Write a key to sign with, always the same so that its public part can be compared, and one that chooses records."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "key.pem").chmod(0o600)
    (folder / "sample.key").write_text("5a" * 32, encoding="utf-8")
    (folder / "sample.key").chmod(0o600)
    (folder / "key.pub").write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def _run(arguments: tuple[str, ...], folder: Path, src: Path) -> Record:
    """What a command prints and returns; output that is one JSON object is kept as such."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    mine["HOLDFAST_STATE"] = str(folder.parent / "state")
    environment = {**mine, "PYTHONPATH": str(src), "COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "holdfast.cli.commands", *arguments]
    try:
        ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"exit": f"none within {SECONDS} s"}
    out, err = (_without_chance(text).replace(str(folder), "<folder>").replace(str(src), "<src>") for text in (ran.stdout, ran.stderr))
    return {"exit": ran.returncode, "out": _parsed(out) if "--json" in arguments else out, "err": err}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _without_chance(text: str) -> str:
    for pattern, word in RANDOM:
        text = pattern.sub(word, text)
    return text


def _published(out: Path) -> Record:
    """What is in an output folder, as far as chance does not decide it."""
    found: Record = {"files of out": sorted(path.name for path in out.iterdir())}
    card = json.loads((out / "card.json").read_text(encoding="utf-8"))
    exact = {name: file if name == "kept.csv" else sorted(file) for name, file in card.get("files", {}).items()}
    found["card.json"] = json.loads(_without_chance(json.dumps({**card, "files": exact})))
    if card.get("signature"):
        found["card.json"]["signature"]["value"] = "<signature>"
    found["kept.csv"] = (out / "kept.csv").read_text(encoding="utf-8")
    if (out / "table.csv").exists():
        found["table.csv"] = _table(out / "table.csv")
    for page in sorted(out.glob("*.html")):
        found[page.name] = _page(page.read_text(encoding="utf-8"))
    return found


def _table(path: Path) -> str:
    """The released table: codes, count, standard deviation, whether it is exposed. A count stays if it has no error or was left out."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    for row in rows:
        if row[-3] and row[-2] != "0":
            row[-3] = "<count>"
    return "\n".join(map(",".join, [header, *rows]))


def _page(text: str) -> str:
    """The words of a page, one element a line, without styles and charts."""
    words = re.sub(r"(?s)<(style|svg|script)\b.*?</\1>|<[^>]*>", "\n", text)
    return _without_chance("\n".join(line.strip() for line in html.unescape(words).splitlines() if line.strip()))


def compare(old: dict[str, Record], new: dict[str, Record]) -> Iterator[str]:
    """One text for every difference, with the places and run files where it occurs; the most frequent first."""
    places: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in sorted(old.keys() & new.keys()):
        before, after = dict(_flat(old[name])), dict(_flat(new[name]))
        for place in [*before, *(place for place in after if place not in before)]:
            for difference in _differences(before.get(place, []), after.get(place, [])):
                places[difference][place].append(name.removesuffix(".toml"))
    for names, where in ((old.keys() - new.keys(), "old"), (new.keys() - old.keys(), "new")):
        if names:
            yield f"Only in the {where} record: {', '.join(sorted(names))}"
    for difference, found in sorted(places.items(), key=lambda item: -max(map(len, item[1].values()))):
        by_names: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for place, names_there in found.items():
            by_names[tuple(dict.fromkeys(names_there))].append(place)
        heads = [f"{chr(10).join(there)}\n  in {len(names)}: {', '.join(names)}" for names, there in by_names.items()]
        yield "\n".join([*heads, difference])


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, list[str]]]:
    """(place, lines) of everything in a record; all entries of a list of plain values are at one place."""
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _flat(value[key], f"{place} > {key}" if place else key)
    elif isinstance(value, list) and any(isinstance(entry, dict | list) for entry in value):
        for number, entry in enumerate(value):
            yield from _flat(entry, f"{place}[{number}]")
    elif isinstance(value, list) and value:
        yield place, [json.dumps(entry) for entry in value]
    elif isinstance(value, str) and not re.fullmatch(r"[-+.0-9e]*|true|false|null", value):
        yield place, re.split(r"\n|(?<=\.) ", value)
    else:
        yield place, [json.dumps(value)]


def _differences(old: list[str], new: list[str]) -> Iterator[str]:
    """The hunks of a unified diff without context."""
    lines = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
    hunk: list[str] = []
    for line in [*lines, "@@"]:
        if line.startswith("@@"):
            if hunk:
                yield "\n".join(hunk)
            hunk = []
        else:
            hunk.append(line)


def main() -> int:
    """Record, or compare two records; 1 if they differ."""
    parser = argparse.ArgumentParser(description="Record what the command line does with the run files of tests/runs.")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("out", type=Path)
    recording.add_argument("--src", type=Path, default=ROOT / "src", help="the folder that holds the package")
    recording.add_argument("--only", default="", help="only run files whose name holds this word")
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    given = parser.parse_args()
    if given.command == "record":
        found = record(given.src.resolve(), given.only)
        given.out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{len(found)} run files recorded")
        return 0
    differences = list(compare(*(json.loads(path.read_text(encoding="utf-8")) for path in (given.old, given.new))))
    print("\n\n".join([*differences, f"{len(differences)} differences"]))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
