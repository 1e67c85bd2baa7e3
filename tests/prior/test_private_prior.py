"""The private histogram: what is counted, the noise, what it costs, and the projection."""

import itertools
import math
from fractions import Fraction

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.forms import IntegerDomain, RealDomain

from labeldp_compile.prior.histogram import count_labels
from labeldp_compile.prior.obtain import estimate_prior
from labeldp_compile.prior.priors import project_to_total
from labeldp_compile.spec import parse_spec
from labeldp_compile.tabular.reader import open_table
from tests.fixtures.specs import spec

SPEC = spec(
    labels=5, split="{prior: 0.4, label: 0.6}", prior="{kind: private, data: labels.parquet}"
)


def counts_of(tmp_path, domain, values, suffix="parquet"):
    path = tmp_path / f"labels.{suffix}"
    table = pa.table({"other": pa.array(range(len(values))), "y": values})
    if suffix == "csv":
        pa_csv.write_csv(table, path)
    else:
        pq.write_table(table, path)
    return count_labels(open_table(path, "y", domain, all_columns=False))[0].tolist()


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_every_row_counts_and_out_of_domain_rows_are_clamped(tmp_path, suffix):
    values = pa.array([0, 4, 4, -7, 99, 2**62, None, 1])
    assert counts_of(tmp_path, IntegerDomain(0, 4), values, suffix) == [3, 1, 0, 0, 4]
    assert counts_of(tmp_path, IntegerDomain(0, 4, default=3), values, suffix) == [1, 1, 0, 4, 2]


def test_integer_labels_in_floating_point_columns(tmp_path):
    values = pa.array([0.4, 0.5, 1.5, math.nan, math.inf, -math.inf, None, 3.7])
    assert counts_of(tmp_path, IntegerDomain(0, 4), values) == [5, 0, 1, 0, 2]
    assert counts_of(tmp_path, IntegerDomain(0, 4, default=3), values) == [2, 0, 1, 4, 1]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_real_labels_go_to_the_nearest_grid_point(tmp_path, suffix):
    values = pa.array([0.0, 0.124, 0.125, 0.3, 1.0, 7.0, math.nan, -1e300, None])
    domain = RealDomain(0.0, 1.0, 5)
    assert counts_of(tmp_path, domain, values, suffix) == [5, 2, 0, 0, 2]
    with_default = RealDomain(0.0, 1.0, 5, default=0.5)
    assert counts_of(tmp_path, with_default, values, suffix) == [2, 2, 4, 0, 1]


def test_real_labels_are_rounded_at_random_like_the_artifact_does(tmp_path):
    values = pa.array([0.3] * 20000)
    counts = counts_of(tmp_path, RealDomain(0.0, 1.0, 2, "unbiased"), values)
    assert sum(counts) == 20000
    assert abs(counts[1] - 6000) < 7 * math.sqrt(20000 * 0.21)


def test_a_private_prior_states_what_it_spent_and_nothing_exact(tmp_path):
    labels = [0] * 500 + [1] * 300 + [4] * 200
    pq.write_table(pa.table({"y": labels}), tmp_path / "labels.parquet")
    parsed = parse_spec(SPEC)
    first, *others = (estimate_prior(parsed, tmp_path) for _ in range(6))
    assert first.epsilon_prior == Fraction(2, 5) and first.epsilon_label == Fraction(3, 5)
    assert first.statement["rows"] == 1000 and first.statement["l1_sensitivity"] == 2
    assert first.statement["scale"] == pytest.approx(5.0)
    # Fresh noise each time: two are equal once in 8,000 times, six are not within 10^18.
    assert any(other.weights != first.weights for other in others)
    seeded = [estimate_prior(parsed, tmp_path, test_seed=3).weights for _ in range(2)]
    assert seeded[0] == seeded[1]


@settings(deadline=None, derandomize=True, max_examples=80)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=5), st.integers(1, 12))
def test_the_projection_is_the_nearest_histogram(counts, total):
    weights = project_to_total(counts, total)
    assert min(weights) >= 0 and sum(weights) > 0
    nearest = [Fraction(w * total, sum(weights)) for w in weights]
    best = sum((a - b) ** 2 for a, b in zip(nearest, counts, strict=True))
    # No histogram with integer or half-integer counts and the same total lies nearer.
    steps = range(2 * total + 1)
    for halves in itertools.product(steps, repeat=min(len(counts), 3)):
        rest = len(counts) - len(halves)
        if sum(halves) != 2 * total:
            continue
        other = [Fraction(h, 2) for h in halves] + [Fraction(0)] * rest
        assert best <= sum((a - b) ** 2 for a, b in zip(other, counts, strict=True))


def test_public_weights_become_integers_in_proportion():
    parsed = parse_spec(spec(prior="{kind: public, weights: [0.35, 0.1, 0.05, 0, 1e-3]}", labels=5))
    assert parsed.prior.integer_weights == [350, 100, 50, 0, 1]
    prior = estimate_prior(parsed, None)
    assert prior.epsilon_prior == 0 and prior.epsilon_label == 1
