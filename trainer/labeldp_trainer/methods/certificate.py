"""What the trainer reads of an artifact's certificate, from inside the artifact or beside it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import labeldp_verify
import pyarrow as pa
from labeldp_runtime import (
    Key,
    KeyFileError,
    MissingExtraError,
    Policy,
    Randomizer,
    RuntimeArtifactError,
)
from labeldp_verify.decode import DecodeError, read_domain, read_groups
from labeldp_verify.forms import Groups
from labeldp_verify.verified import largest_bias
from numpy.typing import NDArray

from labeldp_compile.mechanisms.subset_selection import MAX_CLASSES
from labeldp_compile.tabular import label_array
from labeldp_trainer.errors import ArtifactError

_MAX_BYTES = 1 << 26


@dataclass(frozen=True)
class Certificate:
    """The fields of a certificate that training needs.

    Attributes:
        name: of the spec.
        mechanism: in the words of the spec.
        column: the label column that the spec names.
        epsilon_label: ε that each label pays.
        epsilon_prior: ε that the labels behind the prior paid.
        epsilon_total: their sum.
        largest_bias: the largest distance of E[output | label] from the label, for all labels in
            the range; None for categories.
        classes: the labels, where they are few enough to be classes.
        ends: of the labels, if they are numbers.
        sets: whether private labels are the numbers of sets of classes.
        groups: the public columns and the table of each combination; None if there is one table.
        source: names the file.
        sha256: of the file.
        verified: True of an artifact; None of a certificate without one, which is believed.
    """

    name: str
    mechanism: str
    column: str
    epsilon_label: float
    epsilon_prior: float
    epsilon_total: float
    largest_bias: float | None
    classes: tuple[int | str, ...] | None
    ends: tuple[float, float] | None
    sets: bool
    groups: Groups | None
    source: str
    sha256: str
    verified: Literal[True] | None


def load_randomizer(path: Path, key_file: Path | None, context: str | None) -> Randomizer:
    """The artifact of a file, with its key if there is one. Raises ArtifactError."""
    try:
        key = None if key_file is None else Key.load(key_file)
        return Randomizer.load(path, key=key, context=context)
    except (RuntimeArtifactError, KeyFileError, MissingExtraError) as error:
        raise ArtifactError(str(error)) from None


def labels_of(randomizer: Randomizer, column: str, cells: pa.Array) -> NDArray[Any]:
    """True labels [n] of cells of text [n], as ``labeldp randomize`` reads those of a CSV file."""
    stated: dict[str, Any] = dict(randomizer.certificate)
    return label_array(read_domain(stated["label"]["domain"]), column, cells)


def artifact_certificate(path: Path) -> Certificate:
    """The certificate inside an artifact, which is verified. Raises ArtifactError."""
    try:
        return _parse(Randomizer.load(path, require=Policy()).certificate, path, verified=True)
    except RuntimeArtifactError as error:
        raise ArtifactError(str(error)) from None


def certificate_file(path: Path) -> Certificate:
    """The certificate in a JSON file. Raises ArtifactError."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ArtifactError(f"{path}: is no certificate: it is too large")
        fields = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ArtifactError(f"{path}: is no certificate: not JSON") from None
    return _parse(fields, path, verified=None)


def _parse(fields: Any, path: Path, *, verified: Literal[True] | None) -> Certificate:
    try:
        version = str(fields["format_version"])
        if version.partition(".")[0] != "1":
            raise ArtifactError(f"{path}: has format {version}: upgrade labeldp-trainer")
        stated = labeldp_verify.Certificate.from_json(fields)
        if stated.label.column is None:
            raise ArtifactError(f"{path}: has labels of several columns, which nothing trains on")
        certificate = Certificate(
            name=stated.name,
            mechanism=stated.mechanism,
            column=stated.label.column,
            epsilon_label=stated.privacy.epsilon_label,
            epsilon_prior=stated.privacy.epsilon_prior,
            epsilon_total=stated.privacy.epsilon_total,
            largest_bias=largest_bias(read_domain(stated.label.domain), stated),
            classes=_classes(stated.label.domain),
            ends=_ends(stated.label.domain),
            sets=stated.sets is not None and stated.sets.blocks is not None,
            groups=None if stated.groups is None else read_groups(stated.groups),
            source=str(path),
            sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
            verified=verified,
        )
    except (KeyError, TypeError, ValueError, DecodeError) as error:
        raise ArtifactError(f"{path}: is no certificate of labeldp, or is damaged") from error
    if stated.insecure is not None:
        raise ArtifactError(f"{path}: {stated.insecure!r}: compile it again without a test seed")
    return certificate


def _ends(domain: dict[str, Any]) -> tuple[float, float] | None:
    if domain["kind"] == "categorical":
        return None
    return float(domain["min"]), float(domain["max"])


def _classes(domain: dict[str, Any]) -> tuple[int | str, ...] | None:
    if domain["kind"] == "categorical":
        return tuple(domain["values"])
    if domain["kind"] == "integer" and domain["max"] - domain["min"] < MAX_CLASSES:
        return tuple(range(int(domain["min"]), int(domain["max"]) + 1))
    return None
