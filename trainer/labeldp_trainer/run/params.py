"""Parameters of models on disk: an archive with every array under its path in the tree."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.data.features import each_array, named_arrays
from labeldp_trainer.errors import DAMAGE, RunFolderError
from labeldp_trainer.models import Params
from labeldp_trainer.run.folder import read_arrays, write_arrays


def save_params(path: Path, params: Params) -> None:
    """Write every leaf under its path in the tree."""
    write_arrays(path, {name: np.asarray(leaf) for name, leaf in named_arrays(params)})


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        return read_arrays(path)
    except DAMAGE as error:
        raise RunFolderError(f"{path}: cannot be read") from error


def load_params(path: Path, like: Params) -> Params:
    """Read parameters into the structure of ``like``; ``model.init(key)`` gives one.

    Arrays are numpy's where those of ``like`` are, JAX's elsewhere. Raises RunFolderError if the
    file is missing, damaged, or of another model.
    """
    arrays = _arrays(path)
    names = [name for name, _ in named_arrays(like)]
    for name, leaf in named_arrays(like):
        if not math.prod(leaf.shape):  # arrays without elements may be missing from the file
            arrays.setdefault(name, np.zeros(leaf.shape, np.float32))
    if set(names) != set(arrays) or any(
        (arrays[name].dtype, arrays[name].shape) != (leaf.dtype, leaf.shape)
        for name, leaf in named_arrays(like)
    ):
        raise RunFolderError(f"{path}: has the parameters of another model")
    if all(isinstance(leaf, np.ndarray) for _, leaf in named_arrays(like)):
        values = iter([arrays[name] for name in names])
        return each_array(like, lambda leaf: next(values))
    import jax  # noqa: PLC0415

    leaves = [jax.numpy.asarray(arrays[name]) for name in names]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def describe(params: Params) -> dict[str, list[int]]:
    """The shape of every leaf by its path in the tree."""
    return {name: list(leaf.shape) for name, leaf in named_arrays(params)}


_OF_TREES = (np.float32, np.int32)
_PART = re.compile(r"\['([^'\]]*)'\]")


def load_tree(path: Path) -> Params:
    """Read parameters that are nested dictionaries, whichever these are. Raises RunFolderError."""
    arrays = _arrays(path)
    tree: dict[str, Any] = {}
    try:
        for name, array in arrays.items():
            *before, last = _PART.findall(name)
            place = tree
            for part in before:
                place = place.setdefault(part, {})
            if array.dtype not in _OF_TREES:
                raise TypeError(array.dtype)
            place[last] = array
    except (ValueError, TypeError, AttributeError, IndexError):  # no name of a place, or an array
        raise RunFolderError(f"{path}: has the parameters of another model") from None
    return tree
