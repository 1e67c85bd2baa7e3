"""A randomizer as an SQL function: called for every row, and once for each mention."""

import warnings

import duckdb
import pytest
from labeldp_runtime import Key, Randomizer, ReplayWarning
from labeldp_runtime.engines.duckdb import register

from runtime.tests import joint_files as joint
from runtime.tests.engines.helpers import RESPONSE, TEXT
from runtime.tests.helpers import Counting

KEY = Key(bytes(range(32)))
ROWS = 30_000
WARNED = pytest.mark.filterwarnings("ignore::labeldp_runtime.ReplayWarning")


@pytest.fixture
def connection():
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2")
        connection.execute(
            "CREATE TABLE t AS SELECT i, i % 10 AS y, 'row ' || i AS name, 'x' || (i % 10) AS s "
            f"FROM range({ROWS}) r(i)"
        )
        yield connection


@pytest.fixture
def fresh(connection):
    """The connection with ``p(label)``, and what was randomized so far."""
    counting = Counting(Randomizer(RESPONSE))
    with pytest.warns(ReplayWarning, match=r"each mention of p\(\)"):
        register(connection, "p", counting)
    return connection, counting


@pytest.fixture
def keyed(connection):
    """The connection with ``k(label, id)``."""
    randomizer = Randomizer(RESPONSE, key=KEY, context="y")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register(connection, "k", randomizer, id_type="BIGINT")
    return connection, randomizer


def one(connection, query):
    return connection.execute(query).fetchall()[0]


def test_two_mentions_do_not_share_words(fresh):
    connection, counting = fresh
    (same,) = one(connection, "SELECT count(*) FILTER (a = b) FROM (SELECT p(y) a, p(y) b FROM t)")
    assert 0 < same < 0.3 * ROWS and counting.rows == 2 * ROWS


def test_one_mention_that_is_used_twice_is_drawn_once(fresh):
    connection, counting = fresh
    (same,) = one(
        connection, "SELECT count(*) FILTER (a + 1 = b) FROM (SELECT v a, v + 1 b FROM "
        "(SELECT p(y) v FROM t))",
    )  # fmt: skip
    assert same == ROWS == counting.rows


def test_a_materialized_cte_is_drawn_once(fresh):
    connection, counting = fresh
    query = (
        "WITH c AS {} (SELECT i, p(y) AS v FROM t) "
        "SELECT count(*) FILTER (a.v = b.v) FROM c a JOIN c b USING (i)"
    )
    assert one(connection, query.format("MATERIALIZED")) == (ROWS,) and counting.rows == ROWS
    (same,) = one(connection, query.format("NOT MATERIALIZED"))
    assert same < 0.3 * ROWS and counting.rows == 3 * ROWS


@pytest.mark.parametrize(
    "source",
    [
        "SELECT p(3) AS v FROM t",
        "SELECT p(c) AS v FROM (SELECT 3 AS c FROM t)",
        "SELECT p(NULL) AS v FROM t",
        "SELECT p(one.y) AS v FROM (SELECT y FROM t WHERE i = 3) one, t",
        "SELECT p(CASE WHEN y > 100 THEN y END) AS v FROM t",
    ],
)
def test_constants_are_not_folded_into_one_word(fresh, source):
    connection, counting = fresh
    values = dict(connection.execute(f"SELECT v, count(*) FROM ({source}) GROUP BY v").fetchall())
    assert set(values) == set(range(10)) and sum(values.values()) == ROWS == counting.rows
    assert max(values.values()) < 0.3 * ROWS


@WARNED
def test_repeated_text_is_not_drawn_once_an_entry(connection, tmp_path):
    """Parquet dictionaries arrive as such: a pure function would be called once an entry."""
    register(connection, "w", Randomizer(TEXT))
    file = tmp_path / "d.parquet"
    connection.execute(f"COPY (SELECT 'red' AS s FROM t) TO '{file}'")
    rows = connection.execute(f"SELECT w(s), count(*) FROM '{file}' GROUP BY 1").fetchall()
    assert len(rows) == 3 and sum(n for _, n in rows) == ROWS


@pytest.fixture
def pairs(connection):
    """Labels of two columns, in more rows than one vector has, and the same as a mapping."""
    connection.execute(
        "CREATE TABLE pairs AS SELECT i, CASE i % 4 WHEN 0 THEN 'né' WHEN 1 THEN 'yes' "
        "WHEN 2 THEN NULL ELSE 'x' END AS c, CASE WHEN i % 5 = 4 THEN NULL ELSE i % 7 END AS v "
        "FROM range(10000) r(i)"
    )
    columns = connection.execute("SELECT c, v, i FROM pairs ORDER BY i").fetchall()
    texts, values, ids = map(list, zip(*columns, strict=True))
    return connection, {"converted": texts, "value": values}, ids


ONCE = [
    "SELECT p(c, v) FROM pairs",
    "SELECT p.* FROM (SELECT p(c, v) AS p FROM pairs)",
    "SELECT p.value, p.converted FROM (SELECT p(c, v) AS p FROM pairs) WHERE p.value > 1",
    "WITH x AS (SELECT p(c, v) AS p FROM pairs) SELECT UNNEST(p) FROM x",
    "CREATE TABLE kept AS SELECT i, p(c, v) AS p FROM pairs",
]


@WARNED
@pytest.mark.parametrize("query", [*ONCE, "SELECT UNNEST(p(c, v)) FROM pairs"])
def test_only_a_call_inside_unnest_is_more_than_one_mention(pairs, query):
    rows = []

    class Watched(Counting):
        def __call__(self, labels, **options):
            rows.append(len(labels["value"]))
            return self.randomizer(labels, **options)

    with pytest.warns(ReplayWarning, match="UNNEST"):
        register(pairs[0], "p", Watched(Randomizer(joint.model("text"))))
    pairs[0].execute(query).fetchall()
    # docs/duckdb.md says so; a DuckDB that calls once here, too, is a better one.
    assert sum(rows) == 10_000 * (1 if query in ONCE else 2)
