"""Whatever is changed in a file with tables by group, the verifier says no."""

import random

import numpy as np
import onnx
import pytest
from labeldp_verify import check_bytes

from tests.group_helpers import grouped, write_grouped


@pytest.fixture(scope="module", params=[(7, -2, 2**40), ("a", "b", "ü")])
def model(request):
    return write_grouped(grouped(request.param))


def test_one_changed_byte_anywhere(model):
    generator = random.Random(3)
    places = {*range(64), *range(len(model) - 64, len(model))}
    while len(places) < 260:
        places.add(generator.randrange(len(model)))
    for place in places:
        mutant = bytearray(model)
        mutant[place] ^= generator.randrange(1, 256)
        assert not check_bytes(bytes(mutant)).ok, place


def test_removed_or_inserted_bytes(model):
    generator = random.Random(4)
    for _ in range(40):
        place = generator.randrange(len(model))
        assert not check_bytes(model[:place] + model[place + 1 :]).ok
        assert not check_bytes(model[:place]).ok
        extra = bytes([generator.randrange(256)])
        assert not check_bytes(model[:place] + extra + model[place:]).ok


def test_swapped_or_changed_entries_of_every_constant(model):
    proto = onnx.load_from_string(model)
    generator = random.Random(5)
    tried = 0
    for index, tensor in enumerate(proto.graph.initializer):
        words = np.frombuffer(tensor.raw_data, dtype=np.uint64)
        for _ in range(12):
            mutant, changed = onnx.load_from_string(model), words.copy()
            i, j = generator.randrange(len(words)), generator.randrange(len(words))
            if words[i] != words[j]:
                changed[[i, j]] = changed[[j, i]]
            else:
                changed[i] ^= np.uint64(1 << generator.randrange(64))
            mutant.graph.initializer[index].raw_data = changed.tobytes()
            assert not check_bytes(mutant.SerializeToString(deterministic=True)).ok, tensor.name
            tried += 1
    assert tried > 100


def test_nodes_left_out_doubled_or_rewired(model):
    count = len(onnx.load_from_string(model).graph.node)
    for i in range(count):
        for change in ("left out", "doubled", "rewired"):
            mutant = onnx.load_from_string(model)
            nodes = mutant.graph.node
            if change == "left out":
                del nodes[i]
            elif change == "doubled":
                nodes.append(nodes[i])
            else:
                nodes[i].input[0] = "label" if nodes[i].input[0] == "group" else "group"
            assert not check_bytes(mutant.SerializeToString(deterministic=True)).ok, (i, change)
