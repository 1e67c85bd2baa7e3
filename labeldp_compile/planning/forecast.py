"""What a compile will take and make, before it is done: outputs, bytes, seconds.

Where the prior decides, and is not known yet, an estimate is a range. Seconds are orders of
magnitude: the constants were fitted on two cores of an AMD EPYC server to what
``benchmarks/plan.py`` prints, which compares every estimate here with a real compile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labeldp_verify.forms import CategoricalDomain

from labeldp_compile.mechanisms.rr_on_bins import MAX_CERTIFIED_LABELS
from labeldp_compile.planning.budget import Budget
from labeldp_compile.planning.layout import Layout, layouts
from labeldp_compile.sizes import known_weights
from labeldp_compile.spec import Spec
from labeldp_compile.spec.mechanism import Mechanism, OptimalUnbiased, RRonBins, RRTopK, RRWithPrior
from labeldp_compile.spec.model import PrivatePrior

_SOLVERS = {
    "randomized_response": "closed form",
    "rr_top_k": "closed form, after sorting the prior",
    "rr_with_prior": "closed form, after sorting the prior",
    "rr_on_bins": "dynamic program over bins",
    "optimal_unbiased": "interior-point method on the outputs, refined to the exact optimum",
    "debiased_rr": "closed form",
    "laplace": "closed form",
    "staircase": "closed form, after a search for the best width",
    "exponential": "bisection for the largest rate",
}
# Graph and self test: the two forms with alias tables have longer self tests.
_MODEL_BYTES = {"window": 3_300, "additive": 26_000, "table": 15_000}
_CERTIFICATE_BYTES = 1_900  # without anything that is listed by label
_DUAL_BYTES, _SLOPE_BYTES, _BIAS_BYTES = 23, 22, 22  # of one label's decimal, with quotes
_NO_SLOPE_BYTES = 6
_ROWS_A_SECOND = 2e7  # counted for the prior
_SECONDS_A_MEGABYTE = 0.3  # of tables: written, rebuilt, run
_SECONDS_A_LABEL = {
    "randomized_response": 2e-4,
    "rr_top_k": 2e-4,
    "rr_with_prior": 2e-4,
    "rr_on_bins": 2e-4,
    "optimal_unbiased": 8e-4,
    "debiased_rr": 3e-4,
    "laplace": 1e-4,
    "staircase": 1e-4,
    "exponential": 2e-4,
}
_START_SECONDS = 0.02
_WIDE_BINS_EPSILON = 4.0  # from here on the duals of RR-on-Bins may take an interior-point method


@dataclass(frozen=True)
class Range:
    """The estimate lies between the two; they are equal where nothing but rounding is open."""

    least: float
    most: float


@dataclass(frozen=True)
class Forecast:
    """What a compile will take and make."""

    solver: str
    outputs: Range
    size: Range
    seconds: Range


def forecast(spec: Spec, budget: Budget) -> Forecast:
    """The estimate for a spec; touches no label."""
    mechanism, k, epsilon = spec.named_mechanism, spec.domain.size, float(budget.label)
    weights = known_weights(spec)
    least, most = _extremes(layouts(mechanism, spec.domain, spec.loss, budget.label, weights))
    listed = _certificate_bytes(spec, budget, weights)
    fixed = _MODEL_BYTES[most.form] + _names(spec) + listed
    size = Range(fixed + least.bytes, fixed + most.bytes)
    counting = 0 if _is_counted(spec) else (budget.rows or 0) / _ROWS_A_SECOND
    seconds = [
        _START_SECONDS
        + counting
        + _SECONDS_A_LABEL[mechanism.kind] * k
        + _SECONDS_A_MEGABYTE * part.bytes / 1e6
        for part in (least, most)
    ]
    seconds[1] += _slow_solve(mechanism, spec.loss, k, epsilon)
    return Forecast(
        _solver(mechanism),
        Range(least.outputs, most.outputs),
        Range(*(float(f"{size_:.2g}") for size_ in (size.least, size.most))),
        Range(*(float(f"{part:.1g}") for part in seconds)),
    )


def _is_counted(spec: Spec) -> bool:
    """Whether the data are counts already, and no label is rounded at random."""
    is_histogram = isinstance(spec.prior, PrivatePrior) and spec.prior.counts is not None
    return is_histogram and spec.domain.words_per_label == 1


def _extremes(possible: Sequence[Layout]) -> tuple[Layout, Layout]:
    sizes, outputs = [part.bytes for part in possible], [part.outputs for part in possible]
    form = possible[0].form
    return Layout(min(outputs), min(sizes), form), Layout(max(outputs), max(sizes), form)


def _solver(mechanism: Mechanism) -> str:
    if isinstance(mechanism, OptimalUnbiased) and mechanism.outputs != "exact":
        return "linear program on the given outputs (HiGHS)"
    return _SOLVERS[mechanism.kind]


def _slow_solve(mechanism: Mechanism, loss: str, k: int, epsilon: float) -> float:
    """Seconds more that a solve may take, for some priors."""
    if isinstance(mechanism, OptimalUnbiased):
        if mechanism.outputs == "exact" and mechanism.bias is not None:
            return (1e-4 if mechanism.bias.max else 5e-6) * k**2
        if mechanism.outputs == "exact":
            return 5e-7 * k**2
        grid = mechanism.outputs.grid or len(mechanism.outputs.values or [])
        return 5e-8 * k**2 * grid**2
    certified = loss != "poisson" and k <= MAX_CERTIFIED_LABELS
    if isinstance(mechanism, RRonBins) and certified and epsilon >= _WIDE_BINS_EPSILON:
        return 0.02 * k
    return 0.0


def _certificate_bytes(spec: Spec, budget: Budget, weights: Sequence[int] | None) -> int:
    """The certificate: fixed fields, the prior, and what is proved label by label."""
    k = spec.domain.size
    if weights is not None:
        prior = sum(len(str(weight)) + 1 for weight in weights)
    else:
        prior = round(k * (math.log10(budget.rows or 10**6) + 2))
    return _CERTIFICATE_BYTES + prior + round(k * _proof_bytes(spec.named_mechanism, spec.loss, k))


def _proof_bytes(mechanism: Mechanism, loss: str, k: int) -> float:
    """Bytes of dual values and biases for one label."""
    if isinstance(mechanism, OptimalUnbiased) and mechanism.outputs == "exact":
        budgeted = mechanism.bias is not None and bool(mechanism.bias.max != 0)
        return _DUAL_BYTES + _SLOPE_BYTES + (_BIAS_BYTES if budgeted else 0)
    bins = isinstance(mechanism, RRonBins) and loss in ("squared", "absolute")
    top = isinstance(mechanism, RRTopK | RRWithPrior) and loss == "zero_one"
    certified = (bins or top) and k <= MAX_CERTIFIED_LABELS
    return _DUAL_BYTES + _NO_SLOPE_BYTES if certified else 0.0


def _names(spec: Spec) -> int:
    """Bytes of the categories: once in the graph's encoder, once in the certificate."""
    if not isinstance(spec.domain, CategoricalDomain):
        return 0
    return sum(2 * (len(str(value).encode()) + 4) for value in spec.domain.values)
