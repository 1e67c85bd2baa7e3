"""Progress is for terminals only."""

import sys

from labeldp_trainer.progress import epoch_progress

LINE = {"epoch": 3, "training_loss": 0.25, "test_loss": None, "examples_per_second": 12345.6}


def test_rates_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    epoch_progress(4, quiet=False)(LINE)
    shown = capsys.readouterr().err
    for words in ("3/4", "12,346 examples/s", "training loss 0.25"):
        assert words in shown
    assert "test loss" not in shown
    epoch_progress(4, quiet=True)(LINE)
    assert capsys.readouterr().err == ""


def test_nothing_in_a_file(capsys):
    epoch_progress(4, quiet=False)(LINE)
    assert capsys.readouterr().err == ""
