"""From a prior to an artifact: mechanism → integers → certificate → ONNX; and its files."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from labeldp_verify import OWN_FILES, VerificationError, check_bytes
from labeldp_verify.analysis import (
    LOSSES,
    Labels,
    Loss,
    bound_value,
    dual_is_feasible,
    exp_upper,
    radii_of,
    radius_bound,
    unbiased_tolerance,
)
from labeldp_verify.artifact import Artifact, Table, bundle_path, signature_path
from labeldp_verify.claims import (
    Certificate,
    Declaration,
    Optimality,
    RadiusOptimality,
    TableStatement,
    Witness,
    state_certificate,
    use_of,
)
from labeldp_verify.forms import Domain, ExactNumbers, Integers, Randomizer, check_groups
from labeldp_verify.graph import canonical_json, write_model

from labeldp_compile.build.tables import SolvedTables, solve_tables
from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms.mechanism import DualBound, RadiusBound
from labeldp_compile.observer import QUIET, Observer
from labeldp_compile.prior.obtain import hold_saved_prior, saved_prior_path
from labeldp_compile.prior.priors import Prior, TablePrior
from labeldp_compile.solve.losses import LOSSES as RECORDS
from labeldp_compile.spec import Spec
from labeldp_compile.spec.label import JointLabelSpec
from labeldp_compile.spec.model import Goal
from labeldp_compile.whole_file import replaced_when_whole, require_output

if TYPE_CHECKING:
    from labeldp_compile.signing import PrivateKey


class ProvedBound(NamedTuple):
    """A lower bound on the loss, with the witness in the certificate."""

    witness: Witness
    value: Fraction


def build_certificate(
    integers: Integers,
    loss: Loss,
    provenance: Declaration,
    priors: Sequence[TablePrior],
    bounds: Sequence[DualBound | RadiusBound | None],
) -> Certificate:
    """The certificate of integers, for each of the tables [T + 1] and for all together.

    Each table has a prior, and a witness of a bound on its loss if there is one. ``provenance``
    holds the prior of the last table, which is for all rows without another table.

    Raises ValueError if a table is not ε₂-DP, so that nothing uncertified is ever written. Raises
    it also if the parts do not fit together.
    """
    groups = integers.groups
    check_groups(groups)
    if not len(priors) == len(integers.tables) == groups.tables:
        raise ValueError("every table needs integers, a size and a prior")
    sizes = [prior.size if groups.columns else 1 for prior in priors]
    if sum(sizes) <= 0:
        raise ValueError("at least one group must have rows")
    if {provenance.column, *provenance.columns} & {column.name for column in groups.columns}:
        raise ValueError("the group cannot be the label: its table would disclose the label")
    if provenance.prior != priors[-1].statement:
        raise ValueError("the prior must be that of the last table")
    if provenance.composes and provenance.labels_per_user is not None:
        from labeldp_compile.composition import composition_statement  # noqa: PLC0415

        composition = composition_statement(
            integers.tables,
            provenance.labels_per_user,
            provenance.epsilon_label,
            provenance.epsilon_prior,
        )
        provenance = replace(provenance, composition=composition)
    stated = []
    for randomizer, size, prior, dual in zip(integers.tables, sizes, priors, bounds, strict=True):
        proved = _proved(integers.label, randomizer, loss, provenance, prior, dual)
        priced = isinstance(dual, DualBound) and dual.rule.kind in ("max", "penalty")
        stated.append(TableStatement(size, prior.statement, proved, lists_biases=priced))
    return state_certificate(integers, loss, provenance, stated)


def _proved(
    domain: Domain,
    randomizer: Randomizer,
    loss: Loss,
    provenance: Declaration,
    prior: TablePrior,
    dual: DualBound | RadiusBound | None,
) -> ProvedBound | None:
    """The bound that a table's witness proves, if any."""
    labels, weights, epsilon = domain.labels(), prior.weights, provenance.epsilon_label
    if isinstance(dual, RadiusBound):
        return prove_radii(dual, loss, labels, weights, epsilon)
    if dual is None:
        return None
    use = use_of(domain, randomizer, loss, provenance.losses, weights)
    if not _belongs(dual, labels, use.biases):
        return None
    return prove_bound(dual, loss, labels, weights, epsilon, use.loss[0])


def _belongs(dual: DualBound, labels: Labels, bias: ExactNumbers | None) -> bool:
    """Whether the randomizer is of the class of the bound; with short words it may not be."""
    if dual.rule.kind not in ("unbiased", "max"):
        return True
    most = unbiased_tolerance(labels) if dual.rule.kind == "unbiased" else dual.rule.amount
    return bias is not None and bias.largest() <= most


# Dual values as exact decimals, shifted slightly so that the verifier can prove their bound.
#
# A solver's duals violate their constraint by rounding. Subtracting the same t from every α adds
# t·(k + (e^ε − 1)·|S|) to the verifier's F, where S is the set of labels whose h is negative. So a
# small t repairs the constraint and lowers the bound by k·t.


def prove_bound(
    dual: DualBound,
    loss: Loss,
    labels: Labels,
    weights: Sequence[int],
    epsilon: Fraction,
    scale: Fraction,
) -> ProvedBound | None:
    """The bound on a loss that the duals prove, or None.

    ``scale`` is the loss of the randomizer: repairs start at 10^-17 of its size,
    or where the record of the loss says, and grow to that.
    """
    upper = exp_upper(epsilon)
    # A penalty prices bias by the prior, so β must vanish where the prior does.
    priced = dual.rule.kind == "penalty"
    beta = [
        Decimal(0) if priced and not weight else _decimal(b)
        for b, weight in zip(dual.beta, weights, strict=True)
    ]
    beta_exact, duals = ExactNumbers.of(beta), ExactNumbers.of(dual.alpha)
    # Categories are no numbers, and their losses need none.
    numbers = ExactNumbers.of(labels if LOSSES[loss].needs_numbers else [0] * len(labels))
    first = RECORDS[loss].repair
    for exponent in (None, *range(-17, 0)) if first is None else range(first, 0):
        shift = Fraction(0)
        if exponent is not None:
            shift = abs(scale) * Fraction(10) ** exponent / len(beta)
        alpha = [_decimal(number) for number in _lowered(duals, shift)]
        exact = ExactNumbers.of(alpha)
        if dual_is_feasible(numbers, weights, upper, exact, beta_exact, loss):
            value = bound_value(numbers, weights, exact, beta_exact, dual.rule)
            if value < 0 and not LOSSES[loss].is_signed:
                return None  # such a bound says nothing
            sides = [[str(number) for number in side] for side in (alpha, beta)]
            witness = Optimality(dual.rule.kind, str(dual.rule.amount), *sides)
            return ProvedBound(witness, value)
    return None


_RADIUS_STEPS = 2**40  # of the range of the labels, rounded up to a power of two


def prove_radii(
    dual: RadiusBound, loss: Loss, labels: Labels, weights: Sequence[int], epsilon: Fraction
) -> ProvedBound | None:
    """The bound on the loss that radii prove, or None.

    Radii that are rounded down still prove a bound, except for the rounding in which they were
    found. So they are made smaller, first by 10^-12 of their size, and at most by 10^-6.
    """
    y = ExactNumbers.of(labels)
    span = y[-1] - y[0]
    # The least whole e with 2^e ≥ the span, or one more.
    power = span.numerator.bit_length() - span.denominator.bit_length() + 1
    unit = Fraction(2) ** power / _RADIUS_STEPS
    upper = exp_upper(epsilon)
    for exponent in (None, *range(-12, -5)):
        scale = (1 if exponent is None else 1 - Fraction(10) ** exponent) / unit
        steps = [min(math.floor(Fraction(r) * scale), _RADIUS_STEPS) for r in dual.radii]
        every = radii_of(dual.knots, steps, len(y)).astype(object)
        radii = ExactNumbers(every * unit.numerator, unit.denominator)
        value = radius_bound(y, weights, upper, radii, loss)
        if value is not None:
            witness = RadiusOptimality("any", "0", str(unit), list(dual.knots), steps)
            return ProvedBound(witness, value) if value else None
    return None


def _lowered(duals: ExactNumbers, shift: Fraction) -> list[float]:
    """[k] the float64 nearest to each dual value less the shift."""
    unit = duals.unit * shift.denominator
    by = shift.numerator * duals.unit
    return [(number * shift.denominator - by) / unit for number in duals.numerators.tolist()]


def _decimal(number: float) -> Decimal:
    return Decimal(repr(float(number)))


TOOLS = ("clarabel", "labeldp", "numpy", "onnx", "scipy")
_PAY_AGAIN = (
    "use --overwrite to replace it (a private prior then spends ε₁ again), "
    "or choose another directory"
)


@dataclass(frozen=True)
class Compiled:
    """The result of a compile: the file's bytes, and the artifact that the verifier reads in them.

    ``kept`` is the file that keeps the noisy prior until the artifact is written, if there is one.
    ``goal`` is that of the spec.
    """

    model: bytes
    artifact: Artifact
    kept: Path | None = None
    goal: Goal = "training"

    @property
    def name(self) -> str:
        """That of the spec."""
        return self.artifact.certificate.name

    @property
    def certificate(self) -> Certificate:
        """The certificate of the file."""
        return self.artifact.certificate

    @property
    def only(self) -> Table:
        """The table of all rows. Raises TypeError if there is a table for each group."""
        if self.artifact.only is None:
            raise TypeError("this artifact has a table for each group: see artifact")
        return self.artifact.only

    @property
    def randomizer(self) -> Randomizer:
        """The integers of that table."""
        return self.only.randomizer

    def write(
        self,
        directory: Path,
        *,
        overwrite: bool = False,
        key: PrivateKey | None = None,
        is_held: bool = False,
    ) -> Path:
        """Write NAME.onnx, NAME.certificate.json and, with a key, a signature.

        The signature is NAME.onnx.sig for an Ed25519 key, and NAME.onnx.sigstore.json for a P-256
        key. A signature of a replaced file is removed. At the end, the kept prior is removed.

        Returns the path of the artifact. Raises InputError if the files exist and ``overwrite`` is
        false, or while another compile works with the kept prior. A caller that holds it already
        (``hold_saved_prior``) sets ``is_held``.
        """
        if self.kept is None:
            return self._write(directory, overwrite, key)
        with nullcontext() if is_held else hold_saved_prior(self.kept.parent, self.name):
            try:
                path = self._write(directory, overwrite, key)
            except InputError as error:
                if not self.kept.exists():
                    raise
                raise InputError(f"{error}; {paid_for(self.kept)}") from error
            self.kept.unlink(missing_ok=True)
            return path

    def _write(self, directory: Path, overwrite: bool, key: PrivateKey | None) -> Path:
        onnx_path, json_path, *signatures = output_paths(directory, self.name)
        require_writable(directory, self.name, overwrite=overwrite)
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{directory}: cannot be made: {error.strerror}") from error
        stated = canonical_json(self.certificate.to_json()) + "\n"
        contents = {onnx_path: self.model, json_path: stated.encode()}
        if key is not None:
            # cryptography, for those who sign
            from labeldp_verify.signature import path_for  # noqa: PLC0415

            from labeldp_compile.signing import sign  # noqa: PLC0415

            signed = path_for(onnx_path, key.public_key())
            contents[signed] = sign(self.model, onnx_path.name, key)
        with ExitStack() as stack:
            # All are on the disk before one has its name, and the artifact gets its name last. If
            # their folder cannot be synced, that is known when all have theirs.
            for path, data in contents.items():
                is_last = path == onnx_path
                part = stack.enter_context(replaced_when_whole(path, is_last=is_last))
                part.write(data)
                part.flush()
                os.fsync(part.fileno())
            for old in signatures:
                old.unlink(missing_ok=True)
        return onnx_path


def paid_for(where: Path | str) -> str:
    """The end of an error message after ε₁ was spent and the prior was kept."""
    return (
        f"ε₁ of the prior stays spent, and its noisy histogram is kept in {where}: the next "
        "compile with the same question, data and ε₁ spends nothing, for any loss, mechanism and ε "
        "of the label"
    )


def assemble(
    spec: Spec,
    prior: Prior,
    spec_digest: str,
    *,
    insecure: str | None = None,
    word_bits: int | None = None,
    many_labels: bool = False,
    observer: Observer = QUIET,
) -> Compiled:
    """All steps after the prior; touches no label.

    With ``many_labels`` the certificate states what all labels of a user, or of a person, spend, if
    the spec says how many there are.
    """
    try:
        found = solve_tables(spec, prior, word_bits, observer)
    except ValueError as error:
        raise InputError(f"{spec.name}: {error}") from error
    return certify(spec, prior, found, spec_digest, insecure, many_labels=many_labels)


def certify(
    spec: Spec,
    prior: Prior,
    found: SolvedTables,
    spec_digest: str,
    insecure: str | None,
    *,
    many_labels: bool,
    run_graph: bool = True,
) -> Compiled:
    """The artifact of solved integers. Raises InputError unless it verifies.

    ``run_graph`` says whether the graph is also run; a file that is not kept does not need it.
    """
    joint, losses = isinstance(spec.label, JointLabelSpec), spec.column_losses
    privacy = spec.privacy
    composes = many_labels and states_delta(spec)
    tools = (*TOOLS, "dp-accounting") if composes else TOOLS
    provenance = Declaration(
        name=spec.name,
        mechanism=spec.mechanism.kind,
        column=None if joint else spec.label.names[0],
        epsilon_label=prior.epsilon_label,
        epsilon_prior=prior.epsilon_prior,
        prior=prior.statement,
        spec_digest=spec_digest,
        auto=spec.auto_reason,
        goal=spec.goal if spec.auto_reason else None,
        tools={name: _version(name) for name in tools},
        insecure=insecure,
        labels_per_user=privacy.labels_per_person or privacy.labels_per_user,
        person_column=privacy.person_column if many_labels else None,
        composes=composes,
        columns=tuple(spec.label.names) if joint else (),
        losses=None if losses is None else tuple(losses),
        sets=found.classes,
    )
    integers = found.integers
    try:
        certificate = build_certificate(integers, spec.loss, provenance, prior.tables, found.bounds)
        model = write_model(integers.label, integers.lookup, certificate.to_json(), found.grid)
        if insecure is None:  # an auditor refuses an insecure one anyway
            check_bytes(model, budget=OWN_FILES, run_graph=run_graph).require()
    except ValueError as error:
        raise InputError(f"{spec.name}: {error}") from error
    except VerificationError as error:
        raise InputError(
            f"{spec.name}: the compiled file failed verification ({error}); nothing was written"
        ) from error
    held = Artifact(integers.label, integers.groups, integers.tables, certificate)
    return Compiled(model, held, goal=spec.goal)


def states_delta(spec: Spec) -> bool:
    """Whether a certificate states what many labels spend at δ: if the spec asks with
    ``labels_per_user``; of a person with several labels if dp-accounting is installed."""
    privacy = spec.privacy
    if privacy.labels_per_user is not None or privacy.labels_of_unit == 1:
        return privacy.labels_per_user is not None
    from labeldp_compile.composition import has_accounting  # noqa: PLC0415

    return has_accounting()


@cache
def _version(name: str) -> str:
    from importlib.metadata import version  # noqa: PLC0415  # which loads email

    return version(name)


def output_paths(directory: Path, name: str) -> tuple[Path, Path, Path, Path]:
    """The paths of the artifact, its certificate, and its possible signatures.

    The last two are the signatures of an Ed25519 key and of a P-256 key.
    """
    artifact = directory / f"{name}.onnx"
    certificate = directory / f"{name}.certificate.json"
    return artifact, certificate, signature_path(artifact), bundle_path(artifact)


def require_writable(directory: Path, name: str, *, overwrite: bool) -> None:
    """Raise InputError if the outputs could not be written to the directory.

    Called before any ε is spent.
    """
    kept, way_out = saved_prior_path(directory, name), _PAY_AGAIN
    if kept.exists():  # a compile was killed after it had named the artifact
        way_out = f"use --overwrite to replace it: {kept} keeps the noisy prior, so that the same "
        way_out += "question spends nothing"
    for path in output_paths(directory, name):
        require_output(path, overwrite=overwrite, way_out=way_out, makes_folder=True)
