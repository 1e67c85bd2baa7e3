"""The exact privacy analysis against brute force over every offset."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labeldp_verify.forms.randomizers import Segment, WindowRandomizer, check_form

from verifier.tests.analysed import realised_ratio
from verifier.tests.integers import response


@st.composite
def small_randomizers(draw):
    """Any window randomizer of 8 bits: uneven, split segments, arbitrary offsets."""
    m = draw(st.integers(1, 4))
    base = draw(st.lists(st.integers(1, 50), min_size=m, max_size=m))
    window = 256 - sum(base)
    count = draw(st.integers(1, 6))
    lengths = draw(st.lists(st.integers(1, 80), min_size=count, max_size=count))
    lengths[-1] += max(0, window - sum(lengths))
    outputs = draw(st.lists(st.integers(0, m - 1), min_size=count, max_size=count))
    last = sum(lengths) - window
    offsets = [*draw(st.lists(st.integers(0, last), min_size=0, max_size=3)), last]
    values = sorted(draw(st.sets(st.integers(-20, 20), min_size=m, max_size=m)))
    extra = tuple(Segment(n, i) for n, i in zip(lengths, outputs, strict=True))
    return WindowRandomizer(8, tuple(base), extra, tuple(offsets), tuple(map(float, values)))


def brute_force_ratio(r):
    line = [s.output for s in r.extra for _ in range(s.length)]
    worst = Fraction(1)
    for s in range(len(line) - r.window + 1):
        window = line[s : s + r.window]
        for i, b in enumerate(r.base):
            worst = max(worst, Fraction(b + window.count(i), b))
    return worst


@settings(deadline=None, derandomize=True, max_examples=150)
@given(small_randomizers())
def test_the_worst_offset_is_found(randomizer):
    check_form(randomizer)
    expected = brute_force_ratio(randomizer)
    assert realised_ratio(randomizer) == expected


def test_malformed_integers_are_refused():
    good = response([0.0, 1.0], [0, 1], Fraction(1), 8)
    bad = [
        {"word_bits": 63},
        {"word_bits": 7},
        {"base": (0, *good.base[1:])},
        {"offsets": (-1, 5)},
        {"offsets": (0, 5)},
        {"values": (0.0,)},
        {"extra": (*good.extra, Segment(3, 2))},
    ]
    for change in bad:
        fields = {name: getattr(good, name) for name in good.__dataclass_fields__} | change
        with pytest.raises(ValueError, match=r"must"):
            check_form(WindowRandomizer(**fields))
