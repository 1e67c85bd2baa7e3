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
import math
import os
import re
import stat
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from labeldp_verify.artifact import canonical_json

from labeldp_compile.errors import DataError, InputError
from labeldp_compile.ledger import Question
from labeldp_compile.prior.discrete_laplace import NoisyHistogram
from labeldp_compile.tabular.parts import files_of
from labeldp_compile.whole_file import name_held_in, replaced_when_whole

FORMAT_VERSION = "1.0"
MAX_BYTES = 64 * 1024 * 1024
_OWNER_ONLY = 0o600
_OTHERS_WRITE = 0o022
_LARGEST = 2**63
_HASH = re.compile(r"[0-9a-f]{64}")
_EPSILON = re.compile(r"[1-9][0-9]{0,99}(/[1-9][0-9]{0,99})?")


@dataclass(frozen=True)
class DataStamp:
    """Which data were counted: the name in the spec, size in bytes, time of change in ns.

    Of a folder the size is that of its parts, the time the latest of it and them.
    """

    name: str
    size: int
    modified_ns: int

    @classmethod
    def of(cls, name: str, path: Path) -> DataStamp:
        """The stamp of a file or folder as it is now; raises DataError."""
        try:
            files = [file.stat() for file in files_of(path)]
            latest = max(status.st_mtime_ns for status in (path.stat(), *files))
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from error
        return cls(name, sum(status.st_size for status in files), latest)


@dataclass(frozen=True)
class KeptGroups:
    """The same by group: public sizes [G + 1] of what was asked for, and the tables' noisy counts
    one behind the other, with their scale (0 where no table has counts of its own)."""

    sizes: list[int]
    counts: list[int]
    scale: float


@dataclass(frozen=True)
class KeptPrior:
    """A noisy histogram with what was asked, of which data, and for which ε₁.

    Attributes:
        question_sha256: digest of column, counts, domain and ε₁ (``Question.digest``).
        epsilon: ε₁.
        data: what was counted.
        rows: n.
        noisy: counts [k] after noise, and its scale.
        groups: the same by group, if there are groups.
    """

    question_sha256: str
    epsilon: Fraction
    data: DataStamp
    rows: int
    noisy: NoisyHistogram
    groups: KeptGroups | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON that ``from_json`` reads."""
        groups = {} if self.groups is None else {"groups": asdict(self.groups)}
        return {
            "format_version": FORMAT_VERSION,
            "question_sha256": self.question_sha256,
            "epsilon": str(self.epsilon),
            "data": asdict(self.data),
            "rows": self.rows,
            "counts": self.noisy.counts,
            "scale": self.noisy.scale,
            **groups,
        }

    @classmethod
    def from_json(cls, facts: Any) -> KeptPrior:
        """What ``to_json`` gave; ValueError for anything else."""
        _require(isinstance(facts, dict) and set(facts) - {"groups"} == _KEYS)
        _require(facts["format_version"] == FORMAT_VERSION)
        question, epsilon, data = (facts[key] for key in ("question_sha256", "epsilon", "data"))
        _require(isinstance(question, str) and _HASH.fullmatch(question) is not None)
        _require(isinstance(epsilon, str) and _EPSILON.fullmatch(epsilon) is not None)
        _require(isinstance(data, dict) and set(data) == {"name", "size", "modified_ns"})
        _require(isinstance(data["name"], str))
        counts, scale = facts["counts"], facts["scale"]
        _require(isinstance(counts, list) and bool(counts))
        whole = (facts["rows"], data["size"], data["modified_ns"], *counts)
        _require(all(type(n) is int and abs(n) < _LARGEST for n in whole) and facts["rows"] > 0)
        _require(type(scale) is float and math.isfinite(scale) and scale > 0)
        noisy = NoisyHistogram(counts, scale)
        groups = _groups(facts["groups"]) if "groups" in facts else None
        return cls(question, Fraction(epsilon), DataStamp(**data), facts["rows"], noisy, groups)

    def require(
        self,
        path: Path,
        question: Question | None,
        data: DataStamp,
        cells: int,
        group_cells: int | None = None,
    ) -> None:
        """Raise DataError unless this answers the question about these data; ``path`` is its file.

        ``cells`` is the length of the histogram, in labels or in cells of them; ``group_cells``
        that of all tables by group. No question is one that nothing here answers.

        Nothing is spent then: what was paid for is never passed over in silence.
        """
        if question is None or self.question_sha256 != question.digest():
            raise DataError(
                f"{path}: holds a noisy prior that was paid for (ε₁ = {float(self.epsilon):g}), "
                "but column, domain, counts, groups, data or ε₁ were others: go back to them to "
                "use it, or delete the file and pay for a new one"
            )
        if self.data != data:
            raise DataError(
                f"{path}: holds a noisy prior that was paid for (ε₁ = {float(self.epsilon):g}), "
                "but the data file has another name, size or time of change since then: bring the "
                "old one back to use it, or delete the file and pay for a new one"
            )
        in_groups = None if self.groups is None else len(self.groups.counts)
        if len(self.noisy.counts) != cells or in_groups != group_cells:
            raise _damaged(path)


def _groups(facts: Any) -> KeptGroups:
    _require(isinstance(facts, dict) and set(facts) == {"sizes", "counts", "scale"})
    sizes, counts, scale = (facts[key] for key in ("sizes", "counts", "scale"))
    _require(isinstance(sizes, list) and isinstance(counts, list) and bool(sizes))
    _require(all(type(n) is int and abs(n) < _LARGEST for n in (*sizes, *counts)))
    _require(min(sizes) >= 0 and type(scale) is float and math.isfinite(scale) and scale >= 0)
    return KeptGroups(sizes, counts, scale)


_KEYS = {"format_version", "question_sha256", "epsilon", "data", "rows", "counts", "scale"}


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
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _damaged(path)
            if status.st_mode & _OTHERS_WRITE:
                raise DataError(f"{path}: others may write to it: chmod 600, or delete it")
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        _require(len(data) <= MAX_BYTES)
        return KeptPrior.from_json(json.loads(data, object_pairs_hook=_without_doubles))
    except (ValueError, RecursionError):
        raise _damaged(path) from None


def write_kept(path: Path, kept: KeptPrior) -> None:
    """Put the file on the disk, whole or not at all; DataError if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced_when_whole(path, most=_OWNER_ONLY) as file:
            file.write(canonical_json(kept.to_json()).encode("utf-8", "surrogatepass"))
    except (OSError, InputError) as error:
        path.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"{path}: the noisy prior cannot be kept, so it was thrown away unseen and nothing "
            f"was spent: {reason}"
        ) from error


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    facts = dict(pairs)
    _require(len(facts) == len(pairs))
    return facts


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError("not what a compile keeps")


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path}: expected the noisy prior that an earlier compile paid for and kept, and the file "
        "is damaged or something else: delete it to pay for a new one; nothing is spent now"
    )
