"""Training on private labels that are sets of classes: sums, losses, whole runs, refusals."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from labeldp_learn.toolkit import PrivateRows
from labeldp_trainer import InputError
from labeldp_trainer.data.labels import Coded
from labeldp_trainer.linear.fit import fitted_labels, label_sums
from labeldp_trainer.linear.sums import Sums, posterior
from labeldp_trainer.losses import Loss, Task
from labeldp_trainer.methods.corrections import (
    added_variance,
    class_shares,
    corrected,
    kept_information,
    rows_by_table,
)
from labeldp_trainer.methods.stepped import likelihood_loss
from labeldp_trainer.representations import restored
from labeldp_verify.forms import sets_of
from labeldp_verify.opening import open_artifact as verified

from trainer.tests.central_helpers import run
from trainer.tests.label_method_helpers import CLASSES, kept, problem, write_problem
from trainer.tests.trainer_helpers import write_artifact

COLOURS = ["amber", "blue", "coral", "dun", "ecru", "fawn", "gold"]
TEXT = f"""
version: 1
name: sets
label:
  column: colour
  domain: {{kind: categorical, values: [{", ".join(COLOURS)}]}}
  out_of_domain: {{default: amber}}
loss: zero_one
privacy: {{epsilon: 1.0}}
prior: {{kind: uniform}}
mechanism: {{kind: subset_selection}}
"""
INTEGERS = f"""
version: 1
name: sets
label: {{column: y, domain: {{kind: integer, min: 0, max: {CLASSES - 1}}}}}
loss: zero_one
privacy: {{epsilon: 1.5}}
prior: {{kind: uniform}}
mechanism: {{kind: auto}}
"""
CLOSED = """
version: 1
name: many
data: {kind: npz, train: train.npz, test: test.npz}
loss: cross_entropy
method: {kind: privatized, artifact: sets.onnx}
"""
STEPS = (
    CLOSED
    + """
model: {kind: linear}
optimizer: {kind: adam, learning_rate: 0.05}
training: {epochs: 2, batch_size: 100}
"""
)


def with_options(text, options):
    return text.replace("artifact: sets.onnx", f"artifact: sets.onnx, {options}")


@pytest.fixture(scope="module", autouse=True)
def known_words():
    """What a model has learned is not left to chance."""
    generator = np.random.default_rng(6)
    words = lambda *shape: generator.integers(0, 2**64, shape, np.uint64)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labeldp_runtime.randomizer.random_words", words)
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Twelve clouds, and an artifact of sets."""
    directory = tmp_path_factory.mktemp("sets")
    write_problem(directory)
    assert sets_of(write_artifact(directory, INTEGERS).randomizer) is not None
    return directory


@pytest.fixture(scope="module")
def closed(place):
    """A run in closed form."""
    return run(place, CLOSED, "closed")


@pytest.fixture(scope="module")
def colours(tmp_path_factory):
    """The artifact of seven colours."""
    directory = tmp_path_factory.mktemp("colours")
    write_artifact(directory, TEXT)
    return verified(directory / "sets.onnx")


def by_hand(decoded):
    """W [m, k] of a balanced design: (1[c ∈ Z] − a)/s."""
    matrix = PrivateRows.empty(decoded, 0).matrix
    members = sets_of(decoded.tables[0]).matrix.T
    inside = matrix @ members  # Pr[c ∈ Z | y] for y, c
    a, own = inside[0, 1], inside[0, 0]
    return (members - a) / (own - a)


def test_a_closed_form_fits_sums_of_debiased_sets(place, closed):
    """The same weights as of n × k targets, made by hand of the sets that the run kept."""
    private = kept(place / "closed")["private_labels"]
    assert private.dtype == np.int64
    weights = by_hand(verified(place / "sets.onnx"))
    targets = weights[private]
    vectors = np.load(place / "closed" / "representation" / "train.npy")
    spectrum = restored(place / "closed").spectrum
    dense = Coded(np.arange(len(targets), dtype=np.int32), targets)
    decoded = verified(place / "sets.onnx")
    shares = class_shares(rows_by_table(decoded, None, private)[0], range(CLASSES))
    added = added_variance(dense, [], classes=True)
    sums = label_sums(vectors, spectrum, dense, shares=shares, added=added)
    w, b = fitted_labels(sums, "softmax")
    np.testing.assert_allclose(closed.params["w"], w, atol=2e-4 * np.abs(w).max())
    np.testing.assert_allclose(closed.params["b"], b, atol=2e-4 * np.abs(w).max())
    assert closed.metrics["test_accuracy"] > 0.6  # without privacy about 0.9


@pytest.mark.parametrize("epsilon", [0.5, 1.5])
def test_the_noise_of_the_sums_is_that_of_the_design(tmp_path, epsilon):
    """What a fit leaves of the targets is their known variance, where features say nothing."""
    write_artifact(tmp_path, INTEGERS.replace("1.5", str(epsilon)))
    decoded = verified(tmp_path / "sets.onnx")
    matrix, weights = PrivateRows.empty(decoded, 0).matrix, by_hand(decoded)
    random = np.random.default_rng(0)
    y = random.integers(0, CLASSES, 40_000)
    cumulated, words = matrix.cumsum(axis=1), random.random(len(y))
    private = (cumulated[y] < words[:, None]).sum(axis=1).astype(np.int32)
    vectors = random.normal(size=(len(y), 5)).astype(np.float32)
    sums = label_sums(vectors, None, Coded(private, weights), shares=np.full(CLASSES, 1 / CLASSES))
    x = np.concatenate([np.ones((len(y), 1)), vectors], axis=1)
    np.testing.assert_allclose(sums.statistic, x.T @ weights[private], rtol=1e-9, atol=1e-6)
    # of the target: its own noise, and the variance of a one-hot label
    own = (matrix[:, :, None] * (weights[None] - np.eye(CLASSES)[:, None]) ** 2).sum() / CLASSES**2
    known = own + (1 - 1 / CLASSES) / CLASSES
    left = sums.unexplained * sums.residual[0, 0]
    assert left / len(y) == pytest.approx(known, rel=0.02)


def losses(colours, correction, order=range(7)):
    """[7] the loss of every output for logits [7], by the numbers that training takes."""
    outputs = np.arange(colours.tables[0].outputs)
    numbers = corrected(rows_by_table(colours, None, outputs)[0], order, correction).each()
    per_example = likelihood_loss
    if correction != "forward":
        per_example = Loss("cross_entropy", Task(tuple(COLOURS))).per_example

    def of_outputs(logits):
        every = jnp.broadcast_to(logits[None, :], numbers.shape)
        return per_example(every, jnp.asarray(numbers, logits.dtype))

    return of_outputs


@pytest.mark.usefixtures("x64")
def test_losses_are_their_formulas(colours):
    matrix, outputs = PrivateRows.empty(colours, 0).matrix, colours.tables[0].values
    assert list(outputs) == list(range(21))
    order = [3, 1, 0, 2, 6, 5, 4]  # the model's outputs stand in an order of their own
    logits = np.random.default_rng(1).normal(size=7)
    shares = np.empty(7)
    shares[order] = np.exp(logits) / np.exp(logits).sum()  # of the artifact's labels
    weights, sets = by_hand(colours), sets_of(colours.tables[0])
    expected = {
        "forward": [-np.log(sum(matrix[c, o] * shares[c] for c in range(7))) for o in outputs],
        "backward": [-sum(weights[o, c] * np.log(shares[c]) for c in range(7)) for o in outputs],
        "none": [-np.mean([np.log(shares[c]) for c in sets.members(o)]) for o in outputs],
    }
    for correction, values in expected.items():
        found = losses(colours, correction, order)(jnp.asarray(logits))
        np.testing.assert_allclose(found, values, rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_the_forward_loss_is_least_at_the_true_probabilities(colours):
    """Exactly, in expectation over labels and sets: no slope there, and more loss elsewhere."""
    matrix = PrivateRows.empty(colours, 0).matrix
    random = np.random.default_rng(3)
    truth = random.dirichlet(np.ones(7))
    likely, of_outputs = jnp.asarray(truth @ matrix), losses(colours, "forward")

    def expected(logits):
        return jnp.dot(likely, of_outputs(logits))

    at = jnp.log(jnp.asarray(truth))
    np.testing.assert_allclose(jax.grad(expected)(at), 0, atol=1e-12)
    for _ in range(20):
        assert expected(at + jnp.asarray(random.normal(size=7))) > expected(at)
    mean = losses(colours, "none")  # draws every prediction to the middle instead
    assert np.abs(jax.grad(lambda logits: jnp.dot(likely, mean(logits)))(at)).max() > 0.01


def test_information_is_the_mean_over_pairs_of_classes():
    """That of 40 classes is a mean over some pairs, and exact where all pairs are alike."""
    random = np.random.default_rng(5)
    matrix = random.dirichlet(np.ones(6), size=5)
    pairs = [(a - b) ** 2 / (a + b) / 2 for a, b in itertools.combinations(matrix, 2)]
    assert kept_information(matrix) == pytest.approx(np.sum(pairs) / len(pairs))
    assert kept_information(np.eye(40) * 0.3 + 0.7 / 40) == pytest.approx(0.09 / (0.3 + 1.4 / 40))
    assert kept_information(np.full((3, 2), 0.5)) == 0 and kept_information(np.eye(3)) == 1


def test_outputs_that_say_nothing_leave_a_model_finite(tmp_path):
    write_problem(tmp_path, rows=300)
    write_artifact(
        tmp_path, INTEGERS.replace("1.5", "0.000001").replace("auto", "randomized_response")
    )
    found = run(tmp_path, STEPS.replace("adam, learning_rate: 0.05", "sgd, learning_rate: 1"))
    assert np.isfinite(found.params["w"]).all()


@pytest.mark.parametrize(
    ("option", "correction"),
    [
        (None, "forward"),
        ("correction: backward", "backward"),
        ("correction: none", "none"),
    ],
)
def test_networks_take_every_correction(place, tmp_path, option, correction):
    """Forward is the default."""
    for name in ("train.npz", "test.npz", "sets.onnx"):
        (tmp_path / name).write_bytes((place / name).read_bytes())
    found = run(tmp_path, STEPS if option is None else with_options(STEPS, option))
    assert found.statement.details["correction"] == correction
    assert found.statement.details["debiased"] is (correction == "backward")
    assert found.metrics["test_accuracy"] > 0.3
    words = "subset_selection (sets), whose output is the number of a set of classes"
    assert words in found.statement.paragraph()


def archived(place, directory, private):
    """The training rows without their true labels, and with private ones; the test rows."""
    data = problem(len(private), 1)
    np.savez(directory / "train.npz", x=data["x"], z=private)
    np.savez(directory / "test.npz", **problem(1000, 2))
    for name in ("sets.onnx",):
        (directory / name).write_bytes((place / name).read_bytes())


def test_a_private_column_holds_numbers_of_sets(place, closed, tmp_path):
    """The true labels may be gone: the parameters are those of the run that randomized."""
    private = kept(place / "closed")["private_labels"]
    archived(place, tmp_path, private.astype(float))
    result = run(tmp_path, with_options(CLOSED, "unnoted: true, private_column: z"))
    jax.tree.map(np.testing.assert_array_equal, result.params, closed.params)
    assert result.statement.details["randomized_here"] is False


TABLE = f"""
version: 1
name: colours
data: {{kind: table, train: train.SUFFIX, test: test.parquet, label: colour,
       numeric: [a], categorical: [c], classes: [{", ".join(reversed(COLOURS))}]}}
loss: cross_entropy
method: {{kind: privatized, artifact: sets.onnx, unnoted: true, private_column: z}}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (with_options(CLOSED, "correction: forward"), "correction: a closed form always removes"),
        (
            STEPS.replace("privatized, artifact: sets.onnx", "lp_mst, epsilon: 1, mechanism: {}"),
            "mechanism",
        ),
    ],
)  # fmt: skip
def test_refused_in_a_sentence_with_nothing_left(place, tmp_path, text, expected):
    archived(place, tmp_path, np.arange(300))
    data = problem(300, 1)
    wrong = np.full(300, 10**6)
    np.savez(tmp_path / "train.npz", **data, wrong=wrong)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError) as caught:
        run(tmp_path, text)
    assert expected in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before


def test_the_prior_of_a_column_has_its_scale():
    """A posterior mean m of a column has Hᵀ·noise⁻¹·(S − H·m) = m/(scale·prior)."""
    random = np.random.default_rng(0)
    root = random.normal(size=(4, 4))
    gram, spectrum = root @ root.T + np.eye(4), np.array([1.0, 1.0, 0.5, 0.1])
    scales = np.array([1.0, 4.0, 0.25])
    statistic = gram @ (random.normal(size=(4, 3)) * np.sqrt(scales)) + random.normal(size=(4, 3))
    nothing = {"total": np.zeros(4), "base": np.zeros(3), "metric": np.ones(4)}
    rows = {"used": lambda: None, "factors": lambda: None}
    known = {"constant": True, "classes": False, "variance": 1.0, **nothing, **rows}
    noise = {"noise": 0.1 * gram, "residual": gram, "unexplained": 0.3}
    groups = np.array([-1, 0, 0, 1])
    found = posterior(
        Sums(statistic, gram, **noise, spectrum=spectrum, groups=groups, scales=scales, **known)
    )
    mean, share = found.mean, found.noise[0, 0] / gram[0, 0] - 0.1
    assert 1e-3 <= share <= 2
    pull = gram.T @ np.linalg.solve(found.noise, statistic - gram @ mean)
    prior = mean / pull / scales
    np.testing.assert_allclose(prior, np.broadcast_to(prior[:, :1], prior.shape), rtol=1e-6)
    assert prior[0, 0] == pytest.approx(1.0)
