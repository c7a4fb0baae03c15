"""The public facts of a release: all that planning, laws, samplers and guarantees may see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.errors import InvalidParameter, InvalidStatement
from holdfast.invariants.rows import Kept
from holdfast.invariants.statements import Statement
from holdfast.lattices import Lattice
from holdfast.lattices.lattice import lattice
from holdfast.tables import Table, Universe


@dataclass(frozen=True, eq=False)
class PublicFrame:
    """Universe, kept statements and what is declared about the table. It holds no count and no way to one."""

    universe: Universe
    statements: tuple[Statement, ...]
    kept: Kept
    lattice: Lattice
    unit: str
    max_records: int | None
    count_name: str
    name: str | None

    @classmethod
    def of(cls, table: Table | Universe, keep: Iterable[Statement]) -> PublicFrame:
        """From a table, of which only the declarations are read, or from a universe alone."""
        if not isinstance(table, Table | Universe):
            raise InvalidParameter(f"A plan needs a Table or a Universe. Got {type(table).__name__}.")
        universe = table if isinstance(table, Universe) else table.universe
        if isinstance(keep, str | Statement) or not isinstance(keep, Iterable):
            raise InvalidStatement(f"Kept totals come as a list, such as [margin('state')]. Got {type(keep).__name__}.")
        statements = tuple(keep)
        moves = lattice(universe, statements)
        assert moves.kept is not None
        if isinstance(table, Universe):
            return cls(universe, statements, moves.kept, moves, "person", 1, "count", None)
        return cls(universe, statements, moves.kept, moves, table.unit, table.max_records, table.count_name, table.name)
