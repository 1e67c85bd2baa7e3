"""The source of private labels: an artifact, or the certificate of one."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from labeldp_runtime import Key, KeyFileError, MissingExtraError, Randomizer, RuntimeArtifactError
from labeldp_verify import VerificationError
from labeldp_verify.artifact import Artifact, largest_bias
from labeldp_verify.claims import DECLARED_BY, Certificate, parse_certificate, person_epsilon
from labeldp_verify.decode import read_domain, read_groups
from labeldp_verify.errors import CheckFailedError, read_at_most
from labeldp_verify.forms import CategoricalDomain, Domain, Groups, IntegerDomain
from labeldp_verify.opening import open_artifact
from labeldp_verify.strict import parse_json

from labeldp_compile.toolkit import MAX_CLASSES, require_prepared
from labeldp_trainer.config import Config, Privatized
from labeldp_trainer.config.method import Correction
from labeldp_trainer.errors import ArtifactError
from labeldp_trainer.methods.statement import (
    Statement,
    another_run,
    cost_to_users,
    protected,
    written,
)
from labeldp_trainer.randomize import epsilon_up, exact

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


# The promise of a run on labels that a certified randomizer made private.


def _of_person(certificate: Certificate) -> str:
    """The remark on what the artifact declares of a person's labels."""
    person = person_epsilon(certificate)
    if person is None:
        return ""
    return (
        f"The artifact declares that a person has up to {person.labels:,} labels. All of them and "
        f"the prior spend {person.in_words()}. labeldp randomize counts the labels of each person "
        "by a public column; nothing here can prove it."
    )


def privatized_statement(
    config: Config,
    method: Privatized,
    source: LabelSource,
    *,
    labels: tuple[int, int],
    correction: Correction | None,
    debiased: bool,
    doubts: list[str],
) -> Statement:
    """The promise; ``labels`` counts the labels that are used, and all labels.

    ``correction`` and ``debiased`` say what a loss or a closed form corrects, ``doubts`` why a
    private column may hold true labels.
    """
    used, whole = labels
    certificate, privacy = source.certificate, source.certificate.privacy
    here, keyed = method.private_column is None, method.key is not None
    most = method.max_examples_per_user
    where = f"randomized once with {certificate.mechanism} ({certificate.name})"
    if source.sets:
        where += ", whose output is the number of a set of classes"
    names = [column.name for column in source.groups.columns]
    if names:
        where += (
            f", using the table of its row's group ({source.groups.tables:,} tables; by "
            f"{', '.join(names)})"
        )
    parts = privacy.epsilon_label, privacy.epsilon_prior, privacy.epsilon_total
    label, prior, total = (written(part) for part in parts)
    mechanism = (
        f"each of {used:,} labels was {where}, with ε = {label} per label; the prior spent "
        f"ε = {prior} for each compile that read the labels; a label in both spent at least "
        f"{total} in total"
    )
    again = written(epsilon_up(exact(privacy.epsilon_label) * (most or 1)))
    remarks = {
        "Training only post-processes the private labels. It spends nothing more, even if it is "
        "repeated on the same private labels.": True,
        cost_to_users(most or 1, used, whole): most is not None,
        _of_person(certificate): person_epsilon(certificate) is not None,
        "Another run with the same key, artifact, ids, label_version and true labels gives "
        "the same private labels and spends nothing. True labels that have changed need "
        f"another label_version and spend ε = {label} per label again.": keyed,
        f"The artifact declares that one compile spent ε = {prior} on the prior. Every further "
        "compile on the same labels spends it again, and nothing here counts "
        "them.": privacy.epsilon_prior > 0,
        "ε counts the labels that were used. If further labels of "
        f"{method.private_column!r} are released, their users spend ε for these, too.": (
            not here and most is not None
        ),
    }
    declared = {
        f"The config declares that {method.private_column!r} was made with this artifact and that "
        "its labels were randomized once; nothing here can prove it.": not here,
        f"{DECLARED_BY[0].upper()}{DECLARED_BY[1:]} of the artifact declares that groups are "
        "public and were fixed before any label was seen; nothing here can prove it.": bool(names),
        "The certificate was believed; labeldp verify proves the ε of an artifact.": (
            source.artifact is None
        ),
    }
    details = {
        "epsilon_label": privacy.epsilon_label,
        "epsilon_prior": privacy.epsilon_prior,
        "artifact_name": certificate.name,
        "artifact_mechanism": certificate.mechanism,
        "certificate_source": "artifact" if method.artifact is not None else "certificate",
        "certificate_source_sha256": source.sha256,
        "artifact_verified": None if source.artifact is None else True,
        "largest_bias": source.largest_bias,
        "group_columns": names,
        "randomized_here": here,
        "keyed": keyed,
        "debiased": debiased,
        "correction": correction,
        "labels": used,
        "doubts": doubts,
    }
    stated = protected(
        config,
        epsilon=epsilon_up(exact(privacy.epsilon_total) * (most or 1)),
        mechanism=mechanism,
        details=details,
        released=("the private labels", "the parameters", "metrics on the private labels"),
        secret=(
            "the true labels",
            *(
                ("the key file, which with ids and private labels removes the noise",)
                if keyed
                else ()
            ),
        ),
        remarks=tuple(remark for remark, holds in remarks.items() if holds),
        declared=tuple(remark for remark, holds in declared.items() if holds),
    )
    if keyed or not here:
        return stated
    return replace(stated, again=another_run(f"ε = {again}", doing="randomizes again and "))
