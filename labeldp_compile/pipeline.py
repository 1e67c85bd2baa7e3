"""The compiler from end to end: spec → prior → mechanism → integers → certificate → ONNX."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from labeldp_compile.artifact import canonical_json, choose_grid, write_model
from labeldp_compile.certificate import Provenance, build_certificate
from labeldp_compile.composition import require_accounting
from labeldp_compile.errors import InputError
from labeldp_compile.ledger import account_of
from labeldp_compile.mechanisms import Problem, require_feasible, solve
from labeldp_compile.prior import Prior, estimate_prior
from labeldp_compile.randomizer import Randomizer
from labeldp_compile.spec import Spec, load_spec
from labeldp_compile.tabular.writer import replaced_when_whole
from labeldp_compile.verify import OWN_FILES, VerificationError, check_bytes
from labeldp_compile.verify.signature import signature_path

COMFORTABLE_ENTRIES = 1 << 20  # 8 MB of lookup table
TOOLS = ("clarabel", "labeldp", "numpy", "onnx", "opendp", "scipy")
INSECURE = "INSECURE: made with a test seed, so that anyone can undo the noise; for tests only"


@dataclass(frozen=True)
class Artifact:
    """What a compile makes: the file's bytes, its certificate, and the integers inside."""

    name: str
    model: bytes
    certificate: dict[str, Any]
    randomizer: Randomizer

    def write(
        self, directory: Path, *, overwrite: bool = False, key: Ed25519PrivateKey | None = None
    ) -> Path:
        """Write NAME.onnx, NAME.certificate.json and, with a key, NAME.onnx.sig.

        Returns the path of the first. Raises InputError if they exist already and ``overwrite`` is
        false. A signature of the file that is replaced goes with it.
        """
        onnx_path, json_path, sig_path = output_paths(directory, self.name)
        require_writable(directory, self.name, overwrite=overwrite)
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{directory}: cannot be made: {error.strerror}") from error
        with replaced_when_whole(json_path) as json_part, replaced_when_whole(onnx_path) as part:
            json_part.write_text(canonical_json(self.certificate) + "\n", encoding="utf-8")
            part.write_bytes(self.model)
            sig_path.unlink(missing_ok=True)
        if key is not None:
            with replaced_when_whole(sig_path) as part:
                part.write_bytes(key.sign(self.model))
        return onnx_path


def compile_spec(
    path: Path,
    *,
    directory: Path | None = None,
    overwrite: bool = False,
    test_seed: int | None = None,
    count_progress: Callable[[int], None] = lambda rows: None,
    solve_progress: Callable[[str], None] = lambda line: None,
    say: Callable[[str], None] = lambda line: None,
) -> Artifact:
    """Compile a spec file in memory. A private prior spends its ε₁ each time, if no ledger has it.

    ``say`` is told what a ledger recalled or spent.

    With the ``directory`` that the artifact will be written to, it is checked before ε is spent.

    Raises InputError (SpecError, DataError, BudgetError) for whatever the user can mend.
    """
    spec, source = load_spec(path)
    if directory is not None:
        require_writable(directory, spec.name, overwrite=overwrite)

    def before_spending(epsilon_label: Fraction) -> None:
        if spec.privacy.labels_per_user is not None:
            require_accounting()
        try:
            require_feasible(spec.named_mechanism, spec.domain, spec.loss, epsilon_label)
        except ValueError as error:
            raise InputError(f"{spec.name}: {error}") from error

    digest = hashlib.sha256(source).hexdigest()
    prior = estimate_prior(
        spec,
        path.parent,
        test_seed=test_seed,
        progress=count_progress,
        before_spending=before_spending,
        account=account_of(spec, path.parent, digest, "compile", say),
    )
    insecure = None if test_seed is None else INSECURE
    return assemble(
        spec,
        prior,
        digest,
        insecure=insecure,
        labels_per_user=spec.privacy.labels_per_user,
        progress=solve_progress,
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
    problem = Problem(
        mechanism=spec.named_mechanism,
        domain=spec.domain,
        weights=prior.weights,
        epsilon=prior.epsilon_label,
        loss=spec.loss,
        word_bits=word_bits,
        progress=progress,
        fits=lambda randomizer: choose_grid(randomizer, COMFORTABLE_ENTRIES) is not None,
    )
    try:
        solved = solve(problem)
    except ValueError as error:
        raise InputError(f"{spec.name}: {error}") from error
    tools = TOOLS if labels_per_user is None else (*TOOLS, "dp-accounting")
    provenance = Provenance(
        name=spec.name,
        mechanism=spec.mechanism.kind,
        column=spec.label.column,
        epsilon_label=prior.epsilon_label,
        epsilon_prior=prior.epsilon_prior,
        prior=prior.statement,
        spec_digest=spec_digest,
        auto=spec.auto_reason,
        tools={name: importlib.metadata.version(name) for name in tools},
        insecure=insecure,
        labels_per_user=labels_per_user,
    )
    certificate = build_certificate(
        spec.domain, solved.randomizer, spec.loss, provenance, solved.bound
    )
    try:
        model = write_model(spec.domain, solved.randomizer, certificate)
    except ValueError as error:
        raise InputError(f"{spec.name}: {error}") from error
    if insecure is None:
        # Nothing leaves the compiler that an auditor would refuse.
        try:
            check_bytes(model, budget=OWN_FILES).require()
        except VerificationError as error:
            raise InputError(
                f"{spec.name}: this spec has no file that verifies ({error}); nothing was written"
            ) from error
    return Artifact(spec.name, model, certificate, solved.randomizer)


def output_paths(directory: Path, name: str) -> tuple[Path, Path, Path]:
    """Where a compile writes the artifact, its certificate, and a signature if asked to."""
    artifact = directory / f"{name}.onnx"
    return artifact, directory / f"{name}.certificate.json", signature_path(artifact)


def require_writable(directory: Path, name: str, *, overwrite: bool) -> None:
    """Raise InputError if the outputs could not be written to the directory.

    Called before any ε is spent.
    """
    for path in output_paths(directory, name):
        if path.is_dir():
            raise InputError(f"{path}: is a directory")
        if os.path.lexists(path) and not overwrite:
            raise InputError(
                f"{path}: exists already; say --overwrite to replace it "
                "(a private prior is then paid for again), or choose another directory"
            )
    ancestor = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    require_folder_writable(ancestor)


def require_folder_writable(folder: Path) -> None:
    """Raise InputError unless a file can be made in the folder."""
    if not folder.is_dir():
        raise InputError(f"{folder}: is not a directory")
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".labeldp."):
            pass
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror}") from error
