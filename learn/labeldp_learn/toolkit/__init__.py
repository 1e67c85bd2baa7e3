"""The face of this package for other distributions: what a private label says of a true one.

It needs numpy and labeldp-verify alone. ``__init__.pyi`` lists the names; each is loaded when it is
used. Scripts rely on the names of ``labeldp_learn`` instead.
"""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
