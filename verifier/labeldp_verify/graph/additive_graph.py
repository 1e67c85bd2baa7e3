"""The additive randomizer as a graph.

    word ────────► block ─┐
    second word ► i ──────┴► t = row·S + block·D + i − (J + 1)·D ──► clamp ──► t·unit + origin

The block and i come from alias tables; that of i is chosen by the block's side of zero. Products
and sums are exact: all points are below 2^52, where float64 is exact, too. Points are float64,
whose ``Clip`` takes a sixth of the time of comparisons and ``Where`` on int64.
"""

from labeldp_verify.forms import AdditiveRandomizer
from labeldp_verify.graph.alias_table import (
    add_alias_sample,
    add_word_bits,
    alias_entries,
    column_bits,
)
from labeldp_verify.graph.nodes import DOUBLE, INT64, UINT64, Graph

MAX_PERIOD = 1 << 20  # two tables of 8 MB


def add_additive(
    graph: Graph, row: str, word: str, second_word: str, randomizer: AdditiveRandomizer
) -> None:
    """Add the nodes from a row [N] (float64) and words [N] (uint64) to ``private_label``."""
    r = randomizer
    block, shapes = _add_block(graph, word, r)
    # By the block, the shape of its side of zero: half of the blocks lie on each.
    starts = [0] * (r.reach + 1) + [1 << column_bits(r.period)] * (r.reach + 1)
    by_block = graph.vector("shape_starts", INT64, starts)
    start = graph.node("GatherElements", [by_block, block], "shape_start", axis=0)
    inside = _add_place(graph, second_word, r, shapes, start)

    period = graph.scalar("period", INT64, r.period)
    lowest = graph.scalar("noise_shift", INT64, -(r.reach + 1) * r.period)
    noise = _add_noise(graph, block, inside, period, lowest)
    noise_number = graph.node("Cast", [noise], "noise_number", to=DOUBLE)
    spacing = graph.scalar("spacing", DOUBLE, float(r.spacing))
    label_point = graph.node("Mul", [row, spacing], "label_point")
    point = graph.node("Add", [label_point, noise_number], "point")

    ends = [graph.scalar("low", DOUBLE, float(r.low)), graph.scalar("high", DOUBLE, float(r.high))]
    _add_answer(graph, graph.node("Clip", [point, *ends], "point_clamped"), r)


def _add_block(graph: Graph, word: str, r: AdditiveRandomizer) -> tuple[str, str]:
    """The block [N] (int64) of the noise, and the tables of the shapes inside blocks."""
    if r.period > MAX_PERIOD:
        raise ValueError(
            f"additive noise on {r.period:,} lattice steps would need too large tables; "
            f"use a coarser lattice or fewer labels (at most {MAX_PERIOD:,} steps)"
        )
    blocks = graph.vector("block_entries", UINT64, alias_entries(r.blocks, r.word_bits))
    high = add_word_bits(graph, "block", word, r.word_bits)
    block = add_alias_sample(graph, "block", high, blocks, column_bits(len(r.blocks)))
    entries = [entry for shape in r.shapes for entry in alias_entries(shape, r.word_bits)]
    return block, graph.vector("shape_entries", UINT64, entries)


def _add_place(graph: Graph, word: str, r: AdditiveRandomizer, shapes: str, start: str) -> str:
    """The place [N] (int64) inside a block."""
    high = add_word_bits(graph, "shape", word, r.word_bits)
    return add_alias_sample(graph, "shape", high, shapes, column_bits(r.period), start)


def _add_noise(graph: Graph, block: str, inside: str, period: str, lowest: str) -> str:
    block_point = graph.node("Mul", [block, period], "block_point")
    above = graph.node("Add", [block_point, inside], "noise_above_lowest")
    return graph.node("Add", [above, lowest], "noise")


def _add_answer(graph: Graph, point: str, r: AdditiveRandomizer) -> None:
    """From a point [N] (float64) of the lattice to the output."""
    scaled = graph.product(point, "unit", r.unit, "point_scaled")
    graph.node("Add", [scaled, graph.scalar("origin", DOUBLE, r.origin)], "private_label")
