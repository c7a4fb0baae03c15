"""Compile the hot loops once and leave them in Numba's cache: `make setup` runs this, so that no user waits for it."""

from __future__ import annotations

import time

import numpy as np


def warm() -> float:
    """Run every compiled loop on the argument types it will meet; returns the seconds it took."""
    began = time.perf_counter()
    from holdfast.exact import DiscreteGaussian
    from holdfast.exact.compiled import COLD_THRESHOLD
    from holdfast.randomness import NoiseKey

    with NoiseKey.for_tests("warm") as key:
        for sigma_squared in (100, 10**12, 10**30):  # one table, two words a try, three words a try
            DiscreteGaussian(sigma_squared).sample(COLD_THRESHOLD, key)
        key.streams("warm", items=np.arange(COLD_THRESHOLD)).take(4)
        key.streams("warm", "text", items=np.arange(COLD_THRESHOLD).astype("S24"), text=True).take(4)
    return time.perf_counter() - began


if __name__ == "__main__":
    print(f"compiled loops ready ({warm():.1f} s)")
