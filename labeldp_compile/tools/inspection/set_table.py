"""Which labels are in which set, as a table that can be joined with private labels."""

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.forms import columns_of, sets_of

from labeldp_compile.errors import InputError
from labeldp_compile.tabular.formats import format_of

COLUMNS = ("set", "label")
ENDINGS = (".parquet", ".csv", ".tsv")


def require_sets(artifact: Artifact, path: Path) -> None:
    """Raise InputError unless the private labels are sets, possibly of one label each."""
    if artifact.certificate.sets is None:
        raise InputError(f"{path}: its private labels are not sets of labels")


def write_sets(decoded: Table, path: Path, file: BinaryIO) -> int:
    """Write a row for each label in each set, in the format of ``path``; returns their number.

    The columns are ``set`` and ``label``, or ``set`` and the columns of a label with several.
    """
    sets, named = sets_of(decoded.randomizer), format_of(path)
    assert named is not None
    domain = decoded.domain
    pairs: list[tuple[Any, int]] = [(domain.listed[y], y) for y in range(domain.size)]
    if sets is not None:  # otherwise each set is one label
        pairs = [(o, y) for o in range(len(sets.blocks)) for y in sets.members(o)]
    places = domain.places_of(np.array([y for _, y in pairs], dtype=np.int64))
    names = decoded.certificate.label_columns if len(places) > 1 else [COLUMNS[1]]
    labels = [
        pa.array(list(part.listed)).take(pa.array(at))
        for part, at in zip(columns_of(domain), places, strict=True)
    ]
    table = pa.table([pa.array([name for name, _ in pairs]), *labels], [COLUMNS[0], *names])
    if named.delimiter is None:
        pq.write_table(table, file)
    else:
        pc.write_csv(table, file, pc.WriteOptions(delimiter=named.delimiter))
    return len(pairs)
