"""The rest of group `noise`: memory of a long draw, time to import."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

from benchmarks.report import Bar, Row, number
from benchmarks.timing import best_of, fresh_interpreter

IMPORT_ROUNDS = 5

NOTES = (
    "Streaming: `.batches` in a fresh process; the peak is that process's own (`ru_maxrss`), libraries and compiled code included, and the "
    "time, on the wall clock, includes loading them.",
    "Import: wall time of a fresh interpreter, less that of one that does nothing, best of "
    f"{IMPORT_ROUNDS} each, in turns. Names load when first used, so the second figure touches them all.",
)

_STREAMING = """
import resource, time
began = time.perf_counter()
from holdfast import DiscreteGaussian
drawn = sum(len(batch) for batch in DiscreteGaussian(100).batches({streamed}))
print(drawn, time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

_EVERY_NAME = "import holdfast; [getattr(holdfast, name) for name in holdfast.__all__]"


def steps(streamed: int) -> dict[str, Callable[[], list[Row]]]:
    """What to measure, by name, in order."""
    return {
        "streaming": partial(streaming, streamed),
        "import": import_time,
    }


def streaming(streamed: int) -> list[Row]:
    """Peak memory and time of a draw that is never held as a whole."""
    drawn, elapsed, peak = fresh_interpreter(_STREAMING.format(streamed=streamed), small_parent=True).split()
    assert int(drawn) == streamed
    peak_mb = int(peak) * (1 if sys.platform == "darwin" else 1024) / 1e6
    shown = f"{number(peak_mb)} MB at its peak, {float(elapsed):.2f} s"
    return [Row(f"{streamed:,} draws in batches, Gaussian, sigma_squared 100", (shown,), (Bar("MB", peak_mb, 300),))]


def import_time() -> list[Row]:
    """Seconds beyond a Python that imports nothing."""
    programs = {"nothing": "pass", "package": "import holdfast", "every name": _EVERY_NAME}
    calls = {name: partial(fresh_interpreter, program) for name, program in programs.items()}
    best = best_of(IMPORT_ROUNDS, calls, clock=time.perf_counter)

    package, every_name = best["package"] - best["nothing"], best["every name"] - best["nothing"]
    return [
        Row("`import holdfast`, beyond bare Python", (f"{package:.3f} s",), (Bar("s", package, 0.3),)),
        Row("the same with every public name loaded", (f"{every_name:.3f} s",)),
    ]
