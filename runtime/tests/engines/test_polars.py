"""Randomizing Polars frames: each row once, whatever the query does with the result."""

import warnings

import numpy as np
import polars as pl
import pytest
from labeldp_runtime import (
    GroupError,
    Key,
    Randomizer,
    ReplayWarning,
)
from labeldp_runtime.engines.polars import randomize

from runtime.tests import group_files as groups
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


GROUP_TYPES = {"age": pl.Float64, "work": pl.String, "code": pl.Int64}
GROUP_FRAME = pl.DataFrame(groups.ROWS, GROUP_TYPES, orient="row").with_columns(
    pl.int_range(pl.len()).alias("id"), (10 + pl.int_range(pl.len()) % 4).alias("y")
)
NAMED = Randomizer(groups.named())


def test_the_artifacts_own_label_is_no_group_of_another():
    frame = GROUP_FRAME.with_columns(z="y")
    with pytest.raises(GroupError, match="both the label and a group"):
        randomize(frame, "z", NAMED, group_columns={"code": "y"})
    with pytest.raises(GroupError, match="is the label, which cannot be its own group"):
        randomize(frame, "y", NAMED, group_columns={"code": "z"})  # the same memory
