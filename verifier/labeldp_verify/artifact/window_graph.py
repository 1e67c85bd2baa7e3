"""The window randomizer as a graph.

    row ──► offset ─┐
    u ──► (u ≥ T ?) ┴► t = u + offset ──► bucket ──► segment ──► private_label

u is the highest B bits of the label's word. int64 comparisons, additions and Where, and uint64
shifts, compute exactly in every version of onnxruntime that was tested; uint64 additions and
comparisons are missing before 1.21.
"""

from __future__ import annotations

from labeldp_verify.artifact.bucket_grid import BucketGrid, grid_entries
from labeldp_verify.artifact.graph import INT64, UINT64, Graph, output_type
from labeldp_verify.forms import WindowRandomizer


def add_window(
    graph: Graph, row: str, word: str, randomizer: WindowRandomizer, grid: BucketGrid
) -> None:
    """Add the nodes from a row index [N] (int64) and a word [N] (uint64) to ``private_label``."""
    private = output_type(randomizer.values[0])
    graph.output("private_label", private, ["N"])

    u = _uniform(graph, word, randomizer.word_bits)
    base_total = graph.scalar("base_total", INT64, randomizer.base_total)
    in_extra = graph.node("GreaterOrEqual", [u, base_total], "in_extra")
    offsets = graph.vector("offsets", INT64, randomizer.offsets)
    offset = graph.node("GatherElements", [offsets, row], "offset", axis=0)
    moved = graph.node("Add", [u, offset], "u_moved")
    t = graph.node("Where", [in_extra, moved, u], "t")

    bucket = _bucket(graph, t, in_extra, randomizer, grid)
    entries = graph.vector("grid", INT64, grid_entries(randomizer, grid))
    entry = graph.node("GatherElements", [entries, bucket], "grid_entry", axis=0)
    raised = graph.node("Add", [t, entry], "t_raised")
    segment = _shift(graph, raised, "segment_shift", grid.segment_shift, "segment")

    values = [randomizer.values[i] for i in randomizer.segment_outputs()]
    segment_values = graph.vector("segment_values", private, values)
    graph.node("GatherElements", [segment_values, segment], "private_label", axis=0)


def _uniform(graph: Graph, word: str, word_bits: int) -> str:
    shift = graph.scalar("word_shift", UINT64, 64 - word_bits)
    high = graph.node("BitShift", [word, shift], "word_high", direction="RIGHT")
    return graph.node("Cast", [high], "u", to=INT64)


def _bucket(
    graph: Graph, t: str, in_extra: str, randomizer: WindowRandomizer, grid: BucketGrid
) -> str:
    if grid.is_single:
        return _shift(graph, t, "bucket_shift", grid.base_shift, "bucket")
    starts = grid.starts(randomizer)
    base = _shift(graph, t, "base_bucket_shift", grid.base_shift, "base_bucket")
    extra = _shift(graph, t, "extra_bucket_shift", grid.extra_shift, "extra_bucket")
    start = graph.scalar("extra_start", INT64, starts[1])
    behind = graph.node("Add", [extra, start], "extra_bucket_behind")
    if grid.far_shift is None:
        return graph.node("Where", [in_extra, behind, base], "bucket")
    near = graph.node("Where", [in_extra, behind, base], "near_bucket")
    far_point = graph.scalar("far_point", INT64, grid.far_start)
    in_far = graph.node("GreaterOrEqual", [t, far_point], "in_far")
    far = _shift(graph, t, "far_bucket_shift", grid.far_shift, "far_bucket")
    far_start = graph.scalar("far_start", INT64, starts[2])
    far_behind = graph.node("Add", [far, far_start], "far_bucket_behind")
    return graph.node("Where", [in_far, far_behind, near], "bucket")


def _shift(graph: Graph, value: str, constant: str, bits: int, output: str) -> str:
    """``value >> bits`` for non-negative int64, by way of uint64."""
    unsigned = graph.node("Cast", [value], f"{output}_unsigned", to=UINT64)
    by = graph.scalar(constant, UINT64, bits)
    shifted = graph.node("BitShift", [unsigned, by], f"{output}_shifted", direction="RIGHT")
    return graph.node("Cast", [shifted], output, to=INT64)
