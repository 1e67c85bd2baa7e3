"""Batches that differ in one row, whose label is as odd as the language allows.

Each group of batches is one case with the same words for all; row ``ROW`` is what differs. Labels
are paired with what Python calls the same label, so that both languages must answer alike; whatever
is no label anywhere is None there, and bytes that are no UTF-8 are a text that is not listed.
"""

import math
import re

import numpy as np
from labeldp_runtime import Randomizer

from tests.fixtures.compiled import CATEGORICAL_SPEC, INTEGER_SPEC, REAL_SPEC, compile_text
from tests.languages.cases import as_text

ROW = 2
CODES = [-(2**63), -5, 0, 1, 3, 2**53, 2**53 + 1, 2**63 - 1]
TEXTS = [
    "red",
    "?",
    "",
    "größer",
    "日本",
    "\ufffd",
    "\ufeffa long category that begins with a mark",
]
SPECS = {
    "text": CATEGORICAL_SPEC.replace("[red, green, blue]", str([*TEXTS, "green"])),
    "text, nulls": CATEGORICAL_SPEC.replace("loss:", "  nulls: {default: blue}\nloss:"),
    "codes": CATEGORICAL_SPEC.replace("[red, green, blue]", str(CODES)).replace(
        "default: green", f"default: {2**53 + 1}"
    ),
    "integer, clamp": INTEGER_SPEC,
    "integer, default": INTEGER_SPEC.replace("loss:", "  out_of_domain: {default: 7}\nloss:"),
    "real, nearest": REAL_SPEC.replace("unbiased", "nearest"),
    "real, unbiased": REAL_SPEC,
}

NUMBERS = {
    **{"true": True, "false": False, "0": 0, "-0": -0.0, "1": 1, "3": 3, "2.5": 2.5, "3.5": 3.5},
    **{"-0.5": -0.5, "0.49999999999999994": 0.49999999999999994, "NaN": math.nan, "3n": 3},
    **{"Infinity": math.inf, "-Infinity": -math.inf, "1e308 * 10": math.inf, "5e-324": 5e-324},
    **{"2 ** 53": 2**53, "2n ** 53n + 1n": 2**53 + 1, "2n ** 64n + 3n": 2**64 + 3},
    **{"-(2n ** 70n)": -(2**70), "10n ** 400n": 10**400, "2 ** 63": 2**63, "-(2 ** 63)": -(2**63)},
    **{"4503599627370495.5": 4503599627370495.5, "-4503599627370497": -4503599627370497},
}
TEXT = {
    **{"'red'": "red", "''": "", "'?'": "?", "'日本'": "日本", "'mauve'": "mauve", "'🙂'": "🙂"},
    **{r"'\ud800'": "\ud800", r"'\udfff'": "\udfff", r"'\ufffd'": "\ufffd", r"'\0'": "\0"},
    **{r"'red\0'": "red\0", r"'red\0x'": "red\0x", r"'\0red'": "\0red", "'3'": "3", "'NaN'": "NaN"},
    **{r"'\ufeffa long category that begins with a mark'": TEXTS[-1], "' red'": " red"},
    **{"'a long category that begins with a mark'": TEXTS[-1][1:], "'x'.repeat(1e5)": "x" * 10**5},
}
# None of these is a label; "" is a hole in an array. None of their code may run.
OTHERS = [
    *("", "null", "undefined", "{}", "[]", "[3]", "['red']", "new String('red')", "/x/", "() => 3"),
    *("new Number(3)", "new Boolean(true)", "Object(3n)", "Symbol('red')", "Symbol.iterator"),
    *("Object.create(null)", "new Date(3)", "new Date(NaN)", "new Map()", "new Float64Array(1)"),
    "{ valueOf() { throw new Error('read') }, toString() { throw new Error('read') } }",
    "{ [Symbol.toPrimitive]() { throw new Error('read') } }",
    "{ valueOf: () => 3, toString: () => 'red', [Symbol.toStringTag]: 'String' }",
    "{ get valueOf() { throw new Error('read') }, includes: () => { throw new Error('read') } }",
    "new Proxy({}, { get() { throw new Error('read') }, has() { throw new Error('read') } })",
    "new Proxy(function () {}, { apply: () => 3, getPrototypeOf() { throw new Error('read') } })",
    "(() => { const p = Proxy.revocable([], {}); p.revoke(); return p.proxy; })()",
    "class { static [Symbol.toPrimitive]() { return 3; } }",
    "globalThis",
]
# Around the row that differs: labels, and lists of which not one element is a label.
NEIGHBOURS = {
    "text": {"'red'": "red", "'日本'": "日本", "''": "", "'mauve'": "mauve"},
    "numbers": {"3": 3, "2.5": 2.5, "1n": 1, "-7": -7},
    "nothing": dict.fromkeys(["undefined", "{}", "Symbol('x')", "new Date(3)"]),
}
# What makes an array's row 2 no plain element, or runs code when it is read.
ODD_ARRAYS = [
    "(a) => a",
    "(a) => Object.defineProperty(a, 2, { get() { throw new Error('read'); } })",
    "(a) => Object.defineProperty(a, 2, { get() { a[3] = a[0]; a.length = 4; return a[0]; } })",
    "(a) => Object.defineProperty(a, 2, { set() {} })",
    "(a) => { delete a[2]; return a; }",
    "(a) => new Proxy(a, { getOwnPropertyDescriptor(target, key) {"
    " if (key === '2') throw new Error('read');"
    " return Reflect.getOwnPropertyDescriptor(target, key); } })",
    "(a) => Object.assign(new (class extends Array {})(), a)",
]
TYPED = {
    **{f"Int{bits}Array": (f"int{bits}", [0, 3, -1, 127, -128]) for bits in (8, 16, 32)},
    **{f"Uint{bits}Array": (f"uint{bits}", [0, 3, 10, 255]) for bits in (8, 16, 32)},
    "Uint8ClampedArray": ("uint8", [0, 3, 255]),
    "Float32Array": ("float32", [0.0, 3.5, -0.5, math.nan, math.inf, -math.inf, 2.0**40]),
    "Float64Array": (
        "float64",
        [0.0, 2.5, math.nan, math.inf, -1e300, 5e-324, 2.0**63, -(2.0**63)],
    ),
    "BigInt64Array": ("int64", [0, 3, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "BigUint64Array": ("uint64", [0, 3, 2**53 + 1, 2**63, 2**64 - 1]),
}
REFUSED = [
    *("new Set([3, 1])", "new Map([[0, 3]])", "new Set()", "'red'", "new String('red')", "3"),
    *("({ length: 2, 0: 3, 1: 1 })", "(function* () { yield 3; })()", "null", "undefined"),
    *("new DataView(new ArrayBuffer(8))", "new ArrayBuffer(8)", "new WeakSet()", "() => 3"),
    "(function () { return arguments; })(3, 1)",
]

# In C++ text is bytes: what is no UTF-8 is no category.
BYTES = [
    *("red", "日本", "", "?", "\ufffd", "mauve", "red\0", "red\0x", "\0", "\0red", "🙂"),
    "x" * 10**5,
    *(b"\xff", b"red\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", None),
    *(TEXTS[-1], TEXTS[-1][1:]),
]
INTEGERS = [0, 3, -1, -(2**63), 2**63 - 1, 2**53 + 1, 2**31, -(2**31) - 1, None]
DOUBLES = [0.0, -0.0, 2.5, 9.5, math.nan, math.inf, -math.inf, 1e308, -1e300, 5e-324, 2.0**63, None]


def add_replaced_rows(plan):
    """The cases whose name begins with ``one row replaced``, and those of refused containers."""
    models = {}
    for spec, text in SPECS.items():
        # At ε = 20 the private label tells the label, but for a chance below 1e-7.
        models[spec] = compile_text(re.sub("epsilon: [0-9.]+", "epsilon: 20", text)).model
        _add_replaced_rows(plan, spec, models[spec])
    for container in REFUSED:
        add_refused(plan, models["text"], container)
        add_refused(plan, models["codes"], container)
    for container in ("new Float64Array(2)", "new Uint8Array(0)", "new BigInt64Array([3n])"):
        add_refused(plan, models["text"], container)


def _add_replaced_rows(plan, spec, model):
    randomizer = Randomizer(model)
    kind = randomizer.label_type

    def add(name, language, pairs):
        shape = randomizer._words_shape(len(pairs[0][1]))
        words = np.random.default_rng(len(plan.cases)).integers(0, 2**64, shape, np.uint64)
        answers = [randomizer.apply_words(labels, words) for _, labels in pairs]
        batches = [batch for batch, _ in pairs]
        plan.add_batches(
            f"one row replaced: {spec}, {name}", model, answers, language, batches, words
        )

    labels = {"null": None, **NUMBERS, **TEXT, **dict.fromkeys(OTHERS)}
    for name, neighbours in NEIGHBOURS.items():
        around = list(neighbours), list(neighbours.values())
        pairs = [_replaced(*around, *label, kind) for label in labels.items()]
        add(f"between {name}", "javascript", pairs)
        batch, values = _replaced(*around, "null", None, kind)
        add(
            f"odd arrays of {name}", "javascript", [(f"({f})({batch})", values) for f in ODD_ARRAYS]
        )
    if kind == "string":
        add("in C++", "bytes", _vectors(BYTES))
        return
    add("in C++", kind, _vectors(INTEGERS if kind == "int64" else DOUBLES))
    for container, (dtype, values) in TYPED.items():
        add(container, "javascript", _typed(container, dtype, values))


def add_refused(plan, model, container):
    """A container that is refused by its type."""
    name = f"wrong kind: {len(plan.cases)}, {container}"
    plan.add(name, model, "TypeError: expected", type="javascript", labels=container)


def _replaced(texts, values, text, value, kind):
    """A batch in JavaScript with one label in row ``ROW``, and as Python objects [n]."""
    batch = ", ".join([*texts[:ROW], text, *texts[ROW:]])
    type_of_label = str if kind == "string" else int | float
    labels = [v if isinstance(v, type_of_label) else None for v in [*values, value]]
    return f"[{batch}]", _objects([*labels[:ROW], labels[-1], *labels[ROW:-1]])


def _objects(labels):
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _typed(container, dtype, values):
    """Batches in a typed array, and as Python objects [n] of the same numbers."""
    big = "n" if container.startswith("Big") else ""
    pairs = []
    for value in values:
        numbers = np.array([values[0], values[1], value, values[-1]], dtype=dtype).tolist()
        batch = ", ".join(f"{text}{big}" for text in as_text(numbers))
        pairs.append((f"new {container}([{batch}])", _objects(numbers)))
    return pairs


def _vectors(values):
    """Batches as the driver in C++ reads them, and as Python objects [n]."""
    batches = [[values[0], None, value, values[1]] for value in [None, *values]]
    return [
        (
            [_in_cpp(v) for v in batch],
            _objects(["\0" if isinstance(v, bytes) else v for v in batch]),
        )
        for batch in batches
    ]


def _in_cpp(value):
    if isinstance(value, str | bytes):
        return (value.encode() if isinstance(value, str) else value).hex()
    return None if value is None else as_text([value])[0]
