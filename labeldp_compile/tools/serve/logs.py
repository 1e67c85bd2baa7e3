"""Logs: one line of JSON an event, on standard error. No label, no id and no text of a caller."""

import json
import sys
from datetime import UTC, datetime
from typing import Any


def log(event: str, **facts: Any) -> None:
    """Write an event. Names from files are escaped as JSON escapes them, to ASCII."""
    line = {"time": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}", "event": event, **facts}
    sys.stderr.write(json.dumps(line) + "\n")
    sys.stderr.flush()
