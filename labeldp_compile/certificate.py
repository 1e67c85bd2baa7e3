"""From a randomizer and its provenance to the certificate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.absolute_and_zero_one_bounds import (
    absolute_dual_is_feasible,
    zero_one_dual_is_feasible,
)
from labeldp_verify.analysis.analysis import Labels, Loss
from labeldp_verify.analysis.bounds import exp_lower, exp_upper, least_log_bound
from labeldp_verify.analysis.joint import ColumnLoss, column_losses
from labeldp_verify.analysis.lower_bound import (
    BiasRule,
    bound_value,
    dual_is_feasible,
    unbiased_tolerance,
)
from labeldp_verify.analysis.radius_bound import radii_of, radius_bound
from labeldp_verify.analysis.strays import strays
from labeldp_verify.artifact import format_version, tables_digest
from labeldp_verify.certificate import (
    ASSIGNMENTS,
    Certificate,
    Digests,
    ExactClaims,
    ExactTableClaims,
    FieldLists,
    GroupColumnClaims,
    GroupsClaims,
    LabelClaims,
    Optimality,
    PrivacyClaims,
    RadiusOptimality,
    TableClaims,
    UtilityClaims,
    rational,
    read_prior,
)
from labeldp_verify.forms import Domain, GroupedWindows, JointDomain, Randomizer, are_numbers
from labeldp_verify.forms.exact_numbers import ExactNumbers
from labeldp_verify.forms.grouped_windows import check_grouped
from labeldp_verify.group_claims import relative_gap, total_bound, weighted
from labeldp_verify.joint_claims import state_joint, total_loss
from labeldp_verify.optimality import penalised
from labeldp_verify.sets_claims import state_sets

from labeldp_compile.composition import composition_statement
from labeldp_compile.mechanisms.problem import DualBound, RadiusBound


@dataclass(frozen=True)
class Provenance:
    """What the file cannot prove about itself.

    Attributes:
        name: of the spec.
        mechanism: kind, as in the spec.
        column: of the label; None where it has several.
        epsilon_label: ε₂, the budget of one randomized label (exact).
        epsilon_prior: ε₁, spent on the prior by the compile (exact).
        prior: what ε₁ was spent on, as the JSON of ``PriorClaims``; holds the ``weights`` [k].
        spec_digest: SHA-256 of the spec's bytes.
        tools: versions that took part.
        auto: why ``mechanism: auto`` chose this one, or None.
        insecure: why the artifact must not be used, or None.
        labels_per_user: how many labels one user has, if the certificate is to speak of that.
        columns: those of a joint label.
        losses: what is summed up, of each of them, where the loss is that sum.
    """

    name: str
    mechanism: str
    column: str | None
    epsilon_label: Fraction
    epsilon_prior: Fraction
    prior: dict[str, Any]
    spec_digest: str
    tools: dict[str, str]
    auto: str | None = None
    insecure: str | None = None
    labels_per_user: int | None = None
    columns: tuple[str, ...] = ()
    losses: tuple[ColumnLoss, ...] | None = None


def build_certificate(
    domain: Domain,
    randomizer: Randomizer,
    loss: Loss,
    provenance: Provenance,
    dual: DualBound | RadiusBound | None = None,
    *,
    sets: bool = False,
) -> Certificate:
    """The certificate of a randomizer; with ``sets`` it states the noise of shares, too.

    Raises ValueError if the integers are not ε₂-DP: nothing uncertified is ever written.
    """
    certificate = _analysed(domain, randomizer, loss, provenance, dual)[0]
    if not sets:
        return certificate
    return replace(
        certificate,
        format_version=format_version(
            certificate.form, sets=True, joint=certificate.joint is not None
        ),
        sets=state_sets(domain, randomizer, provenance.epsilon_label),
        fields=FieldLists.of(
            composition=certificate.composition is not None,
            sets=True,
            joint=certificate.joint is not None,
        ),
    )


@dataclass(frozen=True)
class _Exact:
    """Of one table: its loss, known to lie between two numbers, Σ prior·bias² and largest bias."""

    low: Fraction
    high: Fraction
    square: Fraction
    largest: Fraction | None


def _analysed(
    domain: Domain,
    randomizer: Randomizer,
    loss: Loss,
    provenance: Provenance,
    dual: DualBound | RadiusBound | None,
) -> tuple[Certificate, _Exact]:
    analysis = analyse(randomizer)
    ratio = analysis.worst_ratio()
    if ratio > exp_lower(provenance.epsilon_label):
        raise ValueError("the integers are not ε-DP for the declared ε")
    bound = least_log_bound(ratio)
    total = provenance.epsilon_label + provenance.epsilon_prior
    weights = provenance.prior["weights"]
    labels, astray = domain.exact_labels(), strays(domain)
    joint = found = None
    if isinstance(domain, JointDomain) and provenance.losses is not None:
        kinds = [own.loss for own in provenance.losses]
        found = column_losses(domain, randomizer, kinds, weights)
        low = high = total_loss(provenance.losses, found)
    else:
        low, high = analysis.expected_loss(labels, weights, loss, astray)
    if isinstance(domain, JointDomain):
        joint = state_joint(provenance.columns, provenance.losses, found)
    bias = None
    if are_numbers(domain, randomizer):
        bias = analysis.biases(ExactNumbers.of(labels), astray)
    square = None if bias is None else bias.mean_square(weights)
    proved: ProvedBound | None = None
    if isinstance(dual, RadiusBound):
        proved = prove_radii(dual, loss, labels, weights, provenance.epsilon_label)
    elif dual is not None and _belongs(dual, labels, bias):
        proved = prove_bound(dual, loss, labels, weights, provenance.epsilon_label, low)
    composition = None
    if provenance.labels_per_user is not None:
        composition = composition_statement(
            randomizer,
            provenance.labels_per_user,
            provenance.epsilon_label,
            provenance.epsilon_prior,
        )
    largest = None if bias is None else bias.largest()
    certificate = Certificate(
        format_version=format_version(
            randomizer.form,
            joint=joint is not None,
            radii=proved is not None and isinstance(proved.witness, RadiusOptimality),
        ),
        name=provenance.name,
        mechanism=provenance.mechanism,
        auto=provenance.auto,
        form=randomizer.form,
        labels=domain.size,
        outputs=randomizer.outputs,
        label=LabelClaims(provenance.column, domain.to_json()),
        privacy=PrivacyClaims(
            epsilon_label=float(provenance.epsilon_label),
            epsilon_label_bound=float(bound),
            epsilon_prior=float(provenance.epsilon_prior),
            epsilon_total=float(total),
        ),
        utility=UtilityClaims(
            loss=loss,
            noisy_label_loss=_common_float(low, high),
            largest_bias=None if largest is None else float(largest),
            rms_bias=None if square is None else math.sqrt(square),
            biases=_listed(bias, dual),
            output_rounding=float(analysis.output_rounding()),
            loss_lower_bound=None if proved is None else float(proved.value),
            certified_gap=None if proved is None else _gap(proved, low, square),
        ),
        optimality=None if proved is None else proved.witness,
        prior=read_prior(provenance.prior),
        exact=ExactClaims(
            epsilon_label=str(provenance.epsilon_label),
            epsilon_label_bound=str(bound),
            epsilon_prior=str(provenance.epsilon_prior),
            epsilon_total=str(total),
            realised_ratio=str(ratio),
            noisy_label_loss=None if loss == "poisson" else str(low),
            largest_bias=None if largest is None else str(largest),
            loss_lower_bound=None if proved is None else str(proved.value),
        ),
        digests=Digests(provenance.spec_digest, tables_digest(domain, randomizer)),
        tools=provenance.tools,
        insecure=provenance.insecure,
        fields=FieldLists.of(composition=composition is not None, joint=joint is not None),
        composition=composition,
        joint=joint,
    )
    return certificate, _Exact(low, high, square or Fraction(0), largest)


@dataclass(frozen=True)
class TableProvenance:
    """What the file cannot prove about the table of one group.

    Attributes:
        size: the public number of rows in the group.
        prior: as in ``Provenance``, of the group's labels.
        dual: a witness of a bound on the table's loss, if there is one.
    """

    size: int
    prior: dict[str, Any]
    dual: DualBound | None = None


def build_grouped_certificate(
    domain: Domain,
    randomizer: GroupedWindows,
    loss: Loss,
    provenance: Provenance,
    tables: Sequence[TableProvenance],
) -> Certificate:
    """The certificate of tables by group: each as in a file of its own, and all together.

    ``provenance`` holds the prior of the last of the ``tables`` [T + 1], which all rows have that
    are in no other.

    Raises ValueError if a table is not ε₂-DP, or if the parts do not fit together.
    """
    check_grouped(randomizer)
    if len(tables) != randomizer.groups.tables or sum(table.size for table in tables) <= 0:
        raise ValueError("every table needs a size and a prior, and some group must have rows")
    if provenance.column in [column.name for column in randomizer.groups.columns]:
        raise ValueError("the group cannot be the label: its table would tell the label")
    if provenance.labels_per_user is not None:
        raise ValueError("labels_per_user is not there for groups yet")
    if provenance.prior != tables[-1].prior:
        raise ValueError("the prior must be that of the last table")
    found = [
        _analysed(domain, window, loss, replace(provenance, prior=table.prior), table.dual)
        for window, table in zip(randomizer.windows, tables, strict=True)
    ]
    own = [one for one, _ in found]
    claims = [
        TableClaims(
            size=table.size,
            outputs=one.outputs,
            epsilon_label_bound=one.privacy.epsilon_label_bound,
            utility=one.utility,
            optimality=None if isinstance(one.optimality, RadiusOptimality) else one.optimality,
            prior=one.prior,
            exact=ExactTableClaims(
                one.exact.epsilon_label_bound,
                one.exact.realised_ratio,
                one.exact.noisy_label_loss,
                one.exact.largest_bias,
                one.exact.loss_lower_bound,
            ),
        )
        for one, table in zip(own, tables, strict=True)
    ]
    version = format_version(randomizer.form)
    groups = GroupsClaims(
        assignment=ASSIGNMENTS[version],
        columns=[
            GroupColumnClaims(column.name, **column.to_json())
            for column in randomizer.groups.columns
        ],
        table_of_cell=randomizer.groups.to_json()["table_of_cell"],
        tables=claims,
    )
    worst = max(own, key=lambda one: rational(one.exact.realised_ratio))
    return replace(
        worst,
        format_version=version,
        form=randomizer.form,
        outputs=randomizer.outputs,
        **_together([exact for _, exact in found], loss, worst, groups),
        optimality=None,
        prior=claims[-1].prior,
        digests=Digests(provenance.spec_digest, tables_digest(domain, randomizer)),
        fields=FieldLists.of(composition=False, groups=True),
        groups=groups,
    )


def _together(
    exact: Sequence[_Exact], loss: Loss, worst: Certificate, groups: GroupsClaims
) -> dict[str, Any]:
    """``utility`` and ``exact`` of all tables together; ``worst`` is that of the largest ratio."""
    sizes = [table.size for table in groups.tables]
    lows, highs, squares = ([getattr(e, n) for e in exact] for n in ("low", "high", "square"))
    largest = [one.largest for one in exact if one.largest is not None]
    objectives = [
        penalised(table.optimality, one.low, one.square)
        for table, one in zip(groups.tables, exact, strict=True)
    ]
    low, high = weighted(sizes, lows), weighted(sizes, highs)
    bound, most = total_bound(groups), max(largest, default=None)
    gap = None if bound is None else relative_gap(weighted(sizes, objectives), bound)
    utility = UtilityClaims(
        loss=loss,
        noisy_label_loss=_common_float(low, high),
        largest_bias=None if most is None else float(most),
        rms_bias=None if most is None else math.sqrt(weighted(sizes, squares)),
        biases=None,
        output_rounding=0.0,
        loss_lower_bound=None if bound is None else float(bound),
        certified_gap=gap,
    )
    stated = replace(
        worst.exact,
        noisy_label_loss=None if loss == "poisson" else str(low),
        largest_bias=None if most is None else str(most),
        loss_lower_bound=None if bound is None else str(bound),
    )
    return {"utility": utility, "exact": stated}


def _belongs(dual: DualBound, labels: Labels, bias: ExactNumbers | None) -> bool:
    """Whether the randomizer is of the class that the bound speaks of; short words may miss it."""
    if dual.rule.kind not in ("unbiased", "max"):
        return True
    most = unbiased_tolerance(labels) if dual.rule.kind == "unbiased" else dual.rule.amount
    return bias is not None and bias.largest() <= most


def _listed(bias: ExactNumbers | None, dual: DualBound | RadiusBound | None) -> list[float] | None:
    """The bias of every label, where the spec asked for a budget of it."""
    if bias is None or not isinstance(dual, DualBound) or dual.rule.kind not in ("max", "penalty"):
        return None
    return bias.floats()


def _gap(proved: ProvedBound, loss: Fraction, square: Fraction | None) -> float:
    """(objective − bound)/objective, at least 0; the objective is the loss plus any penalty."""
    penalty = proved.rule.amount if proved.rule.kind == "penalty" else Fraction(0)
    objective = loss + penalty * (square or 0)
    return float(max((objective - proved.value) / objective, Fraction(0))) if objective else 0.0


def _common_float(low: Fraction, high: Fraction) -> float:
    """The float64 nearest to every number in [low, high]."""
    if float(low) != float(high):
        raise ValueError("the loss is not known to float64 precision")
    return float(low)


# Dual values as exact decimals, moved by a hair so that the verifier can prove their bound.
#
# A solver's duals violate their constraint by rounding. Subtracting the same t from every α adds
# t·(k + (e^ε − 1)·|S|) to the verifier's F, S being the labels whose h is negative, so some
# small t repairs it at a cost of k·t in the bound.


@dataclass(frozen=True)
class ProvedBound:
    """A lower bound with its witness, as the certificate holds it."""

    value: Fraction
    witness: Optimality | RadiusOptimality
    rule: BiasRule


def prove_bound(
    dual: DualBound,
    loss: Loss,
    labels: Labels,
    weights: Sequence[int],
    epsilon: Fraction,
    scale: Fraction,
) -> ProvedBound | None:
    """The bound on the squared, absolute or 0-1 loss that the duals prove, or None if nothing.

    ``scale`` is the loss of the randomizer: repairs start at 10^-17 of it and end at its size.
    """
    upper = exp_upper(epsilon)
    # A penalty prices bias by the prior, so β must vanish where the prior does.
    priced = dual.rule.kind == "penalty"
    beta = [
        Decimal(0) if priced and not weight else _decimal(b)
        for b, weight in zip(dual.beta, weights, strict=True)
    ]
    beta_exact, duals = ExactNumbers.of(beta), ExactNumbers.of(dual.alpha)
    for exponent in (None, *range(-17, 0)):
        shift = Fraction(0) if exponent is None else scale * Fraction(10) ** exponent / len(beta)
        alpha = [_decimal(number) for number in _lowered(duals, shift)]
        exact = ExactNumbers.of(alpha)
        if loss == "zero_one":
            feasible = zero_one_dual_is_feasible(weights, upper, exact)
        elif loss == "absolute":
            feasible = absolute_dual_is_feasible(labels, weights, upper, exact)
        else:
            feasible = dual_is_feasible(labels, weights, upper, exact, beta_exact)
        if feasible:
            known = isinstance(labels, ExactNumbers)
            numbers = ExactNumbers.of(labels if known else [0] * len(labels))
            value = bound_value(numbers, weights, exact, beta_exact, dual.rule)
            if value < 0:  # no loss is negative: such a bound says nothing
                return None
            sides = [[str(number) for number in side] for side in (alpha, beta)]
            witness = Optimality(dual.rule.kind, str(dual.rule.amount), *sides)
            return ProvedBound(value, witness, dual.rule)
    return None


_RADIUS_STEPS = 2**40  # of the range of the labels, rounded up to a power of two


def prove_radii(
    dual: RadiusBound, loss: Loss, labels: Labels, weights: Sequence[int], epsilon: Fraction
) -> ProvedBound | None:
    """The bound on the squared or absolute loss that radii prove, or None if they prove nothing.

    Rounded down they prove no more than before, but for the rounding in which they were found:
    they shrink by 10^-12 of themselves at first, and by 10^-6 in the end.
    """
    y = ExactNumbers.of(labels)
    unit = Fraction(2) ** _power_above(y[-1] - y[0]) / _RADIUS_STEPS
    upper, rule = exp_upper(epsilon), BiasRule("any")
    for exponent in (None, *range(-12, -5)):
        by = 1 if exponent is None else 1 - Fraction(10) ** exponent
        scale = by / unit
        steps = [min(math.floor(Fraction(r) * scale), _RADIUS_STEPS) for r in dual.radii]
        every = radii_of(dual.knots, steps, len(y)).astype(object)
        radii = ExactNumbers(every * unit.numerator, unit.denominator)
        value = radius_bound(y, weights, upper, radii, loss)
        if value is not None:
            witness = RadiusOptimality(rule.kind, "0", str(unit), list(dual.knots), steps)
            return ProvedBound(value, witness, rule) if value else None
    return None


def _power_above(number: Fraction) -> int:
    """The least whole e with 2^e ≥ number, or one more."""
    return number.numerator.bit_length() - number.denominator.bit_length() + 1


def _lowered(duals: ExactNumbers, shift: Fraction) -> list[float]:
    """[k] the float64 nearest to each dual value less the shift."""
    unit = duals.unit * shift.denominator
    by = shift.numerator * duals.unit
    return [(number * shift.denominator - by) / unit for number in duals.numerators.tolist()]


def _decimal(number: float) -> Decimal:
    return Decimal(repr(float(number)))
