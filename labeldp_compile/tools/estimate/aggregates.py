"""From artifacts and tables of private labels to the estimates of each group."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_verify.artifact import Artifact
from labeldp_verify.claims import nulls_counted_as
from labeldp_verify.printable import clipped
from numpy.typing import NDArray

from labeldp_compile.errors import InputError
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.tabular.columns import value_type
from labeldp_compile.tabular.header import rows_in
from labeldp_compile.tabular.reader import TableReader
from labeldp_compile.text_form import PLAIN, TextForm
from labeldp_compile.tools.estimate.document import estimates_json
from labeldp_compile.tools.estimate.estimate import Estimation, GroupEstimates
from labeldp_compile.tools.estimate.intervals import ALONE, Confidence, Target
from labeldp_compile.tools.estimate.inversion import NotEstimableError
from labeldp_compile.tools.estimate.private_counts import GroupCounts, OutputCounts, count_outputs
from labeldp_compile.tools.private_table import open_all, require_public

GROUP = "group_name"  # the column of the groups of artifacts
_NAMED, _COLUMNS = 3, 32  # private columns in a warning, and characters of their names
Progress = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]


@dataclass(frozen=True)
class Aggregates:
    """Estimates from private labels.

    Attributes:
        columns: the columns of the private labels; several if a label has several.
        target: what the intervals are about.
        groups: all rows first, then each group by its name.
        estimation: the estimators of the artifacts, and what they do not support.
        warnings: why these may not be private labels of the artifacts, in words.
        by: the columns of the groups with their types, if all tables have the same; ``GROUP`` for
            those of the artifacts.
        confidence: how often an interval may miss.
    """

    columns: list[str]
    target: Target
    groups: list[GroupEstimates]
    estimation: Estimation
    warnings: list[str] = field(default_factory=list)
    by: dict[str, pa.DataType | None] = field(default_factory=dict)
    confidence: Confidence = ALONE

    @property
    def refused(self) -> dict[str, str]:
        """What the artifacts do not support: mean, histogram, quantiles → the reason."""
        return self.estimation.refused

    def to_json(self) -> dict[str, Any]:
        """As of ``estimates_json``, and what nulls of each artifact were counted as."""
        found = estimates_json(
            self.estimation, self.groups, list(self.by), self.target, self.confidence
        )
        return {
            **found,
            "nulls": [nulls_counted_as(one.label) for one in self.estimation.artifacts],
        }


def _silent(_: str, rows: int | None) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(QUIET.rows)


def estimate_tables(
    decoded: Sequence[Artifact],
    pairs: Sequence[tuple[Path, Path]],
    column: str | Sequence[str] | None = None,
    *,
    by: Sequence[str] = (),
    group_columns: Mapping[str, str] | None = None,
    target: Target = "rows",
    simultaneous: bool = False,
    form: TextForm = PLAIN,
    progress: Progress = _silent,
) -> Aggregates:
    """The estimates of private labels, for all rows and for the groups of ``by``.

    ``pairs`` are the paths of ``decoded`` artifacts and of their tables, whose rows are disjoint; a
    table that is given for several artifacts is divided by what its parts note. ``column`` is the
    private column, or several in the order of the label, if they do not have the names of the spec.
    ``group_columns`` maps the artifact's names of group columns to those of the table, if they
    differ (a single one has the name ""). With ``simultaneous``, all intervals hold at once.
    ``form`` is the form of a text table. ``progress`` opens a display with a name, and with the
    number of rows if it is known.

    Raises InputError (DataError) if the input is wrong or supports no estimate, if a table notes
    that another artifact made its labels, or if the artifacts have different labels.
    """
    if repeated := [name for name in by if by.count(name) > 1]:
        raise InputError(f"{repeated[0]!r} is named twice to group by: name it once")
    readers = open_all(decoded, pairs, column, group_columns, form)
    for name in by:
        for reader, one, (artifact, _) in zip(readers, decoded, pairs, strict=True):
            require_public(reader, one, artifact, name)
    with progress("counting", rows_in([reader.rows for reader in readers])) as count:
        sources = list(zip(readers, decoded, strict=True))
        counts = count_outputs(sources, by, Observer(rows=count))
    try:
        estimation = Estimation.of(*decoded, tables=counts[0].by_table)
    except NotEstimableError as error:
        names = " and ".join(dict.fromkeys(str(artifact) for artifact, _ in pairs))
        raise InputError(f"{names}: its private labels support no estimate: {error}") from None
    confidence = Confidence(estimation.intervals(counts)) if simultaneous else ALONE
    # Exact intervals for thousands of small groups take minutes.
    every = sum(group.rows for group in counts)
    with (_silent if len(counts) == 1 else progress)("estimating", every) as count:
        found = estimation(counts, target, Observer(rows=count), confidence)
    columns = list(dict.fromkeys(name for reader in readers for name in reader.label_columns))
    unlikely = estimation.hardly_private(counts[0])
    warnings = [
        line
        for place, reader in enumerate(readers)
        for line in private_warnings(reader, place in unlikely)
    ]
    types: dict[str, pa.DataType | None] = {name: _type_of(name, readers) for name in by}
    if not by and len(counts) > 1:
        types = {GROUP: pa.string()}
    return Aggregates(columns, target, found, estimation, warnings, types, confidence)


def _type_of(name: str, readers: Sequence[TableReader]) -> pa.DataType | None:
    """The type of a column, if all tables have the same."""
    files = [file for reader in readers for file in reader.files]
    first, *others = (value_type(file.schema.field(name).type) for file in files)
    return first if all(other == first for other in others) else None


def hardly_private(decoded: Artifact, codes: Mapping[int, NDArray[np.int64]]) -> bool:
    """Whether private labels make estimates that are impossible, by more than chance.

    ``codes`` are the numbers of the outputs of the rows of each table. False if the artifact
    supports no estimate.
    """
    counted = {
        number: OutputCounts(*np.unique(own, return_counts=True)) for number, own in codes.items()
    }
    try:
        estimation = Estimation.of(decoded, tables=counted)
    except NotEstimableError:
        return False
    return bool(estimation.hardly_private(GroupCounts((), counted)))


def private_warnings(reader: TableReader, hardly_private: bool) -> list[str]:
    """Why the label columns are probably no private labels, in at most one line.

    ``hardly_private`` is as of ``Estimation.hardly_private``, of this table.
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
