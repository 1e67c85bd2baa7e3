"""Whole runs on a small table: every method, what they leave behind, and what they refuse."""

import json

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_trainer import RunFolderError, load_config, load_params, parse_config, train
from labeldp_trainer.cli import train_command

from labeldp_compile.cli import main
from trainer.tests.command import refused
from trainer.tests.trainer_helpers import (
    CLASSES,
    CONFIG,
    INTEGERS,
    table,
    write_artifact,
    write_config,
    write_tables,
)


def run(directory, text=CONFIG, output="run", **options):
    return train(parse_config(text, "t.yaml", directory), directory / output, **options)


def with_method(method, text=CONFIG):
    return text.replace("{kind: none}", "{kind: %s}" % method)  # noqa: UP031  # braces


def kept(directory, output="run"):
    with np.load(directory / output / "kept.npz") as archive:
        return archive["private_labels"]


def test_the_run_folder(tmp_path):
    write_tables(tmp_path)
    result = run(tmp_path)
    folder = tmp_path / "run"
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "checkpoints", "config.yaml", "encoder.json", "kept.npz", "learning_curve.png",
        "metrics.jsonl", "params.npz", "privacy.json", "privacy.txt", "result.json", "run.json",
    }  # fmt: skip
    assert (folder / "config.yaml").read_text() == CONFIG
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3]
    assert lines[-1]["test_mse"] < 0.5 * lines[0]["test_mse"]
    assert json.loads((folder / "result.json").read_text())["test_mse"] == lines[-1]["test_mse"]
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    loaded = load_params(folder / "params.npz", jax.jit(result.model.init)(jax.random.key(9)))
    jax.tree.map(np.testing.assert_array_equal, loaded, result.params)
    assert json.loads((folder / "privacy.json").read_text())["epsilon"] is None
    assert (folder / "privacy.txt").read_text().startswith("Promise\n  There is no privacy")


def test_same_seed_same_parameters_other_seed_others(tmp_path):
    write_tables(tmp_path)
    a, b = run(tmp_path, output="a").params, run(tmp_path, output="b").params
    jax.tree.map(np.testing.assert_array_equal, a, b)
    c = run(tmp_path, CONFIG.replace("batch_size: 50", "batch_size: 50, seed: 1"), "c").params
    assert not np.array_equal(a["layers"][0]["w"], c["layers"][0]["w"])


def test_an_artifact_randomizes_once(tmp_path):
    write_tables(tmp_path)
    artifact = write_artifact(tmp_path)
    result = run(tmp_path, with_method("privatized, artifact: numbers.onnx"))
    private = kept(tmp_path)
    assert set(np.unique(private)) <= set(artifact.randomizer.values)
    assert abs(private.mean() - table(600, 0)["y"].to_numpy().mean()) < 1.0
    statement = json.loads((tmp_path / "run" / "privacy.json").read_text())
    assert statement["epsilon"] == 3.0
    assert statement["delta"] == 0.0
    assert statement["details"]["randomized_here"] is True
    assert statement["details"]["artifact_verified"] is True
    assert statement["statement"] == result.statement.paragraph()
    for words in ("600 labels", "optimal_unbiased", "Must stay secret: the true labels"):
        assert words in statement["statement"]
    run(tmp_path, with_method("privatized, artifact: numbers.onnx"), resume=True)
    np.testing.assert_array_equal(kept(tmp_path), private)
    run(tmp_path, with_method("privatized, artifact: numbers.onnx"), "again")
    assert not np.array_equal(kept(tmp_path, "again"), private)


def test_a_run_is_not_resumed_with_another_artifact(tmp_path):
    write_tables(tmp_path)
    write_artifact(tmp_path)
    text = with_method("privatized, artifact: numbers.onnx")
    run(tmp_path, text)
    write_artifact(tmp_path / "new", INTEGERS.replace("epsilon: 3.0", "epsilon: 1.0"))
    (tmp_path / "numbers.onnx").write_bytes((tmp_path / "new" / "numbers.onnx").read_bytes())
    with pytest.raises(RunFolderError, match="is not the file that the run was started with"):
        run(tmp_path, text, resume=True)


def test_an_artifact_is_verified(tmp_path):
    write_tables(tmp_path)
    path = tmp_path / "numbers.onnx"
    write_artifact(tmp_path)
    text = with_method("privatized, artifact: numbers.onnx")
    path.write_bytes(path.read_bytes()[:-1])
    assert "numbers.onnx" in refused(tmp_path, text)
    write_artifact(tmp_path / "new")
    path.write_bytes((tmp_path / "new" / "numbers.onnx").read_bytes())
    assert run(tmp_path, text).statement.details["artifact_verified"] is True


def test_private_labels_alone_decide(tmp_path):
    """The parameters are a function of the private labels: the true ones may be gone."""
    write_tables(tmp_path)
    write_artifact(tmp_path)
    first = run(tmp_path, with_method("privatized, artifact: numbers.onnx"))
    private = table(600, 0).drop_columns(["y", "colour"])
    private = private.append_column("y_private", pa.array(kept(tmp_path)))
    pq.write_table(private, tmp_path / "train.parquet")
    text = with_method(
        "privatized, unnoted: true, private_column: y_private, artifact: numbers.onnx"
    )
    second = run(tmp_path, text, "second")
    jax.tree.map(np.testing.assert_array_equal, first.params, second.params)
    assert "nothing here can prove it" in second.statement.paragraph()
    text = text.replace("numbers.onnx", "numbers.onnx, user_column: id, max_examples_per_user: 1")
    users = run(tmp_path, text, "users").statement.paragraph()
    assert "If further labels of 'y_private' are released" in users


def test_an_artifact_of_another_column_is_noted_unless_chosen(tmp_path):
    write_tables(tmp_path)
    write_artifact(tmp_path, INTEGERS.replace("column: y", "column: visits"))
    (note,) = run(tmp_path, with_method("privatized, artifact: numbers.onnx")).notes
    assert "compiled for the column 'visits' but randomizes 'y'" in note
    text = with_method("privatized, artifact: numbers.onnx, column: y")
    assert run(tmp_path, text, "chosen").notes == ()


def test_early_stopping_keeps_the_best_and_stops(tmp_path):
    write_tables(tmp_path)
    text = CONFIG.replace("kind: adam, learning_rate: 0.02", "kind: sgd, learning_rate: 0.15")
    text = text.replace("epochs: 3", "epochs: 30, early_stopping: {patience: 2}")
    result = run(tmp_path, text)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    losses = [json.loads(line)["training_loss"] for line in lines]
    best = 1 + int(np.nanargmin(np.array(losses, float)))
    assert result.metrics["epoch_of_parameters"] == best
    assert len(lines) <= best + 2 or len(lines) == 30
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(result.params))


def test_divergence_is_an_error_without_early_stopping(tmp_path):
    write_tables(tmp_path)
    text = CONFIG.replace("adam, learning_rate: 0.02", "sgd, learning_rate: 1e9")
    write_config(tmp_path, text)
    arguments = [str(tmp_path / "train.yaml"), "-o", str(tmp_path / "run")]
    result = CliRunner().invoke(train_command, arguments)
    assert result.exit_code == 2
    assert "training diverged in epoch 1: lower optimizer.learning_rate" in result.stderr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CONFIG.replace("label: y", "label: z"), "train.parquet: has no column 'z'"),
        (
            CLASSES.replace("label: colour", "label: colour\n  classes: [red, green]"),
            "some labels are none of the 2 classes",
        ),
        (with_method("privatized, artifact: train.parquet"), "train.parquet"),
        (
            with_method("privatized, artifact: numbers.onnx, column: colour"),
            "'colour' is declared to hold text: none of the 10 classes",
        ),
        (
            with_method("privatized, artifact: numbers.onnx", CLASSES).replace(
                "label: colour", "label: colour\n  classes: 3"
            ),
            "data.classes: are not the labels of the artifact",
        ),
    ],
)
def test_refused_with_one_message_and_nothing_left(tmp_path, text, expected):
    write_tables(tmp_path)
    write_artifact(tmp_path)
    write_config(tmp_path, text)
    assert expected in refused(tmp_path, text)


def test_run_folders_are_not_overwritten(tmp_path):
    write_tables(tmp_path)
    run(tmp_path)
    other = CONFIG.replace("epochs: 3", "epochs: 4")
    assert "was started with another config" in refused(tmp_path, other, "--resume")
    pq.write_table(table(600, 5), tmp_path / "train.parquet")
    assert "was started with other features" in refused(tmp_path, CONFIG, "--resume")
    (tmp_path / "run" / "run.json").unlink()
    assert "is not a run folder" in refused(tmp_path, CONFIG)


def test_the_command_of_labeldp(tmp_path, inside, without):
    write_tables(tmp_path)
    path = write_config(tmp_path)
    assert load_config(path).config.name == "small"
    inside(tmp_path)
    result = CliRunner().invoke(main, ["train", str(path), "--quiet"])
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "runs" / "small" / "params.npz").exists()
    help_text = CliRunner().invoke(main, ["train", "--help"]).output
    assert "--resume" in help_text
    without("labeldp_trainer")
    missing = CliRunner().invoke(main, ["train", str(path)])
    assert missing.exit_code == 2 and "labeldp-trainer" in missing.stderr
