"""What must hold exactly: named integer rows over the cells of a table."""

from holdfast.invariants.rows import Kept, compile_rows
from holdfast.invariants.statements import areas, identity, linear, margin, subset, total

__all__ = ["Kept", "areas", "compile_rows", "identity", "linear", "margin", "subset", "total"]
