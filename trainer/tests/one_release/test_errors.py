"""Configs and features that do not fit: one message that says where, before anything is spent."""

import numpy as np
import pytest
from click.testing import CliRunner

from labeldp_compile.cli import main
from trainer.tests.one_release.release_helpers import CLASSES, NUMBERS, write_archives

POISSON = NUMBERS.replace("squared", "poisson")


@pytest.fixture
def place(tmp_path, undrawn):
    """Data, and no noise to be had."""
    write_archives(tmp_path, count=40)
    return tmp_path


def refused(directory, text):
    """The message, if it is one, and nothing else was done."""
    (directory / "t.yaml").write_text(text, encoding="utf-8")
    before = sorted(directory.iterdir())
    arguments = ["train", str(directory / "t.yaml"), "-o", str(directory / "runs" / "new")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == "" and isinstance(result.exception, SystemExit)
    lines = [line for line in result.stderr.splitlines() if "representation " not in line[:15]]
    assert lines[0].startswith("labeldp: ") and all(line.isprintable() for line in lines)
    assert sum(line.startswith("labeldp: ") for line in lines) == 1
    assert sorted(directory.iterdir()) == before
    return lines[0]


def given(text, old, new):
    assert old in text
    return text.replace(old, new)


WRONG = {
    "no range": (given(NUMBERS, ", label_range: [-6, 6]", ""), ":6: method.label_range"),
    "no room": (given(NUMBERS, "-6, 6", "6, 6"), ":6: method"),
    "an endless range": (given(NUMBERS, "-6, 6", "-1e308, 1e308"), "rescale"),
    "a range for classes": (given(CLASSES, "1e-5", "1e-5, label_range: [0, 1]"), "label_range"),
    "counts below 0": (POISSON, ":6: method.label_range"),
    "numbers that are classes": (given(CLASSES, "cross_entropy", "squared"), ": data.classes"),
    "training": (CLASSES + "training: {epochs: 1, batch_size: 1}\n", ":7: training"),
    "absolute": (given(NUMBERS, "squared", "absolute"), ":5: loss"),
    "a head for classes": (given(NUMBERS, "epsilon", "head: softmax, epsilon"), "method.head"),
    "delta that no noise reaches": (given(CLASSES, "1e-5", "1e-200"), ":6: method"),
    "epsilon too small": (given(CLASSES, "epsilon: 2", "epsilon: 1e-9"), ":6: method.epsilon"),
    "a default that is no class": (given(CLASSES, "1e-5", "1e-5, default: 3"), "method.default"),
    "half of users": (given(CLASSES, "1e-5", "1e-5, user_column: user"), "max_examples_per_user"),
    "users by label": (
        given(CLASSES, "1e-5", "1e-5, user_column: y, max_examples_per_user: 1"),
        "method.user_column",
    ),
    "not whitened": (CLASSES + "representation: {kind: pca, whiten: false}\n", "whiten"),
    "an unknown key": (given(CLASSES, "1e-5", "1e-5, sigma: 3"), "sigma"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_configs(place, name):
    text, where = WRONG[name]
    message = refused(place, text)
    assert where in message and "t.yaml" in message


def test_wrong_features(place):
    with np.load(place / "train.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}

    def message(x, text=CLASSES):
        np.savez(place / "train.npz", **{**arrays, "x": x})
        return refused(place, text)

    for value in (np.nan, np.inf, -np.inf):
        x = arrays["x"].copy()
        x[3, 1] = value
        assert "NaN, infinite" in message(x)
    assert "constant" in message(np.ones_like(arrays["x"]))
    assert "constant" in message(arrays["x"][:1].repeat(40, axis=0))
    x = arrays["x"].copy()
    x[:, 0], x[0, 0] = 3.4e38, -3.4e38
    assert "infinite" in message(x)
    assert "features" in message(arrays["x"].astype(str))
    assert "examples" in message(arrays["x"][:-1])
    assert "shape" in message(arrays["x"][:, :-1])  # of the test part, which has all columns
