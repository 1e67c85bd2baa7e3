"""Portable files run on onnxruntime 1.12.1, the one of some warehouses, to the last bit."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from labeldp_verify.graph.inputs import in_limbs

from labeldp_compile.export.portable import portable
from tests.golden.test_golden import FILES, title

HOST = Path(__file__).parent / "old_host"
TYPES = {"tensor(int64)": "int64", "tensor(double)": "float64", "tensor(string)": "string"}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """By its title, the outputs of the successor of each old file, and what they must be."""
    if shutil.which("node") is None or not (HOST / "node_modules").exists():
        reason = "needs Node and onnxruntime-node 1.12.1: run tests/languages/install"
        (pytest.fail if os.environ.get("LABELDP_ALL") else pytest.skip)(reason)
    folder = tmp_path_factory.mktemp("ported")
    asked = [self_test_of(path, folder / f"{i}.onnx") for i, path in enumerate(FILES)]
    lines = "".join(json.dumps(case) + "\n" for case, _ in asked)
    done = subprocess.run(
        ["node", HOST / "run.cjs"], input=lines, capture_output=True, text=True, check=True
    )
    found = map(json.loads, done.stdout.splitlines())
    return {title(p): (a, e) for p, (_, e), a in zip(FILES, asked, found, strict=True)}


def self_test_of(path, ported):
    """The vectors in the file: what to feed, and the columns of outputs by their names."""
    ported.write_bytes(portable(path).model)
    session = onnxruntime.InferenceSession(ported)
    vectors = json.loads(session.get_modelmeta().custom_metadata_map["labeldp.self_test"])
    feed = {}
    for part, rows in (("label", vectors["labels"]), ("group", vectors.get("groups", []))):
        named = [one for one in session.get_inputs() if one.name.startswith(part)]
        for one, texts in zip(named, columns(rows), strict=True):
            feed[one.name] = {"type": TYPES[one.type], "dims": [len(texts)], "data": texts}
    words = np.array([[int(w, 16) for w in row] for row in vectors["words"]], np.uint64)
    (entropy,) = (one for one in session.get_inputs() if one.name == "entropy")
    limbs = in_limbs(words, entropy.shape[1] // words.shape[1])
    limbs[::2] -= 2**31  # whose lowest 31 bits are the same
    texts = [str(limb) for limb in limbs.ravel().tolist()]
    feed["entropy"] = {"type": "int64", "dims": list(limbs.shape), "data": texts}
    names = [one.name for one in session.get_outputs()]
    wanted = dict(zip(names, columns(vectors["outputs"]), strict=True))
    return {"file": str(ported), "feed": feed}, wanted


def columns(rows):
    return list(zip(*([row] if isinstance(row, str) else row for row in rows), strict=True))


@pytest.mark.parametrize("path", FILES, ids=title)
def test_it_loads_and_passes_its_self_test(answers, path):
    found, wanted = answers[title(path)]
    assert found.keys() == wanted.keys(), found
    for name, texts in wanted.items():
        assert len(texts) > 10
        assert list(map(as_value, found[name])) == list(map(as_value, texts))


def as_value(text):
    """JavaScript writes 1.0 as 1."""
    try:
        return float(text)
    except ValueError:
        return text
