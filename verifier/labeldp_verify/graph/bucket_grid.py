"""Window randomizers as a graph, and the lookup tables that find the segment of a point."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from labeldp_verify.forms import GroupedWindows, WindowRandomizer
from labeldp_verify.forms.integers import Lines
from labeldp_verify.forms.randomizers import Output
from labeldp_verify.graph.nodes import INT64, UINT64, Graph, output_type

# ---- Lookup tables that find the segment of a point on the line with one gather.
#
# A line is cut into buckets of 2^shift points, each holding at most one segment boundary. For a
# bucket, let ``id`` be the segment at its first point. The table stores one integer q such that
#
#     segment(t) = (t + q) >> segment_shift        for every t in the bucket:
#
#     no boundary inside:  q = (id << segment_shift) − first point of the bucket
#     boundary at c:       q = ((id + 1) << segment_shift) − c
#
# because |t − c| < 2^shift ≤ 2^segment_shift. All values stay below 2^63 (``grid_entries`` checks).


SINGLE_GRID_ENTRIES = 1 << 15  # 256 kB: one grid is faster while it fits a core's cache
SINGLE_GRID_OF_GROUPS = 1 << 17  # of many tables, which miss that cache anyway
MAX_ENTRIES = 1 << 22
COMFORTABLE_ENTRIES = 1 << 20  # 8 MB; more than that only where a mechanism has no choice

_ENTRY = 8  # bytes


TwoLines = WindowRandomizer | Lines
"""A base line and an extra line behind it, cut into segments."""


@dataclass(frozen=True)
class BucketGrid:
    """Widths (log₂) of the buckets of the base line and of the extra line.

    Equal widths mean one grid over the common line. Otherwise each line has its own: at large ε
    the base segments are far narrower than the extra ones. The far part of the extra line, from the
    segment that starts at ``far_start`` on, can have a width of its own, too: in RRTop-k its
    segments are narrower by the number of outputs.
    """

    base_shift: int
    extra_shift: int
    far_shift: int | None = None
    far_start: int = 0

    @property
    def is_single(self) -> bool:
        """True if one grid serves both lines."""
        return self.base_shift == self.extra_shift and self.far_shift is None

    @property
    def segment_shift(self) -> int:
        """Bits below the segment number in t + q."""
        return max(self.base_shift, self.extra_shift, self.far_shift or 0)

    def stretches(self, lines: TwoLines) -> list[tuple[int, int, int]]:
        """(first point, point behind the last, width) of each grid, in the order of the table."""
        T, end = lines.base_total, lines.base_total + lines.extra_total
        if self.is_single:
            return [(0, end, self.base_shift)]
        if self.far_shift is None:
            return [(0, T, self.base_shift), (T, end, self.extra_shift)]
        far = (self.far_start, end, self.far_shift)
        return [(0, T, self.base_shift), (T, self.far_start, self.extra_shift), far]

    def starts(self, lines: TwoLines) -> list[int]:
        """Table index minus bucket number (point >> width) for each of the stretches."""
        counts = [_buckets(*stretch) for stretch in self.stretches(lines)]
        before = accumulate(counts, initial=0)
        stretches = zip(self.stretches(lines), before, strict=False)
        return [behind - (first >> shift) for (first, _, shift), behind in stretches]


def choose_grid(
    lines: TwoLines, max_entries: int | None = None, single_entries: int | None = None
) -> BucketGrid | None:
    """The grid that the compiler uses, or None where it needs more entries (``MAX_ENTRIES``).

    Up to ``single_entries`` (``SINGLE_GRID_ENTRIES``) one grid serves both lines, even if two would
    be smaller.
    """
    single_entries = SINGLE_GRID_ENTRIES if single_entries is None else single_entries
    boundaries = np.array(lines.boundaries(), dtype=np.int64)
    m = len(lines.base)
    widest = 62 - len(boundaries).bit_length()  # keeps (segment << shift) below 2^63
    single = _widest_shift(boundaries[1:-1], widest)
    base = _widest_shift(boundaries[1:m], widest)
    extra = _widest_shift(boundaries[m + 1 : -1], widest)
    one = BucketGrid(single, single)
    # Equal widths would mean one grid; narrower buckets are always right, if there are any.
    two = BucketGrid(base - 1 if base == extra > 0 else base, extra)
    size_one, size_two = _size(one, lines), _size(two, lines)
    best = two
    if not lines.extra or size_one <= max(single_entries, size_two):
        best = one
    elif size_two > single_entries and len(lines.extra) > 1:
        three = _three_grids(boundaries, m, base, widest)
        if 2 * _size(three, lines) < size_two:
            best = three
    limit = MAX_ENTRIES if max_entries is None else max_entries
    return best if _size(best, lines) <= limit else None


def grid_entries(lines: TwoLines, grid: BucketGrid) -> list[int]:
    """The table of q values: buckets of the base line, then of the extra line.

    Raises ValueError if a bucket holds two boundaries or a value could leave 63 bits.
    """
    boundaries = np.array(lines.boundaries(), dtype=np.int64)
    if len(boundaries) << grid.segment_shift >= 1 << 63:
        raise ValueError("the segment numbers do not fit above the bucket width")
    table: list[int] = []
    for first, stop, shift in grid.stretches(lines):
        i, j = np.searchsorted(boundaries, [first, stop])
        if boundaries[i] != first or boundaries[j] != stop:
            raise ValueError("a grid must begin and end at a segment boundary")
        part = _entries(boundaries[i : j + 1], int(i), shift, grid.segment_shift)
        table += part.tolist()
    return table


def table_bytes(randomizer: WindowRandomizer) -> int | None:
    """Bytes of the tables whose outputs are numbers; None where no grid is small enough."""
    grid = choose_grid(randomizer)
    if grid is None:
        return None
    segments = len(randomizer.base) + len(randomizer.extra)
    return _ENTRY * (len(randomizer.offsets) + _size(grid, randomizer) + segments)


def _three_grids(boundaries: NDArray[np.int64], m: int, base: int, widest: int) -> BucketGrid:
    """The cut of the extra line that needs the fewest buckets, judged by the narrowest segments."""
    line = boundaries[m:]
    lengths = np.diff(line).astype(np.float64)
    near = (line[1:-1] - line[0]) / np.minimum.accumulate(lengths)[:-1]
    far = (line[-1] - line[1:-1]) / np.minimum.accumulate(lengths[::-1])[::-1][1:]
    cut = int(np.argmin(near + far)) + 1
    near_shift = _widest_shift(line[1:cut], widest)
    far_shift = _widest_shift(line[cut + 1 : -1], widest)
    return BucketGrid(base, near_shift, far_shift, int(line[cut]))


def _size(grid: BucketGrid, lines: TwoLines) -> int:
    return sum(_buckets(*stretch) for stretch in grid.stretches(lines))


def _buckets(first: int, stop: int, shift: int) -> int:
    return ((stop - 1) >> shift) + 1 - (first >> shift)


def _entries(
    boundaries: NDArray[np.int64], first_id: int, shift: int, segment_shift: int
) -> NDArray[np.int64]:
    """q for every bucket between the first and the last of the boundaries."""
    start, end, inner = int(boundaries[0]), int(boundaries[-1]), boundaries[1:-1]
    holders = inner >> shift  # the bucket of each inner boundary
    if np.any(holders[1:] == holders[:-1]):
        raise ValueError("a bucket holds two segment boundaries")
    first = start >> shift
    buckets = np.arange(first, ((end - 1) >> shift) + 1)
    segments = first_id + np.searchsorted(holders, buckets)
    table = (segments << segment_shift) - (buckets << shift)
    at = holders - first
    table[at] = ((first_id + np.arange(1, len(inner) + 1)) << segment_shift) - inner
    return table


def _widest_shift(inner: NDArray[np.int64], widest: int) -> int:
    """The widest bucket (log₂, at most ``widest``) that never holds two of the boundaries."""
    shift = widest
    while shift and bool(np.any(inner[1:] >> shift == inner[:-1] >> shift)):
        shift -= 1
    return shift


# ---- Window randomizers as a graph, alone or one for each group.
#
#     row ──► offset ─┐
#     u ──► (u ≥ T) ──┴► t = u + (u ≥ T)·offset ──► bucket ──► segment ──► private_label
#
# u is the highest B bits of the label's word. int64 comparisons, additions and Where, and uint64
# shifts, compute exactly in every version of onnxruntime that was tested; uint64 additions and
# comparisons are missing before 1.21.
#
# ``Where`` takes longer than any other node, and longer still where its condition is a coin toss.
# So products and lookups choose instead: (u ≥ T) is 0 or 1, and names the line of a point.


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
