"""How good models are: from private labels alone, or from true ones by one noisy release."""

from labeldp_compile.tools.evaluate.evaluate import Evaluation, evaluate_tables
from labeldp_compile.tools.evaluate.release import Released, release_tables

__all__ = ["Evaluation", "Released", "evaluate_tables", "release_tables"]
