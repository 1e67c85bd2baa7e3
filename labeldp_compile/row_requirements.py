"""Hosts that count no persons and keep no clock: what the rows must meet is said by the user."""

from pathlib import Path

from labeldp_runtime import UnpreparedRowsError
from labeldp_runtime.artifact_file import require_prepared
from labeldp_verify import Certificate

from labeldp_compile.errors import InputError


def require_prepared_rows(certificate: Certificate, file: Path, *, prepared: bool) -> None:
    """Raise InputError if the artifact FILE has rules about rows, unless they are ``prepared``."""
    if prepared:
        return
    try:
        require_prepared(certificate.to_json(), str(file), "if your rows meet it, say --prepared")
    except UnpreparedRowsError as error:
        raise InputError(str(error)) from None
