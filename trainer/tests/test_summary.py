"""What ``labeldp train`` prints: a summary, and the rest with ``--verbose``."""

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
