"""Trains JAX models on labels under label differential privacy."""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
