"""Parameters as an .npz archive, one array a leaf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.models import Params
from labeldp_trainer.run.files import read_arrays, write_arrays


def save_params(path: Path, params: Params) -> None:
    """Write every leaf under its path in the tree."""
    write_arrays(path, {name: np.asarray(leaf) for name, leaf in _named(params)})


def load_params(path: Path, like: Params) -> Params:
    """Read parameters into the structure of ``like``; ``model.init(key)`` gives one.

    Raises RunFolderError if the file is missing, damaged, or of another model.
    """
    try:
        arrays = read_arrays(path)
    except (OSError, ValueError, EOFError) as error:
        raise RunFolderError(f"{path}: cannot be read") from error
    names = [name for name, _ in _named(like)]
    if set(names) != set(arrays) or any(
        arrays[name].shape != leaf.shape for name, leaf in _named(like)
    ):
        raise RunFolderError(f"{path}: holds the parameters of another model")
    leaves = [jnp.asarray(arrays[name]) for name in names]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def describe(params: Params) -> dict[str, list[int]]:
    """The shape of every leaf by its path in the tree."""
    return {name: list(leaf.shape) for name, leaf in _named(params)}


def _named(params: Params) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_leaves_with_path(params)
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in leaves]
