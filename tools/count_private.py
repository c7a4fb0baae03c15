"""Count where tests reach into what is private: every x._name whose x is not self or cls.

Usage: python tools/count_private.py [folder of tests]

Prints the places of each file and their number, which CONTRIBUTING.md states. A private name that three files reach for wants to be
public.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

OWN = ("self", "cls")


def find_reaches(tree: ast.Module) -> list[tuple[int, str]]:
    """(line, attribute) of every reach into something private; names of Python itself (__repr__) are not private."""
    return sorted(
        (node.lineno, node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__") and not _is_own(node.value)
    )


def _is_own(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in OWN


def count_reaches(folder: Path) -> dict[Path, list[tuple[int, str]]]:
    """The reaches of every file of the folder that has any."""
    found = {path: find_reaches(ast.parse(path.read_text(encoding="utf-8"))) for path in sorted(folder.rglob("*.py"))}
    return {path: reaches for path, reaches in found.items() if reaches}


def main(folder: Path) -> None:
    reaches = count_reaches(folder)
    for path, places in reaches.items():
        print(f"{len(places):5}  {path.relative_to(folder)}: {', '.join(f'{name} ({line})' for line, name in places)}")
    print(f"{sum(map(len, reaches.values())):5}  in all")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "tests")
