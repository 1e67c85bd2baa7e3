"""Which versions of Spark may run without a key: those that notice labels that were drawn again.

A shuffle sends the rows of a map task to the tasks that follow. If an executor is lost after some
of these are done, Spark computes its map tasks again. Without a key the labels are then different,
and rows that are sent by label go elsewhere: some are lost, and some come twice, with two draws.
From 4.2 on, Spark compares checksums of what a map task wrote. If they differ, it restarts all that
follows, or fails the job.
"""

import re
from typing import Any

from pyspark.errors import PySparkException

from labeldp_runtime.errors import EngineError

FIRST_SAFE = (4, 2, 0)
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(.*)", re.DOTALL)
_BEFORE_RELEASE = re.compile(r"[-.]?(preview|snapshot|dev|rc)", re.IGNORECASE)
_MUST_BE_ON = (
    "spark.sql.shuffle.orderIndependentChecksum.enabled",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch",
)
_PUSHED = "spark.shuffle.push.enabled"  # switches the comparison off (SPARK-54959)
_MANAGER = "spark.shuffle.manager"
_OWN_MANAGERS = ("sort", "tungsten-sort", "org.apache.spark.shuffle.sort.SortShuffleManager")


def refuse_without_rollback(spark: Any) -> None:
    """Raise EngineError unless this session's Spark notices labels that were drawn again.

    The version and the settings are those of the cluster, also through Spark Connect. They are
    checked now: later changes of the settings are not noticed.
    """
    reason = _reason(spark)
    if reason is not None:
        raise EngineError(
            "without a key this Spark may lose rows and draw others twice, without a message, "
            f"when an executor is lost: {reason}. Use a key, with which every computation gives "
            "the "
            "same labels: key=Key.load(…), id_column=…"
        )


def _reason(spark: Any) -> str | None:
    if not _is_safe(version := str(spark.version)):
        return f"it is Spark {version}, and the first version that notices this is 4.2"
    for name in _MUST_BE_ON:
        try:
            setting = str(spark.conf.get(name))
        except PySparkException:  # it has no such setting: a vendor's build without the checksums
            return f"it has no setting {name}"
        if setting.lower() != "true":
            return f"{name} is off"
    if str(spark.conf.get(_PUSHED, "false")).lower() == "true":
        return f"{_PUSHED} is on, which turns the check off"
    manager = str(spark.conf.get(_MANAGER, "sort"))
    if manager not in _OWN_MANAGERS:
        return f"its {_MANAGER} is {manager}, which labeldp does not know"
    return None


def _is_safe(version: str) -> bool:
    """Whether a version of Apache Spark's numbering is the first safe release or a later one.

    A version that does not begin with three numbers, such as a vendor's 14.3.x, does not show which
    Spark is inside. Previews are refused, and so is everything before the first safe release: it
    may lack a part of the comparison.
    """
    found = _VERSION.fullmatch(version)
    if found is None or "preview" in version:
        return False
    release = (int(found[1]), int(found[2]), int(found[3]))
    unfinished = release == FIRST_SAFE and _BEFORE_RELEASE.match(found[4])
    return release >= FIRST_SAFE and not unfinished
