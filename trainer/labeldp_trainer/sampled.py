"""Tables of many rows: a sample of them in memory, and sums over all rows, part by part.

Everything public is decided from the sample: the encoder, the representation or the bins, and the
weights of the release, or of its next part. The integer rows of a part of the table are computed
from them, and their sum times the labels is returned with the longest of these very rows: what
Theorem 13 needs. The same rows are in the sample wherever they are read.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from jaxtyping import Float32, Int64
from threadpoolctl import threadpool_limits

from labeldp_trainer.config import LoadedConfig, NoMethod, OneRelease, Privatized, StagedRelease
from labeldp_trainer.config.data import TableData
from labeldp_trainer.config.representation import Steps
from labeldp_trainer.data.encoders import TableEncoder
from labeldp_trainer.data.features import AllRows, DataPart, all_finite
from labeldp_trainer.data.table import TableRows
from labeldp_trainer.data.users import RowsByUser, UserBound
from labeldp_trainer.errors import DataError
from labeldp_trainer.interactions.columns import BinnedColumn
from labeldp_trainer.interactions.questions import KeepRows
from labeldp_trainer.methods.interactions import codes_of
from labeldp_trainer.one_release.rows import (
    REHEARSED,
    MomentLattice,
    PublicRows,
    RowOwners,
    RowSums,
    Targets,
    Users,
    Weights,
    added,
    user_counts,
)
from labeldp_trainer.staged_release.draw import (
    LabelColumn,
    LabelCounts,
    Labels,
    LabelSums,
    PublicTable,
)

if TYPE_CHECKING:
    from labeldp_trainer.linear.fit import LabelMoments, OfVectors, Streamed
    from labeldp_trainer.methods.method import Setting
    from labeldp_trainer.representations import Representation

T = TypeVar("T")
SAMPLED = 1 << 17
"""About the most rows of a table from which public things are decided."""
KINDS = ("splines", "random_fourier")
"""Representations of a row that depend on that row and on the sample alone."""
SumBatch = Callable[[DataPart, Any], RowSums]
"""Sums over some rows, of which the labels are a column, or None."""


@dataclass(frozen=True, eq=False)
class StreamedTable:
    """The rows of files, which are read again for every sum.

    Attributes:
        table: of the files, with the label column if there is one to read.
        label: the name of this column.
        users: what a release says of them; None if each label is on its own.
        sampled: [s] numbers of the rows of the sample; None if labels are not in memory.
    """

    table: TableRows | RowsByUser
    label: str
    users: Users | None
    sampled: Int64[np.ndarray, " s"] | None = None
    elsewhere: ClassVar[bool] = False

    @classmethod
    def of(cls, table: TableRows, loaded: LoadedConfig) -> Self:
        """With users, their rows are brought together. Raises DataError."""
        data, bound = loaded.config.data, UserBound.of(loaded)
        if bound is None:
            return cls(table, data.label, None)
        assert isinstance(data, TableData)
        rows = RowsByUser(table, data, bound)
        counted = added(RowSums.zeros(0, (1,)), starmap(user_counts, rows.users()))
        return cls(rows, data.label, Users.of(bound.column, bound.most, counted))

    @property
    def rows(self) -> int:
        """n."""
        return self.table.rows

    def sums(
        self,
        encoder: TableEncoder,
        sums: SumBatch,
        nothing: RowSums,
        steps: Steps,
        *,
        labelled: bool,
    ) -> RowSums:
        """Over all rows. Raises DataError."""

        def of(part: DataPart, rows: slice) -> RowSums:
            del rows
            return sums(part, part.columns[self.label] if labelled else None)

        return added(nothing, self.each(encoder, of, steps))

    def each(
        self, encoder: TableEncoder, of: Callable[[DataPart, slice], T], steps: Steps
    ) -> Iterator[T]:
        """What ``of`` finds of some rows after others, several of them in threads, in order.

        Raises DataError.
        """
        waiting, end = deque[tuple[Future[T], int]](), 0
        threads = min(os.cpu_count() or 1, _MOST_THREADS)

        def first() -> T:
            summed, done = waiting.popleft()
            found = summed.result()
            steps(_WORD, done, self.rows)
            return found

        with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
            for block in self.table.blocks(_AT_ONCE):
                start, end = end, end + block.rows
                waiting.append((pool.submit(of, encoder.part(block), slice(start, end)), end))
                if len(waiting) > threads:
                    yield first()
            while waiting:
                yield first()


_WORD, _LEAST_USERS = "rows summed", 30
_AT_ONCE, _MOST_THREADS = 1 << 16, 8  # rows of a thread: about 150 MB


def step_of(rows: int, users: Users | None = None) -> int:
    """One in how many rows, or users, is in the sample; of few users with many rows, more."""
    step = -(-rows // SAMPLED)
    return step if users is None else max(min(step, users.count // _LEAST_USERS), 1)


def is_summed(loaded: LoadedConfig) -> bool:
    """Whether a method asks all rows of a table for nothing but sums."""
    config = loaded.config
    if not isinstance(config.data, TableData):
        return False
    kind = None if config.representation is None else config.representation.kind
    linear = config.closed_form and config.interactions is None and config.user_column is None
    other = isinstance(config.method, Privatized | NoMethod) and linear
    return isinstance(config.method, StagedRelease) or (
        (isinstance(config.method, OneRelease) or other) and kind in KINDS
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledRows(PublicRows):
    """Many rows of one release; the vectors are those of the sample.

    Attributes:
        table: has all rows.
        encoder, representation: from columns to vectors.
        steps: called with the progress of sums.
    """

    table: AllRows
    encoder: TableEncoder
    representation: Representation
    steps: Steps

    def summed(self, weights: Weights, targets: Targets | None) -> RowSums:
        """Over the rows where they are. Raises DataError."""
        sent = None if targets is None else targets._replace(column=None)
        lattice = self.moment_lattice(weights)
        sums = partial(_vector_sums, self.representation, weights, lattice, sent)
        d, k = weights.width, 0 if sent is None else sent.width
        nothing = RowSums.zeros(d, (d, k))
        found: RowSums = self.table.sums(
            self.encoder, sums, nothing, self.steps, labelled=sent is not None
        )
        return found

    def sample(self, most: int = REHEARSED) -> Any:
        """At most this many of the sampled rows, in memory."""
        held = PublicRows(
            count=len(self.vectors),
            vectors=self.vectors,
            spectrum=self.spectrum,
            groups=self.groups,
            owners=self.owners,
            users=self.users,
        )
        return held.sample(most)


def _vector_sums(
    representation: Representation,
    weights: Weights,
    lattice: MomentLattice,
    targets: Targets | None,
    part: DataPart,
    column: Any,
) -> RowSums:
    """Of a part of the rows of one release. Raises DataError."""
    vectors = _vectors(representation, part)
    rows = PublicRows(
        count=part.rows, vectors=vectors, spectrum=None, lattice=lattice, owners=part.owners
    )
    return rows.sums(weights, targets and targets._replace(column=column))


def _vectors(representation: Representation, part: DataPart) -> Float32[np.ndarray, "b p"]:
    """Of a part of the rows. Raises DataError."""
    from labeldp_trainer.representations.learning import vectors_of_part  # noqa: PLC0415

    vectors = vectors_of_part(representation, part)
    if not all_finite(vectors):
        reason = "the features of some rows are too far from those of the sample"
        raise DataError(f"{part.source}: {reason}; rescale them")
    return vectors


def streamed_vectors(setting: Setting) -> Streamed:
    """Those of a large table. What sums them raises DataError."""
    table, representation = setting.dataset.train.whole, setting.representation
    encoder = setting.dataset.encoder
    assert isinstance(table, StreamedTable) and representation is not None
    assert isinstance(encoder, TableEncoder) and table.sampled is not None

    def each(of: OfVectors) -> Iterator[LabelMoments]:
        def of_part(part: DataPart, rows: slice) -> LabelMoments:
            return of(_vectors(representation, part), rows)

        return table.each(encoder, of_part, setting.steps)

    return table.sampled, each


@dataclass(frozen=True, kw_only=True)
class SampledCodes(PublicTable):
    """Many rows of a staged release; features and bins are those of the sample.

    Attributes:
        whole: has all rows.
        encoder: from columns to features.
        steps: called with the progress of sums.
    """

    whole: AllRows
    encoder: TableEncoder
    steps: Steps

    @property
    def count(self) -> int:
        """Of all rows."""
        return self.whole.rows

    def sums(
        self,
        asked: LabelCounts | LabelSums,
        labels: LabelColumn | None = None,
        keep: KeepRows = lambda part, whole: None,
    ) -> RowSums:
        """Over the rows where they are. Raises DataError."""
        del keep
        read, weights = None if labels is None else labels.read, self.rows.weights
        heaviest = None if weights is None else weights.max()
        sums = partial(_code_sums, list(self.columns), heaviest, asked, read)
        found: RowSums = self.whole.sums(
            self.encoder, sums, asked.nothing, self.steps, labelled=read is not None
        )
        return found


def _code_sums(
    columns: list[BinnedColumn],
    heaviest: np.float32 | None,
    asked: LabelCounts | LabelSums,
    read: Callable[[Any], Labels] | None,
    part: DataPart,
    column: Any,
) -> RowSums:
    """Of a part of the rows of a staged release."""
    rows = RowOwners(count=part.rows, owners=part.owners, weights=part.weights, heaviest=heaviest)
    table = PublicTable(part.features, columns, codes_of(columns, part.features), rows)
    return table.sums(asked, read and LabelColumn(column, read))
