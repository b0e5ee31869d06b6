"""Tables that are read on demand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl
from polars.lazyframe.group_by import LazyGroupBy

if TYPE_CHECKING:
    import pandas as pd  # pyright: ignore[reportMissingTypeStubs]


class Frame(pl.LazyFrame):
    """A table that is read on demand: a polars `LazyFrame` with a conversion to pandas."""

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas data frame."""
        return self.collect().to_pandas()

    # Groups make plain lazy frames, while all other methods keep the class.

    def group_by(self, *by: Any, **named: Any) -> Groups:
        """Groups of rows, as in polars."""
        return Groups.of(super().group_by(*by, **named))

    def group_by_dynamic(self, *given: Any, **named: Any) -> Groups:
        """Groups of rows by time, as in polars."""
        return Groups.of(super().group_by_dynamic(*given, **named))

    def rolling(self, *given: Any, **named: Any) -> Groups:
        """Groups of rows in moving windows, as in polars."""
        return Groups.of(super().rolling(*given, **named))


class Groups(LazyGroupBy):
    """Groups of the rows of a `Frame`, which become a `Frame` again."""

    @staticmethod
    def of(groups: LazyGroupBy) -> Groups:
        """`groups` with this class."""
        groups.__class__ = Groups
        return cast("Groups", groups)

    def agg(self, *given: Any, **named: Any) -> Frame:
        """A row per group, as in polars."""
        return as_frame(super().agg(*given, **named))

    def head(self, n: int = 5) -> Frame:
        """The first rows of each group, as in polars."""
        return as_frame(super().head(n))

    def tail(self, n: int = 5) -> Frame:
        """The last rows of each group, as in polars."""
        return as_frame(super().tail(n))


def as_frame(frame: pl.LazyFrame) -> Frame:
    """`frame` with the conversion to pandas."""
    frame.__class__ = Frame
    return cast("Frame", frame)


def scan(path: Path) -> Frame:
    """A Parquet file as a table that is read on demand."""
    return as_frame(pl.scan_parquet(path))
