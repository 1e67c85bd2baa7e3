"""What the forms of files share: the certificate, the domain, and outputs.

The kernel reads the integers from the constants that the graph gathers from, and proves what the
graph does with them; ``forms`` are made of these. Nothing is trusted: anything without the
expected form raises DecodeError, and the verifier later checks that the whole file equals the one
rebuilt from what was decoded here.
"""

import json
import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.budget import TooLargeError
from labeldp_verify.checks import short
from labeldp_verify.claims import Certificate
from labeldp_verify.claims.record import ShapeError
from labeldp_verify.cost import charge_fields, charge_json
from labeldp_verify.forms import (
    MAX_GRID_POINTS,
    CategoricalDomain,
    ClassSets,
    Domain,
    GridDomain,
    GroupedWindows,
    Groups,
    IntegerDomain,
    JointDomain,
    Randomizer,
    RealDomain,
)
from labeldp_verify.forms.joint import MAX_LABEL_COLUMNS, Part
from labeldp_verify.forms.window import Output
from labeldp_verify.graph import FORMAT_VERSION, canonical_json, write_model
from labeldp_verify.graph.messages import ModelProto
from labeldp_verify.graph.nodes import DOUBLE, INT64, STRING, is_taken_for, vanishes

METADATA_KEYS = (
    "labeldp.certificate",
    "labeldp.content_sha256",
    "labeldp.format_version",
    "labeldp.self_test",
)
_EXACT_IN_FLOAT64 = 2**53
MAX_LABELS = 1_000_000
_MAX_NODES = 1_000


class DecodeError(Exception):
    """The file does not have the form of an artifact; the message says where."""


def read_model(data: bytes) -> ModelProto:
    """Parse the protobuf."""
    try:
        charge_fields(data)
        model = ModelProto()
        model.ParseFromString(data)
    except TooLargeError:
        raise
    except Exception as error:
        raise DecodeError("the file is not an ONNX model") from error
    if not model.graph.node:
        raise DecodeError("the file is not an ONNX model: it has no graph")
    if max(len(model.graph.node), len(model.graph.initializer)) > _MAX_NODES:
        raise DecodeError("the graph has more nodes or constants than any artifact")
    return model


def read_certificate(model: ModelProto) -> Certificate:
    """The certificate: canonical JSON under the expected metadata keys, in a known format."""
    count = len(model.metadata_props)
    if any(prop.key.startswith("labeldp.model.") for prop in model.metadata_props):
        raise DecodeError("it is a trained model of labeldp export: only randomizers have proofs")
    if count != len(METADATA_KEYS) or {p.key for p in model.metadata_props} != set(METADATA_KEYS):
        raise DecodeError(f"the metadata must hold exactly {', '.join(METADATA_KEYS)}")
    metadata = {prop.key: prop.value for prop in model.metadata_props}
    version = metadata["labeldp.format_version"]
    if version != FORMAT_VERSION:
        raise DecodeError(
            f"the file has format {short(version)}, but this labeldp verifies {FORMAT_VERSION!r}: "
            "use the labeldp release that wrote the file, or compile the spec again"
        )
    text = metadata["labeldp.certificate"]
    charge_json(text)
    certificate = json.loads(text, parse_float=_float64)
    if not isinstance(certificate, dict) or canonical_json(certificate) != text:
        raise DecodeError("the certificate is not canonical JSON")
    try:
        read = Certificate.from_json(certificate)
    except ShapeError as error:
        raise DecodeError(
            f"the certificate has another shape than format {version}: {error}"
        ) from None
    demand(
        version == read.format_version,
        "the format of the file differs from that of its certificate",
    )
    return read


def read_domain(stated: dict[str, Any]) -> Domain:
    """The label domain that the certificate states; the rebuilt graph proves it."""
    domain: Domain
    if stated["kind"] == "joint":
        domain = _read_joint(stated)
        demand(
            canonical_json(domain.to_json()) == canonical_json(stated), "the domain is malformed"
        )
        return domain
    rule, null, keeps = _read_rules(stated["out_of_domain"])
    default = None if rule == "clamp" else rule["default"]
    own = [one for one in (default, null) if one is not None]
    if stated["kind"] == "integer":
        domain = IntegerDomain(stated["min"], stated["max"], default, null, keeps)
        numbers = [domain.min, domain.max, *own]
        demand(
            all(_is_int(n) and abs(n) <= _EXACT_IN_FLOAT64 for n in numbers),
            "the domain is malformed",
        )
    elif stated["kind"] in ("real", "grid"):
        rules = default, null, keeps
        if stated["kind"] == "real":
            ends = stated["min"], stated["max"], stated["points"]
            domain = RealDomain(*ends, stated["rounding"], *rules)
        else:
            domain = _read_grid(stated, rules)
        floats = [domain.min, domain.max, *own]
        demand(
            all(isinstance(x, float) and math.isfinite(x) for x in floats),
            "the domain is malformed",
        )
        demand(
            _is_int(domain.points) and 2 <= domain.points <= MAX_LABELS, "the domain is malformed"
        )
        demand(domain.rounding in ("nearest", "unbiased"), "the domain is malformed")
        demand(domain.min < domain.max and domain.is_faithful(), "the grid of labels is malformed")
        demand(
            isinstance(domain, GridDomain) or not is_taken_for(domain.min, 0.0),
            "onnxruntime would take the lowest label for 0",
        )
    else:
        values = tuple(stated["values"])
        kinds = {type(v) for v in values}
        demand(
            kinds in ({str}, {int}) and len(set(values)) == len(values),
            "the categories are malformed",
        )
        demand(default in values and type(default) in kinds, "the default category is not listed")
        if null is not None:
            known = null in values and type(null) in kinds
            demand(known, "the category of nulls is not listed")
        domain = CategoricalDomain(values, values[values.index(default)], null, keeps)
    if not isinstance(domain, CategoricalDomain):
        demand(domain.min < domain.max, "the domain is malformed")
        inside = all(domain.min <= one <= domain.max for one in own)
        demand(inside, "the default label is outside the domain")
    demand(canonical_json(domain.to_json()) == canonical_json(stated), "the domain is malformed")
    return domain


def _read_rules(stated: Any) -> tuple[Any, Any, bool]:
    """What labels outside the domain become, what nulls become (None: the same), and whether nulls
    stay null."""
    if not isinstance(stated, dict) or "nulls" not in stated:
        return stated, None, False
    nulls = stated["nulls"]
    return stated["others"], None if nulls == "public" else nulls["default"], nulls == "public"


def _read_grid(stated: dict[str, Any], rules: tuple[Any, Any, bool]) -> GridDomain:
    """A domain of listed numbers."""
    values, (default, null, keeps) = stated["values"], rules
    listed = isinstance(values, list) and 2 <= len(values) <= MAX_GRID_POINTS
    demand(listed and all(isinstance(one, float) for one in values), "the grid is malformed")
    return GridDomain.of(values, stated["rounding"], default, null, keeps_nulls=keeps)


def _read_joint(stated: dict[str, Any]) -> JointDomain:
    """A joint label of columns, none of which is joint itself."""
    columns = stated["columns"]
    listed = isinstance(columns, list) and 2 <= len(columns) <= MAX_LABEL_COLUMNS
    demand(listed, "the columns of the label are malformed")
    plain = all(isinstance(c, dict) and c.get("kind") != JointDomain.kind for c in columns)
    demand(plain, "a column of the label is itself a joint label")  # before it is built
    parts: list[Part] = []
    for column in columns:
        part = read_domain(column)
        demand(
            part.words_per_label == 1, "a column of the label is not rounded to the nearest point"
        )
        parts.append(part)
    return JointDomain.of(parts)


def refuse_vanishing_nodes(model: ModelProto) -> None:
    """DecodeError if onnxruntime would leave out a node that is needed (see ``graph/nodes.py``)."""
    doubles = {
        tensor.name: struct.unpack("<d", tensor.raw_data)[0]
        for tensor in model.graph.initializer
        if tensor.data_type == DOUBLE and len(tensor.raw_data) == 8
    }
    for node in model.graph.node:
        demand(
            not any(
                name in doubles and vanishes(node.op_type, doubles[name]) for name in node.input
            ),
            "a constant that onnxruntime takes for 0 or 1, although it is neither. onnxruntime "
            "would leave the node out and compute a different function; compile the spec again",
        )


def read_number(model: ModelProto, name: str) -> float | None:
    """A constant of one float64, which must be finite and not −0; None if there is none."""
    for tensor in model.graph.initializer:
        if tensor.name == name:
            demand(
                tensor.data_type == DOUBLE and len(tensor.raw_data) == 8,
                f"the constant {name} is malformed",
            )
            number: float = struct.unpack("<d", tensor.raw_data)[0]
            demand(
                math.isfinite(number) and str(number) != "-0.0", f"the constant {name} is malformed"
            )
            return number
    return None


def require_output_type(model: ModelProto, domain: Domain, sets: ClassSets | None) -> None:
    """DecodeError unless outputs are float64 for numbers, and otherwise of the categories' type."""
    listed = ("values", "segment_values")
    kinds = {tensor.data_type for tensor in model.graph.initializer if tensor.name in listed}
    expected = DOUBLE if sets is None else INT64
    if sets is None and isinstance(domain, CategoricalDomain):
        expected = STRING if domain.is_text else INT64
    demand(kinds <= {expected}, "the outputs have the wrong type")


def read_outputs(
    answers: Sequence[int | bytes], domain: Domain, sets: ClassSets | None = None
) -> tuple[Output, ...]:
    """Outputs as the kernel reads them: text as bytes, and float64 as the bits of an integer."""
    values: list[Any] = list(answers)
    if isinstance(values[0], bytes):
        try:
            values = [value.decode() for value in values]
        except UnicodeDecodeError:
            raise DecodeError("not a valid artifact: an output is not valid UTF-8") from None
    elif sets is None and not isinstance(domain, CategoricalDomain):
        values = np.array(values, dtype=np.int64).view(np.float64).tolist()
    check_outputs(values, domain, sets)
    return tuple(values)


def check_outputs(values: list[Any], domain: Domain, sets: ClassSets | None = None) -> None:
    """Check that outputs are distinct and of the labels' kind; numbers finite, increasing, not −0.
    With ``sets``, outputs must be the numbers of the sets.
    """
    if sets is not None:
        demand(
            values == list(range(len(sets.blocks))), "the outputs are not the numbers of the sets"
        )
        demand(all(type(v) is int for v in values), "the outputs are not whole numbers")
        return
    demand(len(set(values)) == len(values), "an output occurs twice")
    if isinstance(domain, CategoricalDomain):
        kinds = {type(v) for v in values}
        demand(
            kinds == {type(domain.default)},
            "the outputs are not categories of the type of the labels",
        )
        if isinstance(domain, JointDomain):
            inside = all(0 <= v < domain.size for v in values)
            demand(inside, "an output is not a combination of labels")
        return
    floats = all(isinstance(v, float) and math.isfinite(v) for v in values)
    demand(floats, "the outputs are not finite float64 numbers, as labels that are numbers need")
    demand(all(v != 0 or math.copysign(1, v) > 0 for v in values), "an output is −0")
    demand(values == sorted(values), "the outputs are not in increasing order")


def _float64(text: str) -> float:
    """A number of the certificate; there is one zero."""
    number = float(text)
    demand(math.copysign(1, number) > 0 or number != 0, "a number of the certificate is −0")
    return number


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def demand(condition: bool, what: str) -> None:
    """Raise DecodeError unless the condition holds."""
    if not condition:
        raise DecodeError(f"not a valid artifact: {what}")


Rows = NDArray[np.int64]
Words = NDArray[np.uint64]
MAX_PAIRS = 1 << 18


class FileForm(ABC):
    """A randomizer as decoded from the constants of a graph."""

    randomizer: Randomizer | GroupedWindows
    groups: Groups | None = None  # that have tables of their own, whose rows are table · k + row
    proved: Fraction  # the largest ratio, as the kernel proves it from the bytes

    @abstractmethod
    def critical_words(self) -> tuple[Rows, Words]:
        """Row indices [n] and words [n, w] on both sides of every threshold, or of many."""

    @abstractmethod
    def outputs_of(self, rows: Rows, words: Words) -> NDArray[Any]:
        """[n] what the integers give for row indices [n] and words [n, w]."""

    def rebuild(self, domain: Domain, certificate: dict[str, Any]) -> bytes:
        """The file that these integers define."""
        return write_model(domain, self.randomizer, certificate)
