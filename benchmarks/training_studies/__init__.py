"""The studies of ``benchmarks/training.py``."""
