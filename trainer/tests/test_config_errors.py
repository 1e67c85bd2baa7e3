"""Bad configs: one message with file, line and key."""

import pytest
from labeldp_trainer import ConfigError, parse_config

from trainer.tests.trainer_helpers import CONFIG

PRIVATE = "method: {kind: none}", "method: {kind: privatized, %s}"


def message(text):
    with pytest.raises(ConfigError) as error:
        parse_config(text, "t.yaml")
    return str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("epochs: 3", "epoch: 3", "t.yaml:15: training.epoch: unknown key; did you mean 'epochs'?"),
        ("kind: none", "kind: magic", "t.yaml:13: method.kind: 'magic' is unknown; expected"),
        ("{kind: none}", "{}", "t.yaml:13: method: the key 'kind' is missing"),
        ("0.02", "fast", "t.yaml:14: optimizer.learning_rate: expected a number"),
        ("[8]", "[0]", "t.yaml:11: model.hidden.0: must be at least 1"),
        ("[a, b]", "[a, a]", "t.yaml:4: data: a feature column is listed twice"),
        ("[a, b]", "[a, y]", "the label 'y' is also a feature"),
        ("label: y", "label: y\n  classes: true", "data.classes: expected a list of labels"),
        (
            "label: y",
            "label: y\n  classes: 3",
            "t.yaml:9: data.classes: classes need loss: cross_entropy",
        ),
        ("name: small", "name: ../small", "t.yaml:3: name: expected letters, digits"),
        ("name: small", "name: small\nname: x", "t.yaml:4: the key 'name' is given twice"),
    ],
)
def test_one_message(old, new, expected):
    assert expected in message(CONFIG.replace(old, new, 1))


def test_a_config_is_a_mapping():
    assert message("- 1") == "t.yaml:1: expected a mapping with the keys of a config"
    assert message("") == "t.yaml:1: the file is empty"
