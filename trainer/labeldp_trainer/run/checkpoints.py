"""The state that a run resumes from: checkpoints, stages, and facts that decide a step's bits."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from labeldp_runtime.whole_file import sync_folder
from numpy.typing import NDArray

from labeldp_trainer.data import array_digest
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.models import Model, Params
from labeldp_trainer.run.folder import RunFolder, new_folder, write_arrays

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


# Everything besides the config and the data that decides the bits of a step.
#
# A resumed private run repeats steps with the same noise. If these gave different sums, the
# difference of the two would have no noise. So everything that changes bits is recorded, and the
# run resumes only if all of it is the same.


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
                f"{path}: is missing, so the run cannot resume without spending again; start "
                "another run"
            )
        return None

    def create(self, number: int, keep: Mapping[str, NDArray[Any]]) -> RunFolder:
        """Make the folder of a stage; it appears whole, synced to the disk, or not at all.

        What a killed run left of it is removed: it may hold private labels, but nothing has used
        them.
        """
        path = self._path(number)
        path.parent.mkdir(exist_ok=True)
        with new_folder(path, most=0o700) as part:
            write_arrays(part / "kept.npz", dict(keep), secret=True)
            sync_folder(self.run.path)
        return RunFolder(path)

    def _path(self, number: int) -> Path:
        return self.run.path / "stages" / str(number)


_OPTIONS = (
    "jax_default_matmul_precision",
    "jax_disable_most_optimizations",
    "jax_enable_x64",
    "jax_threefry_partitionable",
)
# The last two set how many threads XLA has. It cuts long sums into as many pieces.
_VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS", "NPROC", "PJRT_NPROC")


def program_facts(model: Model, params: Params, features: Any) -> dict[str, Any]:
    """For ``run.json``: a digest of the model, and everything that changes how XLA orders sums.

    The digest covers the model's fresh parameters, and its outputs and their gradient as XLA sees
    them. A model may come from Python, and nothing else distinguishes two models with the same
    shapes.
    """
    first = jax.tree.map(lambda leaf: jnp.asarray(leaf[:1]), features)

    def outputs(params: Params) -> jax.Array:
        return jnp.sum(model.apply(params, first))

    leaves = jax.tree_util.tree_leaves_with_path(params)
    named = {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
    program = jax.jit(jax.value_and_grad(outputs)).lower(params).as_text()
    total = hashlib.sha256(array_digest(named).encode() + program.encode())
    return {"environment": _environment(), "program_sha256": total.hexdigest()}


def _environment() -> dict[str, Any]:
    options = {name: str(jax.config.values[name]) for name in _OPTIONS}
    flags = {name: os.environ.get(name, "") for name in _VARIABLES}
    platform = jax.local_devices()[0].client.platform_version  # of a GPU, also its driver's
    machine = {"processor": _processor(), "cores": os.cpu_count(), "usable": _usable()}
    return {**options, **flags, **machine, "platform": platform}


def require_repeatable(folder: RunFolder, device: str) -> None:
    """Raise RunFolderError if the device may give different sums the second time.

    GPUs give the same sums only with an option of XLA.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    repeats = device.startswith(("cpu", "tpu")) or "--xla_gpu_deterministic_ops=true" in flags
    if not repeats and folder.metrics.exists():
        raise RunFolderError(
            f"{folder.path}: was run on a {device} without XLA_FLAGS="
            "--xla_gpu_deterministic_ops=true; repeated steps would give other results, "
            "and the same noise on other sums discloses labels. Start another run"
        )


def _usable() -> int | None:
    """The processors that this process may use, and XLA has threads for: of a container, or under
    ``taskset``, fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
