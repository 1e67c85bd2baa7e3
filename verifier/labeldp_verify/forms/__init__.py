"""The exact forms: what a label is, and the integers that decide every probability."""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
