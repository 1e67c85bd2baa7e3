"""Additive randomizers: decoded, analysed, and run at their thresholds."""

from labeldp_compile.verify.additive.form import AdditiveForm

__all__ = ["AdditiveForm"]
