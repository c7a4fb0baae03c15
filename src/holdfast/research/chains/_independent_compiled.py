"""The loop of independent_metropolis.py, compiled: whole steps only; what doubles or a word leave open is made by the exact step."""

from __future__ import annotations

import numpy as np

from holdfast.exact._compiled import OPEN, lookup, settle_exp
from holdfast.exact._loop_compiled import loop

ALL_DONE, NEEDS_WORDS, LEFT_OPEN = 0, 1, 2  # as in chains/words_in_steps.py
WIDTH = 2.0**-32


@loop
def propose(words, begin, free, columns, starts, rows, entries, lower, upper, jumps, out):  # type: ignore[no-untyped-def]
    """A whole proposal into `out`: 1 within the bounds, -1 not (the rest is not worked out), 0 where a word is open."""
    direct, high, low, shift, first = jumps
    for p in columns:
        out[p] = 0
    for f in range(free.size):
        index = lookup(words[begin + f], direct, high, low, shift)
        if index == OPEN:
            return 0
        value = first + index
        if value < lower[free[f]] or value > upper[free[f]]:
            return -1
        out[free[f]] = value
        for e in range(starts[f], starts[f + 1]):
            out[columns[rows[e]]] -= entries[e] * value
    for p in columns:
        if out[p] < lower[p] or out[p] > upper[p]:
            return -1
    return 1


@loop
def sizes(z, free):  # type: ignore[no-untyped-def]
    """(the sum of all |z|, that of the free ones)."""
    whole, inside = np.int64(0), np.int64(0)
    for i in range(z.size):
        whole += abs(z[i])
    for f in free:
        inside += abs(z[f])
    return whole, inside


@loop
def advance(words, wanted, z, made, every, record, free, columns, starts, rows, entries, lower, upper, jumps, rule):  # type: ignore[no-untyped-def]
    """Up to `wanted` steps from z, changed in place. Returns (steps done, words used, code, proposals accepted)."""
    rate, proposal_rate, denominator, band = rule
    done, used, accepted = 0, 0, 0
    proposed = np.empty_like(z)
    whole, inside = sizes(z, free)
    while done < wanted:
        if used + free.size + 1 > words.size:
            return done, used, NEEDS_WORDS, accepted
        verdict = propose(words, used, free, columns, starts, rows, entries, lower, upper, jumps, proposed)
        if verdict == 0:
            return done, used, LEFT_OPEN, accepted
        if verdict > 0:
            new_whole, new_inside = sizes(proposed, free)
            exponent = rate * (new_whole - whole) - proposal_rate * (new_inside - inside)  # in units of 1 / denominator: exact
            if exponent > 0:
                verdict = settle_exp(np.float64(words[used + free.size]), WIDTH, np.float64(exponent) / denominator, band)
                if verdict == 0:
                    return done, used, LEFT_OPEN, accepted
            if verdict > 0:
                for i in range(z.size):
                    z[i] = proposed[i]
                whole, inside = new_whole, new_inside
                accepted += 1
        used += free.size + 1
        done += 1
        if every > 0 and (made + done) % every == 0:
            row = (made + done) // every - 1
            record[row, 0], record[row, 1], record[row, 2] = whole, z[0], z[1]
    return done, used, ALL_DONE, accepted
