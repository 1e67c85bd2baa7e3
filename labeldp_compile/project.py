"""``labeldp.yaml``: the ledger and the policy of all specs and artifacts in its folder.

It can only make rules stricter: a spec or an option may repeat what it states, and not differ. Only
the folder of the file that a command gets counts, never one above it, and links are not followed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labeldp_compile.errors import InputError, SpecError
from labeldp_compile.ledger_url import Url, is_url

if TYPE_CHECKING:
    from labeldp_compile.spec.model import ProjectKeys
    from labeldp_compile.yaml_model import Document

PROJECT_FILE = "labeldp.yaml"


@dataclass(frozen=True)
class Project:
    """A project file: its path, and what it states."""

    path: Path
    keys: ProjectKeys

    @property
    def ledger(self) -> str | None:
        """The path of the ledger from here, or its URL."""
        stated = self.keys.ledger
        return stated if stated is None or is_url(stated) else str(self.path.parent / stated)

    @property
    def policy(self) -> Path | None:
        """The path of the policy from here."""
        return None if self.keys.policy is None else self.path.parent / self.keys.policy

    def in_words(self) -> str:
        """The line that a command prints first."""
        keys, parts = self.keys, [] if self.policy is None else [f"policy {self.policy}"]
        if self.ledger is not None:
            shown = Url.parse(self.ledger).name if is_url(self.ledger) else self.ledger
            place = f"ledger {shown} (data set {keys.data_set}, version {keys.data_version})"
            parts.insert(0, place)
        return f"using {self.path}: {', '.join(parts)}"

    def misfit(self, key: str, stated: str | None, folder: Path) -> str | None:
        """Why a spec or an option may not state this; None if it may.

        ``folder`` is where a stated path starts.
        """
        own, its_folder = getattr(self.keys, key), self.path.parent
        if own is None or stated is None:
            return None
        same = stated == own
        if key == "ledger" and not is_url(stated) and not is_url(own):
            same = folder / stated == its_folder / own
            with suppress(OSError, ValueError):  # a link may lead elsewhere
                same = (folder / stated).samefile(its_folder / own)
        if same:
            return None
        return f"differs from {self.path}, which says {key}: {own}. Remove one of the two"


def find_project(folder: Path) -> Project | None:
    """The project file in a folder; None without one. Raises SpecError for a wrong one."""
    path, other = folder / PROJECT_FILE, folder / "labeldp.yml"
    if os.path.lexists(other):
        raise InputError(f"{other}: is not read under this name: rename it to {PROJECT_FILE}")
    if not os.path.lexists(path):
        return None
    if path.is_symlink() or not path.is_file():
        raise InputError(f"{path}: is no ordinary file, so its rules cannot be read")
    kind = _document()
    project = Project(path, kind.parse(kind.read(path)[0], str(path))[0])
    if project.policy is not None and not project.policy.is_file():
        raise InputError(f"{path}: policy: {project.policy} is no file")
    return project


def project_schema() -> str:
    """The JSON Schema (draft 7) of a project file, for editors."""
    return _document().json_schema("labeldp project file")


def _document() -> Document[ProjectKeys]:
    # Pydantic takes half a second to import, and most folders have no project file.
    from labeldp_compile.spec.model import ProjectKeys  # noqa: PLC0415
    from labeldp_compile.yaml_model import Document  # noqa: PLC0415

    return Document("project file", ProjectKeys, SpecError)
