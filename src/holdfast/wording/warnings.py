"""Warnings that a page, a plan and a screen show first, in one list: a weak budget, records left out, no limit."""

from __future__ import annotations

from fractions import Fraction

from holdfast.card.parts import WarningInfo
from holdfast.channels import Facts
from holdfast.privacy.guarantee import Guarantee
from holdfast.wording.budget import weak_sentence
from holdfast.wording.catalogue import Sentences

LITTLE_NOISE = Fraction(1, 10)
"""The variance of a typical cell, in steps of the noise, below which noise is nearly nil: 9 of 10 counts, or more, carry none."""


def budget_warnings(guarantee: Guarantee) -> tuple[WarningInfo, ...]:
    """Return the warning about a budget that protects little, if it does."""
    said = weak_sentence(guarantee)
    return () if said is None else (WarningInfo(kind="weak-budget", text=said),)


def noise_warnings(deviation: float | None, noun: str, basis: str, *, is_rough: bool = False) -> tuple[WarningInfo, ...]:
    """Return the warning about noise that is nil or nearly so: half of the cells that carry any have at most this deviation, in steps.

    Noise is a whole number of steps with mean 0, so it differs from 0 with a probability of at most its variance. Rough estimates of the
    variance, 0 if no draw had any noise, name no other share than that of LITTLE_NOISE.
    """
    if deviation is None or (variance := Fraction(deviation) ** 2 * Fraction(10_001, 10_000)) > LITTLE_NOISE:  # of six digits
        return ()
    share = int(100 * (1 - (LITTLE_NOISE if is_rough else variance)))
    return (WarningInfo(kind="little-noise", text=Sentences()("warnings.noise", noun=noun, share=share, basis=basis)),)


def sample_warnings(facts: Facts) -> tuple[WarningInfo, ...]:
    """Return the warning that records beyond a limit were left out, if they were. It never says how many."""
    if facts.over == "refuse":
        return ()
    return (WarningInfo(kind="truncated", text=Sentences()("warnings.truncated", protected=facts.protect, count=facts.max_records or 1)),)


def key_warnings(private: bool) -> tuple[WarningInfo, ...]:
    """Return the warning about a test key, if the key is one."""
    say = Sentences()
    text = f"{say('page.not_private')}. {say('page.not_private_why')}"
    return () if private else (WarningInfo(kind="test-key", text=text),)


def limit_warnings(guarantee: Guarantee, recorded: bool, limited: bool) -> tuple[WarningInfo, ...]:
    """Return the warning that nothing limits what releases of the data cost together, if this one costs anything."""
    if limited or guarantee.costs_nothing or guarantee.keyed is not None:
        return ()
    return (WarningInfo(kind="no-limit", text=Sentences()("warnings.no_limit" if recorded else "warnings.no_ledger")),)
