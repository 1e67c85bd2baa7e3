"""Series of Polars."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from labeldp_runtime.coded import Texts
from labeldp_runtime.columns import plain
from labeldp_runtime.errors import IdError
from labeldp_runtime.ids import Ids, null_id
from labeldp_runtime.labels import Cells, Declared, unknown_type

_TEXT = (pl.String, pl.Categorical, pl.Enum)


def is_column(values: Any) -> bool:
    """Whether this is a Series."""
    return isinstance(values, pl.Series)


_NUMPY_INTEGERS = (
    *(pl.Int8, pl.Int16, pl.Int32, pl.Int64),
    *(pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
)


def cells(values: Any) -> list[Cells]:
    """A Series taken apart."""
    kind = values.dtype
    if isinstance(kind, _TEXT):
        return [_of_text(values)]
    declares: Declared = "other"
    if kind.is_numeric() or kind == pl.Boolean:
        declares = "integers" if kind.is_integer() else "numbers"
    if kind in _NUMPY_INTEGERS or kind.is_float() or kind == pl.Boolean:
        filled = values.fill_null(False if kind == pl.Boolean else 0).to_numpy()
        return [Cells(declares, kind, filled, values.is_null().to_numpy())]
    if kind in (pl.Null, pl.Object):
        declares = "objects"
    elif declares == "other" and not (kind.is_temporal() or kind.is_nested() or kind == pl.Binary):
        raise unknown_type(kind)
    # Decimals and integers of 128 bits, too, which no type of numpy holds.
    return [Cells(declares, kind, values.to_list())]


def _of_text(values: Any) -> Cells:
    """A dictionary of the texts that occur, whose numbers as categories may be any."""
    kind = values.dtype
    if kind == pl.String:
        values = values.cast(pl.Enum(values.drop_nulls().unique()))
    numbers, known = values.to_physical(), values.drop_nulls().unique()
    beyond = int(numbers.max() or 0) + 1  # stands for nulls
    codes = np.full(beyond + 1, -1, dtype=np.int64)
    codes[known.to_physical().to_numpy()] = np.arange(len(known))
    entries = Cells("text", kind, known.cast(pl.String).to_list())
    in_order = numbers.cast(pl.UInt32).fill_null(beyond).to_numpy()
    return Cells.coded(codes[in_order], entries)


def like(values: Any, private: NDArray[Any] | Texts) -> Any:
    """Private labels [n] as a Series with the name of ``values``."""
    if isinstance(private, Texts):
        entries = pl.Series(values.name, private.entries.tolist(), dtype=pl.String)
        return entries.gather(private.codes)
    return pl.Series(values.name, private)


def ids(values: Any) -> Ids:
    """Ids [n]."""
    if values.null_count():
        raise null_id()
    kind = values.dtype
    if kind in _NUMPY_INTEGERS:
        return plain.ids(values.to_numpy())
    if isinstance(kind, _TEXT):
        texts = values.cast(pl.String)
        joined = texts.str.join("").item() if len(texts) else ""
        return plain.text_ids(joined, texts.str.len_chars().cast(pl.Int64).to_numpy())
    if kind in (pl.Binary, pl.Object):
        return plain.ids(values.to_list())
    if kind == pl.Null and not len(values):
        return plain.ids([])
    raise IdError(f"{plain.WANTED}, not {kind}")


def arrays(values: Any) -> list[Any]:
    """The arrays of numpy or Arrow that hold a column."""
    if values.dtype == pl.Object:
        return []
    try:
        # At the newest level types are those of Polars, and nothing is copied.
        level = pl.CompatLevel.newest()
        if isinstance(values.dtype, pl.Categorical | pl.Enum):
            values = values.to_physical()
        return [chunk.to_arrow(compat_level=level) for chunk in values.get_chunks()]
    except Exception:  # a type that this pyarrow does not have, as of 128 bits
        return []
