"""What was done to a ledger is found, or cannot be done by mistake."""

import sqlite3
import stat
import struct

import pytest


def verify(bench, *flags):
    return bench.run("ledger", "verify", bench.ledger, *flags)


def test_a_ledger_as_it_was_written(used):
    head = used.run("ledger", "head", used.ledger).stdout.strip()
    assert verify(used).exit_code == verify(used, "--head", head).exit_code == 0
    assert "not checked: whether later entries were cut off" in verify(used).stdout
    assert used.compile("other", last="9").exit_code == 0
    assert verify(used, "--head", head).exit_code == 0
    assert stat.S_IMODE(used.ledger.stat().st_mode) == 0o600
    assert [path.name for path in used.folder.glob("*ledger*")] == ["budget.ledger"]


LAST = "(SELECT hash FROM entries ORDER BY number DESC LIMIT 1)"
NEVER = [
    "UPDATE entries SET body = ''",
    "UPDATE OR REPLACE entries SET number = 4 WHERE number = 3",
    "DELETE FROM entries",
    "INSERT INTO entries VALUES (9, 'a', 'b', 'c', 'd')",
    "INSERT INTO entries VALUES (NEXT, 'a', 'b', 'c', 'd')",
    "INSERT OR REPLACE INTO entries VALUES (2, 'a', 'b', 'c', 'd')",
    f"INSERT OR REPLACE INTO entries VALUES (2, 'a', 'b', {LAST}, 'd')",
    f"INSERT OR REPLACE INTO entries VALUES (NEXT, 'a', 'b', {LAST}, {LAST})",
    f"INSERT OR REPLACE INTO entries VALUES ('NEXT', 'a', 'b', {LAST}, {LAST})",
    f"INSERT OR REPLACE INTO entries VALUES (NULL, 'a', 'b', {LAST}, {LAST})",
    f"REPLACE INTO entries (kind, body, previous, hash) VALUES ('a', 'b', {LAST}, {LAST})",
    "REPLACE INTO entries (_rowid_, kind, body, previous, hash) "
    f"VALUES (NEXT, 'a', 'b', {LAST}, {LAST})",
    f"REPLACE INTO entries SELECT NEXT, kind, body, {LAST}, hash FROM entries WHERE number = 1",
    f"INSERT INTO entries VALUES (NEXT, 'a', 'b', {LAST}, {LAST}) "
    "ON CONFLICT (hash) DO UPDATE SET body = ''",
    f"INSERT INTO entries VALUES (3, 'a', 'b', {LAST}, 'd') "
    "ON CONFLICT (number) DO UPDATE SET number = 9",
    f"REPLACE INTO entries VALUES (NEXT, 'a', 'b', {LAST}, 'd'), (1 + NEXT, 'a', 'b', 'd', 'd')",
    f"INSERT OR ROLLBACK INTO entries VALUES (NEXT, 'a', 'b', {LAST}, {LAST})",
    "UPDATE secret SET key = x'00'",
    "UPDATE OR REPLACE secret SET rowid = 2",
    "DELETE FROM secret",
    "INSERT INTO secret VALUES (x'00')",
    "INSERT OR REPLACE INTO secret (rowid, key) VALUES (1, x'00')",
]


def contents(bench):
    connection = sqlite3.connect(bench.ledger)
    tables = [connection.execute(f"SELECT * FROM {t}").fetchall() for t in ("entries", "secret")]
    connection.close()
    return tables


def set_triggers(bench, script):
    """Have these triggers and no others."""
    connection = sqlite3.connect(bench.ledger)
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
    for (name,) in triggers.fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.executescript(script)
    connection.close()


@pytest.mark.parametrize("recursive", ["OFF", "ON"])
@pytest.mark.parametrize("triggers", [None, ""], ids=["new", "without"])
def test_the_file_refuses_what_a_ledger_never_does(used, recursive, triggers):
    if triggers is not None:
        set_triggers(used, triggers)
        used.set_budget("0.9", "others")  # the next entry
    before, number = contents(used), len(used.entries())
    for statement in NEVER:
        connection = sqlite3.connect(used.ledger)
        connection.execute(f"PRAGMA recursive_triggers = {recursive}")
        with pytest.raises(sqlite3.IntegrityError, match="ledger"):
            connection.execute(statement.replace("NEXT", str(number)))
        connection.commit()
        connection.close()
        assert contents(used) == before, statement
    assert verify(used).exit_code == 0
    assert "it refuses to change, delete, replace or skip an entry" in verify(used).stdout


def test_a_trigger_that_was_made_to_do_nothing_is_replaced(used):
    nothing = "CREATE TRIGGER entries_remain BEFORE DELETE ON entries BEGIN SELECT 1; END"
    set_triggers(used, nothing)
    assert "note   file" in verify(used).stdout
    used.set_budget("0.9", "others")
    assert "ok     file" in verify(used).stdout


def test_nothing_is_read_that_a_trigger_keeps_out_of_the_ledger(used):
    connection = sqlite3.connect(used.ledger)
    connection.execute("CREATE TRIGGER t BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END")
    connection.close()
    before = used.ledger.read_bytes()
    flags = ("--data-set", "visits", "--epsilon", "2")
    for result in (
        used.compile("other", last="9"),
        used.run("ledger", "set-budget", used.ledger, *flags),
    ):
        assert result.exit_code == 1 and "keeps entries out of it" in result.stderr
    assert used.ledger.read_bytes() == before


def test_others_must_not_be_able_to_read_it(used):
    used.ledger.chmod(0o640)
    result = used.compile()
    assert result.exit_code == 2 and "chmod 600" in result.stderr


def journal_of(ledger):
    """A rollback journal that makes a ledger of this file."""
    data, nonce = ledger.read_bytes(), 1
    size = int.from_bytes(data[16:18], "big")
    pages = [data[start : start + size] for start in range(0, len(data), size)]
    head = struct.pack(">5I", len(pages), nonce, len(pages), 512, size)
    found = (bytes.fromhex("d9d505f920a163d7") + head).ljust(512, b"\0")
    for number, page in enumerate(pages, start=1):
        checksum = nonce + sum(page[place] for place in range(size - 200, 0, -200))
        found += struct.pack(">I", number) + page + struct.pack(">I", checksum)
    return found


@pytest.mark.parametrize("kind", ["everybody's", "a link", "its owner's"])
def test_a_journal_of_somebody_else_is_not_written_into_the_ledger(used, kind):
    other = used.another("other")
    other.open_budget("1000")
    journal = used.ledger.with_name("budget.ledger-journal")
    before, wanted = used.ledger.read_bytes(), journal_of(other.ledger)
    if kind == "a link":
        (other.folder / "elsewhere").write_bytes(wanted)
        journal.symlink_to(other.folder / "elsewhere")
    else:
        journal.write_bytes(wanted)
        journal.chmod(0o666 if kind == "everybody's" else 0o600)
    result = used.run("ledger", "show", used.ledger)
    if kind == "its owner's":  # which a crash left
        assert result.exit_code == 0 and "1000" in result.stdout
    else:
        assert result.exit_code == 2 and "budget.ledger-journal: belongs to" in result.stderr
        assert used.ledger.read_bytes() == before


def test_what_is_no_ledger(bench):
    sqlite3.connect(bench.folder / "other.db").close()
    (bench.folder / "text").write_text("not a database, but long enough to be read as one\n" * 50)
    for name in ("other.db", "text", "missing", "."):
        path = bench.folder / name
        if path.is_file():
            path.chmod(0o600)
        assert bench.run("ledger", "show", path).exit_code == 2


def test_a_database_of_another_program_is_left_as_it_is(bench):
    """A spec can name any file: to set up a connection would change its journal mode."""
    path = bench.folder / "budget.ledger"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE cookies (x)")
    connection.commit()
    connection.close()
    path.chmod(0o600)
    before = path.read_bytes()
    result = bench.compile()
    assert result.exit_code == 2 and "is not a ledger of labeldp" in result.stderr
    assert path.read_bytes() == before


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT i AS number"


@pytest.mark.parametrize(
    "script",
    [
        f"DROP TABLE entries; CREATE VIEW entries AS {ENDLESS}, 'ledger' AS kind, '{{}}' AS body, "
        "'' AS previous, '' AS hash FROM n;",
        "DROP TABLE secret;",
        "ALTER TABLE entries RENAME TO others;",
        "ALTER TABLE entries ADD COLUMN note TEXT;",
    ],
)
def test_other_tables_in_place_of_a_ledgers(used, script):
    set_triggers(used, script)
    for result in (verify(used), used.compile("other", last="9")):
        assert result.exit_code == 1 and "its tables are not those of a ledger" in result.stderr


def test_a_second_name_is_refused(used):
    (used.folder / "second").hardlink_to(used.ledger)
    result = used.compile("other", last="9")
    assert result.exit_code == 2 and "hard link" in result.stderr
    (used.folder / "second").unlink()
    (used.folder / "link").symlink_to(used.ledger)  # the same file under the same name
    assert used.run("ledger", "verify", used.folder / "link").exit_code == 0
