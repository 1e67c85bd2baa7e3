"""Which Sparks may draw fresh words: those that notice rows which come back with other labels.

A shuffle sends the rows of a map task to the tasks that follow. When an executor is lost after some
of those are done, Spark computes its map tasks again. Without a key their labels are others, and
rows which are sent by their label go elsewhere: some are lost, and some come twice, with two draws.
From 4.2 on Spark compares checksums of what a map task wrote; where they differ it starts all that
follows anew, or fails the job.
"""

from __future__ import annotations

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

    The version and the settings are those of the cluster, through Spark Connect too. They are
    looked at now; who changes the settings afterwards changes what happens.
    """
    reason = _reason(spark)
    if reason is not None:
        raise EngineError(
            f"without a key this Spark may lose rows and draw others twice, silently, when an "
            f"executor is lost: {reason}. The way out is a key: key=Key.load(…), id_column=…, "
            "with which every computation gives the same labels"
        )


def _reason(spark: Any) -> str | None:
    if not _is_safe(version := str(spark.version)):
        return f"it is Spark {version}, and the first that notices is 4.2"
    for name in _MUST_BE_ON:
        try:
            setting = str(spark.conf.get(name))
        except PySparkException:  # it has no such setting: a vendor's build without the checksums
            return f"it says nothing of {name}"
        if setting.lower() != "true":
            return f"{name} is off"
    if str(spark.conf.get(_PUSHED, "false")).lower() == "true":
        return f"{_PUSHED} is on, under which it does not look"
    manager = str(spark.conf.get(_MANAGER, "sort"))
    if manager not in _OWN_MANAGERS:
        return f"its {_MANAGER} is {manager}, of which nothing is known"
    return None


def _is_safe(version: str) -> bool:
    """Whether a version of Apache Spark's numbering is the first safe release or a later one.

    A version that does not begin with three numbers, as a vendor's 14.3.x, says nothing of the
    Spark inside. Previews are refused, and what came before the first safe release: it need not
    hold all of the comparison.
    """
    found = _VERSION.fullmatch(version)
    if found is None or "preview" in version:
        return False
    release = (int(found[1]), int(found[2]), int(found[3]))
    unfinished = release == FIRST_SAFE and _BEFORE_RELEASE.match(found[4])
    return release >= FIRST_SAFE and not unfinished
