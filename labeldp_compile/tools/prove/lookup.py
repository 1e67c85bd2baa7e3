"""The layout of a window's lookup, as a verified file has it."""

from __future__ import annotations

from labeldp_verify.artifact import BucketGrid
from labeldp_verify.artifact.bucket_grid import grid_entries
from labeldp_verify.decode import read_model
from labeldp_verify.decode.window import read_window
from labeldp_verify.forms import WindowRandomizer
from labeldp_verify.verified import Decoded, DecodedGroups

MAX_ENTRIES = 10_000  # Coq reads them for seven seconds; beyond that the proof is of segments


def lookup_of(
    data: bytes, decoded: Decoded | DecodedGroups, most: int = MAX_ENTRIES
) -> BucketGrid | None:
    """How the lookup of a verified window is laid out; None for other forms, or more entries."""
    randomizer = decoded.randomizer
    if not isinstance(randomizer, WindowRandomizer):
        return None
    _, grid = read_window(read_model(data), decoded.domain)
    return grid if len(grid_entries(randomizer, grid)) <= most else None
