"""Models of private labels on made-up tables: better than the constant, and near the truth.

Private labels are drawn with a seed, from the probabilities that the artifact states.
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import parse_config, train
from labeldp_verify.analysis import matrix, value

from trainer.tests.trainer_helpers import compile_text

NAMES = [f"k{i:02}" for i in range(12)]
SPEC = """
version: 1
name: artifact
goal: training
label: {{column: y, domain: {domain}{outside}}}
loss: {loss}
privacy: {{epsilon: {epsilon}}}
prior: {{kind: uniform}}
mechanism: {{kind: {mechanism}}}
"""
TRAIN = """
version: 1
name: run
data: {{kind: table, train: train.parquet, test: test.parquet, label: y, numeric: [a, b, d, e]}}
loss: {loss}
model: {{kind: interactions}}
method: {{kind: privatized, artifact: artifact.onnx, unnoted: true, private_column: z}}
"""
CLASSES = {
    "two classes, one rare": ("randomized_response", 2, 2),
    "twelve classes": ("randomized_response", 12, 2),
    "sets of twelve classes": ("subset_selection", 12, 1),
}


def features(random, rows):
    return {name: random.normal(size=rows) for name in "abde"}


def probabilities(x, classes):
    """[n, k]: what a·b and a decide; of two classes 5% are of the second."""
    sign = np.sign(x["a"] * x["b"])
    if classes == 2:
        p = 1 / (1 + np.exp(4.5 - 1.5 * sign - 1.5 * (x["a"] > 0)))
        return np.stack([1 - p, p], axis=1)
    group = np.where(sign > 0, 0, 4) + np.where(x["a"] > 0.5, 1, 0)
    logs = -np.abs(np.arange(classes)[None, :] - group[:, None]) * 0.8
    odds = np.exp(logs)
    return odds / odds.sum(axis=1, keepdims=True)


def drawn(random, chances):
    """[n] places, each with the chances of its row."""
    sums = chances.cumsum(axis=1)
    return (random.random(len(chances))[:, None] > sums / sums[:, -1:]).sum(axis=1)


def privately(random, folder, spec, labels):
    """Private labels of the artifact of a spec; ``labels`` are places in its domain."""
    compiled = compile_text(spec)
    compiled.write(folder)
    table = compiled.artifact.table(0)
    randomizer = table.randomizer
    chances = matrix(randomizer, range(table.domain.size))
    outputs = np.array([value(randomizer, o) for o in range(randomizer.outputs)])
    return outputs[drawn(random, chances[labels])]


def write(folder, name, columns):
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def fitted(folder, loss):
    return train(parse_config(TRAIN.format(loss=loss), "t.yaml", folder), folder / "run")


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("signal", [True, False])
def test_private_classes_beat_the_constant_and_come_near_the_truth(tmp_path, name, signal):
    mechanism, classes, epsilon = CLASSES[name]
    random, names = np.random.default_rng(3), NAMES[:classes]
    for part, rows in (("test", 4000), ("train", 8000)):
        x = features(random, rows)
        chances = probabilities(x, classes)
        if not signal:
            chances[:] = chances.mean(axis=0)
        labels = drawn(random, chances)
        if part == "test":
            truth = -np.log(chances[np.arange(rows), labels]).mean()
            z = np.array(names)[labels]
        else:
            spec = SPEC.format(
                domain=f"{{kind: categorical, values: [{', '.join(names)}]}}",
                outside=f", out_of_domain: {{default: {names[0]}}}",
                loss="zero_one",
                epsilon=epsilon,
                mechanism=mechanism,
            )
            z = privately(random, tmp_path, spec, labels)
        write(tmp_path, part, x | {"y": np.array(names)[labels], "z": z})
    found = fitted(tmp_path, "cross_entropy")
    constant, reached = found.test.constant["loss"], found.metrics["test_loss"]
    if signal:
        assert reached < constant - 0.4 * (constant - truth)
    else:
        assert reached < constant + 0.05  # whose shares are not known exactly
