"""What was found about the chains of a release, as its page and `--json` have it; what was not found is None."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.card.parts import Settings


@dataclass(frozen=True)
class CurveFacts:
    """Estimated total variation against sweeps, from pairs of chains at one lag. Where not all pairs met it is no bound."""

    lag_steps: int
    lag_sweeps: int
    assessed: bool
    """Whether the recommended number rests on it; else it is at another lag."""
    pairs: int
    met: int
    is_bound: bool
    end_sweeps: float
    sweeps: tuple[float, ...]
    estimate: tuple[float, ...]
    upper: tuple[float, ...] | None


@dataclass(frozen=True)
class Movement:
    """How a chain moves once it is there: figures to four digits."""

    acceptance_rate: float
    draws: int | None = None
    effective_sample_size: float | None = None
    """Effective number of draws, for the slowest of the recorded columns."""
    autocorrelation_sweeps: float | None = None
    columns: dict[str, dict[str, float | None]] | None = None
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class RowFacts:
    """One kernel on blocks of one shape."""

    block: str
    kind: str
    shape: tuple[int, ...]
    cells: int
    free_dimensions: int
    blocks: int
    kernel: str
    problem: str | None
    """Why there is no bound; None if there is one."""
    warning: str | None
    steps_per_sweep: int | None
    lag_steps: int | None = None
    lag_sweeps: int | None = None
    pairs: int | None = None
    met: int | None = None
    given_up_after_sweeps: int | None = None
    median_meeting_steps: int | None = None
    median_meeting_sweeps: int | None = None
    largest_meeting_steps: int | None = None
    largest_meeting_sweeps: int | None = None
    recommended_steps: int | None
    recommended_sweeps: int | None
    eta: str | None
    """For one block."""
    added_delta: str | None
    movement: Movement | None
    curves: tuple[CurveFacts, ...]


@dataclass(frozen=True)
class TogetherFacts:
    """The error of all blocks together."""

    blocks: int
    eta: str | None
    added_delta: str | None
    text: str


@dataclass(frozen=True)
class TableFacts:
    """The table by its name."""

    name: str
    cells: int


@dataclass(frozen=True)
class MechanismFacts:
    """The mechanism and its parameters, as on a card."""

    name: str
    parameters: Settings


@dataclass(frozen=True)
class ChainsFacts:
    """A whole diagnosis."""

    confidential: bool
    confidential_text: str | None
    table: TableFacts
    kept: tuple[str, ...]
    kept_texts: tuple[str, ...]
    mechanism: MechanismFacts
    pairs: int
    most_sweeps: int
    status: str
    text: str
    together: TogetherFacts
    rows: tuple[RowFacts, ...]
