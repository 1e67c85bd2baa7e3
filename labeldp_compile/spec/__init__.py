"""The spec: what the user asks for. It is read strictly, and errors explain what is wrong.

The names in ``__init__.pyi`` are loaded when they are used: to compare a certificate with a spec
(``agreement``) needs no model of it.
"""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
