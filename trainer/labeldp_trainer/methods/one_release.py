"""``method: {kind: one_release}``: one noisy statistic of the labels, and a fit to it alone."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from labeldp_trainer.config import LoadedConfig, OneRelease
from labeldp_trainer.config.base import UserLevel
from labeldp_trainer.data import array_digest
from labeldp_trainer.data.declared import require_declared
from labeldp_trainer.errors import DataError, RunFolderError, TrainerError
from labeldp_trainer.methods.closed_form import default_head, linear_params, vectors_of
from labeldp_trainer.methods.method import Setting, Solved
from labeldp_trainer.methods.statement import (
    ADJACENCY,
    SEVERAL_LABELS,
    TEST_LABELS,
    Statement,
    another_run,
    spent,
    written,
)
from labeldp_trainer.methods.users import (
    limited_to_users,
    needed_columns,
    owners_of,
    user_adjacency,
    user_column,
)
from labeldp_trainer.models import Params
from labeldp_trainer.one_release.check import checks
from labeldp_trainer.one_release.fit import fitted_release
from labeldp_trainer.one_release.lattice import MOST_ROWS
from labeldp_trainer.one_release.make import Rows, drawn, expected_share, planned
from labeldp_trainer.one_release.release import FILE, Release


class OneReleaseBuilder:
    """Builds the method from a config whose method is ``one_release``."""

    def __init__(self, loaded: LoadedConfig) -> None:
        """Keep the config."""
        method = loaded.config.method
        assert isinstance(method, OneRelease)
        self._loaded, self._method = loaded, method
        self.columns: tuple[str, ...] = needed_columns(loaded)
        self.classes: tuple[int | str, ...] | None = None

    def build(self, setting: Setting) -> Solved:
        """Draw the release, or take the one that is given or stored. Raises InputError."""
        method = self._method
        train, release = setting.dataset.train, setting.release
        if release is None:  # as early as can be: what follows takes time
            label, classes = self.columns[0], setting.loss.task.classes
            require_declared(train.columns[label], classes, train.source, label)
        setting = limited_to_users(setting)
        rows = public_rows(setting)
        if release is None:
            plan = self._planned(rows, setting.loss.task.classes)
            release = drawn(plan, rows, setting.dataset.train.columns[self.columns[0]], method)
        else:
            self._require_fit(release, rows, setting)
        head = method.head or default_head(self._loaded)

        ends = release.label_range

        def solve() -> Params:
            try:
                found = fitted_release(release, rows, head)
            except ValueError:  # of linear algebra, on weights that this program does not choose
                raise TrainerError(
                    f"{self._loaded.source}: the release cannot be fitted: its weights are of very "
                    "different sizes"
                ) from None
            return linear_params(self._loaded, *found, ends)

        return Solved(
            solve=solve,
            statement=self._statement(setting, release),
            files={FILE: release.to_bytes()},
            notes=_notes(setting, release, rows),
        )

    def _planned(self, rows: Rows, classes: tuple[int | str, ...] | None) -> Release:
        try:
            return planned(rows, self._method, classes, self.columns[0])
        except ValueError as error:
            raise self._loaded.error(("method", "epsilon"), str(error)) from None

    def _require_fit(self, release: Release, rows: Rows, setting: Setting) -> None:
        """What the statement promises of a release must hold of it. Raises RunFolderError."""
        classes, label = setting.loss.task.classes, self.columns[0]
        for check in checks(release, rows, self._method, classes, label):
            if not check.ok:
                raise RunFolderError(
                    f"{self._loaded.source}: the release does not fit: expected that {check.words}"
                )

    def _statement(self, setting: Setting, release: Release) -> Statement:
        method = self._method
        most = method.max_examples_per_user
        tests = () if setting.dataset.test is None else (TEST_LABELS,)
        moves = "a label moves" if most is None else "all labels of a user together move"
        what = "class" if release.classes is not None else "label"
        d, k = release.statistic.shape
        return Statement(
            method="one_release",
            epsilon=method.epsilon,
            delta=method.delta,
            mechanism=(
                f"the sum of {release.rows:,} public integer rows of {d:,} columns, each times the "
                f"{what} of its row, got discrete Gaussian noise of scale {release.sigma:,}, once; "
                f"{moves} it by at most √{release.squared_sensitivity:,} (Theorem 13)"
            ),
            details={
                "sigma": release.sigma,
                "squared_sensitivity": release.squared_sensitivity,
                "coordinates": d * k,
                "proved_delta": math.nextafter(float(release.proved_delta()), 1.0),
                "gap_to_the_best_noise_shape": release.gap,
                "rows_sha256": release.rows_sha256,
                "users": release.users,
                "unit": "label" if most is None else "user",
                "max_examples_per_user": most,
            },
            released=(f"{FILE} and all that is computed from it and from features: every fit",),
            secret=("the true labels",),
            not_covered=tests,
            remarks=(
                *((SEVERAL_LABELS,) if most is None else ()),
                another_run(
                    spent(method.epsilon, method.delta),
                    doing="draws another release and ",
                    free=f"; --from-release {FILE} fits this one again and costs nothing",
                ),
            ),
            adjacency=ADJACENCY if most is None else user_adjacency(most),
        )


def _notes(setting: Setting, release: Release, rows: Rows) -> tuple[str, ...]:
    """Without a test set, what features, ε and δ say of the model before any label does."""
    if setting.dataset.test is not None or expected_share(release, rows) < 1:
        return ()
    return (
        f"the model is expected to be no better than a constant: {release.rows:,} rows are too few "
        f"for the noise of ε = {written(float(release.epsilon))}; add a test set to see",
    )


def public_rows(setting: Setting) -> Rows:
    """The vectors of the training part, and whose rows they are. Raises InputError."""
    loaded, train = setting.loaded, setting.dataset.train
    vectors, method = vectors_of(setting), loaded.config.method
    if len(vectors) > MOST_ROWS:
        raise DataError(f"{train.source}: more than {MOST_ROWS:,} rows: use fewer")
    if not np.isfinite(vectors).all():
        raise DataError(
            f"{train.source}: some features are so large that their vectors are infinite: rescale "
            "them"
        )
    found = Rows(vectors, setting.spectrum, array_digest(vectors))
    column = user_column(loaded)
    if column is None or not isinstance(method, UserLevel):
        return found
    owners = owners_of(train, column)
    users: dict[str, Any] = {
        "column": column,
        "max_examples_per_user": method.max_examples_per_user,
        "sha256": array_digest(owners),
    }
    return dataclasses.replace(found, owners=owners, users=users)
