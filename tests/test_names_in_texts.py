"""Texts name what exists: Python names and file names in docstrings, messages, comments, the catalogue and the documentation."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "holdfast"
PLACES = (ROOT, ROOT / "src", SOURCE, ROOT / "docs", ROOT / "tests")
"""Where a path with a folder may begin, besides the folder of the file that names it."""

PYTHON_NAME = re.compile(r"(?<![\w./~-])(?:holdfast|hf)((?:\.[A-Za-z_]\w*)+)(?![\w-]*/)")
FILE_NAME = re.compile(r"(?<![\w./*{}-])((?:[\w-]+/)*[\w-]+\.(?:py|md|sh))\b(?!\.\w)")
MEMBER = re.compile(r"(?<![\w./])([A-Z]\w*[a-z]\w*)\.([a-z_]\w+)")
FILES_THAT_COMMANDS_WRITE = {"holdfast.schema.json", "holdfast.fish", "holdfast.sqlite", "holdfast.toml"}
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]


def strings_and_comments(content: str) -> Iterator[tuple[int, str]]:
    """The lines of every string and comment of a Python file, with their numbers."""
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from enumerate(node.value.splitlines(), node.lineno)
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@cache
def lines_of(path: Path) -> list[tuple[int, str]]:
    content = path.read_text(encoding="utf-8")
    return list(strings_and_comments(content) if path.suffix == ".py" else enumerate(content.splitlines(), 1))


def texts() -> list[Path]:
    code = [*SOURCE.rglob("*.py"), *(SOURCE / "wording").rglob("*.toml")]
    return sorted([*code, *(ROOT / "docs").rglob("*.md"), *PAGES])


@cache
def resolves(dotted: str) -> bool:
    """Whether `holdfast.a.b` is a module, or an attribute or field of one."""
    first, *rest = dotted.split(".")
    value: object = importlib.import_module(first)
    for i, name in enumerate(rest, 2):
        if not hasattr(value, name) and name not in getattr(value, "__annotations__", ()):
            module = ".".join(dotted.split(".")[:i])
            if not hasattr(value, "__path__") or importlib.util.find_spec(module) is None:
                return False
            importlib.import_module(module)
        value = getattr(value, name, None)
    return True


def unknown_names(path: Path) -> list[str]:
    """`file:line: name` for each Python name in the file's texts that does not exist."""
    return [
        f"{path.name}:{line}: {match[0]}"
        for line, text in lines_of(path)
        for match in PYTHON_NAME.finditer(text)
        if match[0] not in FILES_THAT_COMMANDS_WRITE and not resolves(f"holdfast{match[1]}")
    ]


def missing_files(path: Path) -> list[str]:
    """`file:line: name` for each file name in the file's texts that is not in the tree."""
    return [f"{path.name}:{line}: {name}" for line, text in lines_of(path) for name in missing_in_line(text, path.parent)]


def missing_in_line(text: str, folder: Path) -> Iterator[str]:
    """A name without a folder is beside the file that names it, beside the file named before it in the line, or on top of the tree."""
    before = folder
    for match in FILE_NAME.finditer(text):
        name = match[1]
        places = (folder, before, *(PLACES if "/" in name else (ROOT,)))
        found = next((place / name for place in places if (place / name).is_file()), None)
        if found is None:
            yield name
        else:
            before = found.parent


@cache
def members() -> dict[str, set[str]]:
    """Of each class of ours, by its name, every name that its body mentions."""
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, set()).update(names_within(node))
    return found


def names_within(node: ast.AST) -> set[str]:
    fields = ("name", "id", "attr")
    return {value for part in ast.walk(node) for field in fields if isinstance(value := getattr(part, field, None), str)}


def unknown_members(path: Path) -> list[str]:
    """`file:line: Class.member` for each such name in the file's texts that no class of ours has."""
    return [
        f"{path.name}:{line}: {match[0]}"
        for line, text in lines_of(path)
        for match in MEMBER.finditer(text)
        if match[2] not in members().get(match[1], ())
    ]


def test_every_python_name_exists() -> None:
    assert [one for path in texts() for one in unknown_names(path)] == []


def test_every_file_name_exists() -> None:
    assert [one for path in texts() for one in missing_files(path)] == []


def test_every_member_of_a_class_exists() -> None:
    assert [one for path in texts() for one in unknown_members(path)] == []


def test_no_module_calls_itself_another_file() -> None:
    """Text that was moved along with code still names the file that it has become part of."""
    docstrings = {path: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "" for path in SOURCE.rglob("*.py")}
    assert [str(path) for path, text in docstrings.items() if path.name in FILE_NAME.findall(text)] == []


@pytest.mark.parametrize(
    ("text", "names", "files", "of_classes"),
    [
        ("Use holdfast.release and hf.Table.from_counts (exact/table.py, wide.py).", 0, 0, 0),
        ("Use holdfast.released.", 1, 0, 0),
        ("hf.Table.from_nothing, hf.no_such_name", 2, 0, 0),
        ("See exact/tables.py.", 0, 1, 0),
        ("See wide.py; exact/table.py", 0, 1, 0),
        ("Table.from_counts, Tables.from_counts, Table.from_nothing", 0, 0, 2),
    ],
)
def test_a_wrong_name_is_found(tmp_path: Path, text: str, names: int, files: int, of_classes: int) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert (len(unknown_names(page)), len(missing_files(page)), len(unknown_members(page))) == (names, files, of_classes)
