"""What this machine has: memory that work is compared with before it begins, and processors."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from holdfast.errors import RequestTooLarge

SMALL = 1 << 28
"""Bytes that every machine has: nothing is looked up for them."""
_GROUP = Path("/sys/fs/cgroup")


def check_memory(needed: int, what: str, advice: str) -> None:
    """Refuse work that needs more memory than is left, before it begins.

    Given:       what it needs at least, in bytes; what it is for; what the user can do.
    Guarantees:  RequestTooLarge with both figures. Where the system does not say what is left, nothing is refused.
    """
    if needed <= SMALL:
        return
    left = available_memory()
    if left is not None and needed > left:
        raise RequestTooLarge(
            f"{what} would need about {_gigabytes(needed)} of memory or more, and {_gigabytes(left)} are left on this machine. {advice}"
        )


def available_memory() -> int | None:
    """Bytes that a process can still take without others being moved out: of the machine, of its control group and of its own limit, the
    least; None where nothing says.
    """
    return min((found for found in (memory_of_machine(), memory_of_group(), memory_of_process()) if found is not None), default=None)


def memory_of_machine() -> int | None:
    kilobytes = _fields(Path("/proc/meminfo")).get("MemAvailable:")
    return None if kilobytes is None else 1024 * kilobytes


def memory_of_group() -> int | None:
    """Free memory of a container: its limit less what it uses, not counting files that could be dropped."""
    try:
        limit = int((_GROUP / "memory.max").read_text())  # "max" where there is none
        used = int((_GROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return max(0, limit - used + _fields(_GROUP / "memory.stat").get("inactive_file", 0))


def memory_of_process() -> int | None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return limit
    return max(0, limit - pages * os.sysconf("SC_PAGE_SIZE"))


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def _fields(path: Path) -> dict[str, int]:
    """Lines of a name and a number."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
        return {line[0]: int(line[1]) for line in lines if len(line) > 1 and line[1].isdecimal()}
    except OSError:
        return {}


def _gigabytes(count: int) -> str:
    return f"{min(count, 2**90) / 2**30:,.1f} GiB"  # a forged card may claim more cells than a float holds
