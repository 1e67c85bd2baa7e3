"""What ``labeldp train`` prints: a summary, and the rest with ``--verbose``."""

import pytest
from labeldp_trainer import parse_config, train
from labeldp_trainer.methods.statement import Statement
from labeldp_trainer.outcomes.runs_table import summary, verdict, warnings

from trainer.tests.command import document, labeldp, written
from trainer.tests.trainer_helpers import CONFIG, write_tables


def test_a_summary_and_all_details(tmp_path):
    write_tables(tmp_path)
    path, folder = written(tmp_path, CONFIG), tmp_path / "run"
    short = labeldp("train", path, "-o", folder)
    whole = labeldp("train", path, "-o", folder, "--resume", "-v")
    first, *_, last = short.splitlines()
    assert (
        first == "small: model mlp, loss squared, method none, 3 epochs, 600 rows of train.parquet"
    )
    assert last == "trained without privacy: keep the model and its metrics secret"
    (metric,) = [line for line in short.splitlines() if line.startswith("  test mse")]
    assert "always predicting the mean gives" in metric and "estimates from 200" in metric
    assert whole.startswith(short.removesuffix(last + "\n")) and whole.endswith(last + "\n")
    assert (folder / "privacy.txt").read_text() in whole
    for name, value in document(folder).items():
        if isinstance(value, float):
            assert f"{name.replace('_', ' ')} {value:.6g}" not in short
            assert f"{name.replace('_', ' ')} {value:.6g}" in whole


@pytest.mark.parametrize("count", [0, 5, 40])
def test_at_most_15_lines(tmp_path, count):
    write_tables(tmp_path)
    loaded = parse_config(CONFIG, "t.yaml", tmp_path)
    result = train(loaded, tmp_path / "run")
    statement = Statement(
        "dp_sgd", 1.0, 1e-6, "m", released=("r",), secret=("the key", "the labels"),
        not_covered=("metrics",), limits=("tuning",), remarks=("long",), again="Again.",
        declared=("One.", "Two."), details={"unit": "user", "max_examples_per_user": 1000},
    )  # fmt: skip
    notes = tuple(f"n{i}" for i in range(count))
    result = type(result)(**{**vars(result), "statement": statement, "notes": notes})
    lines = [*summary(loaded, result), *warnings(result), verdict(statement)]
    assert len(lines) <= 15
    text = "\n".join(lines)
    for words in (
        "ε = 1, δ = 1e-06 for all labels of a user together; at most 1,000 rows of each user",
        "the features, who owns which row, and the number of rows",
        "the key; the labels",
        "metrics; tuning",
        "One. Two.",
        "Again.",
    ):
        assert words in text
    if count > 5:
        assert f"{count - 4} more notes are in result.json" in text
    assert verdict(statement).status == "ok"
    assert all(line.status == "warning" for line in warnings(result))
