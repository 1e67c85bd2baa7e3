"""docs/preferences.md, from the file of pairs to private preferences, in an empty folder."""

import importlib.util

import pyarrow.parquet as pq
import pytest

from tests.docs.pages import run_page


@pytest.mark.slow
def test_the_page_gives_private_preferences_and_a_scorer(tmp_path):
    torch = importlib.util.find_spec("torch")
    run = run_page("preferences.md", tmp_path)
    trained, _ = run.printed("labeldp", "train", "likes.yaml", "-o")
    assert any("ε = 1, δ = 1e-06" in line for line in trained)
    private, true = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("private", "pairs"))
    assert private.column_names == ["prompt", "chosen", "rejected", "probability"]
    same = [a == b for a, b in zip(private["chosen"], true["chosen"], strict=True)]
    assert 0.8 < sum(same) / len(same) < 1
    assert (tmp_path / "likes.onnx").exists()
    if torch:
        learned = run_page("private-preferences.md", tmp_path).names
        weights = learned["reward"].weight[0].abs()
        assert weights[0] > 3 * weights[1:].max()
