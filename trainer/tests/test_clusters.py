"""Priors of clusters: k-means, histograms of sensitivity 2, a verified table for each."""

import numpy as np
import pytest
from labeldp_trainer.methods.published import clusters
from labeldp_trainer.methods.published.clusters import k_means

from labeldp_compile.prior import discrete_laplace
from trainer.tests.label_method_helpers import (
    kept,
    problem,
    run,
    statement,
    write_problem,
)

TWO = "kind: clusters, k: 3, epsilon_prior: 0.3, epsilon: 1.2"


def test_k_means_finds_what_is_apart():
    random = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
    truth = random.integers(0, 3, 300)
    points = centres[truth] + random.normal(size=(300, 2))
    found = k_means(points, 3, seed=4)
    assert len({(a, b) for a, b in zip(truth, found, strict=True)}) == 3
    np.testing.assert_array_equal(found, k_means(points, 3, seed=4))
    same = k_means(np.ones((5, 2)), 4, seed=0)  # fewer different points than clusters
    assert len(set(same.tolist())) == 1


@pytest.fixture
def counted(monkeypatch):
    """The counts and the ε of every histogram, and the artifacts that were compiled."""
    seen = {"counts": [], "artifacts": []}
    noisy, assemble = discrete_laplace.noisy_histogram, clusters.assemble

    def histogram(counts, epsilon):
        seen["counts"].append((counts, epsilon))
        return noisy(counts, epsilon)

    def compiled(*arguments, **options):  # a module that is loaded now keeps this function
        seen["artifacts"].append(assemble(*arguments, **options))
        return seen["artifacts"][-1]

    monkeypatch.setattr(discrete_laplace, "noisy_histogram", histogram)
    monkeypatch.setattr(clusters, "assemble", compiled)
    return seen


def test_a_run(tmp_path, counted):
    write_problem(tmp_path, 600)
    result = run(tmp_path, TWO)
    stored, truth = kept(result.folder), problem(600, 1)["y"]
    ((counts, epsilon),) = counted["counts"]  # one release, of which each label is in one count
    assert str(epsilon) == "3/10"
    expected = np.zeros((3, 12), int)
    np.add.at(expected, (stored["cluster_of_example"], truth), 1)
    np.testing.assert_array_equal(counts.reshape(3, 12), expected)
    assert float(stored["noise_scale"]) == pytest.approx(2 / 0.3)
    assert stored["noisy_histograms"].shape == (3, 12)
    (artifact,) = counted["artifacts"]
    certificate = artifact.certificate.to_json()
    privacy = certificate["privacy"]
    assert (privacy["epsilon_label"], privacy["epsilon_prior"]) == (1.2, 0.3)
    for number, window in enumerate(artifact.artifact.tables[:-1]):
        rows = stored["cluster_of_example"] == number
        assert certificate["groups"]["tables"][number]["prior"]["rows"] == rows.sum()
        mine = stored["private_labels"][rows]
        assert set(mine.tolist()) <= set(window.values)
    said = statement(result.folder)
    assert (said["epsilon"], said["delta"]) == (1.5, 0.0)
    assert said["details"]["l1_sensitivity"] == 2
    assert "one histogram per cluster of public features (3 in all)" in said["statement"]
    run(tmp_path, TWO, resume=True)
    assert len(counted["counts"]) == 1


def test_one_label_changes_two_counts_by_one(tmp_path, counted):
    write_problem(tmp_path, 600)
    run(tmp_path, TWO, "a")
    data = problem(600, 1)
    data["y"][17] = (data["y"][17] + 5) % 12
    np.savez(tmp_path / "train.npz", **data)
    run(tmp_path, TWO, "b")
    (first, _), (second, _) = counted["counts"]
    assert np.abs(first - second).sum() == 2
    a, b = kept(tmp_path / "a"), kept(tmp_path / "b")
    np.testing.assert_array_equal(a["cluster_of_example"], b["cluster_of_example"])
