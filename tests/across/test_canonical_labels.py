"""Canonical labels: exactly the labels that the graph cannot tell apart share one."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_runtime.columns import read_labels
from labeldp_runtime.domains import canonical_labels
from labeldp_runtime.elements import Lookup
from labeldp_verify.forms import CategoricalDomain, IntegerDomain, RealDomain
from labeldp_verify.forms.domain import missing_label
from labeldp_verify.graph import write_index_model

from runtime.tests.helpers import session_of

INTEGERS = [IntegerDomain(-3, 100), IntegerDomain(0, 9, default=4)]
REALS = [RealDomain(-1.5, 3.7, 11), RealDomain(0.0, 1.0, 7, default=0.3)]
UNBIASED = [
    RealDomain(-1.5, 3.7, 11, rounding="unbiased"),
    RealDomain(0.0, 1.0, 7, rounding="unbiased", default=0.0),
]
TEXT = CategoricalDomain(("red", "grün", ""), "grün")
CODES = CategoricalDomain((70, -2, 2**62, 0), -2)


def both(domain, labels):
    """Canonical labels, and the graph's rows, of any labels."""
    kind = "float64" if domain.kind == "real" else "int64"
    if domain.kind == "categorical" and domain.is_text:
        kind = "string"
    array = read_labels(labels, kind, missing_label(domain))[0]
    known = Lookup(domain.values) if kind == "string" else missing_label(domain)
    entropy = np.zeros((len(array), 2) if domain.words_per_label == 2 else len(array), np.uint64)
    feeds = {"label": array, "entropy": entropy}
    rows = session_of(write_index_model(domain)).run(None, feeds)[0]
    return canonical_labels(domain.to_json())(read_labels(labels, kind, known)[0]), rows


near_the_range = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(-2, 4),
    st.integers(-8, 110).map(float),
    st.none(),
)


@pytest.mark.parametrize("domain", INTEGERS)
@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.integers(-(2**70), 2**70) | st.integers(-9, 110) | st.none(), min_size=1))
def test_integers(domain, labels):
    canonical, rows = both(domain, labels)
    assert canonical.view(np.int64).tolist() == (rows + domain.min).tolist()


@pytest.mark.parametrize("domain", REALS)
@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(near_the_range, min_size=1))
def test_reals_on_the_nearest_point(domain, labels):
    canonical, rows = both(domain, labels)
    assert canonical.view(np.int64).tolist() == rows.tolist()


def test_reals_halfway_between_points():
    for domain in REALS:
        points = np.array([float(y) for y in domain.labels()])
        middles = (points[1:] + points[:-1]) / 2
        labels = np.concatenate([np.nextafter(middles, -9), middles, np.nextafter(middles, 9)])
        canonical, rows = both(domain, labels)
        assert canonical.view(np.int64).tolist() == rows.tolist()


@pytest.mark.parametrize("domain", UNBIASED)
@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(near_the_range, min_size=1), st.integers(0, 2**64 - 1))
def test_reals_before_unbiased_rounding(domain, labels, word):
    canonical, _ = both(domain, labels)
    for label, inside in zip(labels, canonical.view(np.float64).tolist(), strict=True):
        given_label = math.nan if label is None else label
        assert domain.min <= inside <= domain.max
        assert domain.position(inside) == domain.position(given_label)
        assert domain.index(inside, word) == domain.index(given_label, word)
        if domain.min < given_label < domain.max:
            assert inside == given_label


def test_zeros_of_both_signs_are_one_label():
    for domain in UNBIASED:
        canonical, _ = both(domain, [0.0, -0.0])
        assert canonical[0] == canonical[1]


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.sampled_from(["red", "grün", "", "Red", "x\0", None]), min_size=1))
def test_text_categories(labels):
    if any(label is not None for label in labels):
        canonical, rows = both(TEXT, labels)
        assert canonical.tolist() == rows.tolist()


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.sampled_from([70, -2, 2**62, 0, 1, -(2**63), 2**63 - 1, None]), min_size=1))
def test_integer_categories(labels):
    canonical, rows = both(CODES, labels)
    assert canonical.tolist() == rows.tolist()


def test_an_unknown_kind_of_domain_is_refused():
    with pytest.raises(ValueError, match="unknown kind"):
        canonical_labels({"kind": "circle", "out_of_domain": "clamp"})
