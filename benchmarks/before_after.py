"""The picture of the README: labels before and after, of one row and on average.

    python benchmarks/before_after.py [FOLDER]       (docs/images)

Runs `labeldp demo`, and draws what it made: the private label of each row against its true label,
and the mean of the private labels for each true label with its 95% interval. Each run draws new
noise, so the dots differ from run to run.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[1]
MOST = 10
"""True labels above this are rare: their means have wide intervals and are not drawn."""


def demo_labels(folder):
    """(true labels, private labels) [20190] of a tour."""
    command = [sys.executable, "-m", "labeldp_compile.cli", "demo", "-o", str(folder), "--yes"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    names = ("visits.parquet", "private.parquet")
    return [pq.read_table(folder / name)["visits"].to_numpy().astype(float) for name in names]


def main(folder):
    with tempfile.TemporaryDirectory() as name:
        true, private = demo_labels(Path(name) / "tour")
    plt.rcParams["font.size"] = 12  # 11 pixels on a telephone
    figure, (above, below) = plt.subplots(2, 1, figsize=(5.2, 6.4), layout="constrained")
    few = np.flatnonzero(true <= MOST)[:600]
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, few.size)
    above.axhspan(0, 24, color="#1e5fa8", alpha=0.08, lw=0)
    above.scatter(true[few] + jitter, private[few], s=7, color="#1e5fa8", alpha=0.45, lw=0)
    above.set(title="One row: the noise hides the label", ylabel="private label")
    blue = {"color": "#1e5fa8", "fontsize": 11}
    above.text(10.4, 22.5, "range of true labels", ha="right", va="top", **blue)
    labels = np.arange(MOST + 1)
    parts = [private[true == label] for label in labels]
    means = [part.mean() for part in parts]
    margins = [1.96 * part.std(ddof=1) / len(part) ** 0.5 for part in parts]
    below.plot(labels, labels, color="#888", lw=1.5, label="true label")
    below.errorbar(
        labels, means, margins, fmt="o", color="#1e5fa8", capsize=3, label="mean private label, 95%"
    )
    below.set(title="Many rows: the average is right", ylabel="mean of private labels")
    below.legend(loc="upper left", frameon=False)
    for axes in (above, below):
        axes.set_xlabel("true label (doctor visits in a year)")
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(folder) / "before-after.png", dpi=110)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "images")
