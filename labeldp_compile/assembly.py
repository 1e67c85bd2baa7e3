"""From a prior to an artifact: mechanism → integers → certificate → ONNX; and its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_verify import OWN_FILES, VerificationError, check_bytes
from labeldp_verify.artifact import bucket_grid, canonical_json, choose_grid, write_model
from labeldp_verify.certificate import Certificate
from labeldp_verify.decode import read_domain
from labeldp_verify.forms import Domain, GroupedWindows, Randomizer, WindowRandomizer
from labeldp_verify.signature_files import bundle_path, signature_path
from labeldp_verify.verified import Decoded, DecodedGroups

from labeldp_compile import sizes
from labeldp_compile.certificate import Provenance, build_certificate
from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.prior import Prior
from labeldp_compile.prior.kept import prior_held
from labeldp_compile.spec import Spec
from labeldp_compile.spec.label import JointLabelSpec
from labeldp_compile.spec.model import Goal
from labeldp_compile.whole_file import (
    replaced_when_whole,
    require_folder_writable,
    require_free,
)

if TYPE_CHECKING:
    from labeldp_compile.signing import PrivateKey

TOOLS = ("clarabel", "labeldp", "numpy", "onnx", "scipy")
_PAY_AGAIN = (
    "say --overwrite to replace it (a private prior is then paid for again), "
    "or choose another directory"
)


@dataclass(frozen=True)
class Artifact:
    """What a compile makes: the file's bytes, its certificate, and the ``integers`` inside.

    ``kept`` is the file that keeps the noisy prior until the artifact is written, if there is one;
    ``goal`` is that of the spec.
    """

    name: str
    model: bytes
    certificate: Certificate
    integers: Randomizer | GroupedWindows
    kept: Path | None = None
    goal: Goal = "training"

    @property
    def randomizer(self) -> Randomizer:
        """The integers of an artifact with one table; TypeError for tables by group."""
        if isinstance(self.integers, GroupedWindows):
            raise TypeError("this artifact has a table for each group: see grouped")
        return self.integers

    @cached_property
    def decoded(self) -> Decoded:
        """The same as the verifier reads it: what it is good for, and what keeps it from that.

        Of tables by group see ``grouped``.
        """
        domain = read_domain(self.certificate.label.domain)
        return Decoded(domain, self.randomizer, self.certificate)

    @cached_property
    def grouped(self) -> DecodedGroups | None:
        """The same of tables by group; None if there is one table for all rows."""
        if not isinstance(self.integers, GroupedWindows):
            return None
        domain = read_domain(self.certificate.label.domain)
        return DecodedGroups(domain, self.integers, self.certificate)

    def write(
        self, directory: Path, *, overwrite: bool = False, key: PrivateKey | None = None
    ) -> Path:
        """Write NAME.onnx, NAME.certificate.json and, with a key, a signature.

        That is NAME.onnx.sig of an Ed25519 key, NAME.onnx.sigstore.json of one on P-256.

        Returns the path of the first. Raises InputError if they exist already and ``overwrite`` is
        false, or while a compile works with the kept prior. A signature of the file that is
        replaced goes with it. At last the kept prior, which is no longer needed, is removed.
        """
        if self.kept is None:
            return self._write(directory, overwrite, key)
        with prior_held(self.kept.parent, self.name):
            return self.write_held(directory, overwrite=overwrite, key=key)

    def write_held(
        self, directory: Path, *, overwrite: bool = False, key: PrivateKey | None = None
    ) -> Path:
        """The same for who holds the kept prior already (``prior_held``)."""
        try:
            path = self._write(directory, overwrite, key)
        except InputError as error:
            if self.kept is None or not self.kept.exists():
                raise
            raise InputError(f"{error}; {paid_for(self.kept)}") from error
        if self.kept is not None:
            self.kept.unlink(missing_ok=True)
        return path

    def _write(self, directory: Path, overwrite: bool, key: PrivateKey | None) -> Path:
        onnx_path, json_path, *signatures = output_paths(directory, self.name)
        require_writable(directory, self.name, overwrite=overwrite)
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{directory}: cannot be made: {error.strerror}") from error
        with replaced_when_whole(json_path) as json_part, replaced_when_whole(onnx_path) as part:
            json_part.write((canonical_json(self.certificate.to_json()) + "\n").encode())
            part.write(self.model)
            for old in signatures:
                old.unlink(missing_ok=True)
        if key is not None:
            # cryptography, for those who sign
            from labeldp_verify.signature import path_for  # noqa: PLC0415

            from labeldp_compile.signing import sign  # noqa: PLC0415

            with replaced_when_whole(path_for(onnx_path, key.public_key())) as part:
                part.write(sign(self.model, onnx_path.name, key))
        return onnx_path


def paid_for(where: Path | str) -> str:
    """What an error says where ε₁ was spent, and is remembered."""
    return (
        f"ε₁ of the prior stays spent, and its noisy histogram is kept in {where}: the next "
        "compile that asks the same of these data at the same ε₁, for any loss, mechanism and ε of "
        "the label, spends nothing"
    )


def assemble(
    spec: Spec,
    prior: Prior,
    spec_digest: str,
    *,
    insecure: str | None = None,
    word_bits: int | None = None,
    labels_per_user: int | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Artifact:
    """Everything behind the prior; touches no label.

    With ``labels_per_user`` the certificate states what a user with so many labels pays.
    """
    domain = spec.domain
    problem = problem_of(
        spec, domain, prior.weights, prior.epsilon_label, prior.rows, word_bits, progress
    )
    try:
        solved = spec.named_mechanism.build(problem)
    except ValueError as error:
        raise InputError(f"{spec.name}: {error}") from error
    return certified(spec, domain, prior, solved, spec_digest, insecure, labels_per_user)


def problem_of(
    spec: Spec,
    domain: Domain,
    weights: Sequence[int],
    epsilon: Fraction,
    rows: int | None = None,
    word_bits: int | None = None,
    progress: Callable[[str], None] = lambda line: None,
    entries: int | None = None,
) -> Problem:
    """What the mechanism of a spec is asked, for a prior of so many ``rows`` if they are known.

    ``entries`` of the lookup are there, if it is shared with other tables.
    """

    def fits(randomizer: WindowRandomizer) -> bool:
        if entries is not None:
            return choose_grid(randomizer, entries) is not None
        return sizes.fits(spec, rows, randomizer)

    return Problem(
        domain=domain,
        weights=weights,
        epsilon=epsilon,
        loss=spec.loss,
        word_bits=word_bits,
        progress=progress,
        fits=fits,
        entries=entries or bucket_grid.COMFORTABLE_ENTRIES,
    )


@cache
def _version(name: str) -> str:
    from importlib.metadata import version  # noqa: PLC0415  # which loads email

    return version(name)


def provenance_of(
    spec: Spec,
    prior: Prior,
    spec_digest: str,
    insecure: str | None,
    labels_per_user: int | None,
    version: Callable[[str], str] = _version,
) -> Provenance:
    """What a certificate declares of where the artifact comes from."""
    joint, losses = isinstance(spec.label, JointLabelSpec), spec.column_losses
    tools = TOOLS if labels_per_user is None else (*TOOLS, "dp-accounting")
    return Provenance(
        name=spec.name,
        mechanism=spec.mechanism.kind,
        column=None if joint else spec.label.names[0],
        epsilon_label=prior.epsilon_label,
        epsilon_prior=prior.epsilon_prior,
        prior=prior.statement,
        spec_digest=spec_digest,
        auto=spec.auto_reason,
        tools={name: version(name) for name in tools},
        insecure=insecure,
        labels_per_user=labels_per_user,
        columns=tuple(spec.label.names) if joint else (),
        losses=None if losses is None else tuple(losses),
    )


def certified(
    spec: Spec,
    domain: Domain,
    prior: Prior,
    solved: Solved,
    spec_digest: str,
    insecure: str | None,
    labels_per_user: int | None,
    *,
    version: Callable[[str], str] = _version,
    run_graph: bool = True,
) -> Artifact:
    """The artifact of integers that were solved for; raises InputError unless it verifies.

    ``version`` of a tool, and whether to run the graph, are for files that nobody will keep.
    """
    provenance = provenance_of(spec, prior, spec_digest, insecure, labels_per_user, version)
    try:
        certificate = build_certificate(
            domain,
            solved.randomizer,
            spec.loss,
            provenance,
            solved.bound,
            sets=solved.classes,
        )
        model = write_model(domain, solved.randomizer, certificate.to_json())
    except ValueError as error:
        raise InputError(f"{spec.name}: {error}") from error
    require_verified(spec, model, insecure, run_graph=run_graph)
    return Artifact(spec.name, model, certificate, solved.randomizer, goal=spec.goal)


def require_verified(
    spec: Spec, model: bytes, insecure: str | None, *, run_graph: bool = True
) -> None:
    """Raise InputError if an auditor would refuse the file; an insecure one is refused anyway."""
    if insecure is not None:
        return
    try:
        check_bytes(model, budget=OWN_FILES, run_graph=run_graph).require()
    except VerificationError as error:
        raise InputError(
            f"{spec.name}: this spec has no file that verifies ({error}); nothing was written"
        ) from error


def output_paths(directory: Path, name: str) -> tuple[Path, Path, Path, Path]:
    """Where a compile writes the artifact, its certificate, and a signature if asked to.

    The last two are those of an Ed25519 key and of one on P-256.
    """
    artifact = directory / f"{name}.onnx"
    certificate = directory / f"{name}.certificate.json"
    return artifact, certificate, signature_path(artifact), bundle_path(artifact)


def require_writable(directory: Path, name: str, *, overwrite: bool) -> None:
    """Raise InputError if the outputs could not be written to the directory.

    Called before any ε is spent.
    """
    for path in output_paths(directory, name):
        require_free(path, overwrite=overwrite, way_out=_PAY_AGAIN)
    ancestor = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    require_folder_writable(ancestor)
