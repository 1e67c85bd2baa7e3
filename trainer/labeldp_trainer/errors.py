"""Errors that explain themselves to a person.

The command line prints the one message of a ``TrainerError`` and exits with 2.
"""


class TrainerError(Exception):
    """The user's input or usage is wrong, or training cannot go on; the message says what to do.

    A message quotes files, so it is one printable line from the beginning.
    """

    def __init__(self, message: str) -> None:
        """Keep the message, made printable."""
        # Here, for the package brings onnxruntime along.
        from labeldp_runtime.printable import one_line  # noqa: PLC0415

        super().__init__(one_line(message))


class ConfigError(TrainerError):
    """The config is wrong; the message starts with the file, the line and the key."""


class DataError(TrainerError):
    """A data file is missing, damaged, or does not hold what the config says."""


class ArtifactError(TrainerError):
    """An artifact or certificate cannot be used for this training."""


class RunFolderError(TrainerError):
    """The run folder exists already, belongs to another config, or is damaged."""


class DivergedError(TrainerError):
    """The parameters are no longer finite."""
