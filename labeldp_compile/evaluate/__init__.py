"""How good models are: from private labels alone, or from true ones by one noisy release."""

from labeldp_compile.evaluate.private import Evaluation, evaluate_tables
from labeldp_compile.evaluate.release import Released, release_tables

__all__ = ["Evaluation", "Released", "evaluate_tables", "release_tables"]
