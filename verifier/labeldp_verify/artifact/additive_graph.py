"""The additive randomizer as a graph.

    word ────────► block ─┐
    second word ► i ──────┴► t = row·S + block·D + i − (J + 1)·D ──► clamp ──► t·unit + origin

The block and i come from alias tables; that of i is chosen by the block's side of zero. int64
products and sums are exact here, and t is far below 2^53, where float64 stops being exact.
"""

from __future__ import annotations

from labeldp_verify.artifact.alias_graph import add_alias_sample, add_word_bits
from labeldp_verify.artifact.alias_table import alias_entries, column_bits
from labeldp_verify.artifact.graph import DOUBLE, INT64, UINT64, Graph
from labeldp_verify.forms import AdditiveRandomizer

MAX_PERIOD = 1 << 20  # two tables of 8 MB


def add_additive(
    graph: Graph, row: str, word: str, second_word: str, randomizer: AdditiveRandomizer
) -> None:
    """Add the nodes from a row index [N] (int64) and words [N] (uint64) to ``private_label``."""
    r, B = randomizer, randomizer.word_bits
    if r.period > MAX_PERIOD:
        raise ValueError(
            f"additive noise on {r.period:,} lattice steps would need too large tables; "
            f"use a coarser lattice or fewer labels (at most {MAX_PERIOD:,} steps)"
        )
    graph.output("private_label", DOUBLE, ["N"])
    blocks = graph.vector("block_entries", UINT64, alias_entries(r.blocks, B))
    high = add_word_bits(graph, "block", word, B)
    block = add_alias_sample(graph, "block", high, blocks, column_bits(len(r.blocks)))

    bits = column_bits(r.period)
    entries = [entry for shape in r.shapes for entry in alias_entries(shape, B)]
    shapes = graph.vector("shape_entries", UINT64, entries)
    zero_block = graph.scalar("zero_block", INT64, r.reach + 1)
    from_zero = graph.node("GreaterOrEqual", [block, zero_block], "from_zero")
    starts = [graph.scalar(f"shape_start_{side}", INT64, side << bits) for side in (0, 1)]
    start = graph.node("Where", [from_zero, starts[1], starts[0]], "shape_start")
    second_high = add_word_bits(graph, "shape", second_word, B)
    inside = add_alias_sample(graph, "shape", second_high, shapes, bits, start)

    spacing = graph.scalar("spacing", INT64, r.spacing)
    period = graph.scalar("period", INT64, r.period)
    shift = graph.scalar("noise_shift", INT64, -(r.reach + 1) * r.period)
    label_point = graph.node("Mul", [row, spacing], "label_point")
    block_point = graph.node("Mul", [block, period], "block_point")
    noise_above = graph.node("Add", [block_point, inside], "noise_above_lowest")
    noise = graph.node("Add", [noise_above, shift], "noise")
    point = graph.node("Add", [label_point, noise], "point")

    low, top = graph.scalar("low", INT64, r.low), graph.scalar("high", INT64, r.high)
    not_below = graph.node("GreaterOrEqual", [point, low], "point_not_below")
    raised = graph.node("Where", [not_below, point, low], "point_raised")
    not_above = graph.node("LessOrEqual", [raised, top], "point_not_above")
    clamped = graph.node("Where", [not_above, raised, top], "point_clamped")
    number = graph.node("Cast", [clamped], "point_number", to=DOUBLE)
    scaled = graph.product(number, "unit", r.unit, "point_scaled")
    origin = graph.scalar("origin", DOUBLE, r.origin)
    graph.node("Add", [scaled, origin], "private_label")
