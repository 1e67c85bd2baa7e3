"""Errors with messages for people.

All are an ``InputError`` of labeldp: the command line prints its message and exits with 2. labeldp
reads tables, so errors about tables are its own.
"""

from labeldp_compile.errors import DataError, InputError

__all__ = [
    "ArtifactError",
    "ConfigError",
    "DataError",
    "DivergedError",
    "InputError",
    "RunFolderError",
    "TrainerError",
]


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
