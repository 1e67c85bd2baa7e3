"""Polars: randomize a column of a DataFrame or LazyFrame, each row once.

Not as an expression: ``pl.col(…).map_batches(randomizer)`` is computed once for each mention by the
streaming engine, and once for a whole column if Polars sees that the column is constant (or if it
was declared elementwise and the column is a literal), so that all rows share one word.
docs/engines.md has the list.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from labeldp_runtime.errors import IdError, LabelError, MissingExtraError, ReplayWarning
from labeldp_runtime.frames import (
    LabelNames,
    PrivateNames,
    label_sources,
    layout_of,
    private_columns,
    private_names,
)
from labeldp_runtime.groups import group_sources
from labeldp_runtime.keyed import check_version
from labeldp_runtime.randomizer import Randomizer

try:
    import polars as pl
except ImportError as error:
    raise MissingExtraError("labeldp_runtime.polars needs Polars: pip install polars") from error

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
    stays lazy: within one query every row is drawn once, whatever is filtered, selected or used
    twice later. With a key it is computed in one piece, since repeated ids are looked for in all
    rows; without one it streams, and a ReplayWarning says that each ``collect`` draws anew and
    spends ε again.

    Args:
        frame: ``pl.DataFrame`` or ``pl.LazyFrame``.
        column: the label column: numbers or text, as the artifact's domain needs. Of an artifact
            whose label has several: its ``label_columns``, or which column each of them is, where
            it has another name: ``{"value": "spent", "converted": "converted"}``. Each private
            column takes the place of its label; the number of a set of combinations takes the place
            of them all, as ``private_label``.
        randomizer: the compiled randomizer, with or without a key.
        ids: with a key, the column that names each label.
        version: of the labels; labels that changed need a new one, and pay ε again.
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
    version = check_version(version)
    sources = label_sources(randomizer, column)
    names = private_names(randomizer, sources, add_as)
    _check_columns(schema, sources, names, randomizer, ids, version, added=add_as is not None)
    labels = list(sources.values()) + randomizer.label_columns
    groups = group_sources(randomizer.group_columns, group_columns, schema, labels)
    places = [(name, list(schema).index(source)) for name, source in sources.items()]
    layout = layout_of(list(schema), places, names, added=add_as is not None)

    def with_noise(part: Any) -> Any:
        given: dict[str, Any] = {}
        if groups:
            given["columns"] = {group: part.get_column(of) for group, of in groups.items()}
        if ids is not None:
            given |= {"ids": part.get_column(ids), "version": version}
        private = private_columns(randomizer(layout.given(part.to_series), **given))
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
            "of every label again: collect or sink once, or give a randomizer with a key, and ids=",
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


def _check_columns(
    schema: dict[str, Any],
    sources: Mapping[str, str],
    private: Sequence[str],
    randomizer: Randomizer,
    ids: str | None,
    version: int,
    *,
    added: bool,
) -> None:
    labels = sources.values()
    for column in labels:
        if column not in schema:
            raise LabelError(f"the frame has no column {column!r}")
    for name in private:
        if name in schema and (added or name not in labels):
            raise LabelError(f"the frame has a column {name!r} already")
    if not randomizer.is_keyed:
        if ids is not None or version != 0:
            raise IdError("ids and versions need a key: Randomizer.load(…, key=…, context=…)")
        return
    if ids is None:
        raise IdError("this randomizer has a key: say ids=, the column that names each label")
    if ids not in schema:
        raise IdError(f"the frame has no column {ids!r}")
    if ids in labels:
        raise IdError(f"{ids!r} cannot be both the label and its id")
