"""From an artifact and a table of private labels to the estimates of each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labeldp_verify import DEFAULT_BUDGET, Budget
from labeldp_verify.opening import open_artifact
from labeldp_verify.printable import clipped

from labeldp_compile.errors import InputError
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.text_form import PLAIN, TextForm
from labeldp_compile.tools.estimate.document import estimates_json
from labeldp_compile.tools.estimate.estimate import Estimation, GroupEstimates
from labeldp_compile.tools.estimate.intervals import Target
from labeldp_compile.tools.estimate.inversion import NotEstimableError
from labeldp_compile.tools.estimate.private_counts import count_outputs
from labeldp_compile.tools.private_table import open_private, require_public

_NAMED, _COLUMNS = 3, 32  # private columns in a warning, and characters of their names
Progress = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]


@dataclass(frozen=True)
class Aggregates:
    """Estimates from one column of private labels.

    Attributes:
        columns: the columns of the private labels; several if a label has several.
        target: what the intervals are about.
        groups: all rows first, then each group by its name.
        estimation: the estimators of the artifact, and what it does not support.
        warnings: why these may not be private labels of the artifact, in words.
    """

    columns: list[str]
    target: Target
    groups: list[GroupEstimates]
    estimation: Estimation
    warnings: list[str] = field(default_factory=list)

    @property
    def refused(self) -> dict[str, str]:
        """What the artifact does not support: mean, histogram, quantiles → the reason."""
        return self.estimation.refused

    def to_json(self) -> dict[str, Any]:
        """``{format_version, artifact, target, confidence, classes, refused, groups}``."""
        return estimates_json(self.estimation, self.groups, self.target)


def _silent(_: str, rows: int | None) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(QUIET.rows)


def estimate_table(
    artifact: Path,
    table: Path,
    column: str | Sequence[str] | None = None,
    *,
    by: str | None = None,
    group_columns: Mapping[str, str] | None = None,
    target: Target = "rows",
    budget: Budget = DEFAULT_BUDGET,
    form: TextForm = PLAIN,
    progress: Progress = _silent,
) -> Aggregates:
    """The estimates of a table's private column, for all rows and for the groups of ``by``.

    ``column`` is the private column, or several in the order of the label, if they do not have the
    names of the spec. ``group_columns`` maps the artifact's names of group columns to those of the
    table, if they differ (a single one has the name ""). ``form`` is the form of a text table.
    ``progress`` opens a display with a name, and with the number of rows if it is known.

    Raises VerificationError if the artifact does not verify. Raises InputError (DataError,
    TooLargeError) if the input is wrong or supports no estimate, or if the table notes that another
    artifact made its labels.
    """
    decoded = open_artifact(artifact, budget)
    reader = open_private(decoded, artifact, table, column, group_columns, form)
    columns = list(reader.label_columns)
    if by is not None:
        require_public(reader, decoded, artifact, by)
    with progress("counting", reader.rows) as count:
        counts = count_outputs(reader, decoded, by, Observer(rows=count))
    try:
        estimation = Estimation.of(decoded, counts[0].by_table)
    except NotEstimableError as error:
        raise InputError(f"{artifact}: its private labels support no estimate: {error}") from None
    # Exact intervals for thousands of small groups take minutes.
    every = sum(group.rows for group in counts)
    with (_silent if len(counts) == 1 else progress)("estimating", every) as count:
        found = estimation(counts, target, Observer(rows=count))
    warnings = private_warnings(reader, estimation.are_hardly_private(counts[0]))
    return Aggregates(columns, target, found, estimation, warnings)


def private_warnings(reader: TableReader, hardly_private: bool) -> list[str]:
    """Why the label columns are probably no private labels, in at most one line.

    ``hardly_private`` is as of ``Estimation.are_hardly_private``.
    """
    columns, found = reader.label_columns, []
    named = ", ".join(map(repr, columns))
    if hardly_private:
        found.append(
            "these can hardly be private labels of this artifact: their estimates are impossible, "
            f"far beyond chance (is {named} the private column, with all rows?)"
        )
    noted = reader.noted_columns()
    if noted and not set(columns) <= set(noted):
        names = ", ".join(clipped(repr(name), _COLUMNS) for name in noted[:_NAMED])
        more = ", …" if len(noted) > _NAMED else ""
        found.append(f"the file marks {names}{more} as private, but not {named}")
    return [f"{reader.path}: {'; '.join(found)}"] if found else []
