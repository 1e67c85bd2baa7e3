"""Fourteen tables that no constant was fixed on: from installed packages, and made up."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from training_studies.six_tables import Task


@dataclass(frozen=True)
class Table:
    """Rows that ``make`` gives as arrays by column, in the place of a ``RealTable``."""

    make: Callable
    codes = ()

    def read(self, data):
        """All rows; any may be trained on."""
        del data
        found = {name: pa.array(column) for name, column in self.make().items()}
        texts = [name for name, column in found.items() if pa.types.is_string(column.type)]
        return pa.table(found | {name: found[name].dictionary_encode() for name in texts}), None


def _learned(name):
    """A table of scikit-learn."""
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    return {f"x{i}": column for i, column in enumerate(found.data.T)} | {"y": found.target}


def _friedman():
    from sklearn.datasets import make_friedman1

    x, y = make_friedman1(6250, noise=2.0, random_state=0)
    return {f"x{i}": x[:, i] for i in range(10)} | {"y": y}


def _published(name, label):
    """A table of statsmodels."""
    from statsmodels import datasets

    found = getattr(datasets, name).load_pandas().data.rename(columns={label: "y"})
    return {column: found[column].to_numpy() for column in found}


def _deliveries():
    """Minutes: effects that multiply, and an hour that matters differently in each zone."""
    r, n = np.random.default_rng(101), 30_000
    hour, zone, km = r.integers(8, 23, n), r.integers(0, 12, n), r.gamma(2.0, 2.0, n)
    rush = np.exp(-(((hour - 18) / 1.8) ** 2)) * (zone % 4) * 0.35
    rain, bike = r.random(n) < 0.2, r.choice(["bike", "car", "scooter"], n)
    eta = 2.6 + 0.35 * np.log1p(km) + rush + 0.25 * rain * (bike != "car") - 0.2 * (bike == "car")
    y = np.minimum(np.exp(eta + 0.35 * r.normal(size=n)), 240)
    zones = np.char.add("z", zone.astype(str))
    return {"hour": hour, "zone": zones, "km": km, "rain": rain.astype(int), "by": bike, "y": y}


def _numbers(seed, n, count=7):
    """Numbers that features are made of, and three categories."""
    r = np.random.default_rng(seed)
    found = {f"x{i}": r.normal(size=n) for i in range(count)}
    return r, found | {"group": r.choice(["a", "b", "c", "d"], n), "region": r.choice(_REGIONS, n)}


_REGIONS = [f"r{i}" for i in range(20)]


def _tickets():
    """Counts: 2% of the rows have one."""
    r, x = _numbers(102, 18_750)
    rate = 0.02 * np.exp(0.8 * x["x0"] + 0.6 * (x["x1"] > 1) * (x["group"] == "a") - 0.3)
    return x | {"y": np.minimum(r.poisson(rate), 5)}


def _baskets():
    """Amounts: 6% of the rows have one, from 1 to 2,000."""
    r, x = _numbers(103, 25_000)
    bought = r.random(25_000) < 0.06 * np.exp(0.5 * x["x0"] - 0.12)
    amount = np.exp(3.5 + 0.5 * x["x1"] + 0.9 * r.normal(size=25_000))
    return x | {"y": np.where(bought, np.minimum(amount, 2000), 0)}


def _heavy():
    """A number with tails as those of Student's t with 2.5 degrees of freedom."""
    r, x = _numbers(104, 12_500)
    mean = 8 * np.tanh(x["x0"]) + 5 * x["x1"] * (x["group"] == "b")
    return x | {"y": np.clip(mean + 6 * r.standard_t(2.5, 12_500), -300, 300)}


def _constant():
    return _numbers(105, 3_750)[1] | {"y": np.full(3_750, 17)}


def _nothing():
    r, x = _numbers(106, 3_750)
    return x | {"y": np.clip(r.normal(40, 12, 3_750), 0, 100)}


def _clicks():
    """Two classes of many rows, 3% in the second."""
    n = 250_000
    r, x = _numbers(107, n, 12)
    region = np.searchsorted(np.sort(_REGIONS), x["region"])
    odds = -4 + 0.7 * x["x0"] + 0.5 * np.sin(2 * x["x1"]) + 0.4 * (region % 3) * (x["x2"] > 0)
    return x | {"y": (r.random(n) < 1 / (1 + np.exp(-odds))).astype(int)}


def _channels():
    """Five classes."""
    r, x = _numbers(108, 15_000)
    shift = np.searchsorted(["a", "b", "c", "d"], x["group"])
    scores = np.stack(
        [np.sin(x["x0"] + k) + 0.6 * x["x1"] * (k == shift) + 0.4 * k * (k < 3) for k in range(5)],
        axis=1,
    )
    return x | {"y": (1.3 * scores + r.gumbel(size=scores.shape)).argmax(axis=1)}


_LOG, _SQUARED = ("cross_entropy", ("log loss", "accuracy")), ("squared", ("MSE",))
_COUNTS = ("poisson", ("Poisson loss",))
OWN_TABLES = {
    "diabetes": Task(
        "diabetes", Table(partial(_learned, "diabetes")), "y", (), *_SQUARED, (0, 400)
    ),
    "breast": Task("breast cancer", Table(partial(_learned, "breast_cancer")), "y", (), *_LOG),
    "digits": Task("digits, 10 classes", Table(partial(_learned, "digits")), "y", (), *_LOG),
    "friedman": Task("Friedman's function", Table(_friedman), "y", (), *_SQUARED, (0, 40)),
    "affairs": Task(
        "affairs", Table(partial(_published, "fair", "affairs")), "y", (), *_COUNTS, (0, 60)
    ),
    "party": Task(
        "party, 0 to 6", Table(partial(_published, "anes96", "PID")), "y", (), *_SQUARED, (0, 6)
    ),
    "deliveries": Task("minutes of a delivery", Table(_deliveries), "y", (), *_SQUARED, (0, 240)),
    "tickets": Task("rare counts", Table(_tickets), "y", (), *_COUNTS, (0, 5)),
    "baskets": Task("amounts, 94% zeros", Table(_baskets), "y", (), *_SQUARED, (0, 2000)),
    "heavy": Task("heavy tails", Table(_heavy), "y", (), *_SQUARED, (-300, 300)),
    "same": Task("one label for all", Table(_constant), "y", (), *_SQUARED, (0, 100)),
    "nothing": Task("no signal", Table(_nothing), "y", (), *_SQUARED, (0, 100)),
    "clicks": Task("clicks, 3%", Table(_clicks), "y", (), *_LOG),
    "channels": Task("channels, 5 classes", Table(_channels), "y", (), *_LOG),
}  # fmt: skip
"""The last eight are made up; each says what in its function."""
