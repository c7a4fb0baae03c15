"""Which files of the package one small release runs through, and how often it goes from one to another.

    python tools/trace_release.py [--src SRC] [--mechanism NAME] [--counts] [--table] [--warm] [--skip FOLDER ...]

The release is a 4 x 4 table with both margins kept, GeneralizedLaplace with epsilon 1/4 (or the mechanism that `--mechanism` names as run
files do, with the budget of its example) and a test key, drawn by `hf.release` and written by `.save`; with `--table`, building the Table
is traced too. It is made untraced first, so that modules are loaded and loops compiled;
caches (lru_cache) are then emptied, because a new process begins without them (`--warm` leaves them), and the release is made again, with a
new key object of the same test seed and another folder, under sys.setprofile.

    entry     a call of a Python function of the package, or the resumption of one of its generators; comprehensions of Python 3.11 count
    switch    two entries that follow each other and whose files differ; how many there are depends on how often a draw is tried, so that
              switches between the same two functions are also counted once (and `--skip` leaves out folders, such as that of the streams)
    crossing  the same with returns: control goes from a file to another, by a call or back by a return

Code outside the package (NumPy, PyArrow, Numba's compiled loops, generated methods of dataclasses) is not seen; what it calls back is.

`--counts` lists the files that a confidential count passes. The true counts are numbers that occur nowhere else: at every entry and every
return the function's locals are searched for them by value, in integers, arrays, texts, bytes, lists and Arrow columns. Unlike identity or
shared memory this finds copies, picked cells, lists and texts made of them too. Where only an attribute of an object of the package has
them (a Table that is handed on), the file is listed as carrying them. Since a released count without noise equals the true one, keys are
tried until every cell got some; since fresh memory may hold an old copy of the counts, np.empty gives zeros while this is traced. What is
missed: sums and digests of counts, and what lives only between an entry and a return.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
COUNTS = [1_000_003 + 104_729 * place for place in range(16)]
"""True counts that no sum, size or released count equals by chance."""
SECRETS = np.array(COUNTS)
TEXTS = {str(number) for number in COUNTS}
BYTES = [number.to_bytes(8, "little") for number in COUNTS]
DEEPEST = 4


def holds_counts(value: Any, depth: int = 0) -> bool:
    """Whether a plain value (number, text, bytes, array, container, Arrow data) has a true count in it."""
    if isinstance(value, int | np.integer):
        return int(value) in COUNTS
    if isinstance(value, np.ndarray):
        return bool(np.isin(value, SECRETS).any()) if value.dtype.kind in "iuf" else holds_counts(value.ravel().tolist(), depth)
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
        return any(number in raw for number in BYTES) or any(text.encode() in raw for text in TEXTS)
    if isinstance(value, str):
        return any(text in value for text in TEXTS)
    if type(value).__module__.startswith("pyarrow") and hasattr(value, "to_pylist"):
        return holds_counts(value.to_pylist(), depth)
    if depth < DEEPEST and isinstance(value, list | tuple | set | frozenset):
        return any(holds_counts(entry, depth + 1) for entry in value)
    if depth < DEEPEST and isinstance(value, dict):
        return any(holds_counts(entry, depth + 1) for entry in value.values())
    return False


def carries_counts(value: Any, package: str, seen: set[int], depth: int = 0) -> bool:
    """Whether an object of the package has a true count in an attribute, or in one of an object below it. Runs no code of the package."""
    if depth > DEEPEST or id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value, list | tuple):
        parts = list(value)
    elif isinstance(value, dict):
        parts = list(value.values())
    elif type(value).__module__.split(".")[0] == package:
        parts = [*getattr(value, "__dict__", {}).values(), *_slots(value)]
    else:
        return False
    return any(holds_counts(part) or carries_counts(part, package, seen, depth + 1) for part in parts)


def _slots(value: Any) -> Iterator[Any]:
    for kind in type(value).__mro__:
        names = kind.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            descriptor = kind.__dict__.get(name)
            if descriptor is not None and hasattr(value, name):
                yield getattr(value, name)


class Trace:
    """Entries, switches and crossings of what runs inside `with`."""

    def __init__(self, package: Path, counts: bool, skip: tuple[str, ...] = ()) -> None:
        self.package = package
        self.skip = skip
        self.search = counts
        self.entries: Counter[str] = Counter()
        self.switches: Counter[tuple[str, str]] = Counter()
        self.crossings = 0
        self.imported: set[str] = set()
        self.holders: dict[str, Counter[str]] = {}
        self.carriers: dict[str, Counter[str]] = {}
        self._entered = self._at = ""
        self._names: dict[str, str | None] = {}

    def __enter__(self) -> Trace:
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        file = self._file(frame.f_code.co_filename)
        if file is None:
            return
        if frame.f_code.co_name == "<module>":
            self.imported.add(file)
            return
        if event == "call":
            self.entries[file] += 1
            function = f"{file}: {frame.f_code.co_qualname}"
            if self._entered and self._entered.partition(":")[0] != file:
                self.switches[self._entered, function] += 1
            self._entered = function
            self._go(file)
        else:
            self._go(file)
            caller: FrameType | None = frame.f_back
            while caller is not None and (above := self._file(caller.f_code.co_filename)) is None:
                caller = caller.f_back
            if caller is not None and above is not None:
                self._go(above)
        if self.search:
            self._look(frame, file)

    def _go(self, file: str) -> None:
        self.crossings += self._at not in ("", file)
        self._at = file

    def _file(self, name: str) -> str | None:
        """The name of a file within the package; None for any other, and in folders that are skipped."""
        if name not in self._names:
            path = Path(name)
            inside = path.is_relative_to(self.package) and path.relative_to(self.package).parts[0] not in self.skip
            self._names[name] = str(path.relative_to(self.package)) if inside else None
        return self._names[name]

    def _look(self, frame: FrameType, file: str) -> None:
        values = list(frame.f_locals.values())
        function = frame.f_code.co_qualname
        if any(map(holds_counts, values)):
            self.holders.setdefault(file, Counter())[function] += 1
        elif any(carries_counts(value, self.package.name, set()) for value in values):
            self.carriers.setdefault(file, Counter())[function] += 1

    def words(self) -> str:
        """The figures as text."""
        out = [f"{number:3} {entries:6,} {file}" for number, (file, entries) in enumerate(self.entries.items(), 1)]
        out.append(f"{len(self.entries)} files, {self.entries.total():,} entries")
        out.append(f"{self.switches.total():,} switches, {len(self.switches):,} between different functions; {self.crossings:,} crossings")
        if self.imported:
            out.append(f"Loaded while traced (the warm-up did not): {', '.join(sorted(self.imported))}")
        for title, found in (("hold", self.holders), ("only carry", {f: c for f, c in self.carriers.items() if f not in self.holders})):
            if self.search:
                out.append(f"\n{len(found)} files {title} a true count:")
                out += [f"    {file}: {', '.join(dict.fromkeys(functions))}" for file, functions in found.items()]
        return "\n".join(out)


def example_of(name: str) -> Callable[[], Any]:
    """What makes the mechanism of this name, with the budget per unit of distance that its first key has as an example."""
    from holdfast.mechanisms.registry import mechanism_class

    if name == "cell-key":
        from holdfast.cellkey import PerturbationTable
        from holdfast.mechanisms import CellKey

        return partial(CellKey, table=PerturbationTable.from_probabilities({1: {-1: "1/2", 1: "1/2"}}, 2**16))
    kind: Callable[..., Any] = mechanism_class(name)
    budget = {key.name: key.example.strip('"') for key in mechanism_class(name).run_file_keys[:1]}
    return partial(kind, **budget, per="distance") if budget else kind


def one_release(seed: int, folder: Path, mechanism: str, trace: Trace | None = None, with_table: bool = False) -> bool:
    """Draw and save the release under this test key; whether every released count differs from the true one."""
    import pyarrow as pa

    import holdfast as hf

    rows, columns = [row for row in "abcd" for _ in range(4)], list("pqrs") * 4
    keys = [(place + 1) * 2654435761 % 2**32 for place in range(len(COUNTS))]
    data, key = pa.table({"row": rows, "column": columns, "people": COUNTS, "key": keys}), hf.NoiseKey.for_tests(seed)
    keep = [] if mechanism == "cell-key" else [hf.margin("row"), hf.margin("column")]
    make = example_of(mechanism)
    nothing: nullcontext[None] = nullcontext()
    with trace if trace is not None and with_table else nothing:
        table = hf.Table.from_counts(data, cells=["row", "column"], count="people", cell_key="key")
    with nothing if trace is None else trace:
        release = hf.release(table, keep, make(), key=key)
        release.save(folder)
    return not holds_counts(release.table.counts)


def empty_caches(package: str) -> None:
    """Empty every lru_cache of the package's functions and methods."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == package:
            for found in list(vars(module).values()):
                for one in (found, *(vars(found).values() if isinstance(found, type) else ())):
                    if callable(getattr(one, "cache_clear", None)):
                        one.cache_clear()


def main() -> None:
    """Print the figures of one release."""
    parser = argparse.ArgumentParser(description="Which files of the package one small release runs through.")
    parser.add_argument("--src", type=Path, default=ROOT / "src", help="the folder that holds the package")
    parser.add_argument("--mechanism", default="generalized-laplace", help="its name, as in run files")
    parser.add_argument("--counts", action="store_true", help="list the files that a true count passes")
    parser.add_argument("--table", action="store_true", help="trace the building of the table too")
    parser.add_argument("--warm", action="store_true", help="leave the caches of the first release")
    parser.add_argument("--skip", nargs="*", default=[], help="folders of the package that are not seen")
    given = parser.parse_args()
    src = given.src.resolve()
    sys.path.insert(0, str(src))
    trace = Trace(src / "holdfast", given.counts, tuple(given.skip))
    with tempfile.TemporaryDirectory() as made:
        seed = next(seed for seed in count(1) if one_release(seed, Path(made) / f"untraced {seed}", given.mechanism))
        if not given.warm:
            empty_caches("holdfast")
        with mock.patch.object(np, "empty", np.zeros) if given.counts else nullcontext():
            one_release(seed, Path(made) / "traced", given.mechanism, trace, given.table)
    print(trace.words())


if __name__ == "__main__":
    main()
