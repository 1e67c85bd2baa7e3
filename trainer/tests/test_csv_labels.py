"""CSV tables: no type is inferred, so that no label decides how another is read."""

import csv
import hashlib
import io
import random
from pathlib import Path

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_runtime import Key
from labeldp_trainer import DataError, InputError, parse_config
from labeldp_trainer.cli import train_command
from labeldp_trainer.data import Task, load_data
from labeldp_trainer.data.labels import Cells, places
from labeldp_trainer.data.table import feature_numbers
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods import open_method
from labeldp_trainer.methods.method import Setting
from labeldp_trainer.models import build_model

from labeldp_compile.cli import main
from labeldp_compile.tabular.provenance import KEY, Provenance, write_note
from trainer.tests.trainer_helpers import (
    CATEGORIES,
    CLASSES,
    CONFIG,
    INTEGERS,
    table,
    write_artifact,
    write_config,
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


def test_the_command_says_no_more_than_that(tmp_path):
    """Exit code and message are the same whatever the label is that is refused."""
    seen = set()
    model = "kind: mlp, hidden: [8], embedding: 2", "kind: linear"
    for number, cell in enumerate(["nan", b"\xff", "1e400"]):
        write(tmp_path, with_odd("y", 5 + number, cell))
        write_config(tmp_path, TRAIN.replace(*model))
        before = sorted(tmp_path.rglob("*"))
        result = CliRunner().invoke(
            train_command, [str(tmp_path / "train.yaml"), "-o", str(tmp_path / "run")]
        )
        assert sorted(tmp_path.rglob("*")) == before
        seen.add((result.exit_code, result.output))
    assert seen == {
        (2, f"labeldp: {tmp_path}/train.csv: 'y' has labels that are missing, NaN or infinite\n")
    }


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


KEYED = "{kind: privatized, artifact: %s.onnx, key: key.json, id_column: id}"


@pytest.mark.parametrize(
    ("spec", "base", "column"), [(INTEGERS, TRAIN, "y"), (CATEGORIES, COLOURS, "colour")]
)
def test_a_keyed_run_draws_what_randomize_draws(tmp_path, spec, base, column):
    """Labels and ids of a CSV file are read alike, and one odd label changes no other's answer."""
    artifact = write_artifact(tmp_path, spec)
    name = artifact.certificate.name
    Key.create(tmp_path / "key.json")
    text = base.replace("{kind: none}", KEYED % name)
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


def test_private_labels_of_a_csv_file_are_outputs(tmp_path):
    write_artifact(tmp_path, CATEGORIES)
    method = "{kind: privatized, artifact: colours.onnx, unnoted: true, private_column: colour%s}"
    text = COLOURS.replace("{kind: none}", method)
    write(tmp_path, columns())
    plain = np.asarray(built(tmp_path, text % "").arrays[1])
    _, codes, numbers = built(tmp_path, text % ", debiased: true").arrays
    soft = np.asarray(numbers)[np.asarray(codes)]
    np.testing.assert_array_equal(soft.argmax(axis=1), plain)
    write(tmp_path, with_odd("colour", 3, "orange"))
    for debiased in ("", ", debiased: true"):
        doubts = built(tmp_path, text % debiased).statement.details["doubts"]
        assert doubts[1] == "can hardly be private labels of colours"


def test_users_and_ids_of_a_csv_file(tmp_path):
    """An id is its text; a user who is a number is one user, however it is written."""
    write_artifact(tmp_path)
    Key.create(tmp_path / "key.json")
    users = ", user_column: user, max_examples_per_user: 1}"
    text = TRAIN.replace("{kind: none}", KEYED.replace("}", users) % "numbers")
    data = columns() | {"user": ["1", "2", "01", "1.0"] * (ROWS // 4)}
    text = text.replace("batch_size: 50", "batch_size: 2")
    write(tmp_path, data)
    assert built(tmp_path, text).statement.details["labels"] == 2
    for name, message in (("user", "names no person"), ("id", "null")):
        write(tmp_path, data | {name: ["", *data[name][1:]]})
        with pytest.raises(DataError, match=message):
            built(tmp_path, text.replace(users, "}") if name == "id" else text)


def test_clusters_take_cells_and_declared_numbers(tmp_path):
    """An odd label of a CSV file becomes a label of the domain; declared text is refused."""
    method = (
        "{kind: clusters, k: 1, epsilon_prior: 30, epsilon: 30, domain: {kind: integer, min: 0, "
        "max: 9}, mechanism: {kind: randomized_response}}"
    )
    text = TRAIN.replace("{kind: none}", method)
    expected = [int(y) for y in columns()["y"]]
    for row, (cell, label) in enumerate([("x", 0), ("", 0), ("7.0", 7), ("1e9", 9), (b"\xff", 0)]):
        write(tmp_path, with_odd("y", row, cell))
        kept = built(tmp_path, text).keep  # at ε = 30 it is the label itself, but for 10^-12
        expected_here = [label if i == row else y for i, y in enumerate(expected)]
        assert kept["private_labels"].tolist() == expected_here
    names = pa.array(columns()["y"])
    pq.write_table(table(ROWS, 0).set_column(3, "y", names), tmp_path / "train.parquet")
    with pytest.raises(DataError, match="declared to hold text: numbers are needed"):
        built(tmp_path, text.replace("train.csv", "train.parquet"))


def test_folders_and_other_delimiters_give_the_same_arrays(tmp_path):
    write(tmp_path, columns())
    expected = built(tmp_path, TRAIN).arrays
    lines = (tmp_path / "train.csv").read_bytes().splitlines(keepends=True)
    (tmp_path / "parts").mkdir()
    for i in range(2):
        rows = lines[1 + i * 40 : 41 + i * 40]
        (tmp_path / "parts" / f"part-{i}.csv").write_bytes(b"".join([lines[0], *rows]))
    (tmp_path / "parts" / "_SUCCESS").touch()
    text = (tmp_path / "train.csv").read_text().replace(",", ";")
    (tmp_path / "semi.csv").write_text(text)
    (tmp_path / "comma.csv").write_text(text.replace(".", ","))
    semi = '\n  delimiter: ";"'
    for data in ("parts", "semi.csv" + semi, "comma.csv" + semi + "\n  decimal: ','"):
        found = built(tmp_path, TRAIN.replace("train: train.csv", f"train: {data}")).arrays
        jax.tree.map(np.testing.assert_array_equal, found, expected)
    with pytest.raises(DataError, match="--delimiter ';'"):
        built(tmp_path, TRAIN.replace("train: train.csv", "train: semi.csv"))


def test_a_note_of_another_artifact_is_refused(tmp_path):
    write_artifact(tmp_path, CATEGORIES)
    text = CLASSES.replace("  test: test.csv\n", "").replace("  test: test.parquet\n", "")
    private = text.replace(
        "{kind: none}",
        "{kind: privatized, artifact: colours.onnx, unnoted: true, private_column: colour}",
    )
    here = text.replace(
        "{kind: none}", "{kind: privatized, artifact: colours.onnx, column: colour}"
    )
    own = hashlib.sha256((tmp_path / "colours.onnx").read_bytes()).hexdigest()
    for sha256, said in ((own, None), ("0" * 64, "another artifact made the private labels")):
        note = write_note({"colour": Provenance(sha256, 1.0)})
        pq.write_table(
            table(ROWS, 0).replace_schema_metadata({KEY: note}), tmp_path / "train.parquet"
        )
        if said is None:
            built(tmp_path, private)
        else:
            with pytest.raises(InputError, match=said):
                built(tmp_path, private)
        with pytest.raises(InputError, match="already holds private labels"):
            built(tmp_path, here)
