"""Numbers the users of rows from a column of names, in any format.

Who a user is says ``labeldp_compile.tabular.person_names``, for every method that protects users.
"""

from typing import Any

import numpy as np
from jaxtyping import Int64

from labeldp_compile.toolkit import person_codes, person_names
from labeldp_trainer.data.labels import Cells


def owner_codes(column: Any, source: str, name: str) -> Int64[np.ndarray, " n"]:
    """The number 0 … u − 1 of the user of each row, [n], as ``person_codes`` gives them.

    ``column`` is a column [n] of ``DataPart.columns``; ``source`` and ``name`` are for messages.
    Raises DataError if a row has no user, or the type of the column cannot name users.
    """
    values = column.values if isinstance(column, Cells) else column
    return person_codes(person_names(values, source, name))
