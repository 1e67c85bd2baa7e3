"""The compiler from end to end: spec → prior → mechanism → integers → certificate → ONNX."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from labeldp_verify import OWN_FILES, VerificationError, check_bytes
from labeldp_verify.artifact import canonical_json, write_model
from labeldp_verify.certificate import Certificate
from labeldp_verify.decode import read_domain
from labeldp_verify.forms import Domain, IntegerDomain, Randomizer
from labeldp_verify.shortcomings import says_nothing
from labeldp_verify.signature import signature_path
from labeldp_verify.verified import Decoded

from labeldp_compile import sizes
from labeldp_compile.certificate import Provenance, build_certificate
from labeldp_compile.composition import require_accounting
from labeldp_compile.errors import InputError
from labeldp_compile.ledger import account_of
from labeldp_compile.mechanisms.problem import Problem, Solved
from labeldp_compile.prior import Keep, Prior, estimate_prior
from labeldp_compile.prior.kept import kept_path
from labeldp_compile.spec import Spec, load_spec
from labeldp_compile.spec.model import Goal, PrivatePrior
from labeldp_compile.spec.validity import for_training
from labeldp_compile.whole_file import (
    replaced_when_whole,
    require_folder_writable,
    require_free,
)

MAX_REHEARSED_LABELS = 1024  # of the integers: more of them are computed alike
TOOLS = ("clarabel", "labeldp", "numpy", "onnx", "opendp", "scipy")
_PAY_AGAIN = (
    "say --overwrite to replace it (a private prior is then paid for again), "
    "or choose another directory"
)
INSECURE = "INSECURE: made with a test seed, so that anyone can undo the noise; for tests only"


@dataclass(frozen=True)
class Artifact:
    """What a compile makes: the file's bytes, its certificate, and the integers inside.

    ``kept`` is the file that keeps the noisy prior until the artifact is written, if there is one;
    ``goal`` is that of the spec.
    """

    name: str
    model: bytes
    certificate: Certificate
    randomizer: Randomizer
    kept: Path | None = None
    goal: Goal = "training"

    @cached_property
    def decoded(self) -> Decoded:
        """The same as the verifier reads it: what it is good for, and what keeps it from that."""
        domain = read_domain(self.certificate.label.domain)
        return Decoded(domain, self.randomizer, self.certificate)

    def write(
        self, directory: Path, *, overwrite: bool = False, key: Ed25519PrivateKey | None = None
    ) -> Path:
        """Write NAME.onnx, NAME.certificate.json and, with a key, NAME.onnx.sig.

        Returns the path of the first. Raises InputError if they exist already and ``overwrite`` is
        false. A signature of the file that is replaced goes with it. At last the kept prior, which
        is no longer needed, is removed.
        """
        try:
            path = self._write(directory, overwrite, key)
        except InputError as error:
            if self.kept is None:
                raise
            raise InputError(f"{error}; {_paid_for(self.kept)}") from error
        if self.kept is not None:
            self.kept.unlink(missing_ok=True)
        return path

    def _write(self, directory: Path, overwrite: bool, key: Ed25519PrivateKey | None) -> Path:
        onnx_path, json_path, sig_path = output_paths(directory, self.name)
        require_writable(directory, self.name, overwrite=overwrite)
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{directory}: cannot be made: {error.strerror}") from error
        with replaced_when_whole(json_path) as json_part, replaced_when_whole(onnx_path) as part:
            json_part.write((canonical_json(self.certificate.to_json()) + "\n").encode())
            part.write(self.model)
            sig_path.unlink(missing_ok=True)
        if key is not None:
            with replaced_when_whole(sig_path) as part:
                part.write(key.sign(self.model))
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

    ``say`` is told what was recalled or spent.

    With the ``directory`` that the artifact will be written to, it is checked before ε is spent,
    and without a ledger the noisy prior is kept there until ``Artifact.write`` is done: where
    something fails in between, the next compile finds it and spends nothing.

    Raises InputError (SpecError, DataError, BudgetError) for whatever the user can mend.
    """
    spec, source = load_spec(path)
    if directory is not None:
        require_writable(directory, spec.name, overwrite=overwrite)

    def before_spending(epsilon_prior: Fraction, epsilon_label: Fraction, rows: int | None) -> None:
        if isinstance(spec.prior, PrivatePrior):  # others have nothing to lose
            require_compilable(spec, epsilon_prior, epsilon_label, rows)

    digest = hashlib.sha256(source).hexdigest()
    account = account_of(spec, path.parent, digest, "compile", say)
    keep = None
    if directory is not None and account is None and isinstance(spec.prior, PrivatePrior):
        keep = Keep(kept_path(directory, spec.name), say)
    prior = estimate_prior(
        spec,
        path.parent,
        test_seed=test_seed,
        progress=count_progress,
        before_spending=before_spending,
        account=account,
        keep=keep,
        say=say,
    )
    where = keep.path if keep and keep.path.exists() and test_seed is None else None
    try:
        artifact = assemble(
            spec,
            prior,
            digest,
            insecure=None if test_seed is None else INSECURE,
            labels_per_user=spec.privacy.labels_per_user,
            progress=solve_progress,
        )
        _require_telling(spec, artifact)
    except Exception as error:
        remembers = where if account is None else account.path
        if remembers is None:
            raise
        reason = str(error)
        if not isinstance(error, InputError):  # a fault of a solver, or of ours
            reason = f"{spec.name}: failed ({type(error).__name__}: {error})"
        raise InputError(f"{reason}; {_paid_for(remembers)}") from error
    return replace(artifact, kept=where)


def _require_telling(spec: Spec, artifact: Artifact) -> None:
    """Raise InputError if a model is to learn from labels that are all the same."""
    proved = Fraction(artifact.certificate.exact.epsilon_label_bound)
    found = says_nothing(artifact.randomizer, proved)
    if spec.goal != "training" or found is None:
        return
    better, loss = for_training(spec.loss), ""
    if better == spec.mechanism.kind:
        better, loss = for_training("squared"), "loss: squared and "
    raise InputError(
        f"{spec.name}: with {spec.mechanism.kind} {found.text}. For goal: training take {loss}"
        f"mechanism: {{kind: {better}}}; whoever reads single labels only may say goal: labels"
    )


def require_compilable(
    spec: Spec, epsilon_prior: Fraction, epsilon_label: Fraction, rows: int | None
) -> int:
    """The most bytes of the artifact; InputError if something could fail for want of no prior.

    Whatever can fail before the prior is known fails here: the mechanism's conditions, the size of
    the file for any prior (``sizes.py``), and a rehearsal, which builds and verifies a file for
    this domain and ε by a mechanism of the same form that needs no solver. ``rows`` is n, if it is
    known.
    """
    if spec.privacy.labels_per_user is not None:
        require_accounting()
    try:
        spec.named_mechanism.require_feasible(spec.domain, spec.loss, epsilon_label)
        most = sizes.most_bytes(spec, epsilon_label, rows)
        _rehearse(spec, epsilon_prior, epsilon_label)
    except (ValueError, ArithmeticError) as error:
        raise InputError(f"{spec.name}: {error}") from error
    return most


def _rehearse(spec: Spec, epsilon_prior: Fraction, epsilon_label: Fraction) -> None:
    domain, mechanism = spec.domain, spec.named_mechanism
    if mechanism.rehearsed_whole:
        mechanism.build(problem_of(spec, domain, _few(domain), epsilon_label))
    domain = _last_labels(domain)
    mechanism = mechanism.with_fewer_labels(domain.size)
    weights = _few(domain)
    prior = Prior(weights, epsilon_prior, epsilon_label, {"kind": "public", "weights": weights})
    solved = mechanism.rehearse(problem_of(spec, domain, weights, epsilon_label))
    _certified(spec, domain, prior, solved, "0" * 64, None, spec.privacy.labels_per_user)


def _few(domain: Domain) -> list[int]:
    """Weights of a prior on few labels, whose loss is known at once."""
    k = domain.size
    return [int(y in (0, k // 2, k - 1)) for y in range(k)]


def _last_labels(domain: Domain) -> Domain:
    """The largest of very many integers: no float64 is nearer to its limits among the others."""
    if not isinstance(domain, IntegerDomain) or domain.size <= MAX_REHEARSED_LABELS:
        return domain
    positive = domain.max >= -domain.min
    low = domain.max - MAX_REHEARSED_LABELS + 1 if positive else domain.min
    high = low + MAX_REHEARSED_LABELS - 1
    default = None if domain.default is None else min(max(domain.default, low), high)
    return IntegerDomain(low, high, default)


def _paid_for(where: Path) -> str:
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
    return _certified(spec, domain, prior, solved, spec_digest, insecure, labels_per_user)


def problem_of(
    spec: Spec,
    domain: Domain,
    weights: Sequence[int],
    epsilon: Fraction,
    rows: int | None = None,
    word_bits: int | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> Problem:
    """What the mechanism of a spec is asked, for a prior of so many ``rows`` if they are known."""
    return Problem(
        domain=domain,
        weights=weights,
        epsilon=epsilon,
        loss=spec.loss,
        word_bits=word_bits,
        progress=progress,
        fits=lambda randomizer: sizes.fits(spec, rows, randomizer),
    )


_version = cache(importlib.metadata.version)  # which reads a file


def provenance_of(
    spec: Spec,
    prior: Prior,
    spec_digest: str,
    insecure: str | None,
    labels_per_user: int | None,
) -> Provenance:
    """What a certificate declares of where the artifact comes from."""
    tools = TOOLS if labels_per_user is None else (*TOOLS, "dp-accounting")
    return Provenance(
        name=spec.name,
        mechanism=spec.mechanism.kind,
        column=spec.label.column,
        epsilon_label=prior.epsilon_label,
        epsilon_prior=prior.epsilon_prior,
        prior=prior.statement,
        spec_digest=spec_digest,
        auto=spec.auto_reason,
        tools={name: _version(name) for name in tools},
        insecure=insecure,
        labels_per_user=labels_per_user,
    )


def _certified(
    spec: Spec,
    domain: Domain,
    prior: Prior,
    solved: Solved,
    spec_digest: str,
    insecure: str | None,
    labels_per_user: int | None,
) -> Artifact:
    provenance = provenance_of(spec, prior, spec_digest, insecure, labels_per_user)
    try:
        certificate = build_certificate(
            domain, solved.randomizer, spec.loss, provenance, solved.bound
        )
        model = write_model(domain, solved.randomizer, certificate.to_json())
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
    return Artifact(spec.name, model, certificate, solved.randomizer, goal=spec.goal)


def output_paths(directory: Path, name: str) -> tuple[Path, Path, Path]:
    """Where a compile writes the artifact, its certificate, and a signature if asked to."""
    artifact = directory / f"{name}.onnx"
    return artifact, directory / f"{name}.certificate.json", signature_path(artifact)


def require_writable(directory: Path, name: str, *, overwrite: bool) -> None:
    """Raise InputError if the outputs could not be written to the directory.

    Called before any ε is spent.
    """
    for path in output_paths(directory, name):
        require_free(path, overwrite=overwrite, way_out=_PAY_AGAIN)
    ancestor = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    require_folder_writable(ancestor)
