"""Write tests/durations.txt, from which conftest.py marks tests as medium: functions that take long, by measurement.

Usage: python -m pytest --durations=0 --durations-min=0.02 | python tools/mark_durations.py

Reads pytest's list of durations. All cases of a function count together, and the slowest functions are listed until what is left fits
FAST_SECONDS of processor time, which leaves room on a fresh clone for compiling loops. Names that no longer exist do no harm; renew the
file when `make test-fast` grows slow.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

FAST_SECONDS = 50
FILE = Path(__file__).parents[1] / "tests" / "durations.txt"


def slow_functions(lines: list[str]) -> list[tuple[str, float]]:
    """(function, seconds), slowest first, as many as must be left out."""
    seconds: dict[str, float] = defaultdict(float)
    for line in lines:
        found = re.match(r"\s*([\d.]+)s (?:call|setup|teardown)\s+(\S+?)(?:\[.*)?$", line)
        if found:
            seconds[found[2]] += float(found[1])
    left, out = sum(seconds.values()), []
    for name, taken in sorted(seconds.items(), key=lambda item: -item[1]):
        if left <= FAST_SECONDS:
            break
        out.append((name, taken))
        left -= taken
    return out


if __name__ == "__main__":
    listed = sorted(slow_functions(sys.stdin.read().splitlines()))
    FILE.write_text("".join(f"{taken:7.1f} {name}\n" for name, taken in listed), encoding="utf-8")
    print(f"{FILE.name}: {len(listed)} functions")
