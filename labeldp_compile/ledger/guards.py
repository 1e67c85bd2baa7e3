"""Triggers by which the file itself refuses to change, delete, replace or skip an entry.

They hold in every program that writes with SQLite, until somebody takes them away on purpose.
``INSERT OR REPLACE`` deletes the row that is in its way without a word to triggers on deletion
(unless ``recursive_triggers`` is on), so an insertion is refused before it if one is.
"""

from __future__ import annotations

import sqlite3

_GUARDS = {
    "entries_stay": """CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never changed'); END""",
    "entries_remain": """CREATE TRIGGER entries_remain BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never deleted'); END""",
    # IS NOT, because a number that is left out may be NULL here. Before the first entry: 64 zeros.
    "entries_follow": """CREATE TRIGGER entries_follow BEFORE INSERT ON entries
    WHEN NEW.number IS NOT (SELECT coalesce(max(number), -1) + 1 FROM entries)
    OR NEW.previous IS NOT coalesce(
        (SELECT hash FROM entries ORDER BY number DESC LIMIT 1), printf('%064d', 0))
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger follow one another'); END""",
    "entries_differ": """CREATE TRIGGER entries_differ BEFORE INSERT ON entries
    WHEN EXISTS (SELECT 1 FROM entries WHERE number = NEW.number OR hash = NEW.hash)
    BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never replaced'); END""",
    "secret_stays": """CREATE TRIGGER secret_stays BEFORE UPDATE ON secret
    BEGIN SELECT RAISE(ABORT, 'the key of a ledger is never changed'); END""",
    "secret_remains": """CREATE TRIGGER secret_remains BEFORE DELETE ON secret
    BEGIN SELECT RAISE(ABORT, 'the key of a ledger is never deleted'); END""",
    "secret_is_one": """CREATE TRIGGER secret_is_one BEFORE INSERT ON secret
    WHEN EXISTS (SELECT 1 FROM secret)
    BEGIN SELECT RAISE(ABORT, 'a ledger has one key, which is never replaced'); END""",
}


def is_guarded(connection: sqlite3.Connection) -> bool:
    """Whether the file has these triggers; an earlier version made fewer."""
    return _found(connection).items() >= _GUARDS.items()


def set_guards(connection: sqlite3.Connection) -> None:
    """Make those that are missing, or are not as they stand here, inside a transaction."""
    found = _found(connection)
    for name, text in _GUARDS.items():
        if found.get(name) != text:
            connection.execute(f"DROP TRIGGER IF EXISTS main.{name}")
            connection.execute(text)


def _found(connection: sqlite3.Connection) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM main.sqlite_master WHERE type = 'trigger'")
    return dict(rows.fetchall())
