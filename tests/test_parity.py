"""The command, run files and Python say the same thing under the same name, and where nothing is said they do the same. Both are read: an
option or argument that is added on one side only fails here until it is added on the other, or listed as belonging to one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Set
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import typer

import holdfast as hf
from holdfast.cellkey import Design, KeySpace, read_table, write_table
from holdfast.cli.commands import app
from holdfast.ledger import Ledger
from holdfast.publication.booking import EMBEDDED
from holdfast.publication.publication import Publication
from holdfast.publication.tables import Publications
from holdfast.research.chains.diagnose import diagnose
from holdfast.research.synth import Population, synthesize
from holdfast.runfiles.sections import AnswerSection, ReleaseSection, Section, TableSection
from holdfast.tables.columns import KEY_BITS
from tests.running import Run

SHOWN = {"as_json", "output"}
"""How a command shows what it found, and where it writes it."""
FROM_A_FILE = {"source", "cells", "labels"}
"""What a run file says of its table in words of its own."""


class Pair(NamedTuple):
    """What a command calls, and where the two differ."""

    functions: tuple[Callable[..., Any], ...]
    only_command: Set[str] = frozenset()
    only_python: Set[str] = frozenset()
    differ: Mapping[str, str] = MappingProxyType({})
    """Names with another default, or needed on one side alone, and why."""


PLACE = {"ledger", "witness"}
"""Where a ledger is: in Python the arguments of Ledger.open."""
THRESHOLD = {"threshold": "in Python a table gets one by a call of its own"}
COMMANDS: dict[str, Pair] = {
    "verify": Pair((hf.verify,)),
    "view": Pair((hf.load, Publication.view), set(), {"table"}),  # the command is given the folder of the table
    "interval": Pair(
        (hf.load, Publication.interval, Publication.intervals),
        {"where"},  # in Python the first argument
        {"query", "queries", "table", "progress"},  # the command draws its own bar
    ),
    "diagnose": Pair((diagnose,), {"run_file", "kernel"}, {"table", "keep", "mechanism", "kernels", "progress"}),
    "synth": Pair((synthesize, Population.save), set(), {"blocks"}, {"people": "Python must say how many"}),
    "plan": Pair(
        (hf.plan,),
        {"run_file", "ledger", "no_ledger", "target", "compare"},  # in Python: Ledger.check, allocate, publication.comparison.compare
        {"table", "keep", "mechanism", "published_totals", "disjoint", "progress"},  # in a run file, but for published totals
    ),
    "ledger create": Pair((Ledger.open,), {"ledger"}, {"place", "create", "needs_grants", "read_only"}),
    "ledger grant": Pair((Ledger.grant,), PLACE, {"kind", "now"}),  # the kind follows from the numbers on both sides
    "ledger take-back": Pair((Ledger.take_back,), PLACE),
    "ledger units": Pair((Ledger.declare_units,), PLACE),
    "ledger show": Pair((Ledger.balances, Ledger.account), {"ledger"}, set(), {"dataset": "left out, all are listed: balances()"}),
    "ledger verify": Pair((Ledger.verify,), {*PLACE, "cards", "signer"}, {"heads", "declared"}),  # which the cards hold
    "ledger accept-restore": Pair((Ledger.reopen, Ledger.accept_restore), {"ledger"}, {"place"}),
    "ledger void": Pair((Ledger.reservation, Ledger.void), PLACE, {"reservation"}),
    "cellkey design": Pair(
        (hf.cellkey.design, hf.cellkey.design_rows, Design.table, write_table),
        {"page", "largest", "variance"},  # in Python: D, V
        {"table", "path", "iota", "D", "V", "variance"},
        {
            "key_size": "Python says the number of keys; the command writes a table at once",
            **dict.fromkeys(("epsilon", "delta"), "the command takes them, or a range and a variance; Python has a function for each"),
        },
    ),
    "cellkey check": Pair((read_table, hf.cellkey.PerturbationTable.with_threshold), {"table"}, {"path"}, THRESHOLD),
    "cellkey perturb": Pair(
        (read_table, hf.cellkey.PerturbationTable.with_threshold, hf.CellKey, hf.cellkey.tabulate, Publications.save),
        {"source", "noise", "modulus", "rescale", "release_id", "dataset", "ledger", "no_ledger"},  # CellKeys, rescaled(), hf.release
        {"path", "data", "folder", "query", "reading", "weighted", "formats", "sign", "table", "mechanism"},
        {"keys": "32 bits on both sides, as a text and as None", **THRESHOLD},
    ),
}
NOT_COMPARED = {
    "init": "writes a run file, which Python does not use",
    "demo": "shows the others on made-up data",
    "warm": "compiles loops for later processes",
    "schema": "is for editors of run files",
    "completion": "is for shells",
    "release": "takes a run file: its keys, and its own options, are compared below",
}
FILES: dict[str, tuple[type[Section], Pair]] = {
    # section: (its keys, what they are given to; keys of run files alone, arguments of Python alone)
    "release": (
        ReleaseSection,
        Pair(
            (hf.release, Publication.save),
            {
                "id",
                "per",
                "witness",
                "revises",
                "revises_signer",
            },  # id is release_id, per an argument of mechanisms, witness one of ledgers
            {"table", "keep", "key", "release_id", "progress", "folder", "force", "beside"},  # force and with are options of the command
        ),
    ),
    "table of counts": (
        TableSection,
        Pair(
            (hf.Table.from_counts,),
            FROM_A_FILE | {"id", "over", "sample_key", "sample_by", "record_key", "count"},
            {"data", "cells", "count", "weight"},
        ),
    ),
    "table of records": (
        TableSection,
        Pair(
            (hf.Table.from_records,),
            FROM_A_FILE | {"cell_key", "public", "count", "public_columns", "totals"},  # of counts
            {"data", "cells", "count", "weight", "public_columns"},
        ),
    ),
    "answer": (
        AnswerSection,
        Pair(
            (hf.answer,),
            FROM_A_FILE
            | {"query", "separator", "encoding", "sheet", "public", "allow_similar_codes", "hierarchies", "value", "sensitivity"},
            set(inspect.signature(hf.release).parameters)
            | {"values", "histogram", "value", "sensitivity", "neighbours", "names"},  # the others are under [release] and [keep]
        ),
    ),
}
SAME = [((), None), ([], ()), ({}, None), (["parquet", "csv"], ("parquet", "csv"))]
"""Defaults that mean the same: nothing listed; lists and tuples."""
SAME_OF = {"ledger": (EMBEDDED, None)}
"""And of one name alone: the ledger that is used where none is named."""


def registered(group: Any = None, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command by its full name."""
    group = group or typer.main.get_command(app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from registered(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def command_options(name: str) -> dict[str, Any]:
    """The arguments and options of a command, with their defaults."""
    command = dict(registered())[name]
    given = inspect.signature(command.callback)
    options = {parameter.name: given.parameters[parameter.name].default for parameter in command.params if parameter.name != "help"}
    assert options.keys() == given.parameters.keys()
    return {option: default for option, default in options.items() if option not in SHOWN}


def python_arguments(*functions: Callable[..., Any]) -> dict[str, Any]:
    """Arguments of all of them, with their defaults; one that several take has one default."""
    found: dict[str, Any] = {}
    for function in functions:
        for name, parameter in inspect.signature(function).parameters.items():
            if name != "self":
                assert found.setdefault(name, parameter.default) == parameter.default, f"{name} has two defaults in Python"
    return found


def differences(here: Mapping[str, Any], there: Mapping[str, Any], pair: Pair) -> list[str]:
    """What one side has and the other has not, has with another default, or needs."""
    alone = [f"{name} is here only" for name in here.keys() - there.keys() - pair.only_command]
    alone += [f"{name} is there only" for name in there.keys() - here.keys() - pair.only_python]
    shared = (here.keys() & there.keys()) - (pair.only_command & pair.only_python)
    other = {name: f"{name}: {show(here[name])} here and {show(there[name])} there" for name in shared if not are_same(name, here, there)}
    alone += [f"{name} is the same on both sides, and listed" for name in pair.differ.keys() - other.keys()]
    return alone + [text for name, text in other.items() if name not in pair.differ]


def show(default: Any) -> str:
    return "needed" if default is inspect.Parameter.empty else repr(default)


def are_same(name: str, here: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    one, other = here[name], there[name]
    return one is other or one == other or any((one, other) in ((a, b), (b, a)) for a, b in [*SAME, SAME_OF.get(name, (one, one))])


@pytest.mark.parametrize("name", COMMANDS)
def test_command_and_python(name: str) -> None:
    pair = COMMANDS[name]
    assert differences(command_options(name), python_arguments(*pair.functions), pair) == []


def test_every_command_is_compared_or_listed_with_a_reason() -> None:
    """A new one fails here until it is."""
    assert not COMMANDS.keys() & NOT_COMPARED.keys()
    assert {name for name, _ in registered()} == COMMANDS.keys() | NOT_COMPARED.keys()


@pytest.mark.parametrize("name", FILES)
def test_run_file_and_python(name: str) -> None:
    section, pair = FILES[name]
    keys = {field: inspect.Parameter.empty if said.is_required() else said.get_default() for field, said in section.model_fields.items()}
    assert differences(keys, python_arguments(*pair.functions), pair) == []


def test_what_is_listed_as_belonging_to_one_side_is_there() -> None:
    for name, pair in COMMANDS.items():
        assert pair.only_command <= command_options(name).keys()
        assert pair.only_python <= python_arguments(*pair.functions).keys()
    for section, pair in FILES.values():
        assert pair.only_command <= section.model_fields.keys()
        assert pair.only_python - python_arguments(*pair.functions).keys() <= {"table", "mechanism", "disjoint", "beside"}


def test_the_release_command_and_python() -> None:
    """Its options are about the ledger and the folder; a run file has the rest."""
    options, arguments = command_options("release"), python_arguments(hf.release, Publication.save)
    assert options.pop("force") == arguments["force"]
    assert options.pop("ledger") is None
    assert arguments["ledger"] == EMBEDDED
    assert options.pop("beside") is None  # --with; in Python no folders, but what was loaded from them
    assert options.keys() == {"run_file", "no_ledger", "resume"}  # no_ledger is ledger=None; only the command resumes


def test_record_keys_have_32_bits_where_nothing_is_said() -> None:
    assert KeySpace.parse(command_options("cellkey perturb")["keys"]) == KeySpace.bits(KEY_BITS)
    noise = hf.cellkey.PerturbationTable.from_probabilities({1: {0: "1/2", 1: "1/2"}}, 2**8)
    assert hf.CellKey(table=noise).rule.records == KeySpace.bits(32)


def test_a_ledger_that_is_made(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the command and by Python it records releases and sets no limit; and a grant is of the kind of its numbers."""
    monkeypatch.chdir(tmp_path)
    assert run("ledger", "create", "--ledger", "command.sqlite").code == 0
    made = Ledger.open("command.sqlite"), Ledger.open("python.sqlite", create=True)
    assert [book.needs_grants for book in made] == [False, False]
    budgets: list[tuple[str, dict[str, Any]]] = [
        ("pure", {"epsilon": "1"}),
        ("zcdp", {"rho": "1/2"}),
        ("approximate", {"epsilon": "1", "delta": "1e-6"}),
    ]
    for kind, numbers in budgets:
        words = [word for name, number in numbers.items() for word in (f"--{name}", number)]
        assert run("ledger", "grant", kind, *words, "--approver", "a", "--reason", "b", "--ledger", "command.sqlite").code == 0
        made[1].grant(kind, **numbers, approver="a", reason="b")
        assert [book.account(kind).grants[0].kind for book in made] == [kind, kind]


def test_answers_take_the_arguments_of_releases() -> None:
    answers, releases = python_arguments(hf.answer), python_arguments(hf.release)
    # answers cannot be declared disjoint, and earlier ones may be to other questions
    assert releases.keys() - answers.keys() == {"table", "disjoint", "beside"}
    assert {name: answers[name] for name in releases.keys() & answers.keys() - {"keep"}} == {
        name: releases[name] for name in releases.keys() & answers.keys() - {"keep"}
    }


def test_differences_are_found() -> None:
    assert differences({"a": 1, "b": 2}, {"a": 2, "c": 3}, Pair(())) == [
        "b is here only",
        "c is there only",
        "a: 1 here and 2 there",
    ]
    needed = inspect.Parameter.empty
    assert differences({"a": needed, "b": needed}, {"a": None, "b": needed}, Pair(())) == ["a: needed here and None there"]
    assert differences({"a": needed}, {"a": None}, Pair((), differ={"a": "why"})) == []
    assert differences({"a": None}, {"a": None}, Pair((), differ={"a": "why"})) == ["a is the same on both sides, and listed"]


def test_only_a_ledger_that_is_not_named_is_the_embedded_one() -> None:
    assert differences({"ledger": None}, {"ledger": EMBEDDED}, Pair(())) == []
    assert differences({"key": None}, {"key": EMBEDDED}, Pair(())) == [f"key: None here and {EMBEDDED!r} there"]
