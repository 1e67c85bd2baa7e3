"""The JAX trainer of labeldp: training under label differential privacy."""
