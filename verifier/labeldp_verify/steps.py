"""The verification, step by step.

    1  model        the file is an ONNX model of a size that is safe to read
    2  certificate  it carries one certificate, as canonical JSON, in a known format
    3  tables       the constants of its graph decode to a randomizer of a known form
    4  rows         every label's probabilities sum to exactly one
    5  privacy      no output is more than e^ε₂ times as probable under one label as under another
    6  utility      bias and noisy label loss are what the certificate states
    7  optimality   the dual values in the certificate prove its lower bound on the loss
    8  composition  several labels of one user pay what is stated (only if it is stated)
    9  claims       counts, digests, sums of ε and exact fractions agree with the integers
    10 whole file   the file equals, byte for byte, the one rebuilt from the decoded integers
    11 execution    the running graph gives the integers' outputs on both sides of its thresholds
    12 secure       the artifact does not say that it was made with a test seed
    13 spec         the certificate names the given spec and agrees with it (only with a spec)
    14 signature    the holder of the given key signed exactly this file (only with a key)
    15 limits       ε, name, outputs and bias are what a gate allows (only with limits)

A step that fails ends the verification: later steps rely on it. The graph is executed only after
step 10.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import onnx

from labeldp_verify.analysis import Analysis, TooMuchWorkError, analyse
from labeldp_verify.analysis.bounds import exp_bounds, least_log_bound
from labeldp_verify.analysis.strays import strays
from labeldp_verify.artifact import FORMAT_VERSION, tables_digest
from labeldp_verify.budget import (
    DEFAULT_BUDGET,
    Budget,
    check_deadline,
    naming,
    spending,
)
from labeldp_verify.certificate import ADJACENCY, Certificate, FieldLists, rational
from labeldp_verify.composition import check_composition
from labeldp_verify.cost import charge_labels, charge_outputs, charge_tables, claimed_labels
from labeldp_verify.decode import (
    DecodeError,
    FileForm,
    read_certificate,
    read_domain,
    read_form,
    read_model,
)
from labeldp_verify.decode.file import MAX_LABELS
from labeldp_verify.errors import InputError
from labeldp_verify.execute import run_trials
from labeldp_verify.forms import CategoricalDomain, Domain
from labeldp_verify.limits import Limits
from labeldp_verify.optimality import check_optimality
from labeldp_verify.report import (
    LIMITS,
    Check,
    CheckFailedError,
    Report,
    agree,
    demand,
    short,
    up_to,
)
from labeldp_verify.signature import Signed
from labeldp_verify.verified import Decoded

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_EPSILON = 60
LOSSES = ("squared", "absolute", "poisson", "zero_one")
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
        signed: what the file is to be signed with (``labeldp_verify.signature.read_signed``).
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
) -> Report:
    """The report on the bytes of an artifact.

    Raises TooLargeError, an InputError, if checking the file would exceed the budget: nothing is
    then said of it. An InputError of ``spec`` goes through.

    >>> from labeldp_verify import check_bytes
    >>> check_bytes(b"no artifact").ok
    False
    """
    with spending(budget):
        return _report(_Verification(data, spec, signed, limits))


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
    decoded = verification.decoded() if checks[-1].ok else None
    return Report(tuple(checks), certificate, decoded, verification.digest)


class _Verification:
    """The state that the steps hand on: file → model → certificate, domain, tables."""

    model: onnx.ModelProto
    certificate: Certificate
    domain: Domain
    form: FileForm
    analysis: Analysis[Any]

    def __init__(
        self,
        data: bytes,
        spec: SpecCheck | None,
        signed: Signed | None,
        limits: Limits | None = None,
    ) -> None:
        self.data, self.spec, self.signed, self.limits = data, spec, signed, limits
        self.digest = hashlib.sha256(data).hexdigest()

    def steps(self) -> Iterator[tuple[str, Callable[[], str]]]:
        yield "model", self.check_model
        yield "certificate", self.check_certificate
        yield "tables", self.check_tables
        yield "rows", self.check_rows
        yield "privacy", self.check_privacy
        yield "utility", self.check_utility
        yield "optimality", self.check_optimality
        if self.certificate.composition is not None:
            yield "composition", self.check_composition
        yield "claims", self.check_claims
        yield "whole file", self.check_whole_file
        yield "execution", self.check_execution
        yield "secure", self.check_secure
        if self.spec is not None:
            yield "spec", self.check_spec
        if self.signed is not None:
            yield "signature", self.check_signature
        if self.limits is not None:
            yield LIMITS, self.check_limits

    def decoded(self) -> Decoded:
        """For a file that has passed every check."""
        return Decoded(self.domain, self.form.randomizer, self.certificate, self.digest)

    def check_model(self) -> str:  # 1
        demand(len(self.data) <= MAX_FILE_BYTES, "the file is larger than 64 MiB")
        self.model = read_model(self.data)
        return f"an ONNX model of {len(self.data):,} bytes"

    def check_certificate(self) -> str:  # 2
        self.certificate = read_certificate(self.model)
        claimed = claimed_labels(self.certificate.label.domain)
        demand(claimed <= MAX_LABELS, "there are more labels than an artifact can have")
        charge_labels(self.certificate)
        self.domain = read_domain(self.certificate.label.domain)
        demand(self.certificate.format_version == FORMAT_VERSION, "unknown format of certificate")
        return f"one certificate, canonical, format {FORMAT_VERSION}"

    def check_tables(self) -> str:  # 3
        demand(self.certificate.labels == self.domain.size, "the number of labels is misstated")
        charge_tables(self.model, self.certificate.form)
        self.form = read_form(self.certificate.form, self.model, self.domain)
        self.analysis = analyse(self.form.randomizer)
        return f"the graph's constants decode to {self.analysis.description()}"

    def check_rows(self) -> str:  # 4
        reason = self.analysis.why_not_distributions()
        demand(reason is None, str(reason))
        r = self.form.randomizer
        bits = r.word_bits * r.words_per_label
        return f"every label's probabilities are whole counts that sum to exactly 2^{bits}"

    def check_privacy(self) -> str:  # 5
        ratio = self._ratio = self.analysis.worst_ratio()
        epsilon = rational(self.certificate.exact.epsilon_label)
        demand(0 <= epsilon <= MAX_EPSILON, f"ε must lie in 0 … {MAX_EPSILON}")
        demand(
            ratio <= exp_bounds(epsilon)[0],
            f"an output can be {float(ratio):.6g} times as probable under one label as under "
            f"another, more than e^{float(epsilon):g}",
        )
        agree(self.certificate, "exact.realised_ratio", str(ratio))
        bound = least_log_bound(ratio)
        agree(self.certificate, "exact.epsilon_label_bound", str(bound))
        agree(self.certificate, "privacy.epsilon_label_bound", float(bound))
        return (
            f"whatever the two labels, no output is more than {up_to(ratio)} times as probable: "
            f"ε ≤ {_decimals(bound)}, declared {float(epsilon):.12g}"
        )

    def check_utility(self) -> str:  # 6
        domain, loss = self.domain, self.certificate.utility.loss
        weights = self.certificate.prior.weights
        counts = all(type(w) is int and 0 <= w < 2**200 for w in weights)
        demand(counts and len(weights) == domain.size and sum(weights) > 0, "the prior is wrong")
        uniform = self.certificate.prior.kind == "uniform"
        demand(not uniform or len(set(weights)) == 1, "the prior is not uniform, as it claims")
        demand(loss in LOSSES, f"the loss {short(loss)} is unknown")
        charge_outputs(self.form.randomizer, domain.size)
        biases: list[Fraction] | None = None
        square, astray = Fraction(0), strays(domain)
        if not isinstance(domain, CategoricalDomain):
            biases = self.analysis.biases(domain.labels(), astray)
            pairs = zip(weights, biases, strict=True)
            square = sum((w * b * b for w, b in pairs), Fraction(0)) / sum(weights)
        largest = None if biases is None else max(map(abs, biases))
        agree(self.certificate, "exact.largest_bias", None if largest is None else str(largest))
        agree(self.certificate, "utility.largest_bias", None if largest is None else float(largest))
        agree(self.certificate, "utility.rms_bias", None if biases is None else math.sqrt(square))
        if self.certificate.utility.biases is not None:
            agree(self.certificate, "utility.biases", [float(b) for b in biases or []])
        agree(self.certificate, "utility.output_rounding", float(self.analysis.output_rounding()))
        low, high = self.analysis.expected_loss(domain.labels(), weights, loss, astray)
        demand(float(low) == float(high), "the loss cannot be bounded tightly")
        agree(self.certificate, "exact.noisy_label_loss", None if loss == "poisson" else str(low))
        agree(self.certificate, "utility.noisy_label_loss", float(low))
        self._biases = biases
        stated = "" if largest is None else f"; the largest bias is {float(largest):.6g}"
        return f"the noisy label loss under the stated prior is {float(low):.12g} ({loss}){stated}"

    def check_optimality(self) -> str:  # 7
        return check_optimality(self.certificate, self.domain, self._biases)

    def check_composition(self) -> str:  # 8
        return check_composition(self.certificate, self.form.randomizer, self._ratio)

    def check_claims(self) -> str:  # 9
        exact = self.certificate.exact
        agree(self.certificate, "form", self.form.randomizer.form)
        agree(self.certificate, "outputs", self.form.randomizer.outputs)
        digest = tables_digest(self.domain, self.form.randomizer)
        agree(self.certificate, "digests.tables", digest)
        agree(self.certificate, "privacy.adjacency", ADJACENCY)
        lists = FieldLists.of(composition=self.certificate.composition is not None)
        agree(self.certificate, "fields.proved", lists.proved)
        agree(self.certificate, "fields.declared", lists.declared)
        label, prior = rational(exact.epsilon_label), rational(exact.epsilon_prior)
        demand(prior >= 0, "the ε spent on the prior is negative")
        agree(self.certificate, "exact.epsilon_total", str(label + prior))
        for part, value in [("label", label), ("prior", prior), ("total", label + prior)]:
            agree(self.certificate, f"exact.epsilon_{part}", str(value))
            agree(self.certificate, f"privacy.epsilon_{part}", float(value))
        return f"counts, exact fractions and sums of ε agree; tables digest {digest[:16]}…"

    def check_whole_file(self) -> str:  # 10
        rebuilt = self.form.rebuild(self.domain, self.certificate.to_json())
        demand(rebuilt == self.data, "the file is not the one that its integers define")
        return (
            "the file equals, byte for byte, the one rebuilt from the decoded integers "
            f"(sha256 {self.digest[:16]}…)"
        )

    def check_execution(self) -> str:  # 11
        thresholds, outside, *rounding = run_trials(self.data, self.domain, self.form)
        real = f", for {sum(rounding):,} where a real label's row changes" if rounding else ""
        return (
            f"the running graph gave the integers' output for {thresholds:,} labels and words on "
            f"both sides of the thresholds{real}, and for {outside:,} labels outside the domain, "
            "with onnxruntime's optimisations and without"
        )

    def check_secure(self) -> str:  # 12
        reason = self.certificate.insecure
        demand(reason is None, f"the certificate says: {short(reason, 120)}")
        return "declared to be made with secure randomness (a declaration: no file can prove it)"

    def check_spec(self) -> str:  # 13
        assert self.spec is not None
        disagreements = self.spec(self.certificate)
        demand(not disagreements, "; ".join(disagreements))
        return "the certificate names this spec, and agrees with it"

    def check_signature(self) -> str:  # 14
        assert self.signed is not None
        demand(self.signed.holds(self.data), "the key did not sign this file")
        return (
            "the holder of the key signed exactly this file, its declared fields included "
            f"(sha256 of the key {self.signed.fingerprint()[:16]}…)"
        )

    def check_limits(self) -> str:  # 15
        assert self.limits is not None
        exceeded = self.limits.exceeded(self.certificate)
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


def _decimals(bound: Fraction) -> str:
    """A multiple of 10^-12 in full."""
    whole, part = divmod(int(bound * 10**12), 10**12)
    return f"{whole}.{part:012d}".rstrip("0").rstrip(".")
