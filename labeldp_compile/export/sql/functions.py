"""The dialects that have a function: DuckDB, PostgreSQL and BigQuery."""

from typing import ClassVar

from labeldp_compile.export.sql.dialect import (
    KEY,
    KEY_BYTES,
    Routine,
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
    """What stands around the query."""
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
