"""The table that randomizes each row's label, where an artifact has one for each public group.

Groups are features: the columns that the certificate names, read as ``labeldp randomize`` reads
them. Unlisted values and nulls have the table of all other rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64
from labeldp_verify.forms import Groups
from numpy.typing import NDArray

from labeldp_compile.prior.histogram import indexes_of_columns
from labeldp_compile.tabular.group_columns import group_array
from labeldp_trainer.data import DataPart
from labeldp_trainer.data.labels import Cells


def group_columns(groups: Groups, part: DataPart) -> dict[str, NDArray[Any]]:
    """The columns [n] of the groups by their names, as the artifact takes them. Raises DataError.

    Their types are as an artifact needs them, or a CSV file's, in which nothing has a type.
    """
    found = {}
    for column in groups.columns:
        given, cells = part.columns[column.name], False
        if isinstance(given, Cells):
            given, cells = given.values, True
        found[column.name] = group_array(Path(part.source), column, given, cells=cells)
    return found


def table_of_row(groups: Groups, part: DataPart) -> Int64[np.ndarray, " n"]:
    """[n] the number of each row's table. Raises DataError."""
    columns = group_columns(groups, part)
    return indexes_of_columns(groups)([columns[column.name] for column in groups.columns])
