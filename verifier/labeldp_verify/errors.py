"""Errors that explain themselves to a person.

Every error a user can cause is an ``InputError``: the command line prints its one message and exits
with its exit code, 2 unless it says otherwise. A check that does not hold is not an error of this
kind: ``verify`` reports it and exits with 1.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labeldp_verify.printable import one_line


class InputError(Exception):
    """The user's input or usage is wrong; the message says what was expected.

    A message can quote files, so it is made one printable line. ``exit_code`` is that of the
    command: 1 where the input is right, but a check fails.
    """

    exit_code = 2

    def __init__(self, message: str) -> None:
        """Keep the message, made printable."""
        super().__init__(one_line(message))


@contextmanager
def readable(path: Path, kind: type[InputError] = InputError) -> Iterator[None]:
    """Turn an OSError of the block into an error that says that the path cannot be read."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path}: cannot be read: {error.strerror}") from error


def read_at_most(path: Path, most: int, kind: type[InputError] = InputError) -> bytes:
    """The first bytes of a file. Raises an error of this kind if it cannot be read."""
    with readable(path, kind), path.open("rb") as file:
        return file.read(most)
