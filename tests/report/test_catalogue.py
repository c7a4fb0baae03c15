"""The catalogues of sentences: every language has what English has, every sentence is used, and values are escaped."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

import holdfast.report
from holdfast.errors import InvalidParameter
from holdfast.report.frame import Say, css_string
from holdfast.wording.catalogue import ENGLISH, LANGUAGES, catalogue, sentence
from tests.report.cards import HOSTILE, Page

ROOMS = Path(holdfast.report.__file__).parent.parent
PLACES = [ROOMS / "report", ROOMS / "wording", ROOMS / "research"]
SOURCES = "\n".join(
    path.read_text(encoding="utf-8") for place in PLACES for path in sorted(place.rglob("*")) if path.suffix in (".py", ".j2")
)


def fields(said: str) -> set[str]:
    return {field for _, field, _, _ in Formatter().parse(said) if field is not None}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_the_sentences_of_english_with_the_same_values(language: str) -> None:
    there, here = catalogue(ENGLISH), catalogue(language)
    assert there.keys() == here.keys()
    for name, forms in here.items():
        assert set(forms) in ({"other"}, {"one", "other"}), name
        assert fields(forms["other"]) == fields(there[name]["other"]), name
        assert fields(forms.get("one", forms["other"])) <= fields(forms["other"]), name


def test_no_sentence_is_left_over() -> None:
    """Each is named where pages are made; a family such as sign_name by its beginning."""
    for name in catalogue(ENGLISH):
        page, _, last = name.partition(".")
        whole = f'"{name}"' in SOURCES or f"'{name}'" in SOURCES
        family = f'"{page}.' in SOURCES and re.search(rf'["_.]{last.rpartition("_")[2]}"', SOURCES)
        assert whole or family, name


def test_forms_go_by_the_number() -> None:
    assert sentence("en", "statement.kept", 1).startswith("The kept total is")
    assert sentence("en", "statement.kept", 0).startswith("The {count} kept totals are")
    assert Say()("statement.left_out", count=4929) == "4,929 cells left out of the draw"
    assert sentence("en", "statement.budget", 1) == "The budget"


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda value: ascii(value)[:30])
def test_values_are_escaped_and_never_read_as_places(hostile: str) -> None:
    said = Say()("page.release", id=hostile)
    assert Page(f"<p>{said}</p>").elements == [("p", {}, ())]
    assert Say().plain("page.release", id=hostile) == f"Release {hostile}"


def test_a_string_of_the_style_sheet_holds_any_text() -> None:
    assert css_string("delta = 1/2") == '"delta \\00003d  1\\00002f 2"', "a space after an escape belongs to it"
    assert not re.search(r"[<>{}&\n]|(?<!^)\"(?!$)", css_string('"; } </style><b>&\n'))


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="Pages are written in 'en'"):
        catalogue("xx")
