"""Configs and data that the methods for labels refuse: one message, and nothing is left behind."""

import pytest

from trainer.tests.command import refused
from trainer.tests.label_method_helpers import config, write_problem
from trainer.tests.trainer_helpers import CLASSES as TABLE
from trainer.tests.trainer_helpers import write_tables

BAD = [
    ("kind: alibi, epsilon: -1", "t.yaml:7: method.epsilon: expected greater than or equal to"),
    (
        "kind: lp_mst, epsilon: 1, fractions: [1.0]",
        "t.yaml:7: method: fractions: there are 1 for 2 stages",
    ),
    ("kind: lp_mst, epsilon: 1, fractions: [0.9, 0.2]", "fractions: their sum is 1.1, not 1"),
    (
        "kind: clusters, k: 2, epsilon: 1, epsilon_prior: 1, columns: [a], embeddings: {file: e}",
        "columns and embeddings: give only one of them",
    ),
    (
        "kind: clusters, k: 2, epsilon: 1, epsilon_prior: 1, default: 3, "
        "domain: {kind: integer, min: 0, max: 9}",
        "default: has no effect with a domain",
    ),
    ("kind: alibi, epsilon: 1, default: 12", "method.default: is not one of the classes"),
]


CLUSTERS = "kind: clusters, k: 2, epsilon: 1, epsilon_prior: 1"


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("kind: lp_mst, epsilon: 1, stages: 64", "batch_size: 100 is larger than the 3 examples"),
        (
            CLUSTERS.replace("k: 2", "k: 201"),
            "method.k: 201 clusters are more than the 200 examples",
        ),
        (f"{CLUSTERS}, domain: {{kind: integer}}", "method.domain: is for regression"),
        (f"{CLUSTERS}, mechanism: {{kind: laplace}}", "categories have no order"),
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
    text = text.replace("lp_mst, epsilon: 1, mixup: 1", f"{CLUSTERS[6:]}, columns: [z]")
    assert "method.columns: 'z' is not a feature" in refused(tmp_path, text)
