"""What comes in: tables of counts, their universe, their codes and code trees.

columns, cells         codes and counts as checked integers; cells as rows of them
session, readers       files, frames and databases, read without showing what they hold
databases, excel       their parts: queries; workbooks;
text_files             separators and encodings of text
hierarchy, universe    which codes and cells there are; public
counting, table        the counts; confidential
declarations           a table without its counts, for a plan
synth                  made-up populations for trials
"""

from __future__ import annotations

from holdfast.tables.declarations import Declarations
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.table import Table
from holdfast.tables.universe import Universe

__all__ = ["Declarations", "Hierarchy", "Table", "Universe"]
