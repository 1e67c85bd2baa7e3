"""What is to be checked below some paths. Links inside a folder are not followed."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from labeldp_compile.check.judging import kind_of
from labeldp_compile.errors import InputError
from labeldp_compile.ledger_url import is_url

MAX_FILES = 100_000
_WALKED = ("unknown", "folder of parts", "training run")  # in which other things may lie


@dataclass
class FoundSubjects:
    """What was found below some paths.

    Attributes:
        subjects: artifacts, run folders, ledgers and folders of parts; what was named itself is
            always one.
        refused: paths that cannot be checked, and why.
        others: how many further files there are, which no policy is about.
    """

    subjects: list[Path | str] = field(default_factory=list)
    refused: list[tuple[Path, str]] = field(default_factory=list)
    others: int = 0


def find_subjects(paths: list[str]) -> FoundSubjects:
    """All that is to be checked, in a fixed order.

    Raises InputError for a path that does not exist, for too many files, and if there is nothing
    to check: that is no pass.
    """
    found = FoundSubjects()
    for text in paths:
        path = Path(text)
        if is_url(text):
            found.subjects.append(text)
            continue
        if not os.path.lexists(path):
            raise InputError(f"{path}: there is no such file or folder")
        kind = kind_of(path)
        if not path.is_dir() or kind != "unknown":
            found.subjects.append(path)
        if path.is_dir() and kind in _WALKED:
            _below(path, found)
    found.subjects = list(dict.fromkeys(found.subjects))
    if not found.subjects and not found.refused:
        named = ", ".join(paths)
        what = "artifact, run folder, ledger or folder of parts"
        raise InputError(f"{named}: holds no {what}, so nothing is checked")
    return found


def _below(folder: Path, found: FoundSubjects) -> None:
    def unreadable(error: OSError) -> None:
        found.refused.append((Path(error.filename), f"cannot be read: {error.strerror}"))

    files, runs = 0, set[Path]()
    for at, folders, names in os.walk(folder, onerror=unreadable):
        here, inside = Path(at), []
        kind = kind_of(here)
        if kind == "training run" or here.parent in runs:
            runs.add(here)
        is_own = kind == "folder of parts" or here in runs  # files of what is checked already
        for name in sorted(folders):
            path = here / name
            if path.is_symlink():
                found.refused.append((path, "is a link to a folder, which check does not follow"))
                continue
            kind = kind_of(path)
            if kind != "unknown":
                found.subjects.append(path)
            if kind in _WALKED:
                inside.append(name)
        folders[:] = inside
        files += len(names)
        if files > MAX_FILES:
            raise InputError(f"{folder}: has more than {MAX_FILES:,} files: name a smaller folder")
        for path in map(here.joinpath, sorted(names)):
            kind = kind_of(path)
            if kind == "unknown":
                found.others += not is_own
            elif path.is_symlink():
                found.refused.append((path, "is a link, which check does not follow"))
            else:
                found.subjects.append(path)
