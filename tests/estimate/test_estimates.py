"""Estimates from counts: unbiased, with intervals that cover; refused where the table says nothing.

benchmarks/estimate.py measures the coverage of two thousand releases; test_intervals.py enumerates
that of small groups.
"""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labeldp_learn.columns import PrivateLabelError
from labeldp_learn.estimation import Estimation, GroupCounts, quantiles
from labeldp_learn.estimators import OutputCounts
from labeldp_learn.intervals import Estimates
from labeldp_learn.inversion import project_to_simplex
from labeldp_runtime import Randomizer
from labeldp_verify.analysis.probabilities import row, value
from labeldp_verify.opening import open_artifact

from labeldp_compile.estimates.counts import PrivateReader, count_outputs
from labeldp_compile.observer import Observer
from labeldp_compile.tabular import parquet_file
from labeldp_compile.tabular.reader import open_table
from tests.fixtures.compiled import INTEGER_SPEC, compile_text

ROWS = np.array([300, 0, 120, 80, 7, 40, 1, 0, 0, 52])
INVERTIBLE = [
    "randomized_response",
    "debiased_rr",
    "laplace",
    "laplace, clip: true",
    "staircase",
    "optimal_unbiased",
]


@pytest.fixture
def compiled(tmp_path):
    def make(mechanism, epsilon="2.0", text=INTEGER_SPEC):
        text = text.replace("kind: rr_on_bins", f"kind: {mechanism}").replace("1.0", epsilon)
        path = tmp_path / "x.onnx"
        path.write_bytes(compile_text(text).model)
        return open_artifact(path), Randomizer.load(path)

    return make


def of_one_table(name, outputs, counts):
    return GroupCounts((name,), {0: OutputCounts(outputs, counts)})


def expected_counts(decoded, rows):
    """Counts in exact proportion to what the labels are expected to give, and their number."""
    total = [0] * decoded.tables[0].outputs
    for label, times in enumerate(rows.tolist()):
        if times:
            counts = row(decoded.tables[0], label)
            total = [t + times * c for t, c in zip(total, counts, strict=True)]
    scale = sum(total) // 10**15 or 1  # of 2^62 or 2^128 words
    counts = np.array([round(t / scale) for t in total])
    return of_one_table("all", np.arange(len(counts)), counts)


@pytest.mark.parametrize("mechanism", INVERTIBLE)
def test_estimates_are_right_on_average(compiled, mechanism):
    decoded, _ = compiled(mechanism)
    estimation = Estimation.of(decoded)
    (group,) = estimation([expected_counts(decoded, ROWS)], "rows")
    shares = ROWS / ROWS.sum()
    assert group.mean.value[0] == pytest.approx((shares * np.arange(10)).sum(), abs=1e-6)
    if mechanism == "optimal_unbiased":
        return
    assert estimation.refused == {}
    assert group.histogram.value == pytest.approx(shares, abs=1e-6)
    assert group.projected == pytest.approx(shares, abs=1e-5)
    at_most = shares.cumsum()
    for q in group.quantiles:
        assert abs(at_most[q.estimate] - q.share) < 1e-5 or q.estimate == np.searchsorted(
            at_most, q.share
        )


def test_groups_are_counted_one_by_one(compiled, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_file, "BATCH_ROWS", (3_000, 3_000))
    decoded, randomizer = compiled("laplace")
    generator, path = np.random.default_rng(3), tmp_path / "private.parquet"
    groups = np.sort(generator.integers(0, 40, 20_000))[::-1] * 7  # named in falling order
    private = randomizer(generator.integers(0, 10, 20_000))
    pq.write_table(pa.table({"y": private, "g": groups}), path)
    table = open_table(path, "y", decoded.label, all_columns=True)
    batches: list[int] = []
    first, *others = count_outputs(
        [PrivateReader(table, decoded)], ["g"], Observer(rows=batches.append)
    )
    assert len(batches) > 1  # so later ones have new names
    assert [group.cell for group in others] == [(g,) for g in sorted(set(groups.tolist()))]
    for group in (first, *others):
        values = private if group is first else private[groups == group.cell[0]]
        found = group.by_table[0]
        counted = zip(found.outputs.tolist(), found.counts.tolist(), strict=True)
        assert {value(decoded.tables[0], o): n for o, n in counted} == Counter(values.tolist())
        assert (np.diff(found.outputs) > 0).all()


def test_bins_are_what_rr_on_bins_says(compiled):
    decoded, _ = compiled("rr_on_bins")
    estimation = Estimation.of(decoded)
    assert 1 < estimation.classes.count == decoded.tables[0].outputs < 10
    assert set(estimation.refused) == {"mean"}
    assert "the same outputs" in estimation.refused["mean"]
    (group,) = estimation([expected_counts(decoded, ROWS)], "rows")
    shares = np.bincount(estimation.classes.of_label, weights=ROWS) / ROWS.sum()
    assert group.histogram.value == pytest.approx(shares, abs=1e-6)


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "reason"),
    [
        # Labels outside the top have the mean of its rows: one mixture, two histograms.
        ("rr_top_k, k: 4", "2.0", "4 outputs cannot distinguish the shares of 5 labels"),
        ("rr_top_k, k: 1", "2.0", "all labels have the same output"),
        ("exponential", "0.1", "nearly the same outputs"),
    ],
)
def test_what_cannot_be_told_is_refused(compiled, mechanism, epsilon, reason):
    decoded, _ = compiled(mechanism, epsilon)
    with pytest.raises(PrivateLabelError, match=reason):
        Estimation.of(decoded)


def test_too_few_rows_have_no_interval(compiled):
    decoded, _ = compiled("randomized_response")
    small = of_one_table("small", np.array([0, 3]), np.array([4, 5]))
    (group,) = Estimation.of(decoded)([small], "rows")
    assert np.isnan(group.histogram.low).all() and np.isnan(group.mean.high).all()
    assert np.isfinite(group.histogram.value).all()
    assert all(q.interval is None for q in group.quantiles)
    assert group.mean.at(0)["low"] is None


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=12))
def test_the_projection_is_the_nearest_distribution(numbers):
    shares = np.array(numbers)
    projected = project_to_simplex(shares)
    assert projected.min() >= 0 and projected.sum() == pytest.approx(1)
    # The condition of optimality: shares − projected has its largest value where projected > 0.
    rest = shares - projected
    assert (rest[projected > 1e-9] >= rest.max() - 1e-9).all()


def test_quantiles_are_the_hull_of_what_is_not_excluded():
    value = np.array([0.1, 0.3, 0.28, 0.6, 0.9])
    cumulative = Estimates(value, 0 * value, value - 0.1, value + 0.1)
    found = quantiles(cumulative, np.diff(np.array([0.1, 0.3, 0.3, 0.6, 0.9, 1]), prepend=0))
    middle = next(q for q in found if q.share == 0.5)
    assert (middle.estimate, middle.interval) == (3, (3, 3))
    quarter = next(q for q in found if q.share == 0.25)
    assert (quarter.estimate, quarter.interval) == (1, (1, 3))
