"""How far released counts are from the true ones."""

from __future__ import annotations

_BASES = {"exact": "exact", "upper bound": "upper bound, proved", "estimated": "estimated from draws of the public law"}


def expected_error_sentences(smallest: float, median: float, largest: float) -> str:
    """From the standard deviations of the cells' noise."""
    spread = f" ({smallest:.3g} to {largest:.3g})" if smallest != largest else ""
    return (
        f"The error of a released count averages to zero; its standard deviation is {median:.3g} for a typical cell{spread}. "
        "Kept totals have no error."
    )


def no_noise_sentences() -> str:
    """Where cells are left out instead of noised."""
    return "No noise is added: counts that the kept totals do not fix are left out. Kept totals have no error."


def basis_phrase(basis: str, law_is_exact: bool) -> str:
    """How the standard deviations were found."""
    return _BASES[basis] + ("" if law_is_exact else "; of the law that the chain aims at")
