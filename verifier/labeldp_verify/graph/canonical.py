"""Canonical JSON, and the digest of the integers that decide what an artifact does."""

import hashlib
import json
from typing import Any

from labeldp_verify.forms import Domain, GroupedWindows, Randomizer


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no blanks and no NaN: equal values give equal text."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def tables_digest(domain: Domain, randomizer: Randomizer | GroupedWindows) -> str:
    """SHA-256 (hex) over the domain and the randomizer's integers and values.

    It does not depend on the certificate, on tool versions or on how the lookup tables are laid
    out: two files with one digest are the same randomizer.
    """
    tables = {"domain": domain.to_json(), **randomizer.to_json()}
    return hashlib.sha256(canonical_json(tables).encode()).hexdigest()
