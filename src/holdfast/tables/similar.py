"""Codes and names that people take for one: they differ only in blanks, case or Unicode form; names also in letters that look alike.

Such codes are almost always one code written in two ways. Taken for two, the second has a total of its own: where that is kept, a few
records are published exactly because of a blank.

Letters that look alike are in a table, small on purpose: letters of Cyrillic, Greek and Armenian that most fonts draw as a Latin
letter, Latin letters and digits that stand for one another in a hurry, and dashes and quotes. It does not list everything that Unicode
calls confusable: what looks merely similar stays two names. Accents tell names apart.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Any

from holdfast.display import list_names
from holdfast.errors import InvalidCode

_IGNORABLE = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
"""First and last of the code points that Unicode calls Default_Ignorable: joiners, fillers, variation selectors, tags, and those kept for
more of them."""
_UNSEEN = frozenset(map(chr, (0x2800, *(code for first, last in _IGNORABLE for code in range(first, last + 1)))))
"""What prints nothing although Unicode may count it as neither blank nor format: the above, and the empty Braille pattern."""
_SHOWN = 100
"""Characters of a message that may go to codes."""

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


def fold_code(code: str) -> str:
    """The code without what does not tell codes apart: blanks and marks that do not print, case, Unicode form (NFKC)."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", code).casefold())
    seen = (letter for letter in plain if not (letter.isspace() or letter in _UNSEEN or unicodedata.category(letter) in ("Cf", "Cc")))
    return unicodedata.normalize("NFKC", "".join(seen))  # what stood between a letter and its accent is gone


def similar_codes(codes: Any) -> list[tuple[str, ...]]:
    """The groups of codes that are the same once folded, in order of first appearance.

    Given:  an Arrow array of different texts.
    Time:   one pass without Python objects where all codes are plain letters and digits in one case, as they almost always are.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.match_substring_regex(codes, r"^[!-~]*$")  # printing ASCII, no blank
    folds = pc.ascii_lower(codes)
    if pc.all(plain).as_py() is not False:
        if folds.equals(codes):
            return []
    else:
        odd = pc.invert(plain)
        folds = pc.replace_with_mask(folds, odd, pa.array([fold_code(code) for code in codes.filter(odd).to_pylist()], pa.string()))
    if len(folds.unique()) == len(folds):
        return []
    groups: dict[str, list[str]] = {}
    for code, fold in zip(codes.to_pylist(), folds.to_pylist(), strict=True):
        groups.setdefault(fold, []).append(code)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def check_similar(column: str, codes: Any, *, allowed: bool, show: bool = True) -> None:
    """Refuse codes of a column that people would take for one, unless that was allowed. Codes are shown where they are no one's secret."""
    if allowed or not (found := similar_codes(codes)):
        return
    texts = [" and ".join(map(repr, group)) for group in found]
    shown = f": {list_names(texts, _SHOWN)}" if show else ""
    raise InvalidCode(
        f"Codes of column {column!r} differ only in blanks, case or Unicode form{shown}. Each would be a code with totals of its own. "
        "Write them alike at the source, or say that they differ: allow_similar_codes = true under [table] of a run file, "
        "allow_similar_codes=True in Python, --allow-similar-codes for holdfast cellkey perturb."
    )


def skeletons(name: str) -> frozenset[str]:
    """Two texts that stand for how a name reads: names that share one of them look alike.

    The first is for names in one script, where a capital and a small letter are one. The second maps letters before case is folded, because
    a capital may look like a letter of another script that its small form does not resemble.
    """
    plain = unicodedata.normalize("NFKC", name)
    as_written = plain.translate(LOOK_ALIKES).translate(_IN_A_HURRY)
    return frozenset(fold_code(text).translate(LOOK_ALIKES) for text in (plain, as_written))


def look_alike(name: str, others: Iterable[str]) -> str | None:
    """The first of the other names that looks like this one and is another; None where there is none, or where the very name is there."""
    known = list(dict.fromkeys(others))
    if name in known:
        return None
    own = skeletons(name)
    return next((other for other in known if own & skeletons(other)), None)
