"""Which labels are in which set, as a table to join private labels with."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.forms import Domain, IntegerDomain, JointDomain, sets_of

from labeldp_compile.errors import InputError
from labeldp_compile.tabular.formats import format_of

COLUMNS = ("set", "label")
ENDINGS = (".parquet", ".csv", ".tsv")


def require_sets(artifact: Artifact, path: Path) -> None:
    """Raise InputError unless the private labels are sets, if only of one label each."""
    if artifact.certificate.sets is None:
        raise InputError(f"{path}: its private labels are no sets of labels")


def write_sets(decoded: Table, path: Path, file: BinaryIO) -> int:
    """Write a row for each label in each set; returns their number.

    The columns are ``set`` and ``label``; of a joint label ``set`` and those of the label. ``path``
    says in which format.
    """
    sets, named = sets_of(decoded.randomizer), format_of(path)
    assert named is not None
    domain = decoded.domain
    pairs: list[tuple[Any, int]] = [(domain.listed[y], y) for y in range(domain.size)]
    if sets is not None:  # otherwise each label is a set of its own
        pairs = [(o, y) for o in range(len(sets.blocks)) for y in sets.members(o)]
    rows = [y for _, y in pairs]
    table = pa.table(
        [pa.array([name for name, _ in pairs]), *_labels(domain, rows)],
        [COLUMNS[0], *_names(decoded)],
    )
    if named.delimiter is None:
        pq.write_table(table, file)
    else:
        pc.write_csv(table, file, pc.WriteOptions(delimiter=named.delimiter))
    return len(pairs)


def _names(decoded: Table) -> list[str]:
    joint = decoded.certificate.joint
    return [COLUMNS[1]] if joint is None else decoded.certificate.label_columns


def _labels(domain: Domain, rows: list[int]) -> list[pa.Array]:
    """The labels of some rows; of a joint label by its columns."""
    if not isinstance(domain, JointDomain):
        return [pa.array([domain.listed[y] for y in rows])]
    places = domain.places_of(np.array(rows, dtype=np.int64))
    found = []
    for values, part, at in zip(domain.column_values, domain.parts, places, strict=True):
        whole = isinstance(part, IntegerDomain)
        listed = [int(value) for value in values] if whole else values
        found.append(pa.array(listed).take(pa.array(at)))
    return found
