"""Solvers: from a prior, a loss and an ε to the best real-valued randomizer."""
