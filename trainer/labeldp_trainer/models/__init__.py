"""Models: frozen dataclasses with ``init(key)`` and ``apply(params, x, key)``."""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
