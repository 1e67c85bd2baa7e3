"""Labels of several columns with a table for each public group: the labels of Python, word by word.

Labels and groups are as odd as each language allows, together.
"""

import itertools
import json
from functools import cache

import numpy as np
from labeldp_runtime import Randomizer
from labeldp_verify import check_bytes
from labeldp_verify.forms import (
    CategoricalDomain,
    GroupedWindows,
    IntegerDomain,
    JointDomain,
    RealDomain,
)

from labeldp_compile.export.portable import as_portable_file
from runtime.tests.helpers import restated
from tests import group_rows
from tests.languages.cases import EDGES, as_hex, as_text, bits, words_of
from tests.languages.grouped import EDGES as GROUP_EDGES
from tests.languages.grouped import GOOD, JAVASCRIPT
from tests.languages.hostile import OTHERS
from verifier.tests.files import file_of
from verifier.tests.integers import response, top_k

PRICE, CODE, TEXT, COUNT = "price", "__proto__", "text \u202e", "n"
NAMES = (PRICE, CODE, TEXT, COUNT)
DOMAINS = {
    PRICE: RealDomain(-1.1, 0.7, 3),
    CODE: CategoricalDomain((2**53 + 1, -(2**63), 7), 2**53 + 1),
    TEXT: CategoricalDomain(("é", "e\u0301", "", "größer"), ""),
    COUNT: IntegerDomain(-1, 1),
}
LABEL = JointDomain.of(list(DOMAINS.values()))
KINDS = {PRICE: "float64", CODE: "int64", TEXT: "string", COUNT: "int64"}
GROUP_KINDS = {"age": "float64", "work": "string", "code": "int64"}
BITS, ROWS = 50, 2000
_PLAIN = {"int64": int, "float64": float, "string": str}


@cache
def _model(epsilon):
    """Tables that all differ: of one, the outputs are in another order."""
    numbers = list(range(LABEL.size))
    windows = (
        response(numbers, numbers, epsilon, BITS),
        response(numbers, numbers[::-1], epsilon, BITS),
        response(numbers, [*numbers[7:], *numbers[:7]], epsilon, BITS),
        response(numbers, [*numbers[40:], *numbers[:40]], epsilon, BITS),
        top_k(numbers, numbers[::2], epsilon, BITS),
    )
    integers = GroupedWindows(group_rows.GROUPS, windows)
    return file_of(LABEL, integers, epsilon, "zero_one", columns=NAMES)


@cache
def _portable():
    return as_portable_file(check_bytes(_model(2)).require().artifact).model


def add_joint_by_group(plan):
    """The cases whose names begin with ``joint: by group``, ``wrong columns`` and ``refused``."""
    for name, data in (("noisy", _model(2)), ("told", _model(30)), ("portable", _portable())):
        for lacking in (False, True):
            nulls = ", nulls" if lacking else ""
            _add_rows(plan, f"joint: by group, {name}{nulls}", data, lacking)
    _add_javascript(plan)
    _add_wrong(plan)
    _add_refusals(plan)


def _edges(lacking):
    """What may be in each column of labels, and of groups."""
    labels = {}
    for name, domain in DOMAINS.items():
        inside = map(_PLAIN[KINDS[name]], domain.labels())
        odd = [v for v in EDGES[KINDS[name]] if not isinstance(v, str) or "\0" not in v]
        labels[name] = [*inside, *odd, *([None] if lacking else [])]
    groups = {}
    for column in group_rows.GROUPS.columns:
        odd = [v for v in GROUP_EDGES[GROUP_KINDS[column.name]] if lacking or v is not None]
        groups[column.name] = [*odd, *(column.values or ())]
    return labels, groups


def _stated(columns, kinds):
    """Columns as a case has them."""
    return {
        name: {
            "type": kinds[name],
            "values": [None if v is None else as_text([v])[0] for v in own],
        }
        for name, own in columns.items()
    }


def _answers(model, labels, words, groups):
    """The private columns of Python, as the drivers print them."""
    found = Randomizer(model).apply_words(labels, words, columns=groups)
    return {name: bits(np.array(own)) for name, own in found.items()}


def _add_rows(plan, name, model, lacking, repeat=12):
    """Random rows, repeated so that they are more than one chunk of any language."""
    generator = np.random.default_rng(len(plan.cases))
    labels, groups = (
        {n: [own[i] for i in generator.integers(0, len(own), ROWS)] for n, own in columns.items()}
        for columns in _edges(lacking)
    )
    words = words_of(ROWS * repeat, len(plan.cases))
    words[:2] = 0, 2**64 - 1
    many = [{n: own * repeat for n, own in columns.items()} for columns in (labels, groups)]
    plan.add(
        name,
        model,
        [_answers(model, many[0], words, many[1])],
        type="columns",
        labels=_stated(labels, KINDS),
        columns=_stated(groups, GROUP_KINDS),
        repeat=repeat,
        words=as_hex(words),
    )


LABELS = {
    PRICE: ("0.25, -7, 99, null", [0.25, -7.0, 99.0, None]),
    CODE: ("7n, 7, 2n ** 53n + 1n, {}", [7, 7, 2**53 + 1, None]),
    TEXT: (r"'\u00e9', 'e\u0301', '', 7", ["é", "e\u0301", "", None]),
    COUNT: ("0, 2.5, true, 'x'", [0, 2, 1, None]),
}


def _add_javascript(plan):
    """Each odd element of a column of labels beside each odd element of a column of groups."""
    model, words = _model(30), words_of(5, 0)
    odd_groups = [(name, *odd) for name, own in JAVASCRIPT.items() for odd in own.items()]
    odd_labels = list(itertools.product(OTHERS, LABELS))
    for i in range(max(len(odd_groups), len(odd_labels))):
        column, text, value = odd_groups[i % len(odd_groups)]
        odd, place = odd_labels[i % len(odd_labels)]
        texts = {name: f"{own}, null" for name, (own, _) in LABELS.items()}
        labels = {name: [*own, None] for name, (_, own) in LABELS.items()}
        texts[place] = f"{odd}, {LABELS[place][0]}"
        labels[place] = [None, *LABELS[place][1]]
        arrays = {name: ", ".join([own] * 5) for name, own in GOOD.items()}
        rows = {"age": [18.0] * 5, "work": ["é"] * 5, "code": [7] * 5}
        arrays[column] = f"{text}, {', '.join([GOOD[column]] * 4)}"
        rows[column] = [value, *rows[column][1:]]
        plan.add(
            f"joint: by group, {i}, {place} is {odd}, {column} is {text}",
            model,
            [_answers(model, labels, words, rows)],
            type="javascript",
            labels=_object(texts),
            options=f"{{columns: {_object(arrays)}}}",
            words=as_hex(words),
        )


def _object(texts):
    """An object of JavaScript with an array for each column."""
    names = {name: f"[{json.dumps(name)}]" for name in texts}
    return f"({{{', '.join(f'{names[name]}: [{own}]' for name, own in texts.items())}}})"


def _add_wrong(plan):
    labels = _stated({PRICE: [0.0, 0.0], CODE: [7, 7], TEXT: ["", "é"], COUNT: [0, 1]}, KINDS)
    groups = _stated({"age": [18.0, 1.0], "work": ["é", None], "code": [7, 7]}, GROUP_KINDS)

    def add(name, reason, labels=labels, groups=groups, **case):
        case = {"type": "columns", "labels": labels, "columns": groups, **case}
        plan.add(f"wrong columns: by group, {name}", _model(2), reason, **case)

    short, numbers = {"type": "int64", "values": ["7"]}, groups["age"]
    few, unequal = "one group per label|one (group )?a label", "one label per row|not one a row"
    add("no group", "one group per label|a column .?age.? of groups", groups={})
    add("a group too few", few, groups={**groups, "code": short})
    add("a label too few", unequal, {**labels, COUNT: short})
    without = {name: own for name, own in labels.items() if name != COUNT}
    add("a group for a label", "expected a column|no column of this name", {**without, **groups})
    add("floats", "integers as groups|another type", groups={**groups, "code": numbers})
    for options in ("undefined", "{groups: [1, 1]}"):
        add(options, "TypeError: expected one group per label", options=options)


def _add_refusals(plan):
    one_more = {"name": "x", "values": [1]}
    for name, change in (
        ("no groups", lambda c: c.pop("groups")),
        ("a group too few", lambda c: c["groups"]["columns"].pop()),
        ("a group too many", lambda c: c["groups"]["columns"].append(one_more)),
        ("a name too few", lambda c: c["joint"]["columns"].pop()),
    ):
        forged = restated(_model(2), "labeldp.certificate", change)
        plan.add(f"refused: joint by group, {name}", forged, "certificate is damaged")
    for name, change in (
        ("groups of another row", lambda v: v["groups"].reverse()),
        ("labels of another row", lambda v: v["labels"].reverse()),
        ("a column of groups too few", lambda v: [row.pop() for row in v["groups"]]),
    ):
        failing = restated(_model(2), "labeldp.self_test", change)
        plan.add(f"refused: joint by group, vectors with {name}", failing, "gives wrong results")
