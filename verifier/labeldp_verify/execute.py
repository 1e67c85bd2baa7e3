"""Run the graph where it could go wrong, and compare it with the decoded integers.

The graph was rebuilt from the integers before. So this step tests the graph writer and the
platform, not a forger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.analysis.grid_labels import up_words
from labeldp_verify.decode.file import FileForm, Words
from labeldp_verify.errors import demand
from labeldp_verify.forms import (
    CategoricalDomain,
    Domain,
    GridDomain,
    Groups,
    IntegerDomain,
    RealDomain,
    columns_of,
)
from labeldp_verify.forms.joint import output_array
from labeldp_verify.graph.inputs import LIMB_BITS, group_inputs, group_type, in_limbs, label_inputs
from labeldp_verify.graph.model import answers_in_columns
from labeldp_verify.graph.nodes import DOUBLE, STRING

if TYPE_CHECKING:
    import onnxruntime

Feed = dict[str, NDArray[Any]]  # columns [n] by the names of the graph's inputs
_WORDS_OUTSIDE = 8  # words tried on every label outside the domain
_GRID_POINTS = 256  # of a real domain, around which its rounding is tried
_CANDIDATES = 64  # words among which a row's telling ones are looked for


def run_trials(data: bytes, domain: Domain, form: FileForm) -> list[int]:
    """How many labels and words were run of each kind; CheckFailedError if an output is wrong.

    The kinds: thresholds of the words, labels outside the domain, rounding thresholds of real
    labels. They run twice, since what onnxruntime computes can depend on what it rewrites: with
    its graph optimisations as an artifact's users have them, and without.
    """
    tried = _trials(domain, form)
    for optimised in (True, False):
        session = _open_session(data, optimised)
        wrong = sum(_wrong_outputs(session, trial) for trial in tried)
        way = "" if optimised else ", without its graph optimisations,"
        demand(not wrong, f"onnxruntime{way} computes {wrong:,} outputs wrongly on this platform")
    return [len(trial.words) for trial in tried]


@dataclass(frozen=True)
class _Trial:
    """Labels [n] and groups [n] by the names of the graph's inputs, words [n, w], and by the
    graph's outputs what the integers give [n]."""

    inputs: Feed
    words: Words
    outputs: list[NDArray[Any]]


def _open_session(data: bytes, optimised: bool) -> onnxruntime.InferenceSession:
    """A single-threaded session that never prints the model's content."""
    import onnxruntime  # noqa: PLC0415  # what is refused before waits for no library

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def _wrong_outputs(session: onnxruntime.InferenceSession, trial: _Trial) -> int:
    words = trial.words
    (given,) = (one for one in session.get_inputs() if one.name == "entropy")
    entropy: NDArray[Any] = words[:, 0] if words.shape[1] == 1 else words
    if given.type == "tensor(int64)":
        entropy = in_limbs(words, given.shape[1] // words.shape[1])
        # Bits above the lowest 31 must not matter: half of the limbs become negative.
        entropy ^= np.random.default_rng(0).integers(-(2**32), 2**32, entropy.shape) << LIMB_BITS
    got = session.run(None, {**trial.inputs, "entropy": np.ascontiguousarray(entropy)})
    wrong = np.zeros(len(words), dtype=bool)
    for column, demanded in zip(got, trial.outputs, strict=True):
        wrong |= np.asarray(column) != demanded
    return int(np.count_nonzero(wrong))


def _trials(domain: Domain, form: FileForm) -> list[_Trial]:
    at, words = form.critical_words()
    tables, rows = np.divmod(at, domain.size)
    second = np.random.default_rng(0).integers(0, 2**64, len(rows), np.uint64)
    labels, reached = _inputs_for_rows(domain, rows, second)
    tried = [_trial(domain, form, labels, (tables, reached), words, second)]

    labels, outside = _outside(domain)
    spread = np.linspace(0, len(words) - 1, _WORDS_OUTSIDE).astype(np.int64)
    some = np.tile(words[spread], (len(outside), 1))
    zeros = np.zeros(len(some), np.uint64)
    labels = {name: np.repeat(column, _WORDS_OUTSIDE) for name, column in labels.items()}
    outside = np.repeat(outside, _WORDS_OUTSIDE)
    elsewhere = np.tile(tables[spread], len(outside) // _WORDS_OUTSIDE)
    tried.append(_trial(domain, form, labels, (elsewhere, outside), some, zeros))

    first = tables == 0  # any table would do: rounding comes before it
    for labels, reached, second, step in _roundings(domain):
        where = np.zeros(len(reached), np.int64)
        last = domain.size - 1
        for telling in _telling_words(form, rows[first], words[first], reached, step, last):
            tried.append(_trial(domain, form, labels, (where, reached), telling, second))
    return tried


def _roundings(domain: Domain) -> Iterator[tuple[Feed, NDArray[np.int64], NDArray[np.uint64], int]]:
    """Around the points where a real label's row changes: labels [n], the rows that they must
    reach, rounding words, and how far its neighbour is behind a row; for each real column.
    """
    columns, strides = columns_of(domain), domain.strides
    for j, part in enumerate(columns):
        if not isinstance(part, RealDomain):
            continue
        tried, second = rounding_thresholds(part)
        pairs = zip(tried.tolist(), second.tolist(), strict=True)
        reached = np.array([part.index(y, w) for y, w in pairs], dtype=np.int64)
        # The other columns stand still, each at another place.
        places = [i % other.size for i, other in enumerate(columns)]
        still = np.full(len(reached), domain.number([*places[:j], 0, *places[j + 1 :]]))
        labels, _ = _inputs_for_rows(domain, still, second)
        labels[label_inputs(domain)[j]] = tried
        yield labels, still + reached * strides[j], second, strides[j]


def _trial(
    domain: Domain,
    form: FileForm,
    labels: Feed,
    at: tuple[NDArray[np.int64], NDArray[np.int64]],
    words: Words,
    second: NDArray[np.uint64],
) -> _Trial:
    """``at`` is (tables [n], rows [n]); without groups there is one table, 0."""
    tables, rows = at
    outputs = form.outputs_of(tables * domain.size + rows, words)
    if domain.words_per_label == 2:
        words = np.column_stack([words, second])
    groups = {} if form.groups is None else _groups_for_tables(form.groups, tables)
    return _Trial({**labels, **groups}, words, _in_columns(domain, form, outputs))


def _in_columns(domain: Domain, form: FileForm, outputs: NDArray[Any]) -> list[NDArray[Any]]:
    """The expected outputs of the graph: of combinations [n] one for each column [n]."""
    if not answers_in_columns(domain, form.randomizer):
        return [outputs]
    places = zip(domain.column_values, domain.places_of(outputs), strict=True)
    return [output_array(values)[place] for values, place in places]


def _groups_for_tables(groups: Groups, tables: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Rows of the tables [n] by the names of the graph's inputs: in turn those of all their cells,
    at both ends of bands, and of the last table those that are not listed."""
    order = np.argsort(tables, kind="stable")
    chosen: list[tuple[Any, ...]] = [()] * len(tables)
    for start, stop in pairwise([*np.flatnonzero(np.diff(tables[order], prepend=-1)), len(tables)]):
        table = int(tables[order[start]])
        rows = cycle(islice(groups.rows(table), stop - start))
        for i, row in zip(order[start:stop].tolist(), rows, strict=False):
            chosen[i] = row
    found = {}
    for name, column, values in zip(
        group_inputs(groups), groups.columns, zip(*chosen, strict=True), strict=True
    ):
        element = group_type(column)
        kind = object if element == STRING else np.float64 if element == DOUBLE else np.int64
        found[name] = np.array(values, dtype=kind)
    return found


def rounding_thresholds(domain: RealDomain) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    """Labels [n] and rounding words [n] on both sides of where a real label's row changes.

    The labels lie at grid points, in the middle between two, and elsewhere, each with its float64
    neighbours; the words are the last that rounds up, and the first that does not.
    """
    last = domain.points - 1
    grid = np.unique(np.linspace(0, last, min(domain.points, _GRID_POINTS)).astype(np.int64))
    places = np.concatenate([grid, grid + 0.5, grid + 0.3141592653589793])
    step = (domain.max - domain.min) / last
    near = domain.min + np.minimum(places, last) * step
    if isinstance(domain, GridDomain):
        near = np.interp(places, np.arange(domain.size), domain.values)
        near = np.concatenate([near, np.array(domain.bounds)[grid]])
    labels = [near]
    for towards in (-np.inf, np.inf):
        beside = np.nextafter(near, towards)
        labels += [beside, np.nextafter(beside, towards)]
    tried = np.concatenate(labels)
    ups = [up_words(fraction) for fraction in domain.cells(tried)[1].tolist()]
    words = [[max(n - 1, 0) << 11 | 2047, min(n, 2**53 - 1) << 11] for n in ups]
    return np.repeat(tried, 2), np.array(words, dtype=np.uint64).ravel()


def _telling_words(
    form: FileForm,
    rows: NDArray[np.int64],
    words: Words,
    wanted: NDArray[np.int64],
    step: int,
    last: int,
) -> list[Words]:
    """For each wanted row [n] words [n, w] that distinguish it from the row ``step`` after it, and
    from the row before, if its critical words do.
    """
    points, where = np.unique(wanted, return_inverse=True)
    order = np.argsort(rows, kind="stable")
    start, stop = (np.searchsorted(rows[order], points, side=side) for side in ("left", "right"))
    start, stop = np.where(stop > start, [start, stop], [[0], [len(rows)]])
    shares = np.linspace(0, 1, _CANDIDATES)
    picks = (start[:, None] + shares * (stop - 1 - start)[:, None]).astype(np.int64)
    chosen = words[order[picks]]  # [points, candidates, w]
    flat = chosen.reshape(-1, chosen.shape[2])
    outputs = form.outputs_of(np.repeat(points, _CANDIDATES), flat)
    found = []
    for other in (np.minimum(points + step, last), np.maximum(points - step, 0)):
        differs = outputs != form.outputs_of(np.repeat(other, _CANDIDATES), flat)
        best = np.argmax(differs.reshape(len(points), _CANDIDATES), axis=1)
        found.append(chosen[np.arange(len(points)), best][where])
    return found


def _inputs_for_rows(
    domain: Domain, rows: NDArray[np.int64], second: NDArray[np.uint64]
) -> tuple[Feed, NDArray[np.int64]]:
    """Labels that stand for the rows, and the rows that they must reach."""
    found, total = {}, np.zeros(len(rows), np.int64)
    places = domain.places_of(rows)
    columns = zip(label_inputs(domain), columns_of(domain), domain.strides, places, strict=True)
    for name, part, stride, place in columns:
        found[name], reached = _column_for_rows(part, place, second)
        total += reached * stride
    return found, total


def _column_for_rows(
    domain: Domain, rows: NDArray[np.int64], second: NDArray[np.uint64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    if isinstance(domain, IntegerDomain):
        return rows + np.int64(domain.min), rows
    if isinstance(domain, CategoricalDomain):
        return np.array(domain.values, dtype=object if domain.is_text else np.int64)[rows], rows
    labels = np.array(domain.listed)[rows]
    return labels, domain.indices(labels, second)


def _outside(domain: Domain) -> tuple[Feed, NDArray[np.int64]]:
    """Labels outside the domain, and the rows that the out-of-domain rule sends them to."""
    parts = columns_of(domain)
    outside = [_column_outside(part) for part in parts]
    turns = min(len(parts), 2) * max(len(rows) for _, rows in outside)
    found: Feed = {}
    total = np.zeros(turns, np.int64)
    columns = zip(label_inputs(domain), parts, domain.strides, outside, strict=True)
    for j, (name, part, stride, (labels, rows)) in enumerate(columns):
        # All columns outside at first; then each of several in its turn, beside others inside.
        at = np.arange(turns)
        inside, reached = _column_for_rows(part, at % part.size, np.zeros(turns, np.uint64))
        out = (at < turns // 2) | (at % len(parts) == j)
        found[name] = np.where(out, labels[at % len(labels)], inside)
        total += np.where(out, rows[at % len(rows)], reached) * stride
    return found, total


def _column_outside(domain: Domain) -> tuple[NDArray[Any], NDArray[np.int64]]:
    last = domain.size - 1
    if isinstance(domain, CategoricalDomain):
        unknown: list[Any] = ["", "\x7flabeldp: not a category"] if domain.is_text else [-(2**63)]
        unknown = [u for u in unknown if u not in domain.values] or [domain.default]
        labels = np.array(unknown, dtype=object if domain.is_text else np.int64)
        return labels, np.full(len(labels), domain.values.index(domain.default))
    if isinstance(domain, IntegerDomain):
        below, above = [domain.min - 1, -(2**63)], [domain.max + 1, 2**31, 2**63 - 1]
        above = [x for x in above if x > domain.max]
        labels = np.array([*below, *above], dtype=np.int64)
        if domain.default is not None:
            return labels, np.full(len(labels), domain.default - domain.min)
        return labels, np.array([0] * len(below) + [last] * len(above))
    below, above = np.nextafter(domain.min, -np.inf), np.nextafter(domain.max, np.inf)
    low, high = [float("nan"), -np.inf, float(below)], [np.inf, float(above)]
    labels = np.array([*low, *high])
    rows = np.array([0] * len(low) + [last] * len(high))
    if domain.default is not None:
        rows[:] = domain.index(domain.default, 0)
    if domain.null is not None:
        rows[0] = domain.index(domain.null, 0)  # of NaN
    return labels, rows
