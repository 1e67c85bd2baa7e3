"""The privacy of an artifact, from its bytes, with Python's standard library alone.

    bytes ──► graph ──► integers ──► ratio ──► ε

This file imports nothing of labeldp: copy it, read it, and run ``python kernel.py FILE``. It proves
one sentence: *whatever two labels a row may have, no answer of the graph in FILE is more than e^ε
times as probable under one as under the other*. It assumes that the random words that the graph
is given are uniform, secret and used once, and that the graph is run as ONNX defines its operators.
Groups are public: the sentence holds within each of them. How useful the answers are is not its
subject, and it reads no certificate. It refuses whatever it does not know (``Refused``).

Read it from top to bottom: 1 the protobuf, 2 the graph as terms, 3 what an index can be, 4 the
integers of each form and their ratio, 5 what a graph must compute, 6 from the ratio to ε.
"""

from __future__ import annotations

import ast
import struct
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise, product
from math import ceil, floor, inf, isfinite, isnan, log, trunc
from operator import add, and_, mul, rshift, sub
from pathlib import Path
from typing import Any, NamedTuple

MOST_BYTES, MOST_NODES = 1 << 26, 1_000


class Refused(ValueError):  # noqa: N818  # it is an answer
    """The file is not as the kernel knows files; the message says where."""


def need(condition: bool, doubt: str) -> None:
    """Raise Refused unless the condition holds."""
    if not condition:
        raise Refused(doubt)


# ---- 1. The protobuf
#
# A message is a sequence of fields: a tag (number and wire type), then a number, or a length and as
# many bytes. A field that is not named here is refused, and so is one that stands there twice,
# unless its name ends in "s": so all readers agree on what a message says.

MODEL = "1 ir_version 2 producer 3 release 5 model_version 7 graph 8 operator_sets 14 notes"
GRAPH = "1 nodes 2 name 5 constants 11 inputs 12 outputs"
NODE = "1 inputs 2 outputs 3 name 4 operator 5 attributes 7 domain"
ATTRIBUTE = "1 name 3 number 4 text 8 integers 9 strings 20 kind"
TENSOR = "1 dims 2 kind 6 strings 8 name 9 raw"
OPERATOR_SET = "1 domain 2 version"
VALUE = "1 name 2 type"
ARE_NUMBERS = {"ir_version", "model_version", "number", "integers", "kind", "dims", "version"}
HELD_IN = {2: "number", 3: "text", 7: "integers", 8: "strings"}  # by the kind of an attribute

INT32, INT64, STRING, BOOL, DOUBLE, UINT64 = 6, 7, 8, 9, 11, 13  # element types of ONNX
PACKED = {INT64: "q", UINT64: "Q", DOUBLE: "d"}
Message = dict[str, list[Any]]


def number_at(data: bytes, at: int) -> tuple[int, int]:
    """A number of at most 64 bits in its shortest form, and the place behind it."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            need(value < 1 << 64 and (byte > 0 or shift == 7), "a number in a longer form")
            return value, at
    raise Refused("a number that is cut off")


def fields(data: bytes, schema: str) -> Message:
    """The values of a message by the name of their field; ``schema`` numbers the names."""
    words = schema.split()
    known = {int(number): name for number, name in zip(words[::2], words[1::2], strict=True)}
    found: Message = {name: [] for name in known.values()}
    at = 0
    while at < len(data):
        tag, at = number_at(data, at)
        name = known.get(tag >> 3, "")
        if not name or tag & 7 != (0 if name in ARE_NUMBERS else 2):
            raise Refused(f"field {tag >> 3} of a message, which no artifact has like this")
        value, at = number_at(data, at)
        if tag & 7:
            need(value <= len(data) - at, "a field that is cut off")
            found[name].append(data[at : at + value])
            at += value
        else:
            found[name].append(value)
    for name, values in found.items():
        need(len(values) <= 1 or name.endswith("s"), f"the field {name} stands there twice")
    return found


def only(message: Message, name: str) -> Any:
    """The value of a field that must be there."""
    need(len(message[name]) == 1, f"the field {name} is missing")
    return message[name][0]


def identifier(data: bytes) -> str:
    """A name of ASCII letters, digits and _: none is empty, and no two look alike."""
    need(data.isascii() and data.decode("ascii").isidentifier(), f"the name {data[:40]!r}")
    return data.decode("ascii")


def type_of_rows(kind: int, columns: int = 1) -> bytes:
    """The type of a tensor [N], or [N, columns], as the bytes of its message."""
    dims = b"\x0a\x03\x12\x01N" + (bytes([10, 2, 8, columns]) if columns > 1 else b"")
    tensor = bytes([8, kind, 18, len(dims)]) + dims
    return bytes([10, len(tensor)]) + tensor


# ---- 2. The graph as terms
#
# A term is an operator with its attributes, applied to terms. Equal terms have one number, so that
# comparing them is comparing numbers, however often their parts repeat. Names are defined once, so
# that the term of a name says all about its value. A pattern is a term, too, that is built here and
# must turn out to be one of the graph's own.

Term = int
Operator = tuple[Any, ...]  # its name, and (name, value) of each of its attributes
Applied = tuple[Operator, tuple[Term, ...]]
GATHER: Operator = ("GatherElements", ("axis", 0))
RIGHT: Operator = ("BitShift", ("direction", b"RIGHT"))
SIGNS: dict[type, Operator]
SIGNS = {ast.Add: ("Add",), ast.Sub: ("Sub",), ast.Mult: ("Mul",), ast.Lt: ("Less",)}
SIGNS |= {ast.LtE: ("LessOrEqual",), ast.GtE: ("GreaterOrEqual",)}
SIGNS |= {ast.LShift: ("BitShift", ("direction", b"LEFT")), ast.RShift: RIGHT}
CASTS = {"int64": INT64, "uint64": UINT64, "double": DOUBLE}


class Graph:
    """The constants and inputs of a model, and all that its nodes compute, as terms."""

    def __init__(self, data: bytes) -> None:
        """Read the bytes of a file."""
        need(len(data) <= MOST_BYTES, "a file of more than 64 MiB")
        model = fields(data, MODEL)
        graph = fields(only(model, "graph"), GRAPH)
        sets = [fields(each, OPERATOR_SET) for each in model["operator_sets"]]
        versions = [(only(each, "domain"), only(each, "version")) for each in sets]
        need(only(model, "ir_version") == 8, "another version of ONNX's format")
        need(versions == [(b"", 17), (b"ai.onnx.ml", 2)], "other versions of the operators")
        need(max(map(len, graph.values())) <= MOST_NODES, "more nodes than any artifact has")
        self.parts: list[Applied] = []  # by term
        self.terms: dict[Applied, Term] = {}
        self.named: dict[str, Term] = {}
        self.constants: dict[str, tuple[int, bool, Any]] = {}  # element type, is a scalar, data
        self.read: dict[str, Sequence[Any]] = {}  # of which the type was demanded, as in patterns
        for each in graph["constants"]:
            self._read_constant(fields(each, TENSOR))
        inputs = [fields(each, VALUE) for each in graph["inputs"]]
        self.inputs = {identifier(only(each, "name")): only(each, "type") for each in inputs}
        for each in inputs:
            name = identifier(only(each, "name"))
            self._define(name, self._term(("input", name), ()))
        for each in graph["nodes"]:
            self._read_node(fields(each, NODE))
        self.own = len(self.parts)  # terms from here on are patterns
        self.outputs = self._named([only(fields(each, VALUE), "name") for each in graph["outputs"]])
        # A node that nothing uses could still fail for some labels, and disclose them like that.
        need(len(self.below(self.outputs, ())) == self.own, "a part that no output uses")

    def _define(self, name: str, term: Term) -> None:
        need(name not in self.named, f"{name} is defined twice")
        self.named[name] = term

    def _term(self, operator: Operator, args: tuple[Term, ...]) -> Term:
        term = self.terms.setdefault((operator, args), len(self.parts))
        if term == len(self.parts):
            self.parts.append((operator, args))
        return term

    def _named(self, names: Sequence[bytes]) -> tuple[Term, ...]:
        read = [identifier(name) for name in names]
        need(all(name in self.named for name in read), f"one of {read} is not computed before")
        return tuple(self.named[name] for name in read)

    def _read_constant(self, tensor: Message) -> None:
        name, kind, dims = identifier(only(tensor, "name")), only(tensor, "kind"), tensor["dims"]
        need(kind in (STRING, *PACKED), f"the type of {name}")
        need(not tensor["raw" if kind == STRING else "strings"], f"the data of {name}")
        data = tensor["strings"] if kind == STRING else only(tensor, "raw")
        size = len(data) if kind == STRING else len(data) / 8
        need(size >= 1 and (dims == [size] or (not dims and size == 1)), f"the shape of {name}")
        self._define(name, self._term(("constant", name), ()))
        self.constants[name] = kind, not dims, data

    def _read_node(self, node: Message) -> None:
        operator = identifier(only(node, "operator"))
        domain = b"ai.onnx.ml" if operator == "LabelEncoder" else b""
        need(only(node, "domain") == domain, f"the operator {operator} of another domain")
        attributes = [self._attribute(fields(each, ATTRIBUTE)) for each in node["attributes"]]
        need(len(dict(attributes)) == len(attributes), f"attributes of {operator}")
        whole = self._term((operator, *sorted(attributes)), self._named(node["inputs"]))
        count = len(node["outputs"])
        for i, name in enumerate(node["outputs"]):
            self._define(identifier(name), whole if count == 1 else self.output(i, count, whole))

    def _attribute(self, attribute: Message) -> tuple[str, Any]:
        name, place = identifier(only(attribute, "name")), HELD_IN.get(only(attribute, "kind"))
        held = [key for key in HELD_IN.values() if attribute[key]]
        need(held == [place], f"the attribute {name}")
        values = attribute[held[0]]
        if held[0] in ARE_NUMBERS:  # those below 0 stand there as 2^64 more
            values = [value - (1 << 64) if value >> 63 else value for value in values]
        return name, tuple(values) if held[0].endswith("s") else values[0]

    def below(self, terms: Iterable[Term], ends: Iterable[Term]) -> set[Term]:
        """These terms and what they are computed from, but for ``ends`` and what is below them."""
        todo, found, left_out = list(terms), set[Term](), set(ends)
        while todo:
            term = todo.pop()
            if term not in found and term not in left_out:
                found.add(term)
                todo += self.parts[term][1]
        return found

    def vector(self, name: str, kind: int, *, scalar: bool = False) -> Sequence[Any]:
        """The data of a constant that must have this type, and one dimension (or none)."""
        found = self.constants.get(name, (0, False, b""))
        need(found[:2] == (kind, scalar), f"the constant {name}")
        if name not in self.read:
            packed = f"<{len(found[2]) // 8}{PACKED.get(kind)}"
            self.read[name] = found[2] if kind == STRING else struct.unpack(packed, found[2])
        return self.read[name]

    def scalar(self, name: str, kind: int = INT64) -> Any:
        """The number of a constant of this type without dimensions."""
        return self.vector(name, kind, scalar=True)[0]

    def answers(self, name: str) -> Sequence[Any]:
        """Answers as their bits: two count as one only if nothing can tell them apart."""
        kind, _, data = self.constants.get(name, (0, False, b""))
        values = self.vector(name, kind)
        return values if kind == STRING else struct.unpack(f"<{len(data) // 8}q", data)

    def bits(self, name: str) -> int:
        """64 − a shift: how many bits of a word it leaves, of which there must be 1 to 63."""
        bits: int = 64 - self.scalar(name, UINT64)
        need(1 <= bits <= 63, f"the shift {name}")
        return bits

    def term(self, pattern: str, **given: Term) -> Term:
        """The term of a pattern in the syntax of Python, of the graph's constants and given terms.

        ``table[index]`` is GatherElements; ``int64(x)``, ``uint64(x)`` and ``double(x)`` are Cast;
        other calls are operators, and their keywords attributes.
        """
        return self._built(ast.parse(pattern, mode="eval").body, given)

    def _built(self, node: Any, given: dict[str, Term]) -> Term:
        if isinstance(node, ast.Name):
            need(node.id in given or node.id in self.read, f"the constant {node.id}")
            return given[node.id] if node.id in given else self.named[node.id]
        if isinstance(node, ast.Call):
            name, operands = getattr(node.func, "id", ""), node.args
            keywords = sorted((each.arg, ast.literal_eval(each.value)) for each in node.keywords)
            operator = ("Cast", ("to", CASTS[name])) if name in CASTS else (name, *keywords)
        elif isinstance(node, ast.Subscript):
            operator, operands = GATHER, [node.value, node.slice]
        elif isinstance(node, ast.Compare):
            operator, operands = SIGNS[type(node.ops[0])], [node.left, *node.comparators]
        else:
            operator, operands = SIGNS[type(node.op)], [node.left, node.right]
        return self._term(operator, tuple(self._built(each, given) for each in operands))

    def output(self, i: int, count: int, term: Term) -> Term:
        """One of several outputs of a node."""
        return self._term((f"output {i} of {count}",), (term,))

    def at(self, term: Term, *path: int) -> Term:
        """A part of a term, and of that one, and so on; any other term, where there is none."""
        for place in path:
            term = dict(enumerate(self.parts[term][1])).get(place, 0)
        return term

    def partner(self, operator: str, constant: str) -> Term:
        """What the graph applies an operator to, together with a constant."""
        leaf, own = self.named.get(constant), self.parts[: self.own]
        found = [args for (name, *_), args in own if name == operator and leaf in args]
        need(len(found) == 1 and len(found[0]) == 2, f"{operator} with {constant}")
        return found[0][0] if found[0][1] == leaf else found[0][1]


# ---- 3. What an index can be
#
# An index may be any function of the label in its own row, and of a word of that row that nothing
# else uses. It must lie in range whatever the label is: NaN, an infinity, a text that nobody
# listed. Then no row moves another one, no index wraps around, and nothing fails for some labels.


class Range(NamedTuple):
    """What holds of a term whatever the labels are: its type, and bounds of its values.

    ``rows`` names the input or vector that has its shape; None means no dimensions. The bounds of
    floats are floats: rounding is monotone, so that computed bounds hold for what is computed.
    """

    kind: int
    low: Any
    high: Any
    rows: str | None = None
    whole: bool = True
    nan: bool = False


INTEGER, WORD = Range(INT64, -(1 << 63), (1 << 63) - 1), Range(UINT64, 0, (1 << 64) - 1)
ANY = Range(DOUBLE, -inf, inf, whole=False, nan=True)
OF_LABELS = {INT64: INTEGER, DOUBLE: ANY, STRING: Range(STRING, 0, 0)}
LIMITS = {INT32: Range(INT32, -(1 << 31), (1 << 31) - 1), INT64: INTEGER, UINT64: WORD}
# What operators compute, which is extreme where their operands are; ``_computed`` adds the types.
FUNCTIONS: dict[str, Callable[..., Any]] = {"Add": add, "Sub": sub, "Mul": mul, "Min": min}
FUNCTIONS |= {"Floor": floor, "And": and_, "BitShift": rshift, "Cast": lambda x: x}
FUNCTIONS |= {"Clip": lambda x, least, most: min(max(x, least), most)}
COMPARISONS = [("GreaterOrEqual",), ("LessOrEqual",), ("Less",)]
NEUTRAL = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0}


def seems_neutral(operator: str, one: Range) -> bool:
    """Whether a constant is neutral in float32 alone: onnxruntime then omits the operation."""
    neutral, number = NEUTRAL.get(operator), one.low
    if one.kind != DOUBLE or one.rows is not None or abs(number) >= 2 or number == neutral:
        return False
    narrow: float = struct.unpack("f", struct.pack("f", number))[0]
    return (narrow if abs(number) >= 2.0**-126 else 0.0) == neutral


class Rows:
    """The inputs of a graph row by row, and what is known of the terms below an index."""

    def __init__(self, graph: Graph) -> None:
        """Words are given the shape of the first label, so that every row has its own."""
        self.graph = graph
        others = [name for name in graph.inputs if name != "entropy"]
        self.labels = [name for name in others if name == "label" or name.startswith("label_")]
        self.groups = [name for name in others if name == "group" or name.startswith("group_")]
        need(len(self.labels) + len(self.groups) == len(others), "an input of another name")
        self.shape = graph.term("Shape(x)", x=graph.named[self.labels[0]])
        words, count = [graph.named["entropy"]], 1
        if "words_per_label" in graph.constants:
            count = graph.vector("words_per_label", INT64)[0]
            need(count in (2, 3), "the number of words")
            table = "Reshape(all, Concat(shape, words_per_label, axis=0), allowzero=1)"
            split = graph.term(f"Split({table}, axis=1)", all=words[0], shape=self.shape)
            words = [graph.output(i, count, split) for i in range(count)]
        need(graph.inputs["entropy"] == type_of_rows(UINT64, count), "the type of the words")
        own = "Reshape(word, shape, allowzero=1)"
        self.words = [graph.term(own, word=word, shape=self.shape) for word in words]
        self.known: dict[Term, Range] = {}

    def bound(self, index: Term, kinds: Sequence[int], names: list[str], words: list[Term]) -> int:
        """The bound of a term that must be a whole number from 0 on, from these inputs and words.

        A term has a greater number than its parts, so that they are taken in order.
        """
        self.known = {word: WORD._replace(rows=self.labels[0]) for word in words}
        for name in names:
            kind = self.graph.inputs[name][3]
            need(self.graph.inputs[name] == type_of_rows(kind) and kind in OF_LABELS, "an input")
            self.known[self.graph.named[name]] = OF_LABELS[kind]._replace(rows=name)
        for term in sorted(self.graph.below([index], (*self.known, self.shape))):
            found = self._range(*self.graph.parts[term])
            limits = LIMITS.get(found.kind, found)
            need(limits.low <= found.low and found.high <= limits.high, "an overflow in an index")
            self.known[term] = found
        found = self.known[index]
        need(found.rows == self.labels[0] and found.kind in kinds, "the type of an index")
        need(found.whole and not found.nan, "an index that is no whole number")
        need(0 <= found.low <= found.high < inf, "an index that is no number from 0 on")
        return int(found.high)

    def _range(self, operator: Operator, args: tuple[Term, ...]) -> Range:
        name = operator[0]
        if name == "constant":
            return self._constant(operator[1])
        if operator == ("Reshape", ("allowzero", 1)) and args[1:] == (self.shape,):
            # It fails unless there are as many rows, and keeps their order.
            return self.known[args[0]]._replace(rows=self.labels[0])
        need(
            args != () and all(arg in self.known for arg in args), f"{name}, which is not the row's"
        )
        ranges = [self.known[arg] for arg in args]
        if operator == GATHER:
            return self._entry(*ranges)
        shapes = {one.rows for one in ranges} - {None}
        need(len(shapes) <= 1, f"{name} of different rows")
        if name == "LabelEncoder":
            listed = dict(operator[1:])  # for some keys, and one for all others
            values = (*listed["values_int64s"], listed["default_int64"])
            found = Range(INT64, min(values), max(values))
        elif operator == ("Where",):
            found = self._chosen(*args)
        else:
            found = self._rounded_up(operator, args) or self._computed(operator, ranges)
        return found._replace(rows=next(iter(shapes), None))

    def _computed(self, operator: Operator, ranges: Sequence[Range]) -> Range:
        """By the bounds of operands, which have one type and are no NaN."""
        name, given = operator[0], ranges[0].kind
        if operator in COMPARISONS:
            return Range(BOOL, 0, 1)
        kind = dict(operator[1:]).get("to", given)
        known = name in FUNCTIONS and operator in ((name,), RIGHT, ("Cast", ("to", kind)))
        need(known and STRING not in (given, kind), f"{name} in an index")
        need(all(one.kind == given and not one.nan for one in ranges), f"{name} of other types")
        # Infinities end where they are clipped; some versions of onnxruntime clip int64 wrongly.
        clips, bounds = name in ("Min", "Clip"), [(one.low, one.high) for one in ranges]
        need(given != INT64 if clips else all(map(isfinite, sum(bounds, ()))), f"{name} of these")
        need(not any(seems_neutral(name, one) for one in ranges), "a constant close to 0 or 1")
        need(name != "BitShift" or ranges[1].high < 64, "a shift by 64 or more")
        if kind == UINT64 and given == INT64 and ranges[0].low < 0:
            return WORD  # numbers below 0 are huge ones
        ends = [FUNCTIONS[name](*corner) for corner in product(*bounds)]
        ends = [float(end) if kind == DOUBLE else trunc(end) for end in ends]
        whole = kind != DOUBLE or name == "Floor" or all(one.whole for one in ranges)
        return Range(kind, min(ends), max(ends), None, whole)

    def _constant(self, name: str) -> Range:
        kind, scalar, _ = self.graph.constants[name]
        values = self.graph.vector(name, kind, scalar=scalar)
        numbers = [value for value in values if not isnan(value)] or [0.0]
        whole = all(isfinite(number) and number == trunc(number) for number in numbers)
        nan, rows = any(map(isnan, values)), None if scalar else name
        return Range(kind, min(numbers), max(numbers), rows, whole, nan)

    def _entry(self, table: Range, index: Range) -> Range:
        size = len(self.graph.vector(table.rows or "", table.kind))
        need(index.kind in (INT32, INT64) and 0 <= index.low <= index.high < size, "an index")
        return table._replace(rows=index.rows)

    def _chosen(self, test: Term, yes: Term, no: Term) -> Range:
        """x ≥ c ? x : c is the larger one, and c for NaN; a ≤ x ≤ b ? x : c is x in a … b, or c;
        y ≥ table[x] ? x : c is no x at which the table has NaN, or c."""
        x, c = self.known[yes], self.known[no]
        a, b, edge = (self.graph.at(test, *path) for path in ((0, 1), (1, 1), (1, 0)))
        if test == self.graph.term("x >= c", x=yes, c=no):
            x = x._replace(low=max(x.low, c.low), high=max(x.high, c.high), nan=False)
        elif test == self.graph.term("And(x >= a, x <= b)", x=yes, a=a, b=b):
            x = x._replace(low=self.known[a].low, high=self.known[b].high, nan=False)
        elif test == self.graph.term("y >= table[x]", y=self.graph.at(test, 0), table=edge, x=yes):
            edges = self.graph.vector(str(self.known[edge].rows), DOUBLE)
            need(len(edges) <= 1 << 12, "more edges than any artifact has")
            x = x._replace(
                high=min(x.high, max(i for i, number in enumerate(edges) if not isnan(number)))
            )
        low, high = min(x.low, c.low), max(x.high, c.high)
        return Range(x.kind, low, high, None, x.whole and c.whole, x.nan or c.nan)

    def _rounded_up(self, operator: Operator, args: tuple[Term, ...]) -> Range | None:
        """floor(x) + [u < x − floor(x)] with u ≥ 0 is at most ceil(x): a whole x is not raised."""
        less = self.graph.at(args[-1], 0)
        given = {"u": self.graph.at(less, 0), "x": self.graph.at(less, 1, 0)}
        up = "u < x - Floor(x)"
        patterns = (f"int64(Floor(x)) + int64({up})", f"Floor(x) + double({up})")
        forms = [self.graph.parts[self.graph.term(pattern, **given)] for pattern in patterns]
        if (operator, args) not in forms or self.known[given["u"]].low < 0:
            return None
        below = self.known[args[0]]
        return below._replace(high=type(below.high)(ceil(self.known[given["x"]].high)))


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
    """Words below T answer by the base line; a label's offset moves all others on the extra line.

    ``base`` and ``extra`` are (length, answer) of consecutive segments; T is the base's length.
    """

    bits: int
    base: list[tuple[int, Any]]
    extra: list[tuple[int, Any]]
    offsets: Sequence[int]

    def ratio(self) -> Fraction:
        """An answer has b words of the base line under every label, and those of its extra segments
        that lie in the label's window: the ratio is at most (b + the most in any window) / b."""
        weights: dict[Any, int] = {}
        for length, answer in self.base:
            weights[answer] = weights.get(answer, 0) + length
        window, reach = (1 << self.bits) - sum(weights.values()), max(self.offsets)
        places: dict[Any, list[tuple[int, int]]] = {answer: [] for answer in weights}
        at = 0
        for length, answer in self.extra:
            need(answer in places, "an answer that some labels never give")
            places[answer].append((at, at := at + length))
        most = {answer: most_covered(own, window, reach) for answer, own in places.items()}
        return largest((weights[answer] + most[answer], weights[answer]) for answer in weights)


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
    """The words of an alias table that lead to each item: all to one of them, some to each.

    A word w looks at entry P of column j = w mod 2^c; its item is min(w, P) mod 2^c. So it is j as
    long as w ≤ P, for (P >> c) + [j < P mod 2^c] of its words, and P mod 2^c from there on.
    """
    c = len(entries).bit_length() - 1
    need(len(entries) == 1 << c and 1 <= c <= bits and items <= 1 << c, "the size of a table")
    height, found = 1 << (bits - c), [0] * (1 << c)
    for j, entry in enumerate(entries):
        alias = entry & ((1 << c) - 1)
        own = height if alias == j else min(height, (entry >> c) + (j < alias))
        found[j] += own
        found[alias] += height - own
    need(not any(found[items:]) and min(found[:items]) > 0, "an answer without words, or words so")
    return found[:items]


class Table(NamedTuple):
    """An alias table for each label, by which a word leads to one of so many answers."""

    bits: int
    answers: int
    rows: list[Sequence[int]]

    def ratio(self) -> Fraction:
        """The largest over the least number of words that lead to an answer."""
        most = least = counts(self.rows[0], self.bits, self.answers)
        for row in self.rows[1:]:
            words = counts(row, self.bits, self.answers)
            most, least = list(map(max, most, words)), list(map(min, least, words))
        return largest(zip(most, least, strict=True))


class Noise(NamedTuple):
    """A label at y·spacing, 0 ≤ y ≤ period/spacing, plus noise, clamped to low … high.

    A word draws a block of the noise, another the place in it by the shape of its side of zero. The
    first block begins at −half·period; the first and the last stand for all noise beyond them.
    """

    bits: int
    spacing: int
    period: int
    half: int
    block_entries: Sequence[int]
    shape_entries: Sequence[int]
    low: int
    high: int

    def ratio(self) -> Fraction:
        """Labels are at most a period D apart, so an answer between the ends sees the weights of
        D + 1 consecutive noises: of one block, or the places i … of one and … i of the next. At the
        ends all noise beyond counts, most for the label that is nearest."""
        D, reach = self.period, (self.half - 1) * self.period
        inside = D - reach <= self.low <= self.high <= reach < 1 << 52
        need(inside and self.half > 1, "ends beyond the noise that is not folded")
        blocks = counts(self.block_entries, self.bits, 2 * self.half)
        size = len(self.shape_entries) // 2
        sides = self.shape_entries[:size], self.shape_entries[size:]
        below, above = (counts(side, self.bits, D) for side in sides)
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
# For each form, its answer as a pattern around the index that it was given. The names of constants
# say where to look, and the whole pattern is compared: whatever else it might be, it is this.


class Lookup(NamedTuple):
    """How a line is searched: (start, stop, width, place of its entries) of stretches of buckets of
    2^width points, an entry q for each bucket, and the segment (point + q) >> shift."""

    stretches: list[tuple[int, int, int, int]]
    entries: Sequence[int]
    shift: int

    def segments(self) -> tuple[list[int], list[int]]:
        """Where segments begin on the line, and their numbers.

        A bucket is no wider than 2^shift: from its first to its last point the number grows by one
        at most, at the point that is a multiple of 2^shift after q was added.
        """
        begins, numbers, at = list[int](), [-1], 0
        for start, stop, width, place in self.stretches:
            need(0 <= start < stop < 1 << 63 and width <= self.shift <= 62, "the grid")
            size = ((stop - 1) >> width) - (start >> width) + 1
            entries = self.entries[at : at + size]
            need(len(entries) == size and place == at - (start >> width), "the size of the grid")
            lows = [start, *range(((start >> width) + 1) << width, stop, 1 << width)]
            ends = [*lows[1:], stop]
            inside = min(map(add, lows, entries)) >= 0 and max(map(add, ends, entries)) <= 1 << 63
            need(inside, "an entry of the grid")
            for low, end, q in zip(lows, ends, entries, strict=True):
                first, last = (low + q) >> self.shift, (end - 1 + q) >> self.shift
                if first != numbers[-1]:
                    begins.append(low)
                    numbers.append(first)
                if last != first:
                    begins.append((last << self.shift) - q)
                    numbers.append(last)
            at += size
        need(at == len(self.entries), "the size of the grid")
        return begins, numbers[1:]


class Integers(NamedTuple):
    """The integers of a file: a table for each group, or one; and how windows are looked up."""

    tables: Sequence[Window | Table | Noise]
    lookup: Lookup | None = None

    def ratio(self) -> Fraction:
        """Of all groups: a label's own is public."""
        return max(Fraction(1), *(table.ratio() for table in self.tables))


Form = tuple[Term, Integers]  # the answer, and its integers
Place = tuple[int, int, int, int, Sequence[int]]  # bits, T, where both lines begin, offsets


def window(g: Graph, rows: Rows) -> Form:
    """u below T stays, and above T is moved by the row's offset."""
    row, offsets = g.partner("GatherElements", "offsets"), g.vector("offsets", INT64)
    need(
        rows.bound(row, (INT32, INT64), rows.labels, rows.words[1:]) < len(offsets),
        "rows without an offset",
    )
    bits, T = g.bits("word_shift"), g.scalar("base_total")
    u = g.term("int64(word >> word_shift)", word=rows.words[0])
    above = g.term("u >= base_total", u=u)
    older = g.term("Where(above, u + offsets[row], u)", u=u, above=above, row=row)
    newer = g.term("u + offsets[row] * int64(above)", u=u, above=above, row=row)
    t = newer if newer < g.own else older
    return looked_up(g, t, above, [(bits, T, 0, T, offsets)])


def grouped(g: Graph, rows: Rows) -> Form:
    """The same for each group: a move leads from u to the group's own part of a common line."""
    group, totals = g.partner("GatherElements", "base_totals"), g.vector("base_totals", INT64)
    need(rows.bound(group, [INT64], rows.groups, []) < len(totals), "groups without a table")
    several = "word_shifts" in g.constants
    shifts = g.vector("word_shifts" if several else "word_shift", UINT64, scalar=not several)
    need(len(shifts) in (1, len(totals)) and 1 <= min(shifts) <= max(shifts) <= 63, "word sizes")
    by = g.term("word_shifts[group]" if several else "word_shift", group=group)
    u = g.term("int64(word >> by)", word=rows.words[0], by=by)
    above = g.term("u >= base_totals[group]", u=u, group=group)
    chosen, size = g.partner("GatherElements", "moves"), g.scalar("moves_per_group")
    row, moves = g.at(chosen, 0, 1, 0), g.vector("moves", INT64)
    pattern = "group * moves_per_group + (row + row) + int64(above)"
    need(chosen == g.term(pattern, group=group, row=row, above=above), "the moves")
    need(
        2 * rows.bound(row, [INT64], rows.labels, rows.words[1:]) + 2 <= size, "rows without a move"
    )
    need(len(moves) == size * len(totals), "the number of moves")
    places, base, extra = list[Place](), 0, sum(totals)
    for i, T in enumerate(totals):
        own, bits = moves[i * size : (i + 1) * size], 64 - shifts[i if several else 0]
        need(set(own[::2]) == {base}, "the moves along the base lines")
        offsets = [move - extra + T for move in own[1::2]]
        places.append((bits, T, base, extra, offsets))
        base, extra = base + T, extra + (1 << bits) - T + max(offsets)
    return looked_up(g, g.term("u + moves[chosen]", u=u, chosen=chosen), above, places)


def looked_up(g: Graph, t: Term, above: Term, places: list[Place]) -> Form:
    """From a point t of the line to the answer of its segment."""
    bits, T, _, start, offsets = places[-1]
    ends = [0, places[0][3], start + (1 << bits) - T + max(offsets)]
    bucket, tests = "int64(uint64(t) >> {}bucket_shift)", {"extra": above}
    if "far_point" in g.constants:
        ends.insert(2, g.scalar("far_point"))
        tests["far"] = g.term("t >= far_point", t=t)
    if "bucket_shift" in g.constants:
        ends, widths, begins = [0, ends[-1]], [g.scalar("bucket_shift", UINT64)], [0]
        found = g.term(bucket.format(""), t=t)
    elif "bucket_shifts" in g.constants:
        widths, begins = [*g.vector("bucket_shifts", UINT64)], [*g.vector("bucket_starts", INT64)]
        line = g.term("int64(extra) + int64(far)" if "far" in tests else "int64(extra)", **tests)
        pattern = "int64(uint64(t) >> bucket_shifts[line]) + bucket_starts[line]"
        found = g.term(pattern, t=t, line=line)
    else:
        widths, begins = [g.scalar("base_bucket_shift", UINT64)], [0]
        found = g.term(bucket.format("base_"), t=t)
        for name, test in tests.items():
            widths.append(g.scalar(f"{name}_bucket_shift", UINT64))
            begins.append(g.scalar(f"{name}_start"))
            moved = f"Where(test, {bucket.format(name + '_')} + {name}_start, other)"
            found = g.term(moved, t=t, test=test, other=found)
    stretches = list(zip(ends[:-1], ends[1:], widths, begins, strict=True))
    lookup = Lookup(stretches, g.vector("grid", INT64), g.scalar("segment_shift", UINT64))
    answers, (starts, numbers) = g.answers("segment_values"), lookup.segments()
    need(max(numbers) < len(answers), "a segment without an answer")

    def between(low: int, high: int) -> list[tuple[int, Any]]:
        i, j = bisect_right(starts, low), bisect_left(starts, high)
        lengths = (b - a for a, b in pairwise([low, *starts[i:j], high]))
        own = numbers[i - 1 : j] if low < high else []
        return [(n, answers[k]) for n, k in zip(lengths, own, strict=low < high)]

    tables = []
    for bits, T, base, extra, offsets in places:
        need(1 <= T <= 1 << bits and min(offsets) >= 0, "lines or offsets")
        stop = extra + (1 << bits) - T + max(offsets)
        tables.append(Window(bits, between(base, base + T), between(extra, stop), offsets))
    pattern = "segment_values[int64(uint64(t + grid[bucket]) >> segment_shift)]"
    return g.term(pattern, t=t, bucket=found), Integers(tables, lookup)


def sampled(g: Graph, name: str, word: Term, start: str, **given: Term) -> tuple[Term, int]:
    """The item of a word in an alias table that begins at ``start`` (``counts``), and its bits."""
    bits = 64
    if f"{name}_word_shift" in g.constants:
        bits = g.bits(f"{name}_word_shift")
        word = g.term(f"word >> {name}_word_shift", word=word)
    g.vector(f"{name}_entries", UINT64)
    by = f"{name}_column_shift"
    place = f"{start}int64(word << {by} >> {by})"
    item = f"int64(Min(word, {name}_entries[{place}]) << {by} >> {by})"
    return g.term(item, word=word, **given), bits


def table(g: Graph, rows: Rows) -> Form:
    """The item of a word in the alias table of the row."""
    row, size = g.partner("Mul", "columns"), g.scalar("columns")
    entries = g.vector("table_entries", UINT64)
    need(size == 1 << g.bits("table_column_shift") and len(entries) % size == 0, "the table")
    need(
        rows.bound(row, [INT64], rows.labels, rows.words[1:]) < len(entries) // size,
        "rows without a table",
    )
    item, bits = sampled(g, "table", rows.words[0], "row * columns + ", row=row)
    each = [entries[i : i + size] for i in range(0, len(entries), size)]
    integers = Integers([Table(bits, len(g.answers("values")), each)])
    return g.term("values[item]", item=item), integers


def additive(g: Graph, rows: Rows) -> Form:
    """The label's point plus noise of two words, clamped; all numbers below 2^53, where float64 is
    exact."""
    newer = "shape_starts" in g.constants
    blocks, shapes = g.vector("block_entries", UINT64), g.vector("shape_entries", UINT64)
    size, columns = 1 << g.bits("shape_column_shift"), 1 << g.bits("block_column_shift")
    block, bits = sampled(g, "block", rows.words[0], "")
    if newer:
        starts, side = g.vector("shape_starts", INT64), "shape_starts[block] + "
        half = len(starts) // 2
        need(list(starts) == [0] * half + [size] * half, "the sides of the noise")
    else:
        side = "Where(block >= zero_block, shape_start_1, shape_start_0) + "
        half, starts = g.scalar("zero_block"), [g.scalar(f"shape_start_{i}") for i in (0, 1)]
        need(starts == [0, size], "the sides of the noise")
    inside, as_many = sampled(g, "shape", rows.words[1], side, block=block)
    sizes = (len(blocks), len(shapes), bits) == (columns, 2 * size, as_many)
    need(sizes and 2 * half <= columns, "the tables of the noise")
    kind, D = DOUBLE if newer else INT64, g.scalar("period")
    spacing, low, high = (g.scalar(name, kind) for name in ("spacing", "low", "high"))
    ends = all(abs(n) < 1 << 53 and n == trunc(n) and str(n) != "-0.0" for n in (low, high))
    need(ends and spacing == trunc(spacing), "numbers of the noise that are not whole")
    label = g.partner("Mul", "spacing")
    most = rows.bound(label, [kind], rows.labels, rows.words[2:])
    need(spacing >= 1 and most * spacing == D, "the period")
    need(g.scalar("noise_shift") == -half * D < 0, "where the noise begins")
    noise = g.term("block * period + inside + noise_shift", block=block, inside=inside)
    at = "label * spacing + double(noise)" if newer else "label * spacing + noise"
    point = g.term(at, label=label, noise=noise)
    raised = "Where(point >= low, point, low)"
    clamped = f"Where({raised} <= high, {raised}, high)"
    answer = g.term("Clip(point, low, high)" if newer else clamped, point=point)
    noise_of = Noise(bits, int(spacing), D, half, blocks, shapes, int(low), int(high))
    return answer, Integers([noise_of])


FORMS = {"offsets": window, "moves": grouped, "table_entries": table, "block_entries": additive}
AFTERWARDS = {"constant", "GatherElements", "Cast", "Add", "Mul", "Div", "Mod"}


def integers_of(data: bytes) -> Integers:
    """The integers of a file; raises Refused for whatever is not proved.

    All that the graph gives is computed from the answer and from constants, and discloses no more.
    """
    try:
        graph = Graph(data)
        (form,) = (form for constant, form in FORMS.items() if constant in graph.constants)
        answer, integers = form(graph, Rows(graph))
        rest = graph.below(graph.outputs, [answer])
        names = {graph.parts[term][0][0] for term in rest}
        need(names <= AFTERWARDS, "an output that is no function of the answer")
    except Refused:
        raise
    except Exception as error:  # a doubt that has no words of its own
        raise Refused(f"something no artifact has ({type(error).__name__}: {error})") from error
    return integers


# ---- 6. From the ratio to ε


def reaches(epsilon: Fraction, ratio: Fraction) -> bool:
    """Whether e^ε ≥ ratio is proved: by the sum of εʲ/j!, rounded down to multiples of 2^-256."""
    total = term = 1 << 256
    j = 0
    while term:
        j += 1
        term = term * epsilon.numerator // (epsilon.denominator * j)
        total += term
    return total * ratio.denominator >= ratio.numerator << 256


def epsilon_of(ratio: Fraction) -> Fraction:
    """The least multiple of 10^-12 that is proved to be an ε; the logarithm says where to begin."""
    steps = max(0, int((log(ratio.numerator) - log(ratio.denominator)) * 10**12) - 2)
    while not reaches(Fraction(steps, 10**12), ratio):
        steps += 1
    return Fraction(steps, 10**12)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        try:
            with path.open("rb") as file:
                ratio = integers_of(file.read(MOST_BYTES + 1)).ratio()
            print(f"{path}: ε ≤ {float(epsilon_of(ratio)):.12f} (ratio {ratio})")  # noqa: T201
        except Refused as refusal:
            sys.exit(f"{path}: refused: {refusal}")
        except OSError as error:
            print(f"{path}: {error.strerror}", file=sys.stderr)  # noqa: T201
            sys.exit(2)
