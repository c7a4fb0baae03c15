"""Sentences of pages by name, in the language of a release: one file for each language in `catalogues/`.

A file is TOML: a table for each page, a sentence for each name, {names} in braces where values go. A sentence that depends on a number has
the forms `one` and `other`. English is complete; a test compares the names and values of every other file with it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from holdfast.errors import InvalidParameter

LANGUAGES = ("en",)
"""Those with a complete catalogue."""

ENGLISH: Final = "en"


@cache
def catalogue(language: str) -> Mapping[str, Mapping[str, str]]:
    """For every "page.name" its forms; a sentence without a number has only `other`."""
    if language not in LANGUAGES:
        raise InvalidParameter(f"Pages are written in {' or '.join(map(repr, LANGUAGES))}. Got {language!r}.", field="language")
    given = tomllib.loads((files("holdfast.wording") / "catalogues" / f"{language}.toml").read_text(encoding="utf-8"))
    return {
        f"{page}.{name}": {"other": said} if isinstance(said, str) else said
        for page, sentences in given.items()
        for name, said in sentences.items()
    }


def sentence(language: str, name: str, count: int | None = None) -> str:
    """The sentence of this name, with its places for values; for `count` things, where it has forms for one and for more."""
    forms = catalogue(language)[name]
    return forms["one"] if count == 1 and "one" in forms else forms["other"]


class Sentences:
    """Sentences of one language as plain text: said("page.release", id="r1"). Whole numbers get their commas."""

    def __init__(self, language: str = ENGLISH) -> None:
        self.language = language

    def __call__(self, name: str, /, **values: str | int) -> str:
        return self.form(name, values).format(**{key: f"{value:,}" if isinstance(value, int) else value for key, value in values.items()})

    def form(self, name: str, values: Mapping[str, str | float]) -> str:
        """The sentence with its places; its form goes by the value `count`."""
        count = values.get("count")
        return sentence(self.language, name, count if isinstance(count, int) else None)

    def nouns(self, kind: str) -> dict[str, str]:
        """What a table holds, "count" or "value", for the places {noun} and {nouns}, and {Noun} and {Nouns} where a sentence begins."""
        small, large = (catalogue(self.language)[f"noun.{name}"] for name in (kind, f"{kind}_first"))
        return {"noun": small["one"], "nouns": small["other"], "Noun": large["one"], "Nouns": large["other"]}
