"""Every method that protects users takes a user whose name is written in two ways for one."""

import itertools

import numpy as np
import pytest
from labeldp_trainer import parse_config
from labeldp_trainer.data import Task, load_data
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods import open_method
from labeldp_trainer.methods.central import make_units
from labeldp_trainer.methods.method import Setting, limited_to_users, used_rows
from labeldp_trainer.methods.one_release import public_rows
from labeldp_trainer.models import Linear
from labeldp_trainer.one_release import plan as make

from trainer.tests.trainer_helpers import CATEGORIES, write_artifact

WHO = np.repeat([0, 1, 2, 3], 5)  # the person of each row
ROWS, LABELS, MOST = len(WHO), 3, 4
SECOND = np.arange(ROWS) % 2 == 1  # written the other way
WRITTEN = {
    "the sign of zero": np.where(WHO == 0, np.where(SECOND, -0.0, 0.0), WHO),
    "normal forms": np.where(
        SECOND, np.array([f"e\u0301{i}" for i in WHO]), np.array([f"\u00e9{i}" for i in WHO])
    ),
    "numbers as text": np.array(
        [f"{i}.0" if two else str(i) for i, two in zip(WHO, SECOND, strict=True)]
    ),
    "blanks": np.array([f"p{i} " if two else f"p{i}" for i, two in zip(WHO, SECOND, strict=True)]),
}
CONFIG = """
version: 1
name: few
data: {kind: npz, train: train.npz, label: %s}
loss: %s
method: {%s, user_column: user, max_examples_per_user: %d}
"""
MODEL = """
model: {kind: linear}
optimizer: {kind: sgd, learning_rate: 1}
training: {epochs: 1, batch_size: 2}
"""
RANDOMIZED = {
    "lp_mst": "kind: lp_mst, epsilon: 1, stages: 1",
    "alibi": "kind: alibi, epsilon: 1",
    "clusters": "kind: clusters, k: 2, epsilon_prior: 1, epsilon: 1",
    "privatized": "kind: privatized, artifact: colours.onnx, column: colour",
}
CENTRAL = {
    "dp_sgd": "kind: dp_sgd, epsilon: 8, delta: 1e-5",
    "labeldp_pro": "kind: labeldp_pro, epsilon: 8, delta: 1e-5, denoiser: alt_conv",
}
written = pytest.mark.parametrize("written", WRITTEN)


def write(directory, written, **labels):
    random = np.random.default_rng(4)
    x = random.normal(size=(ROWS, 2)).astype(np.float32)
    y = random.integers(0, LABELS, ROWS)
    columns = {"y": y, "number": y - 1.0, "colour": np.array(["red", "green", "blue"])[y]}
    np.savez(directory / "train.npz", x=x, user=WRITTEN[written], **(columns | labels))
    return y


def setting(directory, method, label="y", most=MOST, more=""):
    classes = {"y": (0, 1, 2), "colour": ("red", "green", "blue"), "number": None}[label]
    loss = "squared" if classes is None else "cross_entropy"
    text = CONFIG % (label, loss, method, most) + more
    if classes is not None:
        text = text.replace(
            "label: " + label, f"label: {label}, classes: [{', '.join(map(str, classes))}]"
        )
    loaded = parse_config(text, "t.yaml", directory)
    dataset = load_data(loaded, open_method(loaded).columns, ())
    task = Task(classes)
    model = Linear(dataset.shape, task.outputs)
    return Setting(loaded, dataset, model, Loss(loss, task), None)


@written
@pytest.mark.parametrize("kind", RANDOMIZED)
def test_no_more_labels_of_a_user_are_randomized_than_stated(tmp_path, written, kind):
    write(tmp_path, written)
    write_artifact(tmp_path, CATEGORIES)
    given = setting(tmp_path, RANDOMIZED[kind], "colour", more=MODEL)
    rows = used_rows(given)
    assert np.bincount(WHO[rows]).tolist() == [MOST] * 4
    built = open_method(given.loaded).build(given)
    assert built.statement.details["labels"] == 4 * MOST


@written
@pytest.mark.parametrize("kind", CENTRAL)
def test_a_user_is_one_unit(tmp_path, written, kind):
    write(tmp_path, written)
    given = setting(tmp_path, CENTRAL[kind], more=MODEL)
    units = make_units(given, given.loaded.config.method)
    assert (units.count, units.examples, units.rows) == (4, MOST, 4 * MOST)
    x = given.dataset.train.features
    (vectors, present), seen = units.x, []
    for own, kept in zip(vectors, present, strict=True):
        people = {int(WHO[np.flatnonzero((x == row).all(axis=1))[0]]) for row in own[kept]}
        assert len(people) == 1
        seen += people
    assert sorted(seen) == [0, 1, 2, 3]


def distances(found):
    """Squared lengths of all differences."""
    return [int(np.square(a - b).sum()) for a, b in itertools.combinations(found, 2)]


@written
@pytest.mark.parametrize("label", ["y", "number"])
def test_the_labels_of_a_user_move_a_release_by_no_more_than_stated(
    tmp_path, noiseless, written, label
):
    """All labels of all rows of a user: 3^5 for each user."""
    labels, extra = write(tmp_path, written), ", label_range: [-1, 1]" * (label == "number")
    method = f"kind: one_release, epsilon: 2, delta: 1e-5{extra}"
    given = limited_to_users(setting(tmp_path, method, label, most=5))
    rows, config = public_rows(given), given.loaded.config.method
    classes = given.loss.task.classes
    plan = make.planned(rows, config, classes, label)
    values = (0, 1, 2) if classes is not None else (-1.0, 0.0, 1.0)
    largest = []
    for person in range(4):
        found = []
        for own in itertools.product(values, repeat=5):
            changed = labels.astype(float) - (classes is None)
            changed[person == WHO] = own
            if classes is not None:
                changed = changed.astype(np.int64)
            found.append(make.drawn(rows, config, classes, label, changed).statistic)
        largest.append(max(distances(found[:: 1 if classes is None else 2])))
    assert 0 < max(largest) <= plan.facts.squared_sensitivity
    assert len(np.unique(rows.owners)) == 4


@written
def test_the_labels_of_a_user_move_votes_by_no_more_than_stated(tmp_path, noiseless, written):
    method = "kind: pate, epsilon: 8, delta: 1e-5, teachers: 4, queries: 3"
    labels = write(tmp_path, written)
    largest = []
    for person in range(4):
        found = []
        for value in range(LABELS):
            write(tmp_path, written, y=np.where(person == WHO, value, labels))
            built = open_method((given := setting(tmp_path, method)).loaded).build(given)
            found.append(built.keep["noisy_votes"])
        largest.append(max(distances(found)))
    assert 0 < max(largest) <= built.statement.details["squared_sensitivity"]
