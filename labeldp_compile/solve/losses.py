"""The losses: ``LOSSES`` holds one record for each, which all other code of the compiler asks.

Those with parameters are in ``loss_families``. What is exact about a loss is in
``labeldp_verify.analysis.losses``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from labeldp_verify.analysis import LOSSES as EXACT
from labeldp_verify.analysis import CostMatrix, Loss, parsed

from labeldp_compile.solve.bin_costs import (
    BinCosts,
    Floats,
    MeanCosts,
    SidedCosts,
    poisson_divergence,
    scale_of,
    squared_divergence,
)
from labeldp_compile.solve.loss_families import FAMILY_RECORDS
from labeldp_compile.solve.loss_record import (
    CONVEX_LABELS,
    CONVEX_REPAIR,
    CONVEX_SECONDS,
    MAX_CERTIFIED_LABELS,
    LossRecord,
)


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
