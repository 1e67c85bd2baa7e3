"""Marks files that this user's labeldp wrote: an HMAC with the user's key.

A digest inside a file does not say who wrote the file. Files from a folder that the user did not
name, such as a representation of a run beside the new one, need this mark. The key is in
``$XDG_STATE_HOME/labeldp/mark.key`` (``~/.local/state`` by default). It is created when needed and
used only if no other user can read or write it. Without a key there is no mark, and no such
file is used.
"""

import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labeldp_runtime.whole_file import UnfinishedError, replaced_when_whole

from labeldp_compile.own_file import OTHERS, read_own

FIELD = "mark"
_BYTES = 32
_TRIES, _PAUSE = 100, 0.02  # seconds; another run needs some milliseconds to write a key


def marked(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The same with a mark, if there is a key or one can be created."""
    key = _key(make=True)
    return dict(facts) if key is None else {**facts, FIELD: _mark(key, facts)}


def is_marked(facts: Mapping[str, Any]) -> bool:
    """Whether this user's labeldp wrote exactly these facts."""
    key, mark = _key(make=False), facts.get(FIELD)
    if key is None or not isinstance(mark, str) or not mark.isascii():
        return False
    rest = {name: value for name, value in facts.items() if name != FIELD}
    return hmac.compare_digest(mark, _mark(key, rest))


def _mark(key: bytes, facts: Mapping[str, Any]) -> str:
    text = json.dumps(facts, sort_keys=True)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _key(*, make: bool) -> bytes | None:
    try:
        base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        path = Path(base) / "labeldp" / "mark.key"
        if make:
            _create(path)
        found = read_own(path, _BYTES + 1, links=False)
    except (OSError, RuntimeError):  # for example, a user without a home folder
        return None
    is_own = found.is_file and found.status.st_uid == os.geteuid()  # not even root's
    whole = is_own and not found.status.st_mode & OTHERS and len(found.data) == _BYTES
    return found.data if whole else None


def _create(path: Path) -> None:
    """Write a key where none is. Of several runs at once, one writes it and all use it: a mark with
    a key that was replaced would say nothing."""
    for _ in range(_TRIES):
        if path.exists():
            return
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with replaced_when_whole(path, most=0o600, replace=False) as file:
                file.write(secrets.token_bytes(_BYTES))
        except FileExistsError:
            return
        except UnfinishedError:
            time.sleep(_PAUSE)
