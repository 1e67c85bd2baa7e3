"""The label prior: given, uniform, or estimated privately from a table."""

from labeldp_compile.prior.estimate import Keep, Prior, estimate_prior
from labeldp_compile.prior.histogram import count_labels

__all__ = ["Keep", "Prior", "count_labels", "estimate_prior"]
