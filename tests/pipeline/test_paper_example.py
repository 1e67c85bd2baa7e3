"""The worked example of the papers, from a spec to the running ONNX graph.

Table 1 and Section 3 of the optimal unbiased randomizers paper (2023): labels 0, 1, 2 with the
prior (0.6, 0.25, 0.15), ε = 0.5; RR-on-Bins maps 0 to about 0.396 and both 1 and 2 to about 0.720,
and the Bayes-optimal predictors of the randomized distribution are 0.542 and 0.558.
"""

import math

import numpy as np
import pytest
from labeldp_verify import check_bytes

from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec
from verifier.tests.files import all_words, run

SPEC = spec(weights=[0.6, 0.25, 0.15], epsilon=0.5)


def test_outputs_and_bayes_predictors():
    artifact = compile_text(SPEC, word_bits=20)
    assert check_bytes(artifact.model).ok
    assert artifact.randomizer.values == pytest.approx((0.396, 0.720), abs=5e-4)
    words = all_words(20)
    by_label = [run(artifact.model, np.full(len(words), y), words) for y in range(3)]
    likeliest = [max(set(row), key=row.count) for row in by_label]
    assert likeliest == pytest.approx([0.396, 0.720, 0.720], abs=5e-4)
    means = np.mean(by_label, axis=1)
    joint = {"a": [0.35, 0.1, 0.05], "b": [0.25, 0.15, 0.1]}
    predictor = {x: np.dot(p, means) / sum(p) for x, p in joint.items()}
    assert predictor["a"] == pytest.approx(0.542, abs=5e-4)
    assert predictor["b"] == pytest.approx(0.558, abs=5e-4)


def test_the_frequencies_are_those_of_randomized_response():
    artifact = compile_text(SPEC)
    r, e = artifact.randomizer, math.exp(0.5)
    low, high = r.base[0] / r.words, (r.base[0] + r.window) / r.words
    assert high == pytest.approx(e / (e + 1), rel=1e-15)
    assert low == pytest.approx(1 / (e + 1), rel=1e-15)
