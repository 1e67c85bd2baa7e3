"""``method: {kind: privatized}``: train on labels that a certified randomizer made private.

Training is post-processing, so it spends nothing beyond the randomization. The labels are
randomized before the first step and kept in the run folder, so that a resumed run does not draw
again. If the artifact has a table for each public group, a row uses the table of its group. A
private label may be the number of a set of classes.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from labeldp_learn.toolkit import PrivateRows
from labeldp_runtime import (
    GroupError,
    LabelError,
    MissingExtraError,
    Randomizer,
    RuntimeArtifactError,
)
from labeldp_verify import VerificationError
from labeldp_verify.artifact import Artifact, largest_bias
from labeldp_verify.forms import CategoricalDomain, IntegerDomain
from labeldp_verify.opening import open_artifact
from numpy.typing import NDArray

from labeldp_compile.toolkit import (
    MAX_CLASSES,
    NOT_SHOWN,
    KeyPath,
    is_noted,
    label_array,
    no_note,
    require_prepared,
)
from labeldp_trainer.coefficients import (
    CoefficientEstimates,
    KeptCoefficients,
    OriginalColumns,
    of_private,
)
from labeldp_trainer.config import LoadedConfig, Privatized
from labeldp_trainer.config.data import FACTORS, IdxData, TableData, features_of
from labeldp_trainer.config.method import Correction
from labeldp_trainer.data.labels import Cells, Coded, as_numpy, places, require_declared
from labeldp_trainer.errors import ArtifactError, DataError, RunFolderError
from labeldp_trainer.methods.closed_form import coded_targets, coefficients_of, label_solver
from labeldp_trainer.methods.corrections import (
    added_variance,
    are_possible,
    class_shares,
    corrected,
    debiased_numbers,
    group_columns,
    kept_information,
    private_targets,
    require_correction,
    rows_by_table,
    table_of_row,
)
from labeldp_trainer.methods.interactions import known_labels_method
from labeldp_trainer.methods.method import (
    ClosedForm,
    Method,
    MethodBuilder,
    Setting,
    limited_to_users,
)
from labeldp_trainer.methods.statement import privatized_statement

KEPT, SOURCE, TABLES = "private_labels", "certificate_sha256", "table_of_row"
_NEGLIGIBLE_BIAS = 1e-6  # of the size of a label
_MOST_BIAS_LEFT = 0.05  # of the labels' standard deviation


def usable_artifact(path: Path) -> Artifact:
    """The artifact in a file, which is verified. Raises ArtifactError if it does not verify, or if
    nothing can be trained on its labels."""
    try:
        found = open_artifact(path)
    except VerificationError as error:
        raise ArtifactError(f"{path}: does not verify: {error}") from None
    stated = found.certificate
    if stated.label.column is None:
        raise ArtifactError(
            f"{path}: randomizes several columns together; training needs one for a single column"
        )
    if stated.insecure is not None:
        raise ArtifactError(f"{path}: {stated.insecure!r}; compile it again without a test seed")
    return found


def classes_of(artifact: Artifact) -> tuple[int | str, ...] | None:
    """The true labels, where they are few enough to be classes."""
    domain = artifact.label
    if isinstance(domain, CategoricalDomain):
        return tuple(domain.values)
    if isinstance(domain, IntegerDomain) and domain.size <= MAX_CLASSES:
        return tuple(range(domain.min, domain.max + 1))
    return None


def load_randomizer(path: Path) -> Randomizer:
    """The randomizer of a file. Raises ArtifactError."""
    try:
        drawer = Randomizer.load(path, prepared=True)
        how = "run it first, and train on its output with private_column"
        require_prepared(drawer.certificate, str(path), how)
        return drawer
    except (RuntimeArtifactError, MissingExtraError) as error:
        raise ArtifactError(str(error)) from None


class PrivatizedBuilder(MethodBuilder[Privatized]):
    """Builds the method from a config whose method is ``privatized``."""

    def __init__(self, loaded: LoadedConfig, method: Privatized) -> None:
        """Open the artifact and choose the correction, before any data. Raises InputError."""
        super().__init__(loaded, method)
        self._path = loaded.path(method.artifact)
        self._artifact = usable_artifact(self._path)
        self.classes = classes_of(self._artifact)
        self._column = method.private_column or method.column or loaded.config.data.label
        self._here = method.private_column is None
        self._refuse_true_labels()
        self._correction = self._chosen_correction()
        self._groups = self._group_columns()
        if self._replaced and self._correction is not None:
            if self.classes is None:
                reason = "its labels are not classes, or there are too many of them"
                raise loaded.error(("method", "artifact"), reason)
            require_correction(self._artifact, self._correction, str(self._path))
        users = () if method.user_column is None else (method.user_column,)
        self.columns = tuple(dict.fromkeys((self._column, *users, *self._groups)))
        stated, column = self._artifact.certificate, method.user_column
        bounded = stated.person is not None and stated.person.column == column
        if column and stated.privacy.epsilon_prior > 0 and not bounded:
            reason = "cannot tell how many labels of a user the artifact's private prior counted"
            advice = f"compile with unit: person and person_column: {column}, or with another prior"
            raise loaded.error(("method", "user_column"), f"{reason}; {advice}")

    def _refuse_true_labels(self) -> None:
        """Refuse the artifact's label where public data are expected. Raises ConfigError.

        A table may hold true labels beside private ones. A model that sees them as a feature is
        trained on true labels.
        """
        label, method = self._artifact.certificate.label.column, self.method
        data = self.loaded.config.data
        if label == method.private_column:  # private labels may keep the name of the true ones
            return
        places: dict[KeyPath, tuple[str | None, ...]] = {
            ("method", "user_column"): (method.user_column,),
            ("data", "numeric"): data.numeric if isinstance(data, TableData) else (),
            ("data", "categorical"): data.categorical if isinstance(data, TableData) else (),
            ("data", "dates"): data.dates if isinstance(data, TableData) else (),
            **{("data", key): (getattr(data, key, None),) for key in FACTORS},
            ("data", "features"): () if isinstance(data, TableData) else features_of(data),
        }
        for place, names in places.items():
            if label in names:
                reason = f"{label!r} is the label of {self._path}; labels are not public"
                raise self.loaded.error(place, reason)

    def _chosen_correction(self) -> Correction | None:
        """The correction of a loss of classes; None for a regression. Raises ConfigError."""
        config, correction = self.loaded.config, self.method.correction
        if config.loss != "cross_entropy":
            if self._artifact.answers_with_sets:
                reason = (
                    f"{config.loss} is for numbers, but the private labels of "
                    f"{self._artifact.certificate.name} are sets of classes; use cross_entropy, or "
                    "compile for this loss"
                )
                raise self.loaded.error(("loss",), reason)
            return None
        if config.closed_form:
            return "backward"
        few = len(self.classes or ()) in range(1, MAX_CLASSES + 1)
        return correction or ("forward" if few else "none")

    @property
    def _replaced(self) -> bool:
        """Whether numbers from the artifact replace the private labels."""
        if self._correction is None:  # sums can be debiased
            return self.loaded.config.closed_form
        return self._correction != "none" or self._artifact.answers_with_sets

    def _group_columns(self) -> list[str]:
        """The columns that decide the table of a row. Raises ConfigError."""
        names, data = [c.name for c in self._artifact.groups.columns], self.loaded.config.data
        key = ("method", "artifact")
        if names and isinstance(data, IdxData):
            raise self.loaded.error(
                key, "has a table for each group, which needs columns; idx files have none"
            )
        for label in (data.label, self._column):
            if label in names:
                reason = f"uses {label!r} as a group column; a label cannot be its own group"
                raise self.loaded.error(key, reason)
        return names

    def build(self, setting: Setting) -> Method:
        """Plain minibatches, or the closed form, on private labels. Raises InputError."""
        everyone, whole = setting, setting.dataset.train.all_rows
        setting = limited_to_users(setting)
        self._require_same_source(setting)
        tables = self._tables(setting)
        private = self._private(setting)
        source = setting.dataset.train.source
        parts, are_outputs = rows_by_table(self._artifact, tables, private)
        doubts = [] if self._here else self._doubts(setting, parts, are_outputs=are_outputs)
        missing = pa.array(as_numpy(private), from_pandas=True).null_count
        if missing and not are_outputs:
            raise DataError(
                f"{source}: {missing:,} of {len(private):,} rows have no private label in "
                f"{self._column!r} (null): leave them out before training"
            )
        targets, shares, left = self._targets(setting, private, parts)
        correction = self._correction
        keep = {SOURCE: np.array(self._artifact.sha256)}
        if tables is not None:
            keep |= {TABLES: tables}
        if self._here:
            keep |= {KEPT: as_numpy(private)}
        statement = privatized_statement(
            self.loaded.config,
            self.method,
            self._artifact,
            labels=(len(private), whole),
            correction=correction,
            debiased=left is not None or correction == "backward",
            doubts=doubts,
        )
        notes = (
            *(f"{source}: {self._column!r}: {doubt}" for doubt in doubts),
            *self._notes(left, regression=setting.loss.task.classes is None),
        )
        more: dict[str, Any] = {"statement": statement, "keep": keep, "notes": notes}
        if not self.loaded.config.closed_form:
            from labeldp_trainer.methods.stepped import (  # noqa: PLC0415  # it needs JAX
                likelihood_loss,
                minibatch_method,
            )

            if correction == "forward":  # a loss that is nearly flat if ε is small
                kept = [len(part.rows) * kept_information(part.matrix) for part in parts]
                more |= {"per_example": likelihood_loss, "information": sum(kept) / len(private)}
            return minibatch_method(setting, targets, **more)
        coded, shares = coded_targets(setting, targets, shares)
        added, ends = added_variance(coded, parts, classes=shares is not None), None
        stated = self._artifact.certificate.label.domain
        if shares is None and stated["kind"] != "categorical":
            ends = float(stated["min"]), float(stated["max"])
        if self.loaded.config.interactions is not None:
            return known_labels_method(setting, coded, ends, shares=shares, extra=added, **more)
        return ClosedForm(
            solve=label_solver(setting, coded, ends, shares, added),
            coefficients=lambda: self._coefficients(everyone, setting, parts),
            **more,
        )

    def _coefficients(
        self, everyone: Setting, setting: Setting, parts: Sequence[PrivateRows]
    ) -> KeptCoefficients | None:
        """Those of unbiased targets."""
        classes = setting.loss.task.classes
        order = [list(self.classes or ()).index(value) for value in classes or ()]
        owners = setting.dataset.train.owners

        def solve(columns: OriginalColumns) -> CoefficientEstimates:
            return of_private(columns, private_targets(parts, order or None), owners)

        return coefficients_of(everyone, solve, weighted=False)

    def _targets(
        self, setting: Setting, private: NDArray[Any] | Cells, parts: Sequence[PrivateRows]
    ) -> tuple[NDArray[Any] | Coded, NDArray[np.float64] | None, float | None]:
        """The training targets, the estimated class shares, and the remaining bias of numbers.

        Shares are for closed forms. The bias is None if numbers are not debiased.
        """
        task, source = setting.loss.task, setting.dataset.train.source
        if self._replaced and self._correction is not None:
            # Columns stand for the labels of the artifact, the model's outputs for the classes.
            order = [list(self.classes or ()).index(value) for value in task.classes or ()]
            shares = class_shares(parts, order) if self.loaded.config.closed_form else None
            return corrected(parts, order, self._correction), shares, None
        found = debiased_numbers(self._artifact.label, parts) if self._replaced else None
        if found is not None:
            return found.values, None, found.bias
        if task.classes is not None:  # what is no class is a doubt, not an error
            return np.maximum(places(private, task.classes), 0).astype(np.int32), None, None
        return task.targets(private, source, self._column), None, None

    def _doubts(
        self, setting: Setting, parts: Sequence[PrivateRows], *, are_outputs: bool
    ) -> list[str]:
        """Why the private column may hold true labels. Raises DataError if nothing notes that the
        artifact made it, and the config does not accept that."""
        artifact, doubts, train = self._artifact, [], setting.dataset.train
        table = self.loaded.path(str(self.loaded.config.data.train))
        if not is_noted(table, train.files, [self._column], artifact.sha256, self._path):
            if not self.method.unnoted:
                way_out = "accept that with unnoted: true in the config, under method"
                raise no_note(Path(train.source), [self._column], self._path, way_out)
            doubts.append(NOT_SHOWN)
        if not (are_outputs and are_possible(artifact, parts)):
            doubts.append(f"can hardly be private labels of {artifact.certificate.name}")
        return doubts

    def _require_same_source(self, setting: Setting) -> None:
        """Raise RunFolderError if the run was started with another file."""
        sha256 = self._artifact.sha256
        if setting.stored is not None and str(setting.stored.get(SOURCE)) != sha256:
            raise RunFolderError(
                f"{self._path}: is not the file that the run was started with; restore that file "
                "or start another run"
            )

    def _tables(self, setting: Setting) -> NDArray[np.int64] | None:
        """The table of each row; None if all rows have the same.

        Raises InputError, or RunFolderError if the run was started with other tables.
        """
        if not self._groups:
            return None
        train = setting.dataset.train
        tables = table_of_row(self._artifact.groups, train)
        stored = None if setting.stored is None else setting.stored.get(TABLES)
        if stored is not None and not np.array_equal(stored, tables):
            raise RunFolderError(
                f"{train.source}: the run was started with other groups; start another run"
            )
        return tables

    def _private(self, setting: Setting) -> NDArray[Any] | Cells:
        train, method = setting.dataset.train, self.method
        if method.private_column is not None:
            column = train.columns[method.private_column]
            return column if isinstance(column, Cells) else _storable(as_numpy(column))
        if setting.stored is not None:
            return setting.stored[KEPT]
        randomizer = load_randomizer(self._path)
        try:
            labels = train.columns[self._column]
            require_declared(labels, self.classes, train.source, self._column)
            columns = group_columns(self._artifact.groups, train) if self._groups else None
            if isinstance(labels, Cells):  # as ``labeldp randomize`` reads those of a CSV file
                labels = label_array(self._artifact.label, self._column, labels.values)
            return _storable(as_numpy(randomizer(labels, columns=columns)))
        except (LabelError, GroupError) as error:
            raise DataError(f"{train.source}: {self._column!r}: {error}") from None

    def _notes(self, left: float | None, *, regression: bool) -> tuple[str, ...]:
        certificate, notes = self._artifact.certificate, []
        chosen = self.method.column is not None or not self._here
        if not chosen and certificate.label.column != self._column:
            notes.append(
                f"{certificate.name} was compiled for the column {certificate.label.column!r} but "
                f"randomizes {self._column!r}; check that it is the artifact of this label"
            )
        bias = largest_bias(self._artifact.label, certificate)
        advice = "goal: training in the spec avoids it"
        if certificate.goal == "training":
            advice = "a larger ε, or fewer labels, would have less of it"
        if left is not None and left > _MOST_BIAS_LEFT:
            notes.append(
                f"{certificate.name}: {certificate.mechanism} gives different labels nearly the "
                f"same outputs, so predictions are off by {left:.0%} of the labels' standard "
                f"deviation; training cannot average this out; {advice}"
            )
        elif regression and left is None and bias is not None and bias > _NEGLIGIBLE_BIAS:
            notes.append(
                f"{certificate.name}: {certificate.mechanism} is biased by up to {bias:.4g}, "
                f"which training cannot average out; {advice}"
            )
        return tuple(notes)


def _storable(array: NDArray[Any]) -> NDArray[Any]:
    """Text as a numpy string array, which can be stored without pickle."""
    return array.astype(str) if array.dtype == object else array
