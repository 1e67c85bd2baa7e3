"""Which labels are in which set, as a table to join private labels with."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from labeldp_verify.forms import sets_of
from labeldp_verify.verified import Decoded

from labeldp_compile.errors import InputError
from labeldp_compile.tabular.formats import format_of
from labeldp_compile.tools.inspection.facts import label_at

COLUMNS = ("set", "label")


def require_sets(decoded: Decoded, artifact: Path) -> None:
    """Raise InputError unless the private labels are numbers of sets."""
    if sets_of(decoded.randomizer) is None:
        raise InputError(f"{artifact}: its private labels are no sets of labels")


def require_table_name(path: Path) -> None:
    """Raise InputError unless the name says which kind of table it is."""
    found = format_of(path)
    if found is None or found.gzipped:
        raise InputError(f"{path}: expected a name that ends in .parquet, .csv or .tsv")


def write_sets(decoded: Decoded, path: Path, file: BinaryIO) -> int:
    """Write a row for each label in each set: the columns ``set`` and ``label``; their number.

    ``path`` says in which format.
    """
    sets, named = sets_of(decoded.randomizer), format_of(path)
    assert sets is not None and named is not None
    members = [sets.members(o) for o in range(len(sets.blocks))]
    labels = [label_at(decoded.domain, y) for y in range(decoded.domain.size)]
    numbers = [o for o, inside in enumerate(members) for _ in inside]
    names = [labels[y] for inside in members for y in inside]
    table = pa.table({COLUMNS[0]: pa.array(numbers, pa.int64()), COLUMNS[1]: pa.array(names)})
    if named.delimiter is None:
        pq.write_table(table, file)
    else:
        pc.write_csv(table, file, pc.WriteOptions(delimiter=named.delimiter))
    return len(numbers)
