"""The time that a file states, which builders that repeat themselves set."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from labeldp_verify.reading.numerals import read_whole

from labeldp_compile.errors import InputError


def now() -> str:
    """The time, as ``2026-01-31T12:00:00Z``; that of ``SOURCE_DATE_EPOCH``, if it is set.

    Raises InputError unless that is a number of seconds.
    """
    text = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        time = datetime.now(UTC) if text is None else datetime.fromtimestamp(read_whole(text), UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError("SOURCE_DATE_EPOCH: expected seconds since 1970, as a number") from None
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"
