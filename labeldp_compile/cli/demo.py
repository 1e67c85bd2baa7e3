"""``labeldp demo``: the whole way from a secret column to a trained model, on sample data."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from labeldp_compile.cli.command import command, say, text_table
from labeldp_compile.cli.options import PATH
from labeldp_compile.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


LABEL = "visits"
LOW, HIGH = 0, 24
"""The declared range: more than two visits a month count as two a month."""
_NAMES = {
    "mdvis": LABEL,
    "lncoins": "log_coinsurance",
    "idp": "individual_deductible",
    "lpi": "log_incentive",
    "fmde": "log_max_expense",
    "physlm": "physical_limits",
    "disea": "chronic_diseases",
    "hlthg": "health_good",
    "hlthf": "health_fair",
    "hlthp": "health_poor",
}


def sample_table() -> pa.Table:
    """The table, with column names that can be read; [20190] rows."""
    import pyarrow.parquet as pq  # noqa: PLC0415  # numpy and Arrow are slow to import

    shipped = Path(__file__).parent / "randhie.parquet"
    checkout = Path(__file__).parents[2] / "specs" / "data" / "randhie.parquet"
    table = pq.read_table(shipped if shipped.is_file() else checkout)
    return table.rename_columns([_NAMES[name] for name in table.column_names])


TEST_SHARE = 4
"""One row of this many is held out."""
_PENALTY = 1.0


def compare(
    features: npt.NDArray[np.float64],
    true: npt.NDArray[np.float64],
    private: npt.NDArray[np.float64],
) -> tuple[float, float, float]:
    """Mean squared errors against the true labels of the held-out rows.

    They are those of the mean of the true training labels, and of a ridge regression on private and
    on true labels.

    Args:
        features: [n, d], numbers.
        true: [n], true labels.
        private: [n], private labels of the same rows.
    """
    import numpy as np  # noqa: PLC0415

    is_test = np.arange(len(true)) % TEST_SHARE == 0
    x = (features - features[~is_test].mean(0)) / features[~is_test].std(0)
    gram = x[~is_test].T @ x[~is_test] + _PENALTY * np.eye(x.shape[1])

    def error(labels: npt.NDArray[np.float64]) -> float:
        mean = labels[~is_test].mean()
        weights = np.linalg.solve(gram, x[~is_test].T @ (labels[~is_test] - mean))
        return float(np.mean((mean + x[is_test] @ weights - true[is_test]) ** 2))

    constant = float(np.mean((true[~is_test].mean() - true[is_test]) ** 2))
    return constant, error(private), error(true)


FOLDER = "labeldp-demo"
_SHOWN = 5


@command("demo", "labeldp demo", "labeldp demo -o tour --yes")
@click.option(
    "-o",
    "--output",
    type=PATH,
    default=FOLDER,
    show_default=True,
    help="Folder for the files of the tour. It must be new or empty.",
)
@click.option("--yes", is_flag=True, help="Do not wait for the Enter key between the steps.")
def demo_command(output: Path, yes: bool) -> None:
    """Take a guided tour on sample data, in about a minute.

    The tour makes a column of doctor visits private, checks the file that did it, and trains a
    model on the private labels. Each step shows a command that you can run yourself.
    """
    tour(output, waits=not yes and on_a_terminal())


def on_a_terminal() -> bool:
    """Whether a person can answer: the tour never waits in a pipe or a CI job."""
    return sys.stdin.isatty() and sys.stdout.isatty()


class _Step(NamedTuple):
    title: str
    text: Sequence[str]
    show: Callable[[], object]


def tour(folder: Path, *, waits: bool) -> None:
    """Take all steps. Raises InputError if the folder has files, or cannot be made."""
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} has files already; name a new folder with -o")
    steps = _steps(sample_table())
    if waits:
        say(
            "labeldp replaces a secret column of a table by random values that a model can still",
            "learn from. This tour takes a minute, uses public sample data, and writes its files",
            f"to {folder}{os.sep}. For a list of all commands: labeldp --help",
        )
        if _stops("Press Enter to start, or q to stop"):
            return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}") from error
    with chdir(folder):
        for number, step in enumerate(steps, 1):
            say("", f"{number}. {step.title}", "", *(f"   {line}" for line in step.text), "")
            step.show()
            if (
                waits
                and number < len(steps)
                and _stops("Press Enter for the next step, or q to stop")
            ):
                break
    say("", f"The files of this tour are in {folder}{os.sep}")


def _stops(question: str) -> bool:
    """Whether the answer is anything but the Enter key."""
    return bool(click.prompt(f"\n{question}", default="", show_default=False, prompt_suffix=" "))


def _run(*words: str) -> None:
    """Show a labeldp command, and run it; exit as it does if it fails."""
    say(f"$ labeldp {' '.join(words)}")
    sys.stdout.flush()
    done = subprocess.run([sys.executable, "-m", "labeldp_compile.cli", *words], check=False)  # noqa: S603
    if done.returncode:
        sys.exit(done.returncode)


def _steps(table: pa.Table) -> list[_Step]:
    import pyarrow.parquet as pq  # noqa: PLC0415  # as above

    source, private = f"{LABEL}.parquet", "private.parquet"
    spec, artifact = f"{LABEL}.yaml", f"build/{LABEL}.onnx"
    true = table[LABEL].to_numpy().clip(LOW, HIGH).astype(float)

    def randomized() -> npt.NDArray[np.float64]:
        return pq.read_table(private)[LABEL].to_numpy().astype(float)

    def show_table() -> None:
        pq.write_table(table, source)
        say(*_rows(table, table.column_names[:4]))

    def describe() -> None:
        _run("init", source, "--column", LABEL, "--range", f"{LOW}..{HIGH}", "--yes")

    def randomize() -> None:
        _run("randomize", artifact, source, "-o", private)
        pairs = zip(true[:_SHOWN], randomized()[:_SHOWN], strict=True)
        rows = [
            [str(n), f"{before:.0f}", f"{after:.2f}"] for n, (before, after) in enumerate(pairs)
        ]
        say("", *text_table(["row", "visits before", "visits after"], rows))

    def average() -> None:
        _run("estimate", artifact, private)
        say("", f"Mean of the true labels, which you would not see: {true.mean():.3f}")

    return [
        _Step(
            "The problem",
            [
                f"A health study recorded for {table.num_rows:,} rows (one person, one year) how",
                "often the person saw a doctor. You want to train a model on this column, and",
                "nobody who trains it may learn how often one person went in a year. All other",
                "columns are public. (RAND Health Insurance Experiment, public sample data.)",
            ],
            show_table,
        ),
        _Step(
            "Describe the label",
            [
                f"You choose the range, {LOW} to {HIGH}, before looking at the data; otherwise the",
                "range itself leaks labels. The default budget is ε = 1. No label is read.",
            ],
            describe,
        ),
        _Step(
            "Compile the randomizer",
            [
                "This reads the labels once, for a histogram with noise. The solver then finds the",
                "least noisy unbiased randomizer at this ε, and writes it as one ONNX file.",
            ],
            lambda: _run("compile", spec, "-o", "build"),
        ),
        _Step(
            "Check the file",
            [
                "Anyone can do this, without the data and without trusting the author: ε is",
                "derived again from the integers in the file.",
            ],
            lambda: _run("verify", artifact),
        ),
        _Step(
            "Make the column private",
            [
                "A random value replaces each label. One value says little about its label,",
                "because the noise is larger than the labels. On average the values are right.",
            ],
            randomize,
        ),
        _Step(
            "Compute an average, with its margin of error",
            ["From here on nobody needs the true labels, and no more ε is spent."],
            average,
        ),
        _Step(
            "Train a model",
            [
                "A ridge regression on the nine public columns, once with private labels and once",
                "with true labels. Mean squared error on held-out rows, against true labels:",
            ],
            lambda: say(*_comparison(table, true, randomized())),
        ),
    ]


def _rows(table: pa.Table, names: Sequence[str]) -> list[str]:
    first = table.select(names).slice(0, _SHOWN).to_pylist()
    cells = [[f"{value:.3g}" for value in row.values()] + ["…"] for row in first]
    return text_table([*names, "…"], cells, left=())


def _comparison(
    table: pa.Table, true: npt.NDArray[np.float64], private: npt.NDArray[np.float64]
) -> list[str]:
    import numpy as np  # noqa: PLC0415  # as above

    names = [name for name in table.column_names if name != LABEL]
    features = np.column_stack([table[name].to_numpy().astype(float) for name in names])
    models = (
        "no model: the mean for every row",
        "model trained on private labels",
        "model trained on true labels",
    )
    errors = compare(features, true, private)
    rows = [[name, f"{error:.2f}"] for name, error in zip(models, errors, strict=True)]
    held_out = -(-len(true) // TEST_SHARE)
    return [
        *text_table(["", f"error on {held_out:,} rows"], rows),
        "",
        "Larger tables and other methods come closer to the model on true labels: see",
        "docs/training.md. To start with your own table: labeldp init TABLE --column COLUMN",
    ]
