"""Test vectors that travel in the file: labels, words and the answers the integers demand.

Some builds of onnxruntime compute int64 operations wrongly where high halves are equal and low
halves straddle bit 31. Small enumerations do not find this, so the vectors sit on both sides of
segment boundaries, of T, and of bit 31, for labels on both sides of the domain's ends. A runtime
runs them once at load time and refuses to work if one differs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any, TypeVar

from labeldp_compile.randomizer import (
    CategoricalDomain,
    Domain,
    IntegerDomain,
    WindowRandomizer,
)
from labeldp_compile.randomizer.domain import Category

MAX_BOUNDARIES = 24
MAX_LABELS = 24
_LOW_BITS = (0x00000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_INT64_EDGES = (-(2**63), -(2**31) - 1, -(2**31), 2**31 - 1, 2**31, 2**63 - 1)

T = TypeVar("T")


def self_test_vectors(domain: Domain, randomizer: WindowRandomizer) -> dict[str, Any]:
    """``{"labels": [text], "words": [[hex]], "outputs": [text]}``.

    Numbers are text, because readers in JavaScript round integers above 2^53; ``NaN`` and
    ``Infinity`` are written as JavaScript does, which Python reads too.
    """
    words = _words(randomizer)
    labels = _labels(domain)
    count = max(len(words), len(labels))
    rows = [
        (label, word, (word * 0x9E3779B97F4A7C15) % 2**64)
        for label, word in zip(
            islice(cycle(labels), count), islice(cycle(words), count), strict=True
        )
    ]
    boundaries, owners = randomizer.boundaries(), randomizer.segment_outputs()
    outputs = []
    for label, word, rounding_word in rows:
        t = word >> (64 - randomizer.word_bits)
        if t >= randomizer.base_total:
            t += randomizer.offsets[row_of(domain, label, rounding_word)]
        outputs.append(owners[bisect_right(boundaries, t) - 1])
    two = domain.words_per_label == 2
    return {
        "labels": [_text(label) for label, _, _ in rows],
        "words": [[f"{w:016x}", f"{r:016x}"] if two else [f"{w:016x}"] for _, w, r in rows],
        "outputs": [_text(randomizer.values[i]) for i in outputs],
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


def _text(value: Category | float) -> str:
    if isinstance(value, float):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    return str(value)


def _words(randomizer: WindowRandomizer) -> list[int]:
    """Words on both sides of boundaries, of T and of bit 31; 64 bits each."""
    B, base, X = randomizer.word_bits, randomizer.base_total, randomizer.window
    boundaries = randomizer.boundaries()
    inner = _sample(boundaries[1 : len(randomizer.base)], MAX_BOUNDARIES)
    points = {0, base - 1, base, randomizer.words - 1}
    points.update(p for c in inner for p in (c - 1, c))
    for offset in _sample(sorted(set(randomizer.offsets)), MAX_BOUNDARIES):
        # u that lands on the first boundary inside the window of this offset
        cut = boundaries[bisect_right(boundaries, base + offset)] - offset if X else base
        points.update((cut - 1, cut))
    middle = {
        (p >> 32 << 32) | low for p in (base, randomizer.words - 1, *inner) for low in _LOW_BITS
    }
    inside = sorted(u for u in points | middle if 0 <= u < randomizer.words)
    fill = (1 << (64 - B)) - 1  # the bits below u, which must not matter
    return [(u << (64 - B)) | (fill if i % 2 else 0) for i, u in enumerate(inside)]


def _labels(domain: Domain) -> list[Category | float]:
    """Labels inside, at the ends of and outside the domain."""
    if isinstance(domain, CategoricalDomain):
        known = _sample(domain.values, MAX_LABELS)
        if domain.is_text:
            return [*known, "", "\x7flabeldp: not a category"]
        return [*known, *_INT64_EDGES]
    if isinstance(domain, IntegerDomain):
        inner = _sample(range(domain.min, domain.max + 1), MAX_LABELS)
        return [*inner, domain.min - 1, domain.max + 1, *_INT64_EDGES]
    inf = float("inf")
    edges = [domain.min, domain.max, -inf, inf, float("nan"), domain.min - 1.0, domain.max + 1.0]
    steps = _sample(range(4 * domain.points), MAX_LABELS)
    inner_points = [
        domain.min + (s / (4 * domain.points)) * (domain.max - domain.min) for s in steps
    ]
    return [*edges, *inner_points]


def _sample(items: Sequence[T], count: int) -> list[T]:
    """At most ``count`` items, evenly spread, first and last included."""
    if len(items) <= count:
        return list(items)
    return [items[i * (len(items) - 1) // (count - 1)] for i in range(count)]
