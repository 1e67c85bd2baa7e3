"""A sweep follows the spec's goal: what is best, what comes last, and what the pictures show."""

import json
import re

import numpy as np
import pytest
from labeldp_verify.analysis.probabilities import matrix

from tests.cli.test_cli import labeldp
from tests.fixtures.specs import compiled, spec

NUMBERS = {"mechanism": "auto", "weights": [9, 1, 1, 1, 2, 3, 5, 9]}
# 15 % ones, and no more: rr_with_prior answers every label with a zero.
RARE = {"mechanism": "auto", "values": ["0", "1"], "weights": [85, 15]}


def swept(folder, stated, *options, goal="training"):
    (folder / "spec.yaml").write_text(spec(goal=goal, **stated), encoding="utf-8")
    result = labeldp("sweep", folder / "spec.yaml", *options)
    assert result.exit_code == 0, result.output
    return result.stdout


def points(folder, stated, epsilons, **goal):
    document = json.loads(swept(folder, stated, "--epsilon", epsilons, "--json", **goal))
    return document, {p["mechanism"]: p for p in document["points"]}


def order(text, mechanisms):
    """The mechanisms in the order of a table's rows."""
    first = [line.partition("  ")[0] for line in text.splitlines()]
    return [name for name in first if name in mechanisms]


def test_for_training_the_least_noise_of_a_mean_is_best(tmp_path):
    document, found = points(tmp_path, NUMBERS, "1")
    assert document["goal"] == "training"
    best = found["optimal_unbiased"]
    known = [p["noise_variance"] for p in found.values() if p["noise_variance"] is not None]
    assert best["best"] and best["noise_variance"] == min(known)
    normal = 1.959964 * (best["noise_variance"] / 1000) ** 0.5
    assert normal < best["margin_under_prior"] < 1.5 * normal
    assert best["margin_under_prior"] <= best["margin_all_labels"]
    bins = found["rr_on_bins"]
    assert bins["loss"] < best["loss"] and bins["noise_variance"] is None
    assert bins["degenerate"] and not bins["best"]
    assert "not_estimable" in [s["kind"] for s in bins["shortcomings"]]
    table = swept(tmp_path, NUMBERS, "--epsilon", "1")
    rows = order(table, found)
    assert rows[0] == "optimal_unbiased"
    last = [p["mechanism"] for p in found.values() if p["degenerate"]]
    assert set(rows[-len(last) :]) == set(last)
    line = next(line for line in table.splitlines() if line.startswith("rr_on_bins"))
    assert line.endswith("biased, and no estimate can undo it") and "◄" not in line


def test_a_biased_mechanism_is_never_best_for_means(tmp_path):
    """With two labels, all margins are equal; the most biased mechanism has the least loss."""
    two = {"mechanism": "auto", "weights": [1, 1]}
    document, _ = points(tmp_path, two, "0.5,1,2")
    best = {p["mechanism"]: p["largest_bias"] for p in document["points"] if p["best"]}
    assert sum(p["best"] for p in document["points"]) == 3 and max(best.values()) < 1e-9
    for epsilon in (0.5, 1, 2):
        here = [p for p in document["points"] if p["epsilon"] == epsilon and p["unbiased"]]
        least = min(p["margin_under_prior"] for p in here)
        assert next(p for p in here if p["best"])["margin_under_prior"] <= least * (1 + 1e-6)
    text = swept(tmp_path, two, "--epsilon", "1")
    assert re.search("^rr_on_bins .*[0-9] biased$", text, re.M)


def test_for_labels_the_least_loss_is_best(tmp_path):
    document, found = points(tmp_path, NUMBERS, "1", goal="labels")
    assert document["goal"] == "labels" and found["rr_on_bins"]["best"]
    assert not found["rr_on_bins"]["degenerate"]
    table = swept(tmp_path, NUMBERS, "--epsilon", "1", goal="labels")
    header = next(line for line in table.splitlines() if line.startswith("mechanism"))
    assert header.index("noisy label loss") < header.index("± of a mean of 1,000")
    assert order(table, found) == sorted(found, key=lambda name: found[name]["loss"])


@pytest.mark.parametrize("goal", ["training", "labels"])
def test_one_output_is_never_the_best(tmp_path, goal):
    _, found = points(tmp_path, RARE, "1", goal=goal)
    constant = found["rr_with_prior"]
    assert constant["outputs"] == 1 and constant["epsilon_label_bound"] == 0
    assert constant["loss"] == min(p["loss"] for p in found.values())
    assert constant["degenerate"] and not constant["best"]
    assert sum(p["best"] for p in found.values()) == 1
    table = swept(tmp_path, RARE, "--epsilon", "1", goal=goal)
    assert order(table, found)[-1] == "rr_with_prior"
    assert "the same output for every label" in table


def test_the_figure_of_categories_is_the_noise_of_their_shares(tmp_path):
    """Against the plain inverse of randomized response's matrix."""
    _, found = points(tmp_path, RARE, "1")
    artifact = compiled(spec(**RARE))
    table = matrix(artifact.randomizer, range(2))
    prior = np.array([0.85, 0.15])
    inverse = np.linalg.inv(table)
    noise = prior @ table @ inverse**2 - prior
    assert found["randomized_response"]["noise_variance"] == pytest.approx(noise.mean())
