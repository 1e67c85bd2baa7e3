"""The errors that a user can fix. Each is an ``InputError``: one message and an exit code.

One of them is that a package is not installed which only some commands need.
"""

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

from labeldp_verify.errors import InputError

__all__ = ["BudgetError", "DataError", "InputError", "SpecError"]


class SpecError(InputError):
    """The spec is wrong; the message starts with the file, the line and the key."""


class DataError(InputError):
    """A data file is missing, unreadable, empty or has the wrong columns."""


class BudgetError(InputError):
    """The spec asks to spend more than the privacy budget allows."""


def refused(path: Path, reason: str) -> DataError:
    """The error that refuses a file."""
    return DataError(f"{path}: {reason}")


def require_installed(asked: str, *modules: str, install: str) -> None:
    """Raise InputError if one of the modules that ``asked`` needs is not installed."""
    if missing := [name for name in modules if importlib.util.find_spec(name) is None]:
        names = ", ".join(name.replace("_", "-") for name in missing)
        raise InputError(f"{asked} needs {names}: {install}")


def require_pages() -> None:
    """Raise InputError if the pictures of pages cannot be drawn."""
    require_installed("a page with pictures", "matplotlib", install="pip install matplotlib")


def trainer_module(name: str, asked: str) -> ModuleType:
    """A module of labeldp-trainer, for ``asked``. Raises InputError if it is not installed."""
    # Imported on use: JAX takes seconds to load.
    require_installed(
        asked, "labeldp_trainer", install="in a clone of labeldp, pip install ./trainer"
    )
    return importlib.import_module(f"labeldp_trainer.{name}")
