"""The window randomizer as a graph, from format 1.4 on.

    row ──► offset ─┐
    u ──► (u ≥ T) ──┴► t = u + (u ≥ T)·offset ──► bucket ──► segment ──► private_label

The same integers as in ``randomizer_graph``, which writes the older formats, and the same outputs.
``Where`` takes longer than any other node, and longer still where its condition is a coin toss, so
that products and lookups choose here: (u ≥ T) is 0 or 1, and names the line of a point.
"""

from __future__ import annotations

from labeldp_verify.forms import WindowRandomizer
from labeldp_verify.graph.bucket_grid import BucketGrid, grid_entries
from labeldp_verify.graph.nodes import INT64, UINT64, Graph, output_type


def add_window(
    graph: Graph,
    row: str,
    word: str,
    randomizer: WindowRandomizer,
    grid: BucketGrid,
    answer: str,
) -> None:
    """Add the nodes from a row [N] (int32 or int64) and a word [N] (uint64) to the ``answer``."""
    shift = graph.scalar("word_shift", UINT64, 64 - randomizer.word_bits)
    high = graph.node("BitShift", [word, shift], "word_high", direction="RIGHT")
    u = graph.node("Cast", [high], "u", to=INT64)
    line = _at_least(graph, u, "base_total", randomizer.base_total, "in_extra", "line")
    offsets = graph.vector("offsets", INT64, randomizer.offsets)
    offset = graph.node("GatherElements", [offsets, row], "offset", axis=0)
    move = graph.node("Mul", [offset, line], "move")
    t = graph.node("Add", [u, move], "t")

    bucket = _bucket(graph, t, line, randomizer, grid)
    entries = graph.vector("grid", INT64, grid_entries(randomizer, grid))
    entry = graph.node("GatherElements", [entries, bucket], "grid_entry", axis=0)
    raised = graph.node("Add", [t, entry], "t_raised")
    by = graph.scalar("segment_shift", UINT64, grid.segment_shift)
    segment = _shift(graph, raised, by, "segment")
    values = [randomizer.values[i] for i in randomizer.segment_outputs()]
    segment_values = graph.vector("segment_values", output_type(values[0]), values)
    graph.node("GatherElements", [segment_values, segment], answer, axis=0)


def _bucket(graph: Graph, t: str, line: str, randomizer: WindowRandomizer, grid: BucketGrid) -> str:
    """The place in the table; each line, and the far part of the extra one, has its own width."""
    if grid.is_single:
        by = graph.scalar("bucket_shift", UINT64, grid.base_shift)
        return _shift(graph, t, by, "bucket")
    widths = [grid.base_shift, grid.extra_shift]
    stretch = line
    if grid.far_shift is not None:
        far = _at_least(graph, t, "far_point", grid.far_start, "in_far", "far")
        stretch = graph.node("Add", [line, far], "stretch")
        widths.append(grid.far_shift)
    shifts = graph.vector("bucket_shifts", UINT64, widths)
    by = graph.node("GatherElements", [shifts, stretch], "bucket_shift", axis=0)
    number = _shift(graph, t, by, "bucket_number")
    starts = graph.vector("bucket_starts", INT64, grid.starts(randomizer))
    start = graph.node("GatherElements", [starts, stretch], "bucket_start", axis=0)
    return graph.node("Add", [number, start], "bucket")


def _at_least(
    graph: Graph, value: str, constant: str, least: int, condition: str, output: str
) -> str:
    """1 where a value [N] (int64) is at least a constant, and 0 elsewhere."""
    bound = graph.scalar(constant, INT64, least)
    holds = graph.node("GreaterOrEqual", [value, bound], condition)
    return graph.node("Cast", [holds], output, to=INT64)


def _shift(graph: Graph, value: str, by: str, output: str) -> str:
    """``value >> by`` for non-negative int64, by way of uint64."""
    unsigned = graph.node("Cast", [value], f"{output}_unsigned", to=UINT64)
    shifted = graph.node("BitShift", [unsigned, by], f"{output}_shifted", direction="RIGHT")
    return graph.node("Cast", [shifted], output, to=INT64)
