"""The noisy histogram that was paid for, in a file beside the output until the artifact is written.

Without a ledger this file is what remembers it. ε₁ is spent when a draw can be seen by anybody, so
a draw is on the disk before it is used: whatever fails later (a solver, the disk, the power), the
next compile that asks the same of the same data finds it and spends nothing. Where the file cannot
be written, the draw is thrown away unseen.

The counts in it are ε₁-DP and no secret. That the data are the same is told by size and time of
change alone: a plain digest would let anybody confirm a guess of all labels.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal, Self

from labeldp_verify.bundle import without_doubles
from labeldp_verify.graph import canonical_json
from pydantic import Field, StrictInt, model_validator

from labeldp_compile.errors import DataError, InputError
from labeldp_compile.ledger.prior_account import Question
from labeldp_compile.own_file import OTHERS_WRITE, read_own
from labeldp_compile.prior.discrete_laplace import Levels, NoisyHistogram
from labeldp_compile.tabular.formats import files_of
from labeldp_compile.whole_file import name_held_in, replaced_when_whole
from labeldp_compile.yaml_model import Strict

MAX_BYTES = 64 * 1024 * 1024
_OWNER_ONLY = 0o600
_LARGEST = 2**63
Whole = Annotated[StrictInt, Field(gt=-_LARGEST, lt=_LARGEST)]


class DataStamp(Strict):
    """Which data were counted: the name in the spec, size in bytes, time of change in ns.

    Of a folder the size is that of its parts, the time the latest of it and them.
    """

    name: Annotated[str, Field(strict=True)]
    size: Whole
    modified_ns: Whole

    @classmethod
    def of(cls, name: str, path: Path) -> DataStamp:
        """The stamp of a file or folder as it is now; raises DataError."""
        try:
            files = [file.stat() for file in files_of(path)]
            latest = max(status.st_mtime_ns for status in (path.stat(), *files))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error
        size = sum(status.st_size for status in files)
        return cls(name=name, size=size, modified_ns=latest)


class KeptTables(Strict):
    """Of several tables: their public sizes [T + 1] as they were asked for, and the noisy counts
    one table behind the other, with their scale (0 where no table has counts of its own)."""

    sizes: Annotated[list[Annotated[Whole, Field(ge=0)]], Field(min_length=2)]
    counts: list[Whole]
    scale: Annotated[float, Field(strict=True, ge=0)]


class KeptPrior(Strict):
    """Noisy histograms with what was asked, of which data, and for which ε₁: the file's JSON.

    Attributes:
        question_sha256: digest of column, counts, domain and ε₁ (``Question.digest``).
        epsilon: ε₁, exact.
        data: what was counted.
        rows: n.
        counts, scale: of all rows: [k] after noise, and the noise.
        groups: the same of several tables, if there are.
    """

    format_version: Literal["1.0"] = "1.0"
    question_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    epsilon: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,99}(/[1-9][0-9]{0,99})?$")]
    data: DataStamp
    rows: Annotated[Whole, Field(gt=0)]
    counts: Annotated[list[Whole], Field(min_length=1)]
    scale: Annotated[float, Field(strict=True, gt=0)]
    groups: KeptTables | None = None

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if sum(self.sizes) != self.rows:
            raise ValueError("the sizes of the tables must add up to the rows")
        return self

    @classmethod
    def of(
        cls, question: Question, data: DataStamp, sizes: Sequence[int], levels: Levels
    ) -> KeptPrior:
        """Of tables [T + 1] of these sizes, and their noisy counts."""
        pooled, tables = levels
        several = None
        if len(sizes) > 1:
            several = KeptTables(sizes=list(sizes), counts=tables.counts, scale=tables.scale)
        return cls(
            question_sha256=question.digest(),
            epsilon=str(question.epsilon),
            data=data,
            rows=sum(sizes),
            counts=pooled.counts,
            scale=pooled.scale,
            groups=several,
        )

    @property
    def sizes(self) -> list[int]:
        """[T + 1] of the tables that were asked for."""
        return [self.rows] if self.groups is None else self.groups.sizes

    @property
    def levels(self) -> Levels:
        """Noisy counts of all rows, and of all tables one behind the other."""
        tables = NoisyHistogram([], 0.0)
        if self.groups is not None:
            tables = NoisyHistogram(self.groups.counts, self.groups.scale)
        return NoisyHistogram(self.counts, self.scale), tables

    def require(
        self, path: Path, question: Question | None, data: DataStamp, lengths: Sequence[int]
    ) -> None:
        """Raise DataError unless this answers the question about these data; ``path`` is its file.

        ``lengths`` are those of the counts of both levels. No question is one that nothing here
        answers.

        Nothing is spent then: what was paid for is never passed over in silence.
        """
        paid = (
            f"{path}: holds a noisy prior that was paid for "
            f"(ε₁ = {float(Fraction(self.epsilon)):g}), but"
        )
        if question is None or self.question_sha256 != question.digest():
            raise DataError(
                f"{paid} column, domain, counts, groups, data or ε₁ were others: go back to them "
                "to use it, or delete the file and pay for a new one"
            )
        if self.data != data:
            raise DataError(
                f"{paid} the data file has another name, size or time of change since then: bring "
                "the old one back to use it, or delete the file and pay for a new one"
            )
        if [len(level.counts) for level in self.levels] != list(lengths):
            raise _damaged(path)


def kept_path(directory: Path, name: str) -> Path:
    """Where a compile of the spec ``name`` into the directory keeps what it paid for."""
    return directory / f"{name}.prior.json"


def prior_held(directory: Path, name: str) -> AbstractContextManager[None]:
    """Nobody else pays for, keeps or removes that prior; DataError if somebody does so now.

    Two compiles at a time would pay twice, and the file of one would go at the other's end.
    """
    # Another name than those that are written: one process writes them while it holds this one.
    return name_held_in(directory, f"{name}.compile")


def read_kept(path: Path) -> KeptPrior | None:
    """What an earlier compile left behind, or None; raises DataError for anything damaged."""
    try:
        # No link is followed and no pipe waited for: the file is one that labeldp made.
        found = read_own(path, MAX_BYTES + 1, links=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    if found.is_file and found.status.st_mode & OTHERS_WRITE:
        raise DataError(f"{path}: others may write to it: chmod 600, or delete it")
    try:
        if len(found.data) <= MAX_BYTES:
            facts = json.loads(found.data, object_pairs_hook=without_doubles)
            return KeptPrior.model_validate(facts)
    except (ValueError, RecursionError):
        pass
    raise _damaged(path)


def write_kept(path: Path, kept: KeptPrior) -> None:
    """Put the file on the disk, whole or not at all; DataError if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced_when_whole(path, most=_OWNER_ONLY) as file:
            file.write(
                canonical_json(kept.model_dump(exclude_none=True)).encode("utf-8", "surrogatepass")
            )
    except (OSError, InputError) as error:
        path.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"{path}: the noisy prior cannot be kept, so it was thrown away unseen and nothing "
            f"was spent: {reason}"
        ) from error


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path}: expected the noisy prior that an earlier compile paid for and kept, and the file "
        "is damaged or something else: delete it to pay for a new one; nothing is spent now"
    )
