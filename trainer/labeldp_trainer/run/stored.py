"""The config of a run, out of its folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from labeldp_trainer.config import LoadedConfig, parse_config
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.run.folder import RunFolder


def stored_config(
    folder: RunFolder, facts: Mapping[str, Any], directory: Any = None
) -> LoadedConfig:
    """The config of a run with these facts; its paths start from ``directory``.

    Raises InputError.
    """
    path = folder.path / "config.yaml"
    try:
        data = path.read_bytes()
        text = data.decode()
    except (OSError, ValueError):
        raise RunFolderError(f"{path}: is missing or damaged") from None
    if hashlib.sha256(data).hexdigest() != facts.get("config_sha256"):
        raise RunFolderError(f"{path}: is not the config that the run was started with")
    start = folder.path / directory if isinstance(directory, str) else folder.path
    return parse_config(text, str(path), start)
