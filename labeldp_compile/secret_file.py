"""Files with secrets of the owner's: read once, with what others may do with them."""

from pathlib import Path

from labeldp_runtime import keys

from labeldp_compile.errors import InputError


def read_secret(path: Path, most: int) -> tuple[bytes, str | None]:
    """``labeldp_runtime.keys.read_secret``, whose OSErrors are InputErrors."""
    try:
        return keys.read_secret(path, most)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
