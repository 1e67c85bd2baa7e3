"""Artifacts whose private labels are sets of labels: what is drawn, and the labels in each set."""

import numpy as np
from labeldp_runtime import Randomizer

from runtime.tests.helpers import restated
from runtime.tests.set_files import DAMAGE, NAMES, RANGES, model, sizes_and_outputs
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.languages.cases import EDGES, as_hex, as_text, bits, words_of

ROWS = 3000
TYPES = {"int64": np.int64, "string": object}
NO_NUMBERS = {"all subsets of text": ["-1", "20", str(2**63 - 1), str(-(2**63))]}
NO_LABELS = {
    "large ε, text": ["e", "É", "red  ", "日本", "é\0"],
    "large ε, codes": ["1", "-1", str(2**53 + 2), str(2**63 - 2)],
    "large ε, integers": ["7", "-4", "2.5", "NaN", "Infinity", "1e300"],
}
# What JavaScript may call a private label, and the labels in it; None is a TypeError.
NOT_WHOLE = ["-1", "-1n", "2n ** 64n", "'1'", "1.5", "NaN", "true", "null", "undefined", "[1]"]
NOT_WHOLE += ["{ valueOf() { return 1 } }", "Object(1n)", "Symbol('1')", "1e300", "-Infinity"]
JAVASCRIPT = {
    "all subsets of text": {"1": 1, "1n": 1, "-0": 0, **dict.fromkeys(NOT_WHOLE)},
    "codes": {"2": 2, "2n": 2},
    "integers": {"2": 2, "2n": 2},
    "large ε, text": {
        **{"'é'": "é", r"'e\u0301'": "e\u0301", "''": ""},
        **dict.fromkeys(["0", "0n", "'É'", "new String('é')", "['é']", "null", "'red  '"]),
    },
    "large ε, codes": {
        **{"2n ** 53n + 1n": 2**53 + 1, "2 ** 53": 2**53, "3": 3, "3n": 3, "-0": 0},
        **{"2n ** 63n - 1n": 2**63 - 1, "-(2n ** 63n)": -(2**63), "-(2 ** 63)": -(2**63)},
        **dict.fromkeys(["2 ** 63", "2n ** 53n + 2n", "'3'", "3.5", "true", "NaN", "null", "[3]"]),
    },
    "large ε, integers": {
        **{"-3": -3, "6": 6, "6n": 6, "-0": 0},
        **dict.fromkeys(["7", "-4n", "2.5", "NaN", "'6'", "true", "2n ** 64n", "[6]"]),
    },
}


def add_sets(plan):
    """The cases whose names begin with ``sets``, ``members`` and ``no sets``, and refusals."""
    for seed, name in enumerate(NAMES):
        randomizer = Randomizer(model(name))
        _add_same_words(plan, name, randomizer, seed)
        _add_members(plan, name, randomizer)
    for name, elements in JAVASCRIPT.items():
        _add_javascript(plan, name, elements)
    none = compile_text(INTEGER_SPEC).model
    case = {"type": "int64", "outputs": "float64", "members": ["1", "0"]}
    plan.add("no sets", none, "the private labels of this artifact are not sets of labels", **case)
    for name, change in DAMAGE.items():
        damaged = restated(model("codes"), "labeldp.certificate", change)
        plan.add(f"refused: sets are {name}", damaged, "certificate is damaged")
    for name, change in RANGES.items():
        damaged = restated(model("integers"), "labeldp.certificate", change)
        plan.add(f"refused: sets of {name} labels", damaged, "certificate is damaged")


def _add_same_words(plan, name, randomizer, seed):
    """Labels of the domain and others, more than one chunk of any language."""
    kind, generator = randomizer.label_type, np.random.default_rng(seed)
    edges = [*randomizer.classes, *EDGES[kind]]
    chosen = np.array(edges, dtype=TYPES[kind])[generator.integers(0, len(edges), ROWS)]
    labels = np.tile(chosen, 12 if len(plan.cases) % 3 else 1)
    words = words_of(len(labels), seed)
    words[:2] = 0, 2**64 - 1
    case = {"type": kind, "labels": as_text(labels.tolist()), "words": as_hex(words)}
    expected = bits(randomizer.apply_words(labels, words))
    plan.add(f"sets: {name}", model(name), expected, **case)


def _add_members(plan, name, randomizer):
    """Those of every private label, and of what is none (None)."""
    _, outputs = sizes_and_outputs(randomizer.certificate)
    expected = [as_text(randomizer.members(output)) for output in outputs]
    none = NO_NUMBERS.get(name, []) + NO_LABELS.get(name, [])
    case = {"type": randomizer.label_type, "outputs": randomizer.output_type}
    case["members"] = [*as_text(outputs), *none]
    plan.add(f"members: {name}", model(name), [*expected, *([None] * len(none))], **case)


def _add_javascript(plan, name, elements):
    """Each value alone: its labels with their types."""
    randomizer = Randomizer(model(name))
    whole = {"string": "string", "int64": "bigint"}[randomizer.label_type]
    kind = "number" if name.endswith("integers") else whole
    expected = [
        None if output is None else [f"{kind} {label}" for label in randomizer.members(output)]
        for output in elements.values()
    ]
    case = {"type": "javascript", "outputs": "javascript", "members": f"[{', '.join(elements)}]"}
    plan.add(f"members: {name} in JavaScript", model(name), expected, **case)
