"""Spark: randomize a column of a DataFrame on the cluster, and count labels for a private prior.

Needs labeldp-runtime, PySpark, pyarrow and pandas on the driver and on every executor.
"""

from labeldp_runtime.errors import MissingExtraError

try:
    from labeldp_runtime.spark.batches import large_batches
    from labeldp_runtime.spark.counts import label_counts, write_label_counts
    from labeldp_runtime.spark.randomize import randomize
except ModuleNotFoundError as error:
    if error.name is None or error.name.split(".")[0] not in ("pyspark", "pyarrow"):
        raise
    raise MissingExtraError(
        "labeldp_runtime.spark needs PySpark and pyarrow: pip install pyspark pyarrow pandas"
    ) from error

__all__ = ["label_counts", "large_batches", "randomize", "write_label_counts"]
