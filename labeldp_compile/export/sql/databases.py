"""The six databases: three with a function, and three in which a query reads labels and ids.

DuckDB, PostgreSQL and BigQuery have a function. SQLite, Spark and Snowflake have a query that reads
a view.
"""

import re
from typing import ClassVar

from labeldp_compile.export.sql.dialect import (
    KEY,
    KEY_BYTES,
    Argument,
    Dialect,
    Routine,
    Step,
    Type,
    WithHash,
    guarded_outputs,
    nested_query,
    typed,
)


def _call(routine: Routine, key: str) -> str:
    arguments = ", ".join(column.name for column in routine.arguments)
    return f"SELECT {routine.name}({arguments}, {key}) FROM …"


class OneExpression(WithHash):
    """A function that is one expression, in which each step is a query around those before it."""

    head: ClassVar[str]
    ends: ClassVar[tuple[str, str]]
    """The text around the query."""
    failure: ClassVar[str]
    field: ClassVar[str]
    """A field of the STRUCT that several private columns make; ``fields`` stand in ``struct``."""
    struct: ClassVar[str]

    def routine(self, routine: Routine) -> str:
        """A scalar function; of several private columns it gives a STRUCT."""
        outputs = guarded_outputs(routine, self.failure.format(failure=routine.failure))
        answer = outputs[0].expression
        if len(outputs) > 1:
            fields = [self.field.format(name=o.name, expression=o.expression) for o in outputs]
            answer = self.struct.format(fields=", ".join(fields))
        arguments = self.declared([*routine.arguments, KEY])
        before, behind = self.ends
        return (
            f"CREATE OR REPLACE {self.head} {routine.name}({arguments}) AS {before}\n"
            f"SELECT {answer}\nFROM (\n{nested_query(routine)}\n) AS steps\n{behind};"
        )


class DuckDb(OneExpression):
    """A macro with declared types (DuckDB 1.4 and newer)."""

    name = "duckdb"
    head, ends = "MACRO", ("(", ")")
    failure = "error('{failure}')"
    field, struct = "'{name}': {expression}", "{{{fields}}}"
    types = typed("BIGINT", "DOUBLE", "VARCHAR", "BLOB")
    literal = "unhex('{}')"
    decoded = "decode({})".format
    utf8 = "encode({})".format
    unsigned = "CAST('0x' || hex({}) AS BIGINT)".format
    length = "octet_length({})".format
    sha256 = "unhex(sha256({}))".format

    def usage(self, routine: Routine) -> list[str]:
        return [_call(routine, "getvariable('labeldp_key')")]

    def rights(self, routine: Routine) -> list[str]:
        return ["DuckDB has no rights: anyone who opens the database may call the macro."]

    def part(self, e: str, start: str, length: int) -> str:
        return f"({e})[{start} : {start} + {length - 1}]"

    def key_xor(self, byte: int) -> str:
        bits = f"CAST('{f'{byte:08b}' * KEY_BYTES}' AS BIT)"
        return f"CAST(xor(CAST({KEY.given} AS BIT), {bits}) AS BLOB)"


class Postgres(WithHash):
    """A function in PL/pgSQL, with the built-in sha256 and without an extension.

    In a database of another encoding than UTF8, a text may have no UTF-8: ``convert_to`` then fails
    and quotes it. SQL_ASCII holds any bytes, which are taken as they are. All others are refused
    for every row: the bytes of any text, such as the id's in the message, are NULL.
    """

    name = "postgres"
    types = typed("bigint", "double precision", "text", "bytea")
    literal = "decode('{}', 'hex')"
    decoded = "pg_catalog.convert_from({}, 'UTF8')".format  # another schema may have a better match
    utf8 = (
        "convert_to({}, CASE WHEN getdatabaseencoding() IN ('UTF8', 'SQL_ASCII') "
        "THEN getdatabaseencoding() END)"
    ).format
    unsigned = "('x' || encode({}, 'hex'))::bit(32)::bigint".format
    length = "octet_length({})".format
    sha256 = "sha256({})".format
    has_nul = False

    def _signature(self, routine: Routine) -> str:
        """The name with the types of the arguments."""
        types = [self.types[column.type] for column in routine.arguments]
        return f"{routine.name}({', '.join([*types, 'bytea'])})"

    def routine(self, routine: Routine) -> str:
        """Each step is a variable; several private columns are OUT parameters."""
        given = [*routine.arguments, KEY]
        steps = [*routine.pads, *routine.steps]
        variables = [f"  {one.given} {self.types[one.type]} := {one.name};" for one in given]
        variables += [f"  {step.name} {self.types[step.type]};" for step in steps]
        body = [f"  {step.name} := {step.expression};" for step in steps]
        failure = f"{routine.failure}, or the database is neither in UTF8 nor in SQL_ASCII"
        refusal = f"  IF {routine.digest} IS NULL THEN RAISE EXCEPTION '{failure}'; END IF;"
        outputs, returns = [], f" RETURNS {self.types[routine.outputs[0].type]}"
        answer = [f"  RETURN {routine.outputs[0].expression};"]
        if len(routine.outputs) > 1:
            returns = ""
            outputs = [f"OUT {one.name} {self.types[one.type]}" for one in routine.outputs]
            answer = [f"  {one.name} := {one.expression};" for one in routine.outputs]
        arguments = ", ".join([self.declared(given), *outputs])
        place = next(i for i, step in enumerate(steps) if step.name == routine.digest) + 1
        return "\n".join(
            [
                f"CREATE OR REPLACE FUNCTION {routine.name}({arguments}){returns}",
                "LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $labeldp$",
                "DECLARE",
                *variables,
                "BEGIN",
                *body[:place],
                refusal,
                *body[place:],
                *answer,
                "END",
                "$labeldp$;",
                f"REVOKE ALL ON FUNCTION {self._signature(routine)} FROM PUBLIC;",
            ]
        )

    def usage(self, routine: Routine) -> list[str]:
        return [_call(routine, "$1")]

    def rights(self, routine: Routine) -> list[str]:
        return [
            "EXECUTE is revoked from PUBLIC below. Then, to the owner of the labels alone:",
            f"GRANT EXECUTE ON FUNCTION {self._signature(routine)} TO owner_of_the_labels;",
        ]

    def part(self, e: str, start: str, length: int) -> str:
        return f"substring({e} from ({start})::integer for {length})"

    def low_bits(self, e: str, bits: int) -> str:
        return f"({e} & {(1 << bits) - 1}::bigint)"  # another schema may have (bigint, integer)

    def key_xor(self, byte: int) -> str:
        # There is no exclusive or of bytes, but one of whole numbers.
        mask = self.integer(int.from_bytes(bytes([byte] * 8), "big"))
        digits = f"encode({KEY.given}, 'hex')"
        return self.join(
            *(
                f"int8send(('x' || substr({digits}, {start}, 16))::bit(64)::bigint # {mask})"
                for start in range(1, 2 * KEY_BYTES, 16)
            )
        )


class BigQuery(OneExpression):
    """A function in SQL."""

    name = "bigquery"
    head, ends = "FUNCTION", ("((", "))")
    failure = "ERROR('{failure}')"
    field, struct = "{expression} AS {name}", "STRUCT({fields})"
    types = typed("INT64", "FLOAT64", "STRING", "BYTES")
    literal = "FROM_HEX('{}')"
    decoded = "CAST({} AS STRING)".format
    utf8 = "CAST({} AS BYTES)".format
    is_missing = "({0} IS NULL OR IS_NAN({0}))".format
    unsigned = "CAST(CONCAT('0x', TO_HEX({})) AS INT64)".format
    length = "BYTE_LENGTH({})".format
    sha256 = "SHA256({})".format

    def usage(self, routine: Routine) -> list[str]:
        return [_call(routine, "@key")]

    def rights(self, routine: Routine) -> list[str]:
        return ["Give roles/bigquery.routineDataViewer on it to the owner of the labels alone."]

    def key_xor(self, byte: int) -> str:
        return f"({KEY.given} ^ {self.data(bytes([byte]) * KEY_BYTES)})"


class Query(Dialect):
    """Reads the view ``NAME_input`` and the key, and gives the ids and the private columns."""

    key_source: ClassVar[str]
    """A table of one row with the column ``key``; ``{name}`` is the routine's."""
    only_key: ClassVar[str] = KEY.name
    """The key of this table."""
    failure: ClassVar[str] = "NULL"
    computed_once: ClassVar[str] = ""
    """The hint that keeps the database from computing a step at each mention, if it needs one."""

    def usage(self, routine: Routine) -> list[str]:
        """The view of labels and ids."""
        return [f"It reads the view {routine.name}_input ({self.declared(routine.arguments)})."]

    def routine(self, routine: Routine) -> str:
        """A query in which each step is a common table."""
        outputs = guarded_outputs(routine, self.failure.format(failure=routine.failure))
        later = " ".join(one.expression for one in (*routine.steps, *outputs))
        pads = ", ".join(f"{pad.expression} AS {pad.name}" for pad in routine.pads)
        source = self.key_source.format(name=routine.name)
        key = f"SELECT {self.only_key} AS {KEY.given} FROM {source}"
        given = [f"{routine.name}_input.{one.name} AS {one.given}" for one in routine.arguments]
        given += [f"secret.{pad.name}" for pad in routine.pads]
        tables = [
            f"secret AS {self.computed_once}(SELECT {pads} FROM ({key}) AS keys)",
            f"given AS (SELECT {', '.join(given)} FROM {routine.name}_input CROSS JOIN secret)",
        ]
        before = "given"
        for number, step in enumerate(routine.steps, 1):
            often = len(re.findall(rf"\b{step.name}\b", later)) > 1
            once = self.computed_once if often else ""
            query = f"SELECT *, {step.expression} AS {step.name} FROM {before}"
            before = f"step_{number}"
            tables.append(f"{before} AS {once}({query})")
        columns = ", ".join(
            ["given_id AS id", *(f"{one.expression} AS {one.name}" for one in outputs)]
        )
        steps = ",\n".join(tables)
        return f"WITH {steps}\nSELECT {columns} FROM {before};"


class Sqlite(Query):
    """Values have types here, and columns none: so each value is read on its own."""

    name = "sqlite"
    key_source = "(SELECT :key AS key)"
    computed_once = "MATERIALIZED "
    types = typed("INTEGER", "REAL", "TEXT", "BLOB")
    literal = "X'{}'"
    decoded = "CAST({} AS TEXT)".format
    utf8 = "CAST({} AS BLOB)".format
    floor = "CAST({} AS INTEGER)".format
    is_missing = "{} IS NULL".format  # which a NaN is, too

    def join(self, *parts: str) -> str:
        """Bytes that are joined have the type of text in SQLite."""
        return f"CAST({' || '.join(parts)} AS BLOB)"

    def usage(self, routine: Routine) -> list[str]:
        """A parameter for the key, and a function of the host's."""
        return [
            *super().usage(routine),
            "Bind the key, a BLOB, to :key, and register hmac_sha256(key, message).",
        ]

    def rights(self, routine: Routine) -> list[str]:
        return ["SQLite has no rights: anyone who opens the database and has the key may run this."]

    def number(self, value: float) -> str:
        """A quotient or a product of whole numbers: SQLite reads few decimals exactly."""
        top, bottom = value.as_integer_ratio()
        shift = (top & -top).bit_length() - 1 if top else 0
        power = shift - (bottom.bit_length() - 1)
        sign = "/" if power < 0 else "*"
        steps = [*[62] * (abs(power) // 62), abs(power) % 62]
        factors = "".join(f" {sign} {1 << step}.0" for step in steps if step)
        return f"({top >> shift}.0{factors})"

    def unsigned(self, e: str) -> str:
        """SQLite reads no hexadecimal digits: each is looked up."""
        digits = (f"instr('123456789ABCDEF', substr(hex({e}), {i + 1}, 1))" for i in range(8))
        terms = (f"({digit} << {28 - 4 * i})" for i, digit in enumerate(digits))
        return f"({' + '.join(terms)})"

    def length(self, e: str) -> str:
        return f"CASE typeof({e}) WHEN 'blob' THEN length({e}) END"

    def pads(self) -> list[Step]:
        """The key itself: SQLite has no hash, so its host registers HMAC.

        Texts become bytes in the encoding of the database. In UTF-16 these would be other
        categories and other messages, so there is no key, and no private label.
        """
        fits = f"{self.length(KEY.given)} = {KEY_BYTES} AND hex('a') = '61'"
        return [Step("secret_key", "bytes", f"CASE WHEN {fits} THEN {KEY.given} END")]

    def hmac(self, message: str) -> list[Step]:
        """By the function that the host registers, which is never called with NULL."""
        called = f"hmac_sha256(secret_key, {message})"
        return [
            Step(
                "digest",
                "bytes",
                f"CASE WHEN secret_key IS NOT NULL AND {message} IS NOT NULL THEN {called} END",
            )
        ]

    def argument(self, column: Argument, *, rounded: bool = False) -> str:
        """By the type of the value, as the Python reader takes objects."""
        e = column.given
        if column.type == "number":
            return f"CASE WHEN typeof({e}) IN ('integer', 'real') THEN CAST({e} AS REAL) END"
        if column.type == "integer" and rounded:
            return f"CASE typeof({e}) WHEN 'integer' THEN {e} WHEN 'real' THEN {_nearest(e)} END"
        kind = {"integer": "integer", "text": "text", "bytes": "blob"}[column.type]
        return f"CASE typeof({e}) WHEN '{kind}' THEN {e} END"


def _nearest(e: str) -> str:
    """The whole number nearest to a float64, halves to even; the ends of int64 beyond them."""
    whole = f"CAST({e} AS INTEGER)"
    rest = f"abs({e} - {whole})"
    up = f"({rest} > 0.5 OR ({rest} = 0.5 AND {whole} % 2 <> 0))"
    near = f"abs({e}) < 4503599627370496.0"
    next_one = f"{whole} + CASE WHEN {e} < 0 THEN -1 ELSE 1 END"
    return f"CASE WHEN {near} AND {up} THEN {next_one} ELSE {whole} END"


class WithKeyView(Query, WithHash):
    """Reads the key from the view ``NAME_key``, so that it is in no text and in no plan.

    Of a view with two keys there is none, or each label would be drawn with both.
    """

    key_source = "{name}_key"
    only_key = f"CASE WHEN COUNT(*) = 1 THEN ANY_VALUE({KEY.name}) END"

    def usage(self, routine: Routine) -> list[str]:
        """The view of the key, too."""
        key = f"The view {routine.name}_key (key {self.types['bytes']}) has one row, the key."
        return [*super().usage(routine), key]

    def rights(self, routine: Routine) -> list[str]:
        return [f"REVOKE ALL ON {routine.name}_key from everyone but the owner of the labels."]


class Spark(WithKeyView):
    """Spark SQL 4: the types of columns are looked at when the query is planned."""

    name = "spark"
    failure = "raise_error('{failure}')"
    types = typed("BIGINT", "DOUBLE", "STRING", "BINARY")
    literal = "X'{}'"
    decoded = "decode({}, 'UTF-8')".format
    utf8 = "CAST({} AS BINARY)".format
    decimal = "CAST(CAST({} AS STRING) AS BINARY)".format
    is_missing = "({0} IS NULL OR isnan({0}))".format
    unsigned = "CAST(conv(hex({}), 16, 10) AS BIGINT)".format
    length = "octet_length({})".format
    sha256 = "unhex(sha2({}, 256))".format
    _FITS: ClassVar[dict[Type, str]] = {
        "integer": "typeof({e}) IN ('tinyint', 'smallint', 'int', 'bigint', 'void')",
        "number": "regexp_like(typeof({e}), '^(tinyint|smallint|int|bigint|float|double|decimal)')"
        " OR typeof({e}) = 'void'",
        "text": "regexp_like(typeof({e}), '^(string|char|varchar|void)')",
        "bytes": "typeof({e}) IN ('binary', 'void')",
    }

    def part(self, e: str, start: str, length: int) -> str:
        return f"substring({e}, CAST({start} AS INT), {length})"

    def shift_right(self, e: str, bits: int) -> str:
        return f"shiftright({e}, {bits})" if bits else e

    def join(self, *parts: str) -> str:
        return f"concat({', '.join(parts)})"

    def key_xor(self, byte: int) -> str:
        mask = int.from_bytes(bytes([byte] * 4), "big")
        parts = (
            f"lpad(hex({self.unsigned(self.part(KEY.given, str(start), 4))} ^ {mask}), 8, '0')"
            for start in range(1, KEY_BYTES, 4)
        )
        return f"unhex(concat({', '.join(parts)}))"

    def argument(self, column: Argument, *, rounded: bool = False) -> str:
        """The column, cast where no value can fail; an error of the query for another type."""
        fits = self._FITS[column.type].format(e=column.given)
        wanted = self.types[column.type]
        refusal = f"raise_error('labeldp: {column.name} must be {wanted}')"
        given = f"CAST({column.given} AS {wanted})"
        return f"CASE WHEN {fits} THEN {given} ELSE {refusal} END"


class Snowflake(WithKeyView):
    """Snowflake: what the documentation says of its functions."""

    name = "snowflake"
    types = typed("NUMBER(38, 0)", "FLOAT", "VARCHAR", "BINARY")
    literal = "TO_BINARY('{}', 'HEX')"
    decoded = "TO_VARCHAR({}, 'UTF-8')".format
    utf8 = "TO_BINARY({}, 'UTF-8')".format
    decimal = "TO_BINARY(TO_VARCHAR({}), 'UTF-8')".format
    unsigned = "TO_NUMBER(HEX_ENCODE({}), 'XXXXXXXX')".format
    length = "OCTET_LENGTH({})".format
    sha256 = "SHA2_BINARY({}, 256)".format
    _FITS = typed("NUMBER(%,0)%", "FLOAT%", "VARCHAR%", "BINARY%")

    def shift_right(self, e: str, bits: int) -> str:
        return f"BITSHIFTRIGHT({e}, {bits})" if bits else e

    def low_bits(self, e: str, bits: int) -> str:
        return f"BITAND({e}, {(1 << bits) - 1})"

    def key_xor(self, byte: int) -> str:
        return f"BITXOR({KEY.given}, {self.data(bytes([byte]) * KEY_BYTES)})"

    def argument(self, column: Argument, *, rounded: bool = False) -> str:
        """The column; NULL, and so no private label of it, if it has another type."""
        fits = f"SYSTEM$TYPEOF({column.given}) LIKE '{self._FITS[column.type]}'"
        return f"CASE WHEN {fits} THEN {column.given} END"
