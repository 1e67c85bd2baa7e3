"""Errors with messages for people.

All are an ``InputError`` of labeldp: the command line prints its message and exits with 2. labeldp
reads tables, so errors about tables are its own.
"""

import zipfile
import zlib
from tokenize import TokenError

from labeldp_compile.toolkit import DataError, InputError

__all__ = [
    "DAMAGE",
    "ArtifactError",
    "ConfigError",
    "DataError",
    "DivergedError",
    "InputError",
    "RunFolderError",
    "TrainerError",
]

DAMAGE = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError),
    *(EOFError, MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error),
    *(SyntaxError, TokenError),  # numpy reads the head of an array as Python
)
"""Errors from reading a file that is damaged, or that somebody else wrote."""


class TrainerError(InputError):
    """The user's input or usage is wrong, or training cannot go on; the message says what to do."""


class ConfigError(TrainerError):
    """The config is wrong; the message starts with the file, the line and the key."""


class ArtifactError(TrainerError):
    """An artifact or certificate cannot be used for this training."""


class RunFolderError(TrainerError):
    """The run folder exists already, belongs to another config, or is damaged."""


class DivergedError(TrainerError):
    """The parameters are no longer finite."""
