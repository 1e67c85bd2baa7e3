"""Labels of several columns: what goes in and comes out, what a key binds, what is refused."""

from collections import defaultdict

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from labeldp_runtime import (
    ArtifactError,
    DamagedArtifactError,
    GroupError,
    IdError,
    Key,
    LabelError,
    PlatformError,
    Randomizer,
)
from labeldp_runtime.randomizer import CHUNK

from runtime.tests import group_files
from runtime.tests.helpers import file, recertified, restated
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


def test_a_column_that_changed_has_other_words():
    randomizer = keyed("response")
    ids = np.arange(4000)
    no, yes = ({"converted": [text] * 4000, "value": [2] * 4000} for text in ("no", "yes"))
    one, other = (randomizer(labels, ids=ids)["value"] for labels in (no, yes))
    # At ε = 8 a value is nearly always kept: those that are not, are so independently.
    moved = np.mean(one != 2), np.mean(other != 2), np.mean((one != 2) & (other != 2))
    kept = np.exp(8) / (np.exp(8) + 9)
    assert all(abs(share - 8 / 9 * (1 - kept)) < 0.01 for share in moved[:2])
    small = keyed("sets")
    sets = [small(labels, ids=ids) for labels in (no, yes)]
    assert np.mean(sets[0] == sets[1]) < 0.05
    version = small(no, ids=ids, version=1)
    assert np.mean(sets[0] == version) < 0.05


TABLE = {"converted": ["no", "yes", None, "x"], "value": [0, 4, None, 99], "other": [1, 2, 3, 4]}
CONTAINERS = {
    "lists": (TABLE, np.ndarray),
    "pandas": (pd.DataFrame(TABLE, index=[4, 4, 0, 1]), pd.Series),
    "polars": (pl.DataFrame(TABLE), pl.Series),
    "pyarrow": (pa.table(TABLE), pa.ChunkedArray),
    "a batch of pyarrow": (pa.RecordBatch.from_pydict(TABLE), pa.Array),
    "polars, by a mapping": (pl.DataFrame(TABLE).to_dict(), pl.Series),
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


def test_each_column_of_a_mapping_has_a_kind_of_its_own():
    mixed = {"converted": pa.array(["no", "yes"]), "value": pl.Series("v", [1, 2])}
    private = fresh("text")(mixed)
    assert isinstance(private["converted"], pa.StringArray)
    assert private["value"].name == "v" and private["value"].dtype == pl.Float64
    assert fresh("text").output_types == ["string", "float64"]
    empty = fresh("mixed")({"price": [], "code": [], "n": []})
    assert {n: c.dtype.kind for n, c in empty.items()} == {"price": "f", "code": "i", "n": "f"}


def test_more_than_one_chunk_is_cut_in_all_columns():
    n = 2 * CHUNK + 77
    generator = np.random.default_rng(4)
    numbers = generator.integers(0, len(combinations("mixed")), n)
    whole = {name: np.array(values)[numbers] for name, values in everything("mixed").items()}
    words = generator.integers(0, 2**64, n, np.uint64)
    outputs = fresh("mixed").apply_words(whole, words)
    for start in (0, CHUNK, n - 99):
        part = slice(start, start + 99)
        own = {name: column[part] for name, column in whole.items()}
        alone = lists(fresh("mixed").apply_words(own, words[part]))
        assert alone == [column[part].tolist() for column in outputs.values()]
    ids = np.arange(n)
    first = keyed("mixed")(whole, ids=ids)
    part = {name: values[CHUNK:] for name, values in whole.items()}
    for name, column in keyed("mixed")(part, ids=ids[CHUNK:]).items():
        assert (first[name][CHUNK:] == column).all()


def test_fresh_words_keep_the_pair_as_often_as_certified():
    n = 100_000
    private = fresh("text")({"converted": ["yes"] * n, "value": [3] * n})
    kept = np.mean((private["converted"] == "yes") & (private["value"] == 3))
    share = np.exp(2) / (np.exp(2) + 9)
    assert abs(kept - share) < 6.5 * (share * (1 - share) / n) ** 0.5


def test_what_the_artifact_says_of_its_columns():
    mixed, sets = fresh("mixed"), fresh("sets")
    assert mixed.label_columns == ["price", "code", "n"] and mixed.group_columns == []
    assert mixed.label_types == ["float64", "int64", "int64"]
    assert mixed.output_types == ["float64", "int64", "float64"]
    assert sets.output_types == ["int64"] and sets.output_type == "int64"
    with pytest.raises(TypeError, match="label_types"):
        _ = mixed.label_type
    with pytest.raises(TypeError, match="output_types"):
        _ = mixed.output_type
    single = Randomizer(file("integers"))
    assert (single.label_columns, single.label_types) == (["y"], ["int64"])
    assert single.output_types == [single.output_type] == ["float64"]
    assert repr(mixed).startswith("<Randomizer 'mixed': ε = 3")


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
        (("no",), "several columns"),
        (np.zeros((2, 2)), "several columns"),
        (np.array([("no", 1)], dtype=[("converted", "U3"), ("value", "i8")]), "several columns"),
        (pd.Series({"converted": "no", "value": 1}), "several columns"),
        (pl.Series(["no"]), "several columns"),
        (pa.array([{"converted": "no", "value": 1}]), "several columns"),
        ("converted", "several columns"),
        (7, "no column 'converted' of labels"),
        (None, "several columns"),
        ({"converted": ["no"]}, "no column 'value' of labels"),
        (pd.DataFrame({"converted": ["no"]}), "no column 'value' of labels"),
        (pl.DataFrame({"value": [1]}), "no column 'converted' of labels"),
        (pa.table({"value": [1]}), "no column 'converted' of labels"),
        ({"converted": ["no"], "value": [1, 2]}, r"different lengths: \[1, 2\]"),
        ({"converted": ["no"], "value": []}, "different lengths"),
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


def test_a_mapping_that_makes_what_it_lacks_is_not_asked_to():
    labels = defaultdict(list, converted=["no"])
    with pytest.raises(LabelError, match="no column 'value'"):
        fresh("text")(labels)
    assert list(labels) == ["converted"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_a_column_may_be_called_like_something_that_frames_have(make):
    labels = {"converted": ["no"], "value": [1], "column_names": ["x"], "columns": ["y"]}
    assert list(fresh("text")(make(labels))) == ["converted", "value"]
    groups = Randomizer(group_files.model("codes"))
    columns = {"g": [7], "column_names": ["x"], "columns": ["y"]}
    assert len(groups([10], columns=make(columns))) == 1
    assert len(groups([10], groups=pd.Series([7], index=["columns"]))) == 1


@pytest.mark.parametrize("labels", [{"y": [1]}, pl.DataFrame({"y": [1]}), pa.table({"y": [1]})])
def test_an_artifact_of_one_column_takes_no_mapping(labels):
    with pytest.raises(LabelError):
        Randomizer(file("integers"))(labels)


def test_ids_and_groups_and_words_are_checked_as_ever():
    labels = {"converted": ["no", "yes"], "value": [1, 2]}
    with pytest.raises(IdError, match="need a key"):
        fresh("text")(labels, ids=[1, 2])
    with pytest.raises(IdError, match="one id per label"):
        keyed("text")(labels, ids=[1, 2, 3])
    series = {"converted": ["no", "yes"], "value": pd.Series([1, 2], index=[7, 8])}
    with pytest.raises(IdError, match="different indexes"):
        keyed("text")(series, ids=pd.Series([1, 2]))
    with pytest.raises(GroupError, match="takes no groups"):
        fresh("text")(labels, columns=labels)
    with pytest.raises(LabelError, match="words of shape"):
        fresh("text").apply_words(labels, np.zeros(3, np.uint64))


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
    "no domains": lambda c: c["label"]["domain"].update(columns=[]),
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
    "a column too few": lambda v: [row.pop() for row in v["outputs"]],
    "another value": lambda v: v["outputs"][3].__setitem__(1, "17"),
    "a label too few": lambda v: v["labels"].pop(),
    "a label column too few": lambda v: [row.pop() for row in v["labels"]],
    "no rows": lambda v: v.update(labels=[], outputs=[], words=[]),
}


@pytest.mark.parametrize("name", ["text", "mixed"])
@pytest.mark.parametrize("damage", VECTORS)
def test_vectors_that_the_graph_does_not_meet_are_refused(name, damage):
    with pytest.raises(PlatformError):
        Randomizer(restated(model(name), "labeldp.self_test", VECTORS[damage]))


@pytest.mark.parametrize("column", [0, 1, 2])
def test_a_label_of_any_column_counts_in_the_vectors(column):
    def shift(vectors):
        for row in vectors["labels"]:
            row[column] = "0" if row[column] != "0" else "1"

    with pytest.raises(PlatformError):
        Randomizer(restated(model("mixed"), "labeldp.self_test", shift))
