"""Labels of several columns: what the integers answer, and columns as odd as each language allows.

What is expected comes from the decoded integers, word by word, and from no runtime.
"""

import itertools
import json
from functools import cache

import numpy as np
import onnx
from labeldp_verify import check_bytes
from labeldp_verify.decode import read_form, read_model, read_sets
from labeldp_verify.forms import CategoricalDomain, IntegerDomain
from labeldp_verify.forms.domain import missing_label
from labeldp_verify.graph.self_test import row_of

from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.fixtures.specs import spec as stated
from tests.languages.cases import DRAWS, EDGES, TINY_WORD, as_hex, as_text, bits, words_of
from tests.languages.hostile import OTHERS

ROWS = 3000
CODES = [2**53 + 1, -(2**63), 7]
TEXT, VALUE = "text \u202e", "__proto__"  # names of columns; what is printed is one line


def _column(name, kind, default=None, **domain):
    rule = {} if default is None else {"out_of_domain": {"default": default}}
    return {"column": name, "domain": {"kind": kind, **domain}, **rule}


YES_NO = _column(TEXT, "categorical", "größer", values=["no", "größer"])
NUMBER = _column(VALUE, "integer", min=-3, max=1)
CODE = _column("code", "categorical", CODES[0], values=CODES)
PRICE = _column("price", "real", min=-1.1, max=0.7, points=5)
COUNT = _column("n", "integer", 1, min=0, max=2)


def spec(columns, loss, epsilon, mechanism):
    """A spec of a joint label."""
    if loss == "sum":
        losses = {"categorical": "zero_one", "integer": "squared", "real": "squared"}
        columns = [{**own, "loss": losses[own["domain"]["kind"]]} for own in columns]
    mechanism = f"{{kind: {mechanism}}}"
    return stated(name="joint", columns=columns, loss=loss, epsilon=epsilon, mechanism=mechanism)


SPECS = {
    "two columns": spec([YES_NO, NUMBER], "sum", 2, "auto"),
    "all kinds": spec([PRICE, CODE, COUNT], "sum", 3, "rr_with_prior"),
    "under the 0-1 loss": spec([CODE, YES_NO], "zero_one", 3, "rr_top_k, k: 4"),
    "sets": spec([YES_NO, NUMBER], "zero_one", 1, "auto"),
    "sets of all kinds": spec([PRICE, CODE, COUNT], "zero_one", 0.5, "subset_selection"),
    "large ε": spec([PRICE, CODE, COUNT], "zero_one", 20, "subset_selection"),
}
# At this ε the private label tells the label, but for a chance below 1e-14.
TOLD = spec([PRICE, CODE, COUNT], "sum", 40, "randomized_response")


@cache
def model(text):
    """The bytes of an artifact."""
    return compile_text(text).model


@cache
def decoded(data):
    """Its domain, its sets if it answers with them, and its integers, which are proved."""
    found = check_bytes(data).artifact.only
    claims = found.certificate
    sets = read_sets(claims.sets, claims.labels)
    form = read_form(claims.form, read_model(data), data, found.domain, sets=sets)
    return found.domain, sets, form


def add_joint(plan):
    """The cases whose names begin with ``joint``, ``combinations`` and ``wrong columns``."""
    for seed, (name, text) in enumerate(SPECS.items()):
        for lacking in (False, True):
            _add_same_words(plan, f"{name}{', nulls' if lacking else ''}", text, seed, lacking)
    for name in ("sets", "sets of all kinds", "large ε"):
        _add_members(plan, name)
    _add_told(plan)
    _add_javascript(plan)
    _add_fresh_words(plan)
    _add_wrong_columns(plan)


_PLAIN = {"int64": int, "float64": float, "string": str}


def _kind(part):
    if isinstance(part, CategoricalDomain):
        return "string" if part.is_text else "int64"
    return "int64" if isinstance(part, IntegerDomain) else "float64"


def _names(data):
    metadata = {prop.key: prop.value for prop in onnx.load_from_string(data).metadata_props}
    columns = json.loads(metadata["labeldp.certificate"])["joint"]["columns"]
    return [column["name"] for column in columns]


def _answers(data, columns, words):
    """The private columns of columns, from the integers, as the drivers print them."""
    domain, sets, form = decoded(data)
    parts = zip(domain.parts, columns.values(), strict=True)
    known = [[missing_label(p) if v is None else v for v in own] for p, own in parts]
    rows = np.array([row_of(domain, label, 0) for label in zip(*known, strict=True)])
    numbers = form.outputs_of(rows, words.reshape(-1, 1)).tolist()
    if sets is not None:
        return [str(number) for number in numbers]
    combinations = [domain.combination(number) for number in numbers]
    private = zip(*combinations, strict=True)
    return {name: bits(_array(own)) for name, own in zip(columns, private, strict=True)}


def _array(values):
    return np.array(values, dtype=float if isinstance(values[0], float) else object)


def _stated(columns, parts):
    """Columns as a case has them."""
    kinds = map(_kind, parts)
    return {
        name: {
            "type": kind,
            "values": [None if value is None else as_text([value])[0] for value in own],
        }
        for (name, own), kind in zip(columns.items(), kinds, strict=True)
    }


def _inside(part):
    """The labels of a column as Python has them."""
    return [_PLAIN[_kind(part)](label) for label in part.labels()]


def _rows(part, lacking, generator, count):
    """Labels of a column, inside and outside its domain."""
    edges = [v for v in EDGES[_kind(part)] if not isinstance(v, str) or "\0" not in v]
    chosen = [*_inside(part), *edges, *([None] if lacking else [])]
    return [chosen[i] for i in generator.integers(0, len(chosen), count)]


def _add_same_words(plan, name, text, seed, lacking, repeat=12):
    """Random rows, repeated so that they are more than one chunk of any language."""
    data, generator = model(text), np.random.default_rng(seed)
    parts = decoded(data)[0].parts
    columns = {
        column: _rows(part, lacking, generator, ROWS)
        for column, part in zip(_names(data), parts, strict=True)
    }
    words = words_of(ROWS * repeat, seed)
    words[:2] = 0, 2**64 - 1
    repeated = {column: own * repeat for column, own in columns.items()}
    case = {"type": "columns", "labels": _stated(columns, parts), "repeat": repeat}
    plan.add(f"joint: {name}", data, [_answers(data, repeated, words)], words=as_hex(words), **case)


def _labels(domain):
    """[K] the labels, as tuples of what Python has."""
    return list(itertools.product(*map(_inside, domain.parts)))


def _add_members(plan, name):
    """The labels of every private label, and of what is none (None)."""
    data = model(SPECS[name])
    domain, sets, _ = decoded(data)
    labels = _labels(domain)
    if sets is not None:
        numbers = [*range(len(sets.blocks))]
        expected = [[labels[i] for i in sets.members(number)] for number in numbers]
        none = ["-1", str(len(sets.blocks)), str(2**63 - 1), str(-(2**63))]
        case = {"outputs": "int64", "members": [*as_text(numbers), *none]}
    else:
        expected = [[label] for label in labels]
        private = [domain.combination(i) for i in range(len(labels))]
        none = _none(private[0])
        case = {"outputs": "combinations", "members": [*map(_typed, private), *none]}
    expected += [None] * len(none)
    plan.add(f"combinations: {name}", data, expected, type="columns", **case)


def _typed(label):
    """A private label as pairs, a type and a text."""
    kinds = {int: "int64", float: "float64", str: "string"}
    return [[kinds[type(value)], as_text([value])[0]] for value in label]


def _none(label):
    """What is no private label: of each column something else, a column too few, one too many."""
    good = _typed(label)
    odd = [["string", "7"], ["float64", "NaN"], ["float64", "0.5"], ["float64", "Infinity"]]
    odd += [["int64", str(2**63 - 1)], ["int64", "3"], ["float64", "1e300"], ["float64", "-1"]]
    none = [[*good[:i], value, *good[i + 1 :]] for i in range(len(good)) for value in odd]
    return [*none, good[:-1], [*good, good[-1]], []]


def _add_told(plan):
    """Fresh words through several chunks, where private labels are the labels."""
    data = model(TOLD)
    domain, _, _ = decoded(data)
    chosen = np.random.default_rng(0).integers(0, domain.size, ROWS).tolist()
    columns = [list(own) for own in zip(*map(_labels(domain).__getitem__, chosen), strict=True)]
    columns = dict(zip(_names(data), columns, strict=True))
    expected = {name: bits(_array(own * 40)) for name, own in columns.items()}
    expected["n"] = bits(np.array(columns["n"] * 40, dtype=float))
    case = {"type": "columns", "labels": _stated(columns, domain.parts), "repeat": 40, "calls": 2}
    plan.add("joint: fresh words", data, [expected] * 2, **case)


GOOD = {"price": ("0.25, -7, 99, null", [0.25, -7.0, 99.0, None])}
GOOD["code"] = ("7n, 7, 2n ** 53n + 1n, {}", [7, 7, 2**53 + 1, None])
GOOD["n"] = ("0, 2.5, true, 'x'", [0, 2, 1, None])


def _add_javascript(plan):
    """Each odd element in each column, among plain ones; and columns of all kinds of arrays."""
    data = model(TOLD)
    batches, answers, words = [], [], words_of(5, 0)
    for odd, column in itertools.product(OTHERS, GOOD):
        texts = {name: own for name, (own, _) in GOOD.items()}
        columns = {name: [*own, None] for name, (_, own) in GOOD.items()}
        texts = {name: f"{own}, null" for name, own in texts.items()}
        texts[column] = f"{odd}, {GOOD[column][0]}"
        columns[column] = [None, *GOOD[column][1]]
        batches.append(_object(texts))
        answers.append(_answers(data, columns, words))
    case = {"type": "javascript", "batches": batches, "words": as_hex(words)}
    plan.add("joint: odd elements", data, answers, **case)
    columns = {"price": [0.25, -0.5], "code": [7, -(2**63)], "n": [2, 0]}
    arrays = {
        "price": ["new Float32Array([0.25, -0.5])", "[0.25, -0.5]"],
        "code": ["new BigInt64Array([7n, -(2n ** 63n)])", "[7, -(2 ** 63)]"],
        "n": ["new Uint8Array([2, 0])", "[2n, false]"],
    }
    containers = ["({{{}}})", "Object.assign(Object.create(null), {{{}}})"]
    containers += ["new (class {{ constructor() {{ Object.assign(this, {{{}}}); }} }})()"]
    batches = [
        container.format(", ".join(map(": ".join, zip(arrays, own, strict=True))))
        for own in itertools.product(*arrays.values())
        for container in containers
    ]
    batches.append(f"({{n: [2, 0], unused: 7, code: [7, {-(2**63)}n], price: [0.25, -0.5]}})")
    case = {"type": "javascript", "batches": batches, "words": as_hex(words[:2])}
    expected = [_answers(data, columns, words[:2])] * len(batches)
    plan.add("joint: containers", data, expected, **case)


def _object(texts):
    return f"({{{', '.join(f'{name}: [{own}]' for name, own in texts.items())}}})"


def _add_fresh_words(plan):
    """Sets of the combinations of two columns: how often each is drawn."""
    columns = [YES_NO, {**YES_NO, "column": "b"}]
    small = compile_text(spec(columns, "zero_one", 0.5, "subset_selection"), word_bits=TINY_WORD)
    label = {TEXT: "größer", "b": "no"}
    counts = small.randomizer.counts[2]
    chances = {str(i): count / 2**TINY_WORD for i, count in enumerate(counts)}
    labels = {name: {"type": "string", "values": [value]} for name, value in label.items()}
    case = {"type": "columns", "labels": labels, "repeat": DRAWS, "calls": 2}
    plan.add("fresh words: joint sets", small.model, chances, **case)


def _add_wrong_columns(plan):
    text = {"type": "string", "values": ["no", None]}
    numbers = {"type": "int64", "values": ["1", "2"]}
    one = {"type": "int64", "values": ["1"]}
    two, sets = model(SPECS["two columns"]), model(SPECS["sets"])

    def add(name, reason, labels, data=two, kind="columns", **case):
        plan.add(f"wrong columns: {name}", data, reason, type=kind, labels=labels, **case)

    add("one is missing", r"expected a column .?__proto__.? of labels", {TEXT: text})
    add("other names", r"expected a column .*u.*202e.* of labels", {"x": numbers, VALUE: numbers})
    lengths = "one label per row in each column, got 2, 1|not one a row"
    add("another length", lengths, {TEXT: text, VALUE: one})
    add("sets: another length", lengths, {TEXT: text, VALUE: one}, sets)
    add("numbers for text", "expected text|of another type", {TEXT: numbers, VALUE: numbers})
    words = "expected 2 words, got 1|expected 1 words for each"
    add("one word", words, {TEXT: text, VALUE: numbers}, words=["0"])
    plain = compile_text(INTEGER_SPEC).model
    add("of one column", "expected an array of labels|have one column", {"y": numbers}, plain)
    by_name = "TypeError: expected label columns by name|have several columns"
    for kind in ("int64", "string"):
        add(f"an array of {kind}", by_name, ["1", "2"], two, kind)
        add(f"sets: an array of {kind}", by_name, ["1", "2"], sets, kind)
    for labels in ("null", "undefined", "7", "'no'", "new Float64Array(2)", "() => 7"):
        add(labels, "TypeError: expected label columns by name", labels, two, "javascript")
    for labels in ("new Map()", "Object.create({price: [], code: [], n: []})"):
        add(labels, "TypeError: expected a column", labels, model(TOLD), "javascript")
    for array in ("7", "null", "new Set([1])", "'no'", "{}"):
        labels = f"({{price: {array}, code: [7], n: [1]}})"
        add(array, "TypeError: expected an array of labels", labels, model(TOLD), "javascript")
    good = {TEXT: text, VALUE: numbers}
    add("and groups", "takes no groups", good, options="{groups: [1, 2]}")
