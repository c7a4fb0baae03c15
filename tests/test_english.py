"""Sentences and names read as English: what tools/check_english.py finds may only become fewer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import check_english

MOST_PHRASES = 73
"""Places in src, docs and README.md. Some are false alarms ("there is no column 'x'"); lower it with every sentence that is rewritten."""
MOST_PARTICIPLES = 19
"""Functions whose whole name is a participle."""


@pytest.mark.parametrize(
    ("find", "most"),
    [(check_english.find_phrases, MOST_PHRASES), (check_english.find_participles, MOST_PARTICIPLES)],
    ids=["phrases", "participles"],
)
def test_the_number_does_not_rise(find: Callable[[Path], Iterator[str]], most: int) -> None:
    files = list(check_english.files_in(check_english.ROOT / name for name in check_english.READ))
    assert len(files) > 400
    places = [f"{path.relative_to(check_english.ROOT)}:{hit}" for path in files for hit in find(path)]
    assert len(places) <= most, "\n".join(["There are more than before. Rewrite the sentence or rename the function:", *places])


def test_phrases_are_found_in_sentences_and_comments_only(tmp_path: Path) -> None:
    page, code = tmp_path / "page.md", tmp_path / "code.py"
    page.write_text("It stands in the file.\n\n    it stands in code\n", encoding="utf-8")
    code.write_text('"""That it is none of\nthese."""\n# what was given is refused\nstands_in = "stands in"\n', encoding="utf-8")
    assert [hit.split(":")[0] for hit in check_english.find_phrases(page)] == ["1"]
    assert sorted(hit.split(":")[0] for hit in check_english.find_phrases(code)) == ["1", "1", "3"]


def test_participles_are_found(tmp_path: Path) -> None:
    code = tmp_path / "code.py"
    code.write_text("def decided(): ...\ndef _told(): ...\ndef is_decided(): ...\ndef variance(): ...\n", encoding="utf-8")
    assert list(check_english.find_participles(code)) == ["1: decided", "2: _told"]
