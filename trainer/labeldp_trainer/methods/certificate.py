"""The source of private labels: an artifact, or the certificate of one."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from labeldp_runtime import Key, KeyFileError, MissingExtraError, Randomizer, RuntimeArtifactError
from labeldp_verify import Certificate, VerificationError
from labeldp_verify.artifact import Artifact, largest_bias
from labeldp_verify.claims import parse_certificate
from labeldp_verify.decode import read_domain, read_groups
from labeldp_verify.errors import CheckFailedError, read_at_most
from labeldp_verify.forms import CategoricalDomain, Domain, Groups, IntegerDomain
from labeldp_verify.opening import open_artifact
from labeldp_verify.strict import parse_json

from labeldp_compile.toolkit import MAX_CLASSES, require_prepared
from labeldp_trainer.errors import ArtifactError

_MAX_BYTES, _ENDING = 1 << 26, ".certificate.json"


@dataclass(frozen=True)
class LabelSource:
    """A verified artifact, or a certificate that is trusted without its artifact.

    Attributes:
        path: of the file.
        sha256: of the file.
        certificate: what it states.
        domain: of the true labels.
        groups: the public columns that say which table a row has; none if there is one table.
        artifact: None of a certificate.
        artifact_sha256: what notes call the artifact; None of a certificate without its artifact.
    """

    path: Path
    sha256: str
    certificate: Certificate
    domain: Domain
    groups: Groups
    artifact: Artifact | None
    artifact_sha256: str | None

    @property
    def classes(self) -> tuple[int | str, ...] | None:
        """The labels, where they are few enough to be classes."""
        domain = self.domain
        if isinstance(domain, CategoricalDomain):
            return tuple(domain.values)
        if isinstance(domain, IntegerDomain) and domain.size <= MAX_CLASSES:
            return tuple(range(domain.min, domain.max + 1))
        return None

    @property
    def ends(self) -> tuple[float, float] | None:
        """Of the labels, if they are numbers."""
        stated = self.certificate.label.domain
        if stated["kind"] == "categorical":
            return None
        return float(stated["min"]), float(stated["max"])

    @property
    def sets(self) -> bool:
        """Whether private labels are the numbers of sets of classes."""
        return self.certificate.sets is not None and self.certificate.sets.blocks is not None

    @property
    def largest_bias(self) -> float | None:
        """The largest distance of E[output | label] from the label, for all labels in the range.

        None for categories.
        """
        return largest_bias(self.domain, self.certificate)


def artifact_source(path: Path) -> LabelSource:
    """The artifact in a file, which is verified. Raises InputError."""
    try:
        found = open_artifact(path)
    except VerificationError as error:
        raise ArtifactError(f"{path}: does not verify: {error}") from None
    _require_usable(path, found.certificate)
    return LabelSource(
        path,
        found.sha256,
        found.certificate,
        found.label,
        found.groups,
        found,
        found.sha256,
    )


def certificate_source(path: Path) -> LabelSource:
    """The certificate in a JSON file, which is that of the .onnx beside it if there is one.

    Raises ArtifactError.
    """
    data = read_at_most(path, _MAX_BYTES + 1, ArtifactError)
    try:
        fields = parse_json(data.decode() if len(data) <= _MAX_BYTES else "")
        version = str(fields["format_version"])
        if version.partition(".")[0] != "1":
            raise ArtifactError(f"{path}: has format {version}; upgrade labeldp-trainer")
        stated = parse_certificate(fields)
        _require_usable(path, stated)
        beside = path.with_name(path.name.removesuffix(_ENDING) + ".onnx")
        artifact = artifact_source(beside) if beside.exists() else None
        if artifact is not None and artifact.certificate != stated:
            reason = f"is not the certificate of {beside}; give the artifact instead"
            raise ArtifactError(f"{path}: {reason}")
        groups = read_groups(stated)
        domain = read_domain(stated.label.domain)
    except (KeyError, TypeError, ValueError, RecursionError, CheckFailedError) as error:
        raise ArtifactError(f"{path}: is not a labeldp certificate, or is damaged") from error
    sha256 = hashlib.sha256(data).hexdigest()
    own = None if artifact is None else artifact.sha256
    return LabelSource(path, sha256, stated, domain, groups, None, own)


def _require_usable(path: Path, stated: Certificate) -> None:
    """Raise ArtifactError if nothing can be trained on its labels."""
    if stated.label.column is None:
        raise ArtifactError(
            f"{path}: randomizes several columns together; training needs one for a single column"
        )
    if stated.insecure is not None:
        raise ArtifactError(f"{path}: {stated.insecure!r}; compile it again without a test seed")


def load_randomizer(path: Path, key_file: Path | None, context: str | None) -> Randomizer:
    """The artifact of a file, with its key if there is one. Raises ArtifactError."""
    try:
        key = None if key_file is None else Key.load(key_file)
        drawer = Randomizer.load(path, key=key, context=context, prepared=True)
        how = "run it first, and train on its output with private_column"
        require_prepared(drawer.certificate, str(path), how)
        return drawer
    except (RuntimeArtifactError, KeyFileError, MissingExtraError) as error:
        raise ArtifactError(str(error)) from None
