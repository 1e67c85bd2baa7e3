"""What a private step is made of: its plan, its σ, the gradient of one example, users."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from labeldp_trainer import ConfigError, FeatureShape, parse_config, training
from labeldp_trainer.data import DataPart, Dataset, Task
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods import open_method
from labeldp_trainer.methods.central import make_problem
from labeldp_trainer.methods.method import Setting
from labeldp_trainer.models import Linear

from trainer.tests.central_helpers import REGRESSION, with_method
from trainer.tests.trainer_helpers import INTEGERS, compile_text

SHAPE = FeatureShape(numeric=2)


def setting(text, features, columns, task):
    loaded = parse_config(text, "t.yaml")
    n = len(features["numeric"])
    dataset = Dataset(SHAPE, DataPart(features, n, columns, "train"), None)
    loss = Loss(loaded.config.loss, task)
    model = Linear(SHAPE, task.outputs)
    return Setting(loaded, dataset, model, loss, None)


def numbers(n):
    values = np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32)
    return {"numeric": values, "categorical": np.zeros((n, 0), np.int32)}


def test_sigma_of_the_paper_s_setting():
    """n = 60,000, batch 1024, 10 epochs, δ = 1e-5, ε = 1: σ = 3.084 within 0.5 %."""
    text = with_method("kind: dp_sgd, epsilon: 1, delta: 1e-5, microbatch: 8")
    text = text.replace("epochs: 2, batch_size: 30", "epochs: 10, batch_size: 1024")
    colours = np.array(["red", "green", "blue"])[np.arange(60_000) % 3]
    task = Task(("red", "green", "blue"))
    given = setting(text, numbers(60_000), {"colour": colours}, task)
    method = open_method(given.loaded).build(given)
    details = method.statement.details
    assert details["noise_multiplier"] == pytest.approx(3.084, rel=5e-3)
    assert (details["steps"], method.steps_per_epoch) == (590, 59)
    assert details["truncation_probability"] * 590 < 1e-8
    assert "loss" not in method.statement.released
    assert method.training_loss is None


@pytest.mark.parametrize(("delta", "said"), [("0.025", True), ("0.0249", False)])
def test_a_delta_that_would_allow_to_publish_a_label(delta, said):
    text = with_method(f"kind: dp_sgd, epsilon: 8, delta: {delta}, batches: public")
    task = Task(("red", "green", "blue"))
    given = setting(text, numbers(40), {"colour": np.array(["red"] * 40)}, task)
    warnings = training.weak(given.loaded, given.dataset)
    assert [line for line in warnings if "at least 1/40: such a δ would even allow" in line] == (
        warnings if said else []
    )


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_with_standard_clipping_predictions_are_clamped_to_the_range(loss):
    """Else the gradients of all labels point one way beyond it, and a clipped hull is one point."""
    pro = "kind: labeldp_pro, epsilon: 8, delta: 1e-5, denoiser: alt_conv, label_range: [1, 9]"
    text = with_method(pro, REGRESSION).replace("loss: squared", f"loss: {loss}")
    problem = make_problem(
        given := setting(text, numbers(30), {}, Task()), given.loaded.config.method
    )
    x = {"numeric": jnp.array([1.0, 0.0]), "categorical": jnp.zeros(0, jnp.int32)}
    params = jax.tree.map(jnp.zeros_like, given.model.init(jax.random.key(0)))

    @jax.jit
    def slopes(bias):
        gradient = jax.grad(problem.loss)
        at = {**params, "b": bias[None]}
        return [gradient(at, x, label)["b"][0] for label in problem.labels_like(jnp.ones(1))]

    for bias, inside in ((50.0, False), (4.0, True)):
        low, high = map(float, slopes(jnp.float32(bias)))
        assert low > -1e-6
        assert high < 1e-6
        assert low > 0.1
        assert (high < -0.1) is inside  # at the end itself the slope is 0


def test_a_private_prior_needs_a_bound_of_the_labels_that_it_counted(tmp_path):
    (tmp_path / "labels.csv").write_text("user,y\n" + "".join(f"{i // 3},1\n" for i in range(60)))
    spec = INTEGERS.replace("{kind: uniform}", "{kind: private, data: ../labels.csv}")
    spec = spec.replace("optimal_unbiased", "randomized_response")
    options = f"artifact: {tmp_path}/numbers.onnx, private_column: y, unnoted: true"
    users = "user_column: user, max_examples_per_user: 2"
    text = with_method(f"kind: privatized, {options}, {users}", REGRESSION)
    columns = {"y": np.arange(60) % 10, "user": np.arange(60) // 3}
    person = ", unit: person, person_column: user, labels_per_person: 3"
    for unit in ("", person):
        privacy = f"{{epsilon: 3, split: {{prior: 0.6, label: 2.4}}{unit}}}"
        artifact = compile_text(spec.replace("{epsilon: 3.0}", privacy), tmp_path)
        artifact.write(tmp_path, overwrite=True)
        if not unit:
            with pytest.raises(ConfigError, match="cannot tell how many labels of a user the art"):
                open_method(parse_config(text, "t.yaml"))
    given = setting(text, numbers(60), columns, Task())
    stated = open_method(given.loaded).build(given).statement
    assert stated.epsilon == 2.2  # of 2 labels at 0.8, and the prior of 3 at 0.2
