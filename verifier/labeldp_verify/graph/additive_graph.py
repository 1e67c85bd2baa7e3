"""The additive randomizer as a graph, from format 1.4 on.

    word ────────► block ─┐
    second word ► i ──────┴► t = row·S + block·D + i − (J + 1)·D ──► clamp ──► t·unit + origin

The same integers as in ``randomizer_graph``, which writes the older formats, and the same outputs.
All points are below 2^52, where float64 is exact, and its ``Clip`` clamps in a sixth of the time of
comparisons and ``Where``.
"""

from __future__ import annotations

from labeldp_verify.forms import AdditiveRandomizer
from labeldp_verify.graph.alias_table import (
    add_alias_sample,
    add_word_bits,
)
from labeldp_verify.graph.nodes import DOUBLE, INT64, Graph
from labeldp_verify.graph.randomizer_graph import add_block


def add_additive(
    graph: Graph, row: str, word: str, second_word: str, randomizer: AdditiveRandomizer
) -> None:
    """Add the nodes from a row [N] (float64) and words [N] (uint64) to ``private_label``."""
    r, B = randomizer, randomizer.word_bits
    block, shapes, bits = add_block(graph, word, r)
    # By the block, the shape of its side of zero: half of the blocks lie on each.
    starts = [0] * (r.reach + 1) + [1 << bits] * (r.reach + 1)
    by_block = graph.vector("shape_starts", INT64, starts)
    start = graph.node("GatherElements", [by_block, block], "shape_start", axis=0)
    second_high = add_word_bits(graph, "shape", second_word, B)
    inside = add_alias_sample(graph, "shape", second_high, shapes, bits, start)

    period = graph.scalar("period", INT64, r.period)
    block_point = graph.node("Mul", [block, period], "block_point")
    above = graph.node("Add", [block_point, inside], "noise_above_lowest")
    lowest = graph.scalar("noise_shift", INT64, -(r.reach + 1) * r.period)
    noise = graph.node("Add", [above, lowest], "noise")
    noise_number = graph.node("Cast", [noise], "noise_number", to=DOUBLE)
    spacing = graph.scalar("spacing", DOUBLE, float(r.spacing))
    label_point = graph.node("Mul", [row, spacing], "label_point")
    point = graph.node("Add", [label_point, noise_number], "point")

    ends = [graph.scalar("low", DOUBLE, float(r.low)), graph.scalar("high", DOUBLE, float(r.high))]
    clamped = graph.node("Clip", [point, *ends], "point_clamped")
    scaled = graph.product(clamped, "unit", r.unit, "point_scaled")
    origin = graph.scalar("origin", DOUBLE, r.origin)
    graph.node("Add", [scaled, origin], "private_label")
