"""The rest of group `noise`: many streams at once, memory of a long draw, time to import."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Bar, Row, number
from benchmarks.timing import best_of, fresh_interpreter
from holdfast.randomness import NoiseKey

WORDS_PER_LABEL = 16
IMPORT_ROUNDS = 5

NOTES = (
    "Many streams: 64 bytes for each label, read into an array that exists already, against one stream of the same bytes; a fresh key each "
    "time. Labels are made, and where so named sorted, outside the timed part; checking that they differ and were not used before is part "
    "of it.",
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


def steps(n: int, rounds: int, streamed: int) -> dict[str, Callable[[], list[Row]]]:
    """What to measure, by name, in order: n labels, `streamed` draws."""
    return {
        "many streams": partial(many_streams, n, rounds),
        "streaming": partial(streaming, streamed),
        "import": import_time,
    }


def many_streams(n: int, rounds: int) -> list[Row]:
    """Bulk streams against one long stream."""
    out = np.empty((n, WORDS_PER_LABEL), dtype=np.uint32)
    integers = np.arange(n)
    shuffled = np.random.default_rng(1).permutation(integers)
    texts = np.array([f"county {i:09d}".encode() for i in range(n)], dtype="S16")
    _from_labels(out, integers, False)  # loads compiled code
    best = best_of(
        rounds,
        {
            "one": partial(_one_stream, out),
            "integers": partial(_from_labels, out, integers, False),
            "texts": partial(_from_labels, out, texts, True),
            "shuffled": partial(_from_labels, out, shuffled, False),
        },
    )

    def row(name: str, contender: str, limit: float | None) -> Row:
        ratio = best[contender] / best["one"]
        shown = f"{ratio:.2f} × one stream ({number(1e9 * best[contender] / n)} ns a label)"
        return Row(name, (shown,), () if limit is None else (Bar("× one stream", ratio, limit),))

    return [
        row(f"{n:,} integer labels, sorted", "integers", 2),
        row(f"{n:,} text labels of 16 bytes, sorted", "texts", 2.5),
        row(f"{n:,} integer labels, in random order", "shuffled", None),
    ]


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


def _one_stream(out: NDArray[np.uint32]) -> None:
    with NoiseKey.generate() as key, key.stream("bench") as words:
        words.take_into(out.reshape(-1))


def _from_labels(out: NDArray[np.uint32], items: NDArray[np.integer] | NDArray[np.bytes_], text: bool) -> None:
    with NoiseKey.generate() as key:
        key.streams("bench", items=items, text=text).take_into(out)
