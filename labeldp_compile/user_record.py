"""Records that labeldp keeps for its own user: a JSON file of one model, whole, and read strictly.

The user is trusted: a record is checked for damage, not for an attacker.
"""

from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from labeldp_verify.errors import readable
from labeldp_verify.printable import json_text
from labeldp_verify.strict import parse_json
from pydantic import BaseModel

from labeldp_compile.errors import DataError
from labeldp_compile.whole_file import replaced_when_whole

MAX_BYTES = 1 << 28
R = TypeVar("R", bound=BaseModel)


def write_record(path: Path, record: BaseModel, *, secret: bool = False) -> None:
    """Write a record; only its owner can read a secret one. Raises DataError."""
    with replaced_when_whole(path, most=0o600 if secret else 0o7777) as file:
        file.write((json_text(record.model_dump()) + "\n").encode())


def read_record(path: Path, model: type[R]) -> R | None:
    """The record in a file; None if the file is damaged, or holds anything else.

    ``model`` forbids unknown keys. Raises DataError if the file cannot be read.
    """
    with readable(path, DataError), path.open("rb") as file:
        try:
            return model.model_validate(json_object(file))
        except ValueError:
            return None


def json_object(file: BinaryIO) -> dict[str, Any]:
    """The object in an open JSON file. Raises ValueError for anything else, or a larger file."""
    data = file.read(MAX_BYTES + 1)
    value = parse_json(data.decode()) if len(data) <= MAX_BYTES else None
    if not isinstance(value, dict):
        raise ValueError("no JSON object, or a very large one")
    return value
