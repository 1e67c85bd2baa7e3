"""The runtime and the groups of labels: what is read how, what is refused, what a key binds."""

from decimal import Decimal

import numpy as np
import onnx
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from labeldp_runtime import (
    ArtifactError,
    GroupError,
    Key,
    PlatformError,
    Randomizer,
)
from labeldp_runtime.columns import are_one_column
from labeldp_runtime.randomizer import CHUNK

from runtime.tests.group_files import model
from runtime.tests.helpers import recertified, with_checksum
from runtime.tests.label_containers import NUMBERS as NUMBERS_OF
from runtime.tests.label_containers import TEXTS as TEXTS_OF

CODES, NAMES = (7, -2, 2**40), ("a", "b", "ü")
VALUES = (-3.5, 0.25, 1.0, 7.0)  # what the first of the tables answers
CONSTANT = 11.5  # what the third of the tables always answers
KEY = Key(bytes(range(32)))


@pytest.fixture(scope="module")
def codes():
    return Randomizer(model("codes"))


@pytest.fixture(scope="module")
def names():
    return Randomizer(model("names"))


def tables_of(randomizer, groups):
    """By the outputs, which of the tables each group met: those of groups have different ones."""
    n = len(groups)
    outputs = [set(VALUES), {10.0, 11.0, 12.0, 13.0}, {CONSTANT}, {10.5, 12.5}]
    found = []
    for value in randomizer([12] * n, groups=groups):
        found.append(next(i for i, values in enumerate(outputs) if value in values))
    return found


@pytest.mark.parametrize(
    ("name", "known", "containers"),
    [("codes", CODES, NUMBERS_OF), ("odd names", ("\x7f", "\x7f\x7f", ""), TEXTS_OF)],
)
def test_columns_of_every_container(name, known, containers):
    randomizer, kind = Randomizer(model(name)), type(known[0])
    for container in containers:
        groups = [v for v in container.values if v is None or type(v) is kind]
        if any(group in known for group in groups) and "bool" not in container.name:
            wanted = [known.index(v) if v in known else 3 for v in groups]
            assert tables_of(randomizer, container.make(groups)) == wanted, container.name


def test_groups_in_objects(codes):
    odd = (7, True, 7.0, "7", Decimal(7), None, [7], 2**64 + 7, -(2**70), np.int8(7), object())
    assert tables_of(codes, odd) == [0, 3, 3, 3, 3, 3, 3, 3, 3, 0, 3]
    assert tables_of(codes, [7, -2, 2**40, 0, None]) == [0, 1, 2, 3, 3]
    assert tables_of(codes, np.array([7, 2**64 - 2, 2**40], np.uint64)) == [0, 3, 2]


def test_numbered_groups_take_whatever_integer():
    randomizer = Randomizer(model("numbered"))
    groups = [0, 1, 2, 3, 4, -1, -(2**63), 2**63 - 1, 2**31, 2**32, None, 2**64]
    assert tables_of(randomizer, groups) == [0, 1, 2, *[3] * 9]


def test_the_stand_in_for_nulls_is_never_a_listed_group():
    randomizer = Randomizer(model("negative"))
    assert tables_of(randomizer, [None, -1, -2, -3]) == [3, 0, 1, 2]
    texts = ("\x7f", "\x7f\x7f", "")
    randomizer = Randomizer(model("odd names"))
    assert tables_of(randomizer, [None, *texts]) == [3, 0, 1, 2]


@pytest.mark.parametrize(
    "groups",
    [
        np.array([1.0, 2.0]),
        np.array(["a", "b"]),
        np.array(["2020-01-01"] * 2, dtype="datetime64[D]"),
        pa.array(["a", "b"]),
        pa.array([1, 2], pa.timestamp("s")),
        pd.Series([1.0, None]),
        pd.Series(["a", "b"], dtype="string"),
        pd.Series([1.5, 2.5], dtype="category"),
        pl.Series(["a", "b"]),
        "ab",
        7,
        [1],
        [],
    ],
)
def test_what_is_no_column_of_integers_is_one_clear_error(codes, groups):
    with pytest.raises(GroupError) as caught:
        codes([10, 11], groups=groups)
    assert "labels as" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_groups_belong_to_artifacts_with_groups(codes):
    with pytest.raises(GroupError, match=r"give groups=.*column 'g'"):
        codes([10, 11])
    plain = Randomizer(model("none"))
    with pytest.raises(GroupError, match="takes no groups"):
        plain([10, 11], groups=[7, 7])
    assert codes.group_columns == ["g"]
    assert plain.group_columns == plain.group_types == []
    assert codes.group_types == ["int64"]


def test_series_with_other_indexes_are_refused(codes):
    labels = pd.Series([10, 11], index=[3, 4])
    with pytest.raises(GroupError, match="different indexes"):
        codes(labels, groups=pd.Series([7, 7]))
    private = codes(labels, groups=pd.Series([2**40, 2**40], index=[3, 4]))
    assert private.tolist() == [CONSTANT] * 2
    assert private.index.tolist() == [3, 4]


def test_batches_that_mix_groups_are_cut_with_their_groups(codes):
    generator = np.random.default_rng(2)
    n = 2 * CHUNK + 77
    labels = generator.integers(8, 16, n)
    groups = np.array([*CODES, 0])[generator.integers(0, 4, n)]
    words = generator.integers(0, 2**64, n, np.uint64)
    together = codes.apply_words(labels, words, groups)
    for value in (*CODES, 0):
        here = groups == value
        alone = codes.apply_words(labels[here], words[here], groups[here])
        assert np.array_equal(together[here], alone)
    with pytest.raises(GroupError):
        codes.apply_words(labels, words)


# What a key binds.


def keyed(model, context="y"):
    return Randomizer(model, key=KEY, context=context)


def test_replays_are_the_same_whatever_the_order_and_the_container():
    randomizer = keyed(model("codes"))
    generator = np.random.default_rng(3)
    labels, ids = generator.integers(8, 16, 400), np.arange(400)
    groups = np.array([*CODES, 0, 1])[generator.integers(0, 5, 400)]
    first = randomizer(labels, groups=groups, ids=ids)
    turn = generator.permutation(400)
    again = randomizer(labels[turn], groups=pa.array(groups[turn]), ids=ids[turn].tolist())
    assert np.array_equal(first[turn], again)
    others = np.where(np.isin(groups, [0, 1]), -9, groups)  # unlisted groups are one group
    assert np.array_equal(first, randomizer(labels, groups=others, ids=ids))


# What a file must be.


def test_a_damaged_table_of_one_group_is_found_by_the_vectors():
    proto = onnx.load_from_string(model("codes"))
    moves = next(t for t in proto.graph.initializer if t.name == "moves")
    numbers = np.frombuffer(moves.raw_data, np.int64).reshape(4, -1).copy()
    numbers[1] = np.roll(numbers[1], 2)  # the second table: its labels change places
    moves.raw_data = numbers.tobytes()
    with pytest.raises(PlatformError):
        Randomizer(with_checksum(proto))


def test_a_certificate_whose_groups_are_not_the_graph_s():
    for name, change in (
        ("codes", lambda c: c.pop("groups")),
        ("none", lambda c: c.update(groups={"column": "g", "values": [1]})),
    ):
        with pytest.raises(ArtifactError, match="certificate is damaged"):
            Randomizer(recertified(model(name), change))


@pytest.mark.parametrize(
    "stated",
    [
        None,
        [],
        {"column": "g"},
        {"column": "g", "values": "abc"},
        {"column": "g", "values": ["7", "-2", "8"]},
        {"column": "g", "values": [7, 2**63, 8]},
        {"column": "g", "values": [7, 1e300, 8]},
    ],
)
def test_hostile_lists_of_groups_are_a_damaged_certificate(stated):
    damaged = recertified(model("codes"), lambda c: c.update(groups=stated))
    with pytest.raises(ArtifactError, match="certificate is damaged"):
        Randomizer(damaged)


NUMBERS = [10, 11, 12]
FRAME = pd.DataFrame({"y": NUMBERS, "g": [7, -2, 0], "other": [7, -2, 0]})
ARROWS = FRAME.astype("int64[pyarrow]")
TABLE = pa.table({"y": NUMBERS, "g": [7, -2, 0]})
POLARS = pl.DataFrame({"y": NUMBERS, "g": [7, -2, 0]})
ARRAY = np.array(NUMBERS)
ONE_COLUMN = {
    "the same list": (NUMBERS, {"groups": NUMBERS}),
    "a view": (ARRAY, {"groups": ARRAY[:]}),
    "the same list in a mapping": (NUMBERS, {"columns": {"y": 1, "g": NUMBERS}}),
    "pandas, the column of the groups": (FRAME["g"], {"columns": FRAME}),
    "pandas, a copy": (FRAME["y"], {"groups": FRAME["y"].copy()}),
    "pandas, of another type": (FRAME["y"], {"groups": FRAME["y"].astype("int8")}),
    "pandas, renamed in a frame": (
        FRAME["y"],
        {"columns": FRAME[["y"]].rename(columns={"y": "g"})},
    ),
    "pandas, of Arrow, as a category": (ARROWS["y"], {"groups": ARROWS["y"].astype("category")}),
    "pandas, its array": (FRAME["y"].to_numpy(), {"groups": FRAME["y"]}),
    "arrow": (TABLE["y"], {"groups": TABLE["y"]}),
    "arrow, a chunk": (TABLE["y"].chunk(0), {"groups": TABLE["y"]}),
    "arrow, of numpy": (ARRAY, {"groups": pa.array(ARRAY)}),
    "polars, the column of the groups": (POLARS["g"], {"columns": POLARS}),
}


@pytest.mark.parametrize("name", ONE_COLUMN)
def test_the_label_is_not_its_own_group(codes, name):
    labels, given = ONE_COLUMN[name]
    with pytest.raises(GroupError, match="is the label, which cannot be its own group"):
        codes(labels, **given)
    words = np.zeros(3, dtype=np.uint64)
    with pytest.raises(GroupError, match="is the label, which cannot be its own group"):
        codes.apply_words(labels, words, **given)


EQUAL = {
    "arrays": lambda: np.array(NUMBERS),
    "chunks": lambda: pa.chunked_array([NUMBERS[:1], NUMBERS[1:]]),
    "pandas": lambda: pd.Series(NUMBERS),
    "polars": lambda: pl.Series(NUMBERS),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_values_make_no_column_the_label(codes, name):
    """A refusal would tell that all labels are equal to their groups."""
    assert len(codes(EQUAL[name](), groups=EQUAL[name]())) == 3


TEXT = ["a", "b", "a longer text than a view holds in itself"]
TEXTS_TWICE = {
    "arrow": lambda: pa.table({"y": TEXT}),
    "arrow, dictionary": lambda: pa.table({"y": pa.array(TEXT).dictionary_encode()}),
    "pandas": lambda: pd.DataFrame({"y": pd.Series(TEXT, dtype="str")}),
    "polars": lambda: pl.DataFrame({"y": TEXT}),
}


@pytest.mark.parametrize("name", TEXTS_TWICE)
def test_a_column_of_text_is_itself_under_another_name(name):
    frame, equal = TEXTS_TWICE[name](), TEXTS_TWICE[name]()
    column = frame["y"]
    under_another = column if isinstance(frame, pa.Table) else column.rename("g")
    assert are_one_column(column, under_another)
    other = equal["y"] if isinstance(equal, pa.Table) else equal["y"].rename("g")
    assert not are_one_column(column, other)
    if isinstance(frame, pa.Table):
        assert are_one_column(frame["y"].slice(1), frame["y"].slice(1))
        assert not are_one_column(frame["y"].slice(1), frame["y"].slice(0, 2))


def test_columns_without_rows_are_not_one(codes):
    assert not are_one_column(pa.nulls(3), pa.nulls(3))
    empty = np.array([], dtype=np.int64)
    assert len(codes(empty[:0], groups=empty[0:])) == 0


def test_an_artifact_whose_group_is_the_label_is_none():
    damaged = recertified(
        model("codes"), lambda c: c["groups"]["columns"][0].update(name=c["label"]["column"])
    )
    with pytest.raises(ArtifactError):
        Randomizer(damaged)
