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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_verify import DEFAULT_BUDGET, Budget
from labeldp_verify.forms import CategoricalDomain, Domain, JointDomain
from labeldp_verify.opening import open_artifact
from numpy.typing import NDArray

from labeldp_compile.errors import InputError, refused
from labeldp_compile.estimates.counts import sums_by_key
from labeldp_compile.evaluate.rows import Records, read_predictions, rows_with_label
from labeldp_compile.ledger.entries import AskedOfLabels
from labeldp_compile.ledger.prior_account import PriorAccount
from labeldp_compile.ledger.store import open_store
from labeldp_compile.prior.discrete_laplace import discrete_laplace
from labeldp_compile.prior.histogram import label_indexes
from labeldp_compile.spec.load import load_spec
from labeldp_compile.tabular.formats import PLAIN, TextForm, is_among
from labeldp_compile.tabular.persons import Persons, persons_of
from labeldp_compile.tabular.reader import TableReader, open_table

Whole = NDArray[np.int64]
UNITS = 1 << 20
"""Of a bound: losses are rounded to this fraction of it."""
MOST_STEPS = 1 << 14
"""Of a row's sensitivity: pairs of labels, or signs of losses, whichever are fewer."""

_HELD = 1 << 20  # rows, before those of a person are summed
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


def noisy_sums(
    blocks: Iterable[tuple[Whole, Whole, Persons | None]], epsilon: Fraction
) -> dict[str, Any]:
    """``{rows, sums, sensitivity}``, from blocks of rows.

    A block has j losses of c rows under each label [c, j, k], which sums and ``changes`` both come
    from, true labels [c], and digests of persons [c] if a person can have several rows.
    """
    sums, rows, largest = np.zeros(1, np.int64), 0, 1
    held: list[tuple[NDArray[Any], Whole]] = [(np.empty(0, np.uint64), np.empty(0, np.int64))]
    for units, own, persons in blocks:
        sums, rows = sums + units[np.arange(len(own)), :, own].sum(axis=0), rows + len(own)
        changed = changes(units)
        if persons is None:
            largest = max(largest, int(changed.max(initial=0)))
            continue
        held.append((persons, changed))
        if sum(len(one) for one, _ in held) > 2 * len(held[0][0]) + _HELD:
            held = [_by_person(held)]
    largest = int(_by_person(held)[1].max(initial=largest))
    noise = discrete_laplace(len(sums), largest / epsilon)
    noisy = [one + other for one, other in zip(sums.tolist(), noise, strict=True)]
    return {"rows": rows, "sums": noisy, "sensitivity": largest}


def _by_person(held: Sequence[tuple[NDArray[Any], Whole]]) -> tuple[NDArray[Any], Whole]:
    persons, changed = map(np.concatenate, zip(*held, strict=True))
    return sums_by_key(persons, changed)


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
    numeric, listed = not isinstance(domain, CategoricalDomain), list(domain.listed)
    models, given = read_predictions(
        domain, predictions, models, form, listed, numeric=numeric, true_labels=true_labels
    )
    if person is not None:
        if is_among(person, true_labels):
            raise InputError(f"--person {person}: is the label; name a public column")
        reader.require_column(person)
    names = [person] if person is not None else reader.schema.names[:1]
    names += [reader.column] if domain.keeps_nulls and reader.column not in names else []
    records = Records(table)
    for batch, rows in rows_with_label(reader.columns(names), table, given, reader.has_label):
        who = {} if person is None else {"person": persons_of(table, person, batch.column(person))}
        records.append({**rows, **who})
    if not records.rows:
        raise refused(table, f"{reader.column!r}: no row has a label")
    contents = [records.sha256(str(i)) for i in range(len(models))]
    kinds = [records.type[str(i)] for i in range(len(models))]
    wanted = _metrics(metrics, probabilities=all(kind.shape for kind in kinds), numeric=numeric)
    labels = np.asarray(listed, np.float64) if numeric else np.arange(len(listed))
    # Equal predictions are asked for once, in an order that does not depend on names.
    distinct = dict(sorted({one: str(i) for i, one in enumerate(contents)}.items()))
    order = [(metric, content) for metric in wanted for content in distinct]
    if steps(len(order), len(listed)) > MOST_STEPS:
        raise InputError(
            f"{len(order)} numbers for {len(listed):,} labels are too many for one release: its "
            "sensitivity would take too long; name fewer models, or one --metric"
        )
    facts = {
        "domain": domain.to_json(), "metrics": wanted, "models": list(distinct),
        "rows": records.rows, "least": least.hex(), "units": UNITS,
        "form": {k: v for k, v in vars(form).items() if v},
        "persons": None if person is None else records.sha256("person"),
    }  # fmt: skip
    question = MetricsQuestion(reader.column, epsilon, facts)

    def units(block: NDArray[Any]) -> Whole:
        each = ((BOUNDED[metric], block[distinct[content]]) for metric, content in order)
        return np.stack([loss.units(labels, one, least) for loss, one in each], axis=1)

    account = _account(place, name, digest, say)
    answer = _answer(reader, question, records, units, len(order), account)
    sums = dict(zip(order, answer["sums"], strict=True))
    sensitivity = int(answer["sensitivity"])
    every = list(zip(models, contents, strict=True))
    found = {metric: {model: sums[metric, one] for model, one in every} for metric in wanted}
    bounds = {metric: BOUNDED[metric].bound(labels, least) for metric in wanted}
    return Released(
        name,
        records.rows,
        "label" if person is None else "person",
        epsilon,
        sensitivity,
        found,
        None if place is None else open_store(place.ledger).name,
        _measured(found, bounds, records.rows, sensitivity / epsilon),
    )


def _label(source: Path, budget: Budget) -> tuple[str, Domain, Sequence[str], str]:
    """Name, domain and columns of the label, and the SHA-256 of the file."""
    if source.suffix.lower() in _SPECS:
        spec, data = load_spec(source)
        return spec.name, spec.domain, spec.label.names, hashlib.sha256(data).hexdigest()
    decoded = open_artifact(source, budget)
    facts = decoded.certificate
    return facts.name, decoded.label, facts.label_columns, decoded.sha256


def _metrics(metrics: Sequence[str], *, probabilities: bool, numeric: bool) -> list[str]:
    """The metrics that were asked for; by default all that fit."""
    fitting = [name for name, loss in BOUNDED.items() if loss.of_numbers == numeric]
    if not numeric and not probabilities:
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


def _answer(
    reader: TableReader,
    question: MetricsQuestion,
    records: Records,
    units: Callable[[NDArray[Any]], Whole],
    sums: int,
    account: PriorAccount | None,
) -> dict[str, Any]:
    """``{rows, sums, sensitivity}``, remembered or new; ``units`` are those of ``records``."""
    if account is not None and (earlier := account.recall(question)) is not None:
        return earlier
    spent, digest = 0, ""
    if account is not None:
        account.require_room(_BYTES * (1 + sums))
        spent = account.spend(question)
        digest = account.require_same_data(reader.path, reader.column)
    late = "" if account is None else "; the ε of this attempt stays spent in the ledger"
    changed = refused(reader.path, f"changed while it was read{late}")
    indexes, step = label_indexes(reader.domain), max(1, _ENTRIES // (reader.domain.size * sums))

    def blocks() -> Iterator[tuple[Whole, Whole, Persons | None]]:
        place = 0
        for batch in reader.batches():
            labels, has = indexes(reader.labels_of(batch)), reader.has_label(batch)
            labels = labels if has is None else labels[has]
            for start in range(0, len(labels), step):
                own = labels[start : start + step]
                rows = records.read(place, place + len(own))
                place += len(own)
                if place > records.rows:
                    raise changed
                persons = rows["person"] if "person" in (rows.dtype.names or ()) else None
                yield units(rows), own, persons
        if place < records.rows:
            raise changed

    answer = noisy_sums(blocks(), question.epsilon)
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
