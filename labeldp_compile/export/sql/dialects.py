"""The dialects by their names."""

from labeldp_compile.export.sql.dialect import Dialect
from labeldp_compile.export.sql.functions import BigQuery, DuckDb, Postgres
from labeldp_compile.export.sql.queries import Snowflake, Spark, Sqlite

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (DuckDb(), Postgres(), Sqlite(), BigQuery(), Snowflake(), Spark())
}
NOT_RUN = ("bigquery", "snowflake")  # which the tests can only parse
