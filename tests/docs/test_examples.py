"""Every example in README.md, CONTRIBUTING.md and docs/*.md is run, and prints what the page says.

    ```python    run; the blocks of one page share one namespace, in order. A ```text block right after one is its exact output.
    ```console   each `$ ` line is run in an empty folder, without a shell; the lines below it are its output, blank lines aside, and a
                 line `...` stands for any number of lines. Only `holdfast ...` and `python -c ...` are run; `make`, `git` and `cd` lines
                 are listed but not run (a fresh clone is checked apart), except that the targets given to make must exist.

One test per page for Python, one per block for the command line.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.mechanisms.registry import MECHANISMS
from holdfast.samplers.table import SAMPLERS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BIN = Path(sys.executable).parent

NOT_RUN = ("make", "git", "cd")
EVASIVE = {"py", "python3", "pycon", "sh", "bash", "shell", "zsh"}
"""Names of languages under which an example would escape this test."""

LONG_PAGES = ("chains", "comparison", "distributed", "floating-answers", "intervals")
"""Pages whose examples start processes or draw much: the long group runs them."""

SHELL_SYNTAX = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"}
SECONDS = 600
"""Generous: it only ends a command that hangs."""


class PageError(AssertionError):
    """An example on a page is wrong; the message says where and why."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the line number of its first line of content, its content, and the block right after it."""

    language: str
    line: int
    text: str
    next: Block | None


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found: list[tuple[str, int, str, int]] = []
    number = 0
    while number < len(lines):
        opening = re.fullmatch(r"( *)(`{3,})\s*([^\s`]*)[^`]*", lines[number])
        number += 1
        if not opening:
            continue
        indent, fence, language = opening.groups()
        start = number
        while number < len(lines) and lines[number].strip() != fence:
            number += 1
        if number == len(lines):
            raise PageError(f"{page.name}:{start}: a fenced block is never closed")
        if language in EVASIVE:
            raise PageError(f"{page.name}:{start}: a block in {language!r} is not run. Write python or console.")
        content = [line.removeprefix(indent) for line in lines[start:number]]
        number += 1
        found.append((language, start + 1, "\n".join(content), number))

    linked: list[Block] = []
    following: tuple[int, Block] | None = None
    for language, line, text, end in reversed(found):
        adjacent = following is not None and not "".join(lines[end : following[0] - 2]).strip()
        block = Block(language, line, text, following[1] if following and adjacent else None)
        linked.append(block)
        following = (line, block)
    return linked[::-1]


def run_python(page: Path) -> int:
    """Run the Python blocks of a page in one namespace; raise PageError at the first that fails or prints something else. How many ran."""
    # A real module, because dataclasses and pickle look up the module that a class says it comes from.
    module = types.ModuleType("holdfast_docs_example")
    sys.modules[module.__name__] = module
    registries: tuple[dict[Any, Any], ...] = (MECHANISMS, SAMPLERS)  # a page may register a mechanism of its own
    before = [dict(registry) for registry in registries]
    try:
        found = [block for block in blocks(page) if block.language == "python"]
        for block in found:
            _run_python_block(page, block, module)
        return len(found)
    finally:
        del sys.modules[module.__name__]
        for registry, kept in zip(registries, before, strict=True):
            registry.clear()
            registry.update(kept)


def _run_python_block(page: Path, block: Block, module: types.ModuleType) -> None:
    where = f"{page.name}:{block.line}"
    if block.text.lstrip().startswith("# not run"):
        raise PageError(f"{where}: every example runs; make this one run or write it as prose")
    printed = io.StringIO()
    try:
        # Blank lines first, so that a traceback shows the line number on the page.
        code = compile("\n" * (block.line - 1) + block.text, str(page), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(printed):
            exec(code, module.__dict__)
    except Exception as error:
        raise PageError(f"{where}: the block raised {type(error).__name__}: {error}") from error
    if block.next is not None and block.next.language == "text":
        expected, got = block.next.text.rstrip(), printed.getvalue().rstrip()
        if got != expected:
            raise PageError(f"{where}: the page shows\n{expected}\nbut the block prints\n{got}")


def run_console(page: Path, block: Block, folder: Path) -> list[str]:
    """Run the commands of one console block in a folder; raise PageError at the first that fails or prints something else. What ran."""
    ran = []
    for line, command, expected in _commands(page, block):
        where = f"{page.name}:{line}"
        arguments = shlex.split(command)
        if arguments[0] in NOT_RUN:
            print(f"{where}: not run here: {command}")
            _check_make_targets(where, arguments)
            continue
        if SHELL_SYNTAX & set(arguments):
            raise PageError(f"{where}: examples run without a shell; no pipes or redirections: {command}")
        if arguments[0] != "holdfast" and arguments[:2] != ["python", "-c"]:
            raise PageError(f"{where}: only `holdfast ...` and `python -c ...` are run in examples, not: {command}")
        done = subprocess.run(
            [BIN / arguments[0], *arguments[1:]],
            cwd=folder,
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise PageError(f"{where}: exit code {done.returncode} from: {command}\n{done.stdout}{done.stderr}")
        got = _without_blank(done.stdout.splitlines())
        if not matches(_without_blank(expected), got):
            raise PageError(f"{where}: {command}\nthe page shows\n" + "\n".join(expected) + "\nbut it prints\n" + "\n".join(got))
        ran.append(command)
    return ran


def _commands(page: Path, block: Block) -> Iterator[tuple[int, str, list[str]]]:
    """(line number, command, expected lines) for each `$ ` line."""
    lines = block.text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
    if not starts or starts[0] != 0:
        raise PageError(f"{page.name}:{block.line}: a console block starts with a line `$ command`")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield block.line + start, lines[start][2:], lines[start + 1 : end]


def _check_make_targets(where: str, arguments: list[str]) -> None:
    if arguments[0] == "make":
        known = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
        missing = [argument for argument in arguments[1:] if "=" not in argument and argument not in known]
        if missing:
            raise PageError(f"{where}: the Makefile has no target {', '.join(missing)}")


def _environment() -> dict[str, str]:
    """As a reader would have it, with a fixed width and no colour so that output can be compared."""
    return {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}", "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


def _without_blank(lines: list[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()]


def matches(expected: list[str], got: list[str]) -> bool:
    """Whether the lines agree, where an expected line `...` stands for any number of lines."""
    pattern = "".join("(?:.*\n)*" if line.strip() == "..." else re.escape(line) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in got)) is not None


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT).with_suffix(""))


def _examples() -> Iterator[object]:
    for page in PAGES:
        found = blocks(page)
        if any(block.language == "python" for block in found):
            yield pytest.param(page, None, id=f"{name_of(page)}-python", marks=[pytest.mark.long] if page.stem in LONG_PAGES else [])
        for block in found:
            if block.language == "console":
                yield pytest.param(page, block, id=f"{name_of(page)}-console-line-{block.line}")


@pytest.mark.ordinary("-python", "README")
@pytest.mark.parametrize(("page", "console"), list(_examples()))
def test_example(page: Path, console: Block | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if console is None:
        assert run_python(page) == page.read_text(encoding="utf-8").count("```python\n")
    else:
        commands = [line.removeprefix("$ ") for line in console.text.splitlines() if line.startswith("$ ")]
        assert run_console(page, console, tmp_path) == [line for line in commands if line.split()[0] not in NOT_RUN]


def test_readme_has_both_kinds_of_example() -> None:
    languages = {block.language for block in blocks(ROOT / "README.md")}
    assert {"python", "console"} <= languages


# The tests below show that a wrong page is caught.

RIGHT_PYTHON = "```python\nx = 1\n```\n\nProse.\n\n```python\nprint(x + 1)\n```\n\n```text\n2\n```\n"
RIGHT_CONSOLE = "```console\n$ python -c 'print(1); print(2); print(3)'\n1\n...\n3\n$ make demo\nanything\n```\n"


def _page(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_a_right_page_passes(tmp_path: Path) -> None:
    page = _page(tmp_path, RIGHT_PYTHON + RIGHT_CONSOLE)
    assert run_python(page) == 2
    assert run_console(page, blocks(page)[-1], tmp_path) == ["python -c 'print(1); print(2); print(3)'"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RIGHT_PYTHON.replace("2\n", "3\n"), r"page.md:8: the page shows\n3\nbut the block prints\n2"),
        ("```python\n1 / 0\n```\n", r"page.md:2: the block raised ZeroDivisionError"),
        ("```python\nx = (\n```\n", r"page.md:2: the block raised SyntaxError"),
        ("```python\n# not run: slow\n1\n```\n", r"page.md:2: every example runs"),
        ("```bash\nls\n```\n", r"page.md:1: a block in 'bash' is not run"),
        ("```python\n1\n", r"page.md:1: a fenced block is never closed"),
    ],
    ids=["output", "exception", "syntax", "marked not run", "other language", "unclosed"],
)
def test_a_wrong_python_page_fails(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match=message):
        run_python(_page(tmp_path, text))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("$ python -c 'print(1)'\n2", r"page.md:2: .*\nthe page shows\n2\nbut it prints\n1"),
        ("$ python -c 'print(1)'", r"page.md:2: .*\nthe page shows\n\nbut it prints\n1"),
        ("$ python -c 'print(1)'\n1\n$ python -c 'raise SystemExit(3)'", r"page.md:4: exit code 3"),
        ("$ python -c 'print(1)' | cat\n1", r"page.md:2: examples run without a shell"),
        ("$ ls", r"page.md:2: only `holdfast \.\.\.` and"),
        ("$ make no-such-target", r"page.md:2: the Makefile has no target no-such-target"),
        ("python -c 1", r"page.md:2: a console block starts with"),
    ],
    ids=["output", "output left out", "exit code", "shell", "other command", "make target", "no prompt"],
)
def test_a_wrong_console_block_fails(content: str, message: str, tmp_path: Path) -> None:
    page = _page(tmp_path, f"```console\n{content}\n```\n")
    with pytest.raises(PageError, match=message):
        run_console(page, blocks(page)[0], tmp_path)


@pytest.mark.parametrize(
    ("expected", "got", "agree"),
    [
        ("a ... c", "a b c", True),
        ("a ... c", "a c", True),
        ("...", "", True),
        ("a ...", "b a", False),
        ("a ... c", "a b c d", False),
        ("a", "a b", False),
        ("a.c", "abc", False),
    ],
)
def test_dots_stand_for_any_lines(expected: str, got: str, agree: bool) -> None:
    assert matches(expected.split(), got.split()) is agree
