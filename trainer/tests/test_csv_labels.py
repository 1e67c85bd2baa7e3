"""CSV tables: no type is inferred, so that no label decides how another is read."""

import csv
import io
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_runtime import Key, Randomizer
from labeldp_trainer import DataError, parse_config
from labeldp_trainer.data import Task, load_data
from labeldp_trainer.data.labels import Cells, places
from labeldp_trainer.data.table import feature_numbers
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods import open_method, privatized
from labeldp_trainer.methods.method import Setting
from labeldp_trainer.models import build_model

from labeldp_compile.cli import main
from trainer.tests.trainer_helpers import (
    CATEGORIES,
    CLASSES,
    CONFIG,
    INTEGERS,
    table,
    write_artifact,
)

ROWS = 80
NUMBERS = ["7", " 7.0", "true", "1e0", "007", "-3", "2.5", "1" + "0" * 400 + "e-400"]
NO_NUMBERS = ["", " ", "nan", "NA", "null", "1e400", "-inf", "0x10", "1_000", "3,5", "2024-01-01"]
NO_NUMBERS += ['a "word"', "two\nlines", "\0", "é", b"\xff\xfe", b"1\xff", "x" * 100_000]
ODD = NUMBERS + NO_NUMBERS
TRAIN = CONFIG.replace(".parquet", ".csv").replace("  test: test.csv\n", "")
COLOURS = CLASSES.replace(".parquet", ".csv").replace("  test: test.csv\n", "")


def columns(rows=ROWS):
    data = {name: [str(v) for v in values] for name, values in table(rows, 0).to_pydict().items()}
    return data | {"id": [f"{i:03d}" for i in range(rows)]}


def write(directory, data, name="train.csv"):
    """Cells are text, or bytes that need not be UTF-8."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(data)
    odd = {f"odd cell {i}": cell for i, cell in enumerate(_bytes_of(data))}
    names = {id(cell): name for name, cell in odd.items()}
    for row in zip(*data.values(), strict=True):
        writer.writerow([names.get(id(cell), cell) for cell in row])
    text = stream.getvalue().encode()
    for place, cell in odd.items():
        text = text.replace(place.encode(), cell)
    (directory / name).write_bytes(text)


def _bytes_of(data):
    return [cell for cells in data.values() for cell in cells if isinstance(cell, bytes)]


def part(directory, data, column, text=TRAIN):
    write(directory, data)
    loaded = parse_config(text, "t.yaml", directory)
    return load_data(loaded, (column, "id"), (column,)).train


def with_odd(column, row, cell):
    data = columns()
    data[column][row] = cell
    return data


def read(task, found, column):
    try:
        return task.targets(found.columns[column], "t.csv", column).tolist(), None
    except DataError as error:
        return None, str(error)


@pytest.mark.parametrize("row", [0, 41, ROWS - 1])
def test_one_label_changes_no_other(tmp_path, row):
    others = np.arange(ROWS) != row
    y, colour = part(tmp_path, columns(), "y"), part(tmp_path, columns(), "colour")
    numbers, names = y.columns["y"].numbers(), places(colour.columns["colour"], ("red", "blue"))
    assert np.isfinite(numbers).all() and set(names.tolist()) == {-1, 0, 1}
    for cell in ODD:
        found = part(tmp_path, with_odd("y", row, cell), "y")
        again = found.columns["y"].numbers()
        np.testing.assert_array_equal(again[others], numbers[others])
        for leaf in ("numeric", "categorical"):
            np.testing.assert_array_equal(found.features[leaf], y.features[leaf])
        found = part(tmp_path, with_odd("colour", row, cell), "colour")
        again = places(found.columns["colour"], ("red", "blue"))
        np.testing.assert_array_equal(again[others], names[others])


def test_a_column_is_accepted_or_refused_in_one_sentence(tmp_path):
    regression, classes, said = Task(), Task(("red", "green", "blue")), set()
    for cell in ODD:
        found = read(regression, part(tmp_path, with_odd("y", 41, cell), "y"), "y")
        if cell in NUMBERS:
            assert found[0] is not None
        else:
            assert found[1] == "t.csv: 'y' has labels that are missing, NaN or infinite"
        _, refused = read(classes, part(tmp_path, with_odd("colour", 41, cell), "colour"), "colour")
        assert refused.startswith("t.csv: 'colour': some labels are none of the 3 classes, or")
        said.add(refused)
    assert len(said) == 1


def cells(*values):
    return Cells(pa.array(values, pa.large_string()))


def test_classes_are_the_text_or_the_number():
    assert places(cells("3", "3.0", " 3 ", "03", "4"), (2, 3)).tolist() == [1, 1, 1, 1, -1]
    assert places(cells("3", "3.0", "03"), ("3", 3)).tolist() == [0, 1, 1]  # text first
    assert places(cells("a", "A", "a "), ("a",)).tolist() == [0, -1, -1]
    words = cells("true", "0.1", "1e-1", "inf", "nan")
    assert places(words, (1, 0.1)).tolist() == [0, 1, 1, -1, -1]
    large = 2**60 + 1  # no float64
    assert places(cells(str(large), f"{large - 1}"), (large,)).tolist() == [0, -1]
    assert places(cells("1e999999999999", "-1e-999999999999"), (0, 1)).tolist() == [-1, -1]
    assert places(cells("1", "0", "2"), (0, 1)).tolist() == [1, 0, -1]


def test_features_are_read_as_they_are_declared(tmp_path):
    data = columns(4) | {"a": ["1", "+2.50", " 3 ", "4e0"], "b": ["true", "false", "TRUE", "0"]}
    data["c"] = ["01", "1", "", "NA"]
    found = part(tmp_path, data, "y").features
    a = np.array([1, 2.5, 3, 4])
    np.testing.assert_allclose(found["numeric"][:, 0], (a - a.mean()) / a.std(), rtol=1e-6)
    np.testing.assert_array_equal(np.sign(found["numeric"][:, 1]), [1, -1, 1, -1])
    assert found["categorical"][:, 0].tolist() == [1, 2, 0, 3]  # an empty cell is missing
    for cell in ("", "x", "nan", "1,5"):
        with pytest.raises(DataError, match=r"1 of 4 rows have no finite number in the feature"):
            part(tmp_path, data | {"a": ["1", cell, "2", "3"]}, "y")


@pytest.mark.slow
def test_arrow_reads_no_number_otherwise_than_the_grammar():
    """So that it is no matter which of them reads a block of features."""
    generator = random.Random(1)
    spellings = ["inf", "-Infinity", "nan", "nan(1)", "1.", ".5", "+1", "0x1p3", "1d5", "-0"]
    spellings += ["1e400", "1e-400", "4.9e-324", "0" * 400 + "1", "1" * 400, "0." + "3" * 700, ""]
    pieces = ["0", "1", "7", "9", ".", "e", "E", "-", "+", "_", " ", "12345678901234567890", "x"]
    lengths = [generator.randint(1, 7) for _ in range(3000)]
    spellings += ["".join(generator.choices(pieces, k=length)) for length in lengths]
    quick = 0
    for spelling in spellings:
        values = pa.array([spelling], pa.string())
        expected, found = Cells(values).numbers()[0], feature_numbers(Cells(values), "x", Path())[0]
        assert found == expected or not (np.isfinite(found) or np.isfinite(expected)), spelling
        quick += np.isfinite(found)
    assert quick > 300


def built(directory, text):
    """The method of a config, before its first step."""
    loaded = parse_config(text, "t.yaml", directory)
    builder = open_method(loaded)
    label = loaded.config.data.label
    dataset = load_data(loaded, builder.columns, (label,))
    loss = Loss(loaded.config.loss, Task(builder.classes if "entropy" in text else None))
    model = build_model(loaded, dataset.shape, loss.task.outputs)
    return builder.build(Setting(loaded, dataset, model, loss, None))


@pytest.mark.parametrize(
    ("spec", "base", "column"), [(INTEGERS, TRAIN, "y"), (CATEGORIES, COLOURS, "colour")]
)
def test_a_run_draws_what_randomize_draws(tmp_path, monkeypatch, spec, base, column):
    """Labels of a CSV file are read alike, and one odd label changes no other's answer."""
    artifact = write_artifact(tmp_path, spec)
    name = artifact.certificate.name
    Key.create(tmp_path / "key.json")
    text = base.replace("{kind: none}", f"{{kind: privatized, artifact: {name}.onnx}}")

    def keyed(path):  # so that both draw alike
        key, ids = Key.load(tmp_path / "key.json"), columns()["id"]
        randomizer = Randomizer.load(path, key=key, context=column)
        return lambda labels, columns: randomizer(labels, ids=ids)

    monkeypatch.setattr(privatized, "load_randomizer", keyed)
    answers = []
    for cell in ("nan", b"1\xff", "7", "red", 'a "word"'):
        write(tmp_path, with_odd(column, 41, cell))
        private = built(tmp_path, text).keep["private_labels"]
        command = ["randomize", tmp_path / f"{name}.onnx", tmp_path / "train.csv", "-o"]
        command += [tmp_path / "private.parquet", "--overwrite", "--key", tmp_path / "key.json"]
        result = CliRunner().invoke(main, [str(a) for a in (*command, "--id-column", "id")])
        assert result.exit_code == 0, result.output
        expected = pq.read_table(tmp_path / "private.parquet")[column].to_numpy()
        np.testing.assert_array_equal(private, expected)
        answers.append(np.delete(private, 41))
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])
