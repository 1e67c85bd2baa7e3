"""Files that appear whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_runtime.whole_file import replaced_when_whole
from numpy.typing import NDArray


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file that appears whole or not at all."""
    with replaced_when_whole(path) as file:
        file.write(data)


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON; NaN and infinity are errors."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_bytes(path, (text + "\n").encode())


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write an uncompressed .npz archive."""
    _write_arrays(path, arrays, 0o7777)


def write_secret_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write an uncompressed .npz archive that nobody but the owner may ever read."""
    _write_arrays(path, arrays, 0o600)


def _write_arrays(path: Path, arrays: dict[str, NDArray[Any]], most: int) -> None:
    with replaced_when_whole(path, most=most) as file:
        # numpy's stub takes any keyword for allow_pickle
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz archive; nothing in it is executed."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}
