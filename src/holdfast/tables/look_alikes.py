"""Names that people take for one: they differ only in blanks, case, Unicode form, or in letters that look alike.

The table is small on purpose: letters of Cyrillic, Greek and Armenian that most fonts draw as a Latin letter, Latin letters and digits that
stand for one another in a hurry, and dashes and quotes. It does not list everything that Unicode calls confusable: what looks merely
similar stays two names. Accents tell names apart.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from holdfast.tables.similar import folded

_PAIRS = (
    ("аеорсухіјѕһԁԛԝӏ", "aeopcyxijshdqwl"),  # Cyrillic, small
    ("АВЕКМНОРСТУХІЈЅԚԜӀ", "ABEKMHOPCTYXIJSQWl"),  # Cyrillic, capital
    ("αικνορυχγ", "aikvopuxy"),  # Greek, small
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX"),  # Greek, capital
    ("օսոհց", "ounhg"),  # Armenian, small
    ("ıɑɡ", "iag"),  # Latin: without a dot, and as handwriting has them
    ("‐‑‒–—―−", "-------"),  # dashes
    ("‘’ʼ`´“”", "'''''\"\""),  # quotes
)
LOOK_ALIKES = str.maketrans({odd: plain for odds, plains in _PAIRS for odd, plain in zip(odds, plains, strict=True)})
"""Letters by the one that they are taken for."""
_IN_A_HURRY = str.maketrans({"0": "O", "1": "l", "I": "l", "|": "l"})


def skeletons(name: str) -> frozenset[str]:
    """Two texts that stand for how a name reads: names that share one of them look alike.

    The first is for names in one script, where a capital and a small letter are one. The second maps letters before case is folded, because
    a capital may look like a letter of another script that its small form does not resemble.
    """
    plain = unicodedata.normalize("NFKC", name)
    as_written = plain.translate(LOOK_ALIKES).translate(_IN_A_HURRY)
    return frozenset(folded(text).translate(LOOK_ALIKES) for text in (plain, as_written))


def look_alike(name: str, others: Iterable[str]) -> str | None:
    """The first of the other names that looks like this one and is another; None where there is none, or where the very name is there."""
    known = list(dict.fromkeys(others))
    if name in known:
        return None
    own = skeletons(name)
    return next((other for other in known if own & skeletons(other)), None)
