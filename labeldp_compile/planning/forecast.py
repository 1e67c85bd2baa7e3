"""Estimates of a compile before it runs: outputs, bytes, seconds.

An estimate is a range if it depends on a prior that is not known yet. ``benchmarks/plan.py``
compares every estimate here with a real compile. The seconds were fitted to its results on two
cores of an AMD EPYC server, and are right within a factor of three.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from labeldp_verify import cost
from labeldp_verify.forms import CategoricalDomain, columns_of

from labeldp_compile.mechanisms.tables import TableLayout
from labeldp_compile.planning.budget import EpsilonBudget, is_unpaid
from labeldp_compile.spec import Spec
from labeldp_compile.spec.model import PrivatePrior
from labeldp_compile.tables import entries_of_table, is_proved

# Graph and self test: the two forms with alias tables have longer self tests.
_MODEL_BYTES = {"window": 3_300, "additive": 26_000, "table": 15_000}
_CERTIFICATE_BYTES = 1_900  # without anything that is listed by label
# Of one label's decimal, with quotes.
_PROOF_BYTES = {"dual": 23, "slope": 22, "bias": 22, "no slope": 6}
_ROWS_A_SECOND = 2e7  # counted for the prior
_SECONDS_A_MEGABYTE = 0.3  # of tables: written, rebuilt, run
_START_SECONDS = 0.02


@dataclass(frozen=True)
class Estimate:
    """A range for the estimate; both ends are equal if only rounding is unknown."""

    least: float
    most: float


@dataclass(frozen=True)
class Forecast:
    """The estimates for a compile, and for verifying the file if it has groups."""

    solver: str
    outputs: Estimate
    size: Estimate
    seconds: Estimate
    verify_seconds: float | None = None


def forecast(spec: Spec, budget: EpsilonBudget) -> Forecast:
    """The estimate for a spec; touches no label.

    Groups that do not differ from all rows share one table, and the prior decides which do: there
    is at least one table. Several tables share one lookup and are solved twice. Their file is
    verified before it is written.
    """
    mechanism, k, grouped = spec.named_mechanism, spec.domain.size, budget.groups is not None
    tables = 1 if budget.groups is None else budget.groups.tables
    weights = spec.known_weights
    if weights is None and is_unpaid(spec, budget):
        weights = [1] * k
    layouts = _extremes(mechanism.layouts(spec.domain, spec.loss, budget.label, weights))
    listed = _certificate_bytes(spec, budget, weights)
    uncounted = grouped or _is_counted(spec) or is_unpaid(spec, budget)
    counting = 0 if uncounted else (budget.rows or 0) / _ROWS_A_SECOND
    proved = is_proved(spec, tables) and bool(mechanism.proof(spec.loss, k))
    a_label = cost.seconds_a_label(spec.loss, spec.domain.kind, duals=proved, windows=True)
    quick, slow = mechanism.seconds(k, spec.loss, float(budget.label))
    sizes, seconds = [], []
    for count, part, each in zip(
        (1, tables), layouts, (quick, quick if grouped else slow), strict=True
    ):
        table, solving = part.bytes, each
        if grouped:
            room = 8 * entries_of_table(spec, count, budget.rows)
            table = min(part.bytes, room + 24 * k) + 16 * k
            solving = count * (2 * solving + k * a_label)
        size = _MODEL_BYTES[mechanism.form] + _names(spec) + count * (table + listed)
        sizes.append(size)
        seconds.append(_START_SECONDS + counting + solving + _SECONDS_A_MEGABYTE * size / 1e6)
    return Forecast(
        mechanism.solver(),
        Estimate(layouts[0].outputs, layouts[1].outputs),
        Estimate(*(float(f"{size:.2g}") for size in sizes)),
        Estimate(*(float(f"{part:.1g}") for part in seconds)),
        float(f"{tables * k * a_label:.1g}") if grouped else None,
    )


def _is_counted(spec: Spec) -> bool:
    """Whether the data are already counts, and no label is rounded at random."""
    is_histogram = isinstance(spec.prior, PrivatePrior) and spec.prior.counts is not None
    return is_histogram and spec.domain.words_per_label == 1


def _extremes(possible: Sequence[TableLayout]) -> tuple[TableLayout, TableLayout]:
    sizes, outputs = [part.bytes for part in possible], [part.outputs for part in possible]
    return TableLayout(min(outputs), min(sizes)), TableLayout(max(outputs), max(sizes))


def _certificate_bytes(spec: Spec, budget: EpsilonBudget, weights: Sequence[int] | None) -> int:
    """The certificate: fixed fields, the prior, and the proofs for each label."""
    k = spec.domain.size
    if weights is not None:
        prior = sum(len(str(weight)) + 1 for weight in weights)
    else:
        prior = round(k * (math.log10(budget.rows or 10**6) + 2))
    listed = sum(_PROOF_BYTES[part] for part in spec.named_mechanism.proof(spec.loss, k))
    return _CERTIFICATE_BYTES + prior + k * listed


def _names(spec: Spec) -> int:
    """Bytes of the categories: once in the graph's encoder, once in the certificate."""
    listed = (part for part in columns_of(spec.domain) if isinstance(part, CategoricalDomain))
    return sum(2 * (len(str(value).encode()) + 4) for part in listed for value in part.values)
