"""Missing numbers and dates reach a model that takes them, as NaN; others refuse them."""

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import DataError, parse_config
from labeldp_trainer.config.data import DATE_FEATURES
from labeldp_trainer.config.model import Config
from labeldp_trainer.data import Task, load_data
from labeldp_trainer.data.encoders import EncoderFile
from labeldp_trainer.losses import Loss
from labeldp_trainer.models.build import numbers as numbers_of
from labeldp_trainer.outcomes.predict import Trained
from labeldp_trainer.run import RunFolder

NAN, INF = float("nan"), float("inf")
TEXT = """
version: 1
name: gaps
data: {kind: table, train: train.SUFFIX, label: y, numeric: [n, m], categorical: [c], dates: [at]}
model: {kind: linear}
loss: squared
method: {kind: none}
optimizer: {learning_rate: 0.1}
training: {epochs: 1, batch_size: 2}
"""
CELLS = """y,n,m,c,at
1,0.5,,u,2024-02-29
2,,,,
3,NaN,,w,yesterday
4, ,,u,2024-03-01T12:00
5,2.5,,,20240302
"""
COLUMNS = {
    "y": [1, 2, 3, 4, 5],
    "n": [0.5, None, NAN, None, 2.5],
    "m": pa.nulls(5, pa.int32()),
    "c": ["u", None, "w", "u", None],
    "at": ["2024-02-29", None, "yesterday", "2024-03-01T12:00", "20240302"],
}


@pytest.fixture
def takes(monkeypatch):
    """Models take missing numbers."""
    monkeypatch.setattr(Config, "takes_missing_numbers", True)


def load(directory, suffix="parquet", columns=COLUMNS, cells=CELLS):
    pq.write_table(pa.table(columns), directory / "train.parquet")
    (directory / "train.csv").write_text(cells, encoding="utf-8")
    loaded = parse_config(TEXT.replace("SUFFIX", suffix), "t.yaml", directory)
    return loaded, load_data(loaded, ("y",), ())


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_statistics_are_of_the_numbers_that_are_there(takes, tmp_path, suffix):
    _, data = load(tmp_path, suffix)
    found = data.train.features["numeric"]
    assert found.dtype == np.float32 and found.shape == (5, 2 + len(DATE_FEATURES))
    np.testing.assert_array_equal(found[:, 0], np.array([-1, NAN, NAN, NAN, 1], np.float32))
    first, second = data.encoder.numeric[:2]
    assert (first.mean, first.deviation) == (1.5, 1.0)
    assert (second.mean, second.deviation) == (0.0, 1.0) and np.isnan(found[:, 1]).all()
    assert np.isnan(found[:, 2:]).all(axis=1).tolist() == [False, True, True, False, False]
    assert not np.isnan(found[[0, 3, 4], 2:]).any()
    days = data.encoder.numeric[2]
    assert days.mean == pytest.approx(np.mean([19782, 19783.5, 19784]))
    assert data.train.features["categorical"][:, 0].tolist() == [1, 0, 2, 1, 0]


def test_csv_and_parquet_agree(takes, tmp_path):
    digests = {load(tmp_path, suffix)[1].digest() for suffix in ("parquet", "csv")}
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    payloads = [0.5, odd[0], odd[1], None, 2.5]  # further NaNs than one
    digests.add(load(tmp_path, columns=COLUMNS | {"n": payloads})[1].digest())
    assert len(digests) == 1


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e400", "NA", "x", "3,5", "2024-01-01"])
def test_text_that_is_no_number_is_not_missing(takes, tmp_path, cell):
    cells = CELLS.replace("NaN", f'"{cell}"')
    with pytest.raises(DataError) as caught:
        load(tmp_path, "csv", cells=cells)
    assert "1 of 5 rows have no finite number in the feature 'n'" in str(caught.value)
    assert not (set(str(caught.value).split()) & {cell})


def test_an_infinite_number_is_refused(takes, tmp_path):
    with pytest.raises(DataError, match="1 of 5 rows have no finite number in the feature 'n'"):
        load(tmp_path, columns=COLUMNS | {"n": [0.5, None, -INF, 1.0, 2.5]})
    with pytest.raises(DataError, match="the numbers in 'n' are too large"):
        load(tmp_path, columns=COLUMNS | {"n": [1e308, None, -1e308, 1.0, 2.5]})


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_other_models_refuse_them(tmp_path, suffix):
    with pytest.raises(DataError, match="3 of 5 rows have no finite number in the feature 'n'"):
        load(tmp_path, suffix)
    filled = COLUMNS | {"n": [1.0] * 5, "m": [1.0] * 5}
    with pytest.raises(DataError, match="2 of 5 rows have no date in the feature 'at'"):
        load(tmp_path, columns=filled)


class _Takes:
    """A model in which a missing number counts as 7."""

    def apply(self, params, x, key=None):
        del params, key
        given = numbers_of(x)
        return jnp.where(jnp.isnan(given), jnp.float32(7), given).sum(axis=1, keepdims=True)


def stated_encoder(encoder):
    place = {"model_from": "config", "data_directory": "."}
    return EncoderFile(features=encoder, classes=None, **place).model_dump()


def trained(loaded, data):
    (loaded.directory / "privacy.json").write_text("{}", encoding="utf-8")
    run = RunFolder(loaded.directory)
    encoder = EncoderFile.model_validate(stated_encoder(data.encoder))
    return Trained(run, loaded, encoder.features, Loss("squared", Task()), None, _Takes(), {})
