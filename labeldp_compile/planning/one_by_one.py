"""A joint label beside its columns randomized one by one, with an equal part of ε each.

Neither is always better: jointly, one private label spends all of ε on which combination it is;
one by one, each column has its own randomizer, the best for its own loss, and less ε. Both are
found out for uniform labels, with the integers that would ship.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction

import numpy as np
from labeldp_verify.analysis import analyse
from labeldp_verify.analysis.inversion import least_variance_inverse
from labeldp_verify.analysis.joint import column_losses
from labeldp_verify.analysis.probabilities import matrix
from labeldp_verify.analysis.range_bias import bias_in_range
from labeldp_verify.analysis.sets import set_weights
from labeldp_verify.analysis.strays import strays
from labeldp_verify.forms import CategoricalDomain, JointDomain, Randomizer, sets_of
from labeldp_verify.forms.joint import Part
from labeldp_verify.joint_claims import total_loss
from labeldp_verify.margins import Noise
from labeldp_verify.usefulness import ROWS
from labeldp_verify.verified import assess
from numpy.typing import NDArray

from labeldp_compile.assembly import problem_of
from labeldp_compile.errors import InputError
from labeldp_compile.planning.expected_use import ExpectedUse
from labeldp_compile.spec import Spec
from labeldp_compile.spec.label import JointColumnSpec, JointLabelSpec
from labeldp_compile.spec.validity import resolved

_PLACES = Decimal("0.000001")  # of the ε of one column


@dataclass(frozen=True)
class ColumnAlone:
    """One column: the margin of error over 1,000 rows, jointly and by itself.

    Attributes:
        name: of the column.
        figure: what is estimated: its mean, or its least certain share.
        jointly, alone: 95% margin of error for uniform labels; None where there is no estimate.
        mechanism: that it has by itself.
    """

    name: str
    figure: str
    jointly: float | None
    alone: float | None
    mechanism: str


@dataclass(frozen=True)
class OneByOne:
    """The comparison; ``epsilon`` is that of each column by itself, ``loss`` that of the spec."""

    epsilon: float
    columns: list[ColumnAlone]
    loss_jointly: float
    loss_alone: float


def one_by_one(spec: Spec, epsilon: Fraction, use: ExpectedUse | None) -> OneByOne | None:
    """The comparison for the ε of a label, whose ``use`` is known.

    None of one column, or where there is no use, as that would take too long.
    """
    domain = spec.domain
    if not isinstance(spec.label, JointLabelSpec) or not isinstance(domain, JointDomain):
        return None
    if use is None:
        return None
    part = Decimal(epsilon.numerator) / Decimal(epsilon.denominator) / len(domain.parts)
    share = part.quantize(_PLACES, ROUND_FLOOR)
    weights = [1] * domain.size
    try:
        joint = use.randomizer
        if use.prior != "uniform":
            joint = spec.named_mechanism.build(
                problem_of(spec, domain, weights, epsilon)
            ).randomizer
        alone = [_alone(spec, column, share) for column in spec.label.columns]
    except (ValueError, ArithmeticError, InputError):
        return None
    table = matrix(joint, range(domain.size))
    inverse = _weights(joint, table)
    places = domain.places_of(np.arange(domain.size))
    columns = []
    for column, own, at in zip(domain.parts, alone, places, strict=True):
        together = _margin(column, at, table, inverse, means=own.figure == _MEAN)
        columns.append(ColumnAlone(own.name, own.figure, together, own.error, own.mechanism))
    losses = spec.column_losses
    if losses is None:
        jointly = float(analyse(joint).expected_loss(domain.labels(), weights, spec.loss)[0])
        kept = float(np.prod([1 - own.loss for own in alone]))  # uniform columns are independent
        return OneByOne(float(share), columns, jointly, 1 - kept)
    found = column_losses(domain, joint, [own.loss for own in losses], weights)
    split = sum(float(own.weight) * one.loss for own, one in zip(losses, alone, strict=True))
    return OneByOne(float(share), columns, float(total_loss(losses, found)), split)


_MEAN, _SHARE = "its mean", "its least certain share"


@dataclass(frozen=True)
class _Alone:
    name: str
    figure: str
    mechanism: str
    error: float | None
    loss: float


def _alone(joint: Spec, column: JointColumnSpec, epsilon: Decimal) -> _Alone:
    """One column by the mechanism that ``auto`` chooses for it."""
    stated = column.model_dump(exclude={"loss", "weight"}, exclude_none=True)
    spec, _ = resolved(
        Spec.model_validate(
            {
                "version": 1,
                "name": joint.name,
                "goal": joint.goal,
                "label": stated,
                "loss": column.loss or "zero_one",
                "privacy": {"epsilon": epsilon},
                "prior": {"kind": "uniform"},
                "mechanism": {"kind": "auto"},
            }
        )
    )
    domain, exact = spec.domain, Fraction(epsilon)
    weights = [1] * domain.size
    spec.named_mechanism.require_feasible(domain, spec.loss, exact)
    randomizer = spec.named_mechanism.build(problem_of(spec, domain, weights, exact)).randomizer
    figures, _ = assess(domain, randomizer, weights, exact, classes=spec.has_classes)
    labels, astray = domain.labels(), strays(domain)
    loss = analyse(randomizer).expected_loss(labels, weights, spec.loss, astray)[0]
    figure, error = _SHARE if spec.has_classes else _MEAN, figures.margin_under_prior(ROWS)
    return _Alone(column.column, figure, spec.mechanism.kind, error, float(loss))


Floats = NDArray[np.float64]


def _weights(joint: Randomizer, table: Floats) -> Floats | None:
    """[m, K] unbiased estimates of the combination from each output; None if there are none."""
    if sets_of(joint) is not None:
        return set_weights(joint)
    return least_variance_inverse(table)


def _margin(
    part: Part, at: NDArray[np.int64], table: Floats, inverse: Floats | None, *, means: bool
) -> float | None:
    """Of the mean of a column, or of its least certain share, whose places are ``at`` [K]."""
    if inverse is None:
        return None
    functionals = np.eye(part.size)[at]
    if means:
        assert not isinstance(part, CategoricalDomain)
        numbers = np.array([float(y) for y in part.labels()])
        functionals = (numbers - numbers.mean())[at][:, None]
    estimators = inverse @ functionals
    noise = table.mean(axis=0) @ estimators**2 - (functionals**2).mean(axis=0)
    average = max(float(noise.max()), 0.0)
    reach = float(np.abs(estimators).max() + np.abs(functionals).max())
    rounded = float(bias_in_range(part, Fraction(0))) if means else 0.0
    return Noise(average, average, average, reach, reach, rounded).margin_under_prior(ROWS)
