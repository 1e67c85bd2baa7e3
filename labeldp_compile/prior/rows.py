"""The number of rows n of a private prior's data: public, and fixed before anything is spent."""

from __future__ import annotations

from pathlib import Path

from labeldp_compile.tabular import refused


def require_rows(path: Path, stated: int | None, rows: int) -> None:
    """Raise DataError if the file has no rows, or not the number that the spec states."""
    if not rows:
        raise refused(path, "has no rows")
    if stated is not None and stated != rows:
        raise refused(path, f"has {rows:,} rows, but the spec says rows: {stated}")
