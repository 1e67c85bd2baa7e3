"""Labels of several columns with a table for each public group: the labels of Python, word by word.

Labels and groups are as odd as each language allows, together.
"""

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
from tests import group_rows
from tests.languages.cases import EDGES, as_hex, as_text, bits, words_of
from tests.languages.grouped import EDGES as GROUP_EDGES
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


def add_joint_by_group(plan):
    """The cases whose names begin with ``joint: by group``."""
    portable = as_portable_file(check_bytes(_model(2)).require().artifact).model
    for name, data in (("noisy", _model(2)), ("told", _model(30)), ("portable", portable)):
        for lacking in (False, True):
            nulls = ", nulls" if lacking else ""
            _add_rows(plan, f"joint: by group, {name}{nulls}", data, lacking)


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
