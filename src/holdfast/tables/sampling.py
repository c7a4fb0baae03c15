"""Records of one person beyond the limit: a secret key says which are counted.

The records of a person are ordered by the HMAC-SHA-256 of identifier, codes and number among equal ones, and the first `limit` are counted.
Columns that tell records of a person apart, such as the number of a visit, may come before codes: then tables by other columns count the
same records. So the choice for a person depends on the key and on this person's records alone: one person changes at most `limit` counted
records, as if nobody had more ([theory T210]). The order of rows, how they are read, and the format of the file change nothing.
"""

from __future__ import annotations

import hmac
import os
from collections import Counter
from collections.abc import Iterable
from heapq import nsmallest
from itertools import groupby
from typing import Literal, TypeAlias

from holdfast.errors import InvalidParameter, OutputProblem
from holdfast.randomness.labels import encode_header

Over: TypeAlias = Literal["refuse", "sample"]
"""What is done if somebody has more records than the limit."""
OVER: tuple[Over, ...] = ("refuse", "sample")
Codes: TypeAlias = tuple[str, ...]
PURPOSE = "holdfast sample of records, 1"
LEAST_SECRET_BYTES = 16


def read_sample_key(path: str | os.PathLike[str] | None) -> bytes:
    """The secret of a key file; without one, HOLDFAST_KEY or the file that HOLDFAST_KEY_FILE names."""
    from holdfast.randomness.keys import read_key_file, secret_from_environment  # loads ciphers, which a table seldom needs

    secret, unread = None, False
    try:
        secret = secret_from_environment() if path is None else read_key_file(path).strip()
    except OSError:
        unread = True
    if unread:
        raise OutputProblem("The file that sample_key names cannot be read. Check its path and permissions.")
    if secret is None or len(secret) < LEAST_SECRET_BYTES:
        raise InvalidParameter(
            f"A sample of each person's records needs a secret of at least {LEAST_SECRET_BYTES} bytes, the same for all releases of the "
            "data. Write one with `openssl rand -hex 32` into a file that only you can read, and name it as sample_key; or set "
            "HOLDFAST_KEY.",
            field="sample_key",
        )
    return secret


def left_out(groups: Iterable[tuple[str, Codes, Codes, int]], limit: int, key: bytes) -> dict[Codes, int]:
    """How many records of each tuple of codes are left out.

    Given:  groups of equal records as (identifier, values that tell records apart, codes, how many), those of one identifier side by side.
    """

    def header(*texts: str) -> bytes:
        return encode_header((PURPOSE, *texts), b"i")

    out: Counter[Codes] = Counter()
    for identifier, own in groupby(groups, key=lambda group: group[0]):
        records = []
        for _, values, codes, size in own:
            first = hmac.digest(key, header(identifier, *values), "sha256") if values else b""
            records.append((first, header(identifier, *values, *codes), codes, size))
            out[codes] += size
        ordered = (
            (first, hmac.digest(key, named + number.to_bytes(8, "big"), "sha256"), codes)
            for first, named, codes, size in records
            for number in range(size)
        )
        out.subtract(codes for *_, codes in nsmallest(limit, ordered))
    return {codes: size for codes, size in out.items() if size}
