"""Exports a trained run as one ONNX model, after checking it against JAX.

The graph is written node by node, with the layers of ``models/layers.py`` as nodes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import onnx
import onnxruntime
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper, numpy_helper

from labeldp_compile.toolkit import files_of
from labeldp_trainer import operators
from labeldp_trainer.config.data import DATE_FEATURES, IdxData
from labeldp_trainer.config.representation import given_vectors
from labeldp_trainer.data import DataPart
from labeldp_trainer.data.arrays import MOST_BYTE
from labeldp_trainer.data.encoders import ArrayEncoder, Encoder, TableEncoder
from labeldp_trainer.data.table import DAY_MS, HOUR_MS, TableColumns, calendar, date_numbers
from labeldp_trainer.errors import DataError, InputError, RunFolderError
from labeldp_trainer.models import layers
from labeldp_trainer.operators import POISSON_FLOOR, joined
from labeldp_trainer.outcomes.predict import Trained, encoded_rows
from labeldp_trainer.representations import patches
from labeldp_trainer.run.folder import read_json

# A graph that is written node by node, and its values, which can be used like arrays.

IR_VERSION, OPSET, ML_OPSET, ML = 8, 17, 2, "ai.onnx.ml"  # those of the artifacts
FLOAT: int = TensorProto.FLOAT
DOUBLE: int = TensorProto.DOUBLE
INT64: int = TensorProto.INT64
STRING: int = TensorProto.STRING
UINT8: int = TensorProto.UINT8
ROWS = "rows"  # the batch dimension, of any size


def _binary(op: str, *, reflected: bool = False) -> Callable[[Tensor, Any], Tensor]:
    def write(left: Tensor, right: Any) -> Tensor:
        sides = (right, left) if reflected else (left, right)
        return left.graph.node(op, *sides)

    return write


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of a graph. Calculations with it become nodes, as when JAX traces a function.

    Attributes:
        graph: to which it belongs.
        name: in the graph.
        shape: of a constant; () for other values.
    """

    graph: ModelGraph
    name: str
    shape: tuple[int, ...] = ()

    __array_ufunc__ = None  # array + tensor is a tensor
    __add__ = __radd__ = _binary("Add")
    __mul__ = __rmul__ = _binary("Mul")
    __sub__, __rsub__ = _binary("Sub"), _binary("Sub", reflected=True)
    __truediv__, __matmul__, __mod__ = _binary("Div"), _binary("MatMul"), _binary("Mod")
    __ge__, __eq__ = _binary("GreaterOrEqual"), _binary("Equal")  # type: ignore[assignment]

    def node(self, op: str, *others: Any, **attributes: Any) -> Tensor:
        """A node with one output; its first input is this value."""
        return self.graph.node(op, self, *others, **attributes)

    def __floordiv__(self, other: int) -> Tensor:
        """Of whole numbers, rounded down as in Python; ONNX divides towards 0."""
        return (self - self % other) / other

    def __getitem__(self, key: Any) -> Tensor:
        """Like arrays: whole axes, new ones, and positions, which may be a tensor."""
        picked = self
        for axis, part in enumerate(key if isinstance(key, tuple) else (key,)):
            if part is None:
                picked = picked.node("Unsqueeze", [axis])
            elif not isinstance(part, slice):
                picked = picked.node("Gather", part, axis=axis)
        return picked

    def reshape(self, *sides: int) -> Tensor:
        """The numbers in another shape, of which one side may be -1."""
        return self.node("Reshape", list(sides))

    def transpose(self, *axes: int) -> Tensor:
        """The array with axes in another order."""
        return self.node("Transpose", perm=list(axes))

    def sum(self, axis: int) -> Tensor:
        """Sums along an axis, which is removed."""
        return self.node("ReduceSum", [axis], keepdims=0)

    def mean(self, axis: Sequence[int]) -> Tensor:
        """Means along axes, which are removed."""
        return self.node("ReduceMean", axes=list(axis), keepdims=0)

    def astype(self, kind: Any) -> Tensor:
        """As float32; any type of integers as int64."""
        return self.node("Cast", to=FLOAT if np.dtype(kind).kind == "f" else INT64)


class ModelGraph:
    """Nodes, constants, inputs and outputs in the order in which they were added."""

    def __init__(self, taken: Sequence[str]) -> None:
        """``taken`` are the names of inputs and outputs; no other value gets one of these."""
        self._taken, self._count = set(taken), 0
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, kind: int, example: Sequence[int] = ()) -> Tensor:
        """An input [rows, …]."""
        self._inputs.append(helper.make_tensor_value_info(name, kind, [ROWS, *example]))
        return Tensor(self, name)

    def output(self, name: str, value: Tensor, kind: int, example: Sequence[int] = ()) -> None:
        """An output [rows, …]."""
        self._nodes.append(helper.make_node("Identity", [value.name], [name], name=name))
        self._outputs.append(helper.make_tensor_value_info(name, kind, [ROWS, *example]))

    def constant(self, array: ArrayLike) -> Tensor:
        """An array, unchanged; text as an array of objects."""
        name, array = self._fresh("constant"), np.asarray(array)
        self._constants.append(numpy_helper.from_array(array, name))
        return Tensor(self, name, array.shape)

    def value(self, given: Any) -> Tensor:
        """A tensor, unchanged; other numbers as a constant in float32, integers in int64."""
        if isinstance(given, Tensor):
            return given
        array = np.asarray(given)
        return self.constant(array.astype(np.float32 if array.dtype.kind == "f" else np.int64))

    def node(self, op: str, *inputs: Any, domain: str = "", **attributes: Any) -> Tensor:
        """A node with one output; its inputs may be anything that ``value`` accepts."""
        return self.nodes(op, 1, *inputs, domain=domain, **attributes)[0]

    def nodes(
        self, op: str, count: int, *inputs: Any, domain: str = "", **attributes: Any
    ) -> list[Tensor]:
        """An operator with several outputs."""
        names = [self.value(each).name for each in inputs]
        outputs = [self._fresh(op) for _ in range(count)]
        self._nodes.append(
            helper.make_node(op, names, outputs, name=outputs[0], domain=domain, **attributes)
        )
        return [Tensor(self, name) for name in outputs]

    def to_bytes(self, name: str, metadata: dict[str, str]) -> bytes:
        """The serialized model. Raises ValueError if it is invalid, or too large for a file."""
        used = {name for node in self._nodes for name in node.input}  # onnxruntime warns of others
        constants = [constant for constant in self._constants if constant.name in used]
        graph = helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, initializer=constants
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)]
        model = helper.make_model(
            graph, ir_version=IR_VERSION, opset_imports=opsets, producer_name="labeldp-trainer"
        )
        helper.set_model_props(model, metadata)
        onnx.checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))

    def _fresh(self, word: str) -> str:
        name = f"{word}_{self._count}"
        self._count += 1
        return name if name not in self._taken else self._fresh(word)


# The layers of ``models/layers.py`` as nodes, for models and representations.
#
# Images are [rows, height, width, channels] between layers, as in JAX. Inside a layer, channels
# come first, as in ONNX. Runtimes remove transpositions that cancel.

_FIRST, _LAST, _KERNEL = [0, 3, 1, 2], [0, 2, 3, 1], [3, 2, 0, 1]  # where channels go
_EPSILON = 1e-5  # of group_norm


def _node(op: str, **attributes: int) -> Callable[..., Tensor]:
    def write(x: Tensor, *others: Any) -> Tensor:
        return x.node(op, *others, **attributes)

    return write


for _function, _form in {
    layers.relu: _node("Relu"),
    layers.cos: _node("Cos"),
    operators.clip: _node("Clip"),
    layers.sqrt: _node("Sqrt"),
    operators.matmul: _node("MatMul"),
    operators.flat: _node("Flatten", axis=1),
    operators.joined: _node("Concat", axis=1),
}.items():
    _function.register(Tensor, _form)


@layers.softmax.register
def _softmax(x: Tensor, axis: int) -> Tensor:
    return x.node("Softmax", axis=axis)


@layers.top_k.register
def _top_k(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    values, places = x.graph.nodes("TopK", 2, x, [count], axis=1)
    return values, places


@layers.cube_root.register
def _cube_root(x: Tensor) -> Tensor:
    return x.node("Sign") * x.node("Abs").node("Pow", 1 / 3)


@operators.softplus_of_log.register
def _softplus_of_log(x: Tensor, floor: float) -> Tensor:
    y = (x.node("Exp") - floor).node("Max", operators.LEAST_OVER_FLOOR)
    return y + (1.0 - y.node("Neg").node("Exp")).node("Log")


@operators.log.register
def _log(x: Tensor) -> Tensor:
    return x.node("Log")


@operators.log_softplus.register
def _log_softplus(x: Tensor) -> Tensor:
    return x.node("Max", operators.LEAST_SOFTPLUS).node("Softplus").node("Log")


@operators.binned.register
def _binned(x: Tensor, edges: Tensor) -> Tensor:
    count = edges.shape[0]
    bins = (x[:, None] >= edges[None, :]).astype(np.int64).sum(axis=1) if count else None
    missing = x.node("IsNaN").astype(np.int64) * (count + 1)
    return missing if bins is None else bins + missing


@layers.conv.register
def _conv(x: Tensor, layer: Any, stride: int = 1) -> Tensor:
    """Padded to the same size; an odd row or column of padding goes to the end."""
    kernel = layer["w"].node("Transpose", perm=_KERNEL)
    channels = x.node("Transpose", perm=_FIRST).node(
        "Conv", kernel, strides=[stride, stride], auto_pad="SAME_UPPER"
    )
    channels = channels.node("Transpose", perm=_LAST)
    return channels + layer["b"] if "b" in layer else channels


@layers.pool_average.register
def _pool_average(x: Tensor) -> Tensor:
    return _pool("AveragePool", x)


@layers.pool_max.register
def _pool_max(x: Tensor) -> Tensor:
    return _pool("MaxPool", x)


def _pool(op: str, x: Tensor) -> Tensor:
    first = x.node("Transpose", perm=_FIRST)
    return first.node(op, kernel_shape=[2, 2], strides=[2, 2]).node("Transpose", perm=_LAST)


@layers.group_norm.register
def _group_norm(x: Tensor, layer: dict[str, Tensor], groups: int) -> Tensor:
    """Groups of channels of each example, normalized as if each were one channel."""
    first = x.node("Transpose", perm=_FIRST)
    ones, zeros = np.ones(groups), np.zeros(groups)
    together = first.node("Reshape", [0, groups, -1])
    normal = together.node("InstanceNormalization", ones, zeros, epsilon=_EPSILON)
    apart = normal.node("Reshape", first.node("Shape")).node("Transpose", perm=_LAST)
    return apart * layer["scale"] + layer["shift"]


@date_numbers.register
def _date_numbers(days: Tensor) -> list[Tensor]:
    """In float64, as before standardization."""
    double, missing = days.graph.constant, days.node("IsNaN")
    ms = (missing.node("Where", double(0.0), days) * double(float(DAY_MS))).node("Round")
    dates = [number.node("Cast", to=DOUBLE) for number in calendar(ms.astype(np.int64))]
    *others, of_day = [missing.node("Where", days, number) for number in dates]
    return [days, *others, of_day / double(float(HOUR_MS))]


@patches.answers.register
def _patches(x: Tensor, arrays: Mapping[str, Tensor]) -> Tensor:
    """The kernels' answers to normalized patches: each is divided by the scale of its patch."""
    kernel, pooling = arrays["kernel"], arrays["pooling"]
    size, _, channels, count = kernel.shape
    image = x.node("Transpose", perm=_FIRST)
    mean_of = np.full((1, channels, size, size), 1 / (size * size * channels))
    mean, squares = image.node("Conv", mean_of), (image * image).node("Conv", mean_of)
    scale = ((squares - mean * mean).node("Relu") + arrays["contrast"]).node("Sqrt")
    answers = image.node("Conv", kernel.node("Transpose", perm=_KERNEL)) / scale
    answers = (answers + arrays["bias"][:, None, None]).node("Relu")
    pooled = answers.node("Reshape", [0, count, pooling.shape[0]]) @ pooling
    return pooled.node("Transpose", perm=[0, 2, 1]).node("Flatten", axis=1).node("Sqrt")


FORMAT_VERSION = "1.0"
MOST_RELATIVE = 1e-3  # the largest difference from JAX, relative to the largest output
_ROWS = 256  # at most, that are compared
_FEATURES = "features"
_OUTPUTS = _PREDICTION, _PROBABILITIES = ("prediction", "probabilities")
_MISSING = "\N{SYMBOL FOR NULL}"  # for a missing category; repeated so that no category equals it


@dataclass(frozen=True)
class Deviation:
    """How far the model is from JAX.

    Attributes:
        rows: compared.
        largest: difference of two predicted numbers, or probabilities.
        relative: the same, divided by the largest of these numbers.
    """

    rows: int
    largest: float
    relative: float


def onnx_model(trained: Trained) -> bytes:
    """Encoder, representation, model and loss as one graph, the statement in its metadata.

    Inputs: a tensor [rows] for each column of a table, double for numbers, double for dates (days
    since 1970-01-01 in UTC, with their fraction), text for categories, or ``features`` [rows, …].
    A missing number or date is NaN. Outputs: ``prediction`` [rows], for classes also
    ``probabilities`` [rows, classes]. Raises InputError.
    """
    names = _input_names(trained.encoder)
    graph = ModelGraph([*names, *_OUTPUTS])
    x = _encoded(graph, trained.encoder)
    if trained.representation is not None:
        x = trained.representation.vectors(x, graph.value)
    params = jax.tree.map(lambda leaf: graph.value(np.asarray(leaf)), trained.params)
    _add_outputs(graph, trained, trained.model.apply(params, x))
    metadata = {
        "labeldp.model.format_version": FORMAT_VERSION,
        "labeldp.model.name": trained.loaded.config.name,
        "labeldp.model.privacy": _statement(trained),
    }
    try:
        return graph.to_bytes("labeldp_model", metadata)
    except ValueError as error:  # protobuf's 2 GB
        raise InputError(
            f"{trained.folder.path}: cannot be exported as one ONNX file: {error}"
        ) from None


def check(trained: Trained, model: bytes, data: Path | None = None) -> Deviation:
    """Compare a model with JAX on real rows: of ``data``, else of the run's test or training file.

    Raises DataError if there are no rows, or the two differ by more than ``MOST_RELATIVE``.
    """
    feeds, part = _rows(trained, data)
    values, probabilities = trained.predictions(trained.outputs(part))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only; users need no warning about unused constants
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    found = dict(
        zip([o.name for o in session.get_outputs()], session.run(None, feeds), strict=True)
    )
    if probabilities is None:
        ours, theirs = values.to_numpy(), found[_PREDICTION]
    else:
        ours, theirs = probabilities, found[_PROBABILITIES]
    largest = float(np.abs(theirs.astype(np.float64) - ours.astype(np.float64)).max())
    relative = largest / max(float(np.abs(ours).max()), float(np.finfo(np.float32).tiny))
    if not relative <= MOST_RELATIVE or not _same_classes(trained, probabilities, found):
        raise DataError(
            f"{trained.folder.path}: the exported model differs from the trained one by "
            f"{relative:.2g} of the largest output, so nothing was written"
        )
    return Deviation(part.rows, largest, relative)


def _same_classes(
    trained: Trained, probabilities: NDArray[np.float32] | None, found: dict[str, Any]
) -> bool:
    """Whether predicted classes are those of JAX; between equally likely ones, either is fine."""
    if probabilities is None:
        return True
    classes = trained.classes.to_pylist()
    place = {name: i for i, name in enumerate(classes)}
    chosen = np.array([place[name] for name in found[_PREDICTION].tolist()])
    rows = np.arange(len(chosen))
    behind = probabilities.max(axis=1) - probabilities[rows, chosen]
    return bool((behind <= MOST_RELATIVE).all())


def _input_names(encoder: Encoder) -> list[str]:
    """One per column of a table, or one for arrays. Raises DataError for a name that is taken."""
    if isinstance(encoder, ArrayEncoder):
        return [_FEATURES]
    columns = (*encoder.numeric_columns, *encoder.categorical)
    exposure = [] if encoder.exposure is None else [encoder.exposure.name]
    names = [*(column.name for column in columns), *encoder.dates, *exposure]
    for name in names:
        if name in _OUTPUTS or not name:
            raise DataError(
                f"a feature column is named {name!r}; a model input cannot have this name, so "
                "rename the column"
            )
    return names


def _encoded(graph: ModelGraph, encoder: Encoder) -> Any:
    """Declare the inputs, and return the features as ``Dataset`` has them. An input is [rows] of
    double for a numeric column or a date, [rows] of text for a categorical one, or an array."""
    if isinstance(encoder, TableEncoder):
        both = {"numeric": _numbers(graph, encoder), "categorical": _codes(graph, encoder)}
        found = {kind: joined(*columns) for kind, columns in both.items() if columns}
        if encoder.exposure is not None:
            exposure = graph.input(encoder.exposure.name, DOUBLE)
            mean = graph.constant(encoder.exposure.mean)
            found["exposure"] = (exposure / mean).astype(np.float32)
        return found
    if not encoder.bytes:
        return graph.input(_FEATURES, FLOAT, encoder.example)
    pixels = graph.input(_FEATURES, UINT8, encoder.example).astype(np.float32)
    return pixels / float(MOST_BYTE)


def _numbers(graph: ModelGraph, encoder: TableEncoder) -> list[Tensor]:
    """[rows, 1] each. Computed in float64 first, as in training: the mean may be far from 0."""
    given = [graph.input(column.name, DOUBLE) for column in encoder.numeric_columns]
    for name in encoder.dates:
        given += date_numbers(graph.input(name, DOUBLE))
    return [
        ((number[:, None] - graph.constant(column.mean)) / graph.constant(column.deviation)).astype(
            np.float32
        )
        for number, column in zip(given, encoder.numeric, strict=True)
    ]


def _codes(graph: ModelGraph, encoder: TableEncoder) -> list[Tensor]:
    return [
        graph.input(column.name, STRING).node(
            "LabelEncoder",
            domain=ML,
            keys_strings=column.vocabulary or [""],
            values_int64s=list(range(1, len(column.vocabulary) + 1)) or [0],
            default_int64=0,
        )[:, None]
        for column in encoder.categorical
    ]


def _add_outputs(graph: ModelGraph, trained: Trained, y: Any) -> None:
    classes = trained.loss.task.classes
    if classes is None:
        number = y.node("Squeeze", [1])
        if trained.loss.name == "poisson":
            number = number.node("Softplus") + POISSON_FLOOR
        graph.output(_PREDICTION, number, FLOAT)
        return
    names = trained.classes
    is_text = pa.types.is_string(names.type)
    listed = graph.constant(names.to_numpy(zero_copy_only=False))
    chosen = listed[y.node("ArgMax", axis=1, keepdims=0)]
    graph.output(_PREDICTION, chosen, STRING if is_text else INT64)
    graph.output(_PROBABILITIES, y.node("Softmax", axis=1), FLOAT, [len(classes)])


def _statement(trained: Trained) -> str:
    path = trained.folder.path / "privacy.json"
    try:
        return json.dumps(read_json(path))
    except (OSError, ValueError):
        raise RunFolderError(f"{path}: is missing or damaged; train again") from None


def _rows(trained: Trained, data: Path | None) -> tuple[dict[str, Any], DataPart]:
    """The first rows of a file, as the model's inputs and encoded. Raises DataError."""
    config, directory = trained.loaded.config, trained.loaded.directory
    vectors = given_vectors(config.representation)
    if vectors is not None:
        names = [vectors.test, vectors.train]
    elif isinstance(config.data, IdxData):
        names = [None if f is None else f.images for f in (config.data.test, config.data.train)]
    else:
        names = [config.data.test, config.data.train]
    paths = [directory / name for name in names if name is not None]
    path = data or next((path for path in paths if path.exists()), None)
    if path is None:
        raise DataError(
            f"{paths[0]}: is missing; use --data FILE to name rows on which to compare the "
            "exported model with the trained one"
        )
    encoder = trained.encoder
    for _, columns, part in encoded_rows(trained, files_of(path)[0]):
        few = part.take(np.arange(min(_ROWS, part.rows)))
        if columns is not None and isinstance(encoder, TableEncoder) and few.rows:
            return _feeds(encoder, columns, few.rows), few
        if isinstance(encoder, ArrayEncoder):
            return {_FEATURES: _as_in_file(encoder, few)}, few
    raise DataError(f"{path}: has no rows")


def _feeds(encoder: TableEncoder, columns: TableColumns, rows: int) -> dict[str, Any]:
    """The first rows of a table, column by column."""
    numbers = [column.name for column in encoder.numeric_columns]
    places = {name: j for j, name in enumerate(numbers)}
    for j, name in enumerate(encoder.dates):  # the first of its features is the date itself
        places[name] = len(numbers) + j * len(DATE_FEATURES)
    given = np.where(np.isinf(columns.numbers[:rows]), np.nan, columns.numbers[:rows])
    feeds: dict[str, Any] = {name: given[:, j].copy() for name, j in places.items()}
    for column, texts in zip(encoder.categorical, columns.texts, strict=True):
        missing = _MISSING * (1 + max(map(len, column.vocabulary), default=0))
        few = texts.slice(0, rows).fill_null(missing)
        feeds[column.name] = np.array(few.to_pylist(), dtype=object)
    if encoder.exposure is not None:
        feeds[encoder.exposure.name] = columns.factors[encoder.exposure.name][:rows]
    return feeds


def _as_in_file(encoder: ArrayEncoder, part: DataPart) -> Any:
    if not encoder.bytes:
        return part.features
    if not part.bytes_:
        raise DataError(
            f"{part.source}: has no bytes, unlike the training file; name another with --data"
        )
    return np.round(part.features * MOST_BYTE).astype(np.uint8)
