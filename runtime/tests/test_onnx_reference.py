"""Another implementation of ONNX, onnx's own reference evaluator, gives the same labels."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from runtime.tests.helpers import OLD, file, session_of

V2 = ["laplace", "laplace-real-unbiased", "rr-on-bins-squared", "staircase-clipped-lattice"]
MODELS = {name: file(name) for name in ("integers", "reals", "response", "reals, response")}
MODELS |= {name: (OLD / f"plain/{name}.onnx").read_bytes() for name in V2}


class GatherElements(OpRun):
    """The evaluator's own GatherElements fails above 64 entries."""

    op_domain = ""

    def _run(self, data, indices, axis=None):
        return (np.take_along_axis(data, indices, axis=axis or 0),)


@pytest.mark.parametrize("name", MODELS)
def test_two_implementations_agree(name):
    model, session = MODELS[name], session_of(MODELS[name])
    label, entropy = session.get_inputs()
    generator = np.random.default_rng(0)
    n = 500
    real = label.type == "tensor(double)"
    labels = generator.uniform(-2, 12, n) if real else generator.integers(-3, 13, n)
    shape = [n, *entropy.shape[1:]]
    words = generator.integers(0, 2**64, shape, np.uint64)
    reference = ReferenceEvaluator(model, new_ops=[GatherElements])
    feed = {"label": labels, "entropy": words}
    assert session.run(None, feed)[0].tolist() == reference.run(None, feed)[0].tolist()
