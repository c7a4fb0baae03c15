"""Pages and figures in another language: every word on them is of its catalogue, of the card, or a name that no language changes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.publication.plots import Plot
from holdfast.publication.publication import Publication
from holdfast.publication.report_facts import report_facts
from holdfast.report.report import report_html
from holdfast.report.statement import statement_html
from holdfast.wording import catalogue as catalogues
from tests.report.cards import Page

LANGUAGE = "xx"
NAMES = {"epsilon", "delta", "rho", "holdfast", "verify", "interval", "folder", "e", "k", "M"}
"""Symbols, commands with their arguments, thousands and millions."""
CODES = {"area": ["a", "b", "d"], "sex": ["F", "M"]}
CELLS = hf.Universe.product(CODES)
COUNTS = np.array([120, 3, 40, 55, 900, 7])
AREA = [hf.margin("area")]


def in_another_language(said: str) -> str:
    """The same places, and X for every letter."""
    pieces = (re.sub("[A-Za-z]", "X", text) + ("" if field is None else f"{{{field}}}") for text, field, _, _ in Formatter().parse(said))
    return "".join(pieces)


@pytest.fixture(autouse=True)
def _another_language(monkeypatch: pytest.MonkeyPatch) -> None:
    english = catalogues.catalogue("en")
    other = {name: {form: in_another_language(said) for form, said in forms.items()} for name, forms in english.items()}

    def catalogue(language: str) -> Mapping[str, Mapping[str, str]]:
        return other if language == LANGUAGE else english

    monkeypatch.setattr(catalogues, "catalogue", catalogue)


def words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z]+", text.replace("X", "")))


TABLE = hf.Table(CELLS, COUNTS)
MADE: dict[str, tuple[list[Any], Any]] = {
    "totals that fix cells": (
        [hf.margin("area"), hf.subset("area", codes=["a"], by=["sex"])],
        hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
    ),
    "no totals": ([], hf.GeneralizedGaussian(rho="1/10", per="person")),
    "bounds": (AREA, hf.Conditional(epsilon="1/2", per="distance")),
    "suppression": (AREA, hf.Suppression()),
}


def released(name: str, release_id: str) -> Publication:
    said: dict[str, Any] = {"key": hf.NoiseKey.for_tests(name), "release_id": release_id}
    if name == "a grid":
        made: Publication = hf.answer([12.5, 7.25], keep=[[1, 1]], sensitivity="1/2", mechanism=hf.ProjectedLaplace(epsilon="1"), **said)
        return made
    keep, mechanism = MADE[name]
    exposed = {"allow_exposed": 2} if name == "totals that fix cells" else {}
    return hf.release(TABLE, keep, mechanism, **said | exposed | ({"key": None} if name == "suppression" else {}), ledger=None)


@pytest.mark.parametrize("name", [*MADE, "a grid"])
def test_pages_have_no_word_of_their_own(name: str) -> None:
    release = released(name, "r1")
    whole = release.card
    card = whole.model_copy(update={"release": whole.release.model_copy(update={"language": LANGUAGE})})
    facts = report_facts(release.plan, release.table)
    known = words(json.dumps([release.card.to_dict(), release.kept_rows, CODES])) | NAMES
    for html in (statement_html(card), report_html(card, release.kept_rows, facts)):
        text = re.sub("<style>.*?</style>", "", html, flags=re.DOTALL)
        assert words(Page(text).text) - {word for given in known for word in (given, given.capitalize())} == set()


def test_figures_in_notebooks_follow_the_language(tmp_path: Path) -> None:
    release = released("no totals", "r2")
    made = hf.load(release.save(tmp_path / "out"))
    assert made.plot.ranked() == release.plot.ranked()
    plot: Plot = replace(made, about=made.about.model_copy(update={"language": LANGUAGE})).plot
    known = words(json.dumps([made.card.to_dict(), CODES])) | NAMES
    figures = [plot.error_by_level(), plot.error_by_margin(), plot.error_by_size(), plot.relative_errors()]
    for figure in (*figures, plot.ranked(), plot.heat_map(), plot.noise()):
        assert words(Page(figure.html()).text) - known == set(), figure.name
