"""Count where tests reach into what is private in holdfast: in this tree, or in the folder of tests that is named.

Usage: python tools/count_private.py [folder]

Three ways are counted, for each file and in total:
  attribute   x._name, unless x is self or cls, or the test's own file defines the name
  import      of a module or a name of holdfast with a leading underscore
  patched     a private name, or a dotted path with one, given as text to setattr, delattr or getattr

Names of Python and of notebooks (os._exit, __repr__, _repr_html_) are not private here. A private name that three files reach for
wants to be public.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PRIVATE = re.compile(r"_(?!_)\w*[^\W_]$")
OTHERS = {"_exit"}
"""Names of Python itself."""


def reaches(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(kind, name) of every reach into something private."""
    own = _defined(tree) | OTHERS
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and PRIVATE.match(node.attr) and node.attr not in own:
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield "attribute", node.attr
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            for alias in node.names:
                parts = [*module.split("."), *alias.name.split(".")]
                if parts[0] == "holdfast" or (len(parts) > 1 and not parts[0] and alias.name.startswith("holdfast")):
                    yield from (("import", part) for part in parts if PRIVATE.match(part))
        elif isinstance(node, ast.Call) and _name(node.func) in ("setattr", "delattr", "getattr"):
            for argument in node.args[:2]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield from (("patched", part) for part in argument.value.split(".") if PRIVATE.match(part) and part not in own)


def _defined(tree: ast.Module) -> set[str]:
    """Names that the file itself gives to functions, classes, variables and attributes of self."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _name(node.value) == "self":
            found.add(node.attr)
    return found


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def main(folder: Path) -> None:
    totals: Counter[str] = Counter()
    files: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        found = list(reaches(ast.parse(path.read_text(encoding="utf-8"))))
        if found:
            kinds = Counter(kind for kind, _ in found)
            totals += kinds
            print(f"{len(found):5}  {path.relative_to(folder)}  ({', '.join(f'{kind} {n}' for kind, n in sorted(kinds.items()))})")
            for _, name in found:
                files.setdefault(name, set()).add(str(path))
    print(f"{totals.total():5}  in all ({', '.join(f'{kind} {n}' for kind, n in sorted(totals.items()))})")
    often = {name: len(where) for name, where in files.items() if len(where) >= 3}
    print("Reached for in three files or more:", ", ".join(f"{name} ({n})" for name, n in sorted(often.items())) or "none")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "tests")
