"""The tables of a ledger in PostgreSQL, and the triggers with which they refuse changes.

``entries`` and ``secret`` hold what the SQLite file holds. ``token`` is not part of the chain: it
tells a compiler whether its unanswered commit was done. ``turn`` is empty; locking it needs the
right to UPDATE it, a right that nobody needs on the other tables.

The functions of the triggers run as the role that writes, but set their ``search_path`` to
pg_catalog alone. (pg_temp, which is last, is never searched for operators and functions.) So they
find no operator, function, type or cast of that role. Tables are named with their schema.

A compiler's role may insert rows with SQL of its own. So ``follow`` takes a ``spend``, ``draw``,
``prior`` or ``release`` only if every labeldp will read it: the hash is that of the row, the body
holds the fields that its kind has and no others (``entries.py``), a spend is within the budget, and
an answer has a spend. JSON is compared as text, token by token (``->`` of the type json), because
1e2 is not an integer in Python. No literal has a backslash, because a setting of the caller can
change how it is read.
"""

import secrets
from collections.abc import Sequence
from typing import Any

from labeldp_verify.printable import one_line

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.entries import ANSWERS, FIELDS, OF_PERSON, BrokenChainError, Entry
from labeldp_compile.ledger.postgres.session import Session
from labeldp_compile.ledger.store import LedgerRows

OWNERS = ("ledger", "budget")  # kinds that the owner of the table writes

REFUSE = """
BEGIN
    RAISE EXCEPTION 'the % of a ledger is never changed or deleted', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END
"""

_COUNT = "^(0|[1-9][0-9]{0,99})$"
_NUMBER = "^(0|-?[1-9][0-9]{0,99})$"
# {m,n} of PostgreSQL's regular expressions ends at 255.
_SPEND = {**FIELDS["spend"], "epsilon": '^"[0-9]{1,200}(/[1-9][0-9]{0,200})?"$'}
_DRAW = {**FIELDS["draw"], **dict.fromkeys(("epsilon", "epsilon_label"), _SPEND["epsilon"])}
_ANSWER = {**FIELDS["prior"], "spend": "^(0|[1-9][0-9]{0,17})$"}
_GROUP = {"prior": "^[{]", "size": _COUNT}


def _list(names: Sequence[str]) -> str:
    return "ARRAY[" + ", ".join(f"'{name}'" for name in names) + "]"


def _holds(facts: str, fields: dict[str, str]) -> str:
    """A condition: exactly these keys, each once, and values whose tokens match."""
    keys = _KEYS.replace("<facts>", facts).replace("<keys>", _list(sorted(fields)))
    tokens = "".join(
        f"\n        AND ({facts} -> '{key}')::pg_catalog.text ~ '{token}'"
        for key, token in fields.items()
    )
    return f"({keys}{tokens})"


_KEYS = """(
            SELECT pg_catalog.array_agg(k ORDER BY k COLLATE pg_catalog."C")
            FROM pg_catalog.json_object_keys(<facts>) AS k
        ) = <keys>"""
_DECLARE = """
#variable_conflict error
DECLARE
    last RECORD;
    one RECORD;
    facts pg_catalog.json;
    paid pg_catalog.json;
    answer pg_catalog.json;
    answers pg_catalog.json[];
    numbers pg_catalog.text;  -- what an answer calls its noisy numbers
    p pg_catalog.numeric;  -- an epsilon is p/q
    q pg_catalog.numeric;
    bp pg_catalog.numeric;  -- the budget, bp/bq
    bq pg_catalog.numeric;
    sp pg_catalog.numeric := 0;  -- what was spent, sp/sq
    sq pg_catalog.numeric := 1;
BEGIN
"""
# A row that does not follow may be of somebody who wrote at the same time: 40001 lets psycopg's
# users, and this program, begin again. Budgets are set by who owns the table.
_EVERY_ROW = f"""
    SELECT e.number, e.hash INTO last FROM ONLY {{schema}}.entries e ORDER BY e.number DESC LIMIT 1;
    IF (NEW.number = COALESCE(last.number, -1) + 1
        AND NEW.previous = COALESCE(last.hash, pg_catalog.repeat('0', 64))) IS NOT TRUE THEN
        RAISE EXCEPTION 'entries of a ledger follow one another'
            USING ERRCODE = 'serialization_failure';
    END IF;
    IF (NEW.kind = ANY ({_list(tuple(FIELDS))})) IS NOT TRUE THEN
        RAISE EXCEPTION 'a ledger has no entries of this kind' USING ERRCODE = 'check_violation';
    END IF;
    IF (NEW.hash = pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(
        pg_catalog.concat(
            '[', NEW.number, ',', pg_catalog.to_json(NEW.kind), ',', pg_catalog.to_json(NEW.body),
            ',', pg_catalog.to_json(NEW.previous), ']'
        ), 'UTF8')), 'hex')) IS NOT TRUE THEN
        RAISE EXCEPTION 'the hash of this entry is another' USING ERRCODE = 'check_violation';
    END IF;
    IF (pg_catalog.length(NEW.token) <= 100) IS NOT TRUE THEN
        RAISE EXCEPTION 'the token is too long' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.kind = ANY ({_list(OWNERS)}) THEN
        IF NOT pg_catalog.pg_has_role(
            current_user, (SELECT relowner FROM pg_catalog.pg_class WHERE oid = TG_RELID), 'MEMBER'
        ) THEN
            RAISE EXCEPTION 'only the owner of a ledger sets budgets'
                USING ERRCODE = 'insufficient_privilege';
        END IF;
        RETURN NEW;
    END IF;
    facts := NEW.body::pg_catalog.json;
"""  # noqa: S608  # made of constants
# '0' || '' is the denominator of a whole number.
_FRACTION = """p := pg_catalog.split_part(<facts> ->> 'epsilon', '/', 1)::pg_catalog.numeric;
            q := '0' || pg_catalog.split_part(<facts> ->> 'epsilon', '/', 2);
            IF q = 0 THEN
                q := 1;
            END IF;"""
_SPENDS = f"""
    IF NEW.kind = 'spend' THEN
        IF (pg_catalog.length(NEW.body) < 65536
            AND ({_holds("facts", _SPEND)}
                OR {_holds("facts", {**_SPEND, **OF_PERSON})})) IS NOT TRUE THEN
            RAISE EXCEPTION 'this is no spend of labeldp' USING ERRCODE = 'check_violation';
        END IF;
        FOR one IN
            SELECT e.kind, e.body::pg_catalog.json AS facts FROM ONLY {{schema}}.entries e
            WHERE e.kind = 'budget' OR e.kind = 'spend' ORDER BY e.number
        LOOP
            CONTINUE WHEN (one.facts ->> 'data_set') <> (facts ->> 'data_set');
            {_FRACTION.replace("<facts>", "one.facts")}
            IF one.kind = 'budget' THEN
                bp := p;
                bq := q;
            ELSE
                sp := sp * q + p * sq;
                sq := sq * q;
                p := pg_catalog.gcd(sp, sq);
                sp := pg_catalog.div(sp, p);
                sq := pg_catalog.div(sq, p);
            END IF;
        END LOOP;
        {_FRACTION.replace("<facts>", "facts")}
        IF ((sp * q + p * sq) * bq <= bp * sq * q) IS NOT TRUE THEN
            RAISE EXCEPTION 'this spends more than the budget of the data set'
                USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END IF;
"""  # noqa: S608  # made of constants
_DRAWS = f"""
    IF NEW.kind = 'draw' THEN
        IF (pg_catalog.length(NEW.body) < 65536
            AND {_holds("facts", _DRAW)}) IS NOT TRUE THEN
            RAISE EXCEPTION 'this is no draw of labeldp' USING ERRCODE = 'check_violation';
        END IF;
        RETURN NEW;
    END IF;
"""
_ANSWERS = f"""
    IF {_holds("facts", _ANSWER)} IS NOT TRUE THEN
        RAISE EXCEPTION 'this is no answer of labeldp' USING ERRCODE = 'check_violation';
    END IF;
    SELECT e.body::pg_catalog.json INTO paid FROM ONLY {{schema}}.entries e
    WHERE e.number = (facts ->> 'spend')::pg_catalog.int8 AND e.kind = 'spend';
    IF ((paid ->> 'data_set') = (facts ->> 'data_set')
        AND (paid ->> 'data_version') = (facts ->> 'data_version')
        AND (paid ->> 'question_sha256') = (facts ->> 'question_sha256')
        AND NOT EXISTS (
            SELECT FROM ONLY {{schema}}.entries e
            WHERE e.kind = ANY ({_list(tuple(ANSWERS))})
                AND (e.body::pg_catalog.json ->> 'spend') = (facts ->> 'spend')
        )) IS NOT TRUE THEN
        RAISE EXCEPTION 'no entry paid for this answer' USING ERRCODE = 'check_violation';
    END IF;
    numbers := CASE NEW.kind WHEN 'release' THEN 'sums' ELSE 'weights' END;
    answers := ARRAY[facts -> 'answer'];
    IF (facts -> 'answer' -> 'groups') IS NOT NULL THEN
        FOR one IN SELECT g FROM pg_catalog.json_array_elements(facts -> 'answer' -> 'groups') AS g
        LOOP
            IF ({_holds("one.g", _GROUP)}
                AND (one.g -> 'prior' -> 'groups') IS NULL) IS NOT TRUE THEN
                RAISE EXCEPTION 'this is no prior of labeldp' USING ERRCODE = 'check_violation';
            END IF;
            answers := answers || (one.g -> 'prior');
        END LOOP;
    END IF;
    FOREACH answer IN ARRAY answers LOOP
        IF ((SELECT pg_catalog.count(*) = pg_catalog.count(DISTINCT k)
             FROM pg_catalog.json_object_keys(answer) AS k)
            AND pg_catalog.json_array_length(answer -> numbers) > 0
            AND (answer -> 'rows')::pg_catalog.text ~ '{_COUNT}'
            AND NOT EXISTS (
                SELECT FROM pg_catalog.json_array_elements(answer -> numbers) AS w
                WHERE (w::pg_catalog.text
                    ~ CASE NEW.kind WHEN 'release' THEN '{_NUMBER}' ELSE '{_COUNT}' END) IS NOT TRUE
            )
            AND NOT EXISTS (
                SELECT FROM pg_catalog.json_each(answer) AS f
                WHERE f.key <> numbers AND (f.key <> 'groups' OR NEW.kind = 'release') AND (
                    pg_catalog.json_typeof(f.value) IN ('object', 'array')
                    OR pg_catalog.length(f.value::pg_catalog.text) > 4000
                )
            )) IS NOT TRUE THEN
            RAISE EXCEPTION 'this is no answer of labeldp' USING ERRCODE = 'check_violation';
        END IF;
    END LOOP;
"""  # noqa: S608  # made of constants
FOLLOW = f"""{_DECLARE}{_EVERY_ROW}{_SPENDS}{_DRAWS}{_ANSWERS}
    RETURN NEW;
END
"""


_TABLES = (
    """CREATE TABLE {schema}.entries (
    number BIGINT PRIMARY KEY,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    token TEXT NOT NULL
)""",
    """CREATE TABLE {schema}.secret (
    one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
    key BYTEA NOT NULL
)""",
    "CREATE TABLE {schema}.turn ()",
    "REVOKE ALL ON {schema}.entries, {schema}.secret, {schema}.turn FROM PUBLIC",
)
_COLUMNS = {
    "entries": [
        *("number bigint", "kind text", "body text", "previous text", "hash text", "token text")
    ],
    "secret": ["one boolean", "key bytea"],
    "turn": [],
}
_FUNCTIONS = {"refuse": REFUSE, "follow": FOLLOW}
_PATH = "pg_catalog, pg_temp"  # of the functions, for every path of a caller
_KINDS = ", ".join(f"'{kind}'" for kind in FIELDS)
_KIND = f"ADD CONSTRAINT entries_kind CHECK (kind = ANY (ARRAY[{_KINDS}])) NOT VALID"
_ROW, _BEFORE, _INSERT, _DELETE, _UPDATE, _TRUNCATE = 1, 2, 4, 8, 16, 32  # of pg_trigger.tgtype
_CHANGE = "BEFORE UPDATE OR DELETE OR TRUNCATE ON {schema}.%s FOR EACH STATEMENT"
_CHANGES = _BEFORE | _UPDATE | _DELETE | _TRUNCATE
# (table, trigger): (function, when, the same as tgtype)
_TRIGGERS = {
    ("entries", "entries_stay"): ("refuse", _CHANGE % "entries", _CHANGES),
    ("secret", "secret_stays"): ("refuse", _CHANGE % "secret", _CHANGES),
    ("entries", "entries_follow"): (
        "follow",
        "BEFORE INSERT ON {schema}.entries FOR EACH ROW",
        _BEFORE | _INSERT | _ROW,
    ),
}
_FIND_TABLES = """
SELECT c.relname, c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relrowsecurity
        AND NOT c.relhasrules AND NOT c.relhassubclass,
    ARRAY(
        SELECT a.attname || ' ' || pg_catalog.format_type(a.atttypid, a.atttypmod)
        FROM pg_catalog.pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
    )
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname IN ('entries', 'secret', 'turn')
"""
_FIND_TRIGGERS = """
SELECT c.relname, t.tgname, p.proname, t.tgtype::int, p.prosrc
FROM pg_catalog.pg_trigger t
JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid AND p.pronamespace = c.relnamespace
JOIN pg_catalog.pg_language l ON l.oid = p.prolang AND l.lanname = 'plpgsql'
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND t.tgenabled = 'A' AND t.tgqual IS NULL AND t.tgattr = ''
    AND NOT p.prosecdef AND p.proconfig = ARRAY['search_path=' || %s]
    AND pg_catalog.pg_has_role(p.proowner, c.relowner, 'MEMBER')
"""
_FIND_KIND = """
SELECT pg_catalog.pg_get_expr(k.conbin, k.conrelid)
FROM pg_catalog.pg_constraint k
JOIN pg_catalog.pg_class c ON c.oid = k.conrelid AND c.relname = 'entries'
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND k.contype = 'c' AND k.conname = 'entries_kind'
"""
_IS_OWNER = """
SELECT pg_catalog.pg_has_role(c.relowner, 'USAGE')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = 'entries'
"""
# The owner of a schema can drop and rename all that is in it.
_FOREIGN_SCHEMA = """
SELECT o.rolname
FROM pg_catalog.pg_namespace n
JOIN pg_catalog.pg_roles o ON o.oid = n.nspowner
JOIN pg_catalog.pg_roles me ON me.rolname = current_user
WHERE n.nspname = %s AND o.oid <> me.oid AND NOT o.rolsuper
    AND (me.rolsuper OR NOT pg_catalog.pg_has_role(me.oid, o.oid, 'MEMBER'))
"""
# Rights on tables and columns, of all but the owner.
_FIND_RIGHTS = """
SELECT c.relname, coalesce(r.rolname, 'PUBLIC'), a.privilege_type, a.grantee = 0
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (
    SELECT grantee, privilege_type FROM pg_catalog.aclexplode(c.relacl)
    UNION ALL
    SELECT x.grantee, x.privilege_type
    FROM pg_catalog.pg_attribute t CROSS JOIN LATERAL pg_catalog.aclexplode(t.attacl) x
    WHERE t.attrelid = c.oid AND NOT t.attisdropped
) a
LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
WHERE n.nspname = %s AND c.relname IN ('entries', 'secret', 'turn') AND a.grantee <> c.relowner
"""
# What compilers need. With TRIGGER one can have the owner of the tables run one's code.
_RIGHTS = {
    *(("entries", "SELECT"), ("entries", "INSERT"), ("secret", "SELECT")),
    *(("turn", "SELECT"), ("turn", "UPDATE")),
}
# Of the columns that make a number and a hash unique.
_FIND_KEYS = """
SELECT c.relname, a.attname
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
WHERE n.nspname = %s AND i.indisunique AND i.indisvalid AND i.indimmediate
    AND i.indnkeyatts = 1 AND i.indpred IS NULL AND i.indexprs IS NULL
"""
_UNIQUE_KEYS = {("entries", "number"), ("entries", "hash"), ("secret", "one")}


class PostgresRows(LedgerRows):
    """The rows of a ledger inside one transaction of a session."""

    schema, only, mark, more_columns = "{schema}.", "ONLY ", "%s", ", token"

    def __init__(self, session: Session, name: str) -> None:
        """``name`` is the ledger's, for messages."""
        self._session, self._name = session, name
        self.more = (secrets.token_hex(16),)
        self.last: int | None = None

    def execute(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """See ``Session.execute``."""
        return self._session.execute(text, *values)

    def add(self, entry: Entry) -> None:
        """See ``LedgerRows.add``; ``last`` is then the entry's number."""
        super().add(entry)
        self.last = entry.number

    def create_tables(self) -> None:
        """Make the tables, and the schema if it is not there.

        Raises InputError if the schema belongs to another role.
        """
        for (role,) in self._about(_FOREIGN_SCHEMA):
            raise InputError(
                f"{self._name}: the schema belongs to the role {one_line(role)!a}, who could "
                f"replace the ledger: use another schema, or ALTER SCHEMA {self._session.schema} "
                "OWNER TO its owner"
            )
        if not self._about("SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s"):
            self.execute("CREATE SCHEMA {schema}")
        for text in _TABLES:
            self.execute(text)

    def require_tables(self) -> None:
        """Raise unless the tables are a ledger's, survive a crash, and are not for everybody.

        BrokenChainError for other tables; InputError for what its owner can fix.
        """
        name, schema = self._name, self._session.schema
        tables = {row[0]: row[1:] for row in self._about(_FIND_TABLES)}
        whole = all(plain for plain, _ in tables.values())
        if not whole or {table: columns for table, (_, columns) in tables.items()} != _COLUMNS:
            # Unlogged, with row security, rules or children: not all that was written is there.
            raise BrokenChainError(f"{name}: its tables are not those of a ledger")
        for table, role, right, is_public in self._about(_FIND_RIGHTS):
            if is_public:
                raise InputError(
                    f"{name}: everybody may use it, and it holds a secret key: REVOKE ALL ON ALL "
                    f"TABLES IN SCHEMA {schema} FROM PUBLIC"
                )
            if (table, right) not in _RIGHTS:
                raise InputError(
                    f"{name}: the role {one_line(role)!a} has {right} on {table}, which no "
                    "compiler needs and which can undo what the ledger refuses: REVOKE "
                    f"{right} ON {schema}.{table} FROM {one_line(role)!a}"
                )
        if self.execute("SHOW fsync") != [("on",)]:
            raise InputError(
                f"{name}: its server runs with fsync = off, so it could lose what was spent: turn "
                "fsync on"
            )

    @property
    def is_guarded(self) -> bool:
        """Whether the tables have these triggers, which nothing but their owner turns off."""
        schema = f'"{self._session.schema}"'
        sources = {name: body.replace("{schema}", schema) for name, body in _FUNCTIONS.items()}
        wanted = {
            (table, trigger, function, kind, sources[function])
            for (table, trigger), (function, _, kind) in _TRIGGERS.items()
        }
        triggers, keys = set(self._about(_FIND_TRIGGERS, _PATH)), set(self._about(_FIND_KEYS))
        return triggers >= wanted and keys >= _UNIQUE_KEYS and self._has_kind()

    def guard(self) -> None:
        """Make what is missing, or is not as it stands here, which only the tables' owner may."""
        if self.is_guarded:
            return
        if self._about(_IS_OWNER) != [(True,)]:
            raise InputError(
                f"{self._name}: cannot be used by this role: its triggers were changed or removed; "
                "the owner of its tables sets them again with the next entry: "
                f"labeldp ledger set-budget {self._name}"
            )
        for table, trigger in _TRIGGERS:
            self.execute(f"DROP TRIGGER IF EXISTS {trigger} ON {{schema}}.{table}")
        for name, body in _FUNCTIONS.items():
            # Not replaced: that would leave it to the role whose it is.
            self.execute(f"DROP FUNCTION IF EXISTS {{schema}}.{name}()")
            self.execute(
                f"CREATE FUNCTION {{schema}}.{name}() RETURNS trigger LANGUAGE plpgsql "
                f"SECURITY INVOKER SET search_path = {_PATH} AS $body${body}$body$"
            )
        for (table, trigger), (function, when, _) in _TRIGGERS.items():
            self.execute(
                f"CREATE TRIGGER {trigger} {when} EXECUTE FUNCTION {{schema}}.{function}()"
            )
            # Always: in a session that plays a replica, too.
            self.execute(f"ALTER TABLE {{schema}}.{table} ENABLE ALWAYS TRIGGER {trigger}")
        if not self._has_kind():
            self.execute("ALTER TABLE {schema}.entries DROP CONSTRAINT IF EXISTS entries_kind")
            # Not valid: it is for new rows, also where an old one has an unknown kind.
            self.execute(f"ALTER TABLE {{schema}}.entries {_KIND}")

    def _has_kind(self) -> bool:
        """Whether the table itself refuses unknown kinds; an expression has operators by oid."""
        constraints = self._about(_FIND_KIND)
        return len(constraints) == 1 and all(f"'{kind}'" in constraints[0][0] for kind in FIELDS)

    def _about(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """The first value of a query about the ledger's schema."""
        return self.execute(text, self._session.schema, *values)
