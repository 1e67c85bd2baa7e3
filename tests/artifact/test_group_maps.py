"""From columns to tables: bands, products and shared tables, in the graph and in Python alike."""

import itertools
import math
import random

import numpy as np
import onnx
import pytest
from labeldp_runtime import Key, Randomizer
from labeldp_verify import check_bytes
from labeldp_verify.decode import read_certificate, read_groups, read_model
from labeldp_verify.errors import CheckFailedError
from labeldp_verify.forms import GroupColumn, GroupedWindows, Groups
from labeldp_verify.forms.groups import check_groups
from labeldp_verify.graph.inputs import group_inputs, group_type
from labeldp_verify.graph.nodes import DOUBLE, STRING

from labeldp_compile.rounding.windows import randomized_response
from verifier.tests.files import DOMAIN, all_words, file_of, session_of
from verifier.tests.integers import grouped, plain_counts, replaced, some_windows

AGE = GroupColumn("age", bands=(18.0, 25.0, 65.0))
WORK = GroupColumn("work", ("private", "", "é"))
CODE = GroupColumn("code", (7, -2))
ZERO = GroupColumn("x", bands=(0.0,))

MAPS = {
    "bands": Groups.each(AGE),
    "one edge": Groups.each(ZERO),
    "shared bands": Groups((AGE,), (0, 1, 0, 2), 2),
    "shared values": Groups((WORK,), (0, 1, 0), 1),
    "shared codes": Groups((GroupColumn("n", (0, 1, 2, 3)),), (2, 0, 1, 0), 2),
    "bands and text": Groups((AGE, WORK), (0, 1, 2, 0, 0, 0, 3, 3, 1, 3, 2, 0), 3),
    "text and bands": Groups((WORK, ZERO), (0, 0, 1, 1, 2, 2), 2),
    "three columns": Groups((CODE, ZERO, GroupColumn("t", ("a",))), (0, 1, 2, 3), 3),
    "numbers and numbers": Groups.each(GroupColumn("a", (0, 1)), GroupColumn("b", (0, 1))),
    "all in the table of the others": Groups((CODE,), (0, 0), 0),
    "two bands": Groups.each(ZERO, GroupColumn("h", bands=(-1.5, 1e300))),
}


def randomizer_of(groups):
    windows = itertools.islice(itertools.cycle(some_windows()), groups.tables)
    return GroupedWindows(groups, tuple(windows))


def feed_of(groups, rows):
    """The columns of rows, as the graph takes them."""
    feed = {}
    for name, column, values in zip(
        group_inputs(groups), groups.columns, zip(*rows, strict=True), strict=True
    ):
        element = group_type(column)
        kind = object if element == STRING else float if element == DOUBLE else np.int64
        feed[name] = np.array(values, dtype=kind)
    return feed


def hostile(column):
    """Values of a column's type around everything that is listed, and far from it."""
    if column.bands is not None:
        near = [
            f(e, to)
            for e in column.bands
            for f, to in [
                (math.nextafter, -math.inf),
                (math.nextafter, math.inf),
                (lambda e, _: e, 0),
            ]
        ]
        return [*near, -0.0, 0.0, 5e-324, -5e-324, math.inf, -math.inf, math.nan, 1e308, -1e308]
    if column.is_text:
        looks = ["É", "e\u0301", "é ", " é", "PRIVATE", "private\u200b", "privаte", "\t", "other"]
        return [*column.values, *looks]
    return [*column.values, -1, 8, 2**31, 2**32, -(2**63), 2**63 - 1, 2**32 + 7]


@pytest.mark.parametrize("name", MAPS)
def test_every_word_of_every_label_in_every_cell(name):
    groups = MAPS[name]
    check_groups(groups)
    randomizer = randomizer_of(groups)
    model = file_of(DOMAIN, randomizer)
    report = check_bytes(model)
    assert report.ok, report.checks
    assert report.artifact.lookup == randomizer
    session = session_of(model)
    rows = [row for table in range(groups.tables) for row in groups.rows(table)]
    for row in rows:
        window = randomizer.windows[groups.table(row)]
        words = all_words(window.word_bits)
        for place, label in enumerate(range(10, 14)):
            feed = {"label": np.full(len(words), label), "entropy": words}
            got = session.run(None, {**feed, **feed_of(groups, [row] * len(words))})[0]
            values, counts = np.unique(got, return_counts=True)
            found = dict(zip(values.tolist(), counts.tolist(), strict=True))
            assert found == plain_counts(window, place), (row, label)


@pytest.mark.parametrize("name", MAPS)
def test_hostile_values_have_the_same_table_everywhere(name):
    groups = MAPS[name]
    # A constant for each table, so that an output names it.
    windows = [randomized_response([float(i)], [0] * 4, 1, 8) for i in range(groups.tables)]
    model = file_of(DOMAIN, GroupedWindows(groups, tuple(windows)))
    rows = list(itertools.product(*(hostile(column) for column in groups.columns)))
    wanted = [float(groups.table(row)) for row in rows]
    feed = feed_of(groups, rows)
    plain = {"label": np.full(len(rows), 11), "entropy": np.zeros(len(rows), np.uint64)}
    assert session_of(model).run(None, {**plain, **feed})[0].tolist() == wanted
    randomizer = Randomizer(model)
    columns = {
        column.name: list(values)
        for column, values in zip(groups.columns, zip(*rows, strict=True), strict=True)
    }
    assert randomizer([11] * len(rows), columns=columns).tolist() == wanted
    known = randomizer._inputs
    read = known.read([11] * len(rows), None, columns)  # of text, codes
    assert known.tables(read.feed).tolist() == wanted
    missing = {name: [None] for name in columns}
    assert randomizer([11], columns=missing).tolist() == [float(groups.own_tables)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bands", "bands and text", "shared values", "two bands"])
def test_whatever_is_changed_in_the_map_the_verifier_says_no(name):
    model = file_of(DOMAIN, randomizer_of(MAPS[name]))
    generator = random.Random(1)
    proto = onnx.load_from_string(model)
    part = ("group", "cell", "table_of_cell")
    tried = 0
    for index, tensor in enumerate(proto.graph.initializer):
        if not tensor.name.startswith(part):
            continue
        words = np.frombuffer(tensor.raw_data, dtype=np.uint64)
        for i in range(len(words)):
            for bit in (0, 52, 63, generator.randrange(64)):
                changed = words.copy()
                changed[i] ^= np.uint64(1 << bit)
                mutant = onnx.load_from_string(model)
                mutant.graph.initializer[index].raw_data = changed.tobytes()
                assert not check_bytes(mutant.SerializeToString(deterministic=True)).ok
                tried += 1
    for i, node in enumerate(proto.graph.node):
        if not node.output[0].startswith(part):
            continue
        for change in ("left out", "doubled", "rewired", "renamed"):
            mutant = onnx.load_from_string(model)
            nodes = mutant.graph.node
            if change == "left out":
                del nodes[i]
            elif change == "doubled":
                nodes.append(nodes[i])
            elif change == "rewired":
                nodes[i].input[0] = "label"
            else:
                nodes[i].op_type = {"Cast": "Identity", "Add": "Sub"}.get(node.op_type, "Identity")
            assert not check_bytes(mutant.SerializeToString(deterministic=True)).ok, (i, change)
            tried += 1
    assert tried > 10


def test_what_is_no_map():
    two, many = GroupColumn("b", ("x", "y")), tuple(range(1001))
    for groups, message in [
        (Groups((), (), 0), "every group must have a table"),
        (Groups.each(*(GroupColumn(f"c{i}", ("x",)) for i in range(9))), "one to 8 columns"),
        (Groups.each(two, two), "twice"),
        (Groups.each(GroupColumn("a")), "values or bands"),
        (Groups((GroupColumn("a", ("x",), (1.0,)),), (0,), 1), "values or bands"),
        (Groups.each(GroupColumn("a", bands=())), "edges"),
        (Groups.each(GroupColumn("a", bands=(1.0, 1.0))), "increase"),
        (Groups.each(GroupColumn("a", bands=(math.nan,))), "finite"),
        (Groups.each(GroupColumn("a", bands=(math.inf,))), "finite"),
        (Groups.each(GroupColumn("a", bands=(-0.0,))), "−0"),
        (Groups.each(GroupColumn("a", bands=(1,))), "finite"),
        (Groups((two,), (0,), 1), "every group must have a table"),
        (Groups((two,), (1, 0), 2), "in their order"),
        (Groups((two,), (0, 3), 2), "in their order"),
        (Groups((two,), (0, 0), 2), "every table must have a group"),
        (Groups((GroupColumn("a", many), GroupColumn("b", many)), (), 0), "combine"),
    ]:
        with pytest.raises(ValueError, match=message):
            check_groups(groups)


def test_groups_without_columns_are_one_table_and_in_no_file():
    nothing = Groups()
    check_groups(nothing)
    assert (nothing.tables, nothing.table(()), list(nothing.rows(0))) == (1, 0, [()])
    assert nothing.name(0) == "all rows"
    model = read_model(file_of(DOMAIN, grouped((0, 1, 2))))
    stated = read_certificate(model)
    stated.parts["groups"].columns.clear()
    with pytest.raises(CheckFailedError, match="there are groups, but no column"):
        read_groups(stated)


def test_replays_bind_the_table_and_not_the_cell(tmp_path):
    pytest.importorskip("cryptography")
    groups = MAPS["shared bands"]
    randomizer = replaced(randomizer_of(groups), windows=(some_windows()[1],) * 3)
    keyed = Randomizer(file_of(DOMAIN, randomizer), key=Key.create(tmp_path / "k"), context="y")
    ids = np.arange(200)

    def of(age):
        return keyed([11] * 200, groups=np.full(200, float(age)), ids=ids).tolist()

    assert of(3) == of(30)  # bands 0 and 2 share a table
    assert of(3) != of(20)
    assert of(math.nan) == of(80)  # which has the table of the others
    assert of(math.nan) not in (of(3), of(20))
