"""Metrics as JSON lines, and the learning curve."""

import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labeldp_trainer.run.folder import open_file, write_bytes

Line = dict[str, Any]
REPORTED = {"cross_entropy": "accuracy", "squared": "mse", "absolute": "mae", "poisson": "loss"}
"""The metric by which runs with a loss are compared."""
BESIDE = {"accuracy": {"loss": "log loss", "auc": "AUC"}}
"""What is shown beside that metric, and what it is called: accuracy hides rare classes."""
_MOST_BYTES = 1 << 26  # of lines that are read
_CURVES = ("batch_loss", "training_loss", "test_loss")


def for_json(values: Mapping[str, Any]) -> Line:
    """The same, with null for numbers that are not finite."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def append_line(path: Path, values: Mapping[str, Any]) -> Line:
    """Add a line; numbers that are not finite become null. Returns the line."""
    line = for_json(values)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, allow_nan=False) + "\n")
    return line


def read_lines(path: Path) -> list[Line]:
    """The lines of a file, up to the first invalid one: a killed run may leave part of a line.

    Raises OSError, also for what is no file.
    """
    lines: list[Line] = []
    if not path.exists():
        return lines
    with open_file(path) as file:
        text = file.read(_MOST_BYTES).splitlines()
    for each in text:
        try:
            line = json.loads(each)
        except (ValueError, RecursionError):
            break
        if not isinstance(line, dict) or "epoch" not in line:
            break
        lines.append(line)
    return lines


def keep_lines(path: Path, epochs: int) -> list[Line]:
    """Keep the lines up to the epoch of a checkpoint. Drop later lines and parts of lines."""
    lines = [line for line in read_lines(path) if int(line["epoch"]) <= epochs]
    write_bytes(path, "".join(json.dumps(line) + "\n" for line in lines).encode())
    return lines


def draw_curve(path: Path, lines: list[Line]) -> None:
    """Draw every loss over the epochs as a PNG."""
    # Imported only here: loading it takes a second.
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for name in _CURVES:
        points = [(line["epoch"], line[name]) for line in lines if line.get(name) is not None]
        if points:
            axes.plot(*zip(*points, strict=True), marker=".", label=name.replace("_", " "))
    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("loss")
    axes.grid(visible=True, alpha=0.3)
    if axes.get_lines():
        axes.legend()
    else:
        # The loss on the training labels of a private run stays secret.
        note = "without a test set, every loss is secret"
        axes.text(0.5, 0.5, note, ha="center", va="center", transform=axes.transAxes)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=120)
    write_bytes(path, picture.getvalue())
