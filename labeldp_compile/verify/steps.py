"""The verification, step by step.

    1  model        the file is an ONNX model of a size that is safe to read
    2  certificate  it carries one certificate, as canonical JSON, in a known format
    3  tables       the constants of its graph decode to a randomizer of a known form
    4  rows         every label's probabilities sum to exactly one
    5  privacy      no output is more than e^ε₂ times as probable under one label as under another
    6  utility      bias and noisy label loss are what the certificate states
    7  optimality   the dual values in the certificate prove its lower bound on the loss
    8  claims       counts, digests, sums of ε and exact fractions agree with the integers
    9  whole file   the file equals, byte for byte, the one rebuilt from the decoded integers
    10 execution    the running graph gives the integers' outputs on both sides of its thresholds
    11 secure       the artifact does not say that it was made with a test seed
    12 spec         the certificate names the given spec and agrees with it (only with a spec)
    13 signature    the holder of the given key signed exactly this file (only with a key)

A step that fails ends the verification: later steps rely on it. The graph is executed only after
step 9.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import onnx

from labeldp_compile.artifact import FORMAT_VERSION, tables_digest
from labeldp_compile.artifact.certificate_fields import ADJACENCY, DECLARED, PROVED
from labeldp_compile.errors import InputError
from labeldp_compile.randomizer import CategoricalDomain, Domain, WindowRandomizer
from labeldp_compile.randomizer.bias_rule import BiasRule
from labeldp_compile.verify import decode
from labeldp_compile.verify.absolute_bound import absolute_dual_is_feasible
from labeldp_compile.verify.bounds import exp_bounds, least_log_bound
from labeldp_compile.verify.execute import open_session, outside_mismatches, threshold_mismatches
from labeldp_compile.verify.form import Form, TooMuchWorkError
from labeldp_compile.verify.forms import read_form
from labeldp_compile.verify.lower_bound import bound_value, dual_is_feasible
from labeldp_compile.verify.report import Check, Report
from labeldp_compile.verify.shape import decimal, rational
from labeldp_compile.verify.signature import Signed
from labeldp_compile.verify.spec_match import spec_disagreements
from labeldp_compile.verify.zero_one_bound import zero_one_dual_is_feasible

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_EPSILON = 60
LOSSES = ("squared", "absolute", "poisson", "zero_one")
BOUND_FIELDS = (
    ("utility", "loss_lower_bound"),
    ("utility", "certified_gap"),
    ("exact", "loss_lower_bound"),
)
OVER = {
    "unbiased": "of all ε-DP unbiased randomizers",
    "max": "of all ε-DP randomizers within the bias",
    "penalty": "of all ε-DP randomizers, for loss plus penalty",
    "any": "of all ε-DP randomizers",
}


class CheckFailedError(Exception):
    """A step's statement does not hold; the message is its detail."""


def verify_file(path: Path, spec: Path | None = None, signed: Signed | None = None) -> Report:
    """Verify an artifact; raises VerificationError unless every check holds.

    Raises InputError if the file (or the spec) is missing or cannot be read.
    """
    return check_file(path, spec, signed).require()


def check_file(path: Path, spec: Path | None = None, signed: Signed | None = None) -> Report:
    """The report on an artifact, whatever the file contains.

    Raises InputError if the file (or the spec) is missing or cannot be read.
    """
    spec_bytes = None if spec is None else read_artifact(spec)
    return check_bytes(read_artifact(path), spec_bytes, signed)


def check_bytes(data: bytes, spec: bytes | None = None, signed: Signed | None = None) -> Report:
    """The report on the bytes of an artifact."""
    verification = _Verification(data, spec, signed)
    checks: list[Check] = []
    for name, step in verification.steps():
        try:
            checks.append(Check(name, True, step()))
        except InputError:  # the spec, not the file
            raise
        except (CheckFailedError, decode.DecodeError, TooMuchWorkError) as error:
            checks.append(Check(name, False, str(error)))
        except Exception as error:  # whatever a hostile file provokes is a failed check
            checks.append(Check(name, False, f"cannot be checked ({type(error).__name__})"))
        if not checks[-1].ok:
            break
    return Report(tuple(checks), verification.certificate)


class _Verification:
    """The state that the steps hand on: file → model → certificate, domain, tables."""

    model: onnx.ModelProto
    domain: Domain
    form: Form

    def __init__(self, data: bytes, spec: bytes | None, signed: Signed | None) -> None:
        self.data, self.spec, self.signed = data, spec, signed
        self.certificate: dict[str, Any] | None = None

    def steps(self) -> list[tuple[str, Callable[[], str]]]:
        steps = [
            ("model", self.check_model),
            ("certificate", self.check_certificate),
            ("tables", self.check_tables),
            ("rows", self.check_rows),
            ("privacy", self.check_privacy),
            ("utility", self.check_utility),
            ("optimality", self.check_optimality),
            ("claims", self.check_claims),
            ("whole file", self.check_whole_file),
            ("execution", self.check_execution),
            ("secure", self.check_secure),
        ]
        if self.spec is not None:
            steps.append(("spec", self.check_spec))
        if self.signed is not None:
            steps.append(("signature", self.check_signature))
        return steps

    @property
    def claims(self) -> dict[str, Any]:
        assert self.certificate is not None
        return self.certificate

    def check_model(self) -> str:  # 1
        _demand(len(self.data) <= MAX_FILE_BYTES, "the file is larger than 64 MiB")
        self.model = decode.read_model(self.data)
        return f"an ONNX model of {len(self.data):,} bytes"

    def check_certificate(self) -> str:  # 2
        self.certificate = decode.read_certificate(self.model)
        self.domain = decode.read_domain(self.certificate)
        _demand(self.claims["format_version"] == FORMAT_VERSION, "unknown format of certificate")
        return f"one certificate, canonical, format {FORMAT_VERSION}"

    def check_tables(self) -> str:  # 3
        _demand(self.claims["labels"] == self.domain.size, "the number of labels is misstated")
        self.form = read_form(self.claims["form"], self.model, self.domain)
        return f"the graph's constants decode to {self.form.description()}"

    def check_rows(self) -> str:  # 4
        reason = self.form.why_not_distributions()
        _demand(reason is None, str(reason))
        r = self.form.randomizer
        bits = r.word_bits * r.words_per_label
        return f"every label's probabilities are whole counts that sum to exactly 2^{bits}"

    def check_privacy(self) -> str:  # 5
        ratio = self.form.worst_ratio()
        epsilon = rational(self.claims["exact"]["epsilon_label"])
        _demand(0 <= epsilon <= MAX_EPSILON, f"ε must lie in 0 … {MAX_EPSILON}")
        _demand(
            ratio <= exp_bounds(epsilon)[0],
            f"an output can be {float(ratio):.6g} times as probable under one label as under "
            f"another, more than e^{float(epsilon):g}",
        )
        self._agree("exact", "realised_ratio", str(ratio))
        bound = least_log_bound(ratio)
        self._agree("exact", "epsilon_label_bound", str(bound))
        self._agree("privacy", "epsilon_label_bound", float(bound))
        return (
            f"whatever the two labels, no output is more than {_above(ratio)} times as probable: "
            f"ε ≤ {_decimals(bound)}, declared {float(epsilon):.12g}"
        )

    def check_utility(self) -> str:  # 6
        domain, loss = self.domain, self.claims["utility"]["loss"]
        weights = self.claims["prior"]["weights"]
        counts = all(type(w) is int and 0 <= w < 2**200 for w in weights)
        _demand(counts and len(weights) == domain.size and sum(weights) > 0, "the prior is wrong")
        _demand(loss in LOSSES, f"the loss {_short(loss)} is unknown")
        biases: list[Fraction] | None = None
        square = Fraction(0)
        if not isinstance(domain, CategoricalDomain):
            biases = self.form.biases(domain.labels())
            pairs = zip(weights, biases, strict=True)
            square = sum((w * b * b for w, b in pairs), Fraction(0)) / sum(weights)
        largest = None if biases is None else max(map(abs, biases))
        self._agree("exact", "largest_bias", None if largest is None else str(largest))
        self._agree("utility", "largest_bias", None if largest is None else float(largest))
        self._agree("utility", "rms_bias", None if biases is None else math.sqrt(square))
        if self.claims["utility"]["biases"] is not None:
            self._agree("utility", "biases", [float(b) for b in biases or []])
        self._agree("utility", "output_rounding", float(self.form.output_rounding()))
        low, high = self.form.expected_loss(domain.labels(), weights, loss)
        _demand(float(low) == float(high), "the loss cannot be bounded tightly")
        self._agree("exact", "noisy_label_loss", None if loss == "poisson" else str(low))
        self._agree("utility", "noisy_label_loss", float(low))
        self._square = square
        stated = "" if largest is None else f"; the largest bias is {float(largest):.6g}"
        return f"the noisy label loss under the stated prior is {float(low):.12g} ({loss}){stated}"

    def check_optimality(self) -> str:  # 7
        stated = self.claims["optimality"]
        if stated is None:
            for section, key in BOUND_FIELDS:
                self._agree(section, key, None)
            return "the certificate claims no lower bound on the loss"
        loss = self.claims["utility"]["loss"]
        _demand(loss in ("squared", "absolute", "zero_one"), f"the {loss} loss has no bound")
        domain, weights = self.domain, self.claims["prior"]["weights"]
        # Slopes speak of numbers; the 0-1 loss has none.
        categories = isinstance(domain, CategoricalDomain)
        labels = [Fraction(0) if categories else Fraction(y) for y in domain.labels()]
        rule = BiasRule(stated["over"], rational(stated["amount"]))
        _demand(rule.kind in OVER and rule.amount >= 0, "the bound is over no known class")
        self._demand_in_class(rule)
        alpha, beta = ([decimal(text) for text in stated[key]] for key in ("alpha", "beta"))
        _demand(len(alpha) == len(beta) == len(labels), "the dual values are not one a label")
        upper = exp_bounds(rational(self.claims["exact"]["epsilon_label"]))[1]
        if loss != "squared":
            _demand(not any(beta), f"a bound on the {loss} loss has no slopes")
        if loss == "absolute":
            feasible = absolute_dual_is_feasible(labels, weights, upper, alpha)
        elif loss == "zero_one":
            feasible = zero_one_dual_is_feasible(weights, upper, alpha)
        else:
            feasible = dual_is_feasible(labels, weights, upper, alpha, beta)
        _demand(feasible, "the dual values prove no lower bound")
        bound = bound_value(labels, weights, alpha, beta, rule)
        self._agree("exact", "loss_lower_bound", str(bound))
        self._agree("utility", "loss_lower_bound", float(bound))
        penalty = rule.amount * self._square if rule.kind == "penalty" else Fraction(0)
        objective = rational(self.claims["exact"]["noisy_label_loss"]) + penalty
        gap = float(max((objective - bound) / objective, Fraction(0))) if objective else 0.0
        self._agree("utility", "certified_gap", gap)
        return f"within {gap:.2g} (relatively) of the least possible {OVER[rule.kind]}"

    def _demand_in_class(self, rule: BiasRule) -> None:
        """The randomizer itself must belong to the class that it is compared with."""
        if rule.kind == "max":
            largest = rational(self.claims["exact"]["largest_bias"])
            _demand(largest <= rule.amount, "the bias is larger than its budget")
        if rule.kind == "unbiased":
            largest = rational(self.claims["exact"]["largest_bias"])
            # Offsets are whole numbers: one step of them moves a mean by so much at most.
            r = self.form.randomizer
            _demand(isinstance(r, WindowRandomizer), "the bound is over window randomizers")
            assert isinstance(r, WindowRandomizer)
            step = (Fraction(r.values[-1]) - Fraction(r.values[0])) / r.words
            _demand(
                largest <= step, "the bound is over unbiased randomizers, and this one is biased"
            )

    def check_claims(self) -> str:  # 8
        exact = self.claims["exact"]
        self._agree("", "form", self.form.randomizer.form)
        self._agree("", "outputs", self.form.randomizer.outputs)
        digest = tables_digest(self.domain, self.form.randomizer)
        self._agree("digests", "tables", digest)
        self._agree("privacy", "adjacency", ADJACENCY)
        self._agree("", "fields", {"proved": list(PROVED), "declared": list(DECLARED)})
        label, prior = rational(exact["epsilon_label"]), rational(exact["epsilon_prior"])
        _demand(prior >= 0, "the ε spent on the prior is negative")
        self._agree("exact", "epsilon_total", str(label + prior))
        for part, value in [("label", label), ("prior", prior), ("total", label + prior)]:
            self._agree("exact", f"epsilon_{part}", str(value))
            self._agree("privacy", f"epsilon_{part}", float(value))
        return f"counts, exact fractions and sums of ε agree; tables digest {digest[:16]}…"

    def check_whole_file(self) -> str:  # 9
        rebuilt = self.form.rebuild(self.domain, self.claims)
        _demand(rebuilt == self.data, "the file is not the one that its integers define")
        return (
            "the file equals, byte for byte, the one rebuilt from the decoded integers "
            f"(sha256 {hashlib.sha256(self.data).hexdigest()[:16]}…)"
        )

    def check_execution(self) -> str:  # 10
        session = open_session(self.data)
        runs = [
            run(session, self.domain, self.form)
            for run in (threshold_mismatches, outside_mismatches)
        ]
        wrong = sum(count for _, count in runs)
        _demand(not wrong, f"onnxruntime computes {wrong} outputs wrongly on this platform")
        return (
            f"the running graph gave the integers' output for {runs[0][0]:,} labels and words on "
            f"both sides of the thresholds, and for {runs[1][0]:,} labels outside the domain"
        )

    def check_secure(self) -> str:  # 11
        reason = self.claims["insecure"]
        _demand(reason is None, f"INSECURE: {_short(reason)}")
        return "declared to be made with secure randomness (a declaration: no file can prove it)"

    def check_spec(self) -> str:  # 12
        assert self.spec is not None
        disagreements = spec_disagreements(self.spec, self.claims)
        _demand(not disagreements, "; ".join(disagreements))
        return "the certificate names this spec, and agrees with it"

    def check_signature(self) -> str:  # 13
        assert self.signed is not None
        _demand(self.signed.holds(self.data), "the key did not sign this file")
        return (
            "the holder of the key signed exactly this file, its declared fields included "
            f"(sha256 of the key {self.signed.fingerprint()[:16]}…)"
        )

    def _agree(self, section: str, key: str, derived: Any) -> None:
        stated = (self.claims[section] if section else self.claims)[key]
        same = stated == derived and type(stated) is type(derived)
        name = f"{section}.{key}" if section else key
        _demand(same, f"{name} is stated as {_short(stated)}, the file gives {_short(derived)}")


def read_artifact(path: Path) -> bytes:
    """The bytes of a file, at most one more than an artifact may have; InputError if unreadable."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _demand(condition: bool, message: str) -> None:
    if not condition:
        raise CheckFailedError(message)


def _above(ratio: Fraction) -> str:
    """The ratio rounded up to six decimals."""
    return f"{math.ceil(ratio * 10**6) / 10**6:.6f}"


def _decimals(bound: Fraction) -> str:
    """A multiple of 10^-12 in full."""
    whole, part = divmod(int(bound * 10**12), 10**12)
    return f"{whole}.{part:012d}".rstrip("0").rstrip(".")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
