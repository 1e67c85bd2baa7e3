"""Randomize the label of a Spark DataFrame, with fresh random bits or with a key."""

import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql import types as t

from labeldp_runtime.artifact_file import read_bytes
from labeldp_runtime.errors import GroupError, IdError, LabelError, ReplayWarning
from labeldp_runtime.frames import LabelNames, Layout, Names, PrivateNames, default_context
from labeldp_runtime.policy import Policy
from labeldp_runtime.randomizer import Randomizer
from labeldp_runtime.shipped import KeyedTask, KeySource, Shipped, key_on_driver, refuse_secret
from labeldp_runtime.spark.columns import (
    find_column,
    output_types,
    refuse_homonyms,
    refuse_id_type,
    refuse_ids,
    refuse_types,
)
from labeldp_runtime.spark.rollback import refuse_without_rollback
from labeldp_runtime.spark.task import RandomizeLabels


def randomize(
    df: DataFrame,
    column: LabelNames,
    artifact: str | Path,
    *,
    id_column: str | None = None,
    key: KeySource | None = None,
    context: str | None = None,
    version: int = 0,
    group_columns: Mapping[str, str] | None = None,
    add_as: PrivateNames | None = None,
    require: Policy | None = None,
    check_duplicates: bool = True,
    prepared: bool = False,
) -> DataFrame:
    """The DataFrame with private labels in ``column``, or added as ``add_as``.

    All other columns stay as they are. The private column has the artifact's type (double, bigint
    or string) and no nulls; NaN, nulls and labels outside the domain follow the out-of-domain rule.

    Give ``key`` and ``id_column``: then every computation gives the same labels. Without a key the
    result is drawn again whenever Spark computes it (each action, each retry, each executor that is
    lost), and every time spends ε of the label again: a ReplayWarning says so. Write the result
    once and read that. A Spark that could lose rows and draw others twice, unnoticed, is refused.

    Args:
        df: a DataFrame of PySpark 4.0 or newer.
        column: the label column: numbers or text, as the artifact's domain needs. Of an artifact
            whose label has several: the names of its certificate, or which column each of them is,
            where it has another name: ``{"value": "spent", "converted": "converted"}``. Each
            private column takes the place of its label; the number of a set of combinations takes
            the place of them all, as ``private_label``.
        artifact: path of the file on the driver; its bytes travel with the plan.
        id_column: with a key, the column that names each label: integers, text or binary.
        key: a key from a file that every executor finds under the same path (mode 0600), or a
            function without arguments that fetches the key where it is called: once on the driver
            and once in each Python worker. The key itself never travels through Spark.
        context: what is randomized; by default the name of the private column. Labels of several
            columns have no default.
        version: of the labels; labels that changed need a new one, and spend ε again.
        group_columns: of an artifact with tables by group, which column gives each of those that
            its certificate names, where it has another name: ``{"age": "age_in_2024"}``. Spark must
            compute the same groups each time: with a key, noise depends on the group.
        add_as: name of a column to add, which KEEPS the true labels beside it; of several columns
            the name of each: ``{"value": "private_value", "converted": "private_converted"}``.
        require: what the artifact must be; checked on the driver. Executors accept only the same
            bytes.
        check_duplicates: with a key, look for null and repeated ids now, in one job over the id
            column. Without it, only those inside one Arrow batch are found, when it is computed.
        prepared: the rows meet what the artifact demands of them together: see
            ``Randomizer.load``.

    Raises a RuntimeArtifactError for an artifact that cannot be used, LabelError, GroupError,
    IdError or DuplicateIdError for columns that cannot, KeyFileError for a key that cannot travel,
    and without a key EngineError for a Spark that would not notice rows drawn again (``rollback``).
    """
    if key is None and (id_column is not None or context is not None or version != 0):
        raise IdError("id_column, context and version need key=: labeldp keygen makes a key")
    if key is not None and id_column is None:
        raise IdError("a key needs id_column, the column that names each label")
    if key is None:
        refuse_without_rollback(df.sparkSession)
    path = Path(artifact)
    data = read_bytes(path)
    if key is None:
        keyed = None
        randomizer = Randomizer(data, str(path), require=require, prepared=prepared)
    else:
        assert id_column is not None
        context = default_context(column, add_as) if context is None else context
        secret = key_on_driver(key)
        randomizer = Randomizer(
            data, str(path), key=secret, context=context, require=require, prepared=prepared
        )
        keyed = KeyedTask(key, secret.fingerprint, context)
    names = Names(column, id_column, version, group_columns, add_as)
    layout = names.layout(randomizer, df.columns, partial(find_column, df), refuse_homonyms)
    labels, groups = ([index for _, index in own] for own in (layout.labels, layout.groups))
    # Whole numbers as labels may come in any type of numbers.
    types = ["string" if kind == "string" else "float64" for kind in randomizer.label_types]
    refuse_types(df, labels, types, "labels", LabelError)
    refuse_types(df, groups, randomizer.group_types, "groups", GroupError)
    schema = _schema(df, layout, output_types(randomizer))
    task = RandomizeLabels(Shipped.of(data, keyed), layout)
    if keyed is None:
        _warn_of_replays()
    else:
        refuse_secret(cloudpickle.dumps(task), secret)
        _check_ids(df, str(id_column), whole=check_duplicates)
    with warnings.catch_warnings():
        # PySpark demands pandas here, and doubts new ones; mapInArrow never touches it.
        warnings.filterwarnings("ignore", ".*pandas", FutureWarning)
        # mapInArrow takes a dot in a column's name for a field of a struct: it sees no names.
        unnamed = df.toDF(*(f"c{index}" for index in range(len(df.columns))))
        return unnamed.mapInArrow(task, schema)


def _schema(df: Any, layout: Layout, private: list[Any]) -> t.StructType:
    return t.StructType(
        [
            t.StructField(name, private[index], nullable=False)
            if is_private
            else df.schema.fields[index]
            for name, is_private, index in layout.columns
        ]
    )


def _check_ids(df: Any, id_column: str, *, whole: bool) -> None:
    if not whole:
        refuse_id_type(df, id_column)
    elif df.isStreaming:
        raise IdError(
            "the ids of a stream cannot be checked in advance: make sure that no id is ever null "
            "or repeated, and give check_duplicates=False"
        )
    else:
        refuse_ids(df, id_column)


def _warn_of_replays() -> None:
    warnings.warn(
        "without a key Spark draws new private labels whenever it computes them (for each action, "
        "retry and recomputation), and each time spends ε of every label again: write the result "
        "to storage once and read that, or give key= and id_column=",
        ReplayWarning,
        stacklevel=3,
    )
