"""The priors of all tables: given, uniform, or estimated privately from data."""

from labeldp_compile.prior.histogram import count_labels
from labeldp_compile.prior.obtain import estimate_prior
from labeldp_compile.prior.priors import Prior, TablePrior

__all__ = ["Prior", "TablePrior", "count_labels", "estimate_prior"]
