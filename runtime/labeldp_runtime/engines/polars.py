"""Polars: randomize a column of a DataFrame or LazyFrame, each row once.

Not as an expression: ``pl.col(…).map_batches(randomizer)`` is computed once for each mention by the
streaming engine. It is computed once for a whole column if Polars sees that the column is constant,
or if it was declared elementwise and the column is a literal: all rows then share random bits.
benchmarks/notes/engines.md has the list.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from labeldp_runtime.engines.layout import LabelNames, Names, PrivateNames
from labeldp_runtime.errors import LabelError, MissingExtraError, ReplayWarning
from labeldp_runtime.randomizer import Randomizer

try:
    import polars as pl
except ImportError as error:
    raise MissingExtraError(
        "labeldp_runtime.engines.polars needs Polars: pip install polars"
    ) from error

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


def randomize(
    frame: Frame,
    column: LabelNames,
    randomizer: Randomizer,
    *,
    ids: str | None = None,
    version: int = 0,
    group_columns: Mapping[str, str] | None = None,
    add_as: PrivateNames | None = None,
) -> Frame:
    """The frame with private labels in ``column``, or added as ``add_as``.

    The private column has the artifact's type (Float64, Int64 or String) and no nulls. A LazyFrame
    stays lazy: within one query every row is drawn once, even if later steps filter, select or use
    it twice. With a key it is computed in one piece, since repeated ids are looked for in all
    rows; without one it streams, and a ReplayWarning says that each ``collect`` draws anew and
    spends ε again.

    Args:
        frame: ``pl.DataFrame`` or ``pl.LazyFrame``.
        column: the label column: numbers or text, as the artifact's domain needs. For a label
            of several columns: its ``label_columns``, or which column each of them is, where
            it has another name: ``{"value": "spent", "converted": "converted"}``. Each private
            column takes the place of its label; the number of a set of combinations takes the place
            of them all, as ``private_label``.
        randomizer: the compiled randomizer, with or without a key.
        ids: with a key, the column that names each label.
        version: of the labels; labels that changed need a new one, and spend ε again.
        group_columns: of an artifact with tables by group, which column gives each of the
            randomizer's ``group_columns``, where it has another name: ``{"age": "age_in_2024"}``.
        add_as: name of a column to add, which KEEPS the true labels beside it; of several columns
            the name of each: ``{"value": "private_value", "converted": "private_converted"}``.

    Raises LabelError, GroupError, IdError or DuplicateIdError: for a LazyFrame those about ids when
    it is collected, all others at once.
    """
    if not isinstance(frame, pl.DataFrame | pl.LazyFrame):
        raise TypeError(f"expected a DataFrame or LazyFrame, got {type(frame).__name__}")
    lazy = isinstance(frame, pl.LazyFrame)
    schema = dict(frame.collect_schema())
    names = Names(column, ids, version, group_columns, add_as)

    def find(name: str, error: type[ValueError]) -> int:
        if name not in schema:
            raise error(f"the frame has no column {name!r}")
        return list(schema).index(name)

    layout = names.layout(randomizer, list(schema), find, _refuse_taken)

    def with_noise(part: Any) -> Any:
        private = layout.private(randomizer, part.to_series)
        return part.select(
            private[index].alias(name) if is_private else part.to_series(index)
            for name, is_private, index in layout.columns
        )

    if not lazy:
        return with_noise(frame)
    # Of a frame of no rows, which raises for other types.
    new = with_noise(pl.DataFrame(schema=schema)).schema
    if ids is None:
        warnings.warn(
            "without a key Polars draws new private labels at each collect, and each time spends ε "
            "of every label again: collect or sink once, or use a randomizer with a key, and ids=",
            ReplayWarning,
            stacklevel=2,
        )
    private = frame.map_batches(
        with_noise,
        schema=new,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
        streamable=ids is None,
    )
    # A query that uses the frame twice would draw twice; with one use this node costs nothing.
    return private.cache()


def _refuse_taken(others: Sequence[str], name: str) -> None:
    if name in others:
        raise LabelError(f"the frame has a column {name!r} already")
