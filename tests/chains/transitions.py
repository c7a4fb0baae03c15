"""The exact law of one step of a kernel, and of two kernels that move together, in fractions: what tests compare steps with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from holdfast.chains.coupled_line import CoupledLine, best_shifts, shift_line
from holdfast.chains.line_gibbs import LineGibbs
from holdfast.chains.metropolis import CoupledMetropolis
from holdfast.chains.protocol import State, StatePair
from holdfast.lattices import algebra

from .lines import every_move
from .rational import RationalMetropolis

Point: TypeAlias = tuple[int, ...]
Listed: TypeAlias = Mapping[int, Fraction]
Joint: TypeAlias = dict[tuple[int, int], Fraction]


def transitions(kernel: Any, state: State) -> dict[Point, Fraction]:
    """The law of one step; the base must be rational and every table bounded."""
    if isinstance(kernel, RationalMetropolis):
        return _of_metropolis(kernel, state)
    if isinstance(kernel, LineGibbs):
        return _of_line(kernel, state)
    law: dict[Point, Fraction] = kernel.transitions(state)
    return law


def joint_transitions(coupled: Any, pair: StatePair) -> dict[tuple[Point, Point], Fraction]:
    """The law of one step of two chains."""
    if isinstance(coupled, CoupledMetropolis):
        assert isinstance(coupled.kernel, RationalMetropolis)
        return _of_coupled_metropolis(coupled.kernel, pair)
    if isinstance(coupled, CoupledLine):
        return _of_coupled_line(coupled.kernel, pair)
    law: dict[tuple[Point, Point], Fraction] = coupled.transitions(pair)
    return law


# Two integer laws drawn together.


def maximal_joint(p: Listed, q: Listed) -> Joint:
    """The law of `draw_maximal`; the weights need not be normalised."""
    p, q = normalise(p), normalise(q)
    points = sorted({*p, *q})
    common = {k: min(p.get(k, Fraction(0)), q.get(k, Fraction(0))) for k in points}
    left = {k: p.get(k, Fraction(0)) - common[k] for k in points}
    right = {k: q.get(k, Fraction(0)) - common[k] for k in points}
    apart = sum(left.values())
    joint: Joint = {(k, k): mass for k, mass in common.items() if mass}
    for x, a in left.items():
        for y, b in right.items():
            if a and b:
                joint[x, y] = joint.get((x, y), Fraction(0)) + a * b / apart
    return joint


def quantile_joint(p: Listed, q: Listed) -> Joint:
    """The law of `draw_quantile`; the weights need not be normalised."""
    left, right = ([(k, mass) for k, mass in sorted(normalise(law).items()) if mass] for law in (p, q))
    joint: Joint = {}
    i = j = 0
    a, b = left[0][1], right[0][1]
    while True:
        step = min(a, b)
        key = left[i][0], right[j][0]
        joint[key] = joint.get(key, Fraction(0)) + step
        a, b = a - step, b - step
        if not a:
            i += 1
            if i == len(left):
                return joint
            a = left[i][1]
        if not b:
            j += 1
            b = right[j][1]


def normalise(law: Listed) -> dict[int, Fraction]:
    """The law with total one."""
    total = sum(law.values())
    return {k: mass / total for k, mass in law.items()}


# Line Gibbs.


def _of_line(kernel: LineGibbs, state: State) -> dict[Point, Fraction]:
    moves = every_move(kernel.moves)
    law: dict[Point, Fraction] = {}
    for move in moves:
        for t, mass in normalise(kernel.line(state, move).exact_weights()).items():
            after = tuple(kernel.move_state(state, move, t).tolist())
            law[after] = law.get(after, Fraction(0)) + mass / len(moves)
    return law


def _of_coupled_line(kernel: LineGibbs, pair: StatePair) -> dict[tuple[Point, Point], Fraction]:
    x, y = pair
    if np.array_equal(x, y):
        return {(after, after): mass for after, mass in _of_line(kernel, x).items()}
    moves = every_move(kernel.moves)
    law: dict[tuple[Point, Point], Fraction] = {}
    for move in moves:
        low, high = best_shifts(x, y, move)
        p, q = kernel.line(x, move), kernel.line(y, move)
        offset = 0 if low < high else low
        joint = (quantile_joint if low < high else maximal_joint)(p.exact_weights(), shift_line(q, offset).exact_weights())
        for (t, s), mass in joint.items():
            key = tuple(kernel.move_state(x, move, t).tolist()), tuple(kernel.move_state(y, move, s + offset).tolist())
            law[key] = law.get(key, Fraction(0)) + mass / len(moves)
    return law


# Metropolis.


@lru_cache(maxsize=16)
def energies(kernel: RationalMetropolis) -> dict[Point, int]:
    """Every state that the bounds allow, with its energy."""
    target = kernel.target
    assert target.lower is not None
    assert target.upper is not None
    rows = list(algebra.independent_rows(algebra.as_matrix(kernel.basis)))
    sides = [range(int(target.lower[i]), int(target.upper[i]) + 1) for i in rows]
    square = algebra.take_rows(algebra.as_matrix(kernel.basis), rows)
    numerators, denominator = algebra.solve(square, algebra.identity(len(rows)))
    inverse = algebra.to_numpy(numerators)
    out = {}
    for chosen in product(*sides):
        scaled = inverse @ np.array(chosen, dtype=np.int64)
        v = scaled // denominator
        if (v * denominator == scaled).all() and target.allows(kernel.basis @ v):
            out[tuple(int(x) for x in v)] = target.energy(kernel.basis @ v)
    return out


def jump_mass(kernel: RationalMetropolis, jump: int) -> Fraction:
    """P[e = jump] in one coordinate."""
    base = kernel.jump_base
    return (1 - base) / (1 + base) * base ** abs(jump)


def overlap(base: Fraction, shift: int) -> Fraction:
    """Sum of the lesser of two double geometric laws of this base whose centres lie `shift` apart: how often a maximal pairing agrees."""
    shift = abs(shift)
    if shift % 2 == 0:
        return base ** (shift // 2)
    return 2 * base ** ((shift + 1) // 2) / (1 + base)


def proposal_mass(kernel: RationalMetropolis, v: Point, w: Point, x: Point, y: Point) -> Fraction:
    """Probability that the chains at v and w propose x and y."""
    total = Fraction(1)
    for a, b, c, d in zip(v, w, x, y, strict=True):
        total *= _joint_from_zero(kernel, b - a, c - a, d - a)
        if not total:
            break
    return total


@cache
def _joint_from_zero(kernel: RationalMetropolis, w: int, x: int, y: int) -> Fraction:
    """The maximal pairing of the jump laws around 0 and w: what they share where x = y, and the product of what is left of each."""
    joint = min(jump_mass(kernel, x), jump_mass(kernel, x - w)) if x == y else Fraction(0)
    left = max(jump_mass(kernel, x) - jump_mass(kernel, x - w), Fraction(0))
    right = max(jump_mass(kernel, y - w) - jump_mass(kernel, y), Fraction(0))
    return joint + left * right / (1 - overlap(kernel.jump_base, w)) if left and right else joint


def _reached(kernel: RationalMetropolis, here: Point, there: Point) -> Fraction:
    """Probability that `there` is proposed from `here`."""
    return math.prod((jump_mass(kernel, y - x) for x, y in zip(here, there, strict=True)), start=Fraction(1))


def _acceptance(kernel: RationalMetropolis, here: Point, there: Point) -> Fraction:
    listed = energies(kernel)
    return min(Fraction(1), kernel.target.decay.exact_ratio(listed[there], listed[here]))


def _of_metropolis(kernel: RationalMetropolis, state: State) -> dict[Point, Fraction]:
    here = tuple(int(x) for x in kernel.entering(state))
    others = [there for there in energies(kernel) if there != here]
    out = {there: _reached(kernel, here, there) * _acceptance(kernel, here, there) for there in others}
    out[here] = 1 - sum(out.values(), start=Fraction(0))
    return out


def _of_coupled_metropolis(kernel: RationalMetropolis, pair: StatePair) -> dict[tuple[Point, Point], Fraction]:
    v, w = (tuple(int(x) for x in kernel.entering(state)) for state in pair)
    fibre = tuple(energies(kernel))
    out: dict[tuple[Point, Point], Fraction] = {}

    def add(first: Point, second: Point, mass: Fraction) -> None:
        if mass:
            out[first, second] = out.get((first, second), Fraction(0)) + mass

    # What is left of each proposal when the other chain's lies outside the bounds.
    left_v = {x: _reached(kernel, v, x) for x in fibre}
    left_w = {y: _reached(kernel, w, y) for y in fibre}
    stays = Fraction(1)
    for x in fibre:
        for y in fibre:
            mass = proposal_mass(kernel, v, w, x, y)
            if not mass:
                continue
            left_v[x] -= mass
            left_w[y] -= mass
            stays -= mass
            accept_v, accept_w = _acceptance(kernel, v, x), _acceptance(kernel, w, y)
            add(x, y, mass * min(accept_v, accept_w))
            add(x, w, mass * max(accept_v - accept_w, Fraction(0)))
            add(v, y, mass * max(accept_w - accept_v, Fraction(0)))
            add(v, w, mass * (1 - max(accept_v, accept_w)))
    for x, mass in left_v.items():
        stays -= mass
        add(x, w, mass * _acceptance(kernel, v, x))
        add(v, w, mass * (1 - _acceptance(kernel, v, x)))
    for y, mass in left_w.items():
        stays -= mass
        add(v, y, mass * _acceptance(kernel, w, y))
        add(v, w, mass * (1 - _acceptance(kernel, w, y)))
    add(v, w, stays)
    return out
