"""From a table to a model with nothing but defaults: it learns more than a constant knows.

``benchmarks/defaults.py`` does the same on five real tables. Noise and keys are fixed here.
"""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from click.testing import CliRunner
from labeldp_runtime import Key, Randomizer
from labeldp_verify import check_file

from labeldp_compile.cli import main
from tests.fixtures.learners import Ridge, features_of

SPECS_DATA = Path(__file__).parents[2] / "specs" / "data"
KEY = Key(bytes(range(32)))


def labeldp(*arguments):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == 0, result.stderr
    return result


def private_labels(folder, table, column, *told):
    """Through ``init`` and ``compile``, at ε = 1; the file, and what it makes of the column."""
    pq.write_table(table, folder / "train.parquet")
    spec = folder / "spec.yaml"
    labeldp("init", folder / "train.parquet", "--column", column, "-o", spec, *told, "--yes")
    labeldp("compile", spec, "-o", folder / "build")
    (file,) = (folder / "build").glob("*.onnx")
    randomizer = Randomizer.load(file, key=KEY, context=column)
    labels = table[column].to_numpy()
    return check_file(file).artifact.only, randomizer(labels, ids=np.arange(len(labels)))


def test_numbers(tmp_path):
    table = pq.read_table(SPECS_DATA / "randhie.parquet")
    order = np.random.default_rng(0).permutation(table.num_rows)
    train, test = order[:16_000], order[16_000:]
    _, private = private_labels(tmp_path, table.take(train), "mdvis", "--range", "0..20")
    features, truth = features_of(table, ("mdvis",)), table["mdvis"].to_numpy()[test]
    predicted = Ridge(features[train], features[test]).predict(np.asarray(private))
    model, constant = (np.mean((p - truth) ** 2) for p in (predicted, np.mean(private)))
    assert model < 0.97 * constant
