"""The compiled Metropolis loops: whole runs in one call, alone and in pairs.

Every step is made in full or not at all. Where a word does not settle its question, or a coordinate would leave the room it has, the loop
stops before that step with LEFT_OPEN and the exact step makes it, from the same words.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.exact._compiled import OPEN, lookup, settle_exp
from holdfast.exact._loop_compiled import loop

ALL_DONE, NEEDS_WORDS, LEFT_OPEN = 0, 1, 2  # as in words_in_steps.py
WIDTH = 2.0**-32


@loop
def energy_of(values, absolute):  # type: ignore[no-untyped-def]
    """The integer energy of the cells' values."""
    total = np.int64(0)
    for k in range(values.size):
        total += abs(values[k]) if absolute else values[k] * values[k]
    return total


@loop
def copy_to(out, values):  # type: ignore[no-untyped-def]
    """out[:] = values, which Numba makes slow by looking for an overlap."""
    for k in range(values.size):
        out[k] = values[k]


@loop
def shift_to(out, values, jump, columns, rows, entries):  # type: ignore[no-untyped-def]
    """out = values + matrix times jump. One flat loop, zeros of `jump` included: half of them are zero, and no branch foresees which."""
    copy_to(out, values)
    for p in range(columns.size):
        out[rows[p]] += jump[columns[p]] * entries[p]


@loop
def within(values, lower, upper):  # type: ignore[no-untyped-def]
    """Whether all values lie within their bounds."""
    for k in range(values.size):
        if values[k] < lower[k] or values[k] > upper[k]:
            return False
    return True


@loop
def verdict_of(word, before, after, norm, rate, band):  # type: ignore[no-untyped-def]
    """Of energies: 1 accepted, -1 refused, 0 open."""
    if after <= before:
        return 1
    exponent = rate * np.float64(after - before)
    if norm:
        exponent /= math.sqrt(np.float64(after)) + math.sqrt(np.float64(before))
    return settle_exp(np.float64(word), WIDTH, exponent, band)


@loop
def take_if(verdict, v, jump, values, proposed, energy, after):  # type: ignore[no-untyped-def]
    """Take the proposal where the verdict is 1; the energy then."""
    if verdict < 0:
        return energy
    for j in range(v.size):
        v[j] += jump[j]
    copy_to(values, proposed)
    return after


@loop
def write_record(row, energy, v, shown):  # type: ignore[no-untyped-def]
    """Energy, first cell, partial sum."""
    row[0] = energy
    for s in range(2):
        row[1 + s] = 0
        for j in range(v.size):
            row[1 + s] += shown[s, j] * v[j]


@loop
def advance(words, wanted, v, values, made, every, record, shown, watched, jumps, rule):  # type: ignore[no-untyped-def]
    """Up to `wanted` steps of one chain from (v, values), changed in place; `made` steps were made before (for `every`, see `trace`).

    Returns (steps done, words used, code, proposals accepted).
    """
    columns, rows, entries, lower, upper = watched
    direct, high, low, shift, first = jumps
    absolute, norm, bounded, rate, band, room = rule
    m, done, used, accepted = v.size, 0, 0, 0
    jump, proposed = np.empty_like(v), np.empty_like(values)
    energy = energy_of(values, absolute)
    while done < wanted:
        if used + m + 1 > words.size:
            return done, used, NEEDS_WORDS, accepted
        open_words = 0
        for j in range(m):
            index = lookup(words[used + j], direct, high, low, shift)
            jump[j] = first + index
            open_words += index == OPEN or abs(v[j] + jump[j]) > room
        if open_words > 0:
            return done, used, LEFT_OPEN, accepted
        shift_to(proposed, values, jump, columns, rows, entries)
        after = energy_of(proposed, absolute)
        verdict = -1
        if not bounded or within(proposed, lower, upper):
            verdict = verdict_of(words[used + m], energy, after, norm, rate, band)
        if verdict == 0:
            return done, used, LEFT_OPEN, accepted
        accepted += verdict > 0
        energy = take_if(verdict, v, jump, values, proposed, energy, after)
        used += m + 1
        done += 1
        if every > 0 and (made + done) % every == 0:
            write_record(record[(made + done) // every - 1], energy, v, shown)
    return done, used, ALL_DONE, accepted


@loop
def coin_of(word, exponent, coins):  # type: ignore[no-untyped-def]
    """A coin of probability a^exponent, exponent >= 1: 1 heads, -1 tails, 0 open. coins[k] = (least, greatest) floor of a^k 2^32."""
    k = min(exponent, coins.shape[0] - 1)
    cell = np.int64(word)
    if cell < coins[k, 0]:
        return 1
    if cell > coins[k, 1]:
        return -1
    return 0


@loop
def other_jump(words, cursor, here, other, jumps, coins):  # type: ignore[no-untyped-def]
    """A jump from `here` given that it does not match one from `other`: redrawn until its coin shows tails.

    Returns (jump, words read up to, code).
    """
    while True:
        if cursor + 2 > words.size:
            return 0, cursor, NEEDS_WORDS
        index = lookup(words[cursor], jumps.direct, jumps.high, jumps.low, jumps.shift)
        cursor += 1
        if index == OPEN:
            return 0, cursor, LEFT_OPEN
        jump = jumps.first + index
        exponent = abs(here + jump - other) - abs(jump)
        if exponent <= 0:  # heads for certain: no coin is thrown
            continue
        side = coin_of(words[cursor], exponent, coins)
        cursor += 1
        if side == 0:
            return 0, cursor, LEFT_OPEN
        if side < 0:
            return jump, cursor, ALL_DONE


@loop
def jump_pair(words, cursor, v, w, jump_v, jump_w, jumps, coins, room):  # type: ignore[no-untyped-def]
    """Jumps of both chains, paired coordinate by coordinate. Returns (words read up to, code)."""
    direct, high, low, shift, first = jumps
    for j in range(v.size):
        if cursor + 2 > words.size:
            return cursor, NEEDS_WORDS
        index = lookup(words[cursor], direct, high, low, shift)
        cursor += 1
        if index == OPEN:
            return cursor, LEFT_OPEN
        jump = first + index
        other = v[j] + jump - w[j]
        exponent = abs(other) - abs(jump)
        if exponent > 0:
            side = coin_of(words[cursor], exponent, coins)
            cursor += 1
            if side == 0:
                return cursor, LEFT_OPEN
            if side < 0:
                other, cursor, code = other_jump(words, cursor, w[j], v[j], jumps, coins)
                if code != ALL_DONE:
                    return cursor, code
        if abs(v[j] + jump) > room or abs(w[j] + other) > room:
            return cursor, LEFT_OPEN
        jump_v[j], jump_w[j] = jump, other
    return cursor, ALL_DONE


@loop
def advance_pair(words, wanted, v, w, values_v, values_w, watched, jumps, coins, rule):  # type: ignore[no-untyped-def]
    """Up to `wanted` coupled steps, changed in place; stops with ALL_DONE after the step that makes v and w equal.

    Returns (steps done, words used, code).
    """
    columns, rows, entries, lower, upper = watched
    absolute, norm, bounded, rate, band, room = rule
    done, used = 0, 0
    jump_v, jump_w = np.empty_like(v), np.empty_like(w)
    proposed_v, proposed_w = np.empty_like(values_v), np.empty_like(values_w)
    energy_v, energy_w = energy_of(values_v, absolute), energy_of(values_w, absolute)
    while done < wanted:
        cursor, code = jump_pair(words, used, v, w, jump_v, jump_w, jumps, coins, room)
        if code != ALL_DONE:
            return done, used, code
        if cursor >= words.size:
            return done, used, NEEDS_WORDS
        shift_to(proposed_v, values_v, jump_v, columns, rows, entries)
        shift_to(proposed_w, values_w, jump_w, columns, rows, entries)
        after_v, after_w = energy_of(proposed_v, absolute), energy_of(proposed_w, absolute)
        verdict_v = verdict_w = -1
        if not bounded or within(proposed_v, lower, upper):
            verdict_v = verdict_of(words[cursor], energy_v, after_v, norm, rate, band)
        if not bounded or within(proposed_w, lower, upper):
            verdict_w = verdict_of(words[cursor], energy_w, after_w, norm, rate, band)
        if verdict_v == 0 or verdict_w == 0:
            return done, used, LEFT_OPEN
        energy_v = take_if(verdict_v, v, jump_v, values_v, proposed_v, energy_v, after_v)
        energy_w = take_if(verdict_w, w, jump_w, values_w, proposed_w, energy_w, after_w)
        used = cursor + 1
        done += 1
        j = 0
        while j < v.size and v[j] == w[j]:
            j += 1
        if j == v.size:
            return done, used, ALL_DONE
    return done, used, ALL_DONE
