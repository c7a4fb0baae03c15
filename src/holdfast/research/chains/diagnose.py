"""How fast the Markov chains of a release come to their law, before anything is drawn: from public facts and coupled chains alone.

For every shape of block and every kernel: a pilot finds a lag, pairs of chains at that lag give the curve and the recommended number of
steps, pairs at half and at twice the lag show whether the curve hangs on it. The pairs are those that a release makes first: with eta =
3/N, N at least 100 and one shape of blocks, it makes exactly these.
"""

from __future__ import annotations

import importlib.util
import math
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from holdfast.chains.assessment import MAX_MINUTES, PILOT_PAIRS, confidence_factor, pilot
from holdfast.chains.kernels import DECAYS, KERNELS, chain_seed, kernel_for
from holdfast.chains.meeting import Progress, meeting_times
from holdfast.chains.protocol import Kernel
from holdfast.channels import Channel, Facts
from holdfast.display import count_of
from holdfast.errors import ChainProblem, InvalidParameter, NoExactSampler, NoMeeting, OutputExists, OutputProblem
from holdfast.exact.formatting import format_exact, format_up
from holdfast.exact.parameters import exact_integer
from holdfast.invariants.constraints import Constraint
from holdfast.lattices.shapes import Grid, Shape
from holdfast.laws import Reads, Target
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.mechanisms.requests import check_choice
from holdfast.privacy.estimated import added_delta
from holdfast.publication.folder import output_problem
from holdfast.randomness import NoiseKey
from holdfast.research.chains.curve import TotalVariationCurve
from holdfast.research.chains.diagnostics import StepCounter, run_slices, trace_summary
from holdfast.research.chains.page import (
    AllBlocksFacts,
    ChainsFacts,
    CurveFacts,
    MechanismFacts,
    Movement,
    RowFacts,
    TableFacts,
    diagnosis_html,
)
from holdfast.samplers.table import EXACT
from holdfast.tables import Declarations, Table, Universe
from holdfast.wording.exposure import kept_texts


def stability(
    kernel: Kernel, lags: Sequence[int], *, pairs: int, most: int, seed: str, workers: int | None = None, progress: Progress | None = None
) -> list[TotalVariationCurve]:
    """A curve for each lag, from pairs of its own. Where lags are long enough the curves agree: then the bound does not hang on the lag.

    A lag with censored pairs gives a curve too, which refuses to call its figures a bound.
    """
    if not lags:
        raise InvalidParameter("Stability is looked at over one lag or more. Got none.")
    return [
        TotalVariationCurve(meeting_times(kernel, lag=lag, pairs=pairs, most=most, seed=seed, workers=workers, progress=progress))
        for lag in lags
    ]


def steps_allowed(kernel: Kernel) -> int:
    """Steps that MAX_MINUTES allow, by the kernel's own rough figure."""
    return MAX_MINUTES * 60 * 10**9 // kernel.step_nanoseconds


LEAST_PAIRS = 4
DEFAULT_PAIRS = 200
"""As in figure 1 of the integer subspace paper."""
DEFAULT_SWEEPS = 10_000
POINTS = 101
"""Of a curve."""
CHAINS = 4
RECORDS = 2_000
"""Chains, and records of each, for conventional diagnostics."""
MOVEMENT_SECONDS = 60
"""Work of conventional diagnostics for each row, by the kernel's own rough figure. Those that need more are left out, and that is said."""
MOST_PAIRED_CELLS = 10**7
"""Cells of a block times pairs of chains, beyond which no pairs are run: some hundreds of megabytes, and minutes for a sweep of all."""
PHASES = 4
"""Pilot, pairs, and two other lags: each may take its share of the time that all are given together."""
NOT_ESTIMATED = f"not estimated: it would take more than {MOVEMENT_SECONDS} seconds"
NOT_INSTALLED = "not installed: pip install holdfast[diagnose]"
CONFIDENTIAL = "CONFIDENTIAL: this law depends on the data, and so does all that is said here. Not for publication."
ESTIMATED = (
    "Estimated, not proved: if all N pairs met, then with 95 % confidence a pair takes longer with probability at most eta = 3/N. "
    "Twice the longest meeting is recommended."
)

Told: TypeAlias = Callable[[str, int, int], None]
"""Called with (what is run, pairs done, pairs in all)."""


@dataclass(frozen=True)
class DiagnosedBlocks:
    """Blocks of one shape, or the lattice taken whole."""

    label: str
    shape: Shape
    blocks: int
    target: Target

    def kernel(self, name: str) -> tuple[Kernel, str]:
        """The kernel of a name and the seed of its pairs, which are those of a release; or a refusal."""
        return kernel_for(name, self.shape, self.target), chain_seed(name, self.shape, self.target)


@dataclass(frozen=True, eq=False)
class DiagnosisRow:
    """What was found about one kernel on blocks of one shape."""

    part: DiagnosedBlocks
    kernel: str
    problem: str | None = None
    """Why there is no bound; None if there is one."""
    steps_per_sweep: int = 1
    curve: TotalVariationCurve | None = None
    others: tuple[TotalVariationCurve, ...] = ()
    """At half and at twice the lag."""
    movement: Movement | None = None

    @property
    def steps(self) -> int | None:
        """Recommended: twice the longest meeting, in whole sweeps."""
        if self.problem is not None or self.curve is None:
            return None
        return self.sweeps_of(2 * int(self.curve.meetings.coupled_steps.max())) * self.steps_per_sweep

    @property
    def eta(self) -> Fraction | None:
        """For one block."""
        return None if self.steps is None or self.curve is None else Fraction(3, self.curve.meetings.pairs)

    @property
    def warning(self) -> str | None:
        """What pairs at the other lags say against the recommended number."""
        recommended = self.steps
        if recommended is None:
            return None
        for curve in self.others:
            meetings, longest = curve.meetings, int(curve.meetings.coupled_steps.max())
            at = f"at a lag of {count_of(f'{self.sweeps_of(meetings.lag):,}', 'sweep')}"
            if meetings.unmet:
                within = meetings.most // self.steps_per_sweep
                return f"{at} {meetings.unmet:,} of {meetings.pairs:,} pairs did not meet within {count_of(f'{within:,}', 'sweep')}"
            if longest > recommended:
                return f"{at} a pair took {count_of(f'{self.sweeps_of(longest):,}', 'sweep')}, more than are recommended"
        return None

    def sweeps_of(self, steps: int) -> int:
        """Whole sweeps that hold so many steps."""
        return -(-steps // self.steps_per_sweep)

    def facts(self, epsilon: Fraction | None) -> RowFacts:
        """What the page says; what was not found is None."""
        part = self.part
        curves = [] if self.curve is None else [self.curve, *self.others]
        return RowFacts(
            block=part.label,
            kind=part.shape.name if part.target.splits else "whole",
            shape=tuple(part.shape.axes),
            cells=part.shape.size,
            free_dimensions=part.shape.dimension,
            blocks=part.blocks,
            kernel=self.kernel,
            problem=self.problem,
            warning=self.warning,
            steps_per_sweep=None if self.curve is None else self.steps_per_sweep,
            **self._meeting_times(),
            recommended_steps=self.steps,
            recommended_sweeps=None if self.steps is None else self.steps // self.steps_per_sweep,
            eta=None if self.eta is None else str(self.eta),
            added_delta=None if self.eta is None else _added_delta(epsilon, part.blocks * self.eta),
            movement=self.movement,
            curves=tuple(self._curve_facts(curve, place == 0) for place, curve in enumerate(curves)),
        )

    def _meeting_times(self) -> dict[str, int]:
        """How the assessed pairs met, by the names that RowFacts has."""
        if self.curve is None:
            return {}
        meetings = self.curve.meetings
        lag = {"lag_steps": meetings.lag, "lag_sweeps": self.sweeps_of(meetings.lag)}
        met = {"pairs": meetings.pairs, "met": meetings.pairs - meetings.unmet}
        out = {**lag, **met, "given_up_after_sweeps": meetings.most // self.steps_per_sweep}
        if meetings.unmet:  # the longest is not known, and the median may not be
            return out
        times = np.sort(meetings.coupled_steps)
        median, largest = int(times[(len(times) - 1) // 2]), int(times[-1])
        medians = {"median_meeting_steps": median, "median_meeting_sweeps": self.sweeps_of(median)}
        return {**out, **medians, "largest_meeting_steps": largest, "largest_meeting_sweeps": self.sweeps_of(largest)}

    def _curve_facts(self, curve: TotalVariationCurve, assessed: bool) -> CurveFacts:
        meetings = curve.meetings
        is_bound = not meetings.unmet
        value = curve.bound if is_bound else curve.lower_envelope_if_met_at_cap
        last = int(meetings.coupled_steps.max())
        # With censored pairs the last step is the cap, where the figure drops to 0 only because they count as met there.
        steps = [step for step in curve.points(POINTS).tolist() if is_bound or step < last]
        return CurveFacts(
            lag_steps=meetings.lag,
            lag_sweeps=self.sweeps_of(meetings.lag),
            assessed=assessed,
            pairs=meetings.pairs,
            met=meetings.pairs - meetings.unmet,
            is_bound=is_bound,
            end_sweeps=_digits(last / self.steps_per_sweep, 6),
            sweeps=tuple(_digits(step / self.steps_per_sweep, 6) for step in steps),
            estimate=tuple(_digits(value(step), 6) for step in steps),
            upper=tuple(_digits(curve.upper(step), 6) for step in steps) if is_bound else None,
        )


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What is known about the chains of a release: a row for each shape of block and kernel.

    Guarantees:  made from public facts and test keys: the same for all tables with the same cells. Only where `confidential` does the
                 law itself, and so every figure, depend on counts.
    """

    facts: Facts
    mechanism: Mechanism
    pairs: int
    most_sweeps: int
    confidential: bool
    parts: tuple[DiagnosedBlocks, ...]
    rows: tuple[DiagnosisRow, ...]

    @property
    def blocks(self) -> int:
        """Blocks that a chain could draw."""
        return sum(part.blocks for part in self.parts)

    @property
    def has_bounds(self) -> bool:
        """Whether for every shape of blocks some kernel gave a bound."""
        return all(any(row.part is part and row.problem is None for row in self.rows) for part in self.parts)

    @property
    def verdict(self) -> str:
        """What the figures come to, in one sentence."""
        if not self.parts:
            return self.together().text
        best = [min((r for r in self.rows if r.part is part and r.steps), key=_sweeps, default=None) for part in self.parts]
        if unknown := [part.label for part, row in zip(self.parts, best, strict=True) if row is None]:
            return f"No chain can be recommended for {'; '.join(unknown)}: no bound was obtained."
        several = len(self.parts) > 1
        found = [row for row in best if row is not None]
        runs = [f"{row.kernel} for {count_of(f'{_sweeps(row):,}', 'sweep')}{f' on {row.part.label}' * several}" for row in found]
        if any(row.warning for row in found):
            return f"Doubtful: {'; '.join(runs)} would do, but pairs at another lag took longer. See the warnings."
        return f"Chains come to their law: take {'; '.join(runs)}. This is an estimate from {self.pairs:,} pairs each."

    def together(self) -> AllBlocksFacts:
        """The error of all blocks together, if each is drawn by a chain that was assessed with so many pairs."""
        if not self.parts:
            text = "Nothing is left for a chain: cells under no kept total are drawn independently, exactly."
            return AllBlocksFacts(0, None, None, text)
        unknown = [part.label for part in self.parts if not any(row.part is part and row.eta is not None for row in self.rows)]
        if unknown:
            return AllBlocksFacts(self.blocks, None, None, f"No bound was obtained for {'; '.join(unknown)}.")
        eta = self.blocks * confidence_factor(len(self.parts)) / self.pairs
        epsilon = _epsilon(self.mechanism)
        added = _added_delta(epsilon, eta)
        if epsilon is None:
            tail = "a promise in rho or sigma_squared has no delta to add to: give epsilon and delta for a chain"
        elif added is None:
            tail = "(1 + e^epsilon) eta is 1 or more, which promises nothing"
        else:
            tail = f"it adds (1 + e^epsilon) eta = {added} to delta"
        blocks = "1 block" if self.blocks == 1 else f"{self.blocks:,} blocks together"
        if len(self.parts) > 1:
            blocks += f" of {len(self.parts)} shapes (ln(20 x {len(self.parts)}) in place of 3, so that 95 % confidence is for all)"
        text = (
            f"eta = {format_exact(eta)} for {blocks}, from {self.pairs:,} pairs each; {tail}. A release makes as many pairs as its eta "
            "asks for."
        )
        return AllBlocksFacts(self.blocks, str(eta), added, text)

    @property
    def chain_facts(self) -> ChainsFacts:
        """Everything that the page and `--json` say."""
        epsilon = _epsilon(self.mechanism)
        return ChainsFacts(
            confidential=self.confidential,
            confidential_text=CONFIDENTIAL if self.confidential else None,
            table=TableFacts(self.facts.name or self.facts.count_name, len(self.facts.universe)),
            kept=tuple(str(s) for s in self.facts.constraints if s.kind == "kept"),
            kept_texts=tuple(kept_texts(self.facts.constraints, self.facts.universe.labels)),
            mechanism=MechanismFacts(self.mechanism.name, {**self.mechanism.parameters}),
            pairs=self.pairs,
            most_sweeps=self.most_sweeps,
            status="estimated",
            text=ESTIMATED,
            verdict=self.verdict,
            together=self.together(),
            rows=tuple(row.facts(epsilon) for row in self.rows),
        )

    def to_fields(self) -> dict[str, Any]:
        """The same as plain values, for `--json`."""
        return asdict(self.chain_facts)

    def __str__(self) -> str:
        found = self.chain_facts
        parameters = [f"{key} = {value}" for key, value in self.mechanism.parameters.items()]
        universe = self.facts.universe
        return "\n".join(
            [
                *([CONFIDENTIAL] if self.confidential else []),
                f"Verdict    {found.verdict}",
                f"Table      {found.table.cells:,} cells by {', '.join(map(universe.labels.column, universe.columns))}",
                f"Kept       {'; '.join(found.kept_texts) or 'nothing'}",
                f"Mechanism  {', '.join([self.mechanism.name, *parameters])}",
                f"Pairs      {self.pairs:,} coupled pairs for each curve, given up after {count_of(f'{self.most_sweeps:,}', 'sweep')}",
                *([""] if self.rows else []),
                *_text_table(found.rows),
                *([""] if self.rows else []),
                f"Together   {found.together.text}",
                f"Status     {ESTIMATED}",
                *(f"Diagnosis  effective sample size and autocorrelation time: {note}" for note in self._notes),
            ]
        )

    @property
    def _notes(self) -> list[str]:
        """Why figures are missing, each reason once."""
        notes = [row.movement.note for row in self.rows if row.movement is not None]
        return [note for note in (NOT_INSTALLED, NOT_ESTIMATED) if note in notes]

    def to_html(self) -> str:
        """The page, with the curves as figures."""
        return diagnosis_html(self.chain_facts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page.

        Guarantees:  it appears whole or not at all; an existing file is refused. A confidential page is readable by its owner only.
        """
        target = Path(path)
        check_page(target)
        content = self.to_html().encode()
        try:
            name = target.absolute().parent / f".holdfast-{secrets.token_hex(8)}.html"
            try:
                with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if self.confidential else 0o666), "wb") as file:
                    file.write(content)
                os.link(name, target)  # fails where something of that name exists, which a rename would replace
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(name)
        except FileExistsError:
            raise _exists(target) from None
        except OSError as error:
            raise output_problem(error, target) from None


def check_page(path: Path) -> None:
    """Refuse a place that could not be written to, before anything is run."""
    if not path.absolute().parent.is_dir():
        raise OutputProblem(f"The folder that should hold {path.name!r} does not exist. Create it first.")
    if os.path.lexists(path):
        raise _exists(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise OutputProblem(f"The page is HTML. Got the name {path.name!r}. Write one that ends in .html.")


def _exists(path: Path) -> OutputExists:
    return OutputExists(f"{path.name!r} already exists and is not overwritten. Choose another name, or remove it first.")


def diagnose(
    table: Table | Declarations | Universe,
    keep: Iterable[Constraint],
    mechanism: Mechanism,
    *,
    kernels: Iterable[str] | None = None,
    pairs: int = DEFAULT_PAIRS,
    most_sweeps: int = DEFAULT_SWEEPS,
    progress: Told | None = None,
) -> Diagnosis:
    """Run coupled chains on the noise law of a release, and say how many steps each kernel needs.

    Given:       a table, of which only the declarations are read, or a universe; the kept constraints; GeneralizedLaplace or
                 GeneralizedGaussian. `kernels` by default the sampler that the mechanism names, or all that apply; `pairs` at least 4;
                 a pair that has not met after `most_sweeps` sweeps is given up (earlier where all rows together would take more than half
                 an hour). `progress` is called with (what is run, done, in all) at least every few seconds.
    Guarantees:  deterministic, and no count is read. A kernel that gives no bound has a row that says why; the other rows stand.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidParameter(f"A diagnosis needs a mechanism, such as GeneralizedLaplace(epsilon='1/4'). Got {type(mechanism).__name__}.")
    pairs, most_sweeps = exact_integer(pairs, "pairs"), exact_integer(most_sweeps, "most_sweeps")
    if pairs < LEAST_PAIRS:  # with three pairs or fewer 3/N is no probability
        raise InvalidParameter(
            f"A curve cannot be made from fewer than {LEAST_PAIRS} pairs of chains. Got pairs = {pairs}. Use 100 or more."
        )
    if most_sweeps < 1:
        raise InvalidParameter(f"Pairs must be given 1 sweep or more. Got most_sweeps = {most_sweeps}.")
    facts = Facts.of(Declarations.of(table), keep)  # from here on no count can be reached
    mechanism = mechanism.for_facts(facts)
    channel = mechanism.channel(facts)
    if type(channel.target) not in DECAYS:
        raise InvalidParameter(
            f"{mechanism.name!r} has no chains: there is nothing to diagnose. Chains draw generalized-laplace and generalized-gaussian."
        )
    asked = _choose_kernels(mechanism, kernels)
    parts = tuple(_parts(channel))
    runs = [(part, name) for part in parts for name in asked or KERNELS]
    rows = tuple(_row(part, name, pairs, most_sweeps, len(runs), progress) for part, name in runs)
    confidential = channel.target.reads is not Reads.NOTHING
    return Diagnosis(channel.facts, mechanism, pairs, most_sweeps, confidential, parts, rows)


def _sweeps(row: DiagnosisRow) -> int:
    """The recommended sweeps of a row that has some."""
    return (row.steps or 0) // row.steps_per_sweep


def _epsilon(mechanism: Mechanism) -> Fraction | None:
    found = getattr(mechanism, "epsilon", None)
    return found if isinstance(found, Fraction) else None


def _choose_kernels(mechanism: Mechanism, kernels: Iterable[str] | None) -> list[str]:
    """The kernels to look at, each once; none for all that apply."""
    if kernels is None:
        sampler = getattr(mechanism, "sampler", "auto")
        return [] if sampler in EXACT else [sampler]
    if isinstance(kernels, str):
        raise InvalidParameter(f"kernels is a list of names, such as ['line_gibbs']. Got the text {kernels!r}.")
    return list(dict.fromkeys(check_choice(name, tuple(KERNELS), "kernel") for name in kernels))


def _parts(channel: Channel) -> Iterator[DiagnosedBlocks]:
    """What chains run on: every shape but free cells, which are drawn independently; a law that does not factorise has one, the table."""
    used: dict[str, int] = {}
    for shape, blocks in channel.shapes().items():
        if shape.is_free:
            continue
        label = _label(shape) if channel.target.splits else "the whole table"
        used[label] = used.get(label, 0) + 1
        yield DiagnosedBlocks(label if used[label] == 1 else f"{label}, no. {used[label]}", shape, blocks, channel.target)


def _label(shape: Shape) -> str:
    return f"{' x '.join(map(str, shape.axes))} grid" if isinstance(shape, Grid) else f"{shape.name} of {shape.size} cells"


def _row(part: DiagnosedBlocks, name: str, pairs: int, most_sweeps: int, rows: int, progress: Told | None) -> DiagnosisRow:
    """One kernel on blocks of one shape; what is refused becomes a row that says so."""
    try:
        _check_size(part, pairs)
        kernel, seed = part.kernel(name)
        return _run(part, kernel, seed, pairs, most_sweeps, rows, progress)
    except (InvalidParameter, ChainProblem, NoExactSampler) as problem:
        return DiagnosisRow(part, name, problem=f"not used: {problem}")


def _check_size(part: DiagnosedBlocks, pairs: int) -> None:
    """Before a kernel is made: for a large block that alone takes long."""
    if part.shape.size * max(pairs, PILOT_PAIRS) > MOST_PAIRED_CELLS:
        raise InvalidParameter(
            f"{max(pairs, PILOT_PAIRS):,} pairs of chains on {part.shape.size:,} cells are more than {MOST_PAIRED_CELLS:,} cells together. "
            f"Blocks up to {MOST_PAIRED_CELLS // PILOT_PAIRS:,} cells are looked at, large ones with few pairs."
        )


def _run(part: DiagnosedBlocks, kernel: Kernel, seed: str, pairs: int, most_sweeps: int, rows: int, progress: Told | None) -> DiagnosisRow:
    sweep = kernel.steps_per_sweep
    most = min(most_sweeps, steps_allowed(kernel) // (rows * PHASES * max(pairs, PILOT_PAIRS) * sweep)) * sweep
    if most < 1:
        raise InvalidParameter(f"{pairs:,} pairs leave less than one sweep of {sweep:,} steps for each. Use fewer pairs.")

    def curves(what: str, count: int, *lags: int) -> list[TotalVariationCurve]:
        told = _progress_of(progress, f"{kernel.name}, {part.label}: {what}")
        return stability(kernel, lags, pairs=count, most=most, seed=seed, progress=told)

    moving = _progress_of(progress, f"{kernel.name}, {part.label}: diagnostics")
    try:
        lag = pilot(kernel, seed=seed, most=most, progress=_progress_of(progress, f"{kernel.name}, {part.label}: pilot")).lag
        numbers = [pairs]
    except NoMeeting:
        # A few pairs that all go to the cap take long enough, so more follow only if these meet. With the cap as lag, the curve is the
        # share of pairs that are left.
        lag, numbers = most, sorted({min(pairs, PILOT_PAIRS), pairs})
    for count in numbers:
        (curve,) = curves("pairs", count, lag)
        if curve.meetings.unmet:
            early = " (no more were allowed: fewer pairs may take more)" if most < most_sweeps * sweep else ""
            problem = (
                f"no bound: {count - curve.meetings.unmet:,} of {count:,} pairs met within {count_of(f'{most // sweep:,}', 'sweep')}{early}"
            )
            return DiagnosisRow(part, kernel.name, problem, sweep, curve, (), _movement(kernel, seed, None, moving))
    others = curves("other lags", pairs, *sorted({max(1, lag // 2), 2 * lag} - {lag}))
    found = DiagnosisRow(part, kernel.name, None, sweep, curve, tuple(others))
    return replace(found, movement=_movement(kernel, seed, found.steps, moving))


def _progress_of(progress: Told | None, what: str) -> Progress | None:
    return None if progress is None else partial(progress, what)


def _movement(kernel: Kernel, seed: str, steps: int | None, progress: Progress | None) -> Movement:
    """Conventional diagnostics, after the recommended steps where there is such a number."""
    burn_in = RECORDS * kernel.steps_per_sweep // 2 if steps is None else max(2, steps)
    every = kernel.steps_per_sweep if steps is None else max(1, steps // 200)
    allowed = MOVEMENT_SECONDS * 10**9 // kernel.step_nanoseconds
    note = None
    if not hasattr(kernel, "trace"):
        note = "this kernel records no trace"
    elif importlib.util.find_spec("arviz_stats") is None:
        note = NOT_INSTALLED
    elif CHAINS * (burn_in + RECORDS * every) > allowed:
        note = NOT_ESTIMATED
    if note is not None:
        return Movement(_acceptance_rate(kernel, seed, min(burn_in, max(2, allowed // 2)), progress), note=note)
    summary = trace_summary(kernel, records=RECORDS, every=every, chains=CHAINS, seed=seed, burn_in=burn_in, progress=progress)  # type: ignore[arg-type]
    columns = {
        name: {field: None if math.isnan(value) else _digits(value, 4) for field, value in found._asdict().items()}
        for name, found in summary.columns.items()
    }
    sizes = [found["effective_sample_size"] for found in columns.values() if found["effective_sample_size"] is not None]
    times = [found["autocorrelation_time_sweeps"] for found in columns.values() if found["autocorrelation_time_sweeps"] is not None]
    rate = _digits(summary.acceptance_rate, 4)
    return Movement(rate, CHAINS * RECORDS, min(sizes, default=None), max(times, default=None), columns)


def _acceptance_rate(kernel: Kernel, seed: str, steps: int, progress: Progress | None) -> float:
    """Autocorrelation of the second half of one chain."""
    told = StepCounter(2 * steps, progress)
    with NoiseKey.for_tests("chain acceptance: " + seed) as key, key.stream(kernel.name) as words:
        state, _ = run_slices(kernel, kernel.start(words), steps, words, told)
        _, accepted = run_slices(kernel, state, steps, words, told)
    return _digits(accepted / steps, 4)


def _digits(value: float, digits: int) -> float:
    """Rounded, so that figures are the same on every machine."""
    return float(f"{value:.{digits}g}")


def _added_delta(epsilon: Fraction | None, eta: Fraction) -> str | None:
    """What estimated chains add to delta; None where there is no epsilon, or no promise would be left."""
    if epsilon is None:
        return None
    added = added_delta(epsilon, eta)
    return format_up(added, 3) if added < 1 else None


_HEADER = ("Block", "Blocks", "Kernel", "Lag", "Met", "Median", "Longest", "Recommended", "eta", "Accepted", "Autocorr.")


def _text_table(rows: Sequence[RowFacts]) -> list[str]:
    """Aligned columns; a row without a bound says why instead. Times are in sweeps."""
    if not rows:
        return []
    lines = [_HEADER, *map(_cells_of, rows)]
    widths = [max(len(line[i]) for line in lines if len(line) > i + 1 or len(line) == len(_HEADER)) for i in range(len(_HEADER))]
    out = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)).rstrip() for line in lines]
    warnings = [f"Warning: {row.kernel}, {row.block}: {row.warning}." for row in rows if row.warning is not None]
    return [*out, "Lag, meetings, recommended number and autocorrelation time are in sweeps.", *warnings]


def _cells_of(row: RowFacts) -> tuple[str, ...]:
    head = (row.block, f"{row.blocks:,}", row.kernel)
    if row.problem is not None:
        return (*head, row.problem)
    moved = row.movement
    assert moved is not None
    time = moved.autocorrelation_sweeps
    times = (row.median_meeting_sweeps, row.largest_meeting_sweeps)
    recommended = f"{row.recommended_sweeps:,} ({row.recommended_steps:,} steps)"
    rate = f"{100 * moved.acceptance_rate:.3g} %"
    met = f"{row.met:,} of {row.pairs:,}"
    return (
        *head,
        f"{row.lag_sweeps:,}",
        met,
        *(f"{t:,}" for t in times),
        recommended,
        row.eta or "-",
        rate,
        "-" if time is None else f"{time:.3g}",
    )
