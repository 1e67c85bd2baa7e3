"""Another implementation of ONNX, onnx's own reference evaluator, gives the same labels."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from tests.helpers import INTEGER_SPEC, compile_text, run
from tests.runtime.test_randomizer import REAL_SPEC


class GatherElements(OpRun):
    """The evaluator's own GatherElements fails above 64 entries."""

    op_domain = ""

    def _run(self, data, indices, axis=None):
        return (np.take_along_axis(data, indices, axis=axis or 0),)


@pytest.mark.parametrize("epsilon", ["0.5", "3", "12"])
@pytest.mark.parametrize("spec", [INTEGER_SPEC, REAL_SPEC])
def test_two_implementations_agree(spec, epsilon):
    model = compile_text(
        spec.replace("1.0", epsilon).replace("rr_on_bins", "randomized_response")
    ).model
    generator = np.random.default_rng(0)
    n = 500
    real = spec is REAL_SPEC
    labels = generator.uniform(-2, 12, n) if real else generator.integers(-3, 13, n)
    shape = (n, 2) if real else (n,)
    words = generator.integers(0, 2**64, shape, np.uint64)
    reference = ReferenceEvaluator(model, new_ops=[GatherElements])
    expected = reference.run(None, {"label": labels, "entropy": words})[0]
    assert run(model, labels, words) == expected.tolist()
