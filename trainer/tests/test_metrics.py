"""Metrics of a run that was cut off, and its picture."""

from labeldp_trainer.run import folder as metrics
from matplotlib.axes import Axes


def test_lines_that_a_killed_run_left(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for rest in ('{"epoch": 3', "3", "null", "{}", '{"epoch": 3}'):
        path.write_text('{"epoch": 1}\n{"epoch": 2}\n' + rest + "\n")
        assert metrics.keep_lines(path, 2) == [{"epoch": 1}, {"epoch": 2}]
        assert path.read_text() == '{"epoch": 1}\n{"epoch": 2}\n'


def test_a_picture_without_a_loss_says_so(tmp_path, monkeypatch):
    words = []
    monkeypatch.setattr(Axes, "text", lambda axes, x, y, text, **options: words.append(text))
    metrics.draw_curve(tmp_path / "curve.png", [{"epoch": 1, "test_loss": 2.0}])
    assert words == []
    metrics.draw_curve(tmp_path / "curve.png", [{"epoch": 1}])
    assert words == ["without a test set, every loss is secret"]
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
