"""What the examples in other languages are asked, and what they must answer."""

import json
import math
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import onnx
from labeldp_runtime import Randomizer
from labeldp_verify.graph import canonical_json

from labeldp_compile.export.portable import as_portable_file
from runtime.tests.helpers import OLD, with_checksum, with_metadata
from tests.fixtures.compiled import CATEGORICAL_SPEC, INTEGER_SPEC, REAL_SPEC, compile_text
from tests.languages.harness import DEMO_ARTIFACT
from verifier.tests.files import rebuilt
from verifier.tests.integers import plain_counts

TINY_WORD = 12  # bits: so few that every count can be enumerated
DRAWS = 100_000
ROWS = 3000
CODES = [-(2**63), -5, 3, 2**53, 2**53 + 1, 2**63 - 1]

SPECS = {
    "integer, clamp": INTEGER_SPEC,
    "integer, default": INTEGER_SPEC.replace("loss:", "  out_of_domain: {default: 7}\nloss:"),
    "real, nearest": REAL_SPEC.replace("unbiased", "nearest"),
    "real, unbiased": REAL_SPEC,
    "real, default": REAL_SPEC.replace("loss:", "  out_of_domain: {default: 2.5}\nloss:"),
    "text": CATEGORICAL_SPEC.replace("[red, green, blue]", '[red, "", größer, "日本", green]'),
    "codes": CATEGORICAL_SPEC.replace("[red, green, blue]", str(CODES)).replace(
        "default: green", f"default: {2**53 + 1}"
    ),
}
REAL_NOISE = re.sub(r"mechanism: .*", "mechanism: {kind: laplace}", REAL_SPEC)
SPECS |= {
    "additive, three words": REAL_NOISE,
    "additive, clipped": INTEGER_SPEC.replace("rr_on_bins", "staircase, clip: true, lattice: 0.25"),
    "table": INTEGER_SPEC.replace("rr_on_bins", "exponential"),
    "table of text": CATEGORICAL_SPEC.replace("randomized_response", "exponential"),
    "kept labels": INTEGER_SPEC.replace("rr_on_bins", "rr_top_k, k: 3"),
}
PORTED = ("integer, clamp", "real, unbiased", "text", "table", "additive, three words")
EDGES = {
    "int64": [-(2**63), 2**63 - 1, -1, 10, 2**31, -(2**31) - 1, 2**53 + 1, *CODES],
    "float64": [math.nan, math.inf, -math.inf, -0.0, -1e300, 9.5, 4.5, 5e-324, 2.0**63],
    "string": ["", "red", "größer", "日本", "mauve", "green ", "\x7f", "🙂", "red\0x"],
}


def words_of(shape, seed):
    """Words for a test; nothing secret is at stake."""
    return np.random.default_rng(seed).integers(0, 2**64, shape, np.uint64)


def as_hex(array):
    """The 64 bits of each number."""
    return [f"{word:016x}" for word in array.view(np.uint64).ravel().tolist()]


def labels_of(kind, generator):
    """Labels of a domain around [0, 9], or of the categories, edges included."""
    if kind == "int64":
        return np.array([*EDGES[kind], *generator.integers(-3, 13, ROWS)], dtype=np.int64)
    if kind == "float64":
        return np.array([*EDGES[kind], *generator.uniform(-2, 12, ROWS)])
    return np.array([*EDGES[kind], *generator.choice(EDGES[kind][:6], ROWS)], dtype=object)


def as_text(values):
    """Numbers as JavaScript and C++ read them."""
    names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    return [names.get(repr(v), repr(v)) if isinstance(v, float) else str(v) for v in values]


def bits(outputs):
    """What the drivers print: the 64 bits of a float, text otherwise."""
    if outputs.dtype == np.float64:
        return as_hex(outputs)
    return [str(value) for value in outputs.tolist()]


class Plan:
    """The cases by name, and what their answers must be."""

    def __init__(self, directory):
        self.directory = directory
        self.cases, self.expected = {}, {}

    def add(self, name, model, expected, **case):
        file = f"{len(self.cases)}.onnx"
        (self.directory / file).write_bytes(model)
        self.cases[name] = {"file": file, **case}
        self.expected[name] = expected

    def add_batches(self, name, model, answers, kind, batches, words):
        """Several batches of labels with the same words."""
        case = {"type": kind, "batches": batches, "words": as_hex(words)}
        self.add(name, model, [bits(answer) for answer in answers], **case)


def build_plan(directory):
    """All cases; their artifacts are written to the directory."""
    plan = Plan(directory)
    artifacts = {name: compile_text(spec) for name, spec in SPECS.items()}
    demo = artifacts["integer, clamp"]
    (directory / DEMO_ARTIFACT).write_bytes(demo.model)
    plan.demo_outputs = {round(value, 4) for value in demo.randomizer.values}
    models = {name: artifact.model for name, artifact in artifacts.items()}
    ported = {name: as_portable_file(artifacts[name].artifact).model for name in PORTED}
    models |= {f"{name}, portable": model for name, model in ported.items()}
    for seed, (name, model) in enumerate(models.items()):
        add_same_words(plan, name, model, seed)
    add_fresh_words(plan)
    add_refusals(plan, artifacts["integer, clamp"].model)
    one_word = {"type": "int64", "labels": ["1", "2"], "words": ["0"]}
    plan.add("wrong kind: one word", artifacts["integer, clamp"].model, "expected", **one_word)
    plan.add("same words: none", artifacts["codes"].model, [], type="int64", labels=[])
    return plan


def add_same_words(plan, name, model, seed):
    randomizer = Randomizer(model)
    labels = labels_of(randomizer.label_type, np.random.default_rng(seed))
    # More than one chunk of any language, so that the seams are tested.
    labels = np.concatenate([labels] * 12)
    words = words_of(randomizer._words_shape(len(labels)), seed)
    words.flat[:2] = 0, 2**64 - 1
    case = {
        "type": randomizer.label_type,
        "labels": as_text(labels.tolist()),
        "words": as_hex(words),
    }
    plan.add(f"same words: {name}", model, bits(randomizer.apply_words(labels, words)), **case)


def add_fresh_words(plan):
    for spec, kind, labels in [
        (INTEGER_SPEC, "int64", [0, 5]),
        (REAL_SPEC, "float64", [9.0, 2.25]),
    ]:
        small = compile_text(spec, word_bits=TINY_WORD)
        for label in labels:
            low, part = int(label), Fraction(label) - int(label)
            chances = Counter()
            for row, weight in [(low, 1 - part), (low + 1, part)]:
                if weight:
                    for value, count in plain_counts(small.randomizer, row).items():
                        chances[bits(np.array([value]))[0]] += weight * count / 2**TINY_WORD
            case = {"type": kind, "labels": [str(label)], "repeat": DRAWS, "calls": 2}
            plan.add(f"fresh words: {kind} {label}", small.model, chances, **case)


def add_refusals(plan, model):
    generator = np.random.default_rng(0)
    plan.add("refused: empty", b"", "not a labeldp artifact")
    plan.add("refused: junk", b"junk" * 100, "not a labeldp artifact|damaged")
    plan.add("refused: cut short", model[:-1], "not a labeldp artifact|damaged|load")
    for place in generator.integers(0, len(model), 60).tolist():
        mutant = bytearray(model)
        mutant[place] ^= 1 << int(generator.integers(0, 8))
        plan.add(f"refused: damaged at {place}", bytes(mutant), "")
    other = onnx.load_from_string(model)
    del other.metadata_props[:]
    plan.add("refused: another ONNX file", other.SerializeToString(), "not a labeldp artifact")
    insecure = rebuilt(model, lambda certificate: certificate.update(insecure="INSECURE: test"))
    plan.add("refused: insecure", insecure, "INSECURE")
    for rule in ("persons/window",):
        file = (OLD / f"{rule}.onnx").read_bytes()
        plan.add(f"refused: {rule}", file, "say prepared|prepared: true")
        plan.add(f"prepared: {rule}", file, None, prepared=True)
    newer = with_metadata(model, "labeldp.format_version", "2.0")
    plan.add("refused: newer format", newer, "2.0.*upgrade")
    forgery = "\x1b[2J\r\nverified \x9b2J \u202e \u2028" + "x" * 1000
    insecure = rebuilt(model, lambda certificate: certificate.update(insecure=forgery))
    plan.add("refused: insecure in control characters", insecure, "tests only")
    for insecure in ({"toString": 1, "valueOf": 1}, [forgery], 1e300):
        mutant = rebuilt(model, lambda c, insecure=insecure: c.update(insecure=insecure))
        plan.add(f"refused: insecure of type {type(insecure)}", mutant, "tests only")
    for version in (forgery, "\ufeff1.0", "1" + forgery):
        newer = with_metadata(model, "labeldp.format_version", version)
        plan.add(f"refused: format {version!a:.20}", newer, "upgrade")
    for value in (f'{{"name":"{forgery}', forgery, "{", "{}", '{"insecure":null}'):
        damaged = with_metadata(model, "labeldp.certificate", value)
        plan.add(f"refused: certificate {value!a:.30}", damaged, "certificate is damaged")
    metadata = {prop.key: prop.value for prop in onnx.load_from_string(model).metadata_props}
    vectors = json.loads(metadata["labeldp.self_test"])
    values = sorted(set(vectors["outputs"]))
    for place in range(0, len(vectors["outputs"]), 9):
        outputs = list(vectors["outputs"])
        outputs[place] = next(value for value in values if value != outputs[place])
        wrong = canonical_json({**vectors, "outputs": outputs})
        failing = with_metadata(model, "labeldp.self_test", wrong)
        plan.add(f"refused: self-test fails at {place}", failing, "gives wrong results")
    for nothing in ("{}", '{"labels":[],"outputs":[],"words":[]}'):
        untested = with_metadata(model, "labeldp.self_test", nothing)
        plan.add(f"refused: self-test is {nothing}", untested, "gives wrong results")
    tables = onnx.load_from_string(model)
    tensor = next(t for t in tables.graph.initializer if t.name == "offsets")
    numbers = np.frombuffer(tensor.raw_data, dtype=np.uint64) ^ np.uint64(1 << 40)
    tensor.raw_data = numbers.tobytes()
    plan.add("refused: other tables", with_checksum(tables), "gives wrong results")
