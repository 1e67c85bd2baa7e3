"""Open an artifact: a session of its graph, and its certificate, checked against each other.

The test asks whether this platform computes what the integers of an artifact demand.
The boundary vectors of the file have the expected outputs. They run with and without onnxruntime's
graph optimisations, since some versions remove nodes that are needed. Real labels also run near the
points where rounding changes, and there both ways must agree.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from labeldp_runtime.coded import CodedGraph, Texts, coded
from labeldp_runtime.domains import Sets, grid_bounds, grid_values
from labeldp_runtime.elements import Lookup
from labeldp_runtime.errors import (
    ArtifactError,
    DamagedArtifactError,
    InsecureArtifactError,
    PlatformError,
)
from labeldp_runtime.inputs import Feed, InputColumn, Inputs, Outputs

DAMAGED = (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError)
"""The errors of reading a certificate of another shape."""
_WORDS = "entropy"  # the graph's input of random words
_ELEMENT_TYPES = {"tensor(int64)": "int64", "tensor(double)": "float64", "tensor(string)": "string"}


@dataclass(frozen=True)
class Opened:
    """An artifact that computes rightly on this platform.

    Attributes:
        session: of the file's graph; of its twin that takes and gives codes, where there is text.
        stated: the certificate.
        texts: what the codes of each private column stand for; None where it is no text.
        output_types: int64, float64 or string, of each private column.
        limbs: that the graph takes for each word of a label; 0 if it takes whole words.
    """

    session: onnxruntime.InferenceSession
    stated: dict[str, Any]
    inputs: Inputs
    output_types: list[str]
    texts: list[NDArray[Any] | None]
    words_per_label: int
    limbs: int
    sets: Sets | None


def open_artifact(data: bytes, source: str) -> Opened:
    """Make the session, read the certificate and test the platform.

    ``source`` names the bytes in errors. Raises a RuntimeArtifactError.
    """
    try:
        session = open_session(data)
        plain = open_session(data, optimised=False)  # for the self-test only
        metadata = session.get_modelmeta().custom_metadata_map
    except Exception as error:  # onnxruntime raises types of its own
        raise ArtifactError(f"{source}: is not an ONNX file that onnxruntime can load") from error
    try:
        stated: dict[str, Any] = json.loads(metadata["labeldp.certificate"])
        insecure = stated["insecure"]
        (entropy,) = (one for one in session.get_inputs() if one.name == _WORDS)
        given = _typed([one for one in session.get_inputs() if one.name != _WORDS])
        outputs = _typed(session.get_outputs())
        twin = coded(data)
        opened = Opened(
            session if twin is None else _session_of(twin),
            stated,
            Inputs(stated, given, len(outputs)),
            [kind for _, kind in outputs],
            [None if twin is None else twin.outputs.get(name) for name, _ in outputs],
            *limbs_of(entropy, stated),
            Sets(stated) if "sets" in stated else None,
        )
        if twin is not None:
            _require_same_texts(twin, opened)
        vectors = json.loads(metadata["labeldp.self_test"])
    except DAMAGED as error:
        raise DamagedArtifactError(f"{source}: its certificate is damaged") from error
    if insecure is not None:
        raise InsecureArtifactError(f"{source}: {insecure!r}: compile it again without a test seed")
    ways: list[Run] = [partial(run_graph, one, opened.limbs) for one in (session, plain)]
    if twin is not None:
        ways.append(partial(_run_coded, opened))
    if not run_self_test(ways, vectors, opened.inputs, opened.words_per_label):
        raise PlatformError(
            f"{source}: onnxruntime {onnxruntime.__version__} gives wrong results on this "
            "platform, or the file is damaged: use another version of onnxruntime"
        )
    return opened


def _session_of(twin: CodedGraph) -> onnxruntime.InferenceSession:
    """The session of a twin. ValueError if the file's graph was not that of an artifact."""
    try:
        return open_session(twin.model)
    except Exception as error:  # onnxruntime raises types of its own
        raise ValueError("a graph that cannot take codes") from error


def run_graph(
    session: onnxruntime.InferenceSession, limbs: int, feed: Feed, words: NDArray[np.uint64]
) -> list[NDArray[Any]]:
    """The graph's outputs for a feed [n] and words [n] or [n, w], which it takes in limbs."""
    return session.run(None, {**feed, _WORDS: in_limbs(words, limbs)})


def as_texts(texts: list[NDArray[Any] | None], outputs: list[NDArray[Any]]) -> Outputs:
    """The outputs [n] of a graph, of which those that are codes stand for ``texts``."""
    pairs = zip(outputs, texts, strict=True)
    return [column if of is None else Texts(column, of) for column, of in pairs]


def _run_coded(opened: Opened, feed: Feed, words: NDArray[np.uint64]) -> list[NDArray[Any]]:
    """The outputs of the twin graph, from texts to texts."""
    codes = {
        column.input: column.missing.codes(feed[column.input].tolist())
        if isinstance(column.missing, Lookup)
        else feed[column.input]
        for column in opened.inputs.columns
    }
    outputs = as_texts(opened.texts, run_graph(opened.session, opened.limbs, codes, words))
    return [column.array() if isinstance(column, Texts) else column for column in outputs]


def _require_same_texts(twin: CodedGraph, opened: Opened) -> None:
    """ValueError unless the graph knows the texts of the certificate, in their order."""
    lookups = {column.input: column.missing for column in opened.inputs.columns}
    for name, texts in twin.inputs.items():
        lookup = lookups[name]
        if not isinstance(lookup, Lookup) or lookup.texts != texts:
            raise ValueError("the graph knows other texts than the certificate")


def _typed(declared: list[Any]) -> list[tuple[str, str]]:
    """The names and element types of a graph's inputs or outputs; KeyError for another type."""
    return [(one.name, _ELEMENT_TYPES[one.type]) for one in declared]


# Portable files take a word as two or three int64 limbs. The graph takes the lowest 31 bits of
# each, so hosts may feed integers of any sign and size.
_SHIFTS = (33, 2)  # to the right, of the first limbs; the third is the last 2 bits, raised by 29
_MASK = np.uint64(2**31 - 1)


def limbs_of(entropy: Any, stated: dict[str, Any]) -> tuple[int, int]:
    """The words of a label, and the limbs of a word: 0 where words are whole.

    ``entropy`` is the graph's input, ``stated`` the certificate. ValueError or KeyError for others.
    """
    width = int(entropy.shape[1]) if len(entropy.shape) == 2 else 1
    if entropy.type == "tensor(uint64)":
        return width, 0
    limbs = stated["portable"]["limbs_per_word"]
    known = type(limbs) is int and limbs in (2, 3) and width % limbs == 0
    if entropy.type != "tensor(int64)" or not known:
        raise ValueError("words of an unknown kind")
    return width // limbs, limbs


def in_limbs(words: NDArray[np.uint64], limbs: int) -> NDArray[Any]:
    """[n, w·limbs] the limbs (int64) of words [n] or [n, w]; the words if ``limbs`` is 0."""
    if not limbs:
        return words
    found = np.empty((*words.shape, limbs), np.uint64)
    for i, shift in enumerate(_SHIFTS):
        np.right_shift(words, np.uint64(shift), out=found[..., i])
    if limbs > len(_SHIFTS):
        np.left_shift(words, np.uint64(29), out=found[..., -1])
    found &= _MASK
    return found.view(np.int64).reshape(len(words), -1)


Run = Callable[[Feed, NDArray[np.uint64]], list[NDArray[Any]]]
_GRID_POINTS = 64  # of a real domain, around which its rounding is tried


def open_session(data: bytes, *, optimised: bool = True) -> onnxruntime.InferenceSession:
    """A single-threaded session of an artifact's bytes that logs nothing."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def run_self_test(ways: Sequence[Run], vectors: dict[str, Any], inputs: Inputs, words: int) -> bool:
    """Whether all ways to run give every expected output, to the last bit, and agree elsewhere.

    Each takes a feed [n] and words [n] or [n, words], and gives the outputs [n].
    """
    try:
        expected = _columns(vectors["outputs"])
        texts = _columns(vectors["labels"])
        if inputs.groups:
            texts += _columns(vectors["groups"])
        feed = {
            column.input: _parsed(own, column.element_type)
            for column, own in zip(inputs.columns, texts, strict=True)
        }
        entropy = np.array([[int(w, 16) for w in row] for row in vectors["words"]], np.uint64)
        for way in ways:
            got = way(feed, _of_width(entropy, words))
            if [[_text(v) for v in column.tolist()] for column in got] != expected:
                return False
        for column in inputs.labels:
            if column.element_type == "float64":
                tried, own = _around(column, feed, entropy)
                first, *others = (way(tried, _of_width(own, words)) for way in ways)
                if not all(all(map(_same, first, other)) for other in others):
                    return False
    except Exception:  # vectors of another shape; onnxruntime raises types of its own
        return False
    return True


def _columns(rows: Sequence[Any]) -> list[list[str]]:
    """The columns [n] of rows of texts; plain texts are one column."""
    rows = [[row] if isinstance(row, str) else row for row in rows]
    return [list(column) for column in zip(*rows, strict=True)]


def _of_width(entropy: NDArray[np.uint64], words: int) -> NDArray[np.uint64]:
    """Words [n, w] as the graph takes them: [n] of one word a label."""
    return entropy[:, 0] if words == 1 else entropy


def _around(
    column: InputColumn, feed: Feed, entropy: NDArray[np.uint64]
) -> tuple[Feed, NDArray[np.uint64]]:
    """Labels of one column around its roundings, with rows of the vectors in all others."""
    labels, own = _around_roundings(column.stated, entropy)
    turn = np.arange(len(labels)) * 7 % len(entropy)
    return {**{name: values[turn] for name, values in feed.items()}, column.input: labels}, own


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two columns are equal, to the last bit."""
    if one.dtype == object:
        return bool(one.tolist() == other.tolist())
    return one.tobytes() == other.tobytes()


def _text(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _parsed(texts: Sequence[str], element_type: str) -> NDArray[Any]:
    if element_type == "string":
        return np.array(texts, dtype=object)
    parse = int if element_type == "int64" else float
    return np.array([parse(text) for text in texts], dtype=element_type)


def _around_roundings(
    domain: dict[str, Any], words: NDArray[np.uint64]
) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    """Labels [n] around grid points and halfway between two, with words of the vectors.

    Under unbiased rounding each meets the last rounding word that rounds it up, and the next.
    """
    if domain["kind"] == "grid":
        return _around_listed(domain, words)
    low, last = float(domain["min"]), domain["points"] - 1
    span = float(domain["max"]) - low
    grid = np.unique(np.linspace(0, last, min(last + 1, _GRID_POINTS)).astype(np.int64))
    near = low + np.minimum(np.concatenate([grid, grid + 0.5, grid + 0.3]), last) / last * span
    labels = np.concatenate([near, *(np.nextafter(near, end) for end in (-np.inf, np.inf))])
    labels = np.tile(labels, 4)
    entropy = words[np.arange(len(labels)) * 7 % len(words)]
    if domain["rounding"] == "unbiased":
        inside = np.clip(labels, low, float(domain["max"]))
        position = np.minimum((inside - low) * (last / span), float(last))
        ups = np.ceil((position - np.floor(position)) * 2.0**53).astype(np.uint64)
        up = np.arange(len(labels)) // (len(labels) // 2) == 0
        turn = np.where(up, np.maximum(ups, 1) - 1, np.minimum(ups, 2**53 - 1)).astype(np.uint64)
        entropy[:, -1] = turn << np.uint64(11)
    return labels, entropy


def _around_listed(
    domain: dict[str, Any], words: NDArray[np.uint64]
) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    """Test numbers around listed labels: at each of them, halfway and elsewhere between two."""
    values, bounds = grid_values(domain), grid_bounds(domain)
    grid = np.unique(np.linspace(0, len(values) - 1, min(len(values), _GRID_POINTS)).astype(int))
    between = np.interp(np.concatenate([grid, grid + 0.3]), np.arange(len(values)), values)
    near = np.concatenate([between, bounds[grid]])
    labels = np.concatenate([near, *(np.nextafter(near, end) for end in (-np.inf, np.inf))])
    return labels, words[np.arange(len(labels)) * 7 % len(words)]
