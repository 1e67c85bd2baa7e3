"""However a column of labels is stored, each label is read by itself, and none is quoted."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from labeldp_trainer.data.labels import Task, class_labels, declared, label_numbers, places
from labeldp_trainer.errors import DataError

LARGE = 2**53 + 1  # no float64
SECRET = b"secret \xff"


def opaque(values):
    return pa.ExtensionArray.from_storage(pa.opaque(values.type, "any", "vendor"), values)


def booleans(values):
    return pa.array([None if value is None else bool(value) for value in values])


def bool8(values):
    return pa.ExtensionArray.from_storage(pa.bool8(), pa.array(values, pa.int8()))


def in_chunks(values):
    return pa.chunked_array([values[:1], values[1:]])


NUMBERS = {
    "integers": pa.array,
    "floats": lambda values: pa.array(values, pa.float32()),
    "halves": lambda values: pa.array(values, pa.float16()),
    "decimals": lambda values: pa.array(
        [v if v is None else Decimal(v) for v in values], pa.decimal128(9, 2)
    ),
    "booleans": booleans,
    "dictionary": lambda values: pa.array(values).dictionary_encode(),
    "bool8": bool8,
    "runs": lambda values: pc.run_end_encode(pa.array(values)),
    "opaque": lambda values: opaque(pa.array(values)),
    "opaque booleans": lambda values: opaque(booleans(values)),
    "opaque dictionary": lambda values: opaque(pa.array(values).dictionary_encode()),
    "twice opaque, in chunks": lambda values: in_chunks(opaque(opaque(pa.array(values)))),
}
TEXTS = {
    "text": lambda values: values.view(pa.string()),
    "large": lambda values: values.cast(pa.large_binary()).view(pa.large_string()),
    "view": lambda values: values.cast(pa.binary_view()).view(pa.string_view()),
    "dictionary": lambda values: values.view(pa.string()).dictionary_encode(),
    "opaque, in chunks": lambda values: in_chunks(opaque(values.view(pa.string()))),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("stored", NUMBERS.values(), ids=NUMBERS)
def test_a_null_changes_no_other_number(stored):
    assert declared(stored([1, 0, 1])) == declared(stored([1, 0, None]))
    assert label_numbers(stored([1, 0, 1]), 0.0, 10.0, None).tolist() == [1, 0, 1]
    assert label_numbers(stored([1, 0, None]), 0.0, 10.0, None).tolist() == [1, 0, 5]
    assert class_labels(stored([1, 0, 1]), (0, 1), None).tolist() == [1, 0, 1]
    assert class_labels(stored([1, 0, None]), (0, 1), None).tolist() == [1, 0, 0]
    assert Task().targets(stored([1, 0, 1]), "t", "y").tolist() == [1, 0, 1]


@pytest.mark.parametrize("stored", [pa.array, lambda values: opaque(pa.array(values))])
def test_a_null_makes_no_float_of_a_large_class(stored):
    assert places(stored([LARGE, 5, 5]), (5, LARGE)).tolist() == [1, 0, 0]
    assert places(stored([LARGE, 5, None]), (5, LARGE)).tolist() == [1, 0, -1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [np.uint16, np.uint32, np.uint64])
def test_a_signaling_nan_says_nothing(kind):
    bits = {np.uint16: 0x7C01, np.uint32: 0x7F800001, np.uint64: 0x7FF0000000000001}[kind]
    values = np.array([bits, 0], kind).view(f"f{kind().itemsize}")
    assert label_numbers(pa.array(values), 0.0, 10.0, None).tolist() == [5, 0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("stored", TEXTS.values(), ids=TEXTS)
def test_text_that_is_not_utf8_is_unknown(stored):
    labels = stored(pa.array([b"b", SECRET, None, b"a"]))
    assert places(labels, ("a", "b", "c")).tolist() == [1, -1, -1, 0]
    assert class_labels(labels, ("a", "b", "c"), "c").tolist() == [1, 2, 2, 0]
    assert label_numbers(labels, 0.0, 10.0, 3.0).tolist() == [3, 3, 3, 3]
    for task in (Task(), Task(("a", "b"))):
        with pytest.raises(DataError) as error:
            task.targets(labels, "t", "y")
        assert "secret" not in str(error.value)
