"""Labels of several columns: what goes in and comes out, what a key binds, what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from labeldp_runtime import (
    ArtifactError,
    DamagedArtifactError,
    GroupError,
    Key,
    LabelError,
    PlatformError,
    Randomizer,
)

from runtime.tests import group_files
from runtime.tests.helpers import recertified, restated
from runtime.tests.joint_files import NAMES, ODD, combinations, everything, model, number

KEY = Key(bytes(range(32)))


def fresh(name):
    return Randomizer(model(name))


def keyed(name, context="pair"):
    return Randomizer(model(name), key=KEY, context=context)


def lists(private):
    """Private columns, or numbers of sets, as lists."""
    if not isinstance(private, dict):
        return np.asarray(private).tolist()
    return [np.asarray(column).tolist() for column in private.values()]


@pytest.mark.parametrize("name", ODD)
def test_each_column_treats_what_lies_outside_by_its_own_rule(name):
    labels, places = ODD[name]
    numbers = [number(name, each) for each in places]
    randomizer, generator = fresh(name), np.random.default_rng(2)
    ids = list(range(len(numbers)))
    inside = {n: [v[i] for i in numbers] for n, v in everything(name).items()}
    assert lists(keyed(name)(labels, ids=ids)) == lists(keyed(name)(inside, ids=ids))
    for _ in range(200):
        words = generator.integers(0, 2**64, len(numbers), np.uint64)
        of_labels, of_others = (randomizer.apply_words(each, words) for each in (labels, inside))
        assert lists(of_labels) == lists(of_others)


TABLE = {"converted": ["no", "yes", None, "x"], "value": [0, 4, None, 99], "other": [1, 2, 3, 4]}
CONTAINERS = {
    "lists": (TABLE, np.ndarray),
    "pandas": (pd.DataFrame(TABLE, index=[4, 4, 0, 1]), pd.Series),
    "polars": (pl.DataFrame(TABLE), pl.Series),
    "pyarrow": (pa.table(TABLE), pa.ChunkedArray),
    "a batch of pyarrow": (pa.RecordBatch.from_pydict(TABLE), pa.Array),
}


@pytest.mark.parametrize("name", ["text", "sets"])
@pytest.mark.parametrize("kind", CONTAINERS)
def test_columns_come_out_in_their_own_kind(name, kind):
    labels, wanted = CONTAINERS[kind]
    randomizer, ids = keyed(name), ["a", "b", "c", "d"]
    private = randomizer(labels, ids=ids)
    assert lists(private) == lists(randomizer(TABLE, ids=ids))
    columns = private if isinstance(private, dict) else {"private_label": private}
    assert list(columns) == (["private_label"] if name == "sets" else NAMES[name])
    for own, column in columns.items():
        assert isinstance(column, wanted)
        if wanted in (pd.Series, pl.Series):
            assert column.name == own
        if wanted is pd.Series:
            assert column.index.tolist() == [4, 4, 0, 1]


@pytest.mark.parametrize("name", ["sets", "large ε", "large ε, grid"])
def test_sets_hold_combinations(name):
    randomizer, every = fresh(name), combinations(name)
    assert randomizer.classes == every
    if name != "sets":
        assert all(randomizer.members(each) == [each] for each in every)
        private = randomizer(everything(name))
        for row in zip(*private.values(), strict=True):
            assert randomizer.members(row) == [row]
        strange = (3, "no", ("no",), ("no", 9, 0.1), ("no", None, 0.1), ("no", [1], 0.1), None)
        for output in (*strange, ["no", 0, 0.1], ("no", 0, 0.1, 1)):
            with pytest.raises(ValueError, match="not a private label of the artifact"):
                randomizer.members(output)
        return
    blocks = randomizer.certificate["sets"]["blocks"]
    for output, block in enumerate(blocks):
        held = [each for i, each in enumerate(every) if int(block, 16) >> i & 1]
        assert randomizer.members(output) == held
        assert randomizer.membership[output].sum() == len(held)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["no"], r"several columns: give \['converted', 'value'\] by name"),
        (np.array([("no", 1)], dtype=[("converted", "U3"), ("value", "i8")]), "several columns"),
        (pd.Series({"converted": "no", "value": 1}), "several columns"),
        (pa.array([{"converted": "no", "value": 1}]), "several columns"),
        (7, "no column 'converted' of labels"),
        ({"converted": ["no"]}, "no column 'value' of labels"),
        (pa.table({"value": [1]}), "no column 'converted' of labels"),
        ({"converted": ["no"], "value": [1, 2]}, r"different lengths: \[1, 2\]"),
        ({"converted": np.array(["no"]), "value": np.array([[1]])}, "'value': expected labels of"),
        ({"converted": ["no"], "value": "a"}, "the column 'value': expected labels"),
        (
            {"converted": pd.Series(["no"], index=[3]), "value": pd.Series([1])},
            "different indexes",
        ),
    ],
)
def test_what_are_no_label_columns_is_one_clear_error(labels, message):
    for randomizer in (fresh("text"), fresh("sets")):
        with pytest.raises(LabelError, match=message) as caught:
            randomizer(labels)
        assert "\n" not in str(caught.value)


BOTH = group_files.model("joint labels")
LABELS = {"sold": ["no", "é", None, "yes"] * 50, "value": [1.0, None, -9.0, 0.4] * 50}
GROUPS = [7, -2, None, 3] * 50


def test_labels_of_several_columns_with_groups():
    randomizer = Randomizer(BOTH)
    assert (randomizer.label_columns, randomizer.group_columns) == (["sold", "value"], ["g"])
    private = randomizer(LABELS, groups=GROUPS)
    assert list(private) == ["sold", "value"]
    constant = {name: column[1::4].tolist() for name, column in private.items()}
    assert constant == {"sold": ["yes"] * 50, "value": [0.0] * 50}
    with pytest.raises(GroupError, match="give groups="):
        randomizer(LABELS)
    with pytest.raises(GroupError, match="is the label"):
        randomizer(LABELS, columns={"g": LABELS["value"]})


@pytest.mark.parametrize("make", [pl.DataFrame, pa.table, dict])
def test_a_key_binds_the_combination_and_its_group(make):
    randomizer, ids = Randomizer(BOTH, key=KEY, context="pair"), [f"row {i}" for i in range(200)]
    frame = make({**LABELS, "g": GROUPS})
    first = lists(randomizer(frame, columns=frame, ids=ids))
    assert first == lists(randomizer(LABELS, groups=GROUPS, ids=ids))
    unlisted = [99 if group in (None, 3) else group for group in GROUPS]
    assert first == lists(randomizer(LABELS, groups=unlisted, ids=ids))
    others = lists(randomizer(LABELS, groups=[7] * 200, ids=ids))
    assert [column[::4] for column in others] == [column[::4] for column in first]
    assert others[0][2::4] != first[0][2::4]


# What a file must be.

BROKEN = {
    "no names": lambda c: c.pop("joint"),
    "a name too few": lambda c: c["joint"]["columns"].pop(),
    "one name twice": lambda c: c["joint"]["columns"][0].update(name="value"),
    "a name that is none": lambda c: c["joint"]["columns"][0].update(name=7),
    "a domain too few": lambda c: c["label"]["domain"]["columns"].pop(),
    "another kind": lambda c: c["label"]["domain"]["columns"][0].pop("out_of_domain"),
    "a label of one column": lambda c: c["label"].update(domain=c["label"]["domain"]["columns"][0]),
}


@pytest.mark.parametrize("damage", BROKEN)
@pytest.mark.parametrize("name", ["text", "sets"])
def test_a_certificate_whose_columns_are_not_the_graph_s_is_refused(name, damage):
    damaged = recertified(model(name), BROKEN[damage])
    with pytest.raises(ArtifactError, match="certificate is damaged"):
        Randomizer(damaged)


@pytest.mark.parametrize(
    "change",
    [
        {"points": 2**40},
        {"points": 1},
        {"min": -(10**400)},
        {"points": "4"},
    ],
)
def test_a_huge_grid_in_a_damaged_file_is_no_work(change):
    damage = lambda c: c["label"]["domain"]["columns"][2].update(change)  # noqa: E731
    with pytest.raises(DamagedArtifactError):
        Randomizer(recertified(model("large ε, grid"), damage))


@pytest.mark.parametrize("reach", [2**40, 2**53, 2**63])
def test_a_huge_range_in_a_damaged_file_is_no_work(reach):
    damage = lambda c: c["label"]["domain"]["columns"][1].update(min=-reach, max=reach)  # noqa: E731
    with pytest.raises(DamagedArtifactError):
        Randomizer(recertified(model("sets"), damage))


VECTORS = {
    "an output of another column": lambda v: v["outputs"][0].reverse(),
    "another value": lambda v: v["outputs"][3].__setitem__(1, "17"),
    "a label too few": lambda v: v["labels"].pop(),
    "no rows": lambda v: v.update(labels=[], outputs=[], words=[]),
}


@pytest.mark.parametrize("name", ["text", "mixed"])
@pytest.mark.parametrize("damage", VECTORS)
def test_vectors_that_the_graph_does_not_meet_are_refused(name, damage):
    with pytest.raises(PlatformError):
        Randomizer(restated(model(name), "labeldp.self_test", VECTORS[damage]))
