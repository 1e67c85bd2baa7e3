"""Aggregates of the true labels from private ones: histogram, mean, quantiles, with intervals."""

from labeldp_compile.tools.estimate.aggregates import Aggregates, estimate_table
from labeldp_compile.tools.estimate.columns import ColumnEstimates
from labeldp_compile.tools.estimate.document import class_name
from labeldp_compile.tools.estimate.estimate import Estimation, GroupEstimates
from labeldp_compile.tools.estimate.intervals import CONFIDENCE, MIN_ROWS, Target
from labeldp_compile.tools.estimate.inversion import NotEstimableError
from labeldp_compile.tools.estimate.private_counts import (
    GroupCounts,
    OutputCounts,
    count_outputs,
)

__all__ = [
    "CONFIDENCE",
    "MIN_ROWS",
    "Aggregates",
    "ColumnEstimates",
    "Estimation",
    "GroupCounts",
    "GroupEstimates",
    "NotEstimableError",
    "OutputCounts",
    "Target",
    "class_name",
    "count_outputs",
    "estimate_table",
]
