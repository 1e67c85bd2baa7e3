"""The privacy of an artifact, from its bytes, with Python's standard library alone.

    bytes ──► graph ──► integers ──► ratio ──► ε

This file imports nothing of labeldp: copy it, read it, and run ``python kernel.py FILE``. It proves
one sentence: *for any two labels of a row, the probabilities of each answer of the graph in FILE
differ by a factor of at most e^ε*. It assumes that the random words of the graph (of limbs, their
lowest 31 bits) are uniform, secret and used once, and that operators compute what ONNX defines.
Groups are public: the sentence holds within each group. The kernel reads no certificate, and does
not judge how useful the answers are. It refuses everything that it does not know (``Refused``).

Read it from top to bottom: 1 the protobuf, 2 the graph as terms, 3 what an index can be, 4 the
integers of each form and their ratio, 5 what a graph must compute, 6 from the ratio to ε.
"""

import ast
import struct
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import inf, isfinite, log, trunc
from pathlib import Path
from typing import Any, NamedTuple

MOST_BYTES, MOST_NODES = 1 << 26, 1_000


class Refused(ValueError):  # noqa: N818  # it is an answer
    """The kernel proves nothing about this file; the message says why."""


def need(condition: bool, doubt: str) -> None:
    """Raise Refused unless the condition holds."""
    if not condition:
        raise Refused(doubt)


# ---- 1. The protobuf
#
# A message is a sequence of fields: a tag (number and wire type), then a number, or a length and as
# many bytes. A field that is not named here is refused. A field whose name ends in "s" may repeat;
# any other must occur exactly once. So all readers agree on what a message says.

MODEL = "1 ir_version 2 producer 3 release 5 model_version 7 graph 8 operator_sets 14 notes"
GRAPH = "1 nodes 2 name 5 constants 11 inputs 12 outputs"
NODE = "1 operands 2 results 3 name 4 operator 5 attributes 7 domain"
ATTRIBUTE = "1 name 3 numbers 4 texts 8 integers 9 strings 20 kind"
TENSOR = "1 dims 2 kind 6 strings 8 name 9 raws"
OPERATOR_SET = "1 domain 2 version"
VALUE, TYPE, TENSOR_TYPE = "1 name 2 type", "1 tensor", "1 kind 2 shape"
ARE_TEXTS = {"name", "operator", "operands", "results", "domain"}
ARE_NUMBERS = {"ir_version", "model_version", "numbers", "integers", "kind", "dims", "version"}
HELD_IN = {2: "numbers", 3: "texts", 7: "integers", 8: "strings"}  # by the kind of an attribute

INT32, INT64, STRING, DOUBLE, UINT64 = 6, 7, 8, 11, 13  # element types of ONNX
PACKED = {INT64: "q", UINT64: "Q", DOUBLE: "d"}


def number_at(data: bytes, at: int) -> tuple[int, int]:
    """A number of at most 64 bits, in its shortest form, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        need(at < len(data), "a number is cut off")
        byte, at = data[at], at + 1
        value |= (byte & 127) << shift
        if byte < 128:
            need(value < 1 << 64 and (byte > 0 or shift == 0), "a number is not in shortest form")
            return value, at
    raise Refused("a number has more than 64 bits")


def fields(data: bytes, schema: str) -> dict[str, Any]:
    """The values of a message by the name of their field; ``schema`` numbers the names."""
    words = schema.split()
    names = dict(zip(map(int, words[::2]), words[1::2], strict=True))
    found: dict[str, Any] = {name: [] for name in names.values()}
    value: Any
    at = 0
    while at < len(data):
        tag, at = number_at(data, at)
        value, at = number_at(data, at)
        name = names.get(tag >> 3, "")
        known = name != "" and tag & 7 == (0 if name in ARE_NUMBERS else 2)
        need(known, f"field {tag >> 3} of a message is unknown, or has another type")
        if name not in ARE_NUMBERS:
            need(value <= len(data) - at, "a field is cut off")
            value, at = data[at : at + value], at + value
        found[name].append(str(value, "ascii") if name in ARE_TEXTS else value)
    single = [name for name in found if not name.endswith("s")]
    need(all(len(found[name]) == 1 for name in single), f"{single} must each occur once")
    return found | {name: found[name][0] for name in single}


# ---- 2. The graph as terms
#
# A term is an operator with its attributes, applied to terms. Equal terms have the same number, so
# terms are compared by their numbers, however often their parts repeat. Each name is defined once,
# so its term says everything about its value. A pattern is a term that is built here; it must equal
# one of the graph's own terms.

Term = int
Operator = tuple[Any, ...]  # its name, and (name, value) of each of its attributes
GATHER: Operator = ("GatherElements", ("axis", 0))
LABEL_ENCODER = "ai.onnx.ml" + "LabelEncoder"  # its domain and its name
SIGNS: dict[type, Operator] = {ast.Add: ("Add",), ast.Sub: ("Sub",), ast.Mult: ("Mul",)}
SIGNS |= {ast.Lt: ("Less",), ast.LtE: ("LessOrEqual",), ast.GtE: ("GreaterOrEqual",)}
SIGNS |= {ast.LShift: ("BitShift", ("direction", b"LEFT")), ast.Subscript: GATHER}
SIGNS |= {ast.RShift: ("BitShift", ("direction", b"RIGHT"))}
CASTS = {"int32": INT32, "int64": INT64, "uint64": UINT64, "double": DOUBLE}


class Graph:
    """The constants and inputs of a model, and all that its nodes compute, as terms."""

    def __init__(self, file: bytes) -> None:
        """Read the bytes of a file."""
        need(len(file) <= MOST_BYTES, "the file is larger than 64 MiB")
        model = fields(file, MODEL)
        graph = fields(model["graph"], GRAPH)
        sets = [tuple(fields(each, OPERATOR_SET).values()) for each in model["operator_sets"]]
        need((model["ir_version"], *sets) == (8, ("", 17), ("ai.onnx.ml", 2)), "unknown versions")
        need(max(map(len, graph.values())) <= MOST_NODES, f"more than {MOST_NODES:,} parts")
        self.terms: dict[tuple[Operator, tuple[Term, ...]], Term] = {}
        self.inputs: dict[str, int] = {}  # element types
        self.constants: dict[str, tuple[int, bool, Any]] = {}  # element type, is a scalar, data
        # All names, and those constants whose type was checked: patterns use only these.
        self.named, self.read = dict[str, Term](), dict[str, Term]()
        for each in graph["constants"]:
            self._read_constant(fields(each, TENSOR))
        for name, data in (fields(each, VALUE).values() for each in graph["inputs"]):
            kind = fields(fields(data, TYPE)["tensor"], TENSOR_TYPE)["kind"]
            known = [UINT64, INT64] if name == "entropy" else [INT64, DOUBLE, STRING]
            # Patterns hold the names of inputs, so a name must not be an expression.
            need(kind in known and name.isidentifier(), f"{name} has an unknown type or name")
            self._define(name, self._term(("input", name)))
            self.inputs[name] = kind
        for each in graph["nodes"]:
            self._read_node(fields(each, NODE))
        self.most_bits = 64  # of a word
        self.parts = list(self.terms)  # by term; all that are added later are patterns
        self.own = len(self.parts)
        self.outputs = [self.named[fields(each, VALUE)["name"]] for each in graph["outputs"]]
        # A node that nothing uses could still fail for some labels, and so disclose them.
        used = {arg for _, args in self.parts for arg in args}.union(self.outputs)
        need(len(used) == self.own, "no output uses a part of the graph")

    def _define(self, name: str, term: Term) -> None:
        need(name != "" and name not in self.named, f"{name} is defined twice")
        self.named[name] = term

    def _term(self, operator: Operator, args: tuple[Term, ...] = ()) -> Term:
        return self.terms.setdefault((operator, args), len(self.terms))

    def _read_constant(self, tensor: dict[str, Any]) -> None:
        name, kind, dims, raws = (tensor[key] for key in ("name", "kind", "dims", "raws"))
        alone = len(raws) == (kind in PACKED) == (not tensor["strings"])
        need(alone and kind in (STRING, *PACKED), f"{name} has an unknown type, or wrong data")
        data = raws[0] if raws else tensor["strings"]
        size = len(data) / 8 if raws else len(data)
        need(size >= 1 and (dims == [size] or (not dims and size == 1)), f"wrong shape of {name}")
        self._define(name, self._term(("constant", name)))
        self.constants[name] = kind, not dims, data

    def _read_node(self, node: dict[str, Any]) -> None:
        operator, results = node["domain"] + node["operator"], node["results"]
        attributes = dict(_attribute(fields(each, ATTRIBUTE)) for each in node["attributes"])
        need(len(attributes) == len(node["attributes"]), f"{operator} has an attribute twice")
        operands = tuple(self.named[name] for name in node["operands"])
        term = self._term((operator, *sorted(attributes.items())), operands)
        for i, name in enumerate(results):
            self._define(name, self.output(i, len(results), term))

    def output(self, i: int, count: int, term: Term) -> Term:
        """One of the outputs of a node."""
        return self._term((f"output {i} of {count}",), (term,)) if count > 1 else term

    def vector(self, name: str, kind: int | None = INT64, *, scalar: bool = False) -> Sequence[Any]:
        """The data of a constant, which must have this type and one dimension (none if ``scalar``).

        ``kind`` None accepts any type and returns the bits of numbers: two answers are the same
        only if all their bits are.
        """
        own, is_scalar, data = self.constants.get(name, (0, None, b""))
        need(is_scalar is scalar and kind in (None, own), f"{name} is missing, or has a wrong type")
        self.read[name] = self.named[name]
        packed = f"<{len(data) // 8}{PACKED[kind or INT64]}" if own != STRING else ""
        return struct.unpack(packed, data) if packed else data

    def scalar(self, name: str, kind: int = INT64) -> Any:
        """The number of a constant of this type without dimensions."""
        return self.vector(name, kind, scalar=True)[0]

    def bits(self, name: str) -> int:
        """64 − a shift: how many bits of a word remain, which must be 1 to 63."""
        bits: int = 64 - self.scalar(name, UINT64)
        need(1 <= bits <= 63, f"the shift {name} is not 1 to 63")
        return bits

    def term(self, pattern: str, **given: Term) -> Term:
        """The term of a pattern in Python's syntax, with the graph's constants and given terms.

        ``table[index]`` is GatherElements; ``int64(x)``, ``uint64(x)`` and ``double(x)`` are Cast;
        other calls are operators, and their keywords attributes.
        """
        return self._built(ast.parse(pattern, mode="eval").body, self.read | given)

    def _built(self, node: Any, given: dict[str, Term]) -> Term:
        if isinstance(node, ast.Name):
            return given[node.id]
        operands: Any = [x for x in ast.iter_child_nodes(node) if isinstance(x, ast.expr)]
        if isinstance(node, ast.Call):
            name = operands.pop(0).id
            keywords = sorted((each.arg, ast.literal_eval(each.value)) for each in node.keywords)
            operator = ("Cast", ("to", CASTS[name])) if name in CASTS else (name, *keywords)
        else:
            (sign,) = getattr(node, "ops", [getattr(node, "op", node)])
            operator = SIGNS[type(sign)]
        return self._term(operator, tuple(self._built(each, given) for each in operands))

    def partner(self, operator: str, constant: str) -> Term:
        """The other operand of the only node that applies an operator to a constant."""
        leaf = self.named.get(constant)
        found = [args for (name, *_), args in self.parts if name == operator and leaf in args]
        need(len(found) == 1 and len(found[0]) == 2, f"{constant} is not in one {operator}")
        return found[0][found[0][0] == leaf]


def _attribute(attribute: dict[str, Any]) -> tuple[str, Any]:
    """Its name, and its number, text, numbers or texts."""
    kind = attribute["kind"]
    held = {number: attribute[name] for number, name in HELD_IN.items() if attribute[name]}
    one = [*held] == [kind] and (kind > 3 or len(held[kind]) == 1)
    need(one, f"the attribute {attribute['name']} has a wrong type")
    # Integers below 0 are stored as 2^64 more.
    return attribute["name"], held[kind][0] if kind <= 3 else tuple(held[kind])


# ---- 3. What an index can be
#
# The row of a label is one of a few patterns: LabelEncoder, or a number that is clamped to min …
# max, counted from min, and rounded if it is real, or found among listed bounds by halving their
# list. NaN may become another number before. For several columns it is a sum of these. The
# row lies in 0 … most for any label, also for NaN, an infinity, or a text that is not listed. It
# depends only on the label of its own row, and on a word of that row that nothing else uses. So no
# row changes another one, no index wraps around, and nothing fails for some labels only.


OF_ROWS = {"Add", "Cast", "GatherElements", "Min"}
OF_GROUPS = OF_ROWS | {"constant", "GreaterOrEqual", LABEL_ENCODER, "Where"}


class Rows:
    """The words of each row, and its indices."""

    def __init__(self, graph: Graph, used: int) -> None:
        """A form uses the first ``used`` words of each row; the next word may round its label.

        Words get the shape of the first label, so each row has separate words.
        """
        self.graph, self.used = graph, used
        self.labels = [name for name in graph.inputs if name.startswith("label")]
        self.shape = graph.term("Shape(x)", x=graph.named[self.labels[0]])
        in_limbs, count, form = graph.inputs["entropy"] == INT64, 1, "all"
        width = "limbs_per_label" if in_limbs else "words_per_label"
        if in_limbs or width in graph.constants:
            count = graph.vector(width)[0]
            need(2 <= count <= 9, "the number of words is out of range")
            form = f"Split(Reshape(all, Concat(own, {width}, axis=0), allowzero=1), axis=1)"
        table = graph.term(form, all=graph.named["entropy"], own=self.shape)
        self.words = [self.reshaped(graph.output(i, count, table)) for i in range(count)]
        if in_limbs:
            self.words = self._joined(self.words)

    def _joined(self, limbs: list[Term]) -> list[Term]:
        """The words of limbs: each has the lowest 31 bits of two or three, one after the other."""
        size = 3 if "limb_3_place" in self.graph.constants else 2
        names = ["limb_shift", *(f"limb_{i}_place" for i in range(2, size + 1))]
        known = [self.graph.scalar(name, UINT64) for name in names]
        need(known == [33, 31, 62][:size], "the limbs of a word are joined in an unknown way")
        self.graph.most_bits = 31 * size
        parts = [f"int64(uint64(limb_{i}) << limb_shift{{}})" for i in range(size)]
        places = ["", *(f" >> {name}" for name in names[1:])]
        sums = " + ".join(map(str.format, parts, places))
        groups = [limbs[i : i + size] for i in range(0, len(limbs), size)]
        given = ({f"limb_{i}": limb for i, limb in enumerate(group)} for group in groups)
        return [self.graph.term(f"uint64({sums})", **each) for each in given]

    def reshaped(self, term: Term) -> Term:
        """The same values, one per row in the same order; it fails if their number differs."""
        return self.graph.term("Reshape(x, shape, allowzero=1)", x=term, shape=self.shape)

    def most(self, row: Term) -> int:
        """The greatest value of an index, which must be the row of a label; the least is 0."""
        if len(self.labels) == 1:
            found = self._of_column(self.labels[0], "")
            need(row in found, "an index is not the row of a label")
            return found[row]
        most, total = 0, -1
        for name in self.labels:  # Σ place · stride
            found = {self.reshaped(p): n for p, n in self._of_column(name, f"{name}_").items()}
            ((place, high),) = ((p, n) for p, n in found.items() if p < self.graph.own)
            if f"{name}_stride" in self.graph.constants:
                stride = self.graph.scalar(f"{name}_stride")
                need(stride > 0, "a stride is not positive")
                place, high = self.graph.term(f"place * {name}_stride", place=place), high * stride
            both = self.graph.term("total + place", total=total, place=place)
            most, total = most + high, both if total >= 0 else place
        need(row == total and most < 1 << 62, "an index is not the row of all columns")
        return most

    def _of_column(self, label: str, prefix: str) -> dict[Term, int]:
        """Terms that can be the place of a label, and their greatest values."""
        g, x, kind = self.graph, self.graph.named[label], self.graph.inputs[label]
        found = {}
        for term, (operator, args) in enumerate(g.parts):
            if operator[0] == LABEL_ENCODER and args == (x,):
                listed = dict(operator[1:])  # for some keys, and one for all others
                found[term] = max(*listed["values_int64s"], listed["default_int64"])
        if found:
            return found
        x = self._or_null(x, prefix)
        given: dict[str, Term] = {}
        low, high, default = (f"{prefix}label_{end}" for end in ("min", "max", "default"))
        own, inside, ends = kind, f"Min(Where(x >= {low}, x, {low}), {high})", [low, high]
        if default in g.constants:
            inside = f"Where(And(x >= {low}, x <= {high}), x, {default})"
            ends = [low, default, high]
        elif kind == INT64:
            own, inside = DOUBLE, f"Clip(double(x), {low}, {high})"
        numbers = [g.scalar(end, own) for end in ends]
        need(all(map(isfinite, numbers)) and numbers == sorted(numbers), "the label range is wrong")
        forms, least, most = [f"{inside} - {low}"], numbers[0], numbers[-1] - numbers[0]
        # onnxruntime does not subtract a number that is 0 in float32, even if it is not 0.
        exact = least == trunc(least) if kind == INT64 else least == 0 or abs(least) >= 2.0**-126
        need(exact, "the lowest label is close to 0, or not whole")
        if f"{prefix}bounds" in g.constants:
            forms, most, given = self._halved(g.term(inside, x=x), numbers[-1], prefix)
        elif kind != INT64:
            most, distance = g.scalar(f"{prefix}last_point", DOUBLE), f"({forms[0]})"
            for name in ("points_per_unit", "points_per_unit_doubled", "points_per_unit_halving"):
                if prefix + name in g.constants:
                    need(0 < g.scalar(prefix + name, DOUBLE) < inf, "the label grid is invalid")
                    distance += f" * {prefix}{name}"
            at = f"Min({distance}, {prefix}last_point)"
            # A number of at least 0 is also rounded down as it becomes an integer.
            floor = "Floor({})" if g.inputs["entropy"] == UINT64 else "double(int64({}))"
            if f"{prefix}half" in g.constants:
                need(g.scalar(f"{prefix}half", DOUBLE) == 0.5, "labels are not rounded to nearest")
                forms = [floor.format(f"{at} + {prefix}half")]
            else:
                # floor(x) + [u < x − floor(x)] with u ≥ 0 is at most ceil(x): a whole x stays. With
                # several columns, one may have another shape than the words.
                known = g.bits("rounding_shift"), g.scalar("rounding_unit", DOUBLE)
                need(min(known) >= 0 and not prefix, "labels are rounded in an unknown way")
                below = floor.format(at)
                up = f"double(word >> rounding_shift) * rounding_unit < {at} - {below}"
                forms = [f"{below} + double({up})", f"int64({below}) + int64({up})"]
        need(most == trunc(most) < 1 << 31, "too many labels, or not a whole number")
        casts = "{}", "int32({})", "int64({})", "double({})"
        given |= dict(zip(("x", "word"), (x, *self.words[self.used :]), strict=False))
        return {g.term(c.format(form), **given): int(most) for c in casts for form in forms}

    def _or_null(self, x: Term, prefix: str) -> Term:
        """A label, or if it is NaN another number: any number, for it is clamped like others."""
        if f"{prefix}label_null" not in self.graph.constants:
            return x
        for name in ("label_least", "label_null"):
            self.graph.scalar(prefix + name, DOUBLE)
        return self.graph.term(f"Where(x >= {prefix}label_least, x, {prefix}label_null)", x=x)

    def _halved(
        self, inside: Term, high: float, prefix: str
    ) -> tuple[list[str], float, dict[str, Term]]:
        """The place of a number of at most ``high`` among bounds, and the greatest place.

        A place is 0, or its bound is not above the number. So it is not above ``high`` either.
        """
        g = self.graph
        bounds, place = g.vector(f"{prefix}bounds", DOUBLE), -1
        step = len(bounds) // 2
        need(2 * step == len(bounds) and step & (step - 1) == 0 < step, "bounds cannot be halved")
        most = max(i for i, bound in enumerate(bounds) if i == 0 or bound <= high)
        need(g.scalar(f"{prefix}first_point") == 0, "the first place is not 0")
        while step:
            need(g.scalar(f"{prefix}half_{step}") == step, "the bounds are not halved")
            there, bound = f"{prefix}half_{step}", f"{prefix}middle_{step}"
            if place < 0:
                need(g.scalar(bound, DOUBLE) == bounds[step], "the middle bound is another one")
                form = f"Where(inside >= {bound}, {there}, {prefix}first_point)"
            else:
                there = f"(place + {there})"
                form = f"Where(inside >= {prefix}bounds[{there}], {there}, place)"
            place = g.term(form, inside=inside, place=place)
            step //= 2
        given = {"place": place, "inside": inside}
        if f"{prefix}per_unit" not in g.constants:
            return ["place"], most, given
        # One up if u < the fraction, with u ≥ 0. The fraction of the greatest place is 0 or NaN.
        known = g.bits("rounding_shift"), g.scalar("rounding_unit", DOUBLE)
        need(min(known) >= 0 and not prefix, "labels are rounded in an unknown way")
        per_unit = g.vector("per_unit", DOUBLE)
        need(len(per_unit) == most + 1 and per_unit[most] == 0, "a label is rounded off the list")
        fraction = "(inside - bounds[place]) * per_unit[place]"
        up = f"double(word >> rounding_shift) * rounding_unit < {fraction}"
        return [f"place + int64({up})"], most, given

    def require_public(self, group: Term) -> None:
        """Require that an index has one value per row and depends on groups and constants alone.

        Its value does not matter: it chooses the same table for all labels, or fails for all.
        """
        public, by_row = set[Term](), set[Term]()
        for term, (operator, args) in enumerate(self.graph.parts):
            name, known = operator[0], public.issuperset(args) and operator[0] in OF_GROUPS
            if known or (name == "input" and operator[1].startswith("group")):
                public.add(term)
            number = name == "constant" and self.graph.constants[operator[1]][1]
            reshaped = name == "Reshape" and args[0] in public and args[1] == self.shape
            operands = args[1:] if operator == GATHER and args[0] in public else args
            if number or reshaped or (name in OF_ROWS and by_row.issuperset(operands)):
                by_row.add(term)
        need(group in by_row, "a group depends on more than public columns")


# ---- 4. The integers of each form, and their ratio
#
# A ratio bounds Pr[answer | label] / Pr[answer | other label], for all answers and pairs of labels.


def largest(quotients: Iterable[tuple[int, int]]) -> Fraction:
    """The largest p/q of pairs of integers, q > 0."""
    up, down = 0, 1
    for p, q in quotients:
        if p * down > up * q:
            up, down = p, q
    return Fraction(up, down)


class Window(NamedTuple):
    """Words below T have answers on the base line; a label's offset moves others on the extra line.

    ``base`` and ``extra`` are (length, answer) of consecutive segments; T is the base's length.
    """

    bits: int
    base: list[tuple[int, Any]]
    extra: list[tuple[int, Any]]
    offsets: Sequence[int]

    def ratio(self) -> Fraction:
        """Under every label, an answer has b words of the base line. It also has those words of its
        extra segments that lie in the label's window. So the ratio is at most (b + the most in any
        window) / b."""
        weights: dict[Any, int] = {}
        for length, answer in self.base:
            weights[answer] = weights.get(answer, 0) + length
        window, reach = (1 << self.bits) - sum(weights.values()), max(self.offsets)
        places: dict[Any, list[tuple[int, int]]] = {answer: [] for answer in weights}
        at = 0
        for length, answer in self.extra:
            need(answer in places, "some labels never give an answer of others")
            places[answer].append((at, at := at + length))
        own = ((weights[answer], most_covered(places[answer], window, reach)) for answer in places)
        return largest((base + most, base) for base, most in own)


def most_covered(own: list[tuple[int, int]], window: int, reach: int) -> int:
    """The most that any [s, s + window) with 0 ≤ s ≤ reach covers of disjoint, sorted intervals.

    What is covered rises and falls linearly in s. It stops rising only where s enters an interval,
    or s + window leaves one, or at the ends.
    """
    begins = [begin for begin, _ in own]
    before = list(accumulate((end - begin for begin, end in own), initial=0))

    def up_to(point: int) -> int:
        i = bisect_right(begins, point)
        return before[i - 1] + min(point, own[i - 1][1]) - begins[i - 1] if i else 0

    stops = (min(max(s, 0), reach) for begin, end in own for s in (begin, end - window))
    return max(up_to(s + window) - up_to(s) for s in {0, reach, *stops})


def counts(entries: Sequence[int], bits: int, items: int) -> list[int]:
    """How many words of an alias table lead to each item: at least one, and all words to some item.

    A word w looks at entry P of column j = w mod 2^c; its item is min(w, P) mod 2^c. So it is j as
    long as w ≤ P, for (P >> c) + [j < P mod 2^c] of its words, and P mod 2^c from there on.
    """
    c = len(entries).bit_length() - 1
    need(len(entries) == 1 << c and 1 <= c <= bits and items <= 1 << c, "a table has a wrong size")
    height, found = 1 << (bits - c), [0] * (1 << c)
    for j, entry in enumerate(entries):
        alias = entry & ((1 << c) - 1)
        own = height if alias == j else min(height, (entry >> c) + (j < alias))
        found[j] += own
        found[alias] += height - own
    need(not any(found[items:]) and min(found[:items]) > 0, "unused words or answers without words")
    return found[:items]


class Table(NamedTuple):
    """An alias table for each label, by which a word leads to one of the answers."""

    bits: int
    answers: Sequence[Any]
    rows: list[Sequence[int]]

    def ratio(self) -> Fraction:
        """The largest over the least number of words that lead to an answer."""
        words = [counts(row, self.bits, len(self.answers)) for row in self.rows]
        return largest((max(column), min(column)) for column in zip(*words, strict=True))


class Noise(NamedTuple):
    """A label at y·spacing, 0 ≤ y ≤ period/spacing, plus noise, clamped to low … high.

    One word draws a block of the noise, another the place in the block, by the shape for that side
    of zero. The first block begins at −half·period. The first and the last block stand for all
    noise beyond them.
    """

    bits: int
    spacing: int
    period: int
    half: int
    block_entries: Sequence[int]
    shape_entries: tuple[Sequence[int], Sequence[int]]
    low: int
    high: int

    def ratio(self) -> Fraction:
        """Labels are at most a period D apart. So an answer between the ends has the weights of D +
        1 consecutive noises: of one block, or of the places i … of one and … i of the next. An end
        also gets all noise beyond it, most of it from the nearest label."""
        D, reach = self.period, (self.half - 1) * self.period
        folded = D - reach <= self.low <= self.high <= reach < 1 << 52
        need(D > 0 and folded, "the ends are too far out for the noise")
        blocks = counts(self.block_entries, self.bits, 2 * self.half)
        below, above = (counts(side, self.bits, D) for side in self.shape_entries)
        left, right = blocks[1 : self.half], blocks[self.half : -1]
        found = [Fraction(max(shape), min(shape)) for shape in (below, above)]
        middle = [left[-1], right[0]]
        for steps, a, b in [(left, below, below), (right, above, above), (middle, below, above)]:
            most, least = (list(accumulate(a[::-1], best))[::-1] for best in (max, min))
            falls = largest(zip(most, accumulate(b, min), strict=True))
            rises = largest(zip(accumulate(b, max), least, strict=True))
            found.append(falls * largest(pairwise(steps)))
            found.append(rises * largest((y, x) for x, y in pairwise(steps)))

        def up_to(noise: int) -> int:
            b, i = divmod(noise + self.half * D, D)
            shape = above if b >= self.half else below
            return (sum(blocks[:b]) << self.bits) + blocks[b] * sum(shape[: i + 1])

        under, words = self.high - 1, 1 << (2 * self.bits)
        found.append(Fraction(up_to(self.low), up_to(self.low - D)))
        return max(*found, Fraction(words - up_to(under - D), words - up_to(under)))


# ---- 5. What a graph must compute
#
# For each form, its answer is a pattern around an index. Names of constants only say where to look.
# The whole pattern is compared, so the graph can compute nothing else.


class Lookup(NamedTuple):
    """How a line is searched. A stretch (start, stop, width, place) has buckets of 2^width points;
    the entry q of bucket b is entries[b + place]. A point is in the segment (point + q) >>
    shift."""

    stretches: list[tuple[int, int, int, int]]
    entries: Sequence[int]
    shift: int

    def segments(self) -> tuple[list[int], list[int]]:
        """Where segments begin on the line, and their numbers.

        A bucket is no wider than 2^shift. So from its first to its last point, the number grows by
        at most one: where point + q is a multiple of 2^shift.
        """
        begins, numbers, at = list[int](), [-1], 0
        for start, stop, width, place in self.stretches:
            need(0 <= start < stop < 1 << 63 and width <= self.shift <= 62, "the grid is invalid")
            bucket, last = start >> width, (stop - 1) >> width
            entries = self.entries[at : at + last - bucket + 1]
            need(len(entries) == last - bucket + 1 and place == at - bucket, "wrong size of a grid")
            lows = [start, *range((bucket + 1) << width, stop, 1 << width)]
            for low, high, q in zip(lows, [*lows[1:], stop], entries, strict=True):
                need(low + q >= 0 and high + q <= 1 << 63, "an entry of the grid is out of range")
                number = (high - 1 + q) >> self.shift
                cuts = (low, (low + q) >> self.shift), ((number << self.shift) - q, number)
                for begin, found in cuts:
                    if found != numbers[-1]:
                        begins.append(begin)
                        numbers.append(found)
            at += len(entries)
        need(at == len(self.entries), "wrong size of a grid")
        return begins, numbers[1:]


class Integers(NamedTuple):
    """The integers of a file: one table, or one for each group; and how windows are looked up."""

    tables: Sequence[Window | Table | Noise]
    lookup: Lookup | None = None

    def ratio(self) -> Fraction:
        """The largest of all groups; the group of a label is public."""
        return max(Fraction(1), *(table.ratio() for table in self.tables))


Form = tuple[Term, Integers]  # the answer, and its integers


def window(g: Graph) -> Form:
    """A word u below T stays; the row's offset moves any other."""
    rows, row, offsets = Rows(g, 1), g.partner("GatherElements", "offsets"), g.vector("offsets")
    own = g.scalar("base_total"), g.bits("word_shift"), offsets
    need(rows.most(row) < len(offsets), "some rows have no offset")
    u = g.term("int64(word >> word_shift)", word=rows.words[0])
    above = g.term("u >= base_total", u=u)
    t = g.term("u + offsets[row] * int64(above)", u=u, above=above, row=row)
    return looked_up(g, t, above, [own])


def grouped(g: Graph) -> Form:
    """The same for each group: a move leads from u to the group's part of a common line."""
    rows, totals, moves = Rows(g, 1), g.vector("base_totals"), g.vector("moves")
    group, chosen = (g.partner("GatherElements", name) for name in ("base_totals", "moves"))
    rows.require_public(group)
    by, shifts = "word_shift", list[int]()
    if "word_shifts" in g.constants:
        by, shifts = "word_shifts[group]", [*g.vector("word_shifts", UINT64)]
    shifts = shifts or [g.scalar(by, UINT64)] * len(totals)
    u = g.term(f"int64(word >> {by})", word=rows.words[0], group=group)
    above = g.term("u >= base_totals[group]", u=u, group=group)
    row, size = chosen, g.scalar("moves_per_group")
    for operand in (0, 1, 0):  # where it stands in the pattern
        row = g.parts[row][1][operand]
    pattern = "group * moves_per_group + (row + row) + int64(above)"
    need(chosen == g.term(pattern, group=group, row=row, above=above), "an unknown choice of moves")
    need(2 * rows.most(row) + 2 <= size and len(moves) % size == 0, "some rows have no move")
    each = [moves[i : i + size] for i in range(0, len(moves), size)]
    bases = [set(own[::2]) for own in each]
    need(bases == [{base} for base in accumulate(totals[:-1], initial=0)], "wrong moves below T")
    tables = [(T, 64 - n, own[1::2]) for T, n, own in zip(totals, shifts, each, strict=True)]
    return looked_up(g, g.term("u + moves[chosen]", u=u, chosen=chosen), above, tables)


def looked_up(g: Graph, t: Term, above: Term, tables: list[tuple[int, int, Sequence[int]]]) -> Form:
    """From a point t of the line to the answer of its segment.

    The line has the base lines of all tables (T, bits, moves), then their extra lines. The words of
    a table from T on are moved to its extra line.
    """
    lines, base, extra = [], 0, sum(T for T, *_ in tables)
    for T, bits, moves in tables:
        offsets = [move - extra + T for move in moves]
        need(1 <= bits <= 63 and 1 <= T <= 1 << bits and min(offsets) >= 0, "bad lines or offsets")
        stop = extra + (1 << bits) - T + max(offsets)
        lines.append((bits, (base, base + T), (extra, stop), offsets))
        base, extra = base + T, stop
    ends, tests = [0, base, extra], ["above"]
    if "far_point" in g.constants:
        ends.insert(2, g.scalar("far_point"))
        tests.append("(t >= far_point)")
    bucket = "int64(uint64(t) >> {})"
    if "bucket_shift" in g.constants:
        ends, widths, begins = [0, ends[-1]], [g.scalar("bucket_shift", UINT64)], [0]
        found = bucket.format("bucket_shift")
    else:
        widths, begins = [*g.vector("bucket_shifts", UINT64)], [*g.vector("bucket_starts")]
        line = " + ".join(f"int64({test})" for test in tests)
        found = f"{bucket.format(f'bucket_shifts[{line}]')} + bucket_starts[{line}]"
    stretches = list(zip(ends[:-1], ends[1:], widths, begins, strict=True))
    lookup = Lookup(stretches, g.vector("grid"), g.scalar("segment_shift", UINT64))
    answers, (starts, numbers) = g.vector("segment_values", None), lookup.segments()
    need(max(numbers) < len(answers), "a segment has no answer")

    def between(low: int, high: int) -> list[tuple[int, Any]]:
        i, j = bisect_right(starts, low), bisect_left(starts, high)
        lengths = (b - a for a, b in pairwise([low, *starts[i:j], high]))
        found = zip(lengths, numbers[i - 1 : j], strict=True)
        return [(length, answers[number]) for length, number in found] if low < high else []

    windows = [Window(bits, between(*a), between(*b), offsets) for bits, a, b, offsets in lines]
    pattern = f"segment_values[int64(uint64(t + grid[{found}]) >> segment_shift)]"
    return g.term(pattern, t=t, above=above), Integers(windows, lookup)


def sampled(g: Graph, name: str, word: str, start: str) -> tuple[str, int, list[Sequence[int]]]:
    """The pattern of the item of a word in one of several alias tables (``counts``), which begins
    at ``start``; the bits of the word; and the tables."""
    bits, by = 64, f"{name}_column_shift"
    if f"{name}_word_shift" in g.constants:
        bits, word = g.bits(f"{name}_word_shift"), f"({word} >> {name}_word_shift)"
    size, entries = 1 << g.bits(by), g.vector(f"{name}_entries", UINT64)
    need(len(entries) % size == 0, "a table has a wrong size")
    entry = f"{name}_entries[{start}int64({word} << {by} >> {by})]"
    tables = [entries[i : i + size] for i in range(0, len(entries), size)]
    return f"int64(Min({word}, {entry}) << {by} >> {by})", bits, tables


def table(g: Graph) -> Form:
    """The item of a word in the alias table of the row."""
    rows, row, answers = Rows(g, 1), g.partner("Mul", "columns"), g.vector("values", None)
    item, bits, tables = sampled(g, "table", "word", "row * columns + ")
    need(g.scalar("columns") == len(tables[0]), "a table has a wrong size")
    need(rows.most(row) < len(tables), "some rows have no table")
    answer = g.term(f"values[{item}]", word=rows.words[0], row=row)
    return answer, Integers([Table(bits, answers, tables)])


def additive(g: Graph) -> Form:
    """The label's point plus noise of two words, clamped; all numbers below 2^53, where float64 is
    exact."""
    rows, label, D = Rows(g, 2), g.partner("Mul", "spacing"), g.scalar("period")
    block, bits, (blocks,) = sampled(g, "block", "word", "")
    size, starts = 1 << g.bits("shape_column_shift"), g.vector("shape_starts")
    half, side = len(starts) // 2, f"shape_starts[{block}] + "
    need(starts == (0,) * half + (size,) * half, "the sides of the noise are wrong")
    inside, as_many, (below, above) = sampled(g, "shape", "second", side)
    whole = [g.scalar(name, DOUBLE) for name in ("spacing", "low", "high")]
    exact = all(abs(n) < 1 << 53 and n == trunc(n) and str(n) != "-0.0" for n in whole)
    need(exact and as_many == bits, "the numbers of the noise are not exact")
    spacing, low, high = map(int, whole)
    need(spacing >= 1 and rows.most(label) * spacing <= D, "the labels exceed the period")
    need(g.scalar("noise_shift") == -half * D < 0, "the noise does not begin at -half * D")
    noise = f"({block} * period + {inside} + noise_shift)"
    form, (word, second) = f"Clip(label * spacing + double{noise}, low, high)", rows.words[:2]
    noise_of = Noise(bits, spacing, D, half, blocks, (below, above), low, high)
    return g.term(form, word=word, second=second, label=label), Integers([noise_of])


FORMS = {"offsets": window, "moves": grouped, "table_entries": table, "block_entries": additive}
AFTERWARDS = {"constant", "GatherElements", "Cast", "Add", "Mul", "Div", "Mod"}


def integers_of(data: bytes) -> Integers:
    """The integers of a file; raises Refused for everything that is not proved.

    Every output of the graph depends only on the answer and on constants, so it discloses no more
    than the answer.
    """
    try:
        graph = Graph(data)
        (form,) = (form for constant, form in FORMS.items() if constant in graph.constants)
        answer, integers = form(graph)
        need(max(table.bits for table in integers.tables) <= graph.most_bits, "words are too short")
        told = {answer}
        for term, ((name, *_), args) in enumerate(graph.parts):
            if name in AFTERWARDS and told.issuperset(args):
                told.add(term)
        need(told.issuperset(graph.outputs), "an output depends on more than the answer")
    except Refused:
        raise
    except Exception as error:  # a case without a message
        raise Refused(f"the file is unlike artifacts ({type(error).__name__}: {error})") from error
    return integers


# ---- 6. From the ratio to ε


def reaches(epsilon: Fraction, ratio: Fraction) -> bool:
    """Whether e^ε ≥ ratio is proved: by the sum of εʲ/j!, rounded down to multiples of 2^-256."""
    total, term, j = 1 << 256, 1 << 256, 0
    while term:
        j += 1
        term = term * epsilon.numerator // (epsilon.denominator * j)
        total += term
    return total * ratio.denominator >= ratio.numerator << 256


def epsilon_of(ratio: Fraction) -> Fraction:
    """The least multiple of 10^-12 that is proved to be an ε; the logarithm gives a start."""
    steps = max(0, int((log(ratio.numerator) - log(ratio.denominator)) * 10**12) - 2)
    while not reaches(Fraction(steps, 10**12), ratio):
        steps += 1
    return Fraction(steps, 10**12)


if __name__ == "__main__":
    if not sys.argv[1:]:  # an empty name in a pipeline is no proof
        print("usage: python kernel.py FILE…", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    for path in map(Path, sys.argv[1:]):
        try:
            with path.open("rb") as file:
                ratio = integers_of(file.read(MOST_BYTES + 1)).ratio()
            print(f"{path}: ε ≤ {float(epsilon_of(ratio)):.12f} (ratio {ratio})")  # noqa: T201
        except Refused as refusal:
            sys.exit(f"{path}: refused: {ascii(str(refusal)[:500])[1:-1]}")
        except OSError as error:
            print(f"{path}: {error.strerror}", file=sys.stderr)  # noqa: T201
            sys.exit(2)
