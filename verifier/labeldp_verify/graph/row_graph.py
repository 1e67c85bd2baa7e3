"""The first part of the graphs of format 1.4: from any label to its row, in the cheapest type.

The rows are those of ``label_graph``, label by label. They stay float64, in which every row is
exact, until something needs them as indices: int32 then, to which a cast from float64 costs a third
of one to int64.
"""

from __future__ import annotations

from typing import TypeGuard

from labeldp_verify.forms import Domain, IntegerDomain, RealDomain
from labeldp_verify.graph.label_graph import (
    add_label_to_index,
    clipped_integer,
    grid_position,
    rounded_up,
)
from labeldp_verify.graph.nodes import DOUBLE, INT32, Graph


def add_row_as_index(graph: Graph, domain: Domain, label: str, rounding_word: str | None) -> str:
    """Add the nodes from ``label`` [N] to the row [N], int32 or int64; returns its name.

    ``rounding_word`` [N] (uint64) is the last random word, for a domain that rounds unbiasedly.
    """
    if not _is_found_in_float64(domain):
        return add_label_to_index(graph, domain, label, rounding_word)
    number = add_row_as_number(graph, domain, label, rounding_word)
    return graph.node("Cast", [number], "row", to=INT32)


def add_row_as_number(graph: Graph, domain: Domain, label: str, rounding_word: str | None) -> str:
    """The same as float64."""
    if not _is_found_in_float64(domain):
        row = add_label_to_index(graph, domain, label, rounding_word)
        return graph.node("Cast", [row], "row_number", to=DOUBLE)
    if not isinstance(domain, RealDomain):
        return clipped_integer(graph, domain, label)
    position = grid_position(graph, domain, label)
    if rounding_word is None:
        half = graph.scalar("half", DOUBLE, 0.5)
        shifted = graph.node("Add", [position, half], "grid_position_half_up")
        return graph.node("Floor", [shifted], "row_number")
    whole, up = rounded_up(graph, position, rounding_word)
    step_up = graph.node("Cast", [up], "row_step", to=DOUBLE)
    return graph.node("Add", [whole, step_up], "row_number")


def _is_found_in_float64(domain: Domain) -> TypeGuard[RealDomain | IntegerDomain]:
    """Whether ``label_graph`` finds the row in float64."""
    if isinstance(domain, IntegerDomain):
        return domain.default is None
    return isinstance(domain, RealDomain)
