"""Artifacts with any number of words a label: the second dimension of ``entropy`` decides."""

import json

import numpy as np
import onnx
import pytest
from labeldp_runtime import Key, LabelError, Randomizer
from onnx import helper

from runtime.tests.helpers import file, plain_words, with_checksum

MODEL = file("integers")


def widened(columns, used):
    """The artifact with words [N, columns], of which it reads one column."""
    proto = onnx.load_from_string(MODEL)
    graph = proto.graph
    entropy = next(value for value in graph.input if value.name == "entropy")
    entropy.type.tensor_type.shape.dim.add().dim_value = columns
    for node in graph.node:
        node.input[:] = ["one_word" if name == "entropy" else name for name in node.input]
    graph.initializer.append(helper.make_tensor("used", onnx.TensorProto.INT64, [], [used]))
    graph.node.insert(0, helper.make_node("Gather", ["entropy", "used"], ["one_word"], axis=1))
    vectors = next(p for p in proto.metadata_props if p.key == "labeldp.self_test")
    rows = json.loads(vectors.value)
    rows["words"] = [[w if i == used else "0" for i in range(columns)] for [w] in rows["words"]]
    vectors.value = json.dumps(rows)
    return with_checksum(proto)


@pytest.mark.parametrize(("columns", "used"), [(2, 0), (2, 1), (3, 0), (3, 2), (4, 3)])
def test_words_of_several_columns(columns, used):
    labels, key = np.arange(50) % 10, Key(bytes(range(32)))
    model, plain = widened(columns, used), Randomizer(MODEL)
    fresh = Randomizer(model)
    assert len(fresh(labels)) == 50
    words = np.random.default_rng(0).integers(0, 2**64, (50, columns), np.uint64)
    got = fresh.apply_words(labels, words)
    assert np.array_equal(got, plain.apply_words(labels, words[:, used]))
    for wrong in (words[:, :-1], words[:, 0], words[:-1]):
        with pytest.raises(LabelError, match="expected uint64 words"):
            fresh.apply_words(labels, wrong)
    digest = plain.certificate["digests"]["tables"]
    ids = [f"row {i}" for i in range(50)]
    rows = [
        plain_words(key.secret, "y", digest, 0, name, int(label), columns)
        for name, label in zip(ids, labels, strict=True)
    ]
    keyed = Randomizer(model, key=key, context="y")(labels, ids=ids)
    assert np.array_equal(keyed, fresh.apply_words(labels, np.array(rows, dtype=np.uint64)))
