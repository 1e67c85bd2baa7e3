"""The artifact that makes, or has made, private labels; and what a run on them promises."""

from dataclasses import replace
from pathlib import Path

from labeldp_runtime import MissingExtraError, Randomizer, RuntimeArtifactError
from labeldp_verify import VerificationError
from labeldp_verify.artifact import Artifact, largest_bias
from labeldp_verify.claims import DECLARED_BY, Certificate, person_epsilon
from labeldp_verify.forms import CategoricalDomain, IntegerDomain
from labeldp_verify.opening import open_artifact

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


def usable_artifact(path: Path) -> Artifact:
    """The artifact in a file, which is verified. Raises ArtifactError if it does not verify, or if
    nothing can be trained on its labels."""
    try:
        found = open_artifact(path)
    except VerificationError as error:
        raise ArtifactError(f"{path}: does not verify: {error}") from None
    stated = found.certificate
    if stated.label.column is None:
        raise ArtifactError(
            f"{path}: randomizes several columns together; training needs one for a single column"
        )
    if stated.insecure is not None:
        raise ArtifactError(f"{path}: {stated.insecure!r}; compile it again without a test seed")
    return found


def classes_of(artifact: Artifact) -> tuple[int | str, ...] | None:
    """The true labels, where they are few enough to be classes."""
    domain = artifact.label
    if isinstance(domain, CategoricalDomain):
        return tuple(domain.values)
    if isinstance(domain, IntegerDomain) and domain.size <= MAX_CLASSES:
        return tuple(range(domain.min, domain.max + 1))
    return None


def load_randomizer(path: Path) -> Randomizer:
    """The randomizer of a file. Raises ArtifactError."""
    try:
        drawer = Randomizer.load(path, prepared=True)
        how = "run it first, and train on its output with private_column"
        require_prepared(drawer.certificate, str(path), how)
        return drawer
    except (RuntimeArtifactError, MissingExtraError) as error:
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
    artifact: Artifact,
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
    certificate, privacy = artifact.certificate, artifact.certificate.privacy
    here = method.private_column is None
    most = method.max_examples_per_user
    where = f"randomized once with {certificate.mechanism} ({certificate.name})"
    if artifact.answers_with_sets:
        where += ", whose output is the number of a set of classes"
    names = [column.name for column in artifact.groups.columns]
    if names:
        where += (
            f", using the table of its row's group ({artifact.groups.tables:,} tables; by "
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
    }
    details = {
        "epsilon_label": privacy.epsilon_label,
        "epsilon_prior": privacy.epsilon_prior,
        "artifact_name": certificate.name,
        "artifact_mechanism": certificate.mechanism,
        "certificate_source": "artifact",
        "certificate_source_sha256": artifact.sha256,
        "artifact_verified": True,
        "largest_bias": largest_bias(artifact.label, certificate),
        "group_columns": names,
        "randomized_here": here,
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
        secret=("the true labels",),
        remarks=tuple(remark for remark, holds in remarks.items() if holds),
        declared=tuple(remark for remark, holds in declared.items() if holds),
    )
    if not here:
        return stated
    return replace(stated, again=another_run(f"ε = {again}", doing="randomizes again and "))
