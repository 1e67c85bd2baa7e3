"""The losses: ``LOSSES`` holds one record for each, which all other code of the compiler asks.

A record says what the compiler knows of a loss, in addition to what the verifier knows. What is
exact about a loss is in ``labeldp_verify.analysis.losses``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from labeldp_verify.analysis import LOSSES as EXACT
from labeldp_verify.analysis import CostMatrix, Loss, parsed

from labeldp_compile.solve.bin_costs import (
    BinCosts,
    ConvexCosts,
    Divergence,
    Floats,
    MeanCosts,
    SidedCosts,
    poisson_divergence,
    scale_of,
    squared_divergence,
)

MAX_CERTIFIED_LABELS = 20_000  # beyond, dual values would be larger than the tables
CONVEX_LABELS = 1_000  # beyond, intervals times labels take too long to check
CONVEX_SECONDS = 8e-3  # for each label
CONVEX_REPAIR = -7


@dataclass(frozen=True)
class LossRecord:
    """Everything that the compiler knows of a loss ℓ(v, y), in addition to what the verifier knows.

    Attributes:
        name: as in a spec.
        formula: in words, for the reference.
        mean: its expectation in words, for pages and pictures.
        less: a smaller expectation in words.
        of: ℓ of outputs v and labels y that broadcast.
        training: the kind of mechanism that a model learns best from, and why.
        degree: d if ℓ = |v − y|^d / d, and 0 if ℓ = [v ≠ y]; None if it is another. Additive noise,
            exact unbiased outputs and the bounds of RR-on-Bins know only such losses.
        slopes: u and o if ℓ = u·(y − v)⁺ + o·(v − y)⁺; None if it is another.
        bins: the costs of bins, from labels [n] that increase, their positive prior [n] of sum 1,
            and ε > 0; None if it is not for RR-on-Bins.
        divergence: ℓ(v, y) − ℓ(y, y) of label and output, accurate relative to itself; None if it
            is ``of``.
        positive: whether labels must be at least 0, and outputs positive.
        costs: [k, k] of labels and outputs if there are no others; None if ``of`` has them.
        certified: up to this many labels, dual values prove a bound for RR-on-Bins.
        seconds: to find and to check such a dual value.
        repair: dual values are first lowered by 10 to this power, relative to the loss; None if
            they are first tried as they are. The narrower a gap, the longer its check takes.
    """

    name: str
    formula: str
    mean: str
    less: str
    of: Callable[[Floats, Floats | float], Floats]
    training: tuple[str, str]
    degree: int | None = None
    slopes: tuple[float, float] | None = None
    bins: Callable[[Floats, Floats, float], BinCosts] | None = None
    divergence: Divergence | None = None
    positive: bool = False
    costs: Floats | None = None
    certified: int = 0
    seconds: float = 0.0
    repair: int | None = None

    @property
    def equality(self) -> bool:
        """Whether it only asks if output and label are the same."""
        return EXACT[self.name].equality

    @property
    def needs_numbers(self) -> bool:
        """Whether labels must be numbers."""
        return EXACT[self.name].needs_numbers

    def apart(self, v: Floats, y: Floats) -> Floats:
        """ℓ(v, y) − ℓ(y, y) ≥ 0 of outputs and labels that broadcast."""
        return self.of(v, y) if self.divergence is None else self.divergence(y, v)


@dataclass(frozen=True)
class FamilyRecord:
    """Losses with parameters.

    Attributes:
        formula: in words, for the reference.
        make: the record of a name and of parameters, as ``LossFamily`` of the verifier has them.
    """

    formula: str
    make: Callable[..., LossRecord]


# The losses with parameters: a record for each family.

_LEARN = (
    "rr_on_bins",
    "rr_on_bins has the least noisy label loss of all ε-DP randomizers, with bias (for labels "
    "without bias, on which a model trains as well, say loss: squared)",
)


def _sided(name: str, under: Fraction, over: Fraction) -> LossRecord:
    u, o = float(under), float(over)
    return LossRecord(
        name,
        f"{u:g}·(y − ŷ) below the label, {o:g}·(ŷ − y) above it",
        f"mean of {u:g} · (label − output) below the label, {o:g} · (output − label) above",
        "a smaller mean cost of errors",
        lambda v, y: np.maximum(u * (y - v), o * (v - y)),
        _LEARN,
        slopes=(u, o),
        bins=partial(SidedCosts, under=u, over=o),
        certified=MAX_CERTIFIED_LABELS,
        seconds=2e-5,
    )


def _convex(
    name: str, formula: str, mean: str, less: str, of: Callable[[Floats, Floats | float], Floats]
) -> LossRecord:
    return LossRecord(
        name,
        formula,
        mean,
        less,
        of,
        _LEARN,
        bins=partial(ConvexCosts, of=of),
        certified=CONVEX_LABELS,
        seconds=CONVEX_SECONDS,
        repair=CONVEX_REPAIR,
    )


def _huber(name: str, delta: Fraction) -> LossRecord:
    most = float(delta)

    def of(v: Floats, y: Floats | float) -> Floats:
        d = np.abs(v - y)
        e = np.minimum(d, most)
        return np.asarray(e * (d - 0.5 * e))

    return _convex(
        name,
        f"½(ŷ − y)² up to {most:g}, then in proportion to the distance",
        f"mean of ½ (output − label)² up to {most:g}, then {most:g} · (distance − {most / 2:g})",
        "a smaller mean Huber loss",
        of,
    )


def _power(name: str, power: Fraction) -> LossRecord:
    p = float(power)

    def of(v: Floats, y: Floats | float) -> Floats:
        return np.asarray(np.abs(v - y) ** p / p)

    return _convex(
        name,
        f"|ŷ − y|^{p:g}/{p:g}",
        f"mean of |output − label|^{p:g} / {p:g}",
        "a smaller mean error",
        of,
    )


FAMILY_RECORDS = {
    "quantile": FamilyRecord(
        "{quantile: q} with q·(y − ŷ) below the label and (1 − q)·(ŷ − y) above it",
        lambda name, q: _sided(name, q, 1 - q),
    ),
    "under_over": FamilyRecord(
        "{under: u, over: o} with u·(y − ŷ) below the label and o·(ŷ − y) above it", _sided
    ),
    "huber": FamilyRecord(
        "{huber: δ} with ½(ŷ − y)² up to a distance of δ, and δ·(|ŷ − y| − δ/2) beyond", _huber
    ),
    "power": FamilyRecord("{power: p} with |ŷ − y|^p/p", _power),
}


# The losses without parameters, and those with the costs of a file.


def _squared_costs(labels: Floats, prior: Floats, epsilon: float) -> BinCosts:
    scale, origin = scale_of(labels), float(labels[0] + prior @ (labels - labels[0]))
    return MeanCosts(labels, prior, epsilon, squared_divergence, origin, scale * scale)


def _poisson_costs(labels: Floats, prior: Floats, epsilon: float) -> BinCosts:
    positive = labels > 0
    y, p = labels[positive], prior[positive]
    shift = float(p @ (y - y * np.log(y)))
    scale = scale_of(labels)
    return MeanCosts(labels, prior, epsilon, poisson_divergence, 0.0, scale, shift)


def _poisson(outputs: Floats, labels: Floats | float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return outputs - np.where(labels > 0, labels * np.log(outputs), 0.0)


def _no_loss(outputs: Floats, labels: Floats | float) -> Floats:
    raise ValueError("this loss is not one of two numbers")


COSTS = "{matrix: FILE} or {tree: FILE} with a cost of each output for each label"


@lru_cache(maxsize=8)  # equal names have equal costs
def _matrix(name: CostMatrix) -> LossRecord:
    """With the costs of a spec or a file."""
    return LossRecord(
        name,
        COSTS,
        "mean cost of the output for the label",
        "a smaller mean cost",
        _no_loss,
        (
            "least_cost",
            "least_cost has the least expected cost of all ε-DP randomizers; it may never answer "
            "with some labels (for shares of labels and classifiers, say loss: zero_one)",
        ),
        costs=np.array(name.costs.rows, np.float64) / name.costs.unit,
    )


# None of these is rr_with_prior: nothing can be learned about labels that it never returns.
_LEARN_CLASSES = (
    "randomized_response",
    "randomized_response can answer with every label, so its noise can be removed from shares of "
    "labels and from the loss of a model; rr_with_prior never answers with some labels",
)
_RECORDS = (
    LossRecord(
        "squared",
        "½(ŷ − y)²",
        "mean of ½ (output − label)²",
        "a smaller mean squared error",
        squared_divergence,
        (
            "optimal_unbiased",
            "optimal_unbiased adds the least noise possible at this ε while staying right on "
            "average; a model trained with the squared loss learns the mean",
        ),
        degree=2,
        bins=_squared_costs,
        certified=MAX_CERTIFIED_LABELS,
        seconds=8e-5,
    ),
    LossRecord(
        "absolute",
        "|ŷ − y|",
        "mean of |output − label|",
        "a smaller mean error",
        lambda v, y: np.abs(v - y),
        (
            "staircase",
            "staircase noise is symmetric, so it keeps the median and the mean of every label; a "
            "model trained with the absolute loss learns the median",
        ),
        degree=1,
        slopes=(1.0, 1.0),
        bins=SidedCosts,
        certified=MAX_CERTIFIED_LABELS,
        seconds=2e-5,
    ),
    LossRecord(
        "poisson",
        "ŷ − y·ln ŷ",
        "mean of output − label · ln output",
        "a smaller mean loss",
        _poisson,
        (
            "rr_on_bins",
            "rr_on_bins has the least noisy label loss, with bias; without bias, some outputs "
            "would be negative, where the poisson loss is not defined (a Poisson regression also "
            "trains on unbiased labels: for these, write loss: squared)",
        ),
        bins=_poisson_costs,
        divergence=poisson_divergence,
        positive=True,
        certified=CONVEX_LABELS,
        seconds=CONVEX_SECONDS,
        repair=CONVEX_REPAIR,
    ),
    LossRecord(
        "zero_one",
        "1 if ŷ ≠ y",
        "share of changed labels",
        "a smaller share of changed values",
        lambda v, y: np.asarray(np.abs(v - y) > 0, np.float64),
        _LEARN_CLASSES,
        degree=0,
    ),
    LossRecord(
        "sum",
        "the sum of the columns' losses",
        "weighted sum of the columns' losses",
        "a smaller sum of losses",
        _no_loss,
        _LEARN_CLASSES,
    ),
)


class _Losses(Mapping[Loss, LossRecord]):
    """The records by name; iteration gives the names without parameters."""

    def __init__(self, records: Sequence[LossRecord]) -> None:
        self._records = {loss.name: loss for loss in records}

    def __getitem__(self, name: Loss) -> LossRecord:
        """The record of a name that the verifier knows. Raises KeyError."""
        if isinstance(name, CostMatrix):
            return _matrix(name)
        if name in self._records:
            return self._records[name]
        family, values = parsed(EXACT[name].name) or ("", [])
        return FAMILY_RECORDS[family].make(name, *values)

    def __iter__(self) -> Iterator[Loss]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


LOSSES = _Losses(_RECORDS)
OF_ONE_COLUMN = tuple(name for name in LOSSES if name != "sum")


def bin_costs(loss: Loss, labels: Floats, prior: Floats, epsilon: float) -> BinCosts:
    """Bin costs of a loss (``LossRecord.bins``). ValueError if it has none."""
    costs = LOSSES[loss].bins
    if costs is None:
        raise ValueError(f"the {loss} loss is not for bins")
    return costs(labels, prior, epsilon)
