"""Keeps the noisy histogram in a file beside the output until the artifact is written.

Without a ledger, only this file remembers it. ε₁ is spent as soon as anyone can see the noisy
counts, so they are on the disk before they are used. If something fails later (a solver, the disk,
the power), the next compile with the same question and data finds them and spends nothing. If the
file cannot be written, the counts are deleted unseen.

The counts in it are ε₁-DP and not secret, but the size of the data is exact: the file is for its
owner alone. Only size and time of change show that the data are the same: with a plain digest,
anyone could confirm a guess of all labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path
from typing import Literal

from labeldp_verify.errors import readable

from labeldp_compile.errors import DataError, InputError
from labeldp_compile.ledger.entries import Question
from labeldp_compile.prior.discrete_laplace import Levels, NoisyHistogram
from labeldp_compile.private_file import read_record, write_record
from labeldp_compile.tabular.formats import files_of
from labeldp_compile.whole_file import name_held_in
from labeldp_compile.yaml_model import Strict


class DataStamp(Strict):
    """Which data were counted: the name in the spec, size in bytes, time of change in ns.

    For a folder: the size of its parts, and the latest time of the folder and its parts.
    """

    name: str
    size: int
    modified_ns: int

    @classmethod
    def of(cls, name: str, path: Path) -> DataStamp:
        """The stamp of a file or folder as it is now; raises DataError."""
        with readable(path, DataError):
            files = [file.stat() for file in files_of(path)]
            latest = max(status.st_mtime_ns for status in (path.stat(), *files))
        size = sum(status.st_size for status in files)
        return cls(name=name, size=size, modified_ns=latest)


class SavedPrior(Strict):
    """The file's JSON: noisy histograms with their question, data and ε₁.

    Attributes:
        question_sha256: digest of column, counts, domain and ε₁ (``Question.digest``).
        epsilon: ε₁, exact.
        data: what was counted.
        sizes: [T + 1] public rows of each table.
        levels: noisy counts of all rows, and of all tables one after the other.
    """

    format_version: Literal["1.0"] = "1.0"
    question_sha256: str
    epsilon: str
    data: DataStamp
    sizes: list[int]
    levels: tuple[NoisyHistogram, NoisyHistogram]

    @classmethod
    def of(
        cls, question: Question, data: DataStamp, sizes: Sequence[int], levels: Levels
    ) -> SavedPrior:
        """From the sizes of tables [T + 1], and their noisy counts."""
        return cls(
            question_sha256=question.digest(),
            epsilon=str(question.epsilon),
            data=data,
            sizes=list(sizes),
            levels=levels,
        )

    def require(self, path: Path, question: Question | None, data: DataStamp) -> None:
        """Raise DataError unless this answers the question about these data; ``path`` is its file.

        None as a question never matches.

        Nothing is spent then: a kept prior is never ignored without a message.
        """
        paid = (
            f"{path}: holds a noisy prior on which ε₁ = {float(Fraction(self.epsilon)):g} was "
            "spent, but"
        )
        if question is None or self.question_sha256 != question.digest():
            raise DataError(
                f"{paid} for another column, domain, counts, groups, data or ε₁: restore these to "
                "use it, or delete the file and spend ε₁ again"
            )
        if self.data != data:
            raise DataError(
                f"{paid} the data file now has another name, size or time of change: restore the "
                "old data to use it, or delete the file and spend ε₁ again"
            )


def saved_prior_path(directory: Path, name: str) -> Path:
    """Where a compile of the spec ``name`` into the directory keeps its noisy prior."""
    return directory / f"{name}.prior.json"


def hold_saved_prior(directory: Path, name: str) -> AbstractContextManager[None]:
    """Only the holder spends on, keeps or removes that prior; DataError if another one holds it.

    Two compiles at the same time would spend twice, and one would remove the other's file.
    """
    # Not the name of an output: the process that holds this name writes the outputs.
    return name_held_in(directory, f"{name}.compile")


def read_saved_prior(path: Path) -> SavedPrior | None:
    """The prior that an earlier compile left, or None. Raises DataError for a damaged file."""
    if not path.exists():
        return None
    record = read_record(path, SavedPrior)
    if record is None:
        raise DataError(
            f"{path}: expected the noisy prior that an earlier compile kept, but the file is "
            "damaged or something else: delete it, and the next compile spends ε₁ again; nothing "
            "is spent now"
        )
    return record


def write_saved_prior(path: Path, kept: SavedPrior) -> None:
    """Put the file on the disk, whole or not at all; DataError if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_record(path, kept, secret=True)
    except (OSError, InputError) as error:
        path.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"{path}: cannot keep the noisy prior, so it was deleted unseen and nothing was spent: "
            f"{reason}"
        ) from error
