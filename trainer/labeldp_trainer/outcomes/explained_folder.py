"""The folder that ``labeldp explain`` writes: new, or in the place of an earlier one."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labeldp_compile.toolkit import InputError, folder_when_whole, require_folder

PAGE = "index.html"
_OURS = re.compile(r"index\.html|importance\.png|(effect|pair)-\d{1,3}\.png")


def require_explained(path: Path, *, overwrite: bool) -> None:
    """Raise InputError unless the folder can be written; changes nothing.

    With ``overwrite`` it may be one that was written before, with nothing else in it.
    """
    for each in (path, _old(path)):
        if os.path.lexists(each) and not _is_ours(each):
            raise InputError(
                f"{each}: exists already, and is not a folder that labeldp explain wrote; choose "
                "another output"
            )
    if not path.exists():
        require_folder(path)
    elif not overwrite and any(path.iterdir()):
        raise InputError(f"{path}: exists already; use --overwrite to replace it")


@contextmanager
def replaced_when_whole(path: Path) -> Iterator[Path]:
    """A new folder that takes the place of one that ``require_explained`` allowed.

    Raises DataError.
    """
    old = _old(path)
    if old.exists() and not path.exists():  # a run was killed between its two names
        old.rename(path)
    shutil.rmtree(old, ignore_errors=True)  # a killed run left it
    try:
        with folder_when_whole(path) as part:
            yield part
            if path.exists():
                path.rename(old)
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _is_ours(path: Path) -> bool:
    """Whether a folder holds nothing but what is written here."""
    try:
        return not path.is_symlink() and all(_OURS.fullmatch(one.name) for one in path.iterdir())
    except OSError:
        return False


def _old(path: Path) -> Path:
    """The name of a folder while it is replaced."""
    return path.with_name(f".{path.name}.labeldp-old")
