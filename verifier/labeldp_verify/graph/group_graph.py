"""The part of a graph from the columns of a row's group to the index of its table.

Values that are not listed go to the last table, and nothing ever fails. Each column is given the
labels' own shape before columns meet, so that one group is never shared by several labels.
"""

import math
from collections.abc import Sequence

from labeldp_verify.forms import Groups
from labeldp_verify.forms.groups import GroupColumn
from labeldp_verify.graph.nodes import DOUBLE, INT64, STRING, UINT64, Attribute, Graph


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
