"""The command, run files and Python say the same thing under the same name, and where nothing is said they do the same. Both are read: an
option or argument that is added on one side only fails here until it is added on the other, or listed as belonging to one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import typer

import holdfast as hf
from holdfast.cli.commands import app
from holdfast.publication.booking import EMBEDDED
from holdfast.publication.diagnose import diagnose
from holdfast.publication.release import Release
from holdfast.runfiles.sections import AnswerSection, ReleaseSection, Section, TableSection
from holdfast.tables.synth import Population, synthesize
from holdfast.verification.loaded import Loaded

SHOWN = {"as_json", "output"}
"""How a command shows what it found, and where it writes it."""
FROM_A_FILE = {"source", "cells", "labels"}
"""What a run file says of its table in words of its own."""

COMMANDS: dict[str, tuple[tuple[Callable[..., Any], ...], set[str], set[str]]] = {
    # command: (what it calls, options of the command alone, arguments of Python alone)
    "verify": ((hf.verify,), set(), set()),
    "view": ((hf.load, Loaded.view), set(), set()),
    "interval": (
        (hf.load, Loaded.interval, Loaded.intervals),
        {"where"},  # in Python the first argument
        {"query", "queries"},
    ),
    "diagnose": ((diagnose,), {"run_file", "kernel"}, {"table", "keep", "mechanism", "kernels", "progress"}),
    "synth": ((synthesize, Population.save), set(), {"blocks"}),
    "plan": (
        (hf.plan,),
        {"run_file", "ledger", "no_ledger", "target"},  # in Python: Ledger.check, allocate
        {"table", "keep", "mechanism", "published_totals", "disjoint", "progress"},  # in a run file, but for published totals
    ),
}
FILES: dict[str, tuple[type[Section], tuple[Callable[..., Any], ...], set[str], set[str]]] = {
    # section: (its keys, what they are given to, keys of run files alone, arguments of Python alone)
    "release": (
        ReleaseSection,
        (hf.release, Release.save),
        {"id", "per", "witness", "revises", "revises_signer"},  # id is release_id, per an argument of mechanisms, witness one of ledgers
        {"table", "keep", "key", "release_id", "progress", "folder", "force"},  # force is an option of the command
    ),
    "table of counts": (
        TableSection,
        (hf.Table.from_counts,),
        FROM_A_FILE | {"id", "record_key", "count"},
        {"data", "cells", "count", "weight"},
    ),
    "table of records": (
        TableSection,
        (hf.Table.from_records,),
        FROM_A_FILE | {"cell_key", "public", "count", "public_columns"},  # of counts
        {"data", "cells", "count", "weight", "public_columns"},
    ),
    "answer": (
        AnswerSection,
        (hf.answer,),
        FROM_A_FILE | {"query", "separator", "encoding", "sheet", "public", "allow_similar_codes", "hierarchies", "value", "sensitivity"},
        set(inspect.signature(hf.release).parameters)
        | {"values", "histogram", "value", "sensitivity", "neighbours", "names"},  # the others are under [release] and [keep]
    ),
}
SAME = [((), None), ([], ()), ({}, None), (EMBEDDED, None), (["parquet", "csv"], ("parquet", "csv"))]
"""Defaults that mean the same: nothing listed; the ledger that is used where none is named; lists and tuples."""


def command_options(name: str) -> dict[str, Any]:
    """The arguments and options of a command, with their defaults."""
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    given = inspect.signature(next(c.callback for c in app.registered_commands if c.callback and c.callback.__name__ == name))
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


def differences(here: Mapping[str, Any], there: Mapping[str, Any], only_here: set[str], only_there: set[str]) -> list[str]:
    """What one side has and the other has not, or has with another default."""
    alone = [f"{name} is here only" for name in here.keys() - there.keys() - only_here]
    alone += [f"{name} is there only" for name in there.keys() - here.keys() - only_there]
    shared = here.keys() & there.keys()
    return alone + [
        f"{name}: {here[name]!r} here and {there[name]!r} there"
        for name in shared - (only_here & only_there)
        if not (is_required(here[name]) or is_required(there[name])) and not are_same(here[name], there[name])
    ]


def is_required(default: Any) -> bool:
    return default is inspect.Parameter.empty


def are_same(one: Any, other: Any) -> bool:
    return one == other or any((one, other) in ((a, b), (b, a)) for a, b in SAME)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_and_python(name: str) -> None:
    functions, only_command, only_python = COMMANDS[name]
    options, arguments = command_options(name), python_arguments(*functions)
    if name == "synth":
        options["people"] = arguments["people"] = inspect.Parameter.empty  # Python must say how many
    assert differences(options, arguments, only_command, only_python) == []


@pytest.mark.parametrize("name", FILES)
def test_run_file_and_python(name: str) -> None:
    section, functions, only_file, only_python = FILES[name]
    keys = {field: inspect.Parameter.empty if said.is_required() else said.get_default() for field, said in section.model_fields.items()}
    assert differences(keys, python_arguments(*functions), only_file, only_python) == []


def test_what_is_listed_as_belonging_to_one_side_is_there() -> None:
    for name, (functions, only_command, only_python) in COMMANDS.items():
        assert only_command <= command_options(name).keys()
        assert only_python <= python_arguments(*functions).keys()
    for section, functions, only_file, only_python in FILES.values():
        assert only_file <= section.model_fields.keys()
        assert only_python - python_arguments(*functions).keys() <= {"table", "mechanism", "disjoint"}


def test_the_release_command_and_python() -> None:
    """Its options are about the ledger and the folder; a run file has the rest."""
    options, arguments = command_options("release"), python_arguments(hf.release, Release.save)
    assert options.pop("force") == arguments["force"]
    assert options.pop("ledger") is None
    assert arguments["ledger"] == EMBEDDED
    assert options.keys() == {"run_file", "no_ledger", "resume"}  # no_ledger is ledger=None; only the command resumes


def test_answers_take_the_arguments_of_releases() -> None:
    answers, releases = python_arguments(hf.answer), python_arguments(hf.release)
    assert releases.keys() - answers.keys() == {"table", "disjoint"}  # answers cannot be declared disjoint
    assert {name: answers[name] for name in releases.keys() & answers.keys() - {"keep"}} == {
        name: releases[name] for name in releases.keys() & answers.keys() - {"keep"}
    }


def test_differences_are_found() -> None:
    assert differences({"a": 1, "b": 2}, {"a": 2, "c": 3}, set(), set()) == [
        "b is here only",
        "c is there only",
        "a: 1 here and 2 there",
    ]
