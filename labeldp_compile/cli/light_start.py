"""How a command is loaded in little time."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType

_OTHERS = ("train", "predict", "export")
"""Commands with threads of other packages, for which a lazy module is not safe to load."""
# scipy says ``from numpy import *``, which loads numpy's tests and its compiler of Fortran, too:
# half of what scipy.sparse takes.
_UNUSED = ("char", "ctypeslib", "f2py", "polynomial", "testing")


def loaded(name: str) -> ModuleType:
    """The module of a command.

    Modules are no garbage: none is looked for while they load, nor in them later.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        module = import_module(name)
    finally:
        if collects:
            gc.freeze()
            gc.enable()
    if name.rpartition(".")[2] not in _OTHERS:
        _postpone_parts_of_numpy()
    return module


def _postpone_parts_of_numpy() -> None:
    """Load what hardly anybody uses of numpy when it is used, if a command has loaded numpy."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return
    for part in _UNUSED:
        name = f"numpy.{part}"
        spec = None if name in sys.modules else find_spec(name)
        if spec is None or spec.loader is None:
            continue
        loader = spec.loader = LazyLoader(spec.loader)
        module = sys.modules[name] = module_from_spec(spec)
        loader.exec_module(module)
        setattr(numpy, part, module)
