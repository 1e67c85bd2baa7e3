"""The sample table: doctor visits of 20,190 person-years, with nine public features.

RAND Health Insurance Experiment; ``specs/data/make_randhie.py`` names the source. The data is in
the public domain. A checkout has the file in ``specs/data``; a wheel brings it as package data.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

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
    shipped = Path(__file__).parent / "randhie.parquet"
    checkout = Path(__file__).parents[3] / "specs" / "data" / "randhie.parquet"
    table = pq.read_table(shipped if shipped.is_file() else checkout)
    return table.rename_columns([_NAMES[name] for name in table.column_names])


TEST_SHARE = 4
"""One row of this many is held out."""
_PENALTY = 1.0


@dataclass(frozen=True)
class Errors:
    """Mean squared errors against the true labels of the held-out rows.

    Attributes:
        constant: of the mean of the true training labels, for every row.
        private: of a ridge regression on private labels.
        true: of the same regression on true labels.
        rows: number of held-out rows.
    """

    constant: float
    private: float
    true: float
    rows: int


def compare(
    features: npt.NDArray[np.float64],
    true: npt.NDArray[np.float64],
    private: npt.NDArray[np.float64],
) -> Errors:
    """Fit both models on three quarters of the rows, and test them on the others.

    Args:
        features: [n, d], numbers.
        true: [n], true labels.
        private: [n], private labels of the same rows.
    """
    is_test = np.arange(len(true)) % TEST_SHARE == 0
    train, test = features[~is_test], features[is_test]
    mean, scale = train.mean(0), train.std(0)

    def error(labels: npt.NDArray[np.float64]) -> float:
        weights = _ridge((train - mean) / scale, labels[~is_test])
        predicted = labels[~is_test].mean() + ((test - mean) / scale) @ weights
        return float(np.mean((predicted - true[is_test]) ** 2))

    constant = float(np.mean((true[~is_test].mean() - true[is_test]) ** 2))
    return Errors(constant, error(private), error(true), int(is_test.sum()))


def _ridge(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """[d] weights of standardized features for centred labels."""
    gram = x.T @ x + _PENALTY * np.eye(x.shape[1])
    return np.linalg.solve(gram, x.T @ (y - y.mean()))
