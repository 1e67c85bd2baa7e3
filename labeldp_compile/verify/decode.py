"""From the bytes of a file to the integers it will execute, in Python integers.

The integers are read from the very tables that the graph gathers from, not from a copy beside them.
Nothing is trusted: whatever does not have the exact expected form raises DecodeError, and the
verifier later demands that the whole file equals the one rebuilt from what was decoded here.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import onnx

from labeldp_compile.artifact import FORMAT_VERSION, BucketGrid, canonical_json
from labeldp_compile.artifact.graph import DOUBLE, INT64, STRING, UINT64
from labeldp_compile.randomizer import (
    CategoricalDomain,
    Domain,
    IntegerDomain,
    RealDomain,
    WindowRandomizer,
)
from labeldp_compile.randomizer.window import Segment
from labeldp_compile.verify.shape import shape_error

METADATA_KEYS = (
    "labeldp.certificate",
    "labeldp.content_sha256",
    "labeldp.format_version",
    "labeldp.self_test",
)
_UNPACK = {INT64: "q", UINT64: "Q", DOUBLE: "d"}
_EXACT_IN_FLOAT64 = 2**53
MAX_LABELS = 1_000_000


class DecodeError(Exception):
    """The file does not have the form of an artifact; the message says where."""


@dataclass(frozen=True)
class Tables:
    """The randomizer that the graph's tables describe, and how its lookup grid is laid out."""

    randomizer: WindowRandomizer
    grid: BucketGrid


def read_model(data: bytes) -> onnx.ModelProto:
    """Parse the protobuf."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:
        raise DecodeError("the file is not an ONNX model") from error
    if not model.graph.node:
        raise DecodeError("the file is not an ONNX model: it has no graph")
    return model


def read_certificate(model: onnx.ModelProto) -> dict[str, Any]:
    """The certificate: canonical JSON under the expected metadata keys, in a known format."""
    keys = [prop.key for prop in model.metadata_props]
    if sorted(keys) != list(METADATA_KEYS):
        raise DecodeError(f"the metadata must hold exactly {', '.join(METADATA_KEYS)}")
    metadata = {prop.key: prop.value for prop in model.metadata_props}
    version = metadata["labeldp.format_version"]
    if version != FORMAT_VERSION:
        raise DecodeError(
            f"the file has format {version!r}, this labeldp verifies {FORMAT_VERSION!r}: "
            "use the labeldp release that wrote it"
        )
    text = metadata["labeldp.certificate"]
    certificate = json.loads(text)
    if not isinstance(certificate, dict) or canonical_json(certificate) != text:
        raise DecodeError("the certificate is not canonical JSON")
    wrong = shape_error(certificate)
    if wrong:
        raise DecodeError(
            f"the certificate has another shape than format {FORMAT_VERSION}: {wrong}"
        )
    return certificate


def read_domain(certificate: dict[str, Any]) -> Domain:
    """The label domain that the certificate states; the rebuilt graph proves it."""
    stated = certificate["label"]["domain"]
    rule = stated["out_of_domain"]
    default = None if rule == "clamp" else rule["default"]
    domain: Domain
    if stated["kind"] == "integer":
        domain = IntegerDomain(stated["min"], stated["max"], default)
        numbers = [domain.min, domain.max, *([] if default is None else [default])]
        _demand(all(_is_int(n) and abs(n) <= _EXACT_IN_FLOAT64 for n in numbers), "the domain")
    elif stated["kind"] == "real":
        domain = RealDomain(
            stated["min"], stated["max"], stated["points"], stated["rounding"], default
        )
        floats = [domain.min, domain.max, *([] if default is None else [default])]
        _demand(all(isinstance(x, float) and math.isfinite(x) for x in floats), "the domain")
        _demand(_is_int(domain.points) and 2 <= domain.points <= MAX_LABELS, "the domain")
        _demand(domain.rounding in ("nearest", "unbiased"), "the domain")
        _demand(domain.min < domain.max and domain.is_faithful(), "the grid of labels")
    else:
        values = tuple(stated["values"])
        kinds = {type(v) for v in values}
        _demand(kinds in ({str}, {int}) and len(set(values)) == len(values), "the categories")
        _demand(default in values and type(default) in kinds, "the default category")
        domain = CategoricalDomain(values, values[values.index(default)])
    if not isinstance(domain, CategoricalDomain):
        _demand(domain.min < domain.max, "the domain")
        _demand(default is None or domain.min <= default <= domain.max, "the default label")
    _demand(canonical_json(domain.to_json()) == canonical_json(stated), "the domain")
    return domain


def read_tables(model: onnx.ModelProto, domain: Domain) -> Tables:
    """Decode the window randomizer from the constants of the graph."""
    constants = _Constants(model)
    (word_shift,) = constants.integers("word_shift", UINT64, 0)
    (T,) = constants.integers("base_total", INT64, 0)
    offsets = constants.integers("offsets", INT64, 1)
    _demand(1 <= word_shift <= 63, "the word size")
    _demand(len(offsets) == domain.size, "the number of offsets")
    word_bits = 64 - word_shift
    X = 2**word_bits - T
    _demand(T >= 1 and X >= 0 and min(offsets) >= 0, "the base line and the offsets")
    end = T + X + max(offsets)
    _demand(end < 2**63, "the length of the lines")

    grid = _read_grid(constants)
    entries = constants.integers("grid", INT64, 1)
    boundaries = _boundaries(entries, grid, T, end)
    _demand(T in boundaries, "the end of the base line")
    m = boundaries.index(T)
    lengths = [b - a for a, b in pairwise(boundaries)]

    values = constants.values("segment_values")
    _demand(len(values) == len(lengths), "the number of segments")
    outputs = values[:m]
    index = {value: i for i, value in enumerate(outputs)}
    _demand(len(index) == m, "an output that stands there twice")
    if isinstance(domain, CategoricalDomain):
        kinds = {type(v) for v in values}
        _demand(kinds == {type(domain.default)}, "the outputs: categories, like the labels")
    else:
        floats = all(isinstance(v, float) and math.isfinite(v) for v in values)
        _demand(floats, "the outputs: finite float64 numbers, for labels that are numbers")
        _demand(all(v != 0 or math.copysign(1, v) > 0 for v in values), "an output of −0")
        _demand(outputs == sorted(outputs), "the order of the outputs")
    _demand(all(v in index for v in values[m:]), "the outputs of the extra line")
    extra = [Segment(n, index[v]) for n, v in zip(lengths[m:], values[m:], strict=True)]
    randomizer = WindowRandomizer(
        word_bits, tuple(lengths[:m]), tuple(extra), tuple(offsets), tuple(outputs)
    )
    return Tables(randomizer, grid)


class _Constants:
    """The graph's constants by name, each with the exact type and rank expected."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._by_name = {tensor.name: tensor for tensor in model.graph.initializer}

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def integers(self, name: str, element_type: int, rank: int) -> list[int]:
        return [int(v) for v in self._read(name, element_type, rank)]

    def values(self, name: str) -> list[Any]:
        tensor = self._by_name.get(name)
        _demand(tensor is not None, f"the constant {name}")
        assert tensor is not None
        if tensor.data_type == STRING:
            return [item.decode() for item in tensor.string_data]
        return self._read(name, tensor.data_type, 1)

    def _read(self, name: str, element_type: int, rank: int) -> list[Any]:
        tensor = self._by_name.get(name)
        _demand(tensor is not None and tensor.data_type == element_type, f"the constant {name}")
        assert tensor is not None
        count = math.prod(tensor.dims)
        _demand(len(tensor.dims) == rank and count > 0, f"the shape of {name}")
        _demand(len(tensor.raw_data) == 8 * count, f"the size of {name}")
        return list(struct.unpack(f"<{count}{_UNPACK[element_type]}", tensor.raw_data))


def _read_grid(constants: _Constants) -> BucketGrid:
    if "bucket_shift" in constants:
        (shift,) = constants.integers("bucket_shift", UINT64, 0)
        grid = BucketGrid(shift, shift)
    else:
        (base,) = constants.integers("base_bucket_shift", UINT64, 0)
        (extra,) = constants.integers("extra_bucket_shift", UINT64, 0)
        grid = BucketGrid(base, extra)
    (segment_shift,) = constants.integers("segment_shift", UINT64, 0)
    _demand(segment_shift == grid.segment_shift <= 62, "the bucket widths")
    return grid


def _boundaries(entries: list[int], grid: BucketGrid, T: int, end: int) -> list[int]:
    """The ends of all segments, found by asking the table at both ends of every bucket."""
    if grid.is_single:
        stretches = [(0, end, grid.base_shift, 0)]
    else:
        first = ((T - 1) >> grid.base_shift) + 1
        stretches = [
            (0, T, grid.base_shift, 0),
            (T, end, grid.extra_shift, first - (T >> grid.extra_shift)),
        ]
    _, last_stop, last_shift, last_at = stretches[-1]
    _demand(len(entries) == ((last_stop - 1) >> last_shift) + 1 + last_at, "the size of the grid")
    boundaries, segment = [0], 0
    for start, stop, shift, at in stretches:
        if start:
            _demand(boundaries[-1] < start, "the grid")
            boundaries.append(start)
            segment += 1
        for bucket in range(start >> shift, ((stop - 1) >> shift) + 1):
            low, high = max(bucket << shift, start), min(((bucket + 1) << shift) - 1, stop - 1)
            q = entries[bucket + at]
            _demand(low + q >= 0, "the grid")
            at_low, at_high = ((t + q) >> grid.segment_shift for t in (low, high))
            if at_low == segment + 1:
                boundaries.append(low)
                segment += 1
            _demand(at_low == segment and at_high in (segment, segment + 1), "the grid")
            if at_high == segment + 1:
                cut = (at_high << grid.segment_shift) - q
                _demand(low < cut <= high, "the grid")
                boundaries.append(cut)
                segment += 1
    boundaries.append(end)
    return boundaries


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _demand(condition: bool, what: str) -> None:
    if not condition:
        raise DecodeError(f"not a valid artifact: {what}")
