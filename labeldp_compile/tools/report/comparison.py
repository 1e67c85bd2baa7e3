"""The same labels, prior and ε₂ under the other mechanisms, each compiled and verified for real.

Nothing else of a report compiles, and this only where it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from labeldp_verify.certificate import Certificate
from labeldp_verify.printable import clipped

from labeldp_compile.mechanisms.mechanism import Mechanism
from labeldp_compile.planning.budget import Budget
from labeldp_compile.planning.forecast import forecast
from labeldp_compile.prior import Prior
from labeldp_compile.spec import Spec
from labeldp_compile.tools.inspection import Decoded, is_unbiased
from labeldp_compile.tools.sweep import Point, find_candidates, measure

MAX_SECONDS = 5.0  # by the estimates of plan, so that the same file always gives the same page
MAX_LABELS = 20_000  # beyond, not even the fastest would fit
_SAME = 1e-9
_TITLE_COLUMNS = 60
_SLOW = "would take more than a few seconds here; labeldp sweep compares everything"


@dataclass(frozen=True)
class Standing:
    """The loss of one mechanism.

    Attributes:
        title: of the mechanism.
        loss: the noisy label loss.
        bias_in_range: the largest for all labels in the range; None for categories.
        unbiased: whether the largest bias is nothing but rounding.
        own: whether it is the file's.
    """

    title: str
    loss: float
    bias_in_range: float | None
    unbiased: bool
    own: bool

    @property
    def biased(self) -> bool:
        """Whether it has a bias that is more than rounding; categories have none."""
        return self.bias_in_range is not None and not self.unbiased


@dataclass(frozen=True)
class Comparison:
    """Other mechanisms at the ε₂ of a file.

    Attributes:
        points: what was measured, least loss first.
        standings: the same and the file itself, least loss first; of equal ones the file.
        left_out: (title, reason) of mechanisms that were not.
    """

    points: list[Point]
    standings: list[Standing]
    left_out: list[tuple[str, str]]


def compare(decoded: Decoded) -> Comparison:
    """Every mechanism that fits the labels and the loss, as far as ``MAX_SECONDS`` go.

    Those that take least come first. The file's own mechanism is compiled again with default
    options, and left out where that makes no difference to the loss.
    """
    certificate = decoded.certificate
    epsilon = Fraction(certificate.exact.epsilon_label)
    if decoded.domain.size > MAX_LABELS:
        return _comparison(
            decoded, [], [("all others", f"with {decoded.domain.size:,} labels they {_SLOW}")]
        )
    try:
        spec = _spec(decoded)
    except ValueError as error:
        return _comparison(
            decoded, [], [("all others", f"no spec states these labels and weights: {error}")]
        )
    weights = certificate.prior.weights
    prior = Prior(weights, Fraction(0), epsilon, {"kind": "public", "weights": weights})
    candidates = find_candidates(spec, None)
    left_out = list(candidates.left_out)
    points = []
    for mechanism, affordable in _affordable(spec, candidates.chosen, epsilon):
        title = mechanism.title
        if not affordable:
            left_out.append((title, _SLOW))
            continue
        point = measure(spec, mechanism, prior, "0" * 64)
        if not isinstance(point, Point):
            left_out.append((title, point.reason))
        elif mechanism.kind != certificate.mechanism or not _same_loss(point, certificate):
            points.append(point)
    return _comparison(decoded, points, left_out)


def _comparison(
    decoded: Decoded, points: list[Point], left_out: list[tuple[str, str]]
) -> Comparison:
    certificate = decoded.certificate
    utility = certificate.utility
    own = Standing(
        title=f"{clipped(certificate.mechanism, _TITLE_COLUMNS)} (this file)",
        loss=utility.noisy_label_loss,
        bias_in_range=decoded.bias_in_range,
        unbiased=is_unbiased(decoded.domain, utility.largest_bias),
        own=True,
    )
    others = [
        Standing(point.mechanism, point.loss, point.bias_in_range, point.unbiased, False)
        for point in points
    ]
    ranked = sorted([own, *others], key=lambda standing: standing.loss)
    return Comparison(sorted(points, key=lambda point: point.loss), ranked, left_out)


def _affordable(
    spec: Spec, mechanisms: list[Mechanism], epsilon: Fraction
) -> list[tuple[Mechanism, bool]]:
    budget = Budget(epsilon, Fraction(0), epsilon, None, None, None)
    costs = [forecast(spec.with_mechanism(m), budget).seconds.most for m in mechanisms]
    spent, result = 0.0, []
    for index in sorted(range(len(mechanisms)), key=lambda i: costs[i]):
        spent += costs[index]
        result.append((mechanisms[index], spent <= MAX_SECONDS))
    return result


def _same_loss(point: Point, certificate: Certificate) -> bool:
    own: float = certificate.utility.noisy_label_loss
    return abs(point.loss - own) <= _SAME * abs(own)


def _label(certificate: Certificate) -> dict[str, Any]:
    """The spec's label; of a joint one with the losses of its columns, if they are summed."""
    domain = certificate.label.domain
    if certificate.joint is None:
        return _column("label", domain)
    columns = []
    for claims, part in zip(certificate.joint.columns, domain["columns"], strict=True):
        weight = None if claims.weight is None else Decimal(float(Fraction(claims.weight)))
        columns.append({**_column(claims.name, part), "loss": claims.loss, "weight": weight})
    return {"columns": columns}


def _column(name: str, domain: dict[str, Any]) -> dict[str, Any]:
    stated = dict(domain)
    rule = stated.pop("out_of_domain")
    stated.pop("rounding", None)  # each mechanism has its own; the loss is over the grid points
    return {"column": name, "domain": stated, "out_of_domain": rule}


def _spec(decoded: Decoded) -> Spec:
    """A spec with the file's labels, loss and prior; ε of the label is given beside it."""
    certificate = decoded.certificate
    weights = [Decimal(weight) for weight in certificate.prior.weights]
    return Spec.model_validate(
        {
            "version": 1,
            "name": "compared",
            "label": _label(certificate),
            "loss": certificate.utility.loss,
            "privacy": {"epsilon": certificate.privacy.epsilon_label},
            "prior": {"kind": "public", "weights": weights},
            "mechanism": {"kind": "randomized_response"},
        }
    )
