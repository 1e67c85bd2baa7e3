"""Policies as files: what a company demands of artifacts, training runs and ledgers."""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
