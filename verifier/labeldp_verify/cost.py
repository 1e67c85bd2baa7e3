"""The cost of each stage of a verification, from counts that are known before it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis.losses import LOSSES
from labeldp_verify.budget import affordable, charge
from labeldp_verify.forms import AdditiveRandomizer, Randomizer
from labeldp_verify.forms.exact_numbers import ExactNumbers
from labeldp_verify.graph.nodes import ModelProto

# ---- Count the fields of an ONNX file (protobuf) without parsing it into objects.
#
# An empty message takes two bytes in the file and hundreds in memory, so 60 MiB of them would take
# gigabytes in a parser. This code reads tags and lengths only.


_VARINT, _LENGTH = 0, 2
_FIXED = {1: 8, 5: 4}
_TEXT, _NUMBERS, _UNKNOWN = 0, 1, 2  # the fewest bytes of a thing inside; 0 where nothing is

# The fields that artifacts have, by message: either a message of its own, or what it may hold.
Message = dict[int, Any]
_SHAPE: Message = {1: {1: _TEXT, 2: _TEXT, 3: _TEXT}}
_VALUE: Message = {1: _TEXT, 2: {1: {1: _TEXT, 2: _SHAPE}}}
_TENSOR: Message = {1: _NUMBERS, 2: _TEXT, 6: _TEXT, 8: _TEXT, 9: _TEXT}
_ATTRIBUTE: Message = {1: _TEXT, 2: _TEXT, 3: _TEXT, 4: _TEXT, 8: _NUMBERS, 9: _TEXT, 20: _TEXT}
_NODE: Message = {1: _TEXT, 2: _TEXT, 3: _TEXT, 4: _TEXT, 5: _ATTRIBUTE, 7: _TEXT}
_GRAPH: Message = {1: _NODE, 2: _TEXT, 5: _TENSOR, 10: _TEXT, 11: _VALUE, 12: _VALUE}
_PAIR: Message = {1: _TEXT, 2: _TEXT}
_MODEL: Message = {**dict.fromkeys(range(1, 7), _TEXT), 7: _GRAPH, 8: _PAIR, 14: _PAIR}


class WireError(ValueError):
    """The bytes are not protobuf."""


def count_fields(data: bytes, most: int, message: Message = _MODEL) -> int:
    """The number of fields, nested ones included; stops as soon as there are more than ``most``.

    A field that no artifact has counts as the most fields that its bytes could hold. Raises
    WireError if tags and lengths do not fit together.
    """
    count = 0
    for number, value, _, _ in fields(data):
        count += 1
        if isinstance(value, bytes):
            held = message.get(number, _UNKNOWN)
            if isinstance(held, dict):
                count += count_fields(value, most - count, held)
            elif held:
                count += len(value) // held
        if count > most:
            break
    return count


def fields(data: bytes) -> Iterator[tuple[int, Any, int, int]]:
    """(number, value, start, end) of each field of a message.

    The value is bytes, an integer from 0 on, or None for a number of fixed width. Raises WireError
    where the bytes stop being a message.
    """
    at = 0
    try:
        while at < len(data):
            start = at
            tag, at = _varint(data, at)
            kind = tag & 7
            value: Any = None
            if kind == _VARINT:
                value, at = _varint(data, at)
            elif kind == _LENGTH:
                length, at = _varint(data, at)
                value = data[at : at + length]
                at += length
            elif kind in _FIXED:
                at += _FIXED[kind]
            else:
                raise WireError("a group, which ONNX does not have")
            if at > len(data):
                raise WireError("a field reaches beyond its message")
            yield tag >> 3, value, start, at
    except IndexError:
        raise WireError("a number does not end") from None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of at most 64 bits, and where the next byte is; IndexError if the bytes end."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise WireError("a number of more than 64 bits")


# ---- The cost of each stage of a verification, from counts that are known before it.
#
# Measured on one core of a busy server, where honest files take a half to the whole of it; the
# figures for numbers of many digits come from hostile ones (``benchmarks/hostile.py``).


WINDOWS = ("window", "grouped_window")  # forms
_FIELD = 4e-6, 450.0  # seconds and bytes of a field of the protobuf
_SCAN_SHARE = 4  # walking over the fields may take a quarter of the budget
_PART = 1.5e-6, 160.0  # of a list, an object, or an item of one, in JSON
# Of labels: those of windows are taken together, those of other forms one by one (``losses``).
_LONG_LABEL, _LABEL_BYTES = 200e-6, 3000.0
_WINDOW_LABEL, _WINDOW_LABEL_BYTES = 8e-6, 800.0
_LONG_WINDOW_LABEL = 60e-6  # where outputs have many digits, and their squares twice as many
_REAL_LABEL = 16e-6  # more
_TABLE = 4e-3  # of a table, however few labels there are
# More, where radii prove the bound: 3 to 4 s of the 8 that a million labels take, for which the
# other estimates charge 17 already. Long numbers are multiplied.
_RADIUS, _RADIUS_BYTES, _LONG_RADIUS = 1.5e-6, 250.0, 30e-6
# Of the entries of constants, by form: segments are fractions, most others are integers.
_ENTRY = {"window": 2.5e-6, "grouped_window": 2.5e-6, "table": 3e-6, "additive": 5e-6}
_SEGMENT = 20e-6
_ENTRY_BYTES, _TEXT_BYTES = 220.0, 300.0
_BYTE = 1.2e-7, 16.0  # of the file, in the kernel
_PLAIN_BITS = 256  # numbers of at most this many bits cost what is stated above
_EXECUTION = 2.0  # seconds: onnxruntime, and a quarter of a million words
_COMPOSITION = 4.0


def charge_fields(data: bytes) -> None:
    """The protobuf: walked over once, then parsed. Raises WireError if it is not one."""
    charge("the file", seconds=len(data) * 3e-8, bytes=4 * len(data))
    most = affordable(_SCAN_SHARE * _FIELD[0], _FIELD[1])
    fields = count_fields(data, most)
    too_many = fields > most
    seconds = _FIELD[0] * (_SCAN_SHARE if too_many else 1)
    what = f"a file of {fields:,} fields or more"
    charge(what, seconds=fields * seconds, bytes=fields * _FIELD[1])


def charge_json(text: str) -> None:
    """A certificate: parsed, written again, and compared."""
    parts = sum(map(text.count, ",:[{"))
    wide = 1 if text.isascii() else 4
    charge(
        f"a certificate of {len(text):,} characters",
        seconds=parts * _PART[0] + len(text) * 1e-7,
        bytes=parts * _PART[1] + len(text) * wide * 4,
    )


def charge_labels(
    domain: dict[str, Any],
    tables: int,
    loss: str,
    form: str,
    *,
    duals: bool,
    radii: bool,
    by_group: bool,
) -> None:
    """Everything that is done once for each label, but for numbers of unusual length.

    ``domain`` is what the certificate claims; ``duals`` or ``radii`` prove a lower bound.
    """
    k, windows = claimed_labels(domain) * tables, form in WINDOWS
    each = seconds_a_label(loss, str(domain.get("kind")), duals=duals, windows=windows)
    stated = _columns(domain) or [domain]
    bits = max(_bits(one.get(key)) for one in stated for key in ("min", "max"))
    what = f"{k:,} labels" + (f" of {tables:,} groups" if by_group else "")
    held = _WINDOW_LABEL_BYTES if windows else _LABEL_BYTES
    if radii:
        each, held = each + _RADIUS, held + _RADIUS_BYTES
    seconds = k * each * _longer(bits) + tables * _TABLE
    charge(what, seconds=seconds, bytes=k * (held + 2 * bits))


def charge_composition() -> None:
    """The composition of several labels of one user."""
    charge("what a user spends for several labels", seconds=_COMPOSITION)


def charge_execution() -> None:
    """Running the graph."""
    charge("the running graph", seconds=_EXECUTION)


def seconds_a_label(loss: str, kind: str, *, duals: bool, windows: bool) -> float:
    """Of checking one label of one table, for a kind of domain; ``duals`` prove a lower bound."""
    each = _WINDOW_LABEL if windows else LOSSES[loss].seconds
    each += _REAL_LABEL if kind in ("real", "grid") else 0
    return each + (LOSSES[loss].dual_seconds if duals else 0)


def charge_tables(model: ModelProto, form: str) -> None:
    """The constants of the graph, read entry by entry and written again."""
    numbers = texts = segments = 0
    for tensor in model.graph.initializer:
        count = len(tensor.raw_data) // 8
        numbers += count
        texts += len(tensor.string_data)
        if tensor.name == "segment_values":
            segments += count + len(tensor.string_data)
    charge(
        f"tables of {numbers + texts:,} entries",
        seconds=numbers * _ENTRY.get(form, 0) + texts * 2e-6 + segments * _SEGMENT,
        bytes=numbers * _ENTRY_BYTES + texts * _TEXT_BYTES,
    )


def charge_outputs(randomizer: Randomizer, labels: int) -> None:
    """Bias and loss, where outputs are numbers of many binary digits."""
    if isinstance(randomizer, AdditiveRandomizer):
        exact = [Fraction(randomizer.unit), Fraction(randomizer.origin)]
    else:
        exact = [Fraction(v) for v in randomizer.values if isinstance(v, float)]
    if not exact:
        return
    bits = max(max(v.numerator.bit_length(), v.denominator.bit_length()) for v in exact)
    items = labels + len(exact)
    each = _LONG_WINDOW_LABEL if randomizer.form in WINDOWS else _LONG_LABEL
    charge(
        f"{items:,} labels and outputs with numbers of {bits:,} bits",
        seconds=items * each * (_longer(2 * bits) - 1),
        bytes=items * 2 * bits,
    )


def charge_duals(sides: Sequence[Sequence[Decimal]], weights: Sequence[int], loss: str) -> None:
    """The lower bound, where dual values or weights have many digits, or very different ones."""
    labels = len(weights)
    stated = [number for side in sides for number in side if number]
    lowest = min((number.as_tuple().exponent for number in stated), default=0)
    highest = max((number.adjusted() for number in stated), default=0)
    assert isinstance(lowest, int)  # of a finite number
    bits = math.ceil((max(highest, 0) - min(lowest, 0) + 1) * math.log2(10))
    bits += 8 * max(weights).bit_length()  # every label's slope is divided by their sum
    charge(
        f"dual values for {labels:,} labels, in numbers of {bits:,} bits",
        seconds=labels * LOSSES[loss].dual_seconds * (_longer(bits) - 1),
        bytes=labels * 2 * bits,
    )


def charge_radii(labels: ExactNumbers, unit: Fraction, weights: Sequence[int]) -> None:
    """The lower bound, where labels, weights or the unit of its radii have many digits."""
    shared = math.lcm(labels.unit, unit.denominator)
    largest = max(abs(labels[0]), abs(labels[-1]), unit * 2**40)
    bits = shared.bit_length() + math.ceil(largest).bit_length() + max(weights).bit_length()
    charge(
        f"radii for {len(labels):,} labels, in numbers of {2 * bits:,} bits",
        seconds=len(labels) * _LONG_RADIUS * (_longer(2 * bits) - 1),
        bytes=len(labels) * 2 * bits,
    )


def charge_kernel(data: bytes) -> None:
    """The kernel's own reading of the file, byte by byte and entry by entry."""
    size = len(data)
    charge(f"a file of {size:,} bytes once more", seconds=size * _BYTE[0], bytes=size * _BYTE[1])


def claimed_labels(domain: dict[str, Any]) -> int:
    """How many labels a domain claims to have; 0 if it is not one."""
    kind = domain.get("kind")
    if kind == "joint":
        return math.prod(map(claimed_labels, _columns(domain)))
    if kind == "integer":
        low, high = domain.get("min"), domain.get("max")
        whole = type(low) is int and type(high) is int
        return max(0, high - low + 1) if whole else 0  # type: ignore[operator]
    count = domain.get("points") if kind == "real" else domain.get("values")
    if isinstance(count, list):
        return len(count)
    return max(0, count) if type(count) is int else 0


def _columns(domain: dict[str, Any]) -> list[dict[str, Any]]:
    """The domains of the columns that a joint one claims to have; ``decode`` refuses other ones."""
    columns = domain.get("columns") if domain.get("kind") == "joint" else None
    listed = columns if isinstance(columns, list) else []
    return [c for c in listed if isinstance(c, dict) and c.get("kind") != "joint"]


def _bits(number: Any) -> int:
    """Binary digits of a float as a fraction."""
    if not isinstance(number, float) or number - number != 0:
        return 0
    exact = Fraction(number)
    return max(exact.numerator.bit_length(), exact.denominator.bit_length())


def _longer(bits: int) -> float:
    """How much longer arithmetic takes on numbers of this many bits."""
    return 1.0 + max(0, bits - _PLAIN_BITS) / 1000
