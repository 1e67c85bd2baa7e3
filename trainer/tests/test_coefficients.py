"""``labeldp runs --coefficients``: what is estimated, how often intervals cover, and refusals."""

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_learn.intervals import Z
from labeldp_runtime import Randomizer
from labeldp_trainer import parse_config, read_coefficients, train
from labeldp_trainer.coefficients import (
    OriginalColumns,
    PrivateTargets,
    ReleasedColumns,
    of_private,
)
from labeldp_trainer.data import load_data
from labeldp_trainer.data.labels import class_labels
from labeldp_trainer.data.table import row_places
from labeldp_trainer.data.users import rows_of_users
from labeldp_trainer.discrete_gaussian.noise import noisy
from labeldp_trainer.methods.corrections import BiasedError, private_targets, rows_by_table
from labeldp_trainer.one_release.plan import planned
from labeldp_trainer.one_release.release import read_release
from labeldp_trainer.one_release.rows import PublicRows, Targets, label_steps
from labeldp_trainer.representations import represented
from labeldp_verify.opening import open_artifact
from scipy.stats import binom

from trainer.tests.command import labeldp
from trainer.tests.noise import no_noise
from trainer.tests.trainer_helpers import CATEGORIES, INTEGERS, write_artifact

HOSTILE = "\x1b[31mred\nx: verified"
TABLE = f"""
version: 1
name: small
data: {{kind: table, train: t.parquet, label: LABEL, numeric: [a, b, same], categorical: [c]}}
representation: {{kind: pca}}
method: METHOD
loss: {"{loss}"}
"""
NUMBERS = TABLE.replace("LABEL", "y").replace("{loss}", "squared")
COLOURS = TABLE.replace("LABEL, ", "colour, classes: [red, green, blue], ").replace(
    "{loss}", "cross_entropy"
)
RELEASE = "{kind: one_release, epsilon: 1, delta: 1e-6, label_range: [0, 9]}"
CONFIGS = {
    "release": NUMBERS.replace("METHOD", RELEASE),
    "classes": COLOURS.replace("METHOD", "{kind: one_release, epsilon: 1, delta: 1e-6}"),
    "users": NUMBERS.replace(
        "METHOD", RELEASE.replace("}", ", user_column: user, max_examples_per_user: 2}")
    ),
    "private": NUMBERS.replace("METHOD", "{kind: privatized, artifact: numbers.onnx}"),
    "sets": COLOURS.replace("METHOD", "{kind: privatized, artifact: colours.onnx}"),
}
KEYS = [(None, None), ("a", None), ("b", None), ("c", HOSTILE), ("c", "w"), ("c", "(missing)")]


def table(rows=1500):
    """y and colour depend on a, b and c; a is far from 0, and b has another unit."""
    random = np.random.default_rng(5)
    a, b = random.normal(100, 3, rows), random.gamma(2, 50, rows)
    c = random.choice(["u", HOSTILE, "w", None], rows, p=[0.4, 0.3, 0.2, 0.1])
    y = 4 + (a - 100) / 3 + (b - 100) / 90 + 2 * (c == "w") + random.normal(0, 1, rows)
    y = np.clip(np.rint(y), 0, 9).astype(np.int64)
    colour = np.where(y < 4, "red", np.where(y < 6, "green", "blue"))
    user, same = np.arange(rows) // 3, np.ones(rows)
    columns = {"a": a, "b": b, "same": same, "c": pa.array(c, pa.string()), "user": user}
    return pa.table({**columns, "y": y, "colour": colour})


def design(found, rows=slice(None)):
    """[n, 6] in the order of KEYS, without the trainer."""
    texts = np.array(["missing" if c is None else c for c in found["c"].to_pylist()])
    columns = [found["a"].to_numpy(), found["b"].to_numpy()]
    columns += [(texts == name).astype(float) for name in (HOSTILE, "w", "missing")]
    return np.column_stack([np.ones(len(texts)), *columns])[rows]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A table, artifacts, and a run of each config."""
    directory = tmp_path_factory.mktemp("place")
    pq.write_table(table(), directory / "t.parquet")
    write_artifact(directory)
    write_artifact(directory, CATEGORIES)
    for name, text in CONFIGS.items():
        train(parse_config(text, "t.yaml", directory), directory / name)
    return directory


def least_squares(x, y, weights=None):
    root = 1.0 if weights is None else np.sqrt(weights)[:, None]
    return np.linalg.lstsq(x * root, y * root, rcond=None)[0]


def setting(directory, name):
    """Config, data and columns of a run."""
    loaded = parse_config(CONFIGS[name], "t.yaml", directory)
    dataset = load_data(loaded, (loaded.config.data.label,), ())
    return loaded, dataset, OriginalColumns(dataset.encoder, dataset.train)


def ordered(columns):
    """The places of KEYS among the columns."""
    names = [(c.feature, c.category) for c in columns.columns]
    assert len(names) == len(KEYS) and {c.reference for c in columns.columns} == {None, "u"}
    assert [c.feature for c in columns.constant] == ["same"]
    return [names.index(key) for key in KEYS]


class Draws:
    """Fresh noise for the labels of the table, again and again."""

    def __init__(self, directory, name):
        self.loaded, self.dataset, self.columns = setting(directory, name)
        self.order, self.classes = ordered(self.columns), self.loaded.config.data.class_list
        self.classes = self.classes and tuple(self.classes)
        labels = self.dataset.train.columns[self.loaded.config.data.label]
        if self.classes is None:
            self.targets = np.asarray(labels, float)[:, None]
            self.steps = label_steps(labels, 0, 9, None)
        else:
            self.steps = class_labels(labels, self.classes, None)
            self.targets = np.eye(3)[self.steps]
        self.design, self.labels, self.directory = design(table()), labels, directory

    def released(self, count):
        """True coefficients, and estimates of releases."""
        parts, representation = represented(self.loaded, self.dataset, self.directory / "no run")
        vectors = np.asarray(parts.train.features)
        rows = PublicRows(
            count=len(vectors),
            vectors=vectors,
            spectrum=representation.spectrum,
        )
        plan = planned(rows, self.loaded.config.method, self.classes, "y")
        total = rows.sums(
            plan.weights, Targets(self.classes and len(self.classes), self.steps)
        ).labels
        found = ReleasedColumns.of(self.columns, plan.weights, rows)
        weights = plan.weights.factors(rows).astype(float)
        assert weights.min() < 0.9 * weights.max()
        each = [
            found.estimates(dataclasses.replace(plan, statistic=noisy(total, plan.facts.sigma)))
            for _ in range(count)
        ]
        return least_squares(self.design, self.targets, weights), each

    def private(self, count, artifact, *, population=False):
        """The same of private labels; for a population, of rows that are drawn from the table."""
        decoded, randomizer = open_artifact(artifact), Randomizer.load(artifact)
        classes, each = None if self.classes is None else [0, 1, 2], []
        random = np.random.default_rng(1)
        for _ in range(count):
            columns, labels = self.columns, np.asarray(self.labels)
            if population:
                rows = random.integers(0, len(labels), len(labels))
                part = self.dataset.train.take(rows)
                columns, labels = OriginalColumns(self.dataset.encoder, part), labels[rows]
                assert columns.columns == self.columns.columns
            parts, _ = rows_by_table(decoded, None, np.asarray(randomizer(labels)))
            each.append(of_private(columns, private_targets(parts, classes), None))
        return least_squares(self.design, self.targets), each

    def hits(self, true, each, *, population=False):
        """[draws, 6, k] whether the interval of each coefficient covers."""
        values = np.array([found.values[self.order] for found in each])
        margins = [found.population if population else found.rows for found in each]
        return np.abs(values - true) <= np.array(margins)[:, self.order]


def require_coverage(hits, *, most=True):
    """Fails by chance less than once in 10^8 runs if coverage is 94% to 96% (or above)."""
    draws, ends = len(hits), 1e-8 / 2 / hits[0].size
    counts = hits.sum(axis=0)
    assert counts.min() > binom.ppf(ends, draws, 0.94)
    assert not most or counts.max() < binom.isf(ends, draws, 0.96)


@pytest.mark.parametrize("name", ["classes", pytest.param("release", marks=pytest.mark.slow)])
def test_intervals_of_a_release_cover(place, name):
    draws = Draws(place, name)
    require_coverage(draws.hits(*draws.released(800)))


@pytest.mark.parametrize("population", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "artifact"), [("private", "numbers"), ("sets", "colours")])
def test_intervals_of_private_labels_cover(place, name, artifact, population):
    draws = Draws(place, name)
    found = draws.private(200, place / f"{artifact}.onnx", population=population)
    require_coverage(draws.hits(*found, population=population))


@pytest.mark.parametrize("name", ["release", "users"])
def test_without_noise_a_run_has_the_weighted_solution(place, tmp_path, name):
    loaded = parse_config(CONFIGS[name], "t.yaml", place)
    with no_noise():
        train(loaded, tmp_path / name)
    kept, users = read_coefficients(tmp_path / name).kept, np.arange(1500) // 3
    vectors = np.load(tmp_path / name / "representation" / "train.npy")
    rows, owners = np.arange(1500), None
    if name == "users":  # three rows each, of which one is left out
        places = row_places("t.parquet", np.arange(1500))
        seed = loaded.config.training.seed
        rows = np.sort(rows_of_users(users, 2, seed, places).rows.ravel())
        owners = users[rows]
    public = PublicRows(count=len(rows), vectors=vectors[rows], spectrum=None, owners=owners)
    weights = read_release(tmp_path / name / "release.npz").weights.factors(public)
    y = table()["y"].to_numpy().astype(float)[rows, None]
    true = least_squares(design(table(), rows), y, weights.astype(float))[:, 0]
    found = {(c.feature, c.category): c for c in kept.coefficients}
    assert found.pop(("same", None)).why_not == "constant"
    assert len(found) == len(KEYS) and kept.rows == len(rows)
    estimates = [found[key].estimates[0] for key in KEYS]
    np.testing.assert_allclose(estimates, true, rtol=2e-3, atol=1e-5)


def test_private_labels_without_noise_are_ordinary_least_squares(place):
    _, _, columns = setting(place, "private")
    random, n = np.random.default_rng(2), 1500
    values, x = random.normal(size=(n, 2)), design(table())
    nothing = np.zeros_like(values)
    exact = PrivateTargets(np.arange(n), values, nothing + 0.5, nothing, nothing + 9, nothing)
    true = least_squares(x, values)
    inverse = np.linalg.inv(x.T @ x)
    influence = x @ inverse
    left = 1 - np.einsum("ij,ij->i", influence, x)[:, None]
    residuals = (values - x @ true) / left
    for owners in (None, random.permutation(n) % 500):
        found, order = of_private(columns, exact, owners), ordered(columns)
        np.testing.assert_allclose(found.values[order], true, atol=1e-7)
        noise = 0.5 * (influence**2).sum(axis=0)
        np.testing.assert_allclose(found.rows[order, 0], Z * np.sqrt(noise), rtol=1e-6)
        scores = influence[:, :, None] * residuals[:, None, :]
        if owners is not None:
            sums = np.zeros((500, 6, 2))
            np.add.at(sums, owners, scores)
            scores = sums
        scatter = np.maximum((scores**2).sum(axis=0), noise[:, None])
        jumps = np.sqrt((scores**4).sum(axis=0) / scatter)
        margins = Z * np.sqrt(scatter) + (Z**2 - 1) / 6 * jumps
        np.testing.assert_allclose(found.population[order], margins, rtol=1e-6)
    rare = of_private(columns, exact._replace(fourth=nothing + 30.0), None)
    jumps = np.sqrt(30 * (influence**4).sum(axis=0) / noise)
    margins = Z * np.sqrt(noise) + (Z**2 - 1) / 6 * jumps
    np.testing.assert_allclose(rare.rows[order, 0], margins, rtol=1e-6)


def test_what_was_not_released_is_said_and_a_goal_avoids_it(place, tmp_path):
    random = np.random.default_rng(0)
    features = random.normal(size=(400, 12))
    features[:, 1:] = features[:, :1] + 1e-2 * features[:, 1:]
    arrays = {"x": features.astype(np.float32), "y": random.integers(0, 9, 400)}
    np.savez(tmp_path / "t.npz", **arrays)
    config = (
        "version: 1\nname: n\ndata: {kind: npz, train: t.npz}\nloss: squared\n"
        "method: {kind: one_release, epsilon: 0.1, delta: 1e-6, label_range: [0, 9]}\n"
    )
    for name in ("predictions", "coefficients"):
        text = config.replace("0.1", f"0.1, goal: {name}")
        train(parse_config(text, "t.yaml", tmp_path), tmp_path / name)
        said = labeldp("runs", "--coefficients", tmp_path / name)
        assert ("not released" in said) == (name == "predictions")
        assert "column 11" in said and (name == "predictions") == ("–" in said)


@pytest.mark.parametrize("name", ["release", "sets"])
def test_the_command_says_what_is_estimated(place, name):
    said = labeldp("runs", place / name, "--coefficients").splitlines()
    assert all(line.isprintable() for line in said)
    how = "least squares" if name in ("private", "sets") else "weighted least squares"
    label = "colour" if name in ("classes", "sets") else "y"
    assert said[0].startswith(f"{label}: {how} coefficients")
    assert said[0].endswith("rows, without shrinkage")
    assert "approximate 95% intervals" in "".join(said)
    assert said[-1].startswith("post-processing of what ε = ") and "spends nothing" in said[-1]
    found = json.loads(labeldp("runs", place / name, "--coefficients", "--json"))
    outputs = 3 if label == "colour" else 1
    assert len(found["coefficients"]) == 7 * outputs
    assert found["estimand"] in said[0] and found["confidence"] == 0.95
    for own in found["coefficients"]:
        assert (own["feature"] == "same") == (own["why_not"] == "constant")
        if own["why_not"] is None:
            assert own["low"] < own["estimate"] < own["high"]
    if label == "colour":  # probabilities of all classes add up to 1
        sums = np.array([own["estimate"] for own in found["coefficients"][:-3]]).reshape(6, 3)
        np.testing.assert_allclose(sums.sum(axis=1), np.eye(6)[0], atol=1e-6)


def test_a_population_needs_private_labels(place):
    rows, population = (
        json.loads(labeldp("runs", place / "private", "--coefficients", "--json", *more))
        for more in ([], ["--target", "population"])
    )
    pairs = zip(rows["coefficients"][:-1], population["coefficients"][:-1], strict=True)
    lower = [(other["low"], one["low"]) for one, other in pairs]
    assert all(a <= b for a, b in lower) and any(a < b for a, b in lower)
    said = labeldp("runs", place / "release", "--coefficients", "--target", "population", code=2)
    assert "has no residuals" in said
    said = labeldp("runs", place / "release", "--coefficients", "--overwrite", code=2)
    assert "--overwrite is for a comparison" in said


def test_private_labels_that_are_biased_or_unknown_have_no_coefficients(place, tmp_path):
    bins = INTEGERS.replace("optimal_unbiased", "rr_on_bins").replace("3.0", "0.5")
    write_artifact(tmp_path, bins)
    artifact = tmp_path / "numbers.onnx"
    private = np.asarray(Randomizer.load(artifact)(table()["y"].to_numpy()))
    with pytest.raises(BiasedError, match="are biased"):
        private_targets(rows_by_table(open_artifact(artifact), None, private)[0], None)
    pq.write_table(table(), tmp_path / "t.parquet")
    train(parse_config(CONFIGS["private"], "t.yaml", tmp_path), tmp_path / "biased")
    assert "are biased" in labeldp("runs", "--coefficients", tmp_path / "biased", code=2)


@pytest.mark.parametrize("scale", [1e-160, 1e148])
def test_units_that_no_number_can_hold_lose_only_their_own_coefficient(place, tmp_path, scale):
    """After a release is drawn, nothing may fail."""
    found = table()
    pq.write_table(
        found.append_column("z", pa.array(np.arange(1500) * scale)), tmp_path / "t.parquet"
    )
    write_artifact(tmp_path)
    for name in ("release", "private"):
        text = CONFIGS[name].replace("[a, b,", "[a, b, z,")
        train(parse_config(text, "t.yaml", tmp_path), tmp_path / name)
        kept = read_coefficients(tmp_path / name).kept
        why = {(c.feature, c.category): c.why_not for c in kept.coefficients}
        assert why["a", None] is None and why["c", "w"] is None
        assert why["z", None] in (None, "constant", "not finite")
