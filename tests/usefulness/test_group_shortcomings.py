"""What is wrong with tables by group is said once, of the groups it is true of, everywhere."""

from collections import defaultdict
from fractions import Fraction

import pytest
from labeldp_verify import check_bytes
from labeldp_verify.forms import CategoricalDomain, GroupedWindows, Groups, IntegerDomain
from labeldp_verify.usefulness import shortcomings
from labeldp_verify.usefulness.shortcomings import relevant

from labeldp_compile.rounding.windows import randomized_response
from verifier.tests.files import DOMAIN, file_of
from verifier.tests.integers import grouped, uneven

FOUR = [float(y) for y in range(10, 14)]
TOGETHER = "4 labels form 2 groups; no output distinguishes labels of one group"
NO_WEIGHTS = (
    "no useful weights make private labels right on average. The mean of the true labels cannot "
    "be estimated, and models trained on them stay biased"
)


def of(windows, **options):
    """What a verified file of these tables is found to lack."""
    groups = Groups.of(tuple(f"g{i}" for i in range(len(windows) - 1)), "g")
    report = check_bytes(
        file_of(options.pop("domain", DOMAIN), GroupedWindows(groups, tuple(windows)), **options)
    )
    return report.verified()


def response(epsilon=2):
    return randomized_response(FOUR, range(4), Fraction(epsilon), 20)


def bins(low=10.5, ends=(0, 0, 1, 1), epsilon=2):
    outputs = [low, *range(11, 11 + max(ends))]
    return randomized_response([float(v) for v in outputs], list(ends), Fraction(epsilon), 20)


def for_training(found):
    return relevant(found.shortcomings, "training")


def texts(found):
    return [one.text for one in for_training(found)]


def test_each_thing_is_said_once_with_its_groups():
    assert texts(of([response(), response(), response()])) == []
    assert texts(of([bins(), response(), bins(9.5)])) == [
        f"groups 'g0', other: {TOGETHER}",
        f"groups 'g0', other: {NO_WEIGHTS}",
    ]
    every = texts(of([bins(), bins()]))
    assert every == [f"in all 2 groups: {TOGETHER}", f"in all 2 groups: {NO_WEIGHTS}"]
    one_table = GroupedWindows(Groups(Groups.of(("a", "b")).columns, (0, 0), 0), (bins(),))
    report = check_bytes(file_of(DOMAIN, one_table, sizes=[100])).require()
    assert texts(report.artifact) == [TOGETHER, NO_WEIGHTS]
    assert texts(report.artifact) == texts(report.artifact.table(0))


@pytest.mark.parametrize("loss", ["squared", "zero_one"])
@pytest.mark.parametrize("numbers", [True, False])
def test_every_table_lacks_what_it_lacks_alone(loss, numbers):
    windows = [*grouped().windows, bins(ends=(0, 0, 1, 2)), response(), response(1), uneven(12)]
    domain = IntegerDomain(10, 13)
    if not numbers:
        loss = "zero_one"
        domain = CategoricalDomain(("a", "b", "c", "d"), "a")
        windows = [randomized_response(list("abcd"), range(4), Fraction(i), 20) for i in (1, 2)]
        windows.append(randomized_response(["a", "b"], [0, 0, 1, 1], Fraction(2), 20))
    found = of(windows, domain=domain, loss=loss)
    alone = defaultdict(set)
    for i in range(len(windows)):
        for one in for_training(found.table(i)):
            alone[one.kind].add(one.text)
    together = defaultdict(set)
    for one in for_training(found):
        together[one.kind].add(one.text.split(": ", 1)[1])
    assert together == alone
    assert {"told_apart_from_none", "not_estimable"} <= set(alone)


def test_weights_are_not_looked_for_without_end(monkeypatch, limit):
    calls = []
    real = shortcomings.inverse_of
    monkeypatch.setattr(shortcomings, "inverse_of", lambda *table: calls.append(1) or real(*table))
    windows = [response(Fraction(11 + i, 10)) for i in range(5)]
    assert texts(of([*windows, *windows])) == []
    assert len(calls) == 5  # equal tables once
    limit(shortcomings, "_WORK", 2 * (shortcomings._TABLE_WORK + 4 * 4 * 8))
    calls.clear()
    assert texts(of(windows)) == []
    assert len(calls) == 2
