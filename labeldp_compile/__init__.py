"""A declarative compiler for label differential privacy.

These functions do what the commands of the same names do; everything else is internal. They, and
the types that they return, are loaded when they are asked for: ``__init__.pyi`` lists them.
"""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
