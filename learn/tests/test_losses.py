"""Losses against their definition: gradients by finite differences, information by enumeration."""

import pickle

import numpy as np
import pytest
from labeldp_learn import (
    BinaryForwardLogLoss,
    ForwardLogLoss,
    PrivateLabelError,
    PrivateLabels,
    UnbiasedPoissonLoss,
    UnbiasedSquaredLoss,
    boosting_objective,
)
from labeldp_verify.opening import open_artifact

from learn.tests.drawn import FILES, GROUPS, NUMBERS, RESPONSE, SETS, response

STEP = 1e-6
BINARY = response((0, 1), rare=4)
NAMED = {
    "sets": SETS, "response": RESPONSE, "numbers": NUMBERS, "groups": GROUPS, "binary": BINARY
}  # fmt: skip


def given(loss, rows=40):
    """Scores and numbers per row."""
    generator = np.random.default_rng(0)
    if isinstance(loss, BinaryForwardLogLoss):
        return generator.normal(size=rows), generator.integers(0, 2, rows)
    if isinstance(loss, ForwardLogLoss):
        k, m = loss.chances.shape
        return generator.normal(size=(rows, k)), generator.integers(0, m, rows)
    return generator.normal(size=rows), generator.normal(0, 10, rows)


def losses():
    yield from (pytest.param(ForwardLogLoss(a), id=name) for name, a in NAMED.items())
    yield pytest.param(BinaryForwardLogLoss(BINARY), id="one score")
    yield pytest.param(UnbiasedPoissonLoss(), id="Poisson")
    yield pytest.param(UnbiasedSquaredLoss(), id="squared")


def slopes(function, scores):
    """Finite differences of function(scores) [n, …] by each row's own scores."""
    wide = scores.reshape(len(scores), -1)
    found = []
    for j in range(wide.shape[1]):
        step = np.zeros_like(wide)
        step[:, j] = STEP
        up, down = ((wide + sign * step).reshape(scores.shape) for sign in (1, -1))
        found.append((function(up) - function(down)) / (2 * STEP))
    return np.stack(found, axis=1).reshape(scores.shape)


@pytest.mark.parametrize("loss", list(losses()))
def test_the_gradient_is_the_slope_of_the_loss(loss):
    scores, labels = given(loss)
    wanted = slopes(lambda s: loss.value(s, labels), scores)
    assert np.allclose(loss.gradient(scores, labels), wanted, atol=1e-6)


@pytest.mark.parametrize("loss", [UnbiasedPoissonLoss(), UnbiasedSquaredLoss()])
def test_second_derivatives_of_unbiased_losses_are_exact(loss):
    scores, labels = given(loss)
    wanted = slopes(lambda s: loss.gradient(s, labels), scores)
    assert np.allclose(loss.hessian(scores, labels), wanted, rtol=1e-5)


@pytest.mark.parametrize("name", ["sets", "response", "numbers", "binary"])
def test_those_of_the_forward_loss_are_expected_under_the_model(name):
    loss = ForwardLogLoss(NAMED[name])
    k, m = loss.chances.shape
    scores = np.random.default_rng(1).normal(size=(1, k))
    seen = (loss.probabilities(scores) @ loss.chances)[0]
    expected = np.zeros((1, k))
    for output in range(m):
        for j in range(k):
            step = np.zeros((1, k))
            step[0, j] = STEP
            up, down = (loss.gradient(scores + s * step, [output])[0, j] for s in (1, -1))
            expected[0, j] += seen[output] * (up - down) / (2 * STEP)
    assert np.allclose(loss.hessian(scores, [0]), expected * k / (k - 1), atol=1e-6)


@pytest.mark.parametrize("code", [-1, 0.5, 15, np.nan, "A"])
def test_what_is_no_code_of_a_private_label_is_refused(code):
    """−1 was the last output, and private labels that are numbers were rounded to codes."""
    loss = ForwardLogLoss(SETS)
    scores, labels = given(loss)
    wrong = np.array([code, *labels[1:]])
    for function in (loss.value, loss.gradient, loss.hessian):
        with pytest.raises(PrivateLabelError, match="whole numbers from 0 to 14") as found:
            function(scores, wrong)
        assert "A" not in str(found.value)


def test_one_score_is_the_difference_of_two():
    one, two = BinaryForwardLogLoss(BINARY), ForwardLogLoss(BINARY)
    scores, labels = given(one)
    both = np.stack([np.zeros_like(scores), scores], axis=1)
    assert np.allclose(one.value(scores, labels), two.value(both, labels))
    assert np.allclose(one.gradient(scores, labels), two.gradient(both, labels)[:, 1])
    with pytest.raises(PrivateLabelError, match="more than two"):
        BinaryForwardLogLoss(SETS)


@pytest.mark.parametrize("name", ["plain/optimal-unbiased.onnx", "plain/debiased-rr.onnx"])
@pytest.mark.parametrize("loss", [UnbiasedPoissonLoss(), UnbiasedSquaredLoss()])
def test_unbiased_losses_differ_from_true_ones_by_a_constant_on_average(name, loss):
    artifact = open_artifact(FILES / name)
    private = PrivateLabels(artifact, np.array(artifact.tables[0].values))
    chances, targets = private.matrix().values, private.targets()
    labels = np.array(list(artifact.label.listed), float)
    one, other = (
        chances @ loss.value(np.full(len(targets), score), targets)
        - loss.value(np.full(len(labels), score), labels)
        for score in (0.3, 1.7)
    )
    assert np.allclose(one, other, atol=1e-6)


class Dataset:
    def __init__(self, labels, weights):
        self.get_label, self.get_weight = lambda: labels, lambda: weights


def test_an_objective_is_called_as_both_libraries_do():
    loss = ForwardLogLoss(SETS)
    scores, labels = given(loss)
    wanted = loss.gradient(scores, labels), loss.hessian(scores, labels)
    objective = boosting_objective(loss)
    none, weights = np.array([]), np.arange(len(labels)) / 7
    for found in (
        objective(labels.astype(float), scores),
        objective(scores, Dataset(labels.astype(np.float32), None)),
        objective(scores, Dataset(labels.astype(np.float32), none)),
    ):
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    for weighted in (
        objective(scores, Dataset(labels, weights)),
        pickle.loads(pickle.dumps(objective))(labels, scores, sample_weight=weights),
    ):
        assert np.allclose(weighted[0], wanted[0] * weights[:, None])
        assert np.allclose(weighted[1], wanted[1] * weights[:, None])


@pytest.mark.parametrize("name", ["sets", "groups", "numbers"])
def test_the_module_of_torch_has_the_same_loss_and_gradient(name):
    torch = pytest.importorskip("torch")
    from labeldp_learn.torch_losses import TorchForwardLogLoss

    loss = ForwardLogLoss(NAMED[name])
    scores, labels = given(loss)
    tensor = torch.tensor(scores, requires_grad=True)
    found = TorchForwardLogLoss(NAMED[name])(tensor, torch.tensor(labels))
    found.backward()
    assert np.isclose(found.item(), loss.value(scores, labels).mean())
    assert np.allclose(tensor.grad.numpy() * len(labels), loss.gradient(scores, labels))
