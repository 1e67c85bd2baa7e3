"""Randomizing Polars frames: each row once, whatever the query does with the result."""

import warnings

import numpy as np
import polars as pl
import pytest
from labeldp_runtime import (
    DuplicateIdError,
    GroupError,
    IdError,
    Key,
    LabelError,
    Randomizer,
    ReplayWarning,
)
from labeldp_runtime.engines.polars import randomize

from runtime.tests import group_files as groups
from runtime.tests import joint_files as joint
from runtime.tests.engines.helpers import RESPONSE
from runtime.tests.helpers import Counting

FRESH = Randomizer(RESPONSE)
KEYED = Randomizer(RESPONSE, key=Key(bytes(range(32))), context="y")
ROWS = 30_000
FRAME = pl.DataFrame({"id": np.arange(ROWS), "y": np.arange(ROWS) % 10, "three": [3] * ROWS})
ENGINES = pytest.mark.parametrize("engine", ["in-memory", "streaming"])
WARNED = pytest.mark.filterwarnings("ignore::labeldp_runtime.ReplayWarning")


def test_a_frame_keeps_its_other_columns_and_their_order():
    private = randomize(FRAME, "y", KEYED, ids="id")
    expected = KEYED(FRAME["y"], ids=FRAME["id"])
    assert private.columns == FRAME.columns and private["y"].equals(expected)
    assert private.drop("y").equals(FRAME.drop("y"))
    added = randomize(FRAME, "y", KEYED, ids="id", add_as="p")
    assert added.columns == [*FRAME.columns, "p"] and added.drop("p").equals(FRAME)


@ENGINES
def test_a_lazy_frame_gives_the_same_labels(engine):
    expected = KEYED(FRAME["y"], ids=FRAME["id"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lazy = randomize(FRAME.lazy(), "y", KEYED, ids="id")
    assert dict(lazy.collect_schema()) == {**FRAME.schema, "y": pl.Float64}
    assert lazy.collect(engine=engine)["y"].equals(expected)
    some = lazy.filter(pl.col("y") > 4).select("id", "y").collect(engine=engine)
    assert some["y"].equals(expected.filter(expected > 4))


def test_a_lazy_frame_without_a_key_warns_and_draws_at_each_collect():
    with pytest.warns(ReplayWarning, match="at each collect") as caught:
        lazy = randomize(FRAME.lazy(), "y", FRESH)
    assert caught[0].filename == __file__
    first, second = lazy.collect()["y"], lazy.collect()["y"]
    assert 0 < (first == second).mean() < 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        randomize(FRAME, "y", FRESH)  # which is done when it returns


QUERIES = {
    "filter on the private column": lambda x: x.filter(pl.col("p") > 4),
    "filters on both columns": lambda x: x.filter(pl.col("p") > 4).filter(pl.col("y") > 0),
    "filter on the label": lambda x: x.filter(pl.col("y") > 4),
    "head": lambda x: x.head(10),
    "only the private column": lambda x: x.select("p"),
    "none of it": lambda x: x.select("id"),
    "mentioned twice": lambda x: x.with_columns(a=pl.col("p"), b=pl.col("p") * 2),
    "sorted": lambda x: x.sort("p").tail(100),
    "grouped": lambda x: x.group_by("p").agg(pl.len()),
    "length": lambda x: x.select(pl.len()),
}


@WARNED
@ENGINES
@pytest.mark.parametrize("query", QUERIES)
def test_every_row_is_drawn_once_whatever_follows(query, engine):
    counting = Counting(FRESH)
    lazy = randomize(FRAME.lazy(), "y", counting, add_as="p")
    result = QUERIES[query](lazy).collect(engine=engine)
    assert counting.rows == ROWS
    if "private column" in query and "filter" in query:
        assert (result["p"] > 4).all() and 0.3 * ROWS < len(result) < 0.7 * ROWS
    if query == "mentioned twice":
        assert (result["a"] == result["p"]).all() and (result["b"] == 2 * result["p"]).all()


@WARNED
@ENGINES
def test_a_frame_that_a_query_uses_twice_is_drawn_once(engine):
    counting = Counting(FRESH)
    lazy = randomize(FRAME.lazy(), "y", counting, add_as="p")
    joined = lazy.join(lazy.select("id", "p"), on="id")
    flags = getattr(pl, "QueryOptFlags", None)
    for options in ({}, *([{"optimizations": flags.none()}] if flags else [])):
        counting.rows = 0
        both = joined.collect(engine=engine, **options)
        assert (both["p"] == both["p_right"]).all() and counting.rows == ROWS
    stacked = pl.concat([lazy.filter(pl.col("p") > 4), lazy.filter(pl.col("p") <= 4)])
    assert len(stacked.collect(engine=engine)) == ROWS
    counting.rows = 0
    high, low = pl.collect_all([lazy.filter(pl.col("p") > 4), lazy.filter(pl.col("p") <= 4)])
    assert len(high) + len(low) == ROWS == counting.rows


@WARNED
@ENGINES
def test_files_are_streamed(engine, tmp_path):
    FRAME.write_parquet(tmp_path / "in.parquet", row_group_size=4000)
    lazy = randomize(pl.scan_parquet(tmp_path / "in.parquet"), "y", FRESH, add_as="p")
    lazy.filter(pl.col("p") > 4).sink_parquet(tmp_path / "out.parquet", engine=engine)
    out = pl.read_parquet(tmp_path / "out.parquet")
    assert (out["p"] > 4).all() and 0.3 * ROWS < len(out) < 0.7 * ROWS


@ENGINES
def test_ids_that_come_twice_are_found_in_the_whole_frame(engine):
    twice = pl.concat([FRAME, FRAME.tail(1)])
    with pytest.raises(DuplicateIdError, match="rows 29,999 and 30,000"):
        randomize(twice, "y", KEYED, ids="id")
    lazy = randomize(twice.lazy(), "y", KEYED, ids="id")
    with pytest.raises(Exception, match="rows 29,999 and 30,000"):
        lazy.collect(engine=engine)


def test_misuse_is_refused():
    with pytest.raises(IdError, match="need a key"):
        randomize(FRAME, "y", FRESH, ids="id")
    with pytest.raises(IdError, match="need a key"):
        randomize(FRAME, "y", FRESH, version=1)
    with pytest.raises(IdError, match="give ids="):
        randomize(FRAME, "y", KEYED)
    with pytest.raises(IdError, match="no column 'no'"):
        randomize(FRAME, "y", KEYED, ids="no")
    with pytest.raises(IdError, match="both the label and its id"):
        randomize(FRAME, "y", KEYED, ids="y")
    with pytest.raises(LabelError, match="no column 'z'"):
        randomize(FRAME, "z", FRESH)
    with pytest.raises(LabelError, match="'id' already"):
        randomize(FRAME, "y", FRESH, add_as="id")
    with pytest.raises(TypeError, match="expected a DataFrame or LazyFrame, got Series"):
        randomize(FRAME["y"], "y", FRESH)


GROUP_TYPES = {"age": pl.Float64, "work": pl.String, "code": pl.Int64}
GROUP_FRAME = pl.DataFrame(groups.ROWS, GROUP_TYPES, orient="row").with_columns(
    pl.int_range(pl.len()).alias("id"), (10 + pl.int_range(pl.len()) % 4).alias("y")
)
NAMED = Randomizer(groups.named())


@WARNED
@ENGINES
def test_each_row_meets_the_table_of_its_group(engine):
    wanted = groups.tables(groups.ROWS)
    private = randomize(GROUP_FRAME, "y", NAMED)
    assert private["y"].to_list() == wanted and private.drop("y").equals(GROUP_FRAME.drop("y"))
    lazy = randomize(GROUP_FRAME.lazy(), "y", NAMED, add_as="p")
    assert lazy.collect(engine=engine)["p"].to_list() == wanted
    renamed = GROUP_FRAME.rename({"age": "a.b", "work": "age"}).drop("id")
    given = {"age": "a.b", "work": "age"}
    assert randomize(renamed, "y", NAMED, group_columns=given)["y"].to_list() == wanted


@WARNED
@pytest.mark.parametrize(
    ("dropped", "options", "message"),
    [
        (["work"], {}, "no group column 'work'"),
        ([], {"group_columns": {"work": "job"}}, "no group column 'job'"),
        ([], {"group_columns": {"wrok": "work"}}, "no group column 'wrok': its groups come from"),
        ([], {"group_columns": {"code": "y"}}, "both the label and a group"),
    ],
)
def test_what_gives_no_groups_is_refused_before_anything_is_drawn(dropped, options, message):
    frame = GROUP_FRAME.drop(dropped)
    for given in (frame, frame.lazy()):
        with pytest.raises(GroupError, match=message):
            randomize(given, "y", NAMED, **options)


def test_the_artifacts_own_label_is_no_group_of_another():
    frame = GROUP_FRAME.with_columns(z="y")
    with pytest.raises(GroupError, match="both the label and a group"):
        randomize(frame, "z", NAMED, group_columns={"code": "y"})
    with pytest.raises(GroupError, match="is the label, which cannot be its own group"):
        randomize(frame, "y", NAMED, group_columns={"code": "z"})  # the same memory


def test_an_artifact_without_groups_takes_none():
    with pytest.raises(GroupError, match="it takes no groups"):
        randomize(FRAME, "y", FRESH, group_columns={"age": "three"})


JOINT_FRAME = pl.DataFrame(
    {
        "id": range(600),
        "value": [0, 4, None, 99, 2, 3] * 100,
        "z": ["z"] * 600,
        "converted": ["né", "yes", None, "x", "yes", "ne\u0301"] * 100,
    }
)


def of_pairs(name):
    return Randomizer(joint.model(name), key=Key(bytes(32)), context="pair")


@ENGINES
@pytest.mark.parametrize("lazy", [False, True])
def test_each_label_column_gives_way_to_its_private_one(engine, lazy):
    given = JOINT_FRAME.lazy() if lazy else JOINT_FRAME
    keyed = of_pairs("text")
    expected = keyed(JOINT_FRAME, ids=JOINT_FRAME["id"])
    private = randomize(given, keyed.label_columns, keyed, ids="id").lazy().collect(engine=engine)
    assert private.schema == {**JOINT_FRAME.schema, "value": pl.Float64}
    assert private.columns == JOINT_FRAME.columns
    for name in ("converted", "value"):
        assert private[name].equals(expected[name])
    names = {"value": "v", "converted": "c"}
    added = randomize(given, ["value", "converted"], keyed, ids="id", add_as=names)
    added = added.lazy().collect(engine=engine)
    assert added.drop("c", "v").equals(JOINT_FRAME) and added.columns[-2:] == ["c", "v"]
    assert added["c"].equals(expected["converted"]) and added["v"].equals(expected["value"])
    # Other names, and a label column in the place of the other.
    swapped = JOINT_FRAME.rename({"converted": "value", "value": "a.b"})
    given = swapped.lazy() if lazy else swapped
    sources = {"converted": "value", "value": "a.b"}
    private = randomize(given, sources, keyed, ids="id").lazy().collect(engine=engine)
    assert private.columns == swapped.columns and private["value"].equals(expected["converted"])
    assert private["a.b"].equals(expected["value"])


@ENGINES
@pytest.mark.parametrize("lazy", [False, True])
def test_the_number_of_a_set_takes_the_place_of_all_label_columns(engine, lazy):
    given = JOINT_FRAME.lazy() if lazy else JOINT_FRAME
    keyed = of_pairs("sets")
    expected = keyed(JOINT_FRAME, ids=JOINT_FRAME["id"])
    private = randomize(given, keyed.label_columns, keyed, ids="id").lazy().collect(engine=engine)
    assert private.columns == ["id", "z", "private_label"]
    assert private["private_label"].equals(expected) and private["private_label"].dtype == pl.Int64
    added = randomize(given, keyed.label_columns, keyed, ids="id", add_as="p")
    added = added.lazy().collect(engine=engine)
    assert added["p"].equals(expected) and added.drop("p").equals(JOINT_FRAME)


@WARNED
@pytest.mark.parametrize(
    ("name", "column", "options", "message"),
    [
        ("text", "value", {}, "has several columns: give"),
        ("text", ["value"], {}, "label columns .*, each once"),
        ("text", ["value", "converted", "value"], {}, "each once"),
        ("text", {"value": "value", "other": "converted"}, {}, "each once"),
        ("text", {"value": "value", "converted": "value"}, {}, "cannot be the same column"),
        ("text", {"value": "value", "converted": "c"}, {}, "no column 'c'"),
        ("text", ["value", "converted"], {"add_as": "p"}, "a name for each private column"),
        ("text", ["value", "converted"], {"add_as": {"value": "p"}}, "a name for each"),
        (
            "text",
            ["value", "converted"],
            {"add_as": {"value": "p", "converted": "p"}},
            "cannot have the same name",
        ),
        (
            "text",
            ["value", "converted"],
            {"add_as": {"value": "p", "converted": "z"}},
            "a column 'z' already",
        ),
        ("sets", ["value", "converted"], {"add_as": {"value": "p"}}, "is one column"),
        ("sets", ["value", "converted"], {"add_as": "value"}, "a column 'value' already"),
    ],
)
def test_what_are_no_label_columns_is_refused_at_once(name, column, options, message):
    for frame in (JOINT_FRAME, JOINT_FRAME.lazy()):
        with pytest.raises(LabelError, match=message):
            randomize(frame, column, Randomizer(joint.model(name)), **options)


def test_several_columns_meet_the_rules_of_ids_and_of_single_labels():
    keyed = of_pairs("text")
    with pytest.raises(IdError, match="both the label and its id"):
        randomize(JOINT_FRAME, keyed.label_columns, keyed, ids="value")
    with pytest.raises(LabelError, match="'private_label' already"):
        taken = JOINT_FRAME.with_columns(private_label=1)
        randomize(taken, keyed.label_columns, of_pairs("sets"), ids="id")
    for column in (["y"], {"y": "y"}):
        with pytest.raises(LabelError, match="is one column: give its name"):
            randomize(FRAME, column, FRESH)
    with pytest.raises(LabelError, match="is one column: give its name"):
        randomize(FRAME, "y", FRESH, add_as={"y": "p"})
