"""Methods that protect true labels refuse none: whether a run starts tells nothing of a label."""

import numpy as np
import pytest

from trainer.tests.central_helpers import REGRESSION, run, with_method
from trainer.tests.label_method_helpers import kept
from trainer.tests.trainer_helpers import table


def slow(method):
    return pytest.param(method, marks=pytest.mark.slow)


CLASSES = [
    slow("kind: dp_sgd, epsilon: 8, delta: 1e-5, default: blue"),
    slow("kind: labeldp_pro, epsilon: 8, delta: 1e-5, denoiser: alt_conv, hull_units: 16"),
    slow("kind: pate, epsilon: 8, delta: 1e-5"),
    slow("kind: lp_mst, epsilon: 8"),
    "kind: alibi, epsilon: 8",
    slow("kind: clusters, k: 2, epsilon: 8, epsilon_prior: 8"),
]
NUMBERS = [
    slow("kind: dp_sgd, epsilon: 8, delta: 1e-5, default: 4"),
    slow(
        "kind: labeldp_pro, epsilon: 8, delta: 1e-5, denoiser: alt_conv, hull_units: 16, "
        "label_range: [0, 8]"
    ),
]


def write(directory, column, label):
    """CSV tables; one training row has this label."""
    for name, rows, seed in (("train", 120, 0), ("test", 60, 1)):
        data = table(rows, seed).to_pydict()
        if name == "train":
            data[column] = [*data[column][:-1], label]
        lines = [
            ",".join(data),
            *(",".join(map(str, row)) for row in zip(*data.values(), strict=True)),
        ]
        (directory / f"{name}.csv").write_text("\n".join(lines), encoding="utf-8")


def started(directory, text, column, label):
    """The names of what a run leaves, for a table with this label."""
    write(directory, column, label)
    if "kind: pate" in text:  # it fits in closed form
        parts = ("model:", "optimizer:", "training:")
        text = "".join(x for x in text.splitlines(True) if not x.startswith(parts))
    run(directory, text.replace(".parquet", ".csv"), "run")
    return sorted(p.name for p in (directory / "run").iterdir())


@pytest.mark.parametrize("method", CLASSES)
def test_no_class_is_refused(tmp_path, method):
    made = []
    for i, label in enumerate(["red", "", "purple", "nan"]):
        (tmp_path / str(i)).mkdir()
        made.append(started(tmp_path / str(i), with_method(method), "colour", label))
    assert made == [made[0]] * 4


@pytest.mark.parametrize("method", NUMBERS)
def test_no_number_is_refused(tmp_path, method):
    text = with_method(method, REGRESSION)
    made = []
    for i, label in enumerate(["3", "", "1e39", "seven"]):
        (tmp_path / str(i)).mkdir()
        made.append(started(tmp_path / str(i), text, "y", label))
    assert made == [made[0]] * 4


def test_what_is_no_class_counts_as_the_default(tmp_path):
    for default, place in (("", 0), (", default: blue", 2)):
        (tmp_path / str(place)).mkdir()
        text = with_method(f"kind: alibi, epsilon: 60{default}")
        started(tmp_path / str(place), text, "colour", "purple")
        noisy = kept(tmp_path / str(place) / "run")["private_labels"]
        assert np.argmax(noisy[-1]) == place
