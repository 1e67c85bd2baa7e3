"""Files with secrets of the owner's: read once, with what others may do with them."""

import os
import stat
from pathlib import Path

from labeldp_runtime.keys import why_no_secret

from labeldp_compile.errors import InputError


def read_secret(path: Path, most: int) -> tuple[bytes, str | None]:
    """At most ``most`` bytes of a file, and why it cannot keep a secret, in a sentence, or None.

    Raises InputError if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(most)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    return data, why_no_secret(path, mode)
