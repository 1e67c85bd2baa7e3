"""PySpark and pyarrow, or an error that says how to get them."""

from labeldp_runtime.errors import MissingExtraError

try:
    import pyarrow
    import pyarrow.parquet
    import pyspark.sql
except ImportError as error:
    raise MissingExtraError(
        "labeldp_runtime.spark needs PySpark and pyarrow: pip install pyspark pyarrow pandas"
    ) from error

pa, sql = pyarrow, pyspark.sql
