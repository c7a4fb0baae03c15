"""Which law draws Gaussian noise, and how wide it is: from public facts alone, before samplers are chosen ([theory R22]).

The lattice law of rho costs rho, and draws a block again and again until it is kept. The sequential law of the same form draws every cell
once, and costs (1 + kappa) rho. Blocks are independent, and each is drawn anew alone: so each has its own bound of tries, which is proved
and never from a pilot. A secret w costs sum (1 + kappa_b) Q_b(w) / 2 over blocks b, with kappa_b = 0 where the lattice law draws: at most
1 + the largest kappa_b times Q(w) / 2.

`auto` takes the lattice law for blocks that expect MOST_TRIES at most; then the sequential law where it has hardly a price, NEARLY; then
whichever has the least noise: the lattice law of blocks that can be drawn in reasonable time (MAX_CELL_TRIES), or the sequential law.
Where that lowers kappa, the sequential law draws the last cells of a line in groups ([theory R22] (g)).

The least noise that keeps a budget is taken: variances are f times those of the lattice law of the whole budget, f the least
number of FACTOR_DIGITS decimals with (1 + kappa) / f <= 1. kappa falls as f grows, and so does every bound of tries: blocks go over to the
lattice law, until kappa is 0. So auto takes the sequential law, or the lattice law at the largest rho at which it can be drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from holdfast.channels.channel import Channel
from holdfast.errors import NoExactSampler, RequestTooLarge
from holdfast.exact.formatting import round_up
from holdfast.lattices.shapes import Shape
from holdfast.laws import Gaussian, LevelGaussian, Sequential
from holdfast.privacy.guarantee import AskedLaw, GaussianLaw
from holdfast.samplers.choice import MAX_CELL_TRIES
from holdfast.samplers.sequence_gaussian import LEAST_CELL_VARIANCE
from holdfast.samplers.steps import NEXT_BELOW, Steps
from holdfast.samplers.table import KLEIN_PRICE, steps_of

MOST_TRIES = 4
"""Expected tries of a block, as proved, up to which `auto` takes the lattice law without looking further."""
FACTOR_DIGITS = 5
RHO_DIGITS, KAPPA_DIGITS, LEAST_KAPPA = 5, 5, Fraction(1, 10**12)
"""Digits of a promised rho and of kappa, both rounded up; a smaller kappa is given as this."""
HARDLY_ANY = 1e-3
"""Expected tries beyond one, as a logarithm, that a formula tells for blocks of many shapes at once."""
LARGE_RHO, NARROWEST = 1000, Fraction(LEAST_CELL_VARIANCE) * Fraction(101, 100)
"""A budget beyond which variances might be too small to be drawn; the least of a cell, which no budget goes below."""
PARTS = 64
"""Between the lattice law of the whole budget and the sequential law, so many widths are looked at."""
NEARLY = Fraction(101, 100)
"""Up to this factor, or this price, the sequential law is taken rather than many tries."""


@dataclass(frozen=True, eq=False)
class _Width:
    """The blocks of a channel at one width: what each expects, and which are drawn by the sequential law."""

    of: Gaussian | LevelGaussian
    steps: dict[Shape, Steps]
    sequential: frozenset[Shape]

    @property
    def kappa(self) -> Fraction:
        return _round_kappa(max((self.steps[shape].kappa for shape in self.sequential), default=Fraction(0)))

    @property
    def in_groups(self) -> frozenset[Shape]:
        return frozenset(shape for shape in self.sequential if self.steps[shape].in_groups)

    @property
    def least(self) -> Fraction | None:
        """The smallest variance of a step of any block."""
        return min((steps.least for steps in self.steps.values() if steps.least is not None), default=None)

    def keeps(self, factor: Fraction) -> bool:
        """Whether noise of this width costs no more than the whole budget, which buys the factor 1."""
        return 1 + self.kappa <= factor


def settle(channel: Channel, asked: AskedLaw, *, is_budget: bool) -> Channel:
    """The channel with the law that draws it, and what that costs.

    Given:       a channel whose target is the lattice law, and whose promise has its rho: what the whole budget buys, or, with `is_budget`
                 false, noise that is drawn as wide as it is.
    Guarantees:  a promise of (1 + kappa) rho, at most the budget. Deterministic, from public facts alone; the law is in the target and so
                 in the identity. Where a Markov chain draws, or blocks too large to prepare are refused later, nothing is changed.
    """
    target, rho = channel.target, channel.guarantee.rho
    assert isinstance(target, Gaussian | LevelGaussian)
    assert rho is not None
    if channel.request.names_a_chain:
        return channel
    if asked == "lattice":
        return _with_law(channel, GaussianLaw(asked, "lattice", rho))
    try:
        factor, width = _narrowest(channel, target, asked) if is_budget else (Fraction(1), _as_wide(channel, target, asked))
    except (NoExactSampler, RequestTooLarge):
        return _with_law(channel, GaussianLaw(asked, "lattice", rho))
    drawn = [steps.log_tries for shape, steps in width.steps.items() if shape not in width.sequential]
    law = GaussianLaw(asked, "lattice", rho / factor, factor=factor, tries=math.exp(max(drawn, default=0.0)))
    if not width.kappa:
        return _with_law(replace(channel, target=width.of), law)
    by_lattice = frozenset(width.steps) - width.sequential
    law = _with_deciding(replace(law, name="sequential", kappa=width.kappa), channel, width)
    return _with_law(replace(channel, target=Sequential(width.of, width.kappa, by_lattice, width.in_groups)), law)


def _with_law(channel: Channel, law: GaussianLaw) -> Channel:
    """With the promise of this law: never more than the budget, which five digits rounded up might be."""
    whole, price = channel.guarantee.rho, (1 + law.kappa) * law.rho
    assert whole is not None
    rounded = price if price == whole else round_up(price, RHO_DIGITS)
    return replace(channel, guarantee=replace(channel.guarantee, rho=min(rounded, whole) if price <= whole else rounded, law=law))


def _with_deciding(law: GaussianLaw, channel: Channel, width: _Width) -> GaussianLaw:
    """With the block whose kappa is the largest."""
    shapes = channel.shapes()
    shape = max(width.sequential, key=lambda own: (width.steps[own].kappa, own.size))
    blocks, steps = sum(shapes[own] for own in width.sequential), width.steps[shape]
    return replace(law, blocks=blocks, size=shape.size, least=steps.least, cells=steps.times, in_groups=steps.in_groups)


def _width(channel: Channel, of: Gaussian | LevelGaussian, asked: AskedLaw, *, patient: bool = False) -> _Width:
    """The blocks with this law's variances; `patient`: all that can be drawn by the lattice law in reasonable time are."""

    def is_sequential(shape: Shape, blocks: int) -> bool:
        log_tries = steps[shape].log_tries
        if steps[shape].least is None or asked == "sequential":
            return steps[shape].least is not None
        price = KLEIN_PRICE if shape.dense_dimension else 1
        return log_tries > math.log(MOST_TRIES if not patient else max(MOST_TRIES, MAX_CELL_TRIES / (blocks * shape.size * price)))

    shapes = channel.shapes()
    steps = {shape: (None if asked == "sequential" else _wide(shape, of)) or steps_of(shape, of) for shape in shapes}
    sequential = frozenset(shape for shape, blocks in shapes.items() if is_sequential(shape, blocks))
    return _Width(of, {shape: own.cheapest() if shape in sequential else own for shape, own in steps.items()}, sequential)


def _wide(shape: Shape, of: Gaussian | LevelGaussian) -> Steps | None:
    """The tries of sums and grids so wide that nothing need be prepared to know them: variances of cells are sigma^2 / 2^axes or more."""
    if not (isinstance(of, Gaussian) and shape.keeps_axis_sums):
        return None
    log_tries = 2.2 * shape.size * math.exp(-19.7 * float(of.sigma_squared) / 2 ** len(shape.axes))
    return Steps(log_tries=log_tries) if log_tries < HARDLY_ANY else None


def _as_wide(channel: Channel, target: Gaussian | LevelGaussian, asked: AskedLaw) -> _Width:
    """The blocks drawn as wide as they are."""
    found = _width(channel, target, asked)
    if asked == "sequential" or not found.kappa or 1 + _kappa_at(found, NEARLY) <= NEARLY:
        return found
    return _width(channel, target, asked, patient=True)


def _narrowest(channel: Channel, target: Gaussian | LevelGaussian, asked: AskedLaw) -> tuple[Fraction, _Width]:
    """(the least factor that keeps the budget, the blocks at that width)."""

    def at(factor: Fraction, *, patient: bool = False) -> _Width:
        return _width(channel, target.widen(factor), asked, patient=patient)

    rho, start = channel.guarantee.rho, Fraction(1)
    if rho is not None and rho > LARGE_RHO:  # at the width of rho = 1 every variance is well above what samplers take
        least = at(rho).least
        start = Fraction(1) if least is None else max(start, _up(NARROWEST * rho / least))
    first = at(start)
    if first.keeps(start):
        return start, first
    most = _least_factor(start, lambda factor: 1 + _kappa_at(first, factor / start) <= factor)
    if asked == "sequential" or most <= NEARLY * start:
        return most, at(most)
    found = start, at(start, patient=True)
    if found[1].keeps(start):
        return found
    low, high, found = 0, PARTS, (most, at(most, patient=True))
    while high - low > 1:
        middle = (low + high) // 2
        factor = _up(start + (most - start) * Fraction(middle, PARTS))
        width = at(factor, patient=True)
        if width.keeps(factor):
            high, found = middle, (factor, width)
        else:
            low = middle
    return found


def _kappa_at(width: _Width, times: Fraction) -> Fraction:
    """kappa where the same blocks are drawn by the sequential law with variances so many times as wide, or slightly more."""
    return _round_kappa(max(width.steps[shape].cheapest(times).kappa_at(times * NEXT_BELOW) for shape in width.sequential))


def _round_kappa(kappa: Fraction) -> Fraction:
    return kappa and max(round_up(kappa, KAPPA_DIGITS), LEAST_KAPPA)


def _up(factor: Fraction) -> Fraction:
    return Fraction(math.ceil(factor * 10**FACTOR_DIGITS), 10**FACTOR_DIGITS)


def _least_factor(start: Fraction, keeps: Callable[[Fraction], bool]) -> Fraction:
    """The least multiple of 10^-FACTOR_DIGITS that keeps the budget, by halving: all larger ones keep it too."""
    unit = 10**FACTOR_DIGITS
    low, high = int(start * unit), 2 * int(start * unit)
    while not keeps(Fraction(high, unit)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(Fraction(middle, unit)) else (middle, high)
    return Fraction(high, unit)
