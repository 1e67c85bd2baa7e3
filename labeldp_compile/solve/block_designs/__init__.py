"""Block designs for private sets of classes: a generated catalogue, and the choice from it."""

from labeldp_compile.solve.block_designs.choice import best_design
from labeldp_compile.solve.block_designs.design import Design
from labeldp_compile.solve.block_designs.noise import least_noise, noise

__all__ = ["Design", "best_design", "least_noise", "noise"]
