"""Window randomizers as a graph, alone or one for each group.

    row ──► offset ─┐
    u ──► (u ≥ T) ──┴► t = u + (u ≥ T)·offset ──► bucket ──► segment ──► private_label

u is the highest B bits of the label's word. int64 comparisons, additions and Where, and uint64
shifts, compute exactly in every version of onnxruntime that was tested; uint64 additions and
comparisons are missing before 1.21.

``Where`` takes longer than any other node, and longer still where its condition is a coin toss. So
products and lookups choose instead: (u ≥ T) is 0 or 1, and names the line of a point.
"""

from collections.abc import Sequence

from labeldp_verify.forms import GroupedWindows, WindowRandomizer
from labeldp_verify.forms.window import Output
from labeldp_verify.graph.bucket_grid import BucketGrid, TwoLines, grid_entries
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
    u = _uniform(graph, word, graph.scalar("word_shift", UINT64, 64 - randomizer.word_bits))
    in_extra = _at_least(graph, u, "base_total", randomizer.base_total, "in_extra")
    line = graph.node("Cast", [in_extra], "line", to=INT64)
    offsets = graph.vector("offsets", INT64, randomizer.offsets)
    offset = graph.node("GatherElements", [offsets, row], "offset", axis=0)
    move = graph.node("Mul", [offset, line], "move")
    t = graph.node("Add", [u, move], "t")
    values = [randomizer.values[i] for i in randomizer.segment_outputs()]
    _add_lookup(graph, t, line, randomizer, grid, values, answer)


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
    shifts = [64 - bits for bits in randomizer.word_bits]
    if len(set(shifts)) == 1:
        by = graph.scalar("word_shift", UINT64, shifts[0])
    else:
        each = graph.vector("word_shifts", UINT64, shifts)
        by = graph.node("GatherElements", [each, group], "word_shift", axis=0)
    u = _uniform(graph, word, by)
    totals = [window.base_total for window in randomizer.windows]
    base_totals = graph.vector("base_totals", INT64, totals)
    base_total = graph.node("GatherElements", [base_totals, group], "base_total", axis=0)
    in_extra = graph.node("GreaterOrEqual", [u, base_total], "in_extra")
    width = graph.scalar("moves_per_group", INT64, 2 * randomizer.labels)
    first = graph.node("Mul", [group, width], "group_moves")
    twice = graph.node("Add", [row, row], "row_moves")
    place = graph.node("Add", [first, twice], "base_move")
    line = graph.node("Cast", [in_extra], "line", to=INT64)
    chosen = graph.node("Add", [place, line], "chosen_move")
    moves = graph.vector("moves", INT64, randomizer.moves())
    move = graph.node("GatherElements", [moves, chosen], "move", axis=0)
    t = graph.node("Add", [u, move], "t")
    _add_lookup(graph, t, line, randomizer.lines, grid, randomizer.segment_values, answer)


def _add_lookup(
    graph: Graph,
    t: str,
    line: str,
    lines: TwoLines,
    grid: BucketGrid,
    values: Sequence[Output],
    answer: str,
) -> None:
    """From points t [N] and the numbers of their lines to the ``values`` of their segments."""
    bucket = _bucket(graph, t, line, lines, grid)
    entries = graph.vector("grid", INT64, grid_entries(lines, grid))
    entry = graph.node("GatherElements", [entries, bucket], "grid_entry", axis=0)
    raised = graph.node("Add", [t, entry], "t_raised")
    by = graph.scalar("segment_shift", UINT64, grid.segment_shift)
    segment = _shift(graph, raised, by, "segment")
    segment_values = graph.vector("segment_values", output_type(values[0]), values)
    graph.node("GatherElements", [segment_values, segment], answer, axis=0)


def _bucket(graph: Graph, t: str, line: str, lines: TwoLines, grid: BucketGrid) -> str:
    """The place in the table of a point t [N] of a line (0: base, 1: extra).

    Each line, and the far part of the extra one, has buckets of its own width.
    """
    if grid.is_single:
        return _shift(graph, t, graph.scalar("bucket_shift", UINT64, grid.base_shift), "bucket")
    widths = [grid.base_shift, grid.extra_shift]
    stretch = line
    if grid.far_shift is not None:
        in_far = _at_least(graph, t, "far_point", grid.far_start, "in_far")
        far = graph.node("Cast", [in_far], "far", to=INT64)
        stretch = graph.node("Add", [line, far], "stretch")
        widths.append(grid.far_shift)
    shifts = graph.vector("bucket_shifts", UINT64, widths)
    by = graph.node("GatherElements", [shifts, stretch], "bucket_shift", axis=0)
    number = _shift(graph, t, by, "bucket_number")
    starts = graph.vector("bucket_starts", INT64, grid.starts(lines))
    start = graph.node("GatherElements", [starts, stretch], "bucket_start", axis=0)
    return graph.node("Add", [number, start], "bucket")


def _uniform(graph: Graph, word: str, shift: str) -> str:
    high = graph.node("BitShift", [word, shift], "word_high", direction="RIGHT")
    return graph.node("Cast", [high], "u", to=INT64)


def _at_least(graph: Graph, value: str, constant: str, least: int, output: str) -> str:
    """Whether a value [N] (int64) is at least a constant."""
    return graph.node("GreaterOrEqual", [value, graph.scalar(constant, INT64, least)], output)


def _shift(graph: Graph, value: str, by: str, output: str) -> str:
    """``value >> by`` for non-negative int64, by way of uint64."""
    unsigned = graph.node("Cast", [value], f"{output}_unsigned", to=UINT64)
    shifted = graph.node("BitShift", [unsigned, by], f"{output}_shifted", direction="RIGHT")
    return graph.node("Cast", [shifted], output, to=INT64)
