"""The twin that takes codes for texts draws, word for word, what the file's own graph draws."""

import numpy as np
import onnx
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


@pytest.mark.parametrize("change", [swapped, twice])
def test_texts_that_are_not_the_certificates_are_refused(change):
    with pytest.raises(DamagedArtifactError):
        Randomizer(altered(change))


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
