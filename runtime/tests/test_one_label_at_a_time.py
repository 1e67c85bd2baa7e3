"""Replacing one label never changes how another is read, raises, warns, or takes another way."""

import sys
import warnings
from decimal import Decimal
from pathlib import Path

import labeldp_runtime
import numpy as np
import pytest
from labeldp_runtime.columns import read_labels
from labeldp_runtime.domains import canonical_labels
from labeldp_runtime.elements import Lookup

from runtime.tests.label_containers import CONTAINERS, HostileInt, HostileText


def categories(values, default):
    return {"kind": "categorical", "values": values, "out_of_domain": {"default": default}}


def real(low, high, points, rounding):
    domain = {"kind": "real", "min": low, "max": high, "points": points, "rounding": rounding}
    return {**domain, "out_of_domain": "clamp"}


DOMAINS = {
    "int64": [
        {"kind": "integer", "min": 0, "max": 9, "out_of_domain": {"default": 4}},
        categories([3, -20, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)], 3),
    ],
    "float64": [real(-1.5, 9.5, 12, "unbiased"), real(0.0, 9.0, 10, "nearest")],
    "string": [categories(["red", "grün", "", "3", "red\0"], "grün")],
}
# Codes are text as randomizers read it.
CASES = [(c, element) for c in CONTAINERS for element in [*DOMAINS, "codes"]]
ENDS = [2**63 - 1, -(2**63)]  # of int64
OURS = str(Path(labeldp_runtime.__file__).parent)
ELEMENTS = str(Path(OURS) / "elements.py")


def the_way(read):
    """The result of a function, and which calls the runtime's code made on the way, in order.

    What is called for one element after the other is one step: ``elements`` reads each object, and
    a loop over the values that differ runs as often as there are such values.
    """
    steps = []

    def note(frame, event, argument):
        name = frame.f_code.co_filename
        if not name.startswith(OURS) or name == ELEMENTS or event not in ("call", "c_call"):
            return
        called = argument.__qualname__ if event == "c_call" else frame.f_code.co_qualname
        step = (frame.f_code.co_qualname, called)
        if not steps or steps[-1] != step:
            steps.append(step)

    sys.setprofile(note)
    try:
        result = read()
    finally:
        sys.setprofile(None)
    return result, steps


@pytest.mark.parametrize(
    ("container", "element"), CASES, ids=lambda x: getattr(x, "name", x).replace("\0", "")
)
def test_one_label(container, element):
    base = [container.values[i % len(container.values)] for i in (0, 1, 2, 0, 3, 1)]
    codes, element = element == "codes", "string" if element == "codes" else element
    domains = DOMAINS[element]
    rule = domains[0]["out_of_domain"]
    missing = domains[0]["min"] if rule == "clamp" else rule["default"]
    missing = Lookup(domains[0]["values"]) if codes else missing
    if element == "string" and not codes:
        canonicals = [lambda texts: Lookup(domains[0]["values"]).codes(texts.tolist())]
    else:
        canonicals = [canonical_labels(domain) for domain in domains]

    def read(values):
        with warnings.catch_warnings():  # numpy warns when such a column is made
            warnings.simplefilter("ignore")
            column = container.make(values)
        (array, _), way = the_way(lambda: read_labels(column, element, missing))
        assert len(array) == len(values)
        return [canonical(array) for canonical in canonicals], way

    read(base)  # which may import a library
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected, way = read(base)
        for number, value in enumerate(container.values):
            place = number % len(base)
            found, other_way = read([*base[:place], value, *base[place + 1 :]])
            for before, after in zip(expected, found, strict=True):
                assert np.array_equal(np.delete(before, place), np.delete(after, place))
            assert other_way == way
        for value in container.values:  # alone, or all alike
            for count in (1, 4):
                for labels in read([value] * count)[0]:
                    assert len(set(labels.tolist())) == 1
    if container.text is not None and "raw" not in container.name:
        with np.errstate(all="ignore"):
            column = container.make(list(container.values))
        objects = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
        one, other = (read_labels(each, element, missing)[0] for each in (column, objects))
        assert np.array_equal(one, other, equal_nan=element == "float64")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1, 2**53 + 1, 0.5, HostileInt(7)], [1, 2**53 + 1, 0, 7]),
        ([True, False, Decimal("2.5"), Decimal("-0.6")], [1, 0, 2, -1]),
        ([2.5, 3.5, -0.5, 1e300, -1e300, np.longdouble(2) ** 62 + 1], [2, 4, 0, *ENDS, 2**62 + 1]),
        (np.array([2**62 + 1], np.longdouble), [2**62 + 1]),
        (np.array([1e300, -1e300, np.nan]), [*ENDS, -1]),
        (np.array([2**64 - 1], ">u8"), [2**63 - 1]),
    ],
)
def test_numbers_keep_their_value(labels, expected):
    assert read_labels(labels, "int64", -1)[0].tolist() == expected


def test_text_is_itself():
    labels = ["red", HostileText("grün"), "red\0", "a\ud800", b"red", np.str_("red")]
    known = Lookup(["a?", "red", "grün", "red\0"])
    assert read_labels(labels, "string", known)[0].tolist() == [1, 2, 3, 0, 4, 1]
    expected = ["red", "grün", "red\0", "a?", "", "red"]
    found = read_labels(labels, "string", "")[0].tolist()
    assert found == expected
    assert {type(text) for text in found} == {str}
