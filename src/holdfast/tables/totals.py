"""Codes that are named like totals, such as sex = "_T": refused, unless they are declared. Codes that a program spoilt are warned of.

Counted as cells, total rows would take noise of their own, and a person who changes cell would change up to 2^d rows of a table of d
columns: the true cost would be several times the promised one. Names alone decide, never counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from holdfast.display import list_names
from holdfast.errors import HoldfastWarning, InvalidCode
from holdfast.tables.columns import arrow_texts
from holdfast.tables.similar import check_similar

_NAMES = (
    "all, all ages, all people, all persons, all sexes, both sexes, grand total, overall, sub total, subtotal, sum, sum total, tot, total, "
    "totals, ttl, ensemble, gesamt, gesamtergebnis, gesamtsumme, insgesamt, summe, zusammen, total general, total général, totale, "
    "totale complessivo, totaal, totalt, i alt, yhteensä, ogółem, razem, celkem, spolu, összesen, skupaj, ukupno, kokku, kopā, iš viso, "
    "samtals, σύνολο, итого, всего, toplam, 合計, 总计, 總計, 합계"
)
TOTAL_NAMES = tuple(_NAMES.split(", "))
"""Without case; "_" and "-" stand for a blank, and marks at both ends are gone. docs/tables-and-totals.md has the list."""
SDMX_TOTAL, SHORT_TOTAL = "_t", "t"
SEXES = tuple(map(set, ("mf", "mw", "mk", "mv", "hf")))
"""The short name is a total only beside one of these pairs: elsewhere it may be a town, or true."""
_MONTHS = "(Jan|Feb|Mar|Mär|Apr|May|Mai|Jun|Jul|Aug|Sep|Oct|Okt|Nov|Dec|Dez)"
DATE = rf"^([0-9]{{1,2}}[-. ]+{_MONTHS}|{_MONTHS}[-. ]+[0-9]{{2}})$"
"""10-19 and 5-16 after a spreadsheet has read them: 19-Oct, May-16."""
_SCIENTIFIC, _FLOAT = r"^[0-9][.,][0-9]+E\+[0-9]{2,}$", r"^[0-9]+\.0$"
_MARKS = " \t\u00a0.,:;*+=#/\\|'\"()[]{}<>!?&"
_SHOWN = 100
Totals: TypeAlias = Mapping[str, str | Sequence[str]]
"""Codes of total rows, by column."""


class Allow(NamedTuple):
    """What codes may be like, because someone said so: similar to one another, or named like totals."""

    similar: bool = False
    totals: bool = False


ALLOW_ALL = Allow(True, True)


def total_names(codes: Any) -> list[str]:
    """The codes of a column (an Arrow array of text) that are named like totals, as they are written."""
    import pyarrow.compute as pc

    lower = pc.utf8_lower(pc.utf8_normalize(codes, form="NFKC"))
    plain = pc.utf8_trim(pc.replace_substring(pc.replace_substring(lower, "_", " "), "-", " "), characters=_MARKS)
    is_sdmx = pc.is_in(pc.utf8_trim_whitespace(lower), value_set=arrow_texts([SDMX_TOTAL]))
    named = pc.or_(pc.is_in(plain, value_set=arrow_texts(TOTAL_NAMES)), is_sdmx)
    short = pc.is_in(plain, value_set=arrow_texts([SHORT_TOTAL]))
    if pc.any(short).as_py():
        sexes = arrow_texts(sorted(set().union(*SEXES)))
        known = set(plain.filter(pc.is_in(plain, value_set=sexes)).to_pylist())
        named = pc.or_(named, short) if any(pair <= known for pair in SEXES) else named
    return [str(code) for code in codes.filter(named).to_pylist()]


def warn_of_spoilt(column: str, codes: Any, *, show: bool = True) -> None:
    """Warn of codes as programs spoil them: dates among others, made of ranges; 1.00E+03, made of 1000; all of them numbers with .0."""
    import pyarrow.compute as pc

    dates, powers, floats = (codes.filter(pc.match_substring_regex(codes, pattern)) for pattern in (DATE, _SCIENTIFIC, _FLOAT))
    for found, like, why in (
        (dates if len(dates) < len(codes) else dates[:0], "dates", "Spreadsheets make dates of ranges: 10-19 becomes 19-Oct"),
        (powers, "numbers in powers of ten", "Spreadsheets shorten long numbers: 123456789012 becomes 1.23457E+11"),
        (floats if len(floats) == len(codes) else floats[:0], "decimals", "Programs make decimals of whole numbers: 01001 becomes 1001.0"),
    ):
        if len(found):
            shown = f": {list_names(found.to_pylist(), _SHOWN, repr)}" if show else ""
            warnings.warn(
                f"Column {column!r} has codes like {like}{shown}. {why}. If they did, correct the source before a release.",
                HoldfastWarning,
                stacklevel=2,
            )


def check_codes(column: str, codes: Any, allow: Allow, *, show: bool = True) -> None:
    """Refuse codes of a column that people would take for one, or for a total. Codes are shown where they are no one's secret."""
    import pyarrow.compute as pc

    if pc.all(pc.ascii_is_decimal(codes)).as_py():  # the codes of most large columns: all different, and no names
        return
    check_similar(column, codes, allowed=allow.similar, show=show)
    if not allow.totals:
        warn_of_spoilt(column, codes, show=show)
    if allow.totals or not (found := total_names(codes)):
        return
    shown = f": {list_names(found, _SHOWN, repr)}" if show else ""
    named = [repr(code) for code in found[:2]] + ["..."] * (len(found) > 2)
    codes = "'...'" if not show else named[0] if len(named) == 1 else f"[{', '.join(named)}]"
    line = f"totals = {{{column} = {codes}}}"
    raise InvalidCode(
        f"Column {column!r} has codes named like totals{shown}. Total rows are not cells: a person in them would cost more than promised. "
        f"Declare those of a table of counts, and they are checked and left out: {line} under [table]. Leave them out of records. "
        "If they are codes of cells: allow_total_names = true. In Python, from_counts has arguments of these names.",
        details={"column": column},
    )
