"""The verification, step by step.

    1  model        the file is an ONNX model of a size that is safe to read
    2  certificate  it carries one certificate, as canonical JSON, in a known format
    3  tables       the constants of its graph decode to a randomizer of a known form
    4  rows         every label's probabilities sum to exactly one
    5  privacy      no output is more than e^ε₂ times as probable under one label as under another
    6  utility      bias and noisy label loss are what the certificate states
    7  optimality   the dual values in the certificate prove its lower bound on the loss
    8  sets         outputs are the sets of classes that are stated, and so is their noise
                    (only if it is stated)
    9  composition  several labels of one user pay what is stated (only if it is stated)
    10 claims       counts, digests, sums of ε and exact fractions agree with the integers
    11 whole file   the file equals, byte for byte, the one rebuilt from the decoded integers
    12 execution    the running graph gives the integers' outputs on both sides of its thresholds
    13 secure       the artifact does not say that it was made with a test seed
    14 spec         the certificate names the given spec and agrees with it (only with a spec)
    15 signature    the holder of the given key signed exactly this file (only with a key)
    16 limits       ε, name, outputs and bias are what a gate allows (only with limits)

A step that fails ends the verification: later steps rely on it. The graph is executed only after
step 11.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_verify.analysis import TooMuchWorkError
from labeldp_verify.artifact import tables_digest
from labeldp_verify.artifact.messages import ModelProto
from labeldp_verify.budget import (
    DEFAULT_BUDGET,
    Budget,
    check_deadline,
    naming,
    spending,
)
from labeldp_verify.certificate import ADJACENCY, Certificate, FieldLists, rational
from labeldp_verify.composition import check_composition
from labeldp_verify.cost import charge_labels, charge_tables, claimed_labels
from labeldp_verify.decode import (
    DecodeError,
    FileForm,
    read_certificate,
    read_domain,
    read_form,
    read_groups,
    read_model,
    read_sets,
)
from labeldp_verify.decode.file import MAX_LABELS
from labeldp_verify.errors import InputError
from labeldp_verify.execute import run_trials
from labeldp_verify.forms import Domain, GroupedWindows
from labeldp_verify.forms.groups import MAX_TABLES
from labeldp_verify.group_claims import GroupClaims
from labeldp_verify.joint_claims import require_joint
from labeldp_verify.limits import Limits
from labeldp_verify.prior_claims import check_private_priors
from labeldp_verify.report import (
    LIMITS,
    Check,
    CheckFailedError,
    Report,
    agree,
    demand,
    short,
)
from labeldp_verify.table_claims import TableClaims
from labeldp_verify.verified import Decoded, DecodedGroups

if TYPE_CHECKING:  # cryptography is loaded for those who bring a key
    from labeldp_verify.signature import Signed

MAX_FILE_BYTES = 64 * 1024 * 1024
SpecCheck = Callable[[Certificate], Sequence[str]]
"""From a certificate to what in it does not fit a spec, in plain words."""


def verify_file(
    path: Path,
    spec: SpecCheck | None = None,
    signed: Signed | None = None,
    budget: Budget = DEFAULT_BUDGET,
    limits: Limits | None = None,
) -> Report:
    """Verify an artifact; raises unless every check holds.

    Args:
        path: the ONNX file; nothing in it is trusted.
        spec: says what in a certificate does not fit a spec (``labeldp verify --spec``).
        signed: what the file is to be signed with (``signature.read_signed_beside``).
        budget: processor seconds and bytes at most; by default 20 s and 2 GB.
        limits: what else is demanded of the file.

    Returns:
        The report: the numbered checks of ``steps.py``, and the certificate.

    Raises:
        VerificationError: a check failed; its ``report`` says which.
        InputError: the file is missing or cannot be read; TooLargeError, one of them, if checking
            it would exceed the budget.

    >>> from labeldp_compile import compile_spec  # another distribution
    >>> from pathlib import Path
    >>> path = compile_spec("specs/health-rating.yaml").write(Path("build"))
    >>> from labeldp_verify import verify_file
    >>> verify_file(path).certificate.privacy.epsilon_label
    1.0
    """
    return check_file(path, spec, signed, budget, limits).require()


def check_file(
    path: Path,
    spec: SpecCheck | None = None,
    signed: Signed | None = None,
    budget: Budget = DEFAULT_BUDGET,
    limits: Limits | None = None,
) -> Report:
    """The report on an artifact, whatever the file contains; for arguments see ``verify_file``.

    Raises InputError if the file is missing or cannot be read, and TooLargeError, one of them, if
    checking it would exceed the budget.

    >>> from pathlib import Path
    >>> from labeldp_verify import check_file
    >>> Path("no-artifact.onnx").write_bytes(b"no artifact")
    11
    >>> report = check_file(Path("no-artifact.onnx"))
    >>> report.ok, report.checks[-1].name
    (False, 'model')
    """
    with naming(path):
        return check_bytes(read_artifact(path), spec, signed, budget, limits)


def check_bytes(
    data: bytes,
    spec: SpecCheck | None = None,
    signed: Signed | None = None,
    budget: Budget = DEFAULT_BUDGET,
    limits: Limits | None = None,
    *,
    run_graph: bool = True,
) -> Report:
    """The report on the bytes of an artifact.

    Without ``run_graph`` the check ``execution`` is missing from it: every integer is checked, and
    onnxruntime is not.

    Raises TooLargeError, an InputError, if checking the file would exceed the budget: nothing is
    then said of it. An InputError of ``spec`` goes through.

    >>> from labeldp_verify import check_bytes
    >>> check_bytes(b"no artifact").ok
    False
    """
    with spending(budget):
        return _report(_Verification(data, spec, signed, limits, run_graph=run_graph))


def _report(verification: _Verification) -> Report:
    checks: list[Check] = []
    for name, step in verification.steps():
        try:
            checks.append(Check(name, True, step()))
        except (InputError, MemoryError):  # the spec, not the file; or too much work
            raise
        except (CheckFailedError, DecodeError, TooMuchWorkError) as error:
            checks.append(Check(name, False, str(error)))
        except Exception as error:  # whatever a hostile file provokes is a failed check
            checks.append(Check(name, False, f"cannot be checked ({type(error).__name__})"))
        if not checks[-1].ok:
            break
        check_deadline()
    certificate = getattr(verification, "certificate", None)
    found = verification.decoded() if checks[-1].ok else None
    grouped = found if isinstance(found, DecodedGroups) else None
    decoded = found if isinstance(found, Decoded) else None
    return Report(tuple(checks), certificate, decoded, verification.digest, grouped)


class _Verification:
    """The state that the steps hand on: file → model → certificate, domain, tables."""

    model: ModelProto
    certificate: Certificate
    domain: Domain
    form: FileForm
    claims: TableClaims | GroupClaims

    def __init__(
        self,
        data: bytes,
        spec: SpecCheck | None,
        signed: Signed | None,
        limits: Limits | None = None,
        *,
        run_graph: bool = True,
    ) -> None:
        self.data, self.spec, self.signed, self.limits = data, spec, signed, limits
        self.run_graph = run_graph
        self.digest = hashlib.sha256(data).hexdigest()

    def steps(self) -> Iterator[tuple[str, Callable[[], str]]]:
        yield "model", self.check_model
        yield "certificate", self.check_certificate
        yield "tables", self.check_tables
        yield "rows", self.check_rows
        yield "privacy", self.check_privacy
        yield "utility", self.check_utility
        yield "optimality", self.check_optimality
        if self.certificate.sets is not None:
            yield "sets", self.check_sets
        if self.certificate.composition is not None:
            yield "composition", self.check_composition
        yield "claims", self.check_claims
        yield "whole file", self.check_whole_file
        if self.run_graph:
            yield "execution", self.check_execution
        yield "secure", self.check_secure
        if self.spec is not None:
            yield "spec", self.check_spec
        if self.signed is not None:
            yield "signature", self.check_signature
        if self.limits is not None:
            yield LIMITS, self.check_limits

    def decoded(self) -> Decoded | DecodedGroups:
        """For a file that has passed every check."""
        randomizer = self.form.randomizer
        if isinstance(randomizer, GroupedWindows):
            return DecodedGroups(self.domain, randomizer, self.certificate, self.digest)
        return Decoded(self.domain, randomizer, self.certificate, self.digest)

    def check_model(self) -> str:  # 1
        demand(len(self.data) <= MAX_FILE_BYTES, "the file is larger than 64 MiB")
        self.model = read_model(self.data)
        return f"an ONNX model of {len(self.data):,} bytes"

    def check_certificate(self) -> str:  # 2
        self.certificate = read_certificate(self.model)
        claimed = claimed_labels(self.certificate.label.domain)
        demand(claimed <= MAX_LABELS, "there are more labels than an artifact can have")
        tables = 0 if self.certificate.groups is None else len(self.certificate.groups.tables)
        demand(tables <= MAX_TABLES, "there are more groups than an artifact can have")
        charge_labels(self.certificate)
        self.domain = read_domain(self.certificate.label.domain)
        require_joint(self.certificate, self.domain)
        return f"one certificate, canonical, format {self.certificate.format_version}"

    def check_tables(self) -> str:  # 3
        certificate, domain = self.certificate, self.domain
        demand(certificate.labels == domain.size, "the number of labels is misstated")
        charge_tables(self.model, certificate.form)
        groups = None if certificate.groups is None else read_groups(certificate.groups)
        sets = read_sets(certificate.sets, domain.size)
        self.form = read_form(certificate.form, self.model, domain, groups, sets)
        randomizer = self.form.randomizer
        if isinstance(randomizer, GroupedWindows):
            self.claims = GroupClaims(certificate, domain, randomizer)
        else:
            self.claims = TableClaims(certificate, domain, randomizer)
        return self.claims.tables()

    def check_rows(self) -> str:  # 4
        return self.claims.rows()

    def check_privacy(self) -> str:  # 5
        return self.claims.privacy()

    def check_utility(self) -> str:  # 6
        return self.claims.utility()

    def check_optimality(self) -> str:  # 7
        return self.claims.optimality()

    def check_sets(self) -> str:  # 8
        if not isinstance(self.claims, TableClaims):
            raise CheckFailedError("tables by group state no sets")
        return self.claims.sets()

    def check_composition(self) -> str:  # 9
        randomizer = self.form.randomizer
        assert not isinstance(randomizer, GroupedWindows)  # which state none
        return check_composition(self.certificate, randomizer, self.claims.ratio)

    def check_claims(self) -> str:  # 10
        exact = self.certificate.exact
        agree(self.certificate, "form", self.form.randomizer.form)
        agree(self.certificate, "outputs", self.form.randomizer.outputs)
        digest = tables_digest(self.domain, self.form.randomizer)
        agree(self.certificate, "digests.tables", digest)
        agree(self.certificate, "privacy.adjacency", ADJACENCY)
        lists = FieldLists.of(
            composition=self.certificate.composition is not None,
            groups=self.certificate.groups is not None,
            sets=self.certificate.sets is not None,
            joint=self.certificate.joint is not None,
        )
        agree(self.certificate, "fields.proved", lists.proved)
        agree(self.certificate, "fields.declared", lists.declared)
        label, prior = rational(exact.epsilon_label), rational(exact.epsilon_prior)
        demand(prior >= 0, "the ε spent on the prior is negative")
        check_private_priors(self.certificate, prior)
        agree(self.certificate, "exact.epsilon_total", str(label + prior))
        for part, value in [("label", label), ("prior", prior), ("total", label + prior)]:
            agree(self.certificate, f"exact.epsilon_{part}", str(value))
            agree(self.certificate, f"privacy.epsilon_{part}", float(value))
        return f"counts, exact fractions and sums of ε agree; tables digest {digest[:16]}…"

    def check_whole_file(self) -> str:  # 11
        rebuilt = self.form.rebuild(self.domain, self.certificate.to_json())
        demand(rebuilt == self.data, "the file is not the one that its integers define")
        return (
            "the file equals, byte for byte, the one rebuilt from the decoded integers "
            f"(sha256 {self.digest[:16]}…)"
        )

    def check_execution(self) -> str:  # 12
        thresholds, outside, *rounding = run_trials(self.data, self.domain, self.form)
        real = f", for {sum(rounding):,} where a real label's row changes" if rounding else ""
        groups = "" if self.form.groups is None else ", in every group and in unlisted ones"
        return (
            f"the running graph gave the integers' output for {thresholds:,} labels and words on "
            f"both sides of the thresholds{real}, and for {outside:,} labels outside the domain"
            f"{groups}, with onnxruntime's optimisations and without"
        )

    def check_secure(self) -> str:  # 13
        reason = self.certificate.insecure
        demand(reason is None, f"the certificate says: {short(reason, 120)}")
        return "declared to be made with secure randomness (a declaration: no file can prove it)"

    def check_spec(self) -> str:  # 14
        assert self.spec is not None
        disagreements = self.spec(self.certificate)
        demand(not disagreements, "; ".join(disagreements))
        return "the certificate names this spec, and agrees with it"

    def check_signature(self) -> str:  # 15
        assert self.signed is not None
        refusal = self.signed.refusal(self.data)
        demand(refusal is None, str(refusal))
        return (
            "the holder of the key signed exactly this file, its declared fields included "
            f"(sha256 of the key {self.signed.fingerprint()[:16]}…)"
        )

    def check_limits(self) -> str:  # 16
        assert self.limits is not None
        exceeded = self.limits.exceeded(self.certificate, self.domain)
        demand(not exceeded, "; ".join(exceeded))
        return "everything that was asked of it holds"


def read_artifact(path: Path) -> bytes:
    """The bytes of a file, at most one more than an artifact may have; InputError if unreadable.

    >>> from pathlib import Path
    >>> from labeldp_verify import read_artifact
    >>> Path("no-artifact.onnx").write_bytes(b"no artifact")
    11
    >>> read_artifact(Path("no-artifact.onnx"))
    b'no artifact'
    """
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
