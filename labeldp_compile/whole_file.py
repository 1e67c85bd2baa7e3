"""Output files of the commands: checked first, then written whole or not at all.

Secrets, and records that labeldp keeps, are files of the user's own. A record is a JSON file of one
model, written whole and read strictly: it is checked for damage, not for an attacker.
"""

import contextlib
import hashlib
import itertools
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Concatenate, ParamSpec, TypeVar

from labeldp_runtime import whole_file
from labeldp_verify.errors import readable
from labeldp_verify.printable import json_text
from labeldp_verify.strict import parse_json

from labeldp_compile.errors import DataError, InputError

if TYPE_CHECKING:
    from pydantic import BaseModel


# How a ledger and each kind of key begin: labels and budgets depend on them, and nothing can make
# them again.
_KEPT = re.compile(
    rb"SQLite format 3\0|labeldp-key:|-----BEGIN [A-Z ]*PRIVATE KEY-----|[0-9a-f]{64}\s*\Z"
)
_KEPT_BYTES = 100


def require_output(
    path: Path | None,
    *inputs: Path | None,
    endings: Sequence[str] = (),
    overwrite: bool = False,
    way_out: str = "use --overwrite to replace it",
    makes_folder: bool = False,
) -> None:
    """Raise InputError unless a file can be written under this name; changes nothing.

    Call it before anything is read, solved or spent. The file must be none of the ``inputs``, and
    in none of those that are folders. It never replaces a ledger or a secret key. ``endings`` are
    those that the name may have, the usual one first; ``way_out`` ends the message about a name
    that is taken, also by a broken link. Its folder must exist, unless the caller
    ``makes_folder``. None is no file.
    """
    if path is None:
        return
    for other in inputs:
        if other is not None and path.exists() and other.exists() and path.samefile(other):
            raise InputError(f"{path}: is the input: write to another file")
        if other is not None and other.is_dir():
            require_outside(path, other)
    if endings and path.suffix.lower() not in endings:
        raise InputError(f"{path}: expected a name that ends in {endings[0]}")
    if path.is_dir():
        raise InputError(f"{path}: is a directory")
    if path.exists() and not path.is_file():  # a pipe or a device: a file would take its place
        raise InputError(f"{path}: is no ordinary file")
    if os.path.lexists(path) and not overwrite:
        raise InputError(f"{path}: exists already; {way_out}")
    if path.exists() and _KEPT.match(_first_bytes(path)):
        raise InputError(
            f"{path}: is a ledger (or another database) or a secret key, which no command "
            "replaces: write to another file"
        )
    _require_room(path, makes_folder)


def _first_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_KEPT_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be replaced: {error.strerror}") from error


def require_outside(path: Path, folder: Path) -> None:
    """Raise InputError if the path is in a folder that is read."""
    if path.absolute().parent.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{path}: is inside the input: write to another folder")


def require_folder(path: Path, *, grows: bool = False, makes_folder: bool = False) -> None:
    """Raise InputError unless a folder can be made under this name; it may exist if it is empty.

    One that ``grows`` may also exist with files in it. The folder that it is in must exist, unless
    the caller ``makes_folder``.
    """
    if grows and path.is_dir() and not path.is_symlink():
        return
    if os.path.lexists(path):
        try:
            empty = not path.is_symlink() and not any(path.iterdir())
        except OSError:
            empty = False
        if not empty:
            raise InputError(
                f"{path}: exists already, and folders are not replaced: remove it first"
            )
    _require_room(path, makes_folder)


def _require_room(path: Path, makes_folder: bool = False) -> None:
    """Raise InputError unless something can be made in the folder of this name."""
    folder = path.absolute().parent
    if makes_folder:
        folder = next(one for one in (folder, *folder.parents) if one.exists())
        if not folder.is_dir():
            raise InputError(f"{folder}: is not a directory")
    if not folder.is_dir():
        raise InputError(f"{path}: there is no directory {path.parent}")
    try:
        with tempfile.TemporaryFile(dir=folder):  # where it can, without a name to be left
            pass
        most = os.pathconf(folder, "PC_NAME_MAX")
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror}") from error
    more = len(os.fsencode(whole_file.partial_of(path).name)) - most
    if more > 0:
        raise InputError(f"{path}: its name is {more:,} bytes too long: choose a shorter name")


@contextmanager
def _as_data_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except whole_file.UnfinishedError as error:
        raise DataError(str(error)) from None
    except OSError as error:
        reason = error.strerror or "the disk or the folder refuses the file"
        raise DataError(f"{path}: cannot be written: {reason}") from None


P = ParamSpec("P")
T = TypeVar("T")
Opened = Callable[Concatenate[Path, P], AbstractContextManager[T]]


def _with_data_errors(opened: Opened[P, T]) -> Opened[P, T]:
    @contextmanager
    def with_data_errors(path: Path, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        with _as_data_errors(path), opened(path, *args, **kwargs) as part:
            yield part

    return with_data_errors


# Those of ``labeldp_runtime.whole_file``, whose OSErrors are DataErrors.
replaced_when_whole = _with_data_errors(whole_file.replaced_when_whole)
folder_when_whole = _with_data_errors(whole_file.folder_when_whole)


def write_text(path: Path, text: str) -> None:
    """Write a file of text, whole or not at all. Raises DataError."""
    with replaced_when_whole(path) as part:
        part.write(text.encode())


@contextmanager
def name_held_in(folder: Path, name: str) -> Iterator[None]:
    """``labeldp_runtime.whole_file.name_held`` in a folder, whose OSErrors are DataErrors.

    The folder is made if it is missing, and removed at the end if it is empty.
    """
    ancestors = (folder, *folder.absolute().parents)
    made = list(itertools.takewhile(lambda path: not os.path.lexists(path), ancestors))
    path = folder / name
    try:
        with contextlib.ExitStack() as stack:
            with _as_data_errors(path):
                folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(whole_file.name_held(path))
            yield
    finally:
        with contextlib.suppress(OSError):  # something is in it
            for empty in made:
                empty.rmdir()


OTHERS_WRITE = 0o022


def is_others(status: os.stat_result) -> bool:
    """Whether a file belongs to neither this user nor root."""
    return hasattr(os, "geteuid") and status.st_uid not in (0, os.geteuid())


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_secret(path: Path, most: int) -> tuple[bytes, str | None]:
    """``labeldp_runtime.whole_file.read_secret``, whose OSErrors are InputErrors."""
    with readable(path):
        return whole_file.read_secret(path, most)


MAX_BYTES = 1 << 28
R = TypeVar("R", bound="BaseModel")


def write_record(path: Path, record: "BaseModel", *, secret: bool = False) -> None:
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
