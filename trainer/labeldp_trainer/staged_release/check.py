"""Verifies a staged release from its file and the features, without the run that made it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Int32
from labeldp_verify.printable import at_most

from labeldp_trainer.config.method import StagedRelease as StagedConfig
from labeldp_trainer.data import array_digest
from labeldp_trainer.interactions.columns import VALUE_BITS, BinnedColumn
from labeldp_trainer.interactions.questions import LabelQuestion, Offset, RowWeights
from labeldp_trainer.one_release.plan import ReleaseCheck, promise_checks
from labeldp_trainer.one_release.rows import unit_of
from labeldp_trainer.staged_release.draw import Draws, LabelSums, PublicTable
from labeldp_trainer.staged_release.plan import BudgetPlan
from labeldp_trainer.staged_release.release import ReleaseInStages
from labeldp_trainer.staged_release.scale import LabelScale

_ALIKE = 1e-2
_SPANS_ALIKE = 0.1  # their last directions come from a few steps of an iteration in float32
_LABELS_ALIKE = 1e-3  # of the clip


def checks(
    release: ReleaseInStages,
    method: StagedConfig,
    table: PublicTable,
    classes: tuple[int | str, ...] | None,
    label: str,
) -> Iterator[ReleaseCheck]:
    """All checks of the promise of a release that need no replay.

    No file can prove that the answers are about these labels, or that noise was drawn as stated.
    """
    facts = release.facts
    epsilon, delta, rows = Fraction(facts.epsilon), Fraction(facts.delta), table.rows
    yield from promise_checks(facts, method, classes, label)
    yield ReleaseCheck(
        facts.users == rows.users,
        "each label is protected on its own, as in the config"
        if rows.users is None
        else f"all labels of a user, at most {rows.most_rows:,}, are protected together",
    )
    same = facts.rows == table.count and facts.features_sha256 == array_digest(table.features)
    yield ReleaseCheck(same, f"the features are those of the release ({facts.rows:,} rows)")
    if not same:
        return
    same = _same_columns(release.columns, table.columns)
    yield ReleaseCheck(same, "the bins and basis functions of the columns follow from the features")
    if not same:
        return
    table = replace(table, columns=release.columns)
    moving = "a replaced label moves" if rows.users is None else "all labels of a user move"
    before = ReleaseInStages(facts.model_copy(update={"parts": ()}), release.columns)
    try:
        plan = BudgetPlan.of(epsilon, delta, classes=facts.classes is not None)
        planned = all(
            part.facts.sigma == plan.sigma(number, part.facts.squared_sensitivity)
            for number, part in enumerate(release.parts)
        )
    except ValueError:  # noise that no sampler has
        planned = False
    yield ReleaseCheck(planned, "every part has the noise that the plan for ε and δ gives it")
    if not planned:
        return
    for number, part in enumerate(release.parts, 1):
        yield ReleaseCheck(
            part.facts.previous_sha256 == before.sha256,
            f"part {number} was decided after the parts before it, as they are in this file",
        )
        before = before.with_part(part)
        if part.facts.kind != "sums":
            continue
        try:
            question = part.question(facts.label_range)
            found = table.sums(LabelSums(question, LabelScale(0.0), 0, unit_of(facts.rows))).lengths
        except ValueError:  # a row that is too long
            found = None
        yield ReleaseCheck(
            found is not None
            and found.sha256 == part.facts.rows_sha256
            and found.longest == part.facts.longest,
            f"part {number}: {moving} the sum by at most "
            f"√{part.facts.squared_sensitivity:,}, measured on its integer rows",
        )
    proved = plan.proved_delta([part.noise for part in release.parts], epsilon)
    yield ReleaseCheck(
        proved <= delta,
        f"the {len(release.parts)} parts together give δ ≤ {at_most(proved, 3)} at "
        f"ε = {float(epsilon)!r}, proved in rationals",
    )


def replayed(
    release: ReleaseInStages, table: PublicTable, learn: Callable[[Draws], object]
) -> Iterator[ReleaseCheck]:
    """Whether every stage asked what follows from features and the answers before it."""
    asked: dict[int, LabelQuestion] = {}
    draws = Draws(release, table, None, lambda grown: None, asked.__setitem__)
    ends = release.facts.label_range
    try:
        with np.errstate(all="ignore"):
            learn(draws)
    except (ValueError, np.linalg.LinAlgError):
        yield ReleaseCheck(False, "every stage follows from the answers before it")
        return
    for part, question in asked.items():
        stated = release.parts[part].question(ends)
        yield ReleaseCheck(
            _same_question(stated, question),
            f"part {part + 1} asks what follows from the features and the parts before it "
            f"(terms: {len(stated.terms)}, sums: {stated.rows.weights.shape[1]})",
        )


def _same_columns(stated: Sequence[BinnedColumn], learned: Sequence[BinnedColumn]) -> bool:
    """Whether bins are equal, and basis functions but for a sign and a processor's rounding."""
    if len(stated) != len(learned):
        return False
    for a, b in zip(stated, learned, strict=True):
        same = a.in_pairs == b.in_pairs and a.values.shape == b.values.shape
        for x, y in ((a.edges, b.edges), (a.bins, b.bins)):
            if x is None or y is None:
                same &= x is y
            else:
                same &= np.array_equal(x, y)
        # eigenvectors of equal eigenvalues may be turned: their kernel is the same
        if not same or not np.allclose(_kernel(a), _kernel(b), rtol=_ALIKE, atol=_ALIKE):
            return False
    return True


def _kernel(column: BinnedColumn) -> Any:
    values = column.values / (1 << VALUE_BITS)
    return values @ values.T


def _same_question(stated: LabelQuestion, found: LabelQuestion) -> bool:
    """Whether terms, offset and clip are equal, and rows as good, up to rounding elsewhere."""
    a, b = stated.rows, found.rows
    if stated.terms != found.terms or a.weights.shape != b.weights.shape:
        return False
    if not np.isclose(stated.clip, found.clip, rtol=_LABELS_ALIKE):
        return False
    if not _same_offset(stated.offset, found.offset, stated.clip):
        return False
    if np.array_equal(a.weights, b.weights) and a.shift == b.shift:
        return bool(np.isclose(a.floor, b.floor, rtol=_ALIKE))
    return _same_span(a.weights, b.weights) and _same_grain(a, b)


def _same_offset(a: Offset | None, b: Offset | None, clip: float) -> bool:
    if a is None or b is None:
        return a is b
    near = abs(a.base - b.base) <= _LABELS_ALIKE * clip
    if a.terms != b.terms or a.ends != b.ends or not near:
        return False
    apart = np.abs(a.weights * a.unit - b.weights * b.unit).max(initial=0)
    one = 1 << VALUE_BITS
    return bool(apart * one <= _LABELS_ALIKE * max(clip, 1e-300) + 2 * a.unit * one)


def _same_grain(a: RowWeights, b: RowWeights) -> bool:
    """Rounded as finely, and short rows as short, in any units of the weights."""
    one, other = _unit(a), _unit(b)
    near = np.isclose(a.floor * one, b.floor * other, rtol=_SPANS_ALIKE)
    return bool(near and 0.4 < one / other < 2.5)  # a shift may differ by 1


def _unit(rows: RowWeights) -> float:
    """The share of 1 of a rounded row in the largest weight."""
    return float(2.0**rows.shift / np.abs(rows.weights).max())


def _same_span(a: Int32[np.ndarray, "w m"], b: Int32[np.ndarray, "w m"]) -> bool:
    """Whether Σ weights·weightsᵀ is equal: rows measure it, whichever basis a processor found."""
    x, y = a / np.abs(a).max(), b / np.abs(b).max()
    left, right = x @ x.T, y @ y.T
    return bool(np.linalg.norm(left - right) <= _SPANS_ALIKE * np.linalg.norm(right))
