"""The only exact analysis there is: from the integers of a randomizer to all that is claimed of it.

The compiler, the certificate, the tools and the verifier ask here. What it finds is checked by
enumeration from the definition alone (``tests/analysis``).
"""

from labeldp_verify.analysis.additive import AdditiveAnalysis
from labeldp_verify.analysis.analysis import Labels, Loss
from labeldp_verify.analysis.bounds import (
    exp_bounds,
    exp_lower,
    exp_upper,
    least_log_bound,
    log_bounds,
)
from labeldp_verify.analysis.column_losses import ColumnLoss
from labeldp_verify.analysis.composition.compose import (
    MAX_LABELS_PER_USER,
    Composed,
    Part,
    common_step,
    compose_parts,
    masses_of,
)
from labeldp_verify.analysis.inversion import (
    debiased_values,
    least_variance_inverse,
    likeliest_shares,
    project_to_simplex,
)
from labeldp_verify.analysis.lattice import lattice_indices
from labeldp_verify.analysis.lines import StepFunction, ends_of
from labeldp_verify.analysis.lower_bound import (
    BiasRule,
    bound_value,
    dual_is_feasible,
    unbiased_tolerance,
)
from labeldp_verify.analysis.probabilities import (
    Floats,
    at_most,
    columns,
    equally_likely,
    likely_outputs,
    matrix,
    noise_quantiles,
    range_sums,
    row,
    value,
)
from labeldp_verify.analysis.radius_bound import radii_of, radius_bound
from labeldp_verify.analysis.range_bias import rounds_to_nearest
from labeldp_verify.analysis.share_noise import set_weights
from labeldp_verify.analysis.strays import row_means, strays
from labeldp_verify.analysis.table import TableAnalysis
from labeldp_verify.analysis.window import WindowAnalysis
from labeldp_verify.forms import AdditiveRandomizer, Randomizer, TableRandomizer

__all__ = [
    "MAX_LABELS_PER_USER",
    "BiasRule",
    "ColumnLoss",
    "Composed",
    "Floats",
    "Labels",
    "Loss",
    "Part",
    "StepFunction",
    "analyse",
    "at_most",
    "bound_value",
    "columns",
    "common_step",
    "compose_parts",
    "debiased_values",
    "dual_is_feasible",
    "ends_of",
    "equally_likely",
    "exp_bounds",
    "exp_lower",
    "exp_upper",
    "lattice_indices",
    "least_log_bound",
    "least_variance_inverse",
    "likeliest_shares",
    "likely_outputs",
    "log_bounds",
    "masses_of",
    "matrix",
    "noise_quantiles",
    "project_to_simplex",
    "radii_of",
    "radius_bound",
    "range_sums",
    "rounds_to_nearest",
    "row",
    "row_means",
    "set_weights",
    "strays",
    "unbiased_tolerance",
    "value",
]


def analyse(randomizer: Randomizer) -> AdditiveAnalysis | TableAnalysis | WindowAnalysis:
    """The analysis of a randomizer of any form."""
    if isinstance(randomizer, AdditiveRandomizer):
        return AdditiveAnalysis(randomizer)
    if isinstance(randomizer, TableRandomizer):
        return TableAnalysis(randomizer)
    return WindowAnalysis(randomizer)
