"""Could a second release of images profit from what a first one said?

    python benchmarks/images_second_look.py RUN/representation LABELS --draws 2

RUN has the representation of images, joined from several; LABELS is the idx file of its training
labels. The last 10,000 rows are held out, and the others have one release. A second release could
only choose the shape of its noise better than the first, which chooses it from features alone. So
the default shape is compared with one that true labels chose: for blocks of columns, the mean
square of the coefficients of a ridge regression on all true labels. No release can say as much, so
the difference says what a second look could be worth. This choice is not private.
"""

import argparse
import itertools
from pathlib import Path

import numpy as np
from labeldp_trainer.config import OneRelease
from labeldp_trainer.data.arrays import read_idx
from labeldp_trainer.one_release import plan as make
from labeldp_trainer.one_release.plan import fitted_release
from labeldp_trainer.one_release.rows import PublicRows

HELD, BLOCKS, PENALTY = 10_000, 25, 50.0
EPSILONS, DELTA = ("0.1", "0.5", "1", "2", "4"), 1e-5


def known_prior(rows, codes, classes):
    """Variances of the coefficients, the constant's first, as all true labels have them."""
    x = np.concatenate([np.ones((rows.count, 1), np.float32), rows.vectors], axis=1)
    gram = (x.T @ x).astype(float) + PENALTY * np.eye(x.shape[1])
    squares = np.square(np.linalg.solve(gram, x.T @ (np.eye(classes)[codes] - 1 / classes)))
    squares = squares.mean(axis=1)
    for group in np.unique(rows.groups):
        columns = 1 + np.flatnonzero(rows.groups == group)
        ends = np.geomspace(1, len(columns) + 1, BLOCKS).round().astype(int) - 1
        for first, last in itertools.pairwise(np.unique(ends)):
            squares[columns[first:last]] = squares[columns[first:last]].mean()
    squares[0] = make.target_variance(tuple(range(classes)), "label")
    return squares


def measured(rows, codes, held, epsilon, classes):
    """Accuracy in percent and log loss on the held-out rows, and how many columns are used."""
    method = OneRelease.model_validate(
        {"kind": "one_release", "epsilon": float(epsilon), "delta": DELTA}
    )
    release = make.drawn(rows, method, tuple(range(classes)), "label", codes)
    weights, bias = fitted_release(release, rows, "softmax")
    vectors, true = held
    scores = vectors @ weights + bias
    logs = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    accuracy = 100 * np.mean(scores.argmax(axis=1) == true)
    return accuracy, -logs[np.arange(len(true)), true].mean(), len(release.columns)


def main():
    """Print a line for each draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("representation", type=Path)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--draws", type=int, default=2)
    arguments = parser.parse_args()
    labels = read_idx(arguments.labels).astype(np.int64)
    vectors = np.load(arguments.representation / "train.npy")
    codes, count, classes = labels[:-HELD], len(labels) - HELD, int(labels.max()) + 1
    with np.load(arguments.representation / "learnt.npz") as learnt:
        rows = PublicRows(
            count=count,
            vectors=vectors[:count],
            spectrum=learnt["spectrum"],
            groups=learnt["groups"],
        )
    expected, known = make._prior, known_prior(rows, codes, classes)
    for epsilon in EPSILONS:
        for shape, prior in (("default", expected), ("from true labels", lambda *_: known)):
            make._prior = prior
            for _ in range(arguments.draws):
                found = measured(rows, codes, (vectors[count:], labels[count:]), epsilon, classes)
                accuracy, loss, columns = found
                print(
                    f"ε = {epsilon}, shape {shape}: accuracy {accuracy:.2f}%, log loss {loss:.4f}, "
                    f"{columns} columns",
                    flush=True,
                )


if __name__ == "__main__":
    main()
