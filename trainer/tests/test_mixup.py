"""Mixup: features and targets are mixed alike."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from labeldp_trainer import parse_config
from labeldp_trainer.data import Task, load_data
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods.closed_form import STATEMENT
from labeldp_trainer.methods.method import Setting
from labeldp_trainer.methods.stepped import minibatch_method
from labeldp_trainer.models import build_model

from trainer.tests.label_method_helpers import CONFIG, write_problem


def gradient(directory, share):
    """The gradient of one batch with this share, and what it is made of."""
    loaded = parse_config(CONFIG, "t.yaml", directory)
    dataset = load_data(loaded, ("y",), ("y",))
    loss = Loss("cross_entropy", Task(tuple(range(12))))
    model = build_model(loaded, dataset.shape, 12)
    setting = Setting(loaded, dataset, model, loss, None)
    targets = loss.task.targets(dataset.train.columns["y"], "train", "y")
    method = minibatch_method(setting, targets, STATEMENT, mixup=0.4)
    params = model.init(jax.random.key(1))
    rows = method.draw(jax.random.key(2), 0, method.steps_per_epoch)[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.random, "beta", lambda key, a, b: jnp.float32(share))
        found, _ = method.gradient(params, jax.random.key(3), rows, method.arrays)
    x, y = dataset.train.features[np.asarray(rows)], targets[np.asarray(rows)]
    return found, model, params, x, y


def test_against_mixed_soft_labels(tmp_path):
    write_problem(tmp_path, 200)
    share = 0.3
    found, model, params, x, y = gradient(tmp_path, share)
    mixed = share * x + (1 - share) * x[::-1]
    one_hot = np.eye(12)[y]
    soft = (share * one_hot + (1 - share) * one_hot[::-1]).astype(np.float32)

    def loss(params):
        logs = jax.nn.log_softmax(model.apply(params, jnp.asarray(mixed)))
        return -(logs * soft).sum(axis=1).mean()

    expected = jax.grad(loss)(params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), found, expected)
