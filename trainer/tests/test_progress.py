"""Progress on a terminal, and in a log."""

import sys
from types import SimpleNamespace

import pytest
from labeldp_trainer import cli as progress
from labeldp_trainer.cli import epoch_progress, step_progress

LINE = {"epoch": 3, "training_loss": 0.25, "test_loss": None, "examples_per_second": 12345.6}


def test_a_line_a_stage_in_a_log(capsys):
    for epochs in (4, 40):
        for epoch in range(1, epochs + 1):
            epoch_progress(epochs, quiet=False)(LINE | {"epoch": epoch})
    steps = step_progress(quiet=False)
    for done in range(4):
        steps("stages", done, 3)
    steps("neighbours", 7, 50)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:10] == [f"epoch {epoch} of 40" for epoch in range(4, 41, 4)]
    assert lines[10:] == ["stages 1 of 3", "stages 2 of 3", "stages 3 of 3"]
    step_progress(quiet=True)("stages", 1, 3)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("first", [0, 1])
def test_the_time_left_is_that_of_the_steps_that_were_seen(monkeypatch, capsys, first):
    """After the first call nobody knows it, and 0 seconds would be said of the longest part."""
    clock = SimpleNamespace(monotonic=iter([10.0, 14.0, 14.0]).__next__)
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    show = step_progress(quiet=False)
    show("stages", first, 4)
    assert "left" not in capsys.readouterr().err
    show("stages", first + 2, 4)
    assert f"{2 * (2 - first)} s left" in capsys.readouterr().err
