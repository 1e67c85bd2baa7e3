"""The verification, step by step.

    1  model        the file is an ONNX model of a size that is safe to read
    2  certificate  it carries one certificate, as canonical JSON, in a known format
    3  tables       ``kernel.py`` reads the integers from the bytes and proves their ratio; they are
                    those of a randomizer of the stated form
    4  rows         every label's probabilities sum to exactly one
    5  privacy      no output is more than e^ε₂ times as probable under one label as under another
    6  utility      bias and noisy label loss are what the certificate states
    7  optimality   the dual values in the certificate prove its lower bound on the loss
    8  sets         outputs are the sets of classes that are stated, and so is their noise
                    (only if it is stated)
    9  composition  several labels of one user spend what is stated (only if it is stated), and so
       and person   does a person, the prior included (only if it is stated)
    10 claims       counts, digests, sums of ε and exact fractions agree with the integers
    11 whole file   the file equals, byte for byte, the one rebuilt from the decoded integers
    12 kernel       its ratio is that of step 5, which shares no code with it
    13 execution    the running graph gives the integers' outputs on both sides of its thresholds
    14 secure       the artifact does not say that it was made with a test seed
    15 spec         the certificate names the given spec and agrees with it (only with a spec)
    16 signature    the holder of the given key signed exactly this file (only with a key)
    17 limits       ε, name, outputs and bias are what a gate allows (only with limits)

A step that fails ends the verification: later steps rely on it. The graph is executed only after
step 12.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from labeldp_verify import kernel
from labeldp_verify.claims import Certificate, RadiusOptimality
from labeldp_verify.claims.claim import Claim, Evidence, all_claims
from labeldp_verify.claims.tables import Tables, decimals
from labeldp_verify.claims.whole_file import check_whole_file
from labeldp_verify.cost import (
    charge_composition,
    charge_execution,
    charge_kernel,
    charge_labels,
    charge_tables,
    claimed_labels,
)
from labeldp_verify.decode import (
    MAX_LABELS,
    FileForm,
    read_certificate,
    read_domain,
    read_form,
    read_groups,
    read_model,
    read_sets,
)
from labeldp_verify.errors import demand, short
from labeldp_verify.execute import run_trials
from labeldp_verify.forms import Domain, Integers
from labeldp_verify.forms.groups import MAX_TABLES
from labeldp_verify.graph.nodes import ModelProto

if TYPE_CHECKING:  # cryptography is loaded for those who bring a key
    from labeldp_verify.limits import Limits
    from labeldp_verify.signature import Signed

MAX_FILE_BYTES = 64 * 1024 * 1024
LIMITS_CHECK = "limits"  # the name of the only check that is not about the file itself
MOST_DISAGREEMENTS = 5  # of a spec and a certificate, that are listed
SpecCheck = Callable[[Certificate, Integers], Sequence[str]]
"""From a certificate and the integers of its file to the differences from a spec, in words."""


class Verification:
    """The state that the steps hand on: file → model → certificate, domain, tables."""

    model: ModelProto
    certificate: Certificate
    domain: Domain
    form: FileForm
    integers: Integers
    tables: Tables

    def __init__(
        self,
        data: bytes,
        spec: SpecCheck | None,
        signed: Signed | None,
        limits: Limits | None = None,
        *,
        run_graph: bool = True,
    ) -> None:
        """Nothing is checked yet; ``run_graph`` is whether the step execution is one."""
        self.data, self.spec, self.signed, self.limits = data, spec, signed, limits
        self.run_graph = run_graph
        self.digest = hashlib.sha256(data).hexdigest()

    def steps(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Each step by its name; it says what was found, or raises CheckFailedError."""
        yield "model", self._check_model
        yield "certificate", self._check_certificate
        yield "tables", self._check_tables
        yield "rows", self.tables.rows
        yield "privacy", self.tables.privacy
        yield "utility", self._check_utility
        yield "optimality", self.tables.optimality
        for claim in all_claims():
            if claim.has_step and claim.part in self.certificate.parts:
                yield claim.part, partial(self._check_claim, claim)
        yield "claims", self._check_claims
        yield "whole file", self._check_whole_file
        yield "kernel", self._check_kernel
        if self.run_graph:
            yield "execution", self._check_execution
        yield "secure", self._check_secure
        if self.spec is not None:
            yield "spec", self._check_spec
        if self.signed is not None:
            yield "signature", self._check_signature
        if self.limits is not None:
            yield LIMITS_CHECK, self._check_limits

    def _check_model(self) -> str:  # 1
        demand(len(self.data) <= MAX_FILE_BYTES, "the file is larger than 64 MiB")
        self.model = read_model(self.data)
        return f"an ONNX model of {len(self.data):,} bytes"

    def _check_certificate(self) -> str:  # 2
        self.certificate = read_certificate(self.model)
        claimed = claimed_labels(self.certificate.label.domain)
        demand(claimed <= MAX_LABELS, "there are more labels than an artifact can have")
        tables = len(self.certificate.tables)
        demand(tables <= MAX_TABLES, "there are more groups than an artifact can have")
        self._charge_labels()
        self.domain = read_domain(self.certificate.label.domain)
        for claim in all_claims():
            claim.require(self.certificate, self.domain)
        return f"one certificate in canonical JSON, format {self.certificate.format_version}"

    def _charge_labels(self) -> None:
        """The cost of all further steps, from counts that the certificate claims."""
        certificate = self.certificate
        witnesses = [t.optimality for t in certificate.tables if t.optimality is not None]
        radii = any(isinstance(one, RadiusOptimality) for one in witnesses)
        charge_labels(
            certificate.label.domain,
            len(certificate.tables),
            certificate.utility.loss,
            certificate.form,
            duals=bool(witnesses) and not radii,
            radii=radii,
            by_group=certificate.groups is not None,
        )
        if certificate.composition is not None:
            charge_composition()
        charge_execution()

    def _check_tables(self) -> str:  # 3
        certificate, domain = self.certificate, self.domain
        demand(certificate.labels == domain.size, "the number of labels is misstated")
        charge_tables(self.model, certificate.form)
        charge_kernel(self.data)
        groups = read_groups(certificate)
        sets = read_sets(certificate.sets, domain.size)
        self.form = read_form(certificate.form, self.model, self.data, domain, groups, sets)
        self.integers = Integers.of(domain, self.form.randomizer)
        self.tables = Tables(certificate, self.integers)
        return self.tables.tables()

    def _check_utility(self) -> str:  # 6
        words = self.tables.utility()
        for claim in all_claims():
            if not claim.has_step and claim.part in self.certificate.parts:
                claim.check(self.found())
        return words

    def found(self) -> Evidence:
        """The facts that claims are checked against, after the step utility."""
        return Evidence(self.integers, self.certificate, self.tables.ratios, self.tables.uses)

    def _check_claim(self, claim: Claim[Any]) -> str:  # 8, 9
        return claim.check(self.found())

    def _check_claims(self) -> str:  # 10
        check_whole_file(self.found(), self.form.randomizer.form)
        digest = self.certificate.digests.tables
        return (
            "counts, exact fractions and sums of ε agree with the integers; tables digest "
            f"{digest[:16]}…"
        )

    def _check_whole_file(self) -> str:  # 11
        try:
            rebuilt = self.form.rebuild(self.domain, self.certificate.to_json())
        except (ValueError, IndexError):  # no file has these integers
            rebuilt = b""
        demand(rebuilt == self.data, "the file differs from the file that its integers define")
        return (
            "the file equals, byte for byte, the file rebuilt from the decoded integers "
            f"(sha256 {self.digest[:16]}…)"
        )

    def _check_kernel(self) -> str:  # 12
        ratio, proved = self.form.proved, max(self.tables.ratios)
        demand(ratio == proved, f"the kernel's ratio is {short(ratio)}, not {short(proved)}")
        return (
            f"ε ≤ {decimals(kernel.epsilon_of(ratio))}, proved from the bytes by a second reader "
            "that imports nothing else of labeldp"
        )

    def _check_execution(self) -> str:  # 13
        thresholds, outside, *rounding = run_trials(self.data, self.domain, self.form)
        real = f", for {sum(rounding):,} where a real label's row changes" if rounding else ""
        groups = "" if self.form.groups is None else ", in every group and in unlisted groups"
        return (
            "onnxruntime, with its optimisations and without, computes the outputs of the integers "
            f"for {thresholds:,} labels and words on both sides of the thresholds{real}, and for "
            f"{outside:,} labels outside the domain{groups}"
        )

    def _check_secure(self) -> str:  # 14
        reason = self.certificate.insecure
        demand(reason is None, f"the certificate says: {short(reason, 120)}")
        return "declared to be made with secure randomness; no file can prove it"

    def _check_spec(self) -> str:  # 15
        assert self.spec is not None
        found = list(self.spec(self.certificate, self.integers))
        if len(found) > MOST_DISAGREEMENTS + 1:  # another spec, and not another version of this one
            found.sort(key=lambda words: not words.startswith("privacy."))
            found = [*found[:MOST_DISAGREEMENTS], f"{len(found) - MOST_DISAGREEMENTS} more"]
        demand(not found, "; ".join(found))
        return "the certificate names this spec, and agrees with it"

    def _check_signature(self) -> str:  # 16
        assert self.signed is not None
        refusal = self.signed.refusal(self.data)
        demand(refusal is None, str(refusal))
        return (
            "the holder of the key signed exactly this file, its declared fields included "
            f"(sha256 of the key {self.signed.fingerprint()[:16]}…)"
        )

    def _check_limits(self) -> str:  # 17
        assert self.limits is not None
        exceeded = self.limits.exceeded(self.certificate, self.integers)
        demand(not exceeded, "; ".join(exceeded))
        return "all limits hold"
