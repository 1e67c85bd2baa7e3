"""Table randomizers: decoded, analysed, and run at their thresholds."""

from labeldp_compile.verify.table.form import TableForm

__all__ = ["TableForm"]
