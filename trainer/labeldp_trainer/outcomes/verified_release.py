"""``labeldp train --verify-release``: checks a release against the features of a config."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float32

from labeldp_trainer.config import LoadedConfig, OneRelease, StagedRelease
from labeldp_trainer.config.representation import Steps, silent
from labeldp_trainer.errors import DAMAGE, RunFolderError
from labeldp_trainer.methods import open_method
from labeldp_trainer.methods.interactions import learner
from labeldp_trainer.methods.method import Setting, limited_to_users
from labeldp_trainer.methods.one_release import public_rows, stated_labels
from labeldp_trainer.methods.staged_release import public_table
from labeldp_trainer.models import build_model
from labeldp_trainer.one_release.plan import ReleaseCheck, checks
from labeldp_trainer.one_release.release import read_release
from labeldp_trainer.representations import FOLDER, are_stored, represented, reproduced, restored
from labeldp_trainer.run.folder import read_json
from labeldp_trainer.staged_release.check import checks as staged_checks
from labeldp_trainer.staged_release.check import replayed
from labeldp_trainer.staged_release.release import read_staged
from labeldp_trainer.training import public_setting, read, suited

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MOST_APART = 1e-2  # far more than rounding, far less than another row


def verify_release(
    loaded: LoadedConfig,
    path: Path,
    steps: Steps = silent,
    *,
    published: Path | None = None,
    spark: SparkSession | None = None,
) -> list[ReleaseCheck]:
    """All checks of a release; no label is read. Raises InputError.

    The representation is learned again, which gives the same bits only on the same kind of
    processor. Elsewhere, pass as ``published`` a run folder whose ``representation/`` came with the
    release. Then the release is checked against its vectors, bit for bit. One more check is whether
    its map gives these vectors for the features, up to differences in arithmetic.
    With ``spark``, a cluster measures the rows of a release that was summed there.
    """
    method = loaded.config.method
    if isinstance(method, StagedRelease):
        if published is not None:
            raise loaded.error(("method", "kind"), "--vectors is for one_release")
        return _verify_staged(loaded, path, method, steps, spark)
    if not isinstance(method, OneRelease):
        raise loaded.error(
            ("method", "kind"), "expected one_release or staged_release, which have releases"
        )
    release = read_release(path)
    # fails here, before a long computation, if there is none
    width = 0 if published is None else restored(published).width
    builder = open_method(loaded, release=path)
    with TemporaryDirectory() as empty:  # an empty folder: no vectors of an earlier run are used
        output = published or Path(empty) / "run"
        features, loss = read(loaded, builder, (), spark)
        if not are_stored((part.rows for part in features.parts), width):
            reason = "holds no vectors, as they take much room; leave out --vectors"
            raise RunFolderError(f"{output / FOLDER}: {reason}")
        loaded = suited(loaded, features)
        dataset, representation = represented(loaded, features, output, steps)
    found: list[ReleaseCheck] = []
    if published is not None:
        again = None  # of the published map
        if representation is not None and representation.stored == published / FOLDER:
            with suppress(KeyError, TypeError, ValueError, IndexError):  # a map of other shapes
                again = reproduced(loaded, features, representation, steps)
        found.append(_check_published(again, np.asarray(dataset.train.features)))
    model = build_model(loaded, dataset.shape, loss.task.outputs)
    setting = Setting(loaded, dataset, model, loss, None, representation)
    rows, label = public_rows(limited_to_users(setting)), loaded.config.data.label
    found += checks(release, rows, *stated_labels(setting), label)
    return found


def _verify_staged(
    loaded: LoadedConfig,
    path: Path,
    method: StagedRelease,
    steps: Steps,
    spark: SparkSession | None,
) -> list[ReleaseCheck]:
    """The proof of all parts on their integers, and a replay of what each stage asked."""
    release = read_staged(path)
    builder = open_method(loaded, release=path)
    setting = public_setting(loaded, builder, steps, spark)
    table = public_table(setting)  # the release must have the same bins
    classes, label = setting.loss.task.classes, loaded.config.data.label
    found = list(staged_checks(release, method, table, classes, label))
    if all(check.ok for check in found):
        found += replayed(
            release,
            table,
            lambda draws: learner(
                setting, list(release.columns), table.codes, draws, table.rows.relative
            ).learn(),
        )
    try:
        known = read_json(path.parent / "result.json").get("release_sha256")
    except FileNotFoundError:  # a release without its run
        return found
    except DAMAGE:
        known = None
    same = known == release.sha256
    return [*found, ReleaseCheck(same, "the run's result.json names this release")]


def _check_published(
    again: Float32[np.ndarray, "n p"] | None, vectors: Float32[np.ndarray, "n p"]
) -> ReleaseCheck:
    """Whether a published map gives the published vectors for these features."""
    if again is None:
        return ReleaseCheck(
            False, "the published vectors were made from these features, as in the config"
        )
    size = max(float(np.sqrt(np.square(vectors, dtype=np.float64).mean())), 1e-300)
    apart = float(np.abs(again - vectors).max()) / size
    return ReleaseCheck(
        apart <= _MOST_APART,
        f"the published map gives the published vectors for these features, with a relative error "
        f"of {apart:.1e} (at most {_MOST_APART:g}); not checked: whether it was learned without "
        "labels",
    )
