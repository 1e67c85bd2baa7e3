"""Packages that only some commands need, or one sentence that says how to get them."""

import importlib
import importlib.util
from types import ModuleType

from labeldp_compile.errors import InputError


def require_installed(asked: str, *modules: str, install: str) -> None:
    """Raise InputError if one of the modules that ``asked`` needs is not installed."""
    if missing := [name for name in modules if importlib.util.find_spec(name) is None]:
        names = ", ".join(name.replace("_", "-") for name in missing)
        raise InputError(f"{asked} needs {names}: {install}")


def trainer_module(name: str, asked: str) -> ModuleType:
    """A module of labeldp-trainer, for ``asked``. Raises InputError if it is not installed."""
    # Imported on use: JAX takes seconds to load.
    require_installed(
        asked, "labeldp_trainer", install="in a clone of labeldp, pip install ./trainer"
    )
    return importlib.import_module(f"labeldp_trainer.{name}")
