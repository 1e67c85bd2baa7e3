"""Configs and data that the methods for labels refuse: one message, and nothing is left behind."""

import pytest

from trainer.tests.command import refused
from trainer.tests.label_method_helpers import config, write_problem
from trainer.tests.trainer_helpers import CLASSES as TABLE
from trainer.tests.trainer_helpers import write_tables


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("kind: lp_mst, epsilon: 1, stages: 64", "batch_size: 100 is larger than the 3 examples"),
        (
            "kind: clusters, k: 201, epsilon: 1, epsilon_prior: 1",
            "method.k: 201 clusters are more than the 200 examples",
        ),
    ],
)
def test_refused(tmp_path, method, expected):
    write_problem(tmp_path, 200)
    assert expected in refused(tmp_path, config(method))


def test_categories_are_not_mixed(tmp_path):
    write_tables(tmp_path)
    text = TABLE.replace("label: colour", "label: colour\n  classes: [red, green, blue]")
    text = text.replace("kind: none", "kind: lp_mst, epsilon: 1, mixup: 1")
    assert "method.mixup: cannot mix categorical columns" in refused(tmp_path, text)
