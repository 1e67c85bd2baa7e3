"""The debiased loss: its expectation over private labels is the loss on the true one."""

import numpy as np
import pytest
from labeldp_trainer.errors import ArtifactError
from labeldp_trainer.methods.corrections import corrected, debiasing_weights, rows_by_table
from labeldp_verify.opening import open_artifact as verified

from trainer.tests.trainer_helpers import CATEGORIES, write_artifact


def test_randomized_response_gives_the_formula_of_the_paper(tmp_path):
    write_artifact(tmp_path, CATEGORIES)
    artifact = verified(tmp_path / "colours.onnx")
    parts, are_outputs = rows_by_table(artifact, None, ["red", "blue"])
    p = 3 / (np.exp(1) + 2)
    soft = corrected(parts, range(3), "backward").each()
    expected = (np.eye(3)[[0, 2]] - p / 3) / (1 - p)  # columns in the order of the domain
    np.testing.assert_allclose(soft, expected, rtol=1e-6)
    assert are_outputs
    assert not rows_by_table(artifact, None, ["red", "pink"])[1]


@pytest.mark.parametrize("outputs", [4, 7])
def test_any_table_of_full_rank(outputs):
    matrix = np.random.default_rng(0).dirichlet(np.ones(outputs), 4)
    weights = debiasing_weights(matrix, "x")
    np.testing.assert_allclose(matrix @ weights, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    # No other solution has less variance under uniform labels.
    null = np.linalg.svd(matrix)[2][4:].T
    likely = matrix.mean(axis=0)
    for direction in null.T:
        other = weights + 0.1 * direction[:, None]
        assert (likely[:, None] * other**2).sum() > (likely[:, None] * weights**2).sum()


def test_an_output_that_never_comes_does_no_harm():
    matrix = np.array([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]])
    weights = debiasing_weights(matrix, "x")
    np.testing.assert_allclose(matrix @ weights, np.eye(2), atol=1e-12)


def test_tables_that_cannot_be_undone():
    with pytest.raises(ArtifactError, match="has 2 outputs for 3 labels"):
        debiasing_weights(np.full((3, 2), 0.5), "x")
    with pytest.raises(ArtifactError, match="nearly the same outputs"):
        debiasing_weights(np.full((2, 2), 0.5), "x")
    close = np.array([[0.5, 0.5], [0.5 + 1e-8, 0.5 - 1e-8]])
    with pytest.raises(ArtifactError, match="nearly the same outputs"):
        debiasing_weights(close, "x")
