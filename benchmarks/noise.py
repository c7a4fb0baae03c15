"""Group `noise`: independent exact draws against OpenDP, the papers' own algorithms and NumPy, and what lies around them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np

from benchmarks import surroundings
from benchmarks.report import Bar, Report, Row, Table, number
from benchmarks.timing import Call, Steps, best_of, load, machine, repeated
from holdfast.exact import DiscreteGaussian, DiscreteLaplace, IntegerLaw
from holdfast.exact.compiled import WARM_THRESHOLD
from holdfast.exact.table import CHUNK_WORDS
from holdfast.randomness import NoiseKey
from holdfast.research.oracles import discrete_gaussian, discrete_laplace
from holdfast.testing.words import FairBits

OPENDP_DRAWS = 20_000
ORACLE_DRAWS = 500
SINGLE_CALLS = 200
READY_DRAWS = WARM_THRESHOLD
"""A first draw this large builds what a sampler leaves until compiled code needs it."""

HEADERS = (
    "law",
    "ours ns",
    "M draws/s",
    "bytes/draw",
    "AES alone ns",
    "prepare ms",
    "cold ns",
    "sample(1) µs",
    "draw(1) µs",
    "OpenDP ns",
    "oracle ns",
    "NumPy ns",
    "× OpenDP",
    "× oracle",
    "× NumPy",
)


@dataclass(frozen=True)
class Setting:
    """One law and the bars on it. `size` is sigma_squared of the Gaussian, the scale of the Laplace."""

    is_gaussian: bool
    size: int
    least_opendp: int
    least_numpy: float
    most_bytes: float

    @property
    def name(self) -> str:
        shown = f"10^{len(str(self.size)) - 1}" if self.size > 1000 else str(self.size)
        return f"Gaussian, sigma_squared {shown}" if self.is_gaussian else f"Laplace, scale {shown}"

    @property
    def spread(self) -> int:
        """sigma, or the scale: a whole number for every setting."""
        return math.isqrt(self.size) if self.is_gaussian else self.size

    def law(self) -> IntegerLaw:
        return DiscreteGaussian(self.size) if self.is_gaussian else DiscreteLaplace(self.size)

    def oracle(self, bits: FairBits) -> int:
        return discrete_gaussian(self.size, bits) if self.is_gaussian else discrete_laplace(self.size, bits)


SETTINGS = (
    Setting(True, 1, 1500, 3, 4.2),
    Setting(True, 100, 1500, 3, 4.2),
    Setting(True, 10**4, 1500, 3, 4.2),
    Setting(True, 10**6, 1500, 3, 4.2),
    Setting(True, 10**12, 700, 1, 8.5),
    Setting(False, 1, 1500, 3, 4.2),
    Setting(False, 10, 1500, 3, 4.2),
    Setting(False, 1000, 700, 2, 4.2),
)
OPENDP_CHECKED = SETTINGS[2]
PREPARED = SETTINGS[3]


@dataclass(frozen=True)
class Figures:
    """What was measured of one setting, in the units of HEADERS."""

    ours_ns: float
    bytes_per_draw: float
    keystream_ns: float
    prepare_ms: float
    cold_ns: float
    sample_one_us: float
    draw_one_us: float
    opendp_ns: float | None
    oracle_ns: float
    numpy_ns: float

    def row(self, setting: Setting) -> Row:
        opendp = None if self.opendp_ns is None else self.opendp_ns / self.ours_ns
        numpy = self.numpy_ns / self.ours_ns
        bars = (
            Bar("× OpenDP", opendp, setting.least_opendp, at_least=True),
            Bar("× NumPy", numpy, setting.least_numpy, at_least=True),
            Bar("bytes", self.bytes_per_draw, setting.most_bytes),
        )
        measured = (self.keystream_ns, self.prepare_ms, self.cold_ns, self.sample_one_us, self.draw_one_us)
        rivals = (self.opendp_ns, self.oracle_ns, self.numpy_ns, opendp, self.oracle_ns / self.ours_ns, numpy)
        ours = (number(self.ours_ns), number(1e3 / self.ours_ns), f"{self.bytes_per_draw:.4f}")
        return Row(setting.name, (*ours, *map(number, (*measured, *rivals))), bars)


class Contenders:
    """The calls to be timed for one setting; each repeat draws from a stream of its own and allocates its result."""

    def __init__(self, setting: Setting, n: int, key: NoiseKey) -> None:
        self._setting, self._n, self._key = setting, n, key
        self._law = setting.law()
        self._labels = count()
        self._generator = np.random.default_rng(1)
        self._single_words = key.stream(setting.name, "single")
        self._piece = np.empty(CHUNK_WORDS, dtype=np.uint32)
        self.bytes_per_draw = self._count_bytes()

    def ours(self) -> None:
        self._law.sample(self._n, self._key, label=str(next(self._labels)))

    def prepare(self) -> None:
        with self._key.stream(self._setting.name, "prepare", next(self._labels)) as words:
            self._setting.law()._prepare().draw(READY_DRAWS, words)

    def cold(self) -> None:
        with self._key.stream(self._setting.name, "cold", next(self._labels)) as words:
            self._setting.law()._prepare().draw(self._n, words)

    def keystream(self) -> None:
        """As many bytes as the draws took, in the pieces the samplers take them."""
        left = round(self.bytes_per_draw * self._n) // 4
        with self._key.stream(self._setting.name, "keystream", next(self._labels)) as words:
            while left > 0:
                words.take_into(self._piece[: min(left, CHUNK_WORDS)])
                left -= CHUNK_WORDS

    def numpy(self) -> None:
        np.rint(self._generator.normal(0, self._setting.spread, self._n)).astype(np.int64)

    def oracle(self) -> None:
        with self._key.stream(self._setting.name, "oracle", next(self._labels)) as words:
            bits = FairBits(words)
            for _ in range(ORACLE_DRAWS):
                self._setting.oracle(bits)

    def sample_one(self) -> None:
        self._law.sample(1)

    def draw_one(self) -> None:
        self._law.draw(1, self._single_words)

    def _count_bytes(self) -> float:
        """Also the warm-up: builds the sampler and loads compiled code before anything is timed."""
        with self._key.stream(self._setting.name, "bytes") as words:
            self._law.draw(self._n, words)
            return words.bytes_read / self._n


def opendp_call(setting: Setting, n: int) -> Call:
    """OpenDP's vector mechanism on n zeros. A NumPy array goes in because that is its fastest way; it returns a list."""
    try:
        import opendp.prelude as dp
    except ImportError as error:
        raise SystemExit("The group noise compares with OpenDP, which is not installed. `make bench` installs it.") from error
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if setting.is_gaussian:
        mechanism = dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=float(setting.spread))
    else:
        mechanism = dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(setting.spread))
    zeros = np.zeros(n, dtype=np.int64)
    return lambda: mechanism(zeros)


def measure(setting: Setting, n: int, rounds: int, rivals: bool, key: NoiseKey, after_round: Call) -> Figures:
    """All contenders of one setting, in turns."""
    contenders = Contenders(setting, n, key)
    calls: dict[str, Call] = {
        "ours": contenders.ours,
        "numpy": contenders.numpy,
        "keystream": contenders.keystream,
        "cold": contenders.cold,
        "prepare": contenders.prepare,
        "sample one": repeated(SINGLE_CALLS, contenders.sample_one),
        "draw one": repeated(SINGLE_CALLS, contenders.draw_one),
        "oracle": contenders.oracle,
    }
    if rivals:
        calls["opendp"] = opendp_call(setting, OPENDP_DRAWS)
    best = best_of(rounds, calls, after_round)
    return Figures(
        ours_ns=1e9 * best["ours"] / n,
        bytes_per_draw=contenders.bytes_per_draw,
        keystream_ns=1e9 * best["keystream"] / n,
        prepare_ms=1e3 * best["prepare"],
        cold_ns=1e9 * best["cold"] / n,
        sample_one_us=1e6 * best["sample one"] / SINGLE_CALLS,
        draw_one_us=1e6 * best["draw one"] / SINGLE_CALLS,
        opendp_ns=1e9 * best["opendp"] / OPENDP_DRAWS if rivals else None,
        oracle_ns=1e9 * best["oracle"] / ORACLE_DRAWS,
        numpy_ns=1e9 * best["numpy"] / n,
    )


def opendp_sizes(n: int) -> Row:
    """Does OpenDP draw n values at the rate of OPENDP_DRAWS? If not, the ratios above would not be those of the same size."""
    small, large = opendp_call(OPENDP_CHECKED, OPENDP_DRAWS), opendp_call(OPENDP_CHECKED, n)
    best = best_of(1, {"before": small, "large": large, "after": small})
    small_ns = 1e9 * min(best["before"], best["after"]) / OPENDP_DRAWS
    large_ns = 1e9 * best["large"] / n
    shown = f"{number(small_ns)} and {number(large_ns)} ns/draw, ratio {large_ns / small_ns:.2f}"
    return Row(f"OpenDP, {OPENDP_CHECKED.name}: vectors of {OPENDP_DRAWS:,} and {n:,}", (shown,))


def run(*, n: int = 10**6, rounds: int = 15, rivals: bool = True, streamed: int = 10**8) -> Report:
    """Measure everything. `rivals=False` leaves out OpenDP, the only contender that holdfast does not need itself."""
    load_before = load()
    around = surroundings.steps(streamed)
    with Steps("noise", len(SETTINGS) * rounds + len(around) + rivals) as steps, NoiseKey.generate() as key:
        figures = {setting: measure(setting, n, rounds, rivals, key, _named(steps, f"noise: {setting.name}")) for setting in SETTINGS}
        ready = figures[PREPARED].prepare_ms
        rows = [Row(f"sampler of {PREPARED.name} ready", (f"{number(ready)} ms",), (Bar("ms", ready, 50),))]
        for what, step in around.items():
            rows += step()
            steps.done(f"noise: {what}")
        if rivals:
            rows.append(opendp_sizes(n))
            steps.done("noise: OpenDP")
    tables = (
        Table(f"Draws, n = {n:,}", HEADERS, [figures[setting].row(setting) for setting in SETTINGS]),
        Table("Around the draws", ("measure", "figure"), rows),
    )
    return Report("Benchmark group noise", f"{machine()}; load {load_before} before, {load()} after", tables, _notes(rounds))


def _named(steps: Steps, what: str) -> Callable[[], None]:
    return lambda: steps.done(what)


def _notes(rounds: int) -> list[str]:
    return [
        f"One thread for every contender. Contenders of a row run in turns; each figure is processor time, the best of {rounds} rounds (on "
        "an idle machine that is wall time; beside other work wall time would favour the shorter calls, ours). Ratios are best over best "
        "in this run: they hold on other machines far better than nanoseconds do.",
        "ours: `law.sample(n, key, label=...)` of a prepared sampler, a new label each time, opening its stream and allocating the result "
        "included. bytes/draw: keystream read, extra bits included. AES alone: the same number of bytes read in pieces of 64 KB and thrown "
        "away, so it is the share of a draw that no sampler using these words can save.",
        f"prepare: `law._prepare()`, past the cache of samplers, and a first draw of {READY_DRAWS}. cold: the same with all n draws, per "
        "draw. Compiled code is loaded beforehand.",
        "sample(1): one call with a fresh secret key of its own. draw(1): one call on an open stream.",
        f"OpenDP: `make_gaussian` or `make_laplace` on a vector of {OPENDP_DRAWS:,} zeros (i64), per draw; the last row of the second "
        "table compares that with a vector of n.",
        f"oracle: the algorithms of Canonne, Kamath and Steinke with fractions (holdfast.research.oracles), "
        f"{ORACLE_DRAWS} draws, per draw.",
        "NumPy: `np.rint(default_rng().normal(0, sigma, n)).astype(np.int64)`, neither exact nor secret; sigma is the scale in Laplace "
        "rows, which use the same yardstick.",
        *surroundings.NOTES,
    ]
