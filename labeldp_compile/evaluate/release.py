"""Metrics of several models on true labels, released once with noise (Theorem 19).

The metrics are means of losses with declared bounds. Substituting a label changes the sums of all
losses of all models by at most Δ in total, which is computed on whole numbers: for each row the
largest change over all pairs of labels, then the largest over all rows (a person has the sum over
its rows). Predictions and features are public under label DP, so Δ may depend on them. Each sum
gets discrete Laplace noise of scale Δ/ε, which makes all of them together ε-DP.

    1  read     predictions and public columns, which also fix the question
    2  recall   a ledger that has the answer gives it again: nothing is spent, no label is read
    3  spend    otherwise ε is appended to the ledger
    4  answer   labels are read, and the noisy sums are appended before they are shown

The mechanism works in whole numbers. A loss of a row is a whole number of units from 0 to
``UNITS``, which stands for its bound. The floats that compute a loss from a prediction and a label
decide nothing: the sums that are released add up these whole numbers, and the sensitivity is
computed from the same ones. Each sum gets discrete Laplace noise of scale Δ/ε (Theorem 19).
"""

import hashlib
import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_verify import DEFAULT_BUDGET, Budget
from labeldp_verify.forms import CategoricalDomain, Domain, JointDomain
from labeldp_verify.opening import open_artifact
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.evaluate.private import (
    Column,
    prepared_columns,
    read_predictions,
    require_rows,
)
from labeldp_compile.ledger.entries import AskedOfLabels
from labeldp_compile.ledger.prior_account import PriorAccount
from labeldp_compile.ledger.store import open_store
from labeldp_compile.prior.discrete_laplace import discrete_laplace
from labeldp_compile.prior.histogram import label_indexes
from labeldp_compile.spec.load import load_spec
from labeldp_compile.tabular.formats import PLAIN, TextForm, is_among
from labeldp_compile.tabular.persons import person_codes, person_names
from labeldp_compile.tabular.reader import TableReader, open_table

Whole = NDArray[np.int64]
UNITS = 1 << 20
"""Of a bound: losses are rounded to this fraction of it."""
MOST_STEPS = 1 << 14
"""Of a row's sensitivity: pairs of labels, or signs of losses, whichever are fewer."""

_CHANCE = 0.05 * (1 - 1e-9)  # rounding of float64 does not make an interval too short


@dataclass(frozen=True)
class BoundedLoss:
    """A loss of a row between 0 and its bound.

    Attributes:
        bound: from the labels [k] and the least probability.
        shares: from labels, predictions [c] or [c, k] and the least probability to [c, k]: the loss
            under each label, over the bound.
        of_numbers: whether labels are numbers; otherwise they are the places of classes.
    """

    bound: Callable[[NDArray[Any], float], float]
    shares: Callable[[NDArray[Any], NDArray[Any], float], NDArray[np.float64]]
    of_numbers: bool

    def units(self, labels: NDArray[Any], predicted: NDArray[Any], least: float) -> Whole:
        """[c, k] whole numbers from 0 to ``UNITS``."""
        shares = self.shares(labels, predicted, least)
        return np.rint(shares * UNITS).clip(0, UNITS).astype(np.int64)


def _span(labels: NDArray[Any], least: float) -> float:
    return float(labels[-1] - labels[0]) or 1.0


def _away(labels: NDArray[Any], predicted: NDArray[Any], least: float) -> NDArray[np.float64]:
    inside = predicted.clip(labels[0], labels[-1])
    return np.asarray(np.abs(inside[:, None] - labels) / _span(labels, least))


def _chosen(labels: NDArray[Any], predicted: NDArray[Any], least: float) -> NDArray[np.float64]:
    chosen = predicted if predicted.ndim == 1 else predicted.argmax(axis=1)
    return np.asarray(chosen[:, None] == np.arange(len(labels)), np.float64)


def _logs(labels: NDArray[Any], predicted: NDArray[Any], least: float) -> NDArray[np.float64]:
    return np.asarray(np.log(predicted.clip(least, 1)) / math.log(least))


BOUNDED: dict[str, BoundedLoss] = {
    "squared error": BoundedLoss(
        lambda labels, least: _span(labels, least) ** 2,
        lambda labels, predicted, least: _away(labels, predicted, least) ** 2,
        of_numbers=True,
    ),
    "absolute error": BoundedLoss(_span, _away, of_numbers=True),
    "log loss": BoundedLoss(lambda labels, least: -math.log(least), _logs, of_numbers=False),
    "accuracy": BoundedLoss(lambda labels, least: 1.0, _chosen, of_numbers=False),
}


def steps(sums: int, labels: int) -> int:
    """How often ``changes`` looks at a row, for this number of sums and of labels."""
    return min(labels * (labels - 1) // 2, 1 << (sums - 1))


def changes(units: Whole) -> Whole:
    """[c] by how much another label changes a row's losses, summed over all losses, at most.

    ``units`` [c, j, k] are j losses under each of k labels. The result is the largest L1 distance
    of two columns. It is found among all pairs of labels; or, as |v|₁ is the largest s·v for signs
    s, among all signs of the losses.
    """
    _, sums, labels = units.shape
    found = np.zeros(len(units), np.int64)
    if labels * (labels - 1) // 2 <= 1 << (sums - 1):
        for one, other in itertools.combinations(range(labels), 2):
            apart = np.abs(units[:, :, one] - units[:, :, other]).sum(axis=1)
            np.maximum(found, apart, out=found)
        return found
    for signs in itertools.product((1, -1), repeat=sums - 1):
        line = np.einsum("j,cjk->ck", np.array([1, *signs]), units)
        np.maximum(found, line.max(axis=1) - line.min(axis=1), out=found)
    return found


def sums_and_changes(
    losses: Sequence[Callable[[slice], Whole]], labels: Whole, rows: int
) -> tuple[Whole, Whole]:
    """[j] the sums of all losses under the true labels [n], and [n] ``changes``.

    Each of ``losses`` gives [c, k] for a slice of the rows; ``rows`` are handled at a time. Both
    results come from the same whole numbers.
    """
    sums, found = np.zeros(len(losses), np.int64), np.zeros(len(labels), np.int64)
    for start in range(0, len(labels), rows):
        part = slice(start, start + rows)
        units = np.stack([loss(part) for loss in losses], axis=1)
        own = labels[part]
        sums += units[np.arange(len(own)), :, own].sum(axis=0)
        found[part] = changes(units)
    return sums, found


def noisy_sums(
    losses: Sequence[Callable[[slice], Whole]],
    labels: Whole,
    persons: Whole | None,
    epsilon: Fraction,
    rows: int = 1 << 22,
) -> dict[str, Any]:
    """``{rows, sums, sensitivity}`` for true labels [n].

    ``losses`` are as of ``sums_and_changes``, and ``persons`` [n] numbers of persons.
    """
    sums, changed = sums_and_changes(losses, labels, rows)
    if persons is not None:
        of_rows, changed = changed, np.zeros(int(persons.max()) + 1, np.int64)
        np.add.at(changed, persons, of_rows)
    sensitivity = max(int(changed.max()), 1)
    noise = discrete_laplace(len(losses), sensitivity / epsilon)
    noisy = [one + other for one, other in zip(sums.tolist(), noise, strict=True)]
    return {"rows": len(labels), "sums": noisy, "sensitivity": sensitivity}


def noise_margin(scale: Fraction, terms: int) -> int:
    """The least t ≥ 0 that the noise exceeds, on either side, with a probability of at most 5%.

    ``terms`` is 1, or 2 for the difference of two independent numbers of this scale.
    """
    high = 1
    while chance_beyond(high, scale, terms) > _CHANCE:
        high *= 2
    return bisect_left(range(high), -_CHANCE, key=lambda t: -chance_beyond(t, scale, terms))


def chance_beyond(t: int, scale: Fraction, terms: int) -> float:
    """Pr[|X| > t] for a whole t ≥ 0, in float64.

    X has P(x) = (1 − q)/(1 + q)·q^|x| with q = e^(−1/scale). The difference of two has
    P(d) = ((1 − q)/(1 + q))²·q^|d|·(|d| + c) with c = (1 + q²)/(1 − q²). Both are summed over
    d ≥ T = t + 1, and doubled.
    """
    step = float(1 / scale)
    q, rest = math.exp(-step), -math.expm1(-step)  # rest is 1 − q
    beyond = t + 1
    tail = math.exp(-step * beyond)
    if terms == 1:
        return 2 * tail / (1 + q)
    c = (1 + q * q) / (rest * (1 + q))
    return 2 * tail * ((beyond + c) * rest + q) / (1 + q) ** 2


FORMAT_VERSION = "1.0"
CONDITION = (
    "the predictions must not depend on these labels, except through releases that were accounted "
    "for"
)
_ENTRIES = 1 << 22  # of losses at a time
_BYTES = 4_000  # of an answer: fixed, and for each sum
_SPECS = (".yaml", ".yml")


@dataclass(frozen=True)
class LedgerPlace:
    """A ledger, and what the labels are called there."""

    ledger: Path | str
    data_set: str
    data_version: str


@dataclass(frozen=True)
class ReleasedMetric:
    """A metric on these rows with an interval of at least 95%, which noise and rounding allow."""

    metric: str
    model: str
    value: float
    low: float
    high: float
    bound: float


@dataclass(frozen=True)
class Released:
    """Noisy metrics of models on the true labels of a table.

    Attributes:
        name: of the artifact or spec.
        rows: n.
        epsilon: what they spend, of each ``unit``: a label, or all labels of a person.
        sensitivity: Δ, in units of 1/``UNITS`` of a bound.
        sums: noisy sums, by metric and model.
        ledger: its name; None if this was booked nowhere.
        measured: of each metric, the models and their differences.
    """

    name: str
    rows: int
    unit: str
    epsilon: Fraction
    sensitivity: int
    sums: dict[str, dict[str, int]]
    ledger: str | None
    measured: list[ReleasedMetric]

    def to_json(self) -> dict[str, Any]:
        """The attributes, with the noise and the condition in words."""
        return {
            "format_version": FORMAT_VERSION,
            "name": self.name,
            "rows": self.rows,
            "unit": self.unit,
            "epsilon": float(self.epsilon),
            "ledger": self.ledger,
            "target": "rows",
            "confidence": 0.95,
            "condition": CONDITION,
            "measured": [asdict(one) for one in self.measured],
            "exact": {
                "epsilon": str(self.epsilon),
                "noise": "discrete Laplace",
                "scale": str(self.sensitivity / self.epsilon),
                "sensitivity": self.sensitivity,
                "units": UNITS,
                "sums": self.sums,
            },
        }


@dataclass(frozen=True)
class MetricsQuestion(AskedOfLabels):
    """The facts that decide the noisy sums, apart from the labels."""

    stated: dict[str, Any]

    def facts(self) -> dict[str, Any]:
        """As they are stated."""
        return self.stated


def release_tables(
    source: Path,
    predictions: Path,
    table: Path,
    models: Sequence[str] = (),
    metrics: Sequence[str] = (),
    *,
    epsilon: Fraction,
    least: float = 0.001,
    column: str | Sequence[str] | None = None,
    person: str | None = None,
    place: LedgerPlace | None = None,
    budget: Budget = DEFAULT_BUDGET,
    form: TextForm = PLAIN,
    say: Callable[[str], None] = lambda line: None,
) -> Released:
    """Metrics of models on the true labels of a table, for one ε.

    ``source`` is an artifact or a spec: its label says what the labels can be and how odd ones are
    read. ``models`` are as of ``evaluate_tables``. ``least`` is the smallest probability in the log
    loss. With ``person``, a column, all labels of a person may change. ``say`` gets a line about
    what was recalled from the ledger or spent.

    Raises VerificationError if the artifact does not verify, OverBudgetError if the ledger's budget
    is too small, and InputError (DataError) for wrong input, before a label is read.
    """
    name, domain, names, digest = _label(source, budget)
    if isinstance(domain, JointDomain):
        raise InputError(f"{source}: its label has several columns; --release measures one column")
    chosen = [column] if isinstance(column, str) else list(column or names)
    reader = open_table(table, chosen, domain, all_columns=True, form=form, true_labels=True)
    # Noise for their sensitivity would tell the largest label, and missing ones would be an error.
    true_labels = {*names, *chosen}
    given = read_predictions(domain, predictions, models, form, true_labels)
    numeric = not isinstance(domain, CategoricalDomain)
    listed = list(domain.listed)
    persons, rows = _persons(reader, person, true_labels), _rows(reader)
    require_rows(predictions, given, rows, table)
    known = _with_label(reader)
    has = np.ones(rows, bool) if known is None else known
    persons, rows = None if persons is None else persons[has], int(has.sum())
    every = prepared_columns(predictions, given, listed, has.__getitem__, numeric=numeric)
    wanted = _metrics(metrics, every, numeric=numeric)
    labels = np.asarray(listed, np.float64) if numeric else np.arange(len(listed))
    # Equal predictions are asked for once, in an order that does not depend on names.
    contents = {model: one.sha256() for model, one in every.items()}
    distinct = {contents[model]: one for model, one in sorted(every.items())}
    order = [(metric, content) for metric in wanted for content in sorted(distinct)]
    if steps(len(order), len(listed)) > MOST_STEPS:
        raise InputError(
            f"{len(order)} numbers for {len(listed):,} labels are too many for one release: its "
            "sensitivity would take too long; name fewer models, or one --metric"
        )
    facts = {
        "domain": domain.to_json(), "metrics": wanted, "models": sorted(distinct), "rows": rows,
        "least": least.hex(), "units": UNITS, "form": {k: v for k, v in vars(form).items() if v},
        "persons": None if persons is None else hashlib.sha256(persons.tobytes()).hexdigest(),
    }  # fmt: skip
    question = MetricsQuestion(reader.column, epsilon, facts)
    losses = [
        partial(_units, metric, labels, distinct[content], least) for metric, content in order
    ]
    account = _account(place, name, digest, say)
    answer = _answer(reader, question, losses, persons, known, account)
    sums = dict(zip(order, answer["sums"], strict=True))
    sensitivity = int(answer["sensitivity"])
    found = {metric: {model: sums[metric, contents[model]] for model in every} for metric in wanted}
    bounds = {metric: BOUNDED[metric].bound(labels, least) for metric in wanted}
    return Released(
        name,
        rows,
        "label" if person is None else "person",
        epsilon,
        sensitivity,
        found,
        None if place is None else open_store(place.ledger).name,
        _measured(found, bounds, rows, sensitivity / epsilon),
    )


def _label(source: Path, budget: Budget) -> tuple[str, Domain, Sequence[str], str]:
    """Name, domain and columns of the label, and the SHA-256 of the file."""
    if source.suffix.lower() in _SPECS:
        spec, data = load_spec(source)
        return spec.name, spec.domain, spec.label.names, hashlib.sha256(data).hexdigest()
    decoded = open_artifact(source, budget)
    facts = decoded.certificate
    return facts.name, decoded.label, facts.label_columns, decoded.sha256


def _persons(reader: TableReader, person: str | None, true_labels: Collection[str]) -> Whole | None:
    """[n] numbers of persons. Raises InputError (DataError)."""
    if person is None:
        return None
    if is_among(person, true_labels):
        raise InputError(f"--person {person}: is the label; name a public column")
    reader.require_column(person)
    parts = [batch.column(person) for batch in reader.columns([person])]
    if not parts:
        raise refused(reader.path, "has no rows")
    return person_codes(person_names(pa.chunked_array(parts), str(reader.path), person))


def _rows(reader: TableReader) -> int:
    """n, which is public; of text, lines are counted and no label is looked at."""
    if reader.rows is not None:
        return reader.rows
    return sum(len(batch) for batch in reader.columns(reader.schema.names[:1]))


def _with_label(reader: TableReader) -> NDArray[np.bool_] | None:
    """[n] which rows have a label, where nulls are public; None where every row has one."""
    if not reader.domain.keeps_nulls:
        return None
    parts = [reader.has_label(batch) for batch in reader.columns([reader.column])]
    known = np.concatenate([part for part in parts if part is not None] or [np.zeros(0, bool)])
    if not known.any():
        raise refused(reader.path, f"{reader.column!r}: no row has a label")
    return known


def _metrics(metrics: Sequence[str], every: Mapping[str, Column], *, numeric: bool) -> list[str]:
    """The metrics that were asked for; by default all that fit."""
    fitting = [name for name, loss in BOUNDED.items() if loss.of_numbers == numeric]
    if not numeric and any(len(one.shape) == 1 for one in every.values()):
        fitting.remove("log loss")
    for name in metrics:
        if name not in fitting:
            raise InputError(
                f"--release cannot measure {name!r} here: it is no mean over rows with a declared "
                f"bound that fits; there are {', '.join(fitting)}"
            )
    return [name for name in fitting if name in (metrics or fitting)]


def _account(
    place: LedgerPlace | None, name: str, digest: str, say: Callable[[str], None]
) -> PriorAccount | None:
    if place is None:
        return None
    return PriorAccount(
        open_store(place.ledger),
        data_set=place.data_set,
        data_version=place.data_version,
        spec=name,
        spec_digest=digest,
        command="evaluate",
        say=say,
        kind="release",
    )


def _units(
    metric: str, labels: NDArray[Any], predicted: Column, least: float, part: slice
) -> Whole:
    return BOUNDED[metric].units(labels, predicted[part], least)


def _answer(
    reader: TableReader,
    question: MetricsQuestion,
    losses: Sequence[Callable[[slice], Whole]],
    persons: Whole | None,
    known: NDArray[np.bool_] | None,
    account: PriorAccount | None,
) -> dict[str, Any]:
    """``{rows, sums, sensitivity}``, remembered or new; only ``known`` [n] rows have a label."""
    if account is not None and (earlier := account.recall(question)) is not None:
        return earlier
    spent, digest = 0, ""
    if account is not None:
        account.require_room(_BYTES * (1 + len(losses)))
        spent = account.spend(question)
        digest = account.require_same_data(reader.path, reader.column)
    indexes = label_indexes(reader.domain)
    labels = np.concatenate([indexes(reader.labels_of(batch)) for batch in reader.batches()])
    if known is not None and len(known) == len(labels):
        labels = labels[known]
    if len(labels) != question.stated["rows"]:
        late = "" if account is None else "; the ε of this attempt stays spent in the ledger"
        raise refused(reader.path, f"changed while it was read{late}")
    rows = max(1, _ENTRIES // (reader.domain.size * len(losses)))
    answer = noisy_sums(losses, labels, persons, question.epsilon, rows)
    if account is not None:
        account.keep(spent, question, digest, answer)
    return answer


def _measured(
    sums: Mapping[str, Mapping[str, int]], bounds: Mapping[str, float], rows: int, scale: Fraction
) -> list[ReleasedMetric]:
    found = []
    for metric, each in sums.items():
        bound, models = bounds[metric], list(each)
        pairs = [(a, b) for i, a in enumerate(models) for b in models[i + 1 :]]
        every = [(model, each[model], 1) for model in models]
        every += [(f"{a} − {b}", each[a] - each[b], 2) for a, b in pairs]
        unit = bound / (rows * UNITS)
        for model, total, terms in every:
            # Each loss was rounded by at most half a unit.
            margin = unit * (noise_margin(scale, terms) + math.ceil(terms * rows / 2))
            least = 0.0 if terms == 1 else -bound
            ends = (unit * total + shift for shift in (0.0, -margin, margin))
            value, low, high = (min(max(end, least), bound) for end in ends)
            found.append(ReleasedMetric(metric, model, value, low, high, bound))
    return found
