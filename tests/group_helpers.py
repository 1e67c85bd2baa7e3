"""Small randomizers by group for tests, and what runs their graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from labeldp_verify.analysis.analysis import Loss
from labeldp_verify.artifact import BucketGrid, write_model
from labeldp_verify.forms import Domain, GroupedWindows, Groups, IntegerDomain, WindowRandomizer
from labeldp_verify.forms.window import Segment

from labeldp_compile.certificate import Provenance, TableProvenance, build_grouped_certificate
from labeldp_compile.prior import Prior
from labeldp_compile.prior.group_priors import GroupedPrior, GroupPrior
from labeldp_compile.rounding.randomized_response import randomized_response
from tests.helpers import all_words, plain_counts, session_of

DOMAIN = IntegerDomain(10, 13)
VALUES = (-3.5, 0.25, 1.0, 7.0)


def uneven(word_bits: int = 10) -> WindowRandomizer:
    """Uneven base, an output with two segments, one with none, windows that cut anywhere."""
    scale = 2**word_bits // 1024
    return WindowRandomizer(
        word_bits=word_bits,
        base=tuple(scale * length for length in (200, 150, 300, 101)),
        extra=tuple(Segment(scale * n, i) for n, i in ((90, 0), (120, 2), (50, 0), (160, 1))),
        offsets=tuple(scale * s for s in (0, 37, 101, 147)),
        values=VALUES,
    )


def some_windows(word_bits: int = 10) -> tuple[WindowRandomizer, ...]:
    """Four labels: uneven windows, randomized response, a constant, and two bins."""
    epsilon = Fraction(2)
    return (
        uneven(word_bits),
        randomized_response([float(y) for y in range(10, 14)], range(4), epsilon, word_bits),
        randomized_response([11.5], [0] * 4, epsilon, word_bits),
        randomized_response([10.5, 12.5], [0, 0, 1, 1], Fraction(1), word_bits),
    )


def grouped(values: Sequence[Any] = (7, -2, 2**40), word_bits: int = 10) -> GroupedWindows:
    """Three groups of ``some_windows``, and its last one for all others."""
    return GroupedWindows(Groups.of(tuple(values), "g"), some_windows(word_bits))


def write_grouped(
    randomizer: GroupedWindows,
    domain: Domain = DOMAIN,
    epsilon: Fraction = Fraction(2),
    loss: Loss = "squared",
    grid: BucketGrid | None = None,
    sizes: Sequence[int] | None = None,
    paid: Fraction = Fraction(0),
) -> bytes:
    """An artifact from integers, with a certificate that says ``paid`` was spent on the prior."""
    k = domain.size
    tables = [
        TableProvenance(
            size=3 * i + 1 if sizes is None else sizes[i],
            prior={"kind": "public", "weights": [1 + (i * y) % 5 for y in range(k)]},
        )
        for i in range(randomizer.groups.tables)
    ]
    provenance = Provenance("test", "made_up", "y", epsilon, paid, tables[-1].prior, "0" * 64, {})
    certificate = build_grouped_certificate(domain, randomizer, loss, provenance, tables)
    return write_model(domain, randomizer, certificate.to_json(), grid)


def run(model: bytes, labels: Any, words: Any, groups: Any) -> list[Any]:
    """The graph's outputs for labels, words and groups."""
    feed = {"label": labels, "entropy": words, "group": groups}
    outputs: list[Any] = session_of(model).run(None, feed)[0].tolist()
    return outputs


def group_array(groups: Groups, value: Any, count: int) -> np.ndarray[Any, Any]:
    return np.full(count, value, dtype=object if groups.columns[0].is_text else np.int64)


def assert_exact(
    model: bytes, randomizer: GroupedWindows, labels: Sequence[Any], unlisted: Sequence[Any]
) -> None:
    """Every word of every label in every group, and in some that are not listed."""
    groups = randomizer.groups
    session = session_of(model)
    for value in (*(groups.columns[0].values or ()), *unlisted):
        table = groups.table((value,))
        words = all_words(randomizer.windows[table].word_bits)
        for row, label in enumerate(labels):
            dtype = object if isinstance(label, str) else type(label)
            feed = {
                "label": np.full(len(words), label, dtype=dtype),
                "entropy": words,
                "group": group_array(groups, value, len(words)),
            }
            got = session.run(None, feed)[0].tolist()
            assert Counter(got) == plain_counts(randomizer.windows[table], row), (value, label)


def public_priors(
    groups: Groups, sizes: Sequence[int], weights: Sequence[list[int]], epsilon: Fraction
) -> GroupedPrior:
    """Public priors [T + 1] of the groups; the last is that of all other rows."""
    tables = [
        GroupPrior(size, {"kind": "public", "weights": own})
        for size, own in zip(sizes, weights, strict=True)
    ]
    last = tables[-1]
    pooled = Prior(last.weights, Fraction(0), epsilon, last.statement)
    return GroupedPrior(groups, pooled, tables)
