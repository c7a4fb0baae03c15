"""`python -m tests.faults`: the exhaustive runs of the fault drivers, a line with a count for each; `make test-all` runs it.

With names (power, memory, rollback, bare), only those.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from tests.faults.drive import drive
from tests.faults.power import SCENARIOS

MEMORY_CASES, WALKS, SEED = 300, 25, 18


def power() -> tuple[str, list[str]]:
    found = [drive("power", scenario, 1) for scenario in SCENARIOS]
    steps = ", ".join(f"{one['scenario']} {one['steps']}" for one in found)
    states, different = (sum(one[name] for one in found) for name in ("states", "different"))
    return f"{states:,} states after a loss of power (steps: {steps}), {different:,} different ones finished", _wrong(found)


def memory() -> tuple[str, list[str]]:
    found = drive("memory", MEMORY_CASES, SEED)
    return f"{found['cases']} releases short of memory (exit codes {found['codes']}, left {found['states']})", found["wrong"]


def rollback() -> tuple[str, list[str]]:
    found = drive("rollback", WALKS, SEED)
    return f"{sum(found['attacks'].values())} attacks on {found['walks']} ledgers ({found['attacks']})", found["wrong"]


def bare() -> tuple[str, list[str]]:
    found = drive("bare")
    return f"{found['cases']} releases from an installation that can only be read", found["wrong"]


def _wrong(found: list[dict[str, list[str]]]) -> list[str]:
    return [problem for one in found for problem in one["wrong"]]


DRIVERS: dict[str, Callable[[], tuple[str, list[str]]]] = {"power": power, "memory": memory, "rollback": rollback, "bare": bare}


def main() -> int:
    """Run them; the number of problems decides the exit code."""
    bad = 0
    for name in sys.argv[1:] or DRIVERS:
        begun = time.monotonic()
        told, wrong = DRIVERS[name]()
        print(f"faults, {name}: {told}; {len(wrong)} wrong; {time.monotonic() - begun:.0f} s", flush=True)
        for problem in wrong:
            print(f"  {problem}", flush=True)
        bad += len(wrong)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
