"""``method: {kind: staged_release}``: adaptive noisy statistics of labels, and a fit to them."""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from labeldp_runtime.whole_file import BusyError, UnfinishedError, replaced_when_whole

from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.config.method import StagedRelease as StagedConfig
from labeldp_trainer.config.representation import silent
from labeldp_trainer.data import array_digest
from labeldp_trainer.data.features import each_array
from labeldp_trainer.data.labels import class_labels, label_numbers
from labeldp_trainer.discrete_gaussian.noise import noisy
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.interactions.effects import effects_of, to_bytes
from labeldp_trainer.methods.interactions import (
    Staged,
    codes_of,
    keep_effects,
    learned_columns,
    learner,
    params_of,
)
from labeldp_trainer.methods.method import (
    MethodBuilder,
    Setting,
    TrainingRun,
    limited_to_users,
    require_label_type,
)
from labeldp_trainer.methods.one_release import (
    AGAIN,
    RELEASED,
    origin,
    release_file,
    require_all,
    row_owners,
)
from labeldp_trainer.methods.statement import Excess, Statement, protected
from labeldp_trainer.models import Params
from labeldp_trainer.one_release.rows import RowOwners, unit_of
from labeldp_trainer.randomize import exact
from labeldp_trainer.run import RunFolder
from labeldp_trainer.run.folder import Line
from labeldp_trainer.staged_release.check import checks
from labeldp_trainer.staged_release.draw import Draws, LabelColumn, PublicTable
from labeldp_trainer.staged_release.plan import BudgetPlan, DeltaError
from labeldp_trainer.staged_release.release import FILE, ReleaseInStages, StagedFacts, read_staged

_REHEARSED_COLUMNS = 4
_HEAVY = 0.99  # of weights: one in a hundred rows has more, and some of these are long


class StagedReleaseBuilder(MethodBuilder[StagedConfig]):
    """Builds the method from a config whose method is ``staged_release``."""

    def __init__(self, loaded: LoadedConfig, method: StagedConfig) -> None:
        """Start without a release."""
        super().__init__(loaded, method)
        self._release: ReleaseInStages | None = None
        self._given: Path | None = None
        self._resumed = False

    def begin(self, folder: RunFolder | None, release: Path | None) -> None:
        """Read what has been released already; a whole release needs no labels.

        Raises InputError.
        """
        self._given = release
        path = release_file(folder, release)
        if path is None:
            return
        # a run has the file from its start: without it, stages would be drawn a second time
        self._release = read_staged(path)
        self._resumed = folder is not None
        if self._release.complete:
            self.columns = self.columns[1:]
        elif folder is None:
            raise RunFolderError(f"{path}: some stages are missing; resume the run that drew it")

    def build(self, setting: Setting) -> Staged:
        """Everything but the stages themselves. Raises InputError."""
        stored, classes = self._release, setting.loss.task.classes
        if stored is None or not stored.complete:
            require_label_type(setting)
        setting = limited_to_users(setting)
        table = public_table(setting)  # of a stored release: the same bins
        empty = self.empty(setting, table)
        release = stored or empty
        if stored is not None:
            self._require_fit(stored, table, classes)
        columns, rows = list(release.columns), table.rows

        if not release.complete:
            self._rehearse(setting, release, table)

        labels = None if release.complete else self._labels(setting, release.facts)

        def solve(run: TrainingRun) -> tuple[Params, Line]:
            path = run.folder.path / FILE
            draws = Draws(release, table, labels, lambda grown: _write_after(path, grown))
            ends = release.facts.label_range
            try:
                fit = learner(setting, columns, table.codes, draws, rows.relative).learn()
            except DeltaError as error:
                raise self.loaded.error(("method", "delta"), str(error)) from None
            except ValueError:  # of linear algebra
                reason = "rounding hides the fit to what was released, which is kept"
                raise self.loaded.error(("method",), reason) from None
            keep_effects(run, fit, table.count)
            facts: Line = {"release_sha256": draws.release.sha256}
            return params_of(fit, self.loaded.config.loss, ends), facts

        keep, declared = origin(self._given, setting)
        return Staged(
            solve=solve,
            statement=self._statement(release, declared),
            keep=keep,
            files={} if self._resumed else {FILE: release.to_bytes()},
        )

    def _rehearse(
        self,
        setting: Setting,
        release: ReleaseInStages,
        table: PublicTable,
    ) -> None:
        """Try what can fail after a draw: a few rows and columns, and labels that tell nothing.

        Raises ConfigError.
        """
        ranks = np.array([column.rank for column in release.columns])
        places = np.flatnonzero(ranks)[:_REHEARSED_COLUMNS]
        columns, few = [release.columns[c] for c in places], table.rows.sample()
        every = slice(None, None, -(-table.rows.count // few.count))
        features = each_array(table.features, lambda array: array[every])
        sample = PublicTable(features, columns, table.codes[every, places], few)
        facts = release.facts.model_copy(update={"rows": few.count})
        ends, none = facts.label_range, ReleaseInStages(facts, tuple(columns))
        made_up = np.zeros(few.count, np.int32)
        if ends is not None:
            made_up = np.resize(ends, few.count)  # not alike, or nothing but their mean is fitted
        draws = Draws(none, sample, LabelColumn(made_up), lambda _: None, add_noise=noisy)
        try:
            quiet = replace(setting, steps=silent)
            fit = learner(quiet, columns, sample.codes, draws, few.relative).learn()
            to_bytes(effects_of(fit))
            params_of(fit, self.loaded.config.loss, ends)
        except DeltaError as error:
            raise self.loaded.error(("method", "delta"), str(error)) from None
        except ValueError:
            reason = "rounding hides the fit to noise alone; nothing was released"
            raise self.loaded.error(("method",), reason) from None

    def empty(self, setting: Setting, table: PublicTable) -> ReleaseInStages:
        """A release without parts. Raises ConfigError if δ cannot be proved for any parts."""
        method, classes, rows = self.method, setting.loss.task.classes, table.rows
        epsilon, delta = exact(method.epsilon), exact(method.delta)
        try:
            plan = BudgetPlan.of(epsilon, delta, classes=classes is not None)
            long = float(np.quantile(rows.relative, _HEAVY, method="lower")) * unit_of(table.count)
            plan.require_resolved(epsilon, delta, len(classes or (0,)), rows.most_rows, long)
        except ValueError as error:
            raise self.loaded.error(("method", "epsilon"), str(error)) from None
        facts = StagedFacts(
            classes=classes,
            label_range=None if classes is not None else method.label_range,
            epsilon=repr(method.epsilon),
            delta=repr(method.delta),
            label=self.loaded.config.data.label,
            rows=table.count,
            users=rows.users,
            features_sha256=array_digest(table.features),
            in_pairs=tuple(column.in_pairs for column in table.columns),
        )
        return ReleaseInStages(facts, tuple(table.columns))

    def _labels(self, setting: Setting, facts: StagedFacts) -> LabelColumn:
        """The true labels: numbers in the range, or classes; none is refused or counted.

        Without a default, a missing number stays NaN.
        """
        default: Any = self.method.default
        read: Any = partial(class_labels, classes=facts.classes or (), default=default)
        if facts.label_range is not None:
            (low, high), default = facts.label_range, math.nan if default is None else default
            read = partial(label_numbers, low=low, high=high, default=default)
        return LabelColumn(setting.dataset.train.columns[facts.label], read)

    def _require_fit(
        self,
        release: ReleaseInStages,
        table: PublicTable,
        classes: tuple[int | str, ...] | None,
    ) -> None:
        """Check that a release keeps what its statement promises. Raises RunFolderError."""
        label = self.loaded.config.data.label
        require_all(self.loaded, checks(release, self.method, table, classes, label))

    def _statement(self, release: ReleaseInStages, declared: tuple[str, ...]) -> Statement:
        method, facts = self.method, release.facts
        parts = BudgetPlan.of(
            exact(method.epsilon), exact(method.delta), classes=facts.classes is not None
        )
        sums = sum(kind == "sums" for kind, _ in parts.parts)
        what = (
            "classes" if facts.classes is not None else "labels, or of residuals that are clipped"
        )
        return protected(
            self.loaded.config,
            epsilon=method.epsilon,
            delta=method.delta,
            mechanism=(
                f"{len(parts.parts)} statistics of {facts.rows:,} rows were released one after "
                f"another, each with discrete Gaussian noise: {sums} sums of public integer rows "
                f"times {what}, and histograms; each was chosen from features and from the noisy "
                "statistics before it, and the squared ratios of sensitivity and noise add up "
                "(Theorem 18)"
            ),
            details={
                "units": facts.rows if facts.users is None else None,
                "parts": [kind for kind, _ in parts.parts],
                "shares": [float(share) for _, share in parts.parts],
                "squared_ratio": float(np.nextafter(float(parts.ratio), 0)),
                "users": None if facts.users is None else facts.users.model_dump(),
            },
            released=RELEASED,
            excess=Excess(parts.excess(exact(method.epsilon), exact(method.delta))),
            again=AGAIN,
            declared=declared,
        )


def public_table(setting: Setting) -> PublicTable:
    """The public side of the training rows. Raises InputError."""
    train, columns = setting.dataset.train, learned_columns(setting)
    rows = RowOwners(**row_owners(setting) | {"count": train.rows})
    more: dict[str, Any] = {}
    kind: type[PublicTable] = PublicTable
    if train.whole is not None:
        from labeldp_trainer.sampled import SampledCodes  # noqa: PLC0415

        kind, more = SampledCodes, {"whole": train.whole, "encoder": setting.dataset.encoder}
        more["steps"] = setting.steps
    return kind(train.features, columns, codes_of(columns, train.features), rows, **more)


def _write_after(path: Path, grown: ReleaseInStages) -> None:
    """Write a release that has one part more than the file. Raises RunFolderError.

    Of two processes that resume a run, only one gets its part into the file, which is locked here.
    What the other has drawn is seen by no one.
    """
    resumed = RunFolderError(f"{path}: another process has resumed this run; wait for it")
    try:
        with replaced_when_whole(path) as file:
            if read_staged(path).sha256 != grown.parts[-1].facts.previous_sha256:
                raise resumed
            file.write(grown.to_bytes())
    except BusyError:
        raise resumed from None
    except UnfinishedError as error:  # says what is in the way
        raise RunFolderError(str(error)) from None
