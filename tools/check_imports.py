"""Check that imports in src/holdfast point one way, that heavy packages load only when used, and that files stay small.

Usage: python tools/check_imports.py [folder of the package]

Prints one line per problem, with file, line and what to do; exits with 1 if there is any.

A unit is a folder or a module directly under the package. ALLOWED lists units from the bottom to the top, each with what it may import
of ours; a unit may only name units above its own line, so the table itself cannot hold a cycle.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "holdfast"

_CORE = ("display", "errors", "randomness", "exact", "tables", "invariants", "lattices", "exposure")
_DRAWING = (*_CORE, "laws", "samplers", "chains", "privacy", "channels", "mechanisms")
_RELEASES = (*_DRAWING, "cellkey", "subspace", "engines", "ledger", "card", "wording", "accuracy", "views", "report", "publication")

ALLOWED: dict[str, tuple[str, ...]] = {
    "display": (),
    "errors": (),
    "randomness": ("errors",),
    "exact": ("display", "errors", "randomness"),
    "tables": ("display", "errors", "randomness"),
    "invariants": ("display", "errors", "tables"),
    "lattices": ("display", "errors", "tables", "invariants"),
    "exposure": ("display", "errors", "tables", "invariants", "lattices"),
    "privacy": ("display", "errors", "exact", "lattices"),
    "cellkey": (*_CORE, "privacy"),
    "laws": ("errors", "exact", "lattices", "cellkey"),
    "samplers": ("errors", "randomness", "exact", "lattices", "cellkey", "laws"),
    "chains": ("errors", "randomness", "exact", "lattices", "laws", "samplers"),
    "subspace": ("errors", "exact", "lattices", "privacy"),
    "channels": (*_CORE, "laws", "samplers", "chains", "privacy"),
    "mechanisms": (*_CORE, "laws", "samplers", "chains", "privacy", "cellkey", "channels"),
    # The only room with counts.
    "engines": _DRAWING,
    "ledger": ("display", "errors", "exact", "tables", "lattices", "privacy"),
    "card": ("errors", "exact", "tables", "invariants", "privacy", "ledger"),
    # The room of sentences: only what shows things to people may import it.
    "wording": (*_DRAWING, "cellkey", "ledger", "card"),
    "accuracy": (*_DRAWING, "wording"),
    "views": ("errors", "randomness", "exact"),
    "report": ("display", "errors", "exact", "cellkey", "card", "wording"),
    "publication": (*_DRAWING, "cellkey", "subspace", "engines", "ledger", "card", "wording", "accuracy", "views", "report"),
    "verification": _RELEASES,
    "runfiles": _RELEASES,
    "__init__": (*_RELEASES, "verification"),
    "testing": ("errors", "randomness", "exact"),
    # No unit names the room beside the others: FILES_WITH_RESEARCH may import it, and nothing else.
    "research": (*_RELEASES, "verification", "testing"),
    "cli": (*_RELEASES, "verification", "runfiles", "__init__"),
    "__main__": ("errors", "cli"),
}

FOR_TYPES = frozenset({("privacy", "ledger")})
"""(unit, what it imports for type checkers alone): `hf.privacy.Ledger` is a public name of a room above."""

FILES_WITH_RESEARCH = frozenset({"cli/research.py", "cli/demo.py"})
"""Files of `cli`, by their path in the package, that may import `research`: for commands that compare, reproduce or diagnose, and for
made-up populations.
"""

# Each costs a user tenths of a second at import, so it is imported inside the function that needs it, or in a module of compiled code.
HEAVY = frozenset({"numba", "scipy", "opendp", "duckdb", "pyarrow", "pandas", "polars", "sqlalchemy", "openpyxl", "jinja2"})

MAX_LINES = 600

_NOT_OF_RESEARCH = (
    "'research' is imported, which only the files in FILES_WITH_RESEARCH of tools/check_imports.py may do. A release must not need it: "
    "move what is needed out of research, or list the file if it is a command that compares, reproduces or diagnoses."
)


@dataclass(frozen=True)
class Import:
    """One imported module: its absolute dotted name, where it stands, and whether it runs when the file is imported."""

    module: str
    line: int
    at_top_level: bool


def find_problems(
    package: Path, allowed: Mapping[str, tuple[str, ...]] = ALLOWED, with_research: Iterable[str] = FILES_WITH_RESEARCH
) -> list[str]:
    """All problems in the package at this folder, one printable line each, in the order of the files."""
    problems = [*_table_problems(package, allowed), *_list_problems(package, with_research)]
    units = {child.stem for child in package.iterdir() if child.is_dir() or child.suffix == ".py"}
    for path in sorted(package.rglob("*.py")):
        found = _file_problems(path, package, units, allowed, may_research=path.relative_to(package).as_posix() in with_research)
        problems.extend(f"{path}:{line}: {text}" for line, text in found)
    return problems


def _table_problems(package: Path, allowed: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    seen: set[str] = set()
    for unit, targets in allowed.items():
        for target in targets:
            if target not in seen:
                yield f"{Path(__file__)}: ALLOWED lets {unit!r} import {target!r}, which is not above it. Reorder or drop the entry."
        seen.add(unit)
        if not (package / unit).is_dir() and not (package / f"{unit}.py").is_file():
            yield f"{Path(__file__)}: ALLOWED names {unit!r}, which is not in {package}. Remove the entry until it is built."


def _list_problems(package: Path, with_research: Iterable[str]) -> Iterator[str]:
    for name in with_research:
        if not name.startswith("cli/") or not (package / name).is_file():
            yield f"{Path(__file__)}: FILES_WITH_RESEARCH names {name!r}, which is no file of cli in {package}. Remove the entry."


def _file_problems(
    path: Path, package: Path, units: set[str], allowed: Mapping[str, tuple[str, ...]], *, may_research: bool
) -> Iterator[tuple[int, str]]:
    source = path.read_text(encoding="utf-8")
    lines = len(source.splitlines())
    if lines > MAX_LINES:
        yield MAX_LINES + 1, f"the file has {lines} lines, more than {MAX_LINES}. Ask which two ideas it holds and split it."

    unit = path.relative_to(package).parts[0].removesuffix(".py")
    if unit not in allowed:
        yield 1, f"{unit!r} is not in the table of imports. Add it to ALLOWED in tools/check_imports.py, with what it may import."
        return

    for found in _imports(ast.parse(source, filename=str(path)), path, package):
        top, *rest = found.module.split(".")
        if found.module.endswith(".*"):
            yield found.line, "wildcard import. Name what is imported."
        if top == PACKAGE:
            target = rest[0] if rest and rest[0] in units else "__init__"
            if target == "research" != unit and not may_research:
                yield found.line, _NOT_OF_RESEARCH
            elif target not in {unit, "research", *allowed[unit]} and (found.at_top_level or (unit, target) not in FOR_TYPES):
                yield (
                    found.line,
                    f"{unit!r} imports {target!r}, but may import only {_names(allowed[unit])}. "
                    "Move the code down, or change ALLOWED in tools/check_imports.py if the design changed.",
                )
        if found.at_top_level and not _is_compiled(path.stem):
            if top in HEAVY:
                yield found.line, f"{top!r} is imported when the file is. Import it inside the function that needs it."
            if top == PACKAGE and any(_is_compiled(part) for part in rest):
                yield found.line, f"{found.module!r} holds compiled code and loads Numba. Import it inside the function that needs it."


def _is_compiled(module: str) -> bool:
    """Whether a module of this name holds compiled code: it may import Numba at once and is itself imported only when used."""
    return module.startswith("_") and "compiled" in module


def _names(units: tuple[str, ...]) -> str:
    return ", ".join(map(repr, units)) or "nothing of ours"


def _imports(tree: ast.Module, path: Path, package: Path) -> Iterator[Import]:
    """Every import in the file, wherever it stands; `from a import b` counts as a.b, since b may be a module."""
    folder = [PACKAGE, *path.parent.relative_to(package).parts]
    for node, at_top_level in _walk(tree.body, True):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, at_top_level)
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else []
            parts = [*base, *([node.module] if node.module else [])]
            for alias in node.names:
                yield Import(".".join([*parts, alias.name]), node.lineno, at_top_level)


def _walk(nodes: list[ast.stmt], at_top_level: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """All statements, each with whether it runs when the file is imported (not in a function, not only for type checkers)."""
    for node in nodes:
        yield node, at_top_level
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            yield from _walk(node.body, False)
            yield from _walk(node.orelse, at_top_level)
            continue
        inside = at_top_level and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _walk(_child_statements(node), inside)


def _child_statements(node: ast.AST) -> list[ast.stmt]:
    """Statements directly inside a compound statement, also those in its `except` and `case` parts."""
    found: list[ast.stmt] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            found.append(child)
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            found.extend(_child_statements(child))
    return found


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING")


def main(arguments: list[str]) -> int:
    """Check the package at the given folder, by default the one of this repository."""
    package = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent / "src" / PACKAGE
    problems = find_problems(package)
    for problem in problems:
        print(problem)
    print(f"imports: {len(problems)} problems" if problems else "imports: all point one way")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
