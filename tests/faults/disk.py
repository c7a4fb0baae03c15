"""A disk that can lose power: what a process did to files, as strace saw it, and what a disk may hold after any prefix of that.

Nothing is kept before it is synced: the content of a file when the file is, its name when the folder that holds it is. A real disk may keep
more, in part; so every prefix is looked at in several ways (`WAYS`).
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

CALLS = (
    "open,openat,creat,write,pwrite64,writev,pwritev,pwritev2,lseek,truncate,ftruncate,fallocate,fsync,fdatasync,sync,syncfs,rename,renameat,"
    "renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,copy_file_range,sendfile"
)
OF_HANDLES = (
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "lseek",
    "ftruncate",
    "fallocate",
    "fsync",
    "fdatasync",
    "syncfs",
    "copy_file_range",
    "sendfile",
)
WAYS = ("synced", "names", "mixed", "all")
"""What a loss of power leaves: what was synced and nothing else; all names with the content that was synced; some of the names, in order,
and of each file some of the sectors that were not synced; everything, as after a kill."""
SECTOR = 512

Files: TypeAlias = dict[str, bytes | None]
"""Content by path below the root; None is a folder."""
Names: TypeAlias = dict[int, dict[str, int]]
"""For every folder the numbers of what it holds; the root is 0."""


@dataclass(frozen=True)
class Step:
    """One change: `what` to `path`, below the root. `other`: the second path of a rename or link."""

    what: str
    path: str
    other: str = ""
    offset: int = 0
    data: bytes = b""


def record(command: Sequence[str], root: Path, environment: dict[str, str]) -> tuple[int, list[Step]]:
    """Run a command; its exit code, and what it did below the root."""
    log = root.with_name(f"{root.name}.strace")
    strace = ["strace", "-f", "-qq", "-xx", "-y", "-s", "10000000", "-o", str(log), "-e", f"trace={CALLS}", "--seccomp-bpf"]
    done = subprocess.run([*strace, *command], cwd=root, env=environment, capture_output=True, text=True, timeout=300, check=False)
    with open(log, encoding="ascii") as lines:
        steps = list(_steps(_whole_lines(lines), str(root)))
    log.unlink()
    return done.returncode, steps


def _whole_lines(lines: Iterator[str]) -> Iterator[tuple[str, str, str]]:
    """(name, arguments, result) of every call that succeeded. A call during which another thread made one has its line in two parts."""
    begun: dict[str, str] = {}
    for line in lines:
        process, text = line.rstrip("\n").split(maxsplit=1)
        if text.endswith("<unfinished ...>"):
            begun[process] = text.removesuffix("<unfinished ...>")
            continue
        if (resumed := re.match(r"<\.\.\. \w+ resumed>", text)) is not None:
            text = begun.pop(process) + text[resumed.end() :]
        found = re.fullmatch(r"(\w+)\((.*)\)\s+= (\d+.*)", text)
        if found is not None:
            yield found[1], found[2], found[3]


_TEXT = r'"((?:\\x[0-9a-f]{2})*)"'
_HANDLE = r"(?:\d+|AT_FDCWD)<((?:\\x[0-9a-f]{2})*)>(\(deleted\))?"


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _steps(calls: Iterator[tuple[str, str, str]], root: str) -> Iterator[Step]:
    """What concerns files below the root; every call must be understood. Places in open files are counted along."""
    places: dict[str, int] = {}

    def below(folder: str, name: str) -> str | None:
        path = os.path.normpath(os.path.join(_bytes(folder).decode(), _bytes(name).decode()))
        return path[len(root) + 1 :] if path.startswith(f"{root}/") else "" if path == root else None

    def of_handle(arguments: str) -> tuple[str, str] | None:
        found = re.match(r"(\d+)<((?:\\x[0-9a-f]{2})*)>(\(deleted\))?", arguments)
        path = None if found is None or found[3] else below(found[2], "")
        return None if found is None or path is None else (found[1], path)

    for name, arguments, result in calls:
        paths: list[str | None] = []
        if name in ("open", "creat", "rename", "unlink", "mkdir", "rmdir", "link", "truncate", "symlink"):
            paths = [below(os.fsencode(root).hex(), text) for text in re.findall(_TEXT, arguments)]  # which is the current folder
        elif name not in OF_HANDLES:
            paths = [below(folder, text) for folder, _, text in re.findall(f"{_HANDLE}, {_TEXT}", arguments)]
        if name.startswith("symlink"):
            paths = paths[-1:]  # the first is what it leads to
        if name in ("openat", "open", "creat"):
            if (path := paths[0]) is not None:
                places[f"{result.split('<')[0]} {path}"] = 0
                if "O_CREAT" in arguments or name == "creat":
                    yield Step("create", path)
                if "O_TRUNC" in arguments:
                    yield Step("truncate", path)
                assert "O_APPEND" not in arguments, arguments
            continue
        if name in OF_HANDLES:
            held = of_handle(arguments)
            if held is None:
                continue
            key, path = " ".join(held), held[1]
            size = int(result.split()[0])
            if name in ("fsync", "fdatasync"):
                yield Step("sync", path)
            elif name == "lseek":
                places[key] = size
            elif name == "ftruncate":
                yield Step("truncate", path, offset=int(arguments.rsplit(", ", 1)[1]))
            elif name not in ("write", "pwrite64"):
                raise AssertionError(f"{name} is not understood: {arguments[:200]}")
            else:
                data = _bytes(re.search(_TEXT, arguments)[1])[:size]  # type: ignore[index]
                assert len(data) == size, arguments[:200]
                offset = int(arguments.rsplit(", ", 1)[1]) if name == "pwrite64" else places[key]
                places[key] = offset + size if name == "write" else places[key]
                yield Step("write", path, offset=offset, data=data)
            continue
        if not any(path is not None for path in paths):
            continue
        assert all(path is not None for path in paths), arguments
        yield _of_names(name, arguments, str(paths[0]), str(paths[-1]))


def _of_names(name: str, arguments: str, first: str, other: str) -> Step:
    if name in ("rename", "renameat", "renameat2"):
        return Step("exchange" if "RENAME_EXCHANGE" in arguments else "rename", first, other)
    if name in ("unlink", "unlinkat", "rmdir"):
        return Step("remove", first)
    if name in ("link", "linkat"):
        return Step("link", first, other)
    if name in ("mkdir", "mkdirat"):
        return Step("mkdir", first)
    raise AssertionError(f"{name} is not understood: {arguments[:200]}")


@dataclass
class Disk:
    """Names and content as the process sees them, and as they were synced."""

    names: Names = field(default_factory=lambda: {0: {}})
    content: dict[int, bytes] = field(default_factory=dict)
    kept_names: Names = field(default_factory=lambda: {0: {}})
    kept_content: dict[int, bytes] = field(default_factory=dict)
    folders: set[int] = field(default_factory=lambda: {0})
    before: list[Names] = field(default_factory=list)
    """The names after each step since a folder was synced."""
    _next: int = 1

    @classmethod
    def holding(cls, files: Files) -> Disk:
        """These files, all on disk for long."""
        disk = cls()
        for path, data in files.items():
            disk.apply(Step("mkdir" if data is None else "create", path))
            if data:
                disk.apply(Step("write", path, data=data))
        for path in ("", *files):
            disk.apply(Step("sync", path))
        return disk

    def apply(self, step: Step) -> None:
        folder, name = self._place(step.path)
        if step.what == "create":
            if name not in folder:
                folder[name] = self._new()
                self.content[folder[name]] = b""
        elif step.what == "mkdir":
            folder[name] = self._new()
            self.names[folder[name]] = {}
            self.folders.add(folder[name])
        elif step.what == "write":
            old = self.content[folder[name]].ljust(step.offset, b"\0")
            self.content[folder[name]] = old[: step.offset] + step.data + old[step.offset + len(step.data) :]
        elif step.what == "truncate":
            self.content[folder[name]] = self.content[folder[name]][: step.offset].ljust(step.offset, b"\0")
        elif step.what == "remove":
            del folder[name]
        elif step.what in ("rename", "exchange", "link"):
            other, its_name = self._place(step.other)
            mine, theirs = folder[name], other.get(its_name)
            other[its_name] = mine
            if step.what == "rename":
                del folder[name]
            elif step.what == "exchange":
                assert theirs is not None
                folder[name] = theirs
        else:
            assert step.what == "sync", step.what
            self._sync(0 if not step.path else folder[name])
        self.before.append({number: dict(held) for number, held in self.names.items()})

    def _sync(self, number: int) -> None:
        if number in self.folders:
            self.kept_names[number] = dict(self.names[number])
            self.before.clear()
        else:
            self.kept_content[number] = self.content[number]

    def _new(self) -> int:
        self._next += 1
        return self._next

    def _place(self, path: str) -> tuple[dict[str, int], str]:
        *folders, name = path.split("/")
        number = 0
        for part in folders:
            number = self.names[number][part]
        return self.names[number], name

    def after(self, way: str, seed: int) -> Files:
        """What is there when power comes back."""
        chance = random.Random(seed)
        names, content = self.names, self.content
        if way in ("synced", "names"):
            names, content = self.kept_names if way == "synced" else self.names, self.kept_content
        elif way == "mixed":
            names = chance.choice(self.before) if self.before else self.names
            content = {number: _mixed(self.kept_content.get(number, b""), new, chance) for number, new in sorted(self.content.items())}
        return self._files(names, content, 0, "")

    def _files(self, names: Names, content: dict[int, bytes], number: int, path: str) -> Files:
        found: Files = {}
        for name, held in names.get(number, {}).items():
            if held in self.folders:
                found |= {path + name: None} | self._files(names, content, held, f"{path}{name}/")
            else:
                found[path + name] = content.get(held, b"")
        return found


def _mixed(old: bytes, new: bytes, chance: random.Random) -> bytes:
    """Sectors of two contents, each as it was or as it should be; where the file grew, zeros or nothing may stand for what is missing."""
    if old == new:
        return new
    length = chance.choice([len(old), len(new)])
    parts = [chance.choice([old, new])[start : start + SECTOR].ljust(SECTOR, b"\0") for start in range(0, length, SECTOR)]
    return b"".join(parts)[:length]


def read(root: Path) -> Files:
    """What is below a folder."""
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in sorted(root.rglob("*"))}


def put(root: Path, files: Files) -> None:
    """Make a folder hold this and nothing else."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(mode=0o755)
    for path, data in sorted(files.items()):
        place = root / path
        if data is None:
            place.mkdir(mode=0o700, exist_ok=True)
        else:
            place.write_bytes(data)
            place.chmod(0o600)
