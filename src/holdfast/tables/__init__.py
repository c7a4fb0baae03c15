"""What comes in: tables of counts, their universe, their codes and code trees.

columns, cells         codes and counts as checked integers; cells as rows of them
session, readers       files, frames and databases, read without showing what they hold
text_files, excel      separators and encodings of text; workbooks
databases, postgres    database URLs with a query; servers on which others define functions
hierarchy, universe    which codes and cells there are; public
labels, similar        what people call columns and codes; codes and names that are easily confused
counting               cells as rows list them; records counted
table                  the counts; confidential
measure, answers       what the numbers are: counts, or steps of the grid of real-valued answers
declarations           a table without its counts, for a plan
formats                files that tables are written to; texts that a spreadsheet would run
frames                 pyarrow, pandas and polars
machine                memory that this machine has
"""

from __future__ import annotations

from holdfast.tables.declarations import Declarations
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.table import Table
from holdfast.tables.universe import Universe

__all__ = ["Declarations", "Hierarchy", "Table", "Universe"]
