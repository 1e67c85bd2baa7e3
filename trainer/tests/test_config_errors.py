"""Bad configs: one message with file, line and key."""

import pytest
from labeldp_trainer import ConfigError, parse_config

from trainer.tests.trainer_helpers import CLASSES, CONFIG

PRIVATE = "method: {kind: none}", "method: {kind: privatized, %s}"


def message(text):
    with pytest.raises(ConfigError) as error:
        parse_config(text, "t.yaml")
    return str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("epochs: 3", "epoch: 3", "t.yaml:15: training.epoch: unknown key; did you mean 'epochs'?"),
        ("version: 1\n", "", "t.yaml:2: version: this key is missing"),
        ("kind: none", "kind: magic", "t.yaml:13: method.kind: 'magic' is unknown; expected"),
        ("kind: none", "kind: privatised", "did you mean 'privatized'?"),
        ("{kind: none}", "{}", "t.yaml:13: method: the key 'kind' is missing"),
        ("0.02", "fast", "t.yaml:14: optimizer.learning_rate: expected a number"),
        ("0.02", "-1", "learning_rate: expected greater than 0"),
        ("0.02", ".inf", "learning_rate: expected a finite number"),
        ("[8]", "[0]", "t.yaml:11: model.hidden.0: expected greater than or equal to 1"),
        ("[a, b]", "[a, a]", "t.yaml:4: data: a feature column is listed twice"),
        ("[a, b]", "[a, y]", "the label 'y' is also a feature"),
        (
            "label: y",
            "label: y\n  classes: [x]",
            "t.yaml:9: data.classes: expected a list of labels",
        ),
        ("label: y", "label: y\n  classes: [x, null]", "data.classes: expected a list of labels"),
        ("label: y", "label: y\n  classes: 1", "data.classes: expected a list of labels"),
        ("label: y", "label: y\n  classes: true", "data.classes: expected a list of labels"),
        (
            "label: y",
            "label: y\n  classes: 3",
            "t.yaml:9: data.classes: classes need loss: cross_entropy",
        ),
        ("loss: squared", "loss: square", "t.yaml:12: loss: 'square' is unknown; did you mean"),
        ("name: small", "name: ../small", "t.yaml:3: name: expected letters, digits"),
        ("name: small", "name: small\nname: x", "t.yaml:4: the key 'name' is given twice"),
        ("name: small", "name: [", "not valid YAML"),
        ("seed", "seed", None),
    ],
)
def test_one_message(old, new, expected):
    if expected is None:
        parse_config(CONFIG)
    else:
        assert expected in message(CONFIG.replace(old, new, 1))


def test_unknown_method_lists_the_known_ones():
    text = message(CONFIG.replace("kind: none", "kind: magic"))
    assert "none" in text
    assert "privatized" in text


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            "debiased: false",
            "has no artifact; give artifact, or private_column and certificate",
        ),
        ("artifact: x, certificate: y", "give only artifact"),
        ("certificate: y", "certificate: cannot randomize labels"),
        ("artifact: x, key: k", "key and id_column: give both or neither"),
        ("artifact: x, context: k", "context and label_version need key"),
        ("artifact: x, column: a, private_column: b", "give only one"),
        ("artifact: x, private_column: b, key: k, id_column: i", "already private"),
        ("artifact: x, column: c", "method.column: is also a feature"),
        ("artifact: x, column: z, key: k, id_column: z", "method.id_column: is the label; ids"),
        (
            "artifact: x, column: z, user_column: z, max_examples_per_user: 1",
            "method.user_column: is the label; users must be public",
        ),
        ("artifact: x, debiased: true", "t.yaml:13: method.debiased: needs loss: cross_entropy"),
    ],
)
def test_privatized_options(options, expected):
    assert expected in message(CONFIG.replace(PRIVATE[0], PRIVATE[1] % options))


def test_debiased_needs_the_artifact():
    options = "certificate: y, private_column: b, debiased: true"
    text = CLASSES.replace(PRIVATE[0], PRIVATE[1] % options)
    assert "debiased needs artifact" in message(text)


def test_a_config_is_a_mapping():
    assert message("- 1") == "t.yaml:1: expected a mapping with the keys of a config"
    assert message("") == "t.yaml:1: the file is empty"
