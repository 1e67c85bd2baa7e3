"""A randomizer for columns as a table calls them."""

from __future__ import annotations

from typing import Any

from labeldp_runtime import Randomizer

from labeldp_compile.tabular.one_file import Randomize


def drawn_by(
    randomizer: Randomizer, labels: dict[str, str], groups: dict[str, str], version: int
) -> Randomize:
    """The function that ``rewrite_table`` takes.

    ``labels`` has the artifact's label columns by the table's names, ``groups`` the table's columns
    of groups by the artifact's names; ``version`` is that of the labels, with a key.
    """

    def randomize(given: Any, columns: Any = None, ids: Any = None) -> Any:
        if len(labels) > 1:
            given = {name: given[column] for column, name in labels.items()}
        if columns is not None:
            columns = {name: columns[column] for name, column in groups.items()}
        drawn: Any = randomizer(given, columns=columns, ids=ids, version=version)
        if not isinstance(drawn, dict):
            return drawn
        return {column: drawn[name] for column, name in labels.items()}

    return randomize
