"""Holdfast publishes private count tables whose mandated totals hold exactly.

    import holdfast as hf
    table = hf.Table.from_counts("counties.csv", cells=["state", "county"], count="population")
    moves = hf.lattice(table.universe, [hf.margin("state")])
    noise = hf.DiscreteGaussian(sigma_squared="100").sample(10)

Names are loaded when first used, so that `import holdfast` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from holdfast import errors, exact
    from holdfast.exact import DiscreteGaussian, DiscreteLaplace
    from holdfast.invariants import areas, identity, linear, margin, subset, total
    from holdfast.lattice import Lattice, lattice
    from holdfast.randomness import NoiseKey
    from holdfast.tables import Hierarchy, Table, Universe

__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Hierarchy",
    "Lattice",
    "NoiseKey",
    "Table",
    "Universe",
    "__version__",
    "areas",
    "errors",
    "exact",
    "identity",
    "lattice",
    "linear",
    "margin",
    "subset",
    "total",
]

_HOME = {
    "DiscreteGaussian": "holdfast.exact",
    "DiscreteLaplace": "holdfast.exact",
    "Hierarchy": "holdfast.tables",
    "Lattice": "holdfast.lattice",
    "NoiseKey": "holdfast.randomness",
    "Table": "holdfast.tables",
    "Universe": "holdfast.tables",
    "areas": "holdfast.invariants",
    "errors": "holdfast.errors",
    "exact": "holdfast.exact",
    "identity": "holdfast.invariants",
    "lattice": "holdfast.lattice",
    "linear": "holdfast.invariants",
    "margin": "holdfast.invariants",
    "subset": "holdfast.invariants",
    "total": "holdfast.invariants",
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
