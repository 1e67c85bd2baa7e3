"""One array from many pieces, the same for every way of cutting them, with its dictionary.

A reader gives every piece its own dictionary, with the entries of the input's row group in their
order. A written dictionary has the entries that occur, sorted. Only a dictionary that is declared
as ordered keeps its entries and their order, which are part of its type.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from labeldp_runtime.columns.arrow import is_text


def written_type(kind: pa.DataType) -> pa.DataType:
    """The type in which a column is written: indices of 32 bits, so that the entries of any row
    group fit; no dictionaries inside other types, nor of what Parquet reads back without one."""
    if pa.types.is_dictionary(kind):
        value = kind.value_type
        kept = is_text(value) or pa.types.is_binary(value) or pa.types.is_large_binary(value)
        return pa.dictionary(pa.int32(), value, kind.ordered) if kept else value
    plain = _plain(kind)
    return kind if plain == kind else plain


def whole_column(kind: pa.DataType, pieces: Sequence[pa.Array]) -> pa.Array:
    """The pieces [n] as one array of the type that ``written_type`` gave."""
    if not pieces:
        return pa.nulls(0, kind)
    if not pa.types.is_dictionary(kind):
        return pa.concat_arrays([p if p.type == kind else p.cast(kind) for p in pieces])
    whole = pa.concat_arrays([_wide(piece, ordered=kind.ordered) for piece in pieces])
    return whole if kind.ordered else _sorted(whole.cast(kind.value_type))


def _wide(column: pa.DictionaryArray, *, ordered: bool) -> pa.DictionaryArray:
    indices = column.indices.cast(pa.int32())
    return pa.DictionaryArray.from_arrays(indices, column.dictionary, ordered=ordered)


def _sorted(values: pa.Array) -> pa.DictionaryArray:
    """Values [n] with a dictionary of those that occur, by their bytes."""
    import pyarrow.compute as pc  # noqa: PLC0415  # which looks up all functions

    encoded = values.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    place = np.empty(len(order), dtype=np.int32)
    place[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    indices = pa.array(place).take(encoded.indices)
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary.take(order))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type with the values of dictionaries in their place."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([_field(child) for child in kind])
    if pa.types.is_map(kind):
        return pa.map_(_field(kind.key_field), _field(kind.item_field), kind.keys_sorted)
    if pa.types.is_large_list(kind):
        return pa.large_list(_field(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_field(kind.value_field), kind.list_size)
    return pa.list_(_field(kind.value_field)) if pa.types.is_list(kind) else kind


def _field(field: pa.Field) -> pa.Field:
    return field.with_type(_plain(field.type))
