"""The bytes of a randomizer's lookup tables, before the randomizer exists."""

from dataclasses import dataclass
from fractions import Fraction

from labeldp_verify.forms import WindowRandomizer
from labeldp_verify.graph import bucket_grid, column_bits

from labeldp_compile.rounding.randomized_response import randomized_response

ENTRY_BYTES = 8
GRID_OF_RESPONSE = 10  # entries for each output of randomized response, at most
TOO_LARGE = "the lookup tables would be too large; use fewer labels"
MAX_CERTIFIED_LABELS = 20_000  # beyond, dual values would be larger than the tables


@dataclass(frozen=True)
class TableLayout:
    """Number of outputs, and bytes of the tables."""

    outputs: int
    bytes: int


def window_layout(randomizer: WindowRandomizer) -> TableLayout:
    """The layout of a window randomizer. Raises ValueError if it is too large."""
    tables = bucket_grid.table_bytes(randomizer)
    if tables is None:
        raise ValueError(TOO_LARGE)
    return TableLayout(randomizer.outputs, tables)


def table_layout(labels: int, outputs: int) -> TableLayout:
    """The layout of a table randomizer."""
    return TableLayout(outputs, ENTRY_BYTES * ((labels << column_bits(outputs)) + outputs))


def response_layout(labels: int, outputs: int, epsilon: Fraction) -> TableLayout:
    """The layout of randomized response over ``outputs`` outputs."""
    rows = [y * outputs // labels for y in range(labels)]
    return window_layout(randomized_response(range(outputs), rows, epsilon))


def adapted_bytes(labels: int, grid: int, segments: int, room: int) -> int:
    """The bytes of a mechanism that drops outputs until it fits, down to a single output."""
    least = ENTRY_BYTES * (labels + 64)
    grid = min(max(grid, bucket_grid.SINGLE_GRID_ENTRIES), bucket_grid.MAX_ENTRIES)
    return max(min(ENTRY_BYTES * (labels + grid + segments), room), least)
