"""What holds for the repository as a whole: import direction, light import, documented errors and names, tidy files."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest

import check_imports
import count_private
import holdfast
from holdfast import errors, research
from holdfast.wording.endings import WHAT_TO_DO

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "holdfast"

# Written in parts, so that this file does not hold what it looks for.
REGISTRY_HOSTS = re.compile("|".join(re.escape(".".join(parts)) for parts in [("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org")]))
MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:work|root|home)/")
NOT_OURS = {".git", ".venv", ".venv-oldest", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", "build", "dist"}

REFERENCE_KEY = re.compile(r"\[([A-Z][A-Za-z+]*\d\d[a-z]?)\]")
"""[CKS20], [GRS12a], [BS16+]: initials, two digits of the year, perhaps a letter."""


def read(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


class TestImports:
    def test_all_point_one_way(self) -> None:
        assert check_imports.find_problems(SOURCE) == []

    @pytest.mark.parametrize(
        ("file", "text", "message"),
        [
            ("low/a.py", "from holdfast.high import b\n", r"a\.py:1: 'low' imports 'high', but may import only nothing of ours"),
            ("low/a.py", "from ..high import b\n", r"a\.py:1: 'low' imports 'high'"),
            ("low/a.py", "from .. import high\n", r"a\.py:1: 'low' imports 'high'"),
            ("low/a.py", "import holdfast.high.b\n", r"a\.py:1: 'low' imports 'high'"),
            ("low/a.py", "def f():\n    from holdfast.high import b\n", r"a\.py:2: 'low' imports 'high'"),
            ("low/a.py", "import holdfast as hf\n", r"a\.py:1: 'low' imports '__init__'"),
            ("other/a.py", "", r"a\.py:1: 'other' is not in the table of imports\. Add it to ALLOWED"),
            ("low/a.py", "import numba\n", r"a\.py:1: 'numba' is imported when the file is"),
            (
                "low/a.py",
                "try:\n    pass\nexcept ImportError:\n    from scipy import stats\n",
                r"a\.py:4: 'scipy' is imported when the file is",
            ),
            ("low/a.py", "from . import _compiled\n", r"a\.py:1: 'holdfast\.low\._compiled' holds compiled code"),
            ("low/a.py", "from math import *\n", r"a\.py:1: wildcard import"),
            ("low/a.py", "\n" * 601, r"a\.py:601: the file has 601 lines"),
        ],
    )
    def test_a_violation_is_caught(self, file: str, text: str, message: str, tmp_path: Path) -> None:
        problems = self.problems(tmp_path, file, text)
        assert len(problems) == 1
        assert re.search(message, problems[0])

    @pytest.mark.parametrize(
        ("file", "text"),
        [
            ("high/a.py", "from holdfast.low import b\nfrom . import c\nfrom ..low.d import e\n"),
            ("low/_compiled.py", "import numba\nfrom . import _compiled_words\n"),
            ("low/a.py", "def f():\n    import numba\n    from . import _compiled\n"),
            ("low/a.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas\n"),
        ],
    )
    def test_what_is_allowed_passes(self, file: str, text: str, tmp_path: Path) -> None:
        assert self.problems(tmp_path, file, text) == []

    @staticmethod
    def problems(folder: Path, file: str, text: str) -> list[str]:
        for name in ("__init__.py", "low/__init__.py", "high/__init__.py", file):
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text if name == file else "", encoding="utf-8")
        return check_imports.find_problems(folder, {"low": (), "__init__": ("low",), "high": ("low",)}, ())

    def test_the_table_holds_no_cycle_and_nothing_unbuilt(self, tmp_path: Path) -> None:
        (tmp_path / "a.py").touch()
        (tmp_path / "b.py").touch()
        problems = check_imports.find_problems(tmp_path, {"a": ("b",), "b": ("a",), "c": ()}, ())
        assert len(problems) == 2
        assert "lets 'a' import 'b', which is not above it" in problems[0]
        assert "names 'c', which is not in" in problems[1]

    def test_the_command_fails_on_a_violation(self, tmp_path: Path) -> None:
        (tmp_path / "unknown.py").touch()
        done = subprocess.run([sys.executable, ROOT / "tools" / "check_imports.py", tmp_path], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "unknown.py:1: 'unknown' is not in the table" in done.stdout

    def test_nothing_imports_research(self, tmp_path: Path) -> None:
        """Tried on a copy of the package: one file in every unit, where the import stands in a function; and a file in another room that
        has the name of a command.
        """
        copied = shutil.copytree(SOURCE, tmp_path / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
        units = [unit for unit in check_imports.ALLOWED if unit != "research"]
        files = [copied / unit / "__init__.py" if (copied / unit).is_dir() else copied / f"{unit}.py" for unit in units]
        files += [copied / room / f"{command}.py" for room in ("publication", "cli") for command in ("compare", "reproduce", "diagnose")]
        for file in files:
            with open(file, "a", encoding="utf-8") as open_file:
                open_file.write("\n\ndef figure():\n    from holdfast.research import baselines\n")
        problems = check_imports.find_problems(copied)
        assert len(problems) == len(files)
        for file in files:
            assert any(re.match(rf"{re.escape(str(file))}:[0-9]+: 'research' is imported", problem) for problem in problems), file
        assert (
            len(check_imports.find_problems(copied, with_research=[*check_imports.FILES_WITH_RESEARCH, "cli/compare.py"])) == len(files) - 1
        )

    @pytest.mark.parametrize("name", ["publication/plan.py", "cli/unbuilt.py", "diagnose"])
    def test_only_files_of_the_command_line_can_be_let_in_to_research(self, name: str) -> None:
        (problem,) = check_imports.find_problems(SOURCE, with_research=[*check_imports.FILES_WITH_RESEARCH, name])
        assert f"names {name!r}, which is no file of cli" in problem

    def test_the_package_has_few_names_and_none_of_research(self) -> None:
        names = set(holdfast.__all__) - {"__version__"}
        assert len(names) <= 36
        assert not names & set(research.__all__)
        assert all(getattr(holdfast, name) is not None for name in names)
        assert all(getattr(research, name) is not None for name in research.__all__)

    def test_lower_rooms_make_no_sentences(self, tmp_path: Path) -> None:
        """Facts first: only what shows things to people imports the sentences. Tried on a copy of the package, one file in every room."""
        copied = shutil.copytree(SOURCE, tmp_path / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
        rooms = [unit for unit, may in check_imports.ALLOWED.items() if "wording" not in may and unit != "wording"]
        assert {"lattices", "privacy", "channels", "mechanisms", "engines", "subspace"} <= set(rooms)
        files = [copied / room / "__init__.py" if (copied / room).is_dir() else copied / f"{room}.py" for room in rooms]
        for file in files:
            with open(file, "a", encoding="utf-8") as open_file:
                open_file.write("\n\ndef said():\n    from holdfast.wording import describe\n")
        done = subprocess.run([sys.executable, ROOT / "tools" / "check_imports.py", copied], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        for room, file in zip(rooms, files, strict=True):
            assert re.search(rf"^{re.escape(str(file))}:[0-9]+: '{room}' imports 'wording'", done.stdout, re.MULTILINE), room

    @pytest.mark.parametrize(
        "program",
        ["import holdfast", "import holdfast; [getattr(holdfast, name) for name in holdfast.__all__]"],
        ids=["package", "every name"],
    )
    def test_importing_holdfast_loads_nothing_heavy(self, program: str) -> None:
        """The cause of a slow import is tested, not its time, which depends on the machine; the time is printed (pytest -rP shows it).

        Names are loaded when first used, so their modules are looked at too: what the package defers must be light as well.
        """
        heavy = {"numba", "llvmlite", "scipy", "opendp", "duckdb", "pyarrow", "pandas", "rich", "typer", "pytest", "hypothesis"}
        timed = f"import sys, time; t = time.perf_counter(); {program}; print(time.perf_counter() - t, *sys.modules)"
        seconds, *modules = subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout.split()
        print(f"{program}: {float(seconds):.3f} s beyond bare Python")
        assert heavy & set(modules) == set()


class TestErrors:
    @staticmethod
    def classes() -> list[type[errors.HoldfastError]]:
        return [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, errors.HoldfastError)]

    def test_codes_are_unique_and_each_class_has_its_own(self) -> None:
        for error in self.classes():
            assert "code" in vars(error), f"{error.__name__} inherits its code; give it one of its own"
        codes = [error.code for error in self.classes()]
        assert len(set(codes)) == len(codes)

    def test_every_error_is_in_the_module_of_errors(self) -> None:
        def tree(error: type[errors.HoldfastError]) -> set[type[errors.HoldfastError]]:
            return {error}.union(*map(tree, error.__subclasses__()))

        ours = {error for error in tree(errors.HoldfastError) if error.__module__.split(".")[0] == "holdfast"}
        assert ours == set(self.classes())

    def test_codes_and_documentation_agree(self) -> None:
        """Every class has its row in docs/errors.md, with code, exit code and what to do; and every row its class."""
        rows = re.findall(r"^\| `([a-z0-9-]+)` \| ([0-9]+) \| [^|]+ \| ([^|]+) \|$", read("docs", "errors.md"), re.MULTILINE)
        assert sorted(rows) == sorted((error.code, str(error.exit_code), WHAT_TO_DO[error.code]) for error in self.classes())
        assert WHAT_TO_DO.keys() == {error.code for error in self.classes()}


class TestPublicNames:
    def test_all_has_no_repetition(self) -> None:
        assert len(set(holdfast.__all__)) == len(holdfast.__all__)

    @pytest.mark.parametrize("name", [name for name in holdfast.__all__ if not name.startswith("__")])
    def test_resolves_and_has_a_docstring(self, name: str) -> None:
        thing = getattr(holdfast, name)
        # Of its own: a subclass must not pass with its parent's words.
        docstring = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
        assert docstring
        assert docstring.strip()

    @pytest.mark.parametrize(
        ("name", "parameters"),
        [
            (
                "release",
                [
                    "table",
                    "keep",
                    "mechanism",
                    "key",
                    "ledger",
                    "release_id",
                    "dataset",
                    "date",
                    "allow_exposed",
                    "office",
                    "approver",
                    "disjoint",
                    "progress",
                ],
            ),
            ("plan", ["table", "keep", "mechanism", "published_totals", "disjoint", "progress"]),
            ("verify", ["folder", "against", "signer", "strict"]),
            ("lattice", ["universe", "keep"]),
        ],
    )
    def test_functions_show_their_parameters(self, name: str, parameters: list[str]) -> None:
        thing = getattr(holdfast, name)
        assert type(thing) is types.FunctionType
        assert list(inspect.signature(thing).parameters) == parameters

    def test_names_are_the_same_after_every_module_was_imported(self) -> None:
        """A module must not take the place of a function of its name, nor be called in its stead: checked in a fresh interpreter."""
        program = (
            "import importlib, pkgutil, sys, types\nimport holdfast as hf\n"
            "first = {name: getattr(hf, name) for name in hf.__all__} if sys.argv[1] == 'before' else {}\n"
            "modules = [importlib.import_module(m.name) for m in pkgutil.walk_packages(hf.__path__, 'holdfast.')]\n"
            "functions = ('release', 'plan', 'verify', 'lattice', 'describe', 'margin', 'total', 'subset', 'areas', 'linear', 'identity')\n"
            "print(len(modules), [m.__name__ for m in modules if callable(m)],\n"
            "      [name for name in functions if type(getattr(hf, name)) is not types.FunctionType],\n"
            "      [name for name in first if getattr(hf, name) is not first[name]])\n"
        )
        for order in ("before", "after"):
            done = subprocess.run([sys.executable, "-c", program, order], capture_output=True, text=True, check=True).stdout.split(" ", 1)
            assert int(done[0]) > 150
            assert done[1] == "[] [] []\n", order

    def test_version_is_that_of_the_project(self) -> None:
        assert holdfast.__version__ == tomllib.loads(read("pyproject.toml"))["project"]["version"]


class TestFiles:
    def test_help_lists_every_target(self) -> None:
        targets = re.findall(r"^([a-z][a-z-]*):", read("Makefile"), re.MULTILINE)
        assert re.findall(r"^ *make ([a-z-]+) ", self.make("help"), re.MULTILINE) == targets
        assert {"help", "setup", "demo", "test", "check", "bench"} <= set(targets)

    def test_settings_of_the_users_python_stay_outside(self) -> None:
        """Without compiled files every process of the tests would compile all packages: the ordinary tests took two minutes longer."""
        outside = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
        seen = self.make("--eval=settings: ; @env", "settings", **dict.fromkeys(outside, "1"), PYTHONHASHSEED="1").splitlines()
        assert "PYTHONHASHSEED=1" in seen
        assert [line for line in seen if line.startswith(outside)] == []

    @staticmethod
    def make(*arguments: str, **settings: str) -> str:
        # Without the variables of a make that may have started us.
        environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        return subprocess.run(
            ["make", *arguments], cwd=ROOT, env={**environment, **settings}, capture_output=True, text=True, check=True
        ).stdout

    def test_no_registry_host_and_no_path_of_one_machine(self) -> None:
        bad = []
        for path in self.files():
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
            except UnicodeDecodeError:
                continue  # not text
            for number, line in enumerate(lines, 1):
                if REGISTRY_HOSTS.search(line) or MACHINE_PATH.search(line):
                    bad.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
        assert bad == []

    @staticmethod
    def files() -> list[Path]:
        """Files under version control or about to be; without git (a downloaded archive), all that are not build output."""
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        try:
            listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            paths = [path for path in ROOT.rglob("*") if not NOT_OURS & set(path.relative_to(ROOT).parts)]
            paths = [path for path in paths if not any(part.endswith(".egg-info") for part in path.parts)]
        else:
            paths = [ROOT / name for name in listed.split("\0") if name]
        files = [path for path in paths if path.is_file()]
        assert ROOT / "pyproject.toml" in files
        return files

    @pytest.mark.parametrize(
        ("line", "bad"),
        [
            ("see https://" + "py" + "pi.org/simple", True),
            ("cd /" + "home/someone", True),
            ('path = "/' + 'work/main"', True),
            ("https://example.org/" + "home/page", False),
            ("docs/" + "work/notes.md", False),
        ],
    )
    def test_the_patterns_catch_what_they_should(self, line: str, bad: bool) -> None:
        assert bool(REGISTRY_HOSTS.search(line) or MACHINE_PATH.search(line)) is bad

    def test_license(self) -> None:
        assert "Apache License" in read("LICENSE")
        assert tomllib.loads(read("pyproject.toml"))["project"]["license"] == "Apache-2.0"

    def test_the_build_backend_is_pinned_alike_in_both_places(self) -> None:
        (backend,) = tomllib.loads(read("pyproject.toml"))["build-system"]["requires"]
        assert backend in read("requirements", "build.in").splitlines()
        assert f"{backend} \\" in read("requirements", "dev.txt").splitlines()


class TestArchitecture:
    PAGE = read("docs", "architecture.md")

    def test_rooms_are_those_of_the_table_of_imports_and_of_the_tree(self) -> None:
        rows = self.PAGE.split("## Rooms")[1].split("## ")[0]
        rooms = re.findall(r"^\| `(\w+)` \| [^|]{20,} \|$", rows, re.MULTILINE)
        assert rooms == list(check_imports.ALLOWED)
        assert set(rooms) == {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}

    def test_what_the_page_names_exists(self) -> None:
        named = set(re.findall(r"`((?:\w+/)+(?:\w+\.\w+)?)`", self.PAGE))
        assert len(named) > 40
        assert sorted(name for name in named if not any((folder / name).exists() for folder in (SOURCE, ROOT))) == []

    def test_the_page_stays_short(self) -> None:
        assert len(self.PAGE.splitlines()) < 200


def test_the_tests_that_the_security_page_names_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", read("SECURITY.md"))
    assert len(named) > 15
    assert [name for name in named if not (ROOT / name).is_file()] == []


class TestReferences:
    def test_every_key_resolves(self) -> None:
        """A key such as [CKS20] in a docstring or on a page starts an entry, a list item or heading, of docs/references.md."""
        entries = re.findall(rf"^(?:[-*] |#+ )?(?:\*\*)?{REFERENCE_KEY.pattern}", read("docs", "references.md"), re.MULTILINE)
        assert len(set(entries)) == len(entries)
        lost = [
            f"{path.relative_to(ROOT)}: [{key}]"
            for path, text in [
                *self.docstrings(),
                *((page, page.read_text(encoding="utf-8")) for page in sorted((ROOT / "docs").rglob("*.md"))),
            ]
            for key in REFERENCE_KEY.findall(text)
            if key not in entries
        ]
        assert lost == []

    def test_every_result_that_is_cited_is_on_a_page_of_theory(self) -> None:
        """[theory R7] anywhere in the tree names a heading `### R7.` of docs/theory; no heading stands twice."""
        pages = sorted((ROOT / "docs" / "theory").glob("*.md"))
        headings = [name for page in pages for name in re.findall(r"^### ([RT]\d+)\. ", page.read_text(encoding="utf-8"), re.MULTILINE)]
        assert len(set(headings)) == len(headings) > 50
        cited = [
            (path, name)
            for folder in ("src", "tests", "benchmarks", "docs", "tools")
            for path in sorted((ROOT / folder).rglob("*"))
            if path.suffix in (".py", ".md")
            for name in re.findall(r"\[theory ([^\]]*)\]", path.read_text(encoding="utf-8"))
        ]
        assert len(cited) > 60
        ours = Path(__file__)
        assert [f"{path.relative_to(ROOT)}: {name}" for path, name in cited if path != ours and name not in headings] == []

    @pytest.mark.parametrize("name", ["math" + ".md", "paper-" + "notes", "design" + ".md", "speed-" + "notes", "channels" + ".md"])
    def test_nothing_cites_notes_outside_the_repository(self, name: str) -> None:
        found = [
            str(path.relative_to(ROOT))
            for folder in ("src", "tests", "benchmarks", "docs", "tools")
            for path in (ROOT / folder).rglob("*")
            if path.suffix in (".py", ".md") and name in path.read_text(encoding="utf-8")
        ]
        assert found == []

    @staticmethod
    def docstrings() -> list[tuple[Path, str]]:
        """Every bare string in files under src that hold a key: docstrings of modules, classes, functions, and those below constants."""
        texts = [(path, path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))]
        return [
            (path, node.value.value)
            for path, text in texts
            if REFERENCE_KEY.search(text)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ]


class TestReaches:
    def test_an_attribute_of_another_object_is_counted_and_nothing_else(self) -> None:
        text = """
from holdfast.chains import _line_compiled as compiled
class Mine:
    def __init__(self, key):
        self._own = key._vault._master
    @classmethod
    def make(cls):
        return cls._made
def test(monkeypatch, mine):
    mine._own.__class__
    mine._repr_html_()
    monkeypatch.setattr(compiled, "_order", 1)
"""
        assert count_private.find_reaches(ast.parse(text)) == [(5, "_master"), (5, "_vault"), (10, "_own"), (11, "_repr_html_")]

    def test_contributing_states_the_number(self) -> None:
        """One way of counting, one number: who adds a reach sees it there, who removes one lowers it."""
        (stated,) = re.findall(r"`tools/count_private.py` counts where they do not: (\d+) places", read("CONTRIBUTING.md"))
        counted = sum(map(len, count_private.count_reaches(ROOT / "tests").values()))
        assert int(stated) == counted, f"Write {counted} in CONTRIBUTING.md; a number that rises needs a reason."
