"""The run folder: one training run, from its config to its parameters.

config.yaml          the config, byte for byte
run.json             digests of config and features, versions, device
encoder.json         how features become arrays, and the classes
privacy.json, .txt   the statement
kept.npz             what a resumed run must not draw again: private labels, or the key of
                     the noise; only its owner may read it
representation/      what was learned from features, and their vectors
metrics.jsonl        one line per epoch
stages/1, 2, …       for training in stages: kept.npz, metrics.jsonl, checkpoints of each
learning_curve.png
checkpoints/         checkpoints of orbax
params.npz           the final parameters
coefficients.json    of a closed form on linear vectors: what labeldp runs --coefficients shows
explained.npz        of a model of interactions: what labeldp explain shows
result.json          the last file that is written
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from labeldp_runtime.whole_file import folder_when_whole, replaced_when_whole
from numpy.lib.format import read_array
from numpy.typing import NDArray

from labeldp_compile.toolkit import MAX_BYTES, json_object, require_folder
from labeldp_trainer.config import LoadedConfig, parse_config
from labeldp_trainer.data.encoders import EncoderFile
from labeldp_trainer.data.features import each_array, named_arrays
from labeldp_trainer.errors import DAMAGE, RunFolderError
from labeldp_trainer.models import Params

if TYPE_CHECKING:  # methods import JAX, which code that reads run folders does not need
    from labeldp_trainer.methods.statement import Statement


_MOST_ARRAYS = 1 << 16
_MOST_EMPTY = 1 << 16  # rows without bytes; of a larger archive as many as it has bytes


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file that appears whole or not at all."""
    with replaced_when_whole(path) as file:
        file.write(data)


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON; NaN and infinity are errors."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_bytes(path, (text + "\n").encode())


def open_file(path: Path) -> BinaryIO:
    """A file of a run. Raises OSError, also for what is no file: a pipe would be waited for."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("no file")
    return path.open("rb")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises OSError, or ValueError for anything else."""
    with open_file(path) as file:
        return json_object(file)


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]], *, secret: bool = False) -> None:
    """Write an uncompressed .npz archive; only its owner can read a secret one."""
    with replaced_when_whole(path, most=0o600 if secret else 0o7777) as file:
        # numpy's stub takes any keyword for allow_pickle
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an archive as ``write_arrays`` writes it, that somebody else may have written.

    Nothing in it is executed, and it takes no more memory, and little more time, than the file has
    bytes. Raises an error of ``DAMAGE``.
    """
    size, found = path.stat().st_size, {}
    with open_file(path) as file, zipfile.ZipFile(file) as archive:
        inside = archive.infolist()
        whole = len({info.filename for info in inside}) == len(inside) <= _MOST_ARRAYS
        # entries that share their bytes would have more of them than the file
        if not whole or sum(info.file_size for info in inside) > size:
            raise ValueError("names or sizes that no such archive has")
        for info in inside:
            if not info.filename.endswith(".npy") or info.compress_type != zipfile.ZIP_STORED:
                raise ValueError("compressed, or no array")
            with archive.open(info) as entry:
                found[info.filename.removesuffix(".npy")] = read_array(entry, allow_pickle=False)
                if entry.read(1):
                    raise ValueError("more than an array")
    empty = sum(max(array.shape, default=0) for array in found.values() if not array.nbytes)
    if empty > max(size, _MOST_EMPTY):  # JAX takes a microsecond for each row without a byte
        raise ValueError("rows without bytes")
    return found


FORMAT_VERSION = "1.0"
ENCODER = "encoder.json"
IDENTITY = {
    "config_sha256": "another config",
    "features_sha256": "other features",
    "users_sha256": "other users",
    "representation_sha256": "other vectors of its representation",
    "parameters": "another model",
}
"""The facts that a resumed run and its folder must share, and the words for a difference."""
MACHINE = ("device", "devices", "versions", "environment", "program_sha256")


@dataclass(frozen=True)
class RunFolder:
    """A run folder that exists."""

    path: Path

    @property
    def metrics(self) -> Path:
        """The metrics, as JSON lines."""
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """The folder of orbax."""
        return self.path / "checkpoints"

    @property
    def params(self) -> Path:
        """The final parameters."""
        return self.path / "params.npz"

    @property
    def result(self) -> Path:
        """The result, which exists once the run is complete."""
        return self.path / "result.json"

    def facts(self) -> dict[str, Any]:
        """The contents of ``run.json``. Raises RunFolderError."""
        what = "is not a run folder, or is damaged; choose another folder"
        what = what if os.path.lexists(self.path) else "does not exist"
        return self.document("run.json", f"{self.path}: {what}")

    def document(self, name: str, otherwise: str) -> dict[str, Any]:
        """The contents of a JSON file. Raises RunFolderError with the text ``otherwise``."""
        try:
            found = read_json(self.path / name)
            version = str(found["format_version"])
        except (OSError, ValueError, KeyError):
            raise RunFolderError(otherwise) from None
        if version.partition(".")[0] != FORMAT_VERSION.partition(".")[0]:
            raise RunFolderError(f"{self.path}: has format {version}; upgrade labeldp-trainer")
        return found

    def encoder(self) -> EncoderFile:
        """The contents of ``encoder.json``. Raises RunFolderError."""
        path = self.path / ENCODER
        try:
            return EncoderFile.model_validate(read_json(path))
        except (OSError, ValueError):
            raise RunFolderError(f"{path}: is missing or damaged; train again") from None

    def config(self, directory: Any = None) -> LoadedConfig:
        """The config of the run; its paths start from ``directory``, or from the folder.

        Raises InputError.
        """
        path = self.path / "config.yaml"
        try:
            with open_file(path) as file:
                data = file.read(MAX_BYTES + 1)
            text = data.decode()
        except (OSError, ValueError):
            raise RunFolderError(f"{path}: is missing or damaged; start another run") from None
        facts = self.facts()
        if hashlib.sha256(data).hexdigest() != facts.get("config_sha256"):
            raise RunFolderError(f"{path}: is not the config that the run was started with")
        start = self.path / directory if isinstance(directory, str) else self.path
        learnt = facts.get("representation")
        joined = isinstance(learnt, dict) and learnt.get("kind") == "joined"
        return parse_config(text, str(path), start).suited(images=joined)

    def stored(self) -> dict[str, NDArray[Any]]:
        """The arrays that the method stored. Raises RunFolderError."""
        try:
            return read_arrays(self.path / "kept.npz")
        except DAMAGE:
            raise RunFolderError(
                f"{self.path}: kept.npz is missing or damaged, so the run cannot resume without "
                "spending again; start another run"
            ) from None

    def require_same(self, facts: Mapping[str, Any], *, machine: bool = False) -> None:
        """Raise RunFolderError if the run was started with other inputs.

        With ``machine``, also if devices, versions of packages or options differ, or if the model
        is another function of the same parameters.
        """
        old = self.facts()
        for name, other in IDENTITY.items():
            if name in facts and old.get(name) != facts[name]:
                raise RunFolderError(
                    f"{self.path}: was started with {other}; choose another folder"
                )
        for name in MACHINE if machine else ():
            if old.get(name) != facts[name]:
                raise RunFolderError(
                    f"{self.path}: was started with {name} {old.get(name)}, now {facts[name]}; "
                    "repeated steps would give other results, and the same noise on other "
                    "sums discloses labels. Resume it where it was started, or start another run"
                )


def require_new(path: Path) -> None:
    """Raise RunFolderError if this path exists; needs no config."""
    if not os.path.lexists(path):
        return
    RunFolder(path).facts()
    raise RunFolderError(
        f"{path}: already exists; use --resume to continue it, or choose another folder"
    )


def find_run(path: Path, config_digest: str, *, resume: bool) -> RunFolder | None:
    """The run to resume, or None for a new one. Raises InputError if neither is possible."""
    if not resume:
        require_new(path)
    if any("\ud800" <= c <= "\udfff" for c in str(path.absolute())):  # orbax cannot write there
        raise RunFolderError(f"{path}: is not valid UTF-8; choose another folder")
    if not os.path.lexists(path):
        require_folder(path, makes_folder=True)
        return None
    folder = RunFolder(path)
    folder.require_same({"config_sha256": config_digest})
    return folder


def create_run(
    path: Path,
    config_text: str,
    facts: Mapping[str, Any],
    statement: Statement,
    keep: Mapping[str, NDArray[Any]],
    also: Callable[[Path], None] = lambda part: None,
) -> RunFolder:
    """Create a run folder completely or not at all. Raises RunFolderError.

    ``also`` writes further files that must be in the folder from the start.
    """
    with new_folder(path) as part:
        write_bytes(part / "config.yaml", config_text.encode())
        write_json(part / "run.json", {"format_version": FORMAT_VERSION, **facts})
        write_json(part / "privacy.json", statement.to_json())
        write_bytes(part / "privacy.txt", (statement.text() + "\n").encode())
        write_arrays(part / "kept.npz", dict(keep), secret=True)
        also(part)
    return RunFolder(path)


@contextmanager
def new_folder(path: Path, *, most: int = 0o7777) -> Iterator[Path]:
    """Create a folder completely, with at most the mode ``most``, or not at all.

    Raises RunFolderError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with folder_when_whole(path, most=most) as part:
            yield part
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be created: {error.strerror or error}") from error


# Metrics as JSON lines, and the learning curve.

Line = dict[str, Any]
REPORTED = {"cross_entropy": "accuracy", "squared": "mse", "absolute": "mae", "poisson": "loss"}
"""The metric by which runs with a loss are compared."""
CONSTANTS = {
    "cross_entropy": "the most frequent class",
    "squared": "the mean",
    "absolute": "the median",
    "poisson": "the mean",
}
"""The best constant prediction for each loss, in words."""
BESIDE = {"accuracy": {"loss": "log loss", "auc": "AUC"}}
"""The metrics beside that one, and their names: accuracy hides rare classes."""
_MOST_BYTES = 1 << 26  # of lines that are read
_CURVES = ("batch_loss", "training_loss", "test_loss")


def for_json(values: Mapping[str, Any]) -> Line:
    """The values, with null for numbers that are not finite."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def append_line(path: Path, values: Mapping[str, Any]) -> Line:
    """Add a line; numbers that are not finite become null. Returns the line."""
    line = for_json(values)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, allow_nan=False) + "\n")
    return line


def read_lines(path: Path) -> list[Line]:
    """The lines of a file, up to the first invalid one: a killed run may leave part of a line.

    Raises OSError, also for what is no file.
    """
    lines: list[Line] = []
    if not path.exists():
        return lines
    with open_file(path) as file:
        text = file.read(_MOST_BYTES).splitlines()
    for each in text:
        try:
            line = json.loads(each)
        except (ValueError, RecursionError):
            break
        if not isinstance(line, dict) or "epoch" not in line:
            break
        lines.append(line)
    return lines


def keep_lines(path: Path, epochs: int) -> list[Line]:
    """Keep the lines up to the epoch of a checkpoint. Drop later lines and parts of lines."""
    lines = [line for line in read_lines(path) if int(line["epoch"]) <= epochs]
    write_bytes(path, "".join(json.dumps(line) + "\n" for line in lines).encode())
    return lines


def draw_curve(path: Path, lines: list[Line]) -> None:
    """Draw every loss over the epochs as a PNG."""
    # Imported only here: loading it takes a second.
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for name in _CURVES:
        points = [(line["epoch"], line[name]) for line in lines if line.get(name) is not None]
        if points:
            axes.plot(*zip(*points, strict=True), marker=".", label=name.replace("_", " "))
    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("loss")
    axes.grid(visible=True, alpha=0.3)
    if axes.get_lines():
        axes.legend()
    else:
        # The loss on the training labels of a private run stays secret.
        note = "without a test set, every loss is secret"
        axes.text(0.5, 0.5, note, ha="center", va="center", transform=axes.transAxes)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    write_bytes(path, picture.getvalue())


# Parameters of models on disk: an archive with every array under its path in the tree.


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
