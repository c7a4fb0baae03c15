"""List phrases and names that do not read as English, with what to write instead.

Usage: python tools/check_english.py [--names] [file or folder ...]

Without arguments it reads src, docs and README.md. A hit is a place to look at: rewrite the sentence, do not swap the word. --names lists
functions whose whole name is a participle (`decided`). tests/test_english.py holds both numbers, which may only fall.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
READ = ("src", "docs", "README.md")
"""What is read unless something else is named."""
SUFFIXES = (".py", ".md", ".toml")
FEWEST_WORDS = 4
"""Texts in code of fewer words are names or keys."""

_THINGS = "number|code|table|release|file|level|column|mechanism"
PHRASES: dict[str, str] = {
    r"(?<!there )\b(is|are|be|was|were) none\b": "say what it is not, or what is missing: 'is not a mechanism', 'there are no such cells'",
    r"\b(is|are|be|was|were|as is) told\b": "is reported, is listed, see ...; or drop it",
    r"\btells? of\b": "describes, mentions",
    r"\bstands? (in|on|at|there|beside|for itself)\b": "is in, is on, is kept in, is written to",
    r"\bmay stand\b": "can be given",
    r"\b(gone|go|goes|going) on with\b": "resume, continue",
    r"\bfound out\b": "detected, discovered",
    r"\bwhatever (stands|is) there\b": "whatever the value",
    r"\bput away\b": "store, save",
    r"\b(is|are) there already\b": "already exists",
    r"\bmend(ed|s|ing)?\b": "fix",
    r"\bwill do\b": "works",
    r"\bnobody waits\b": "fast enough not to matter",
    r"\bone (total|cell|column|person|row) (less|more)\b": "fewer, more: 'drop one total'",
    r"\bby about as much\b": "by about the same amount",
    r"\bas near\b": "equally near",
    rf"\bthat is no ({_THINGS})\b": "that is not a ...",
    rf"\bis no ({_THINGS}|two-way)\b": "is not a ...",
    r"\bwhat (is|was) (asked for|given)\b": "name the thing: the request, the argument, the budget",
    r"^(Of|That) ": "begin with what the function returns or does",
    r"\bnone of them is\b(?= *[.,;])": "say which",
}
_PHRASES = [(re.compile(pattern, re.MULTILINE), hint) for pattern, hint in PHRASES.items()]
_PARTICIPLE = re.compile(r"_?(found|given|made|told|said|shown|known|kept|drawn|taken|left|[a-z]+ed)")


def find_phrases(path: Path) -> Iterator[str]:
    """One line for every phrase to look at: line number, the words around it, the advice."""
    for line, text in _texts(path):
        for pattern, hint in _PHRASES:
            for match in pattern.finditer(text):
                around = " ".join(text[max(0, match.start() - 50) : match.end() + 40].split())
                yield f"{line}: {around!r}: {hint}"


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text): strings of several words and comments of Python, and the lines of other files that are not code."""
    source = path.read_text(encoding="utf-8")
    lines = list(enumerate(source.splitlines(), 1))
    if path.suffix != ".py":
        yield from ((number, line) for number, line in lines if not line.startswith("    "))
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value.split()) >= FEWEST_WORDS:
            yield node.lineno, node.value
    yield from ((number, line.split("#", 1)[1]) for number, line in lines if line.lstrip().startswith("#"))


def find_participles(path: Path) -> Iterator[str]:
    """One line for every function of a Python file whose whole name is a participle."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _PARTICIPLE.fullmatch(node.name):
                yield f"{node.lineno}: {node.name}"


def files_in(places: Iterable[Path]) -> Iterator[Path]:
    """The files to read in these files and folders, in order."""
    for place in places:
        yield from sorted(path for path in place.rglob("*") if path.suffix in SUFFIXES) if place.is_dir() else [place]


def main(arguments: list[str]) -> None:
    find = find_participles if "--names" in arguments else find_phrases
    named = [Path(argument) for argument in arguments if argument != "--names"]
    hits = [f"{path}:{hit}" for path in files_in(named or [ROOT / name for name in READ]) for hit in find(path)]
    print(*hits, f"{len(hits)} places", sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
