"""The face of the compiler for other distributions: the one module that the trainer imports of it.

``__init__.pyi`` lists the names; each is loaded when it is used. A module of the compiler may move
as long as its names stay here.
"""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
