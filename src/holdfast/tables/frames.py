"""Tables as the frames that people work with: pyarrow, pandas, polars. The last two are imported when asked for, and needed by nothing
else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.errors import InvalidParameter


class Frames:
    """What has a `frame`, a pyarrow.Table, gives it in these forms too. Whole numbers stay whole, missing ones missing."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def frame(self) -> Any: ...

    def to_arrow(self) -> Any:
        """A pyarrow.Table: the `frame`."""
        return self.frame

    def to_pandas(self) -> Any:
        """A pandas.DataFrame. A column of whole numbers with missing ones has the type Int64: as doubles, large counts would be rounded."""
        import pyarrow as pa

        pandas = _package("pandas", "to_pandas")
        frame = self.frame
        gaps = {field.type for field, column in zip(frame.schema, frame.columns, strict=True) if column.null_count}
        return frame.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype()}.get if pa.int64() in gaps else None)

    def to_polars(self) -> Any:
        """A polars.DataFrame."""
        return _package("polars", "to_polars").from_arrow(self.frame)


def _package(name: str, method: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InvalidParameter(f"{method} needs the package {name}, which is not installed. Install it, or use to_arrow().") from None
