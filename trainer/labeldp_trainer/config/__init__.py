"""Training configs: the models, and the way from a file to them."""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
