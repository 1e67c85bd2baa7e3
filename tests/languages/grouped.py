"""Artifacts with a table for each group, whose columns are as odd as each language allows."""

import itertools
import math

import numpy as np
from labeldp_runtime import Randomizer
from labeldp_verify.forms import GroupColumn, GroupedWindows, Groups, RealDomain

from runtime.tests.helpers import restated
from tests import group_rows
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.languages.cases import as_hex, as_text, bits, words_of
from verifier.tests.files import DOMAIN, file_of
from verifier.tests.integers import some_windows

AGE, WORK, CODE = group_rows.AGE, group_rows.WORK, group_rows.CODE
INTS = GroupColumn("g", (-1, 7, -2, 2**53 + 1, -(2**63)))  # −1 does not stand in for nulls
MAPS = {
    "bands, text and integers": group_rows.GROUPS,
    "bands and text": Groups((AGE, WORK), (0, 1, 2, 0, 0, 0, 3, 3, 1, 3, 2, 0), 3),
    "bands alone": Groups((AGE,), (0, 1, 0, 2), 2),
    "numbered": Groups.of((0, 1, 2), "g"),
    "integers": Groups.each(INTS),
    "text": Groups.of(("\x7f", "日本", "?", "a" * 300), "g"),
}
EDGES = {
    "int64": [*group_rows.CODES, *INTS.values, 1, 2, 3, 2**31, 2**32, -(2**53) - 1],
    "string": [*group_rows.WORKS, "日本", "\x7f\x7f", "?", "a" * 300, "private\0", "\0", "🙂", "7"],
    "float64": [*group_rows.AGES, 5e-324, -1e308, 1e308, 25.0, 24.999999999999996, 2.0**63],
}
TYPES = {"int64": np.int64, "float64": np.float64, "string": object}

# One element in JavaScript, and what Python calls the same; "" is a hole in an array.
NOTHING = ["", "null", "undefined", "{}", "[]", "() => 7", "Symbol('private')", "new Date(7)"]
NOTHING += ["{ valueOf() { throw new Error('read') }, toString() { throw new Error('read') } }"]
NOTHING += ["new Proxy({}, { get() { throw new Error('read') } })", "NaN"]
JAVASCRIPT = {
    "age": {
        **{"18": 18.0, "18n": 18.0, "17.999999999999996": 17.999999999999996, "true": 1.0},
        **{"-0": -0.0, "10n ** 400n": math.inf, "-Infinity": -math.inf, "Infinity": math.inf},
        **dict.fromkeys([*NOTHING, "'18'", "new Number(18)", "Object(18n)"]),
    },
    "work": {
        **{"'private'": "private", "''": "", "'é'": "é", r"'e\u0301'": "e\u0301", "'É'": "É"},
        **{r"'private\0'": "private\0", r"'\ud800'": "?", "'x'.repeat(1e5)": "x"},
        **dict.fromkeys([*NOTHING, "7", "true", "new String('private')", "['private']"]),
    },
    "code": {
        **{"7": 7, "7n": 7, "-2": -2, "-2n": -2, "2n ** 53n + 1n": 2**53 + 1, "-0": 0, "0": 0},
        **{"2 ** 53": 2**53, "2 ** 32 + 7": 2**32 + 7, "2n ** 63n - 1n": 2**63 - 1, "-1": -1},
        **dict.fromkeys(["2n ** 64n + 7n", "7n - 2n ** 64n", "7.5", "-2.5", "2 ** 63", "1e300"]),
        **dict.fromkeys([*NOTHING, "'7'", "true", "[7]", "Object(7n)", "Infinity"]),
    },
}
TYPED = [
    ("new Float32Array([18, NaN])", "['é', '']", "new Int8Array([7, -2])"),
    (
        "new Uint16Array([18, 65])",
        "['é', '']",
        "new BigUint64Array([2n ** 53n + 1n, 2n ** 64n - 2n])",
    ),
    ("new BigInt64Array([18n, 64n])", "['', 'é']", "new BigInt64Array([-2n, 2n ** 53n + 1n])"),
]  # fmt: skip
TYPED_ROWS = [
    [(18.0, "é", 7), (None, "", -2)],
    [(18.0, "é", 2**53 + 1), (65.0, "", None)],
    [(18.0, "", -2), (64.0, "é", 2**53 + 1)],
]
GOOD, GOOD_ROW = {"age": "18", "work": "'é'", "code": "7"}, (18.0, "é", 7)
WRONG = {
    "three groups": "[7, 7, 7]",
    "floats": "new Float64Array([7, 7])",
    "a text": "'77'",
    "a set": "new Set([7, 8])",
    "null": "null",
}


def add_groups(plan):
    """The cases whose names begin with ``by group`` and ``wrong groups``, and their refusals."""
    for name, groups in MAPS.items():
        windows = itertools.islice(itertools.cycle(some_windows(40)), groups.tables)
        randomizer = GroupedWindows(groups, tuple(windows))
        for kind, domain in (("", DOMAIN), (", two words", RealDomain(10.0, 13.0, 4, "unbiased"))):
            model = file_of(domain, randomizer)
            for lacking in (False, True):
                nulls = ", nulls" if lacking else ""
                _add_rows(plan, f"by group: {name}{kind}{nulls}", model, groups, lacking)
    _add_javascript(plan)
    _add_fresh_words(plan)
    _add_wrong_groups(plan)
    _add_refusals(plan)


def _columns_of(groups, lacking, generator, count):
    """Columns of a case, and as Python takes them."""
    stated, columns = {}, {}
    for column in groups.columns:
        kind = "float64" if column.bands else "string" if column.is_text else "int64"
        edges = [value for value in EDGES[kind] if lacking or value is not None]
        chosen = [*edges, *(column.values or ())]
        values = [chosen[i] for i in generator.integers(0, len(chosen), count)]
        values[: len(chosen)] = chosen
        texts = [None if v is None else as_text([v])[0] for v in values]
        stated[column.name] = {"type": kind, "values": texts}
        columns[column.name] = values
    return stated, columns


def _add_rows(plan, name, model, groups, lacking, repeat=12):
    """Random rows, repeated so that they are more than one chunk of any language."""
    randomizer, generator = Randomizer(model), np.random.default_rng(len(plan.cases))
    count = 3000
    stated, columns = _columns_of(groups, lacking, generator, count)
    labels = generator.integers(8, 16, count).astype(TYPES[randomizer.label_type])
    if randomizer.label_type == "float64":
        labels += generator.uniform(-1, 1, count)
    words = words_of(randomizer._words_shape(count * repeat), len(plan.cases))
    repeated = {column: values * repeat for column, values in columns.items()}
    expected = randomizer.apply_words(np.tile(labels, repeat), words, columns=repeated)
    plan.add(
        name,
        model,
        bits(expected),
        type=randomizer.label_type,
        labels=as_text(labels.tolist()),
        columns=stated,
        repeat=repeat,
        words=as_hex(words),
    )


def _add_javascript(plan):
    """Each odd element of a column before a plain one; the outputs are the tables' numbers."""
    for place, (column, elements) in enumerate(JAVASCRIPT.items()):
        for text, value in elements.items():
            rows = [(*GOOD_ROW[:place], value, *GOOD_ROW[place + 1 :]), GOOD_ROW]
            array = f"[{text}, {GOOD[column]}]"
            _add_named(plan, f"by group: {column} is {text}", _columns(**{column: array}), rows)
    for arrays, rows in zip(TYPED, TYPED_ROWS, strict=True):
        columns = _columns(**dict(zip(GOOD, arrays, strict=True)))
        _add_named(plan, f"by group: {arrays}", columns, rows)
    numbered = MAPS["numbered"]
    windows = (some_windows(40) * 2)[: numbered.tables]
    model = file_of(DOMAIN, GroupedWindows(numbered, windows))
    words = words_of(5, 1)
    given = [0, 2, None, 1, -1]
    expected = bits(Randomizer(model).apply_words([10] * 5, words, groups=given))
    for options in (
        "{groups: [0, 2, null, 1, -1]}",
        "{groups: new Int16Array([0, 2, 99, 1, -1])}",
        "{columns: {g: [0n, 2n, 2n ** 64n, 1n, -1n], unused: 0}}",
    ):
        case = {"type": "int64", "labels": ["10"] * 5, "words": as_hex(words), "options": options}
        plan.add(f"by group: {options}", model, expected, **case)


def _columns(**arrays):
    """The options of a call in JavaScript: two good rows, but for the given arrays."""
    good = {column: f"[{text}, {text}]" for column, text in GOOD.items()}
    columns = ", ".join(f"{column}: {array}" for column, array in {**good, **arrays}.items())
    return f"{{columns: {{{columns}}}}}"


def _add_named(plan, name, options, rows):
    expected = bits(np.array(group_rows.tables(rows)))
    case = {"type": "int64", "labels": ["10", "12"], "options": options}
    plan.add(name, group_rows.NAMED, expected, **case)


def _add_fresh_words(plan):
    """Fresh words through several chunks, where each table is a constant."""
    generator = np.random.default_rng(0)
    stated, columns = _columns_of(group_rows.GROUPS, True, generator, 2000)
    rows = zip(*columns.values(), strict=True)
    expected = bits(np.array(group_rows.tables(rows) * 40))
    case = {"type": "int64", "labels": ["11"] * 2000, "columns": stated, "repeat": 40}
    plan.add("by group: fresh words", group_rows.NAMED, expected, **case)


def _add_wrong_groups(plan):
    labels = {"type": "int64", "labels": ["10", "11"]}
    named, plain = group_rows.NAMED, compile_text(INTEGER_SPEC).model
    stated = {
        "age": {"type": "float64", "values": ["18", "18"]},
        "work": {"type": "string", "values": ["é", None]},
        "code": {"type": "int64", "values": ["7", "7"]},
    }

    def add(name, reason, columns, model=named):
        plan.add(f"wrong groups: {name}", model, reason, columns=columns, **labels)

    add("no column", "column .?work.? of groups", {k: stated[k] for k in ("age", "code")})
    short = {**stated, "code": {"type": "int64", "values": ["7"]}}
    add("too few", "one group per label|one (group )?a label", short)
    nulls = {"type": "string", "values": [None] * 3}
    add("too many nulls", "one group per label|one (group )?a label", {**stated, "work": nulls})
    add("floats", "integers as groups|another type", {**stated, "code": stated["age"]})
    add("one table for all", "takes no groups", stated, plain)
    add("nothing", "one group per label|a column .?age.? of groups", {})

    def add_options(name, reason, options, model=named):
        plan.add(f"wrong groups: {name}", model, reason, options=options, **labels)

    for name, array in WRONG.items():
        add_options(name, "TypeError: expected", _columns(code=array))
    text = "TypeError: expected text as groups"
    add_options("numbers for text", text, _columns(work="new Uint8Array(2)"))
    one_way = "TypeError: expected one group per label, as columns by name: "
    add_options("no names", one_way, "{groups: [7, 7]}")
    add_options("no options", one_way, "undefined")
    add_options("columns that are null", "TypeError: expected a column age", "{columns: null}")
    add_options("groups of a plain file", "TypeError: .* takes no groups", "{groups: [7]}", plain)
    one = file_of(DOMAIN, GroupedWindows(MAPS["numbered"], some_windows()[:4]))
    add_options("both ways", one_way, "{groups: [1, 1], columns: {g: [1, 1]}}", one)


def _add_refusals(plan):
    """Maps that are not the graph's, and vectors that the graph does not answer."""
    model, plain = group_rows.NAMED, compile_text(INTEGER_SPEC).model
    for name, change in {
        "no groups": lambda c: c.pop("groups"),
        "a column too few": lambda c: c["groups"]["columns"].pop(),
        "a column too many": lambda c: c["groups"]["columns"].append({"name": "x", "values": [1]}),
    }.items():
        forged = restated(model, "labeldp.certificate", change)
        plan.add(f"refused: {name}", forged, "certificate is damaged")
    one = {"columns": [{"name": "x", "values": [1]}]}
    forged = restated(plain, "labeldp.certificate", lambda c: c.update(groups=one))
    plan.add("refused: groups of a plain graph", forged, "certificate is damaged")
    for name, change in {
        "no groups": lambda v: v.pop("groups"),
        "groups of another row": lambda v: v["groups"].reverse(),
        "a column too few": lambda v: [row.pop() for row in v["groups"]],
    }.items():
        failing = restated(model, "labeldp.self_test", change)
        plan.add(f"refused: vectors with {name}", failing, "gives wrong results")
