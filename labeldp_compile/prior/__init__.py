"""The label prior: given, uniform, or estimated privately from a table."""

from labeldp_compile.prior.histogram import count_labels
from labeldp_compile.prior.obtain import Keep, Prior, estimate_prior

__all__ = ["Keep", "Prior", "count_labels", "estimate_prior"]
