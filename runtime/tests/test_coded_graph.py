"""The twin that takes codes for texts draws, word for word, what the file's own graph draws."""

import json

import numpy as np
import onnx
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from labeldp_runtime import DamagedArtifactError, PlatformError, Randomizer
from labeldp_runtime.coded import CodedGraph, coded

from runtime.tests.helpers import OLD, session_of, with_checksum

FILES = sorted(OLD.glob("*/*.onnx"))
STRING = onnx.TensorProto.STRING


def has_text(data):
    graph = onnx.load_from_string(data).graph
    return any(v.type.tensor_type.elem_type == STRING for v in (*graph.input, *graph.output))


WITH_TEXT = [path for path in FILES if has_text(path.read_bytes())]
WINDOW = OLD / "plain" / "rr-with-prior-text.onnx"


def as_text(number):
    """Texts of the certificate's own, and some beside them."""
    return ["red", "grün", "", "elsewhere", "e\u0301", "red\0", "blue", "green"][number % 8]


def test_there_are_files_of_every_kind():
    assert {path.parent.name for path in WITH_TEXT} >= {"plain", "groups", "sets", "joint"}
    assert all(coded(path.read_bytes()) is None for path in FILES if path not in WITH_TEXT)


@pytest.mark.parametrize("path", WITH_TEXT, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_codes_draw_what_texts_draw(path):
    data = path.read_bytes()
    graph, twin = onnx.load_from_string(data).graph, coded(data)
    onnx.checker.check_model(onnx.load_from_string(twin.model), full_check=True)
    generator, n = np.random.default_rng(1), 4_000
    texts, codes = {}, {}
    for value in graph.input:
        kind, name = value.type.tensor_type.elem_type, value.name
        if name == "entropy":
            shape = [d.dim_value or n for d in value.type.tensor_type.shape.dim]
            words = generator.integers(0, 2**64, shape, np.uint64)
            # Of limbs, any bits above the lowest 31 will do.
            words = words if kind == onnx.TensorProto.UINT64 else words.view(np.int64)
            texts[name] = codes[name] = words
        elif kind == STRING:
            known = twin.inputs[name]
            codes[name] = generator.integers(0, len(known) + 1, n)
            texts[name] = np.array([*known, "none of them"], object)[codes[name]]
        else:
            texts[name] = codes[name] = generator.integers(-3, 60, n).astype(
                np.float64 if kind == onnx.TensorProto.DOUBLE else np.int64
            )
    expected = session_of(data).run(None, texts)
    found = session_of(twin.model).run(None, codes)
    for value, column, numbers in zip(graph.output, expected, found, strict=True):
        if value.name in twin.outputs:
            assert numbers.dtype == np.int64
            assert column.tolist() == twin.outputs[value.name][numbers].tolist()
        else:
            assert column.tolist() == numbers.tolist()
        assert len(set(column.tolist())) > 1


CONTAINERS = {
    "list": list,
    "objects": lambda texts: np.array(texts, object),
    "arrow": pa.array,
    "arrow dictionary": lambda texts: pa.array(texts).dictionary_encode(),
    "arrow chunks": lambda texts: pa.chunked_array([texts[:5], [], texts[5:]], pa.string()),
    "arrow slice": lambda texts: pa.array(["x", *texts, "y"])[1:-1].dictionary_encode(),
    "pandas": lambda texts: pd.Series(texts, index=range(7, 7 + len(texts)), name="y"),
    "pandas categories": lambda texts: pd.Series(texts, dtype="category"),
    "polars": lambda texts: pl.Series("y", texts),
    "polars categories": lambda texts: pl.Series("y", texts, dtype=pl.Categorical),
    "polars enum": lambda texts: pl.Series("y", texts, dtype=pl.Enum(sorted({*texts} - {None}))),
}


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("count", [64, 40_000])  # one run of the graph, and two
def test_every_column_of_text_is_read_alike(name, count):
    randomizer = Randomizer.load(WINDOW)
    texts = [None if i % 9 == 0 else as_text(i * i + i // 7) for i in range(count)]
    words = np.random.default_rng(2).integers(0, 2**64, count, np.uint64)
    plain = np.array(["grün" if t is None else t for t in texts], object)
    session = session_of(WINDOW.read_bytes())
    expected = session.run(None, {"label": plain, "entropy": words})[0].tolist()
    column = CONTAINERS[name](texts)
    assert randomizer.apply_words(column, words).tolist() == expected
    private = randomizer(column)
    assert len(private) == count
    drawn = private.tolist() if isinstance(private, np.ndarray) else list(private)
    if name.startswith("arrow"):
        assert isinstance(private, pa.ChunkedArray) == isinstance(column, pa.ChunkedArray)
        assert private.type == pa.string()
        drawn = private.to_pylist()
    elif name.startswith("pandas"):
        assert private.index.equals(column.index) and private.name == column.name
    elif name.startswith("polars"):
        assert private.dtype == pl.String and private.name == column.name
    assert set(drawn) <= {"red", "green", "blue", "grün"} and len(set(drawn)) > 1


def altered(change):
    """The file's graph with a change, a right checksum and everything else as it was."""
    model = onnx.load(WINDOW)
    change(model)
    return with_checksum(model)


def encoder_of(model):
    return next(node for node in model.graph.node if node.op_type == "LabelEncoder")


def keys_of(model):
    return next(a for a in encoder_of(model).attribute if a.name == "keys_strings").strings


def swapped(model):
    keys = keys_of(model)
    keys[0], keys[1] = keys[1], keys[0]


def twice(model):
    keys_of(model)[1] = keys_of(model)[0]


def compared(model):
    model.graph.node.append(
        onnx.helper.make_node("Equal", ["label", "label"], ["same"], name="same")
    )


@pytest.mark.parametrize("change", [swapped, twice])
def test_texts_that_are_not_the_certificates_are_refused(change):
    with pytest.raises(DamagedArtifactError):
        Randomizer(altered(change))


def test_another_use_of_a_text_has_no_twin():
    model = onnx.load(WINDOW)
    compared(model)
    with pytest.raises(ValueError, match="not the graph of an artifact") as raised:
        coded(model.SerializeToString())
    assert "not read by a table" in str(raised.value.__cause__)


def test_bytes_of_any_kind_have_a_twin_or_a_value_error():
    data = WINDOW.read_bytes()
    generator = np.random.default_rng(5)
    refused = 0
    for _ in range(3_000):
        changed = bytearray(data)
        for place in generator.integers(0, len(data) // 2, generator.integers(1, 4)):
            changed[place] = generator.integers(0, 256)
        try:
            coded(bytes(changed))
        except ValueError:
            refused += 1
    assert refused > 300


def no_graph(twin):
    return CodedGraph(twin.model[:-100], twin.inputs, twin.outputs)


def other_texts(twin):
    for entries in twin.outputs.values():
        entries[:2] = entries[:2][::-1].copy()
    return twin


@pytest.mark.parametrize(
    ("change", "error"), [(no_graph, DamagedArtifactError), (other_texts, PlatformError)]
)
def test_a_twin_that_is_no_twin_is_found(change, error, monkeypatch):
    monkeypatch.setattr("labeldp_runtime.opened.coded", lambda data: change(coded(data)))
    with pytest.raises(error):
        Randomizer.load(WINDOW)


def test_groups_and_their_certificate_agree():
    stated = json.loads((OLD / "groups" / "manifest.json").read_text("utf-8"))
    assert "text.onnx" in stated
    twin = coded((OLD / "groups" / "text.onnx").read_bytes())
    assert [name for name in twin.inputs if name.startswith("group")]
