"""``dp_sgd`` and ``labeldp_pro``: private training in the central model (docs/privacy.md,
Theorem 7).
"""

from labeldp_trainer.methods.central.builder import CentralBuilder

__all__ = ["CentralBuilder"]
