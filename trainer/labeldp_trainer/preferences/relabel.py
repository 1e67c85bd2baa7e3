"""Predictions for pairs of answers, and files of pairs with private preferences.

Where the order of two columns is the label, nothing is written in that order: a private preference
decides it, or, if the model cannot tell two answers apart, a digest of them.
"""

from __future__ import annotations

import hashlib
import itertools
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float32
from scipy.special import softmax

from labeldp_compile.toolkit import files_of, format_of, refused, replaced_when_whole, run_note
from labeldp_trainer.config import OneRelease
from labeldp_trainer.config.data import PairsData
from labeldp_trainer.data.features import DataPart
from labeldp_trainer.data.pairs import Pairs, batches_of_pairs
from labeldp_trainer.errors import DataError
from labeldp_trainer.outcomes.predict import (
    PREDICTION,
    PROBABILITY,
    Progress,
    Trained,
    class_column,
    sink_of,
)

_PAIR = "probability"
_ORDERED = ("chosen", "reject", "prefer", "winner", "loser")  # in names of columns that tell it


def predict_pairs(
    trained: Trained,
    source: Path,
    output: Path,
    *,
    keep: Sequence[str] = (),
    pairs: Sequence[tuple[str, str]] = (),
    relabel: bool = False,
    probabilities: bool = False,
    progress: Progress = lambda rows: None,
) -> int:
    """Write which answer of each pair is preferred; returns how many pairs there are.

    With ``relabel``, ``keep`` are columns that are copied, and ``pairs`` are columns with the two
    answers. A Parquet output has a note in its schema's metadata: the digest of the parameters, ε,
    δ, and whether they are for a label or for all labels of a user. The output appears whole or not
    at all. Raises InputError.
    """
    data = trained.loaded.config.data
    assert isinstance(data, PairsData)
    if data.order_is_label and not relabel:
        raise DataError(
            f"{source}: the order of its columns says which answer is preferred; use --relabel"
        )
    _require_public(data, keep, pairs)
    written = format_of(output)
    if written is None:
        raise refused(output, "expected an output name that ends in .parquet, .csv or .csv.gz")
    names = list(dict.fromkeys([*keep, *itertools.chain.from_iterable(pairs)]))
    rows, sink, first, note = 0, None, None, _note(trained)
    most = stat.S_IMODE(source.stat().st_mode) if source.exists() else 0o600
    with replaced_when_whole(output, most=most) as file:
        for batch in _batches(data, source, names):
            table = _written(trained, batch, keep, pairs, relabel=relabel, p=probabilities)
            table = table.replace_schema_metadata(note)
            sink = sink or sink_of(file, written, source, table.schema)
            first = first or table.schema
            if table.schema != first:
                raise refused(source, "its files have different types of columns")
            sink.write(table)
            rows += len(table)
            progress(len(table))
        if sink is None:
            raise refused(source, "has no rows")
        sink.finish()
    return rows


def _note(trained: Trained) -> dict[bytes, bytes]:
    config = trained.loaded.config
    method, most = config.method, config.examples_per_user
    assert isinstance(method, OneRelease)
    return run_note(
        {
            "params_sha256": hashlib.sha256(trained.folder.params.read_bytes()).hexdigest(),
            "epsilon": method.epsilon,
            "delta": method.delta,
            "unit": "label" if most is None else "user",
            "max_examples_per_user": most,
        }
    )


def _require_public(data: PairsData, keep: Sequence[str], pairs: Sequence[tuple[str, str]]) -> None:
    """Raise DataError if a column would be copied that says which answer is preferred."""
    answers, sides = set(sum(data.answers, ())), set(itertools.chain.from_iterable(pairs))
    for name in keep:
        spoken = any(word in name.lower() for word in _ORDERED) and data.order_is_label
        if name in {data.label, *sides} or (data.order_is_label and name in answers) or spoken:
            raise DataError(f"--keep {name}: would say which answer is preferred; see --pair")
    alike = {_apart(*names) for names in zip(*data.answers, strict=True)}
    for one, other in pairs if data.order_is_label else ():
        if one != other and _apart(one, other) not in alike:
            named = " ".join(next(zip(*data.answers, strict=True)))
            raise DataError(
                f"--pair {one} {other}: are not named like the two answers ({named}); rename them "
                "if they hold the same fact about each answer"
            )
    shares = {f"{PROBABILITY}{c}" for c in data.classes}
    known = [*keep, *sides, PREDICTION, _PAIR, *shares]
    if len(set(known)) < len(known) or len(sides) < 2 * len(pairs):
        raise DataError("--keep and --pair: a column is named twice, or like a new one")


def _apart(one: str, other: str) -> tuple[str, str]:
    """Two names without the characters with which both begin and end."""
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return one, other


def _batches(data: PairsData, source: Path, names: Sequence[str]) -> Iterator[Pairs]:
    for file in files_of(source):
        for pairs in batches_of_pairs(data, file, names):
            if len(pairs.vectors):
                yield replace(pairs, columns={n: _arrow(file, n, pairs.columns[n]) for n in names})


def _arrow(file: Path, name: str, column: Any) -> pa.Array:
    """A column [n] of a table or an archive. Raises DataError."""
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise refused(file, f"{name!r} is no column: it has {column.ndim} dimensions")
    return pa.array(column) if isinstance(column, np.ndarray) else column


def _written(
    trained: Trained,
    batch: Pairs,
    keep: Sequence[str],
    pairs: Sequence[tuple[str, str]],
    *,
    relabel: bool,
    p: bool,
) -> pa.RecordBatch:
    """What is written of some pairs."""
    data = trained.loaded.config.data
    assert isinstance(data, PairsData)
    first = _preferred(trained, batch)
    found = {name: batch.columns[name] for name in keep}
    if not data.order_is_label:  # in the order of the file, which is public
        first = np.where(batch.turned, 1 - first, first)
        found |= {name: batch.columns[name] for pair in pairs for name in pair}
        found[PREDICTION] = class_column(data.classes).take(pa.array((first < 0.5).astype(int)))
        if p or relabel:
            shares = first, 1 - first
            found |= {f"{PROBABILITY}{c}": q for c, q in zip(data.classes, shares, strict=True)}
        return pa.RecordBatch.from_pydict(found)
    turned = np.where(batch.equal, _other_text(batch, pairs), batch.turned)
    chosen_is_second = turned ^ (first < 0.5)
    for one, other in pairs:
        sides = [batch.columns[one], batch.columns[other]]
        if sides[0].type != sides[1].type:
            raise DataError(f"--pair {one} {other}: the columns have different types")
        both, n = pa.concat_arrays(sides), len(first)
        at = np.arange(n) + n * chosen_is_second
        found |= {one: both.take(pa.array(at)), other: both.take(pa.array((at + n) % (2 * n)))}
    found[_PAIR] = np.maximum(first, 1 - first)
    return pa.RecordBatch.from_pydict(found)


def _preferred(trained: Trained, batch: Pairs) -> Float32[np.ndarray, " n"]:
    """[n] the probability that the first answer, in the public order, is preferred."""
    part = trained.encoder.part(DataPart(batch.vectors, len(batch.vectors), {}, "the pairs"))  # type: ignore[arg-type]
    outputs = trained.outputs(part)
    if not np.isfinite(outputs).all():
        raise DataError("the model gives no finite number for some pairs: they are too far out")
    found = softmax(outputs, axis=1)[:, 0]
    return np.where(batch.equal, np.float32(0.5), found)


def _other_text(batch: Pairs, pairs: Sequence[tuple[str, str]]) -> Bool[np.ndarray, " n"]:
    """[n] whether digests of the columns of answers turn a pair around."""

    def digests(names: Sequence[str]) -> list[bytes]:
        rows = zip(*(batch.columns[name].to_pylist() for name in names), strict=True)
        return [hashlib.sha256(repr(row).encode()).digest() for row in rows]

    if not pairs:
        return np.zeros(len(batch.equal), bool)
    one, other = (digests([pair[side] for pair in pairs]) for side in (0, 1))
    return np.array([a > b for a, b in zip(one, other, strict=True)])
