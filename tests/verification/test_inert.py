"""Pages can do nothing but be read, whatever version of Holdfast a card names; and such a card cannot promise more in words."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import InvalidParameter, VerificationFailed
from holdfast.report.statement import statement_html
from holdfast.verification.inert import POLICY, not_inert
from tests.report.cards import HOSTILE, a_card, with_every_text
from tests.running import Run
from tests.verification.test_verify_mutations import with_right_checksums

PAGE = statement_html(a_card())
META = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
OTHER_TAG = "a tag, comment or declaration written as on no page of ours"
SHEET = "a style sheet that may load something"

IN_THE_BODY = [
    ("<script>alert(1)</script>", "an element 'script'"),
    ("<SCRIPT>alert(1)</SCRIPT>", "an element 'script'"),
    ("<script\n>alert(1)</script\n>", "an element 'script'"),
    ("<script src=//x.example></script>", OTHER_TAG),
    ('<svg onload="alert(1)"></svg>', "an attribute 'onload', which runs something"),
    ("<svg/onload=alert(1)>", OTHER_TAG),
    ('<p OnClick="alert(1)">x</p>', "an attribute 'onclick'"),
    ('<p class="a"onclick="alert(1)">x</p>', OTHER_TAG),
    ('<details open ontoggle="alert(1)">x</details>', "an attribute 'ontoggle'"),
    ('<a href="javascript:alert(1)">x</a>', "an element 'a'"),
    ('<p href="java&#115;cript:alert(1)">x</p>', "an address in 'href' that leaves the page"),
    ('<svg><text xlink:href="https://x.example">x</text></svg>', "an address in 'xlink:href'"),
    ('<img src="https://x.example/a.png">', "an element 'img'"),
    ("<img src=x onerror=alert(1)>", OTHER_TAG),
    ('<meta http-equiv="refresh" content="0;url=https://x.example">', "an element 'meta'"),
    ('<base href="https://x.example">', "an element 'base'"),
    ('<link rel="stylesheet" href="https://x.example/a.css">', "an element 'link'"),
    ('<iframe srcdoc="x"></iframe>', "an element 'iframe'"),
    ('<object data="x"></object>', "an element 'object'"),
    ('<form action="https://x.example"></form>', "an element 'form'"),
    ("<template><p>x</p></template>", "an element 'template'"),
    ('<svg><animate attributeName="href" to="x"></animate></svg>', "an element 'animate'"),
    ('<svg><use href="#x"></use></svg>', "an element 'use'"),
    ("<svg><foreignObject></foreignObject></svg>", "an element 'foreignobject'"),
    ("<svg><style><script>alert(1)</script></style></svg>", "a style sheet that is not closed"),
    ("<math><mtext></mtext></math>", "an element 'math'"),
    ("<title><!--</title><script>alert(1)</script>-->", OTHER_TAG),
    ("<!-- x -->", OTHER_TAG),
    ("<!--><script>alert(1)</script>-->", OTHER_TAG),
    ("<!-- --!><script>alert(1)</script>", OTHER_TAG),
    ("<![CDATA[<script>alert(1)</script>]]>", OTHER_TAG),
    ("<?x ?>", OTHER_TAG),
    ("<p class='a'>x</p>", OTHER_TAG),
    ("</p onclick>", "an attribute 'onclick'"),
    ("a < b", OTHER_TAG),
    ('<p style="background: url(https://x.example)">x</p>', "an attribute 'style' that may load something"),
    ('<p style="background: &#117;RL(https://x.example)">x</p>', "an attribute 'style'"),
    ('<svg><rect fill="url(https://x.example#a)"></rect></svg>', "an attribute 'fill'"),
    ("<style>@import 'https://x.example';</style>", SHEET),
    ("<style>@IMPORT 'https://x.example';</style>", SHEET),
    ("<style>@\\69mport 'https://x.example';</style>", SHEET),
    ("<style>p { background: url(https://x.example) }</style>", SHEET),
    ('<style>p { background: image-set("https://x.example" 1x) }</style>', SHEET),
    ("<style>/* \" */ @import 'https://x.example'; /* \" */</style>", SHEET),
    ("<style>p { content: \"a\f } @import 'https://x.example'; \"; }</style>", SHEET),
    ('<style>p { content: \\"; background: url(https://x.example); content: \\" }</style>', SHEET),
    ("<style>p { color: red }", "a style sheet that is not closed"),
]


@pytest.mark.parametrize(("more", "words"), IN_THE_BODY, ids=[more for more, _ in IN_THE_BODY])
def test_what_runs_loads_or_leads_away_is_found(more: str, words: str) -> None:
    found = not_inert(PAGE.replace("</main>", f"{more}</main>").encode())
    assert found is not None
    assert words in found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (META, ""),
        (META, f"<!-- {META} -->"),
        (META, META.replace("default-src", "img-src")),
        (META, META.replace("style-src", "script-src")),
        (META, f"<title>x</title>{META}"),
        (META, f'<meta http-equiv="refresh" content="0;url=https://x.example">{META}'),
        ("<head>", '<head><base href="https://x.example">'),
        ("<head>", "<head><script>alert(1)</script>"),
        ("<!DOCTYPE html>", ""),
        ("<!DOCTYPE html>", "\ufeff<!DOCTYPE html>"),
        ('<html lang="en">', '<html lang="en" onload="alert(1)">'),
        ('charset="utf-8"', 'charset="utf-7"'),
    ],
)
def test_the_policy_stands_before_everything_else(old: str, new: str) -> None:
    assert PAGE.count(old) == 1
    assert not_inert(PAGE.replace(old, new).encode()) == "a head that does not begin with our content security policy"


def test_bytes_that_are_no_text() -> None:
    assert not_inert(PAGE.encode("utf-16")) == "bytes that are no UTF-8"
    assert not_inert(PAGE.encode() + b"\xff") == "bytes that are no UTF-8"


@pytest.mark.parametrize("text", [*HOSTILE, "url(https://x.example)", "@import 'x'", "\\"], ids=lambda value: ascii(value)[:30])
def test_pages_of_ours_are_inert_whatever_an_office_calls_things(text: str) -> None:
    assert not_inert(statement_html(with_every_text(text)).encode()) is None


@pytest.mark.parametrize(
    "more", ['<p href="#top">x</p>', '<p aria-label="url(https://x.example)">x</p>', '<svg><rect fill="url(#a)"></rect></svg>']
)
def test_what_stays_on_the_page_is_inert(more: str) -> None:
    assert not_inert(PAGE.replace("</main>", f"{more}</main>").encode()) is None


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its promise in words has the budget that was asked for, and names of exposed cells."""
    table = hf.Table(hf.Universe.product({"area": ["a", "b"], "sex": ["F", "M"]}), np.array([3, 4, 5, 6]))
    table = table.with_labels({"area": {"a": "North", "b": "South"}}, {"area": "Area"})
    keep: list[Any] = [hf.margin("area"), hf.subset("area", ["a"], by=["sex"])]
    made = hf.release(
        table,
        keep,
        hf.GeneralizedLaplace(epsilon="1/2", per="person"),
        key=hf.NoiseKey.for_tests("inert"),
        release_id="inert",
        allow_exposed=2,
    )
    return made.save(tmp_path_factory.mktemp("inert") / "folder", formats=["csv"])


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "folder"))


def change(folder: Path, of_guarantee: dict[str, Any], version: str | None = "0.2.0") -> None:
    card = json.loads((folder / "card.json").read_text())
    card["guarantee"] |= of_guarantee
    card["software"] |= {} if version is None else {"holdfast": version}
    (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    with_right_checksums(folder)


class TestAnotherVersion:
    """A card that names another version: its pages and sentences were not looked at."""

    def test_what_was_not_compared_is_a_failure_where_asked(self, folder: Path, run: Run) -> None:
        assert run("verify", folder, "--strict").code == 0
        change(folder, {})
        told = run("verify", folder)
        assert told.code == 0
        assert "which the card says version 0.2.0 of Holdfast made; they could say anything. Verify with that version." in told.out
        strict = run("verify", folder, "--strict")
        assert strict.code == VerificationFailed.exit_code
        assert "Not everything was compared, as strict asks for: sentences and pages" in strict.err

    @pytest.mark.parametrize("page", ["statement.html", "report.html"])
    def test_a_page_with_a_script_is_refused(self, folder: Path, page: str) -> None:
        text = (folder / page).read_text()
        (folder / page).write_text(text.replace("</main>", "<script>alert(1)</script></main>"))
        change(folder, {})
        with pytest.raises(VerificationFailed, match=f"{page} has what no page of Holdfast has: an element 'script'"):
            hf.verify(folder)

    @pytest.mark.parametrize("place", ["before", "within", "after", "instead"])
    def test_words_say_no_more_than_sentences(self, folder: Path, place: str) -> None:
        words = json.loads((folder / "card.json").read_text())["guarantee"]["text"]
        assert "Requested: " in words
        assert "By name: North, " in words
        more = "Nothing whatever can be learned."
        forged = {"before": f"{more} {words}", "within": words.replace(". ", f". {more} ", 1), "after": f"{words} {more}", "instead": more}
        change(folder, {"text": forged[place]})
        with pytest.raises(VerificationFailed, match=r"guarantee\.text is not what the card requests, its guarantee\.sentences"):
            hf.verify(folder)


class TestMessages:
    def test_a_changed_sentence_is_shown_where_it_differs(self, folder: Path) -> None:
        sentences = json.loads((folder / "card.json").read_text())["guarantee"]["sentences"]
        place = next(i for i, text in enumerate(sentences) if "epsilon = 0.5 for one" in text)
        change(folder, {"sentences": [text.replace("epsilon = 0.5 for one", "epsilon = 0.1 for one") for text in sentences]}, None)
        privacy = "...erential privacy, epsilon = 0"
        here, there = (rf"{re.escape(privacy)}\.{digit} for one person, .*?\.\.\." for digit in "15")
        with pytest.raises(VerificationFailed, match=rf"guarantee\.sentences\.{place} is {here}; the rest of the folder gives {there}"):
            hf.verify(folder)

    def test_a_label_that_turns_the_text_round(self, folder: Path) -> None:
        card = json.loads((folder / "card.json").read_text())
        card["table"]["labels"][0]["codes"][0][1] = "a\u202eb"
        (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
        with pytest.raises(VerificationFailed, match="without characters that do not print, such as control or direction marks"):
            hf.verify(folder)
        table = hf.Table(hf.Universe.product({"area": ["a", "b"]}), np.array([3, 4]))
        with pytest.raises(InvalidParameter, match=r"such as control or direction marks\. Got 'a\\u202eb'"):
            table.with_labels({"area": {"a": "a\u202eb"}})
