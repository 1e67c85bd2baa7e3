"""Files with secrets of the owner's: read once, with what others may do with them."""

from pathlib import Path

from labeldp_runtime import keys
from labeldp_verify.errors import readable


def read_secret(path: Path, most: int) -> tuple[bytes, str | None]:
    """``labeldp_runtime.keys.read_secret``, whose OSErrors are InputErrors."""
    with readable(path):
        return keys.read_secret(path, most)
