"""Holdfast publishes private count tables whose mandated totals hold exactly.

    import holdfast as hf
    law = hf.DiscreteGaussian(sigma_squared="100")
    noise = law.sample(10)

Names are loaded when first used, so that `import holdfast` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from holdfast import errors, exact
    from holdfast.exact import DiscreteGaussian, DiscreteLaplace
    from holdfast.randomness import NoiseKey

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "NoiseKey", "__version__", "errors", "exact"]

_HOME = {
    "DiscreteGaussian": "holdfast.exact",
    "DiscreteLaplace": "holdfast.exact",
    "NoiseKey": "holdfast.randomness",
    "errors": "holdfast.errors",
    "exact": "holdfast.exact",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    module = import_module(home)
    value = module if home == f"holdfast.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
