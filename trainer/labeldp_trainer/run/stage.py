"""The folders of the stages inside a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labeldp_runtime.whole_file import folder_when_whole, sync_folder
from numpy.typing import NDArray

from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.run.files import write_secret_arrays
from labeldp_trainer.run.folder import RunFolder


@dataclass(frozen=True)
class Stages:
    """The folders ``stages/1``, ``stages/2``, … of a run."""

    run: RunFolder

    def open(self, number: int) -> RunFolder | None:
        """The folder of a stage, or None if it has not begun.

        Raises RunFolderError if the folder is gone: its labels would be randomized a second time.
        """
        path = self._path(number)
        if path.exists():
            return RunFolder(path)
        if self.run.result.exists() or self._path(number + 1).exists():
            raise RunFolderError(
                f"{path}: is missing, and the run cannot go on without spending again; start "
                "another run"
            )
        return None

    def create(self, number: int, keep: Mapping[str, NDArray[Any]]) -> RunFolder:
        """Make the folder of a stage; it appears whole, synced to the disk, or not at all.

        What a killed run left of it is removed: it may hold private labels, but nobody used them.
        """
        path = self._path(number)
        try:
            path.parent.mkdir(exist_ok=True)
            with folder_when_whole(path, most=0o700) as part:
                write_secret_arrays(part / "kept.npz", dict(keep))
            sync_folder(self.run.path)
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be made: {error.strerror or error}") from error
        return RunFolder(path)

    def _path(self, number: int) -> Path:
        return self.run.path / "stages" / str(number)
