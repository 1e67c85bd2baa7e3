"""Counts of rows that were observed for different times, and stand for several persons."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import parse_config, train
from labeldp_trainer.export.onnx.model import check, onnx_model
from labeldp_trainer.outcomes.predict import open_trained, predict_file
from labeldp_trainer.outcomes.verified_release import verify_release

from labeldp_compile.errors import InputError

CONFIG = """
version: 1
name: claims
data:
  kind: table
  train: train.parquet
  test: test.parquet
  label: claims
  numeric: [age]
  categorical: [region]
  exposure: years
  weights: persons
method: METHOD
"""
STAGED = CONFIG.replace("METHOD", "{epsilon: 8, delta: 1e-5, label_range: [0, 20]}")
NONE = CONFIG.replace("METHOD", "{kind: none}\nmodel: {kind: interactions}\nloss: poisson")
SCALE = 250.0
"""Exposure is in days here, and predictions are of a row, not of a unit."""


def claims(rows, seed):
    random = np.random.default_rng(seed)
    age, region = random.uniform(20, 80, rows), random.choice(["n", "s"], rows)
    years = SCALE * random.choice([0.1, 0.5, 1.0, 3.0], rows)
    rate = np.where(age < 35, 3.0, 1.0) * np.where(region == "n", 1.5, 0.5) / SCALE
    count = np.minimum(random.poisson(years * rate), 20)
    found = {"age": age, "region": region, "years": years, "claims": count, "rate": rate}
    return pa.table(found | {"persons": random.choice([1, 2, 7], rows)})


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims")
    pq.write_table(claims(6000, 0), folder / "train.parquet")
    pq.write_table(claims(2000, 1), folder / "test.parquet")
    return folder


@pytest.fixture(scope="module", params=[STAGED, NONE], ids=["staged", "none"])
def trained(request, place):
    loaded = parse_config(request.param, "claims.yaml", place)
    return train(loaded, place / ("a" if request.param == STAGED else "b")).folder


def predicted(folder, table, path):
    pq.write_table(table.drop_columns(["claims", "persons"]), path / "rows.parquet")
    predict_file(open_trained(folder), path / "rows.parquet", path / "found.parquet")
    found = pq.read_table(path / "found.parquet")["prediction"].to_numpy()
    (path / "found.parquet").unlink()
    return found


def test_expected_counts_are_proportional_to_exposure(trained, tmp_path):
    table = claims(500, 2)
    once = predicted(trained, table, tmp_path)
    places = table.schema.get_field_index("years")
    double = pa.array(2 * table["years"].to_numpy())
    twice = predicted(trained, table.set_column(places, "years", double), tmp_path)
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-3, atol=2e-6)
    rates = once / table["years"].to_numpy()
    true = table["rate"].to_numpy()
    assert np.square(rates - true).mean() < 0.2 * true.var()


def test_losses_are_weighted_means_of_counts_and_better_than_a_constant(trained, tmp_path):
    result, table = json.loads((trained / "result.json").read_text()), claims(2000, 1)
    assert result["test"]["loss"] < result["baselines"]["constant"]["loss"] - 0.1
    squares = np.square(predicted(trained, table, tmp_path) - table["claims"].to_numpy())
    weighted = np.average(squares, weights=table["persons"].to_numpy())
    assert result["test"]["mse"] == pytest.approx(weighted, rel=1e-3)


def test_the_exported_model_takes_exposure_and_no_weights(trained, tmp_path):
    run = open_trained(trained)
    pq.write_table(claims(100, 3).drop_columns(["claims", "persons"]), tmp_path / "new.parquet")
    assert check(run, onnx_model(run), tmp_path / "new.parquet").relative < 1e-4


@pytest.mark.parametrize("name", ["years", "persons"])
def test_a_release_is_verified_and_other_factors_are_refused(place, trained, tmp_path, name):
    if not (trained / "release.npz").exists():
        pytest.skip("no release")
    for file in ("train.parquet", "test.parquet"):
        (tmp_path / file).write_bytes((place / file).read_bytes())
    loaded = parse_config(STAGED, "claims.yaml", tmp_path)
    assert all(each.ok for each in verify_release(loaded, trained / "release.npz"))
    table = pq.read_table(tmp_path / "train.parquet")
    write_with(tmp_path, table, name, [0], 2 * table[name].to_numpy()[0])
    assert not all(each.ok for each in verify_release(loaded, trained / "release.npz"))
    with pytest.raises(InputError, match="the features are those of the release"):
        train(loaded, tmp_path / "again", release=trained / "release.npz")


def write_with(folder, table, name, places, value):
    """As training rows, with another number in some places of a column."""
    numbers = table[name].to_numpy().astype(float)
    numbers[places] = value
    at = table.schema.get_field_index(name)
    pq.write_table(table.set_column(at, name, pa.array(numbers)), folder / "train.parquet")


@pytest.mark.parametrize("name", ["years", "persons"])
@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), 1e-60])
def test_factors_that_are_no_positive_numbers_are_refused(tmp_path, name, bad):
    write_with(tmp_path, claims(50, 0), name, [3, 4], bad)
    text = STAGED.replace("  test: test.parquet\n", "")
    with pytest.raises(InputError, match=rf"2 of 50 rows have no positive number .*'{name}'"):
        train(parse_config(text, "claims.yaml", tmp_path), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("method:", "loss: squared\nmethod:", "is for counts; use loss: poisson"),
        ("exposure: years", "exposure: claims", "exposure: 'claims' is also the label, a feature"),
        ("exposure: years", "exposure: age", "exposure: 'age' is also the label, a feature"),
        ("weights: persons", "weights: claims", "weights: 'claims' is also the label, a feature"),
        ("weights: persons", "weights: years", "weights: 'years' is also .* copy the column"),
        ("{epsilon", "{kind: one_release, epsilon", "data.exposure: needs a model of interact"),
        ("  exposure: years\n", "", "data.weights: needs a model of interactions"),
    ],
)
def test_what_factors_are_not_for_is_refused(old, new, reason):
    text = STAGED.replace(old, new)
    if "data.weights" in reason:
        text = text.replace("{epsilon", "{kind: one_release, epsilon")
    if "one_release" in text:
        text = text.replace("method:", "loss: poisson\nmethod:")
    with pytest.raises(InputError, match=reason):
        parse_config(text)
