"""The window randomizer as a graph.

    row ──► offset ─┐
    u ──► (u ≥ T ?) ┴► t = u + offset ──► bucket ──► segment ──► private_label

u is the highest B bits of the label's word. int64 comparisons, additions and Where, and uint64
shifts, compute exactly in every version of onnxruntime that was tested; uint64 additions and
comparisons are missing before 1.21.
"""

from __future__ import annotations

from collections.abc import Sequence

from labeldp_verify.forms import (
    AdditiveRandomizer,
    GroupedWindows,
    TableRandomizer,
    WindowRandomizer,
)
from labeldp_verify.forms.window import Output
from labeldp_verify.graph.alias_table import (
    add_alias_sample,
    add_word_bits,
    alias_entries,
    column_bits,
)
from labeldp_verify.graph.bucket_grid import BucketGrid, TwoLines, grid_entries
from labeldp_verify.graph.nodes import DOUBLE, INT64, UINT64, Graph, output_type


def add_window_with_where(
    graph: Graph,
    row: str,
    word: str,
    randomizer: WindowRandomizer,
    grid: BucketGrid,
    answer: str,
) -> None:
    """Add the nodes from a row index [N] (int64) and a word [N] (uint64) to the ``answer``."""
    u = _uniform(graph, word, randomizer.word_bits)
    base_total = graph.scalar("base_total", INT64, randomizer.base_total)
    in_extra = graph.node("GreaterOrEqual", [u, base_total], "in_extra")
    offsets = graph.vector("offsets", INT64, randomizer.offsets)
    offset = graph.node("GatherElements", [offsets, row], "offset", axis=0)
    moved = graph.node("Add", [u, offset], "u_moved")
    t = graph.node("Where", [in_extra, moved, u], "t")

    values = [randomizer.values[i] for i in randomizer.segment_outputs()]
    _add_lookup(graph, t, in_extra, randomizer, grid, values, answer)


def add_grouped_window(
    graph: Graph,
    row: str,
    group: str,
    word: str,
    randomizer: GroupedWindows,
    grid: BucketGrid,
    answer: str,
) -> None:
    """Add the nodes from row and table indices [N] (int64) and a word [N] to the ``answer``.

    The table that is gathered from with the row says at once where the group's own lines lie.
    """
    if len(set(randomizer.word_bits)) == 1:
        u = _uniform(graph, word, randomizer.word_bits[0])
    else:
        by = graph.vector("word_shifts", UINT64, [64 - bits for bits in randomizer.word_bits])
        shift = graph.node("GatherElements", [by, group], "word_shift", axis=0)
        u = _highest(graph, word, shift)
    totals = [window.base_total for window in randomizer.windows]
    base_totals = graph.vector("base_totals", INT64, totals)
    base_total = graph.node("GatherElements", [base_totals, group], "base_total", axis=0)
    in_extra = graph.node("GreaterOrEqual", [u, base_total], "in_extra")
    width = graph.scalar("moves_per_group", INT64, 2 * randomizer.labels)
    first = graph.node("Mul", [group, width], "group_moves")
    twice = graph.node("Add", [row, row], "row_moves")
    place = graph.node("Add", [first, twice], "base_move")
    step = graph.node("Cast", [in_extra], "extra_step", to=INT64)
    chosen = graph.node("Add", [place, step], "chosen_move")
    moves = graph.vector("moves", INT64, randomizer.moves())
    move = graph.node("GatherElements", [moves, chosen], "move", axis=0)
    t = graph.node("Add", [u, move], "t")
    _add_lookup(graph, t, in_extra, randomizer.lines, grid, randomizer.segment_values, answer)


def _add_lookup(
    graph: Graph,
    t: str,
    in_extra: str,
    lines: TwoLines,
    grid: BucketGrid,
    values: Sequence[Output],
    answer: str,
) -> None:
    """From points t [N] of the lines to the ``values`` of their segments."""
    bucket = _bucket(graph, t, in_extra, lines, grid)
    entries = graph.vector("grid", INT64, grid_entries(lines, grid))
    entry = graph.node("GatherElements", [entries, bucket], "grid_entry", axis=0)
    raised = graph.node("Add", [t, entry], "t_raised")
    segment = _shift(graph, raised, "segment_shift", grid.segment_shift, "segment")
    segment_values = graph.vector("segment_values", output_type(values[0]), values)
    graph.node("GatherElements", [segment_values, segment], answer, axis=0)


def _uniform(graph: Graph, word: str, word_bits: int) -> str:
    return _highest(graph, word, graph.scalar("word_shift", UINT64, 64 - word_bits))


def _highest(graph: Graph, word: str, shift: str) -> str:
    high = graph.node("BitShift", [word, shift], "word_high", direction="RIGHT")
    return graph.node("Cast", [high], "u", to=INT64)


def _bucket(graph: Graph, t: str, in_extra: str, lines: TwoLines, grid: BucketGrid) -> str:
    if grid.is_single:
        return _shift(graph, t, "bucket_shift", grid.base_shift, "bucket")
    starts = grid.starts(lines)
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


# The additive randomizer as a graph.
#
#     word ────────► block ─┐
#     second word ► i ──────┴► t = row·S + block·D + i − (J + 1)·D ──► clamp ──► t·unit + origin
#
# The block and i come from alias tables; that of i is chosen by the block's side of zero. int64
# products and sums are exact here, and t is far below 2^53, where float64 stops being exact.


MAX_PERIOD = 1 << 20  # two tables of 8 MB


def require_small_period(randomizer: AdditiveRandomizer) -> None:
    """Raise ValueError if the alias tables of the noise's shapes would be too large."""
    if randomizer.period > MAX_PERIOD:
        raise ValueError(
            f"additive noise on {randomizer.period:,} lattice steps would need too large tables; "
            f"use a coarser lattice or fewer labels (at most {MAX_PERIOD:,} steps)"
        )


def add_block(graph: Graph, word: str, randomizer: AdditiveRandomizer) -> tuple[str, str, int]:
    """Add the draw of a block of the noise, and the tables of the shapes inside blocks.

    Returns the block [N] (int64), the tables and the bits of a column of theirs.
    """
    r, B = randomizer, randomizer.word_bits
    require_small_period(r)
    blocks = graph.vector("block_entries", UINT64, alias_entries(r.blocks, B))
    high = add_word_bits(graph, "block", word, B)
    block = add_alias_sample(graph, "block", high, blocks, column_bits(len(r.blocks)))
    entries = [entry for shape in r.shapes for entry in alias_entries(shape, B)]
    return block, graph.vector("shape_entries", UINT64, entries), column_bits(r.period)


def add_additive_with_where(
    graph: Graph, row: str, word: str, second_word: str, randomizer: AdditiveRandomizer
) -> None:
    """Add the nodes from a row index [N] (int64) and words [N] (uint64) to ``private_label``."""
    r, B = randomizer, randomizer.word_bits
    block, shapes, bits = add_block(graph, word, r)
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


MAX_ENTRIES = 1 << 21  # 16 MB


def require_small_table(labels: int, outputs: int) -> None:
    """Raise ValueError if the alias tables would have more than ``MAX_ENTRIES`` entries."""
    if labels << column_bits(outputs) > MAX_ENTRIES:
        raise ValueError(
            f"a table of {labels:,} labels and {outputs:,} outputs would be too large; "
            "use fewer labels, or a mechanism without a table"
        )


def table_entries(randomizer: TableRandomizer) -> list[int]:
    """The alias tables of all rows, one behind the other; ValueError if they are too large."""
    require_small_table(len(randomizer.counts), randomizer.outputs)
    rows = (alias_entries(row, randomizer.word_bits) for row in randomizer.counts)
    return [entry for row in rows for entry in row]


def add_table(graph: Graph, row: str, word: str, randomizer: TableRandomizer, answer: str) -> None:
    """Add the nodes from a row index [N] (int64) and a word [N] (uint64) to the ``answer``."""
    private = output_type(randomizer.values[0])
    bits = column_bits(randomizer.outputs)
    entries = graph.vector("table_entries", UINT64, table_entries(randomizer))
    columns = graph.scalar("columns", INT64, 1 << bits)
    start = graph.node("Mul", [row, columns], "row_start")
    high = add_word_bits(graph, "table", word, randomizer.word_bits)
    item = add_alias_sample(graph, "table", high, entries, bits, start)
    values = graph.vector("values", private, randomizer.values)
    graph.node("GatherElements", [values, item], answer, axis=0)
