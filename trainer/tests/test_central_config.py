"""Configs of dp_sgd and labeldp_pro that do not fit: one message with file, line and key."""

import pytest
from labeldp_trainer import ConfigError, parse_config

from trainer.tests.central_helpers import REGRESSION, with_method

DP_SGD = "kind: dp_sgd, epsilon: 1, delta: 1e-5"
PRO = "kind: labeldp_pro, epsilon: 1, delta: 1e-5"


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("kind: dp_sgd, epsilon: 1, delta: 9e-301", "delta: must be at least 1e-300"),
        (f"{DP_SGD}, batches: partition, max_batch: 64", "all have the same size"),
        (f"{DP_SGD}, user_column: colour, max_examples_per_user: 2", "is the label"),
        (f"{DP_SGD}, label_range: [0, 1]", "method.label_range: is for regression"),
        (f"{PRO}, denoiser: self_conv, batches: secret", "cannot be secret because"),
        (f"{PRO}, denoiser: self_span, smoothing: 0.5", "need denoiser: self_conv or alt_conv"),
        (f"{DP_SGD}, clip_norm: 1e-40", "method.clip_norm: must be at least"),
    ],
)
def test_one_message(method, expected):
    with pytest.raises(ConfigError) as error:
        parse_config(with_method(method), "t.yaml")
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("method", "loss", "expected"),
    [
        (f"{DP_SGD}, label_range: [0, 9]", "squared", "needs a denoiser"),
        (
            f"{PRO}, denoiser: alt_conv, label_range: [0, 9]",
            "absolute",
            "t.yaml:5: loss: denoisers use",
        ),
    ],
)
def test_regression_needs_a_range(method, loss, expected):
    text = with_method(method, REGRESSION).replace("loss: squared", f"loss: {loss}")
    with pytest.raises(ConfigError) as error:
        parse_config(text, "t.yaml")
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("columns", "more", "kind"),
    [
        (16, "", "one_release"),
        (15, "", "staged_release"),
        (16, ", categorical: [c]", "staged_release"),
        (16, ", dates: [d]", "staged_release"),
    ],
)
def test_without_a_kind_many_numbers_alone_and_classes_get_one_release(columns, more, kind):
    numeric = ", ".join(f"x{i}" for i in range(columns))
    data = f"{{kind: table, train: t.parquet, label: y, numeric: [{numeric}]{more}"
    method = "method: {epsilon: 1, delta: 1e-5"
    found = parse_config(f"version: 1\nname: a\ndata: {data}, classes: 3}}\n{method}}}\n").config
    assert found.method.kind == kind and found.loss == "cross_entropy"
    assert (found.representation is not None) == (kind == "one_release")
    numbers = f"version: 1\nname: a\ndata: {data}}}\n{method}, label_range: [0, 1]}}\n"
    assert parse_config(numbers).config.method.kind == "staged_release"
