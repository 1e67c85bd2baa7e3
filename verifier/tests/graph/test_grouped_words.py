"""Tables by group: the graph gives exactly their counts, for every word, label and group."""

import random
from fractions import Fraction

import numpy as np
import onnxruntime
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.forms import (
    GroupedWindows,
    Groups,
    IntegerDomain,
    WindowRandomizer,
    check_groups,
)
from labeldp_verify.forms.randomizers import Segment
from labeldp_verify.graph import tables_digest

from verifier.tests.analysed import realised_ratio
from verifier.tests.files import DOMAIN, assert_exact, file_of, group_array, run
from verifier.tests.integers import (
    composition,
    grouped,
    plain_counts,
    response,
    some_windows,
)

UNLISTED = {int: (-(2**63), 2**63 - 1, -1, 3, 2**31, 2**32), str: ("", "A", "e\u0301", "other")}


@pytest.mark.parametrize(
    "values", [(7, -2, 2**40), (0, 1, 2), (2, 1, 0), (2**63 - 1, -(2**63), 0), ("a", "ü", "b c")]
)
def test_every_word_of_every_label_in_every_group(values):
    randomizer = grouped(values)
    model = file_of(DOMAIN, randomizer)
    assert check_bytes(model).ok
    unlisted = [v for v in UNLISTED[type(values[0])] if v not in values]
    assert_exact(model, randomizer, range(10, 14), unlisted)


@pytest.mark.parametrize("values", [(7, -2, 5), (0, 1, 2), ("a", "b", "c")])
def test_one_group_or_word_is_never_shared_by_several_labels(values):
    randomizer = grouped(values)
    model = file_of(DOMAIN, randomizer)
    groups = randomizer.groups

    def attempt(labels, words, of_groups):
        run(
            model,
            np.full(labels, 10),
            np.zeros(words, np.uint64),
            group_array(groups, values[0], of_groups),
        )

    attempt(6, 6, 6)
    attempt(0, 0, 0)
    for sizes in [(6, 6, 1), (1, 1, 6), (6, 1, 6), (1, 6, 6), (1, 6, 1), (6, 6, 5), (6, 6, 0)]:
        with pytest.raises(Exception, match=r"[Ss]hape"):
            attempt(*sizes)


def test_the_digest_tells_groups_tables_and_their_order_apart():
    windows = some_windows()
    variants = [
        GroupedWindows(Groups.of((1, 2, 3)), windows),
        GroupedWindows(Groups.of((1, 2, 4)), windows),
        GroupedWindows(Groups.of((3, 2, 1)), windows),
        GroupedWindows(Groups.of(("1", "2", "3")), windows),
        GroupedWindows(Groups.of((1, 2, 3)), windows[::-1]),
    ]
    digests = {tables_digest(DOMAIN, randomizer) for randomizer in variants}
    digests |= {tables_digest(DOMAIN, window) for window in windows}
    assert len(digests) == len(variants) + len(windows)


def test_a_table_without_a_window_and_one_whose_first_offset_is_not_0():
    nothing = WindowRandomizer(6, (30, 34), (), (0, 0), (1.0, 2.0))
    behind = response([1.0, 2.0], range(2), Fraction(1), 6)
    late = WindowRandomizer(6, behind.base, behind.extra, behind.offsets[1:] * 2, behind.values)
    randomizer = GroupedWindows(Groups.of((4,)), (nothing, late))
    model = file_of(IntegerDomain(1, 2), randomizer, Fraction(1))
    assert check_bytes(model).ok
    assert_exact(model, randomizer, [1, 2], [5])
    randomizer = GroupedWindows(Groups.of((4,)), (nothing, nothing))
    model = file_of(IntegerDomain(1, 2), randomizer, Fraction(1))
    assert check_bytes(model).ok
    assert plain_counts(nothing, 0) == plain_counts(nothing, 1)
    assert_exact(model, randomizer, [1, 2], [5])


@pytest.mark.parametrize("sizes", [range(2, 18), range(24, 40), range(42, 58)])
@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_ALL"])
def test_shifts_of_their_own_are_exact_at_every_size(sizes, level):
    windows = tuple(
        WindowRandomizer(b, (2 ** (b - 1), 2 ** (b - 1)), (), (0,) * 4, (1.0, 2.0)) for b in sizes
    )
    model = file_of(DOMAIN, GroupedWindows(Groups.of(tuple(range(len(windows) - 1))), windows))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    words, groups, expected = [], [], []
    for table, bits in enumerate(sizes):
        half = 2 ** (bits - 1)
        straddling = {2**31 - 1, 2**31, 2**32 - 1, 2**32}  # where some builds went wrong
        for u in {0, half - 1, half, half + 1, 2**bits - 1} | straddling:
            if u < 2**bits:
                words += [u << (64 - bits), ((u + 1) << (64 - bits)) - 1]
                groups += [table] * 2
                expected += [1.0 if u < half else 2.0] * 2
    feed = {
        "label": np.full(len(words), 10),
        "entropy": np.array(words, dtype=np.uint64),
        "group": np.array(groups),
    }
    assert session.run(None, feed)[0].tolist() == expected


def random_window(generator, labels, word_bits):
    """Any base, any segments, any offsets; the first need not be 0."""
    outputs = generator.randint(1, 5)
    total = generator.randint(max(outputs, 2**word_bits // 2), 2**word_bits)
    base = composition(generator, total, outputs)
    window = 2**word_bits - total
    offsets = [generator.randint(0, 2**word_bits // 3) for _ in range(labels)]
    length = window + max(offsets)
    parts = composition(generator, length, min(generator.randint(1, 6), length)) if length else ()
    extra = tuple(Segment(n, generator.randrange(outputs)) for n in parts)
    values = sorted(generator.sample(range(-50, 50), outputs))
    return WindowRandomizer(
        word_bits, base, extra, tuple(offsets), tuple(float(value) for value in values)
    )


@pytest.mark.parametrize("seed", range(12))
def test_random_tables_of_random_sizes(seed):
    generator = random.Random(seed)
    labels, count = generator.randint(2, 4), generator.randint(1, 5)
    bits = generator.choice([lambda: 9, lambda: generator.randint(6, 11)])
    windows = tuple(random_window(generator, labels, bits()) for _ in range(count + 1))
    values = generator.choice(
        [
            tuple(range(count)),
            tuple(generator.sample(range(-9, 9), count)),
            tuple(f"{n}" for n in generator.sample(range(99), count)),
        ]
    )
    randomizer = GroupedWindows(Groups.of(values), windows)
    domain = IntegerDomain(3, 2 + labels)
    loss = generator.choice(["squared", "absolute", "zero_one"])
    model = file_of(domain, randomizer, Fraction(12), loss)
    report = check_bytes(model)
    assert report.ok, report.checks
    assert report.artifact.lookup == randomizer
    ratios = (realised_ratio(window) for window in windows)
    assert Fraction(report.certificate.exact.realised_ratio) >= max(ratios)
    assert_exact(
        model,
        randomizer,
        range(3, 3 + labels),
        [row[0] for row in randomizer.groups.unlisted()[:2]],
    )


def test_the_poisson_loss_by_group():
    windows = [response([1.0, 2.0, 4.0], range(3), Fraction(e), 30) for e in (1, 2)]
    randomizer = GroupedWindows(Groups.of(("a",)), tuple(windows))
    report = check_bytes(file_of(IntegerDomain(1, 3), randomizer, Fraction(2), "poisson"))
    assert report.ok, report.checks
    assert report.certificate.exact.noisy_label_loss is None


def test_what_is_no_randomizer_by_group():
    for values, message in [
        ((1, 2, 2), "twice"),
        ((1, 2, "3"), "all text or all integers"),
        ((1, 2, 3.0), "all text or all integers"),
        ((1, 2, True), "all text or all integers"),
        ((), "all text or all integers"),
        ((1, 2, 2**63), "int64"),
        (("a", "b", "\0"), "NUL"),
    ]:
        with pytest.raises(ValueError, match=message):
            check_groups(Groups.of(values))


def test_words_that_are_too_long_for_so_many_tables():
    windows = some_windows(58) * 12
    randomizer = GroupedWindows(Groups.of(tuple(range(47))), windows)
    with pytest.raises((ValueError, OverflowError)):
        file_of(DOMAIN, randomizer)
    fits = GroupedWindows(Groups.of(tuple(range(47))), some_windows(52) * 12)
    assert check_bytes(file_of(DOMAIN, fits)).ok
