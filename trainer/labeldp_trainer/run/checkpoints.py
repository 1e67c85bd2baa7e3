"""Checkpoints of the training state with orbax."""

import shutil
from pathlib import Path
from typing import Any, NamedTuple, Self

import jax
import orbax.checkpoint as ocp

from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.models import Params

_UNFINISHED = "*.orbax-checkpoint-tmp*"
_ALONE = 0o700  # a loss on training labels is secret


class State(NamedTuple):
    """All that a resumed run needs, besides the config and the seed.

    Attributes:
        params: the current parameters.
        opt_state: of optax.
        epoch: int32, epochs done.
        best_params: those of least training loss, at the end of an epoch.
        best_loss: float32, that loss.
        best_epoch: int32, how many epochs had been done then.
    """

    params: Params
    opt_state: Any
    epoch: jax.Array
    best_params: Params
    best_loss: jax.Array
    best_epoch: jax.Array


class Checkpoints:
    """The newest checkpoint of a run; a context manager."""

    def __init__(self, path: Path) -> None:
        """Open or create the folder; remove what a killed run left unfinished.

        Raises RunFolderError if that cannot be removed.
        """
        try:
            path.mkdir(mode=_ALONE, exist_ok=True)
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be opened: {error.strerror}") from None
        _remove_unfinished(path)
        options = ocp.CheckpointManagerOptions(max_to_keep=1, enable_async_checkpointing=False)
        self._path = path
        self._manager = ocp.CheckpointManager(path.absolute(), options=options)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Finish what is being written."""
        self._manager.close()

    def save(self, state: State) -> None:
        """Write the state after an epoch, completely or not at all. Raises RunFolderError."""
        try:
            self._manager.save(int(state.epoch), args=ocp.args.StandardSave(_numbered(state)))
        except (ValueError, OSError) as error:  # orbax has either for a full disk
            raise RunFolderError(
                f"{self._path}: a checkpoint cannot be written; is the disk full? Then --resume "
                "continues"
            ) from error

    def restore(self, like: State) -> State | None:
        """The newest state, or None if there is none; ``like`` gives shapes and devices.

        Raises RunFolderError if the checkpoint is damaged or belongs to another model.
        """
        newest = self._manager.latest_step()
        if newest is None:
            return None
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, _numbered(like))
        try:
            found: dict[str, Any] = self._manager.restore(
                newest, args=ocp.args.StandardRestore(abstract)
            )
        except (ValueError, KeyError, OSError) as error:
            raise RunFolderError(
                f"{self._path}: the checkpoint cannot be read; start another run"
            ) from error
        leaves, structure = jax.tree.flatten(like)
        restored = [found.get(str(index), leaf) for index, leaf in enumerate(leaves)]
        return jax.tree.unflatten(structure, restored)


def _remove_unfinished(path: Path) -> None:
    """Orbax would do this too, but with a warning that --quiet does not suppress."""
    for folder in path.glob(_UNFINISHED):
        if folder.is_dir() and not folder.is_symlink():
            try:
                shutil.rmtree(folder)
            except OSError as error:
                raise RunFolderError(f"{folder}: cannot be removed: {error.strerror}") from None


def _numbered(state: State) -> dict[str, jax.Array]:
    """The leaves by their number, without empty arrays, which orbax refuses."""
    return {str(i): leaf for i, leaf in enumerate(jax.tree.leaves(state)) if leaf.size > 0}
