"""What must hold exactly: named integer rows over the cells of a table."""

from holdfast.invariants.constraints import areas, identity, linear, margin, subset, total
from holdfast.invariants.inequalities import at_least, at_most
from holdfast.invariants.rows import Kept, compile_rows

__all__ = ["Kept", "areas", "at_least", "at_most", "compile_rows", "identity", "linear", "margin", "subset", "total"]
