"""Open an artifact: a session of its graph, its certificate, and whether the two fit together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from labeldp_runtime.coded import CodedGraph, Texts, coded
from labeldp_runtime.errors import (
    ArtifactError,
    DamagedArtifactError,
    InsecureArtifactError,
    PlatformError,
)
from labeldp_runtime.feed import Feed
from labeldp_runtime.groups import GroupColumn, Groups
from labeldp_runtime.label_columns import (
    LabelColumn,
    LabelColumns,
    Outputs,
    label_columns,
    label_inputs,
)
from labeldp_runtime.lookup import Lookup
from labeldp_runtime.self_test import Run, open_session, run_self_test
from labeldp_runtime.sets import Sets

DAMAGED = (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError)
"""What reading a certificate of another shape raises."""
_ELEMENT_TYPES = {"tensor(int64)": "int64", "tensor(double)": "float64", "tensor(string)": "string"}


@dataclass(frozen=True)
class Opened:
    """An artifact that computes rightly on this platform.

    Attributes:
        session: of the file's graph; of its twin that takes and gives codes, where there is text.
        stated: the certificate.
        texts: what the codes of each private column stand for; None where it is no text.
        output_types: int64, float64 or string, of each private column.
    """

    session: onnxruntime.InferenceSession
    stated: dict[str, Any]
    labels: LabelColumns
    output_types: list[str]
    texts: list[NDArray[Any] | None]
    words_per_label: int
    groups: Groups | None
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
        raise ArtifactError(f"{source}: is not an ONNX file that onnxruntime loads") from error
    try:
        stated: dict[str, Any] = json.loads(metadata["labeldp.certificate"])
        insecure = stated["insecure"]
        inputs, own = session.get_inputs(), label_inputs(stated)
        entropy, of_groups = inputs[own], _typed(inputs[own + 1 :])
        outputs = _typed(session.get_outputs())
        twin = coded(data)
        opened = Opened(
            session if twin is None else _session_of(twin),
            stated,
            label_columns(stated, _typed(inputs[:own]), len(outputs)),
            [kind for _, kind in outputs],
            [None if twin is None else twin.outputs.get(name) for name, _ in outputs],
            int(entropy.shape[1]) if len(entropy.shape) == 2 else 1,
            _groups_of(stated, of_groups),
            Sets(stated) if "sets" in stated else None,
        )
        if twin is not None:
            _require_same_texts(twin, opened)
        vectors = json.loads(metadata["labeldp.self_test"])
    except DAMAGED as error:
        raise DamagedArtifactError(f"{source}: its certificate is damaged") from error
    if insecure is not None:
        raise InsecureArtifactError(f"{source}: {insecure!r}: compile it again without a test seed")
    ways: list[Run] = [partial(run_graph, session), partial(run_graph, plain)]
    if twin is not None:
        ways.append(partial(_run_coded, opened))
    columns, words = opened.labels.columns, opened.words_per_label
    if not run_self_test(ways, vectors, columns, dict(of_groups), words):
        raise PlatformError(
            f"{source}: onnxruntime {onnxruntime.__version__} computes wrongly on this "
            "platform (or the file is damaged): use another version of onnxruntime"
        )
    return opened


def _session_of(twin: CodedGraph) -> onnxruntime.InferenceSession:
    """ValueError for a twin that is no graph, as the file's own was none of an artifact."""
    try:
        return open_session(twin.model)
    except Exception as error:  # onnxruntime raises types of its own
        raise ValueError("a graph that cannot take codes") from error


def run_graph(
    session: onnxruntime.InferenceSession, feed: Feed, words: NDArray[np.uint64]
) -> list[NDArray[Any]]:
    """What the graph answers to a feed [n] and words [n] or [n, w]."""
    outputs: list[NDArray[Any]] = session.run(None, {**feed, "entropy": words})
    return outputs


def as_texts(texts: list[NDArray[Any] | None], outputs: list[NDArray[Any]]) -> Outputs:
    """The outputs [n] of a graph, of which those that are codes stand for ``texts``."""
    pairs = zip(outputs, texts, strict=True)
    return [column if of is None else Texts(column, of) for column, of in pairs]


def _run_coded(opened: Opened, feed: Feed, words: NDArray[np.uint64]) -> list[NDArray[Any]]:
    """The same by the twin, from texts to texts."""
    lookups = {name: column.missing for name, column in _columns(opened).items()}
    codes = {
        name: lookup.codes(values.tolist())
        if isinstance(lookup := lookups[name], Lookup)
        else values
        for name, values in feed.items()
    }
    outputs = as_texts(opened.texts, run_graph(opened.session, codes, words))
    return [column.array() if isinstance(column, Texts) else column for column in outputs]


def _columns(opened: Opened) -> dict[str, LabelColumn | GroupColumn]:
    columns: list[LabelColumn | GroupColumn] = [*opened.labels.columns]
    columns += () if opened.groups is None else opened.groups.columns
    return {column.input: column for column in columns}


def _require_same_texts(twin: CodedGraph, opened: Opened) -> None:
    """ValueError unless the graph knows the texts of the certificate, in their order."""
    columns = _columns(opened)
    for name, texts in twin.inputs.items():
        lookup = columns[name].missing
        if not isinstance(lookup, Lookup) or lookup.texts != texts:
            raise ValueError("the graph knows other texts than the certificate")


def _typed(declared: list[Any]) -> list[tuple[str, str]]:
    """The names and element types of a graph's inputs or outputs; KeyError for another type."""
    return [(one.name, _ELEMENT_TYPES[one.type]) for one in declared]


def _groups_of(stated: dict[str, Any], inputs: list[tuple[str, str]]) -> Groups | None:
    """The groups of a certificate, if the graph takes any; ValueError if the two differ."""
    if bool(inputs) != ("groups" in stated):
        raise ValueError("the graph's inputs are not those of the certificate")
    if inputs and stated["label"].get("column") in [c["name"] for c in stated["groups"]["columns"]]:
        raise ValueError("the label is its own group")
    return Groups(stated["groups"], inputs) if inputs else None
