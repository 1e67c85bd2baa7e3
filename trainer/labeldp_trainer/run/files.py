"""Files that appear whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file under another name, then rename it."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON; NaN and infinity are errors."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_bytes(path, (text + "\n").encode())


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write an uncompressed .npz archive."""
    _write_arrays(path, arrays, 0o666)


def write_secret_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write an uncompressed .npz archive that nobody but the owner may ever read."""
    _write_arrays(path, arrays, 0o600)


def _write_arrays(path: Path, arrays: dict[str, NDArray[Any]], mode: int) -> None:
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        # numpy's stub takes any keyword for allow_pickle
        np.savez(file, **arrays)  # type: ignore[arg-type]
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk: a rename that is lost could lose labels."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz archive; nothing in it is executed."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
