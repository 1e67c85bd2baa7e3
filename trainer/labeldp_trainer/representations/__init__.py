"""Representations: maps of features that are learned without labels."""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
