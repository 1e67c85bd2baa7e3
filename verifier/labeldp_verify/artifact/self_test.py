"""Test vectors that travel in the file: labels, words and the answers the integers demand.

Some builds of onnxruntime compute int64 operations wrongly where high halves are equal and low
halves straddle bit 31. Small enumerations do not find this, so the vectors sit on both sides of
segment boundaries, of T, and of bit 31, for labels on both sides of the domain's ends. A runtime
runs them once at load time and refuses to work if one differs.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import cycle, islice
from typing import Any

from labeldp_verify.artifact.critical_words import critical_words, sampled
from labeldp_verify.forms import (
    CategoricalDomain,
    Domain,
    IntegerDomain,
    Randomizer,
)
from labeldp_verify.forms.domain import Category

MAX_LABELS = 24
_INT64_EDGES = (-(2**63), -(2**31) - 1, -(2**31), 2**31 - 1, 2**31, 2**63 - 1)


def self_test_vectors(domain: Domain, randomizer: Randomizer) -> dict[str, Any]:
    """``{"labels": [text], "words": [[hex]], "outputs": [text]}``.

    Numbers are text, because readers in JavaScript round integers above 2^53; ``NaN`` and
    ``Infinity`` are written as JavaScript does, which Python reads too.
    """
    tries, answer = critical_words(randomizer)
    words = [group for row, group in tries if row is None]
    labels = _labels(domain)
    count = max(len(words), len(labels))
    pairs = list(zip(islice(cycle(labels), count), islice(cycle(words), count), strict=True))
    pairs += [(_label_of(domain, row), group) for row, group in tries if row is not None]
    rows = [(label, group, (group[0] * 0x9E3779B97F4A7C15) % 2**64) for label, group in pairs]
    two = domain.words_per_label == 2
    return {
        "labels": [_text(label) for label, _, _ in rows],
        "words": [[f"{w:016x}" for w in (*group, *([r] if two else []))] for _, group, r in rows],
        "outputs": [_text(answer(row_of(domain, label, r), group)) for label, group, r in rows],
    }


def row_of(domain: Domain, label: Category | float, rounding_word: int) -> int:
    """The row that the graph must choose, in Python integers and float64."""
    if isinstance(domain, CategoricalDomain):
        known = label in domain.values
        return domain.values.index(label if known else domain.default)
    if isinstance(domain, IntegerDomain):
        assert isinstance(label, int)
        if domain.default is not None and not domain.min <= label <= domain.max:
            label = domain.default
        return min(max(label, domain.min), domain.max) - domain.min
    return domain.index(float(label), rounding_word)


def _label_of(domain: Domain, row: int) -> Category | float:
    if isinstance(domain, IntegerDomain):
        return domain.min + row
    label = domain.labels()[row]
    return float(label) if isinstance(label, Fraction) else label


def _text(value: Category | float) -> str:
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    return str(value)


def _labels(domain: Domain) -> list[Category | float]:
    """Labels inside, at the ends of and outside the domain."""
    if isinstance(domain, CategoricalDomain):
        known = sampled(domain.values, MAX_LABELS)
        if domain.is_text:
            return [*known, "", "\x7flabeldp: not a category"]
        return [*known, *_INT64_EDGES]
    if isinstance(domain, IntegerDomain):
        inner = sampled(range(domain.min, domain.max + 1), MAX_LABELS)
        return [*inner, domain.min - 1, domain.max + 1, *_INT64_EDGES]
    inf = float("inf")
    edges = [domain.min, domain.max, -inf, inf, float("nan"), domain.min - 1.0, domain.max + 1.0]
    steps = sampled(range(4 * domain.points), MAX_LABELS)
    inner_points = [
        domain.min + (s / (4 * domain.points)) * (domain.max - domain.min) for s in steps
    ]
    return [*edges, *inner_points]
