"""Block designs for private sets of classes: a generated catalogue, and the choice from it."""

from labeldp_compile.solve.block_designs.choice import best_candidate, best_design
from labeldp_compile.solve.block_designs.design import BlockDesign, Candidate, noise

__all__ = ["BlockDesign", "Candidate", "best_candidate", "best_design", "noise"]
