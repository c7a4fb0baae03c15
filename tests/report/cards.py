"""A card to make pages from, and a reader of pages that is stricter than a browser."""

from __future__ import annotations

import copy
import re
from html.parser import HTMLParser
from typing import Any

from pydantic import BaseModel

from holdfast.card.card import Card

VOID = {"meta"}
STARTS = dict.fromkeys(("title", "h1", "h2", "h3", "p", "li", "caption", "tr", "figcaption", "desc", "text", "dt", "summary"), "\n") | {
    "dd": " | ",
    "th": " | ",
    "td": " | ",
}
"""What is read apart from what stands before it."""

# Each would run, break out, vanish or turn the text round if it were not escaped.
HOSTILE = [
    "<script>alert(1)</script>",
    "</style></title></section><b>",
    "\" onload='x' ",
    "a & b &lt; &#60;",
    "{0} {name} %s",
    "]]> --> <!--",
    "\u202eright to left",
    "nul \x00 escape \x1b[31m bell \x07",
    "lone \ud800 surrogate",
    "x" * 5000,
    "Ærø 你好 \u0301",
]

INCOMPLETE: dict[str, Any] = {
    "exposed__undecided": 3,
    "exposed__open": [{"cells": 3, "at_least": 0, "at_most": 2, "name": "state=11, county=002"}],
    "exposed__text": "1 cell is published exactly because the kept totals fix it. For 3 cells it is not decided whether the kept totals "
    "give them away: 3 cells between 0 and 2 (such as state=11, county=002).",
}
"""Changes of a card: the words of the card say it, and pages do not say it again."""

LEVELS: dict[str, Any] = {
    "mechanism__name": "generalized-gaussian",
    "mechanism__parameters": {
        "rho": "1/10",
        "levels": '[["state", ["sex"], "1/10"], ["county", "total", "1/5"], [["state", "county"], "detailed", "7/10"]]',
    },
    "guarantee__distance": "levels",
    "expected_error__levels": [
        {"level": "total", "margin": "total", "units": 1, "smallest": 0.0, "median": 0.0, "largest": 0.0},
        {"level": "county", "margin": "total", "units": 3143, "smallest": 3.5, "median": 3.61, "largest": 3.75},
        {"level": "county", "margin": "sex", "units": 3143, "smallest": 3.66, "median": 3.66, "largest": 3.66},
    ],
}
"""Changes of a card: the budget has shares for levels."""

CARD: dict[str, Any] = {
    "schema_version": "5.0",
    "release": {
        "id": "counties-2030-v1",
        "tables": [],
        "table_name": None,
        "date": "2030-04-01",
        "office": "Statistical Office",
        "approver": "A. Chief, Director",
        "test_key": False,
        "ledger": None,
        "ledger_text": "It is in no ledger.",
        "signer": None,
        "allow_exposed": 1,
        "grant": None,
        "disjoint": None,
        "language": "en",
        "formulas": "as they are",
    },
    "warnings": [],
    "table": {
        "name": "counties",
        "columns": ["state", "county"],
        "count": "population",
        "cells": 3143,
        "universe": "as listed",
        "universe_digest": "sha256:" + "0f" * 32,
        "protect": "person",
        "max_records": 1,
        "over": "refuse",
        "counted": "The numbers are declared to be a count of persons, each counted at most once, and no sum of amounts.",
        "public_columns": [],
        "hierarchies": [],
        "labels": [],
        "grid": None,
    },
    "kept": {
        "constraints": ["margin(state)"],
        "identities": [],
        "definitions": [{"type": "margin", "kind": "kept", "columns": ["state"]}],
        "revision": None,
        "totals": 51,
        "independent": 51,
        "free_dimensions": 3092,
        "zeros": {
            "status": "none",
            "rule": 1,
            "cells": 0,
            "under": 0,
            "digest": None,
            "text": "No cell is left out of the draw because of a kept total of 0.",
        },
    },
    "exposed": {
        "cells": 1,
        "by_structure": 1,
        "by_values": 0,
        "names": ["state=11, county=001"],
        "columns": [],
        "rule": 1,
        "undecided": 0,
        "open": [],
        "together": None,
        "text": "1 cell is published exactly because the kept totals fix it.",
    },
    "mechanism": {
        "name": "generalized-laplace",
        "parameters": {"epsilon": "24/125", "norm": "l1"},
        "law": "P[z] proportional to exp(-24/125 |z|_1) over all integer tables z that change no kept total",
        "identity": "5d" * 32,
    },
    "sampler": {
        "status": "exact",
        "groups": [
            {
                "kind": "one sum",
                "blocks": 50,
                "cells": 3142,
                "sampler": "corrected geometrics",
                "expected_tries": 1.4,
                "why": "one kept total over the cells",
                "chain": None,
            },
            {
                "kind": "exposed",
                "blocks": 1,
                "cells": 1,
                "sampler": "none",
                "expected_tries": 1.0,
                "why": "fixed by the kept totals",
                "chain": None,
            },
        ],
    },
    "guarantee": {
        "asked": {
            "per": "distance",
            "parameters": {"epsilon": "24/125"},
            "text": "epsilon = 0.192 for each unit of l1 distance between two tables",
        },
        "kind": "pure",
        "parameters": {"epsilon": "24/125"},
        "distance": "l1",
        "squared": False,
        "protect": "person",
        "relation": "tables with the same kept totals",
        "status": "exact",
        "relation_fields": {"same_totals": True, "same_cells": False, "non_negative": False, "within_bounds": False, "identities": False},
        "status_note": "",
        "max_records": 1,
        "chains": [],
        "conditioning": None,
        "law": None,
        "answers": None,
        "keyed": None,
        "per_distance": {"kind": "pure", "epsilon": "24/125", "delta": "0", "rho": "288/15625"},
        "per_person": {"kind": "pure", "epsilon": "48/125", "delta": "0", "rho": "1152/15625", "distance": 2},
        "smallest_secret": {"kind": "pure", "epsilon": "48/125", "delta": "0", "rho": "1152/15625", "distance": 2, "found": "exact"},
        "why": "One person who changes cell lowers one count and raises another: 2 in l1 distance.",
        "sentences": ["Whoever sees the table can hardly tell whether one person lives in one county of a state or in another."],
        "text": "Requested: epsilon = 0.192. Whoever sees the table can hardly tell whether one person lives in one county of a state or "
        "in another.",
    },
    "expected_error": {
        "cell_standard_deviation": {"smallest": 0.0, "median": 7.2, "largest": 7.3},
        "found": "exact",
        "basis": "exact",
        "relative_error": 0.0,
        "text": "A typical released count differs from the true one by about 5; two thirds of them by less than 7.",
        "cells_not_estimated": 0,
        "levels": [],
        "margins": [{"name": "margin(state)", "standard_deviation": 0.0}],
    },
    "software": {
        "holdfast": "0.1.0",
        "python": "3.11.9",
        "numpy": "2.4.0",
        "numba": "0.68",
        "python-flint": "0.9",
        "cryptography": "50",
        "stream_version": 2,
    },
    "files": {
        "table.csv": {"sha256": "ab" * 32, "bytes": 1},
        "kept.csv": {"sha256": "cd" * 32, "bytes": 1},
    },
    "signature": None,
}


def card_values(**changes: Any) -> dict[str, Any]:
    """A fresh copy of CARD; a change is named by its path: card_values(release__private=False)."""
    card = copy.deepcopy(CARD)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = card
        for parent in parents:
            place = place[parent]
        place[last] = value
    return card


def a_card(**changes: Any) -> Card:
    """The same as a card."""
    return Card.model_validate(card_values(**changes))


NO_TEXT = frozenset(
    {"schema_version", "over", "language", "formulas", "universe", "universe_digest", "status", "identity", "found", "kind"}
) | {
    "epsilon",
    "delta",
    "rho",
    "sha256",
}
"""Names of values that are one of a list, numbers or digests."""


def with_every_text(hostile: str) -> Card:
    """CARD with every text that the pages show, and every name in it that an office may choose, replaced; also where cards have none."""
    harmless = "harmless"

    def named(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: named(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [named(inner, name) for inner in value]
        return harmless if isinstance(value, str) and name not in NO_TEXT else value

    def replaced(value: Any) -> Any:
        if isinstance(value, BaseModel):
            return value.model_copy(update={name: replaced(getattr(value, name)) for name in type(value).model_fields})
        if isinstance(value, dict):
            return {replaced(key): replaced(inner) for key, inner in value.items()}
        if isinstance(value, tuple | list):
            return type(value)(map(replaced, value))
        return hostile if value == harmless else value

    values = named(CARD)
    values["release"]["date"] = CARD["release"]["date"]
    for part in ("mechanism", "guarantee"):
        values[part]["parameters"] = {harmless: harmless}
    subset = {"type": "subset", "column": harmless, "codes": [harmless], "node": None, "condition": None, "by": [harmless]}
    values["kept"]["definitions"] = [{**subset, "kind": "kept"}, {**subset, "kind": "identity", "values": None}]
    values["kept"]["identities"] = [harmless]
    card: Card = replaced(Card.model_validate(values))
    return card.model_copy(update={"release": card.release.model_copy(update={"date": hostile}), "software": {hostile: hostile}})


class Page(HTMLParser):
    """The elements of a page. Fails on a tag that does not close, closes out of order, or has an attribute twice."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.pieces: list[str] = []
        self.laid_out: list[str] = []
        self.comments = 0
        self.feed(html)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute of {tag} is given twice"
        self.elements.append((tag, dict(attrs), tuple(self.open)))
        self.laid_out.append(STARTS.get(tag, ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes {self.open}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.pieces.append(data)
            self.laid_out.append(re.sub(r"\s+", " ", data))

    def handle_comment(self, data: str) -> None:
        self.comments += 1

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.pieces).split())

    @property
    def lines(self) -> str:
        """The same laid out for reading: a line for each paragraph, heading, item and row."""
        return "\n".join(filter(None, (" ".join(line.split()).strip("| ") for line in "".join(self.laid_out).splitlines())))

    def lines_beyond(self, other: Page) -> str:
        """Those that the other page does not have."""
        known = set(other.lines.splitlines())
        return "\n".join(line for line in self.lines.splitlines() if line not in known)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes, _ in self.elements if name == tag]
