"""Progress: rates on a terminal; in a log, a line a stage, and a tenth of many epochs."""

import sys
import time
from collections.abc import Callable

import click

from labeldp_trainer.run.metrics import Line

Progress = Callable[[Line], None]
_WIDTH = 24
_LOGGED = 10  # lines on epochs
_STAGES = "stages"


def epoch_progress(epochs: int, *, quiet: bool) -> Progress:
    """A function that is called with the metrics of every epoch."""
    if quiet:
        return lambda line: None
    if not sys.stderr.isatty():
        return lambda line: _log("epoch", int(line["epoch"]), epochs, -(-epochs // _LOGGED))
    began, first, last = 0.0, 0, epochs

    def show(line: Line) -> None:
        nonlocal began, first, last
        done = int(line["epoch"])
        if done <= last:  # the first that is seen, or a new stage
            began, first = time.monotonic() - float(line.get("seconds", 0)), done - 1
        last = done
        left = (epochs - done) * (time.monotonic() - began) / (done - first)
        losses = [
            f"{name.replace('_', ' ')} {line[name]:.5g}"
            for name in ("training_loss", "batch_loss", "test_loss")
            if line.get(name) is not None
        ]
        rate = f"{line['examples_per_second']:,.0f} examples/s"
        _show(done, epochs, f"{rate}  {left:.0f} s left  {', '.join(losses)}")

    return show


def step_progress(*, quiet: bool) -> Callable[[str, int, int], None]:
    """A function that is called with what is done, how much of it, and of how much."""
    if quiet:
        return lambda what, done, total: None
    if not sys.stderr.isatty():
        return lambda what, done, total: _log(what, done, total, 1 if what == _STAGES else total)
    began, first, before = 0.0, 0, ("", 0)

    def show(what: str, done: int, total: int) -> None:
        nonlocal began, first, before
        if what != before[0] or done <= before[1]:
            began, first = time.monotonic(), done
        before = (what, done)
        left = ""  # how long a step takes is not known before the second call
        if done > first:
            left = f"  {(total - done) * (time.monotonic() - began) / (done - first):.0f} s left"
        _show(done, total, f"{what}{left}")

    return show


def _log(what: str, done: int, total: int, every: int) -> None:
    """A line without a time, so that the same run prints the same; none of what is short."""
    if done and done % every == 0 and (what == _STAGES or every > 1):
        click.echo(f"{what} {done:,} of {total:,}", err=True)


def _show(done: int, total: int, words: str) -> None:
    bar = "█" * (_WIDTH * done // max(total, 1))
    text = f"{bar:<{_WIDTH}} {done:,}/{total:,}  {words}"
    click.echo(f"\r\x1b[K{text}", err=True, nl=done == total)
