"""The functions that check, and refuse, new rows in the tables of a ledger in PostgreSQL.

They run as the role that writes, but set their ``search_path`` to pg_catalog alone. (pg_temp, which
is last, is never searched for operators and functions.) So they find no operator, function, type or
cast of that role. Tables are named with their schema.

A compiler's role may insert rows with SQL of its own. So ``follow`` takes a ``spend``, ``draw``,
``prior`` or ``release`` only if every labeldp will read it: the hash is that of the row, the body
holds the fields that its kind has and no others (``entries.py``), a spend is within the budget, and
an answer has a spend.
JSON is compared as text, token by token (``->`` of the type json), because 1e2 is not an integer in
Python. No literal has a backslash, because a setting of the caller can change how it is read.
"""

from collections.abc import Sequence

from labeldp_compile.ledger.entries import ANSWERS, FIELDS, OF_PERSON

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
