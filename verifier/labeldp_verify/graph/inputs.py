"""The first part of every graph: from any labels, words and groups to a row, words and a table."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms import (
    CategoricalDomain,
    Domain,
    GridDomain,
    Groups,
    IntegerDomain,
    JointDomain,
    RealDomain,
    columns_of,
)
from labeldp_verify.forms.groups import GroupColumn
from labeldp_verify.graph.nodes import DOUBLE, INT64, STRING, UINT64, Attribute, Graph, output_type

# ---- The first part of every graph: from any label to a row index in [0, k), without ever failing.
#
# NaN, infinities, numbers outside the domain and unknown categories become the default label, or
# are clamped to an end of the domain. int64 Min, Max and Clip compute wrongly in some versions of
# onnxruntime, and Clip lets NaN through, so comparisons with Where replace them where that matters.


def label_type(domain: Domain) -> int:
    """ONNX element type of the label input."""
    if isinstance(domain, RealDomain):
        return DOUBLE
    if isinstance(domain, CategoricalDomain) and domain.is_text:
        return STRING
    return INT64


def add_row(
    graph: Graph,
    domain: Domain,
    label: str,
    rounding_word: str | None,
    kind: int = INT64,
    *,
    portable: bool = False,
) -> str:
    """Add the nodes from ``label`` [N] to the row index [N] of a type; returns its name.

    Rows stay float64 (DOUBLE), in which every row is exact, until something needs them as indices,
    for which INT32 is enough. Rows that are found in int64 stay so. ``rounding_word`` [N] (uint64)
    is the last random word, for a domain that rounds unbiasedly. ``portable`` rounds without
    ``Floor``.
    """
    if isinstance(domain, IntegerDomain) and domain.default is None:
        number = _clipped_integer(graph, domain, label)
    elif isinstance(domain, GridDomain):
        row = _listed_point(graph, domain, label, rounding_word)
        return row if kind == INT64 else graph.node("Cast", [row], "row_number", to=kind)
    elif isinstance(domain, RealDomain):
        position = _grid_position(graph, domain, label)
        if rounding_word is None:
            half = graph.scalar("half", DOUBLE, 0.5)
            shifted = graph.node("Add", [position, half], "grid_position_half_up")
            name = "nearest_point" if kind == INT64 else "row_number"
            number = _floor(graph, shifted, name, portable=portable)
        else:
            whole, up = _rounded_up(graph, position, rounding_word, portable=portable)
            if kind == INT64:
                below = graph.node("Cast", [whole], "row_below", to=INT64)
                return graph.node(
                    "Add", [below, graph.node("Cast", [up], "row_step", to=INT64)], "row"
                )
            step = graph.node("Cast", [up], "row_step", to=DOUBLE)
            number = graph.node("Add", [whole, step], "row_number")
    else:
        if isinstance(domain, IntegerDomain):
            inside, low = _confine(graph, domain, label, INT64)
            row = graph.node("Sub", [inside, low], "row")
        else:
            row = _categorical(graph, domain, label)
        return graph.node("Cast", [row], "row_number", to=DOUBLE) if kind == DOUBLE else row
    return number if kind == DOUBLE else graph.node("Cast", [number], "row", to=kind)


def _confine(
    graph: Graph, domain: IntegerDomain | RealDomain, label: str, element: int
) -> tuple[str, str]:
    """Replace values outside [min, max], NaN included; returns the result and the lowest label."""
    if domain.null is not None and element == DOUBLE:
        least = graph.scalar("label_least", DOUBLE, float("-inf"))
        known = graph.node("GreaterOrEqual", [label, least], "is_number")  # all but NaN
        null = graph.scalar("label_null", DOUBLE, domain.null)
        label = graph.node("Where", [known, label, null], "label_known")
    low = graph.scalar("label_min", element, domain.min)
    high = graph.scalar("label_max", element, domain.max)
    above = graph.node("GreaterOrEqual", [label, low], "not_below")
    if domain.default is None:
        raised = graph.node("Where", [above, label, low], "label_raised")  # no NaN from here on
        return graph.node("Min", [raised, high], "label_inside"), low
    below = graph.node("LessOrEqual", [label, high], "not_above")
    inside = graph.node("And", [above, below], "inside")
    default = graph.scalar("label_default", element, domain.default)
    return graph.node("Where", [inside, label, default], "label_inside"), low


def _clipped_integer(graph: Graph, domain: IntegerDomain, label: str) -> str:
    """The row [N] as float64, of a domain to whose ends labels outside are clamped."""
    # Clip is exact and fast on float64, which holds every label of the domain exactly; an int64
    # beyond 2^53 is rounded, but not back into the domain.
    number = graph.node("Cast", [label], "label_number", to=DOUBLE)
    ends = [
        graph.scalar(f"label_{end}", DOUBLE, float(value))
        for end, value in (("min", domain.min), ("max", domain.max))
    ]
    clipped = graph.node("Clip", [number, *ends], "label_inside")
    return graph.node("Sub", [clipped, ends[0]], "row_number")


def _grid_position(graph: Graph, domain: RealDomain, label: str) -> str:
    """The place [N] (float64) on the grid of labels, in 0 … points − 1, before it is rounded."""
    inside, low = _confine(graph, domain, label, DOUBLE)
    distance = graph.node("Sub", [inside, low], "distance")
    steps = graph.product(distance, "points_per_unit", domain.points_per_unit, "steps")
    last = graph.scalar("last_point", DOUBLE, float(domain.points - 1))
    return graph.node("Min", [steps, last], "grid_position")


def _listed_point(graph: Graph, domain: GridDomain, label: str, rounding_word: str | None) -> str:
    """The index [N] (int64) of the listed label that a number takes.

    The list is halved: a place moves up by half of what is left if the bound there is not above the
    label. Behind the last label all bounds are infinite, and the label is finite by then.
    """
    inside, _ = _confine(graph, domain, label, DOUBLE)
    steps = [1 << bit for bit in reversed(range((domain.size - 1).bit_length()))]
    padding = [float("inf")] * (2 * steps[0] - domain.size)
    bounds = graph.vector("bounds", DOUBLE, [*domain.bounds, *padding])
    zero = graph.scalar("first_point", INT64, 0)
    place = ""
    for step in steps:
        size = graph.scalar(f"half_{step}", INT64, step)
        if place:
            there = graph.node("Add", [place, size], f"there_{step}")
            bound = graph.node("GatherElements", [bounds, there], f"bound_{step}", axis=0)
        else:
            there, place = size, zero
            bound = graph.scalar(f"middle_{step}", DOUBLE, [*domain.bounds, *padding][step])
        reached = graph.node("GreaterOrEqual", [inside, bound], f"reached_{step}")
        place = graph.node("Where", [reached, there, place], f"place_{step}")
    if rounding_word is None:
        return place
    below = graph.node("GatherElements", [bounds, place], "point_below", axis=0)
    distance = graph.node("Sub", [inside, below], "distance")
    listed = graph.vector("per_unit", DOUBLE, domain.per_unit)
    factor = graph.node("GatherElements", [listed, place], "factor", axis=0)
    fraction = graph.node("Mul", [distance, factor], "fraction")
    up = _round_up(graph, fraction, rounding_word)
    return graph.node("Add", [place, graph.node("Cast", [up], "row_step", to=INT64)], "row_point")


def _floor(graph: Graph, number: str, name: str, *, portable: bool) -> str:
    """A number [N] ≥ 0 (float64) rounded down; onnxruntime before 1.13 has no such ``Floor``."""
    if not portable:
        return graph.node("Floor", [number], name)
    whole = graph.node("Cast", [number], f"{name}_integer", to=INT64)  # towards 0
    return graph.node("Cast", [whole], name, to=DOUBLE)


def _rounded_up(
    graph: Graph, position: str, rounding_word: str, *, portable: bool
) -> tuple[str, str]:
    """The grid point below (float64), and whether a position [N] is rounded up to the next."""
    whole = _floor(graph, position, "point_below", portable=portable)
    fraction = graph.node("Sub", [position, whole], "fraction")
    return whole, _round_up(graph, fraction, rounding_word)


def _round_up(graph: Graph, fraction: str, rounding_word: str) -> str:
    """Whether a uniform number [N] from 53 bits of the word is below the fraction [N]."""
    eleven = graph.scalar("rounding_shift", UINT64, 11)
    bits = graph.node("BitShift", [rounding_word, eleven], "rounding_bits", direction="RIGHT")
    number = graph.node("Cast", [bits], "rounding_number", to=DOUBLE)
    unit = graph.scalar("rounding_unit", DOUBLE, 2.0**-53)
    uniform = graph.node("Mul", [number, unit], "rounding_uniform")
    return graph.node("Less", [uniform, fraction], "round_up")


def _categorical(graph: Graph, domain: CategoricalDomain, label: str) -> str:
    keys = "keys_strings" if domain.is_text else "keys_int64s"
    attributes: dict[str, Attribute] = {
        keys: list(domain.values),  # type: ignore[dict-item]
        "values_int64s": list(range(domain.size)),
        "default_int64": domain.values.index(domain.default),
    }
    return graph.node("LabelEncoder", [label], "row", domain="ai.onnx.ml", **attributes)


# ---- The parts of a graph for labels of several columns: from them to one row, and back to
# columns.
#
# A row is Σ place · stride over the columns; place j of a private number is number ÷ stride mod
# size.


PRIVATE_NUMBER = "private_number"


def label_inputs(domain: Domain) -> list[str]:
    """The names of the graph's inputs for the label, one for each column."""
    if not isinstance(domain, JointDomain):
        return ["label"]
    return [f"label_{i}" for i in range(1, len(domain.parts) + 1)]


def add_joint_index(
    graph: Graph, domain: JointDomain, shape: str, *, portable: bool = False
) -> str:
    """Add the nodes from the columns' inputs [N] to the row index [N] (int64); returns its name.

    ``shape`` names the first column's own shape, which each gets before they meet, so that one is
    never shared by several labels.
    """
    row = ""
    columns = zip(label_inputs(domain), domain.parts, domain.strides, strict=True)
    for name, part, stride in columns:
        with graph.within(f"{name}_"):
            place = add_row(graph, part, name, None, portable=portable)
            own = graph.node("Reshape", [place, shape], "place", allowzero=1)
            if stride > 1:
                own = graph.node("Mul", [own, graph.scalar("stride", INT64, stride)], "part")
            row = graph.node("Add", [row, own], "sum") if row else own
    return row


def declare_labels(graph: Graph, domain: Domain) -> str:
    """Declare the inputs [N] of the label; returns the name of the first."""
    for name, part in zip(label_inputs(domain), columns_of(domain), strict=True):
        graph.input(name, label_type(part), ["N"])
    return label_inputs(domain)[0]


def add_columns(graph: Graph, domain: JointDomain) -> None:
    """Add the nodes from ``private_number`` [N] (int64) to the private columns [N]."""
    parts = zip(label_inputs(domain), domain.column_values, domain.strides, strict=True)
    for i, (label, values, stride) in enumerate(parts):
        name = f"private_{label}"
        graph.output(name, output_type(values[0]), ["N"])
        place = PRIVATE_NUMBER
        with graph.within(f"{name}_"):
            if stride > 1:
                place = graph.node("Div", [place, graph.scalar("stride", INT64, stride)], "above")
            if i > 0:
                size = graph.scalar("size", INT64, len(values))
                place = graph.node("Mod", [place, size], "place")
            listed = graph.vector("values", output_type(values[0]), values)
        graph.node("GatherElements", [listed, place], name, axis=0)


# ---- The random words of a graph, from its input ``entropy``.
#
# Files can be portable: hosts differ in the integers that they can feed, so a word of 64
# bits comes as two or three *limbs* in int64, and the graph takes the lowest 31 bits of each. A
# host may draw limbs as it likes, signed or not, as long as these bits are uniform. All other files
# take words as they are, in uint64, in two thirds of the time.
#
#     word = limb 1's 31 bits · 2^33 + limb 2's 31 bits · 2^2 + limb 3's highest 2 of its 31 bits


LIMB_BITS = 31
_DROPPED = 64 - LIMB_BITS  # by a shift to the left


def limbs_per_word(word_bits: int) -> int:
    """How many limbs hold the highest ``word_bits`` of a word."""
    return 2 if word_bits <= 2 * LIMB_BITS else 3


def in_limbs(words: NDArray[np.uint64], limbs: int) -> NDArray[np.int64]:
    """[n, w·l] the limbs of words [n, w], each below 2^31."""
    parts = [words >> np.uint64(33), words >> np.uint64(2), words << np.uint64(29)][:limbs]
    mask = np.uint64((1 << LIMB_BITS) - 1)
    return (np.stack(parts, axis=2) & mask).astype(np.int64).reshape(len(words), -1)


def add_words(graph: Graph, names: Sequence[str], shape: str, limbs: int) -> list[str]:
    """Declare ``entropy`` and add the nodes to the words [N] (uint64) of these names.

    ``shape`` names the shape of the labels, so that a wrong number of words is an error, and no
    word is ever shared by several labels. ``limbs`` are those of a word; 0 takes whole words.
    """
    if not limbs:
        return _columns(graph, names, shape, UINT64, "words_per_label", "word_table")
    parts = [f"{name}_limb_{i + 1}" for name in names for i in range(limbs)]
    found = _columns(graph, parts, shape, INT64, "limbs_per_label", "limb_table")
    shift = graph.scalar("limb_shift", UINT64, _DROPPED)
    places = [graph.scalar(f"limb_{i + 1}_place", UINT64, LIMB_BITS * i) for i in range(1, limbs)]
    return [
        _joined(graph, name, found[i * limbs : (i + 1) * limbs], shift, places)
        for i, name in enumerate(names)
    ]


def _columns(
    graph: Graph, names: Sequence[str], shape: str, element: int, width: str, table: str
) -> list[str]:
    """The columns [N] of ``entropy``, which is [N] or [N, their number]."""
    count = len(names)
    entropy = graph.input("entropy", element, ["N"] if count == 1 else ["N", count])
    if count == 1:
        return [graph.node("Reshape", [entropy, shape], names[0], allowzero=1)]
    size = graph.vector(width, INT64, [count])
    full_shape = graph.node("Concat", [shape, size], "entropy_shape", axis=0)
    whole = graph.node("Reshape", [entropy, full_shape], table, allowzero=1)
    # Split copies columns ten times as fast as Gather or Slice do.
    columns = graph.split(whole, [f"{name}_column" for name in names], axis=1)
    return [
        graph.node("Reshape", [column, shape], name, allowzero=1)
        for column, name in zip(columns, names, strict=True)
    ]


def _joined(graph: Graph, name: str, limbs: Sequence[str], shift: str, places: list[str]) -> str:
    """The word [N] of limbs [N].

    Additions are in int64, as onnxruntime has none in uint64: the first limb may be negative there,
    and the others are below 2^33, so nothing overflows.
    """
    total = ""
    for limb, place in zip(limbs, ["", *places], strict=True):
        bits = graph.node("Cast", [limb], f"{limb}_bits", to=UINT64)
        bits = graph.node("BitShift", [bits, shift], f"{limb}_raised", direction="LEFT")
        if place:
            bits = graph.node("BitShift", [bits, place], f"{limb}_placed", direction="RIGHT")
        part = graph.node("Cast", [bits], f"{limb}_part", to=INT64)
        total = graph.node("Add", [total, part], f"{limb}_sum") if total else part
    return graph.node("Cast", [total], name, to=UINT64)


# ---- The part of a graph from the columns of a row's group to the index of its table.
#
# Values that are not listed go to the last table, and nothing ever fails. Each column is given the
# labels' own shape before columns meet, so that one group is never shared by several labels.


def group_type(column: GroupColumn) -> int:
    """ONNX element type of the input of a column."""
    if column.values is None:
        return DOUBLE
    return STRING if column.is_text else INT64


def group_inputs(groups: Groups) -> list[str]:
    """The names of the graph's inputs, one for each column."""
    if len(groups.columns) == 1:
        return ["group"]
    return [f"group_{i}" for i in range(1, len(groups.columns) + 1)]


def add_group_index(graph: Graph, groups: Groups, shape: str) -> str:
    """Declare the columns' inputs [N], and add the nodes to the index of the table [N] (int64).

    Returns its name. ``shape`` names the labels' shape.
    """
    names = group_inputs(groups)
    if len(names) == 1:
        return _column(
            graph, names[0], groups.columns[0], (groups.table_of_cell, groups.own_tables), shape
        )
    # A column that is not listed moves the cell beyond the last one, for any values of the others.
    beyond = groups.cells
    cell = ""
    for name, column, stride in zip(names, groups.columns, groups.strides, strict=True):
        steps = range(0, stride * column.size, stride)
        part = _column(graph, name, column, (steps, beyond), shape)
        cell = graph.node("Add", [cell, part], f"cell_{name}") if cell else part
    cell = _least(graph, cell, "cell", beyond)
    if groups.is_plain:
        return cell
    tables = graph.vector("table_of_cell", INT64, [*groups.table_of_cell, groups.own_tables])
    return graph.node("GatherElements", [tables, cell], "group_index", axis=0)


def _column(
    graph: Graph, name: str, column: GroupColumn, targets: tuple[Sequence[int], int], shape: str
) -> str:
    """From an input to the target of each place, and the last target for what is not listed."""
    of_place, other = targets
    given = graph.input(name, group_type(column), ["N"])
    numbers = tuple(range(column.size))
    if column.values == tuple(of_place) == numbers and other == column.size:
        found = _least(graph, given, name, other)
    elif column.values is None:
        found = _band(graph, given, name, column.edges, [other, *of_place])
    else:
        attributes: dict[str, Attribute] = {
            "keys_strings" if column.is_text else "keys_int64s": list(column.values),  # type: ignore[dict-item]
            "values_int64s": list(of_place),
            "default_int64": other,
        }
        found = graph.node(
            "LabelEncoder", [given], f"{name}_found", domain="ai.onnx.ml", **attributes
        )
    return graph.node("Reshape", [found, shape], f"{name}_index", allowzero=1)


def _band(
    graph: Graph, given: str, name: str, edges: Sequence[float], targets: Sequence[int]
) -> str:
    """Find the last edge that a number reaches, by halves, and its target.

    The edges begin at place 1 with −∞, which all but NaN reach, and end with NaN, which nothing
    reaches: there are 2^b of them. NaN reaches none, and stays at place 0.
    """
    bits = (len(edges) + 1).bit_length()
    steps = [graph.scalar(f"{name}_step_{1 << j}", INT64, 1 << j) for j in reversed(range(bits))]
    padding = [math.nan] * ((1 << bits) - len(edges) - 2)
    listed = [-math.inf, -math.inf, *edges, *padding]
    all_edges = graph.vector(f"{name}_edges", DOUBLE, listed)
    middle = graph.scalar(f"{name}_middle_edge", DOUBLE, listed[1 << (bits - 1)])
    start = graph.scalar(f"{name}_start", INT64, 0)
    reached = graph.node("GreaterOrEqual", [given, middle], f"{name}_reached_middle")
    place = graph.node("Where", [reached, steps[0], start], f"{name}_half")
    for step in steps[1:]:
        tried = graph.node("Add", [place, step], f"{step}_tried")
        edge = graph.node("GatherElements", [all_edges, tried], f"{step}_edge", axis=0)
        reached = graph.node("GreaterOrEqual", [given, edge], f"{step}_reached")
        place = graph.node("Where", [reached, tried, place], f"{step}_place")
    of_place = graph.vector(f"{name}_targets", INT64, targets)
    return graph.node("GatherElements", [of_place, place], f"{name}_found", axis=0)


def _least(graph: Graph, number: str, name: str, end: int) -> str:
    """min(number as uint64, end): negative numbers are huge as uint64, on which Min is exact."""
    unsigned = graph.node("Cast", [number], f"{name}_unsigned", to=UINT64)
    most = graph.scalar(f"{name}_end", UINT64, end)
    least = graph.node("Min", [unsigned, most], f"{name}_least")
    return graph.node("Cast", [least], f"{name}_found", to=INT64)
