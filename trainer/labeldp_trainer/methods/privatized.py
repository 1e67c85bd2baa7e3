"""``method: {kind: privatized}``: train on labels that a certified randomizer made private.

Training is post-processing: it costs nothing beyond the randomization. The labels are randomized
before the first step and kept in the run folder, so that a resumed run draws no second time. Of an
artifact with a table for each public group, a row takes that of its own group. A private label may
be the number of a set of classes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from labeldp_runtime import GroupError, IdError, LabelError
from labeldp_verify.certificate import DECLARED_BY
from labeldp_verify.verified import Decoded, DecodedGroups
from numpy.typing import NDArray

from labeldp_compile.mechanisms.subset_selection import MAX_CLASSES
from labeldp_compile.tabular.provenance import require_artifact
from labeldp_compile.yaml_tree import KeyPath
from labeldp_trainer.config import LoadedConfig, Privatized
from labeldp_trainer.config.data import IdxData, TableData
from labeldp_trainer.config.load import features_of
from labeldp_trainer.config.method import Correction
from labeldp_trainer.data.coded import Coded
from labeldp_trainer.data.declared import require_declared
from labeldp_trainer.data.labels import Cells, as_numpy
from labeldp_trainer.errors import DataError, RunFolderError
from labeldp_trainer.losses import likelihood_loss
from labeldp_trainer.methods.certificate import (
    artifact_certificate,
    certificate_file,
    labels_of,
    load_randomizer,
)
from labeldp_trainer.methods.closed_form import solve_labels
from labeldp_trainer.methods.corrections import class_shares, corrected, require_correction
from labeldp_trainer.methods.debias import verified
from labeldp_trainer.methods.debiased_numbers import debiased_numbers
from labeldp_trainer.methods.kept import unfit
from labeldp_trainer.methods.method import Method, Setting, Solved
from labeldp_trainer.methods.minibatch import minibatch_method
from labeldp_trainer.methods.outputs import all_outputs
from labeldp_trainer.methods.row_tables import group_columns, table_of_row
from labeldp_trainer.methods.statement import (
    ADJACENCY,
    SEVERAL_LABELS,
    TEST_LABELS,
    Statement,
    another_run,
    written,
)
from labeldp_trainer.methods.users import limited_to_users, user_adjacency
from labeldp_trainer.randomize import exact

KEPT, SOURCE, TABLES = "private_labels", "certificate_sha256", "table_of_row"
_NEGLIGIBLE_BIAS = 1e-6  # of the size of a label
_MOST_BIAS_LEFT = 0.05  # of the labels' standard deviation


class PrivatizedBuilder:
    """Builds the method from a config whose method is ``privatized``."""

    def __init__(self, loaded: LoadedConfig) -> None:
        """Read the certificate, and what undoes the bias. Raises InputError, before any data."""
        method = loaded.config.method
        assert isinstance(method, Privatized)
        self._loaded, self._method = loaded, method
        if method.artifact is not None:
            self._certificate = artifact_certificate(loaded.path(method.artifact))
        else:
            self._certificate = certificate_file(loaded.path(str(method.certificate)))
        self._column = method.private_column or method.column or loaded.config.data.label
        ids = () if method.id_column is None else (method.id_column,)
        users = () if method.user_column is None else (method.user_column,)
        self._refuse_true_labels()
        self._correction = self._chosen_correction()
        groups = self._group_columns()
        self._decoded = self._needed()
        self.columns: tuple[str, ...] = tuple(dict.fromkeys((self._column, *ids, *users, *groups)))
        if users and self._certificate.epsilon_prior > 0:
            reason = "how many labels of a user the artifact's prior has seen is not known here"
            raise loaded.error(("method", "user_column"), f"{reason}: compile with another prior")
        self.classes = self._certificate.classes

    def _refuse_true_labels(self) -> None:
        """The label that the artifact was compiled for is nothing public. Raises ConfigError.

        A table may hold it beside its private labels, which then protect nothing: a model that sees
        it as a feature is trained on true labels.
        """
        label, method, data = self._certificate.column, self._method, self._loaded.config.data
        if label == method.private_column:  # which took the place of the true one
            return
        places: dict[KeyPath, tuple[str | None, ...]] = {
            ("method", "user_column"): (method.user_column,),
            ("method", "id_column"): (method.id_column,),
        }
        if isinstance(data, TableData):
            places |= {("data", "numeric"): data.numeric, ("data", "categorical"): data.categorical}
        else:
            places["data", "features"] = features_of(data)
        for place, names in places.items():
            if label in names:
                reason = f"{label!r} is the label of {self._certificate.source}: no label is public"
                raise self._loaded.error(place, reason)

    def _chosen_correction(self) -> Correction | None:
        """Of the loss of classes; None of a regression. Raises ConfigError for sets without it."""
        config, method, sets = self._loaded.config, self._method, self._certificate.sets
        if config.loss != "cross_entropy":
            if sets:
                raise self._loaded.error(
                    ("loss",),
                    f"{config.loss} is for numbers, and the private labels of "
                    f"{self._certificate.name} are sets of classes: take cross_entropy, or compile "
                    "for that loss",
                )
            return None
        if sets and method.artifact is None:
            raise self._loaded.error(
                ("method", "certificate"),
                "private labels are sets of classes here, and a certificate does not hold "
                "Pr[set | class]: name the artifact instead",
            )
        if config.closed_form:
            return "none" if method.artifact is None else "backward"
        if method.debiased:
            return "backward"
        if method.correction is not None:
            return method.correction
        few = len(self._certificate.classes or ()) in range(1, MAX_CLASSES + 1)
        return "forward" if few and method.artifact is not None else "none"

    @property
    def _checks_labels(self) -> bool:
        """Whether labels that are said to be private are held against an artifact."""
        return self._method.private_column is not None and self._method.artifact is not None

    @property
    def _reads_tables(self) -> bool:
        """Whether numbers of the artifact take the place of private labels."""
        if self._method.artifact is None:
            return False
        if self._correction is None:  # sums of numbers can be debiased
            return self._loaded.config.closed_form
        return self._correction != "none" or self._certificate.sets

    def _needed(self) -> Decoded | DecodedGroups | None:
        """The artifact, where its probabilities or outputs are used.

        Raises InputError if they cannot be.
        """
        if not (self._reads_tables or self._checks_labels):
            return None
        path = self._loaded.path(str(self._method.artifact))
        decoded = verified(path)
        if self._reads_tables and self._correction is not None:
            if self._certificate.classes is None:
                raise self._loaded.error(
                    ("method", "artifact"), "its labels are no classes, or are too many of them"
                )
            require_correction(decoded, self._correction, str(path))
        return decoded

    def _group_columns(self) -> list[str]:
        """The columns that say which table a row has, where that matters. Raises ConfigError."""
        groups, private = self._certificate.groups, self._method.private_column is not None
        if groups is None or (private and self._method.artifact is None):
            return []  # private labels as they come: what made them decides nothing any more
        key = ("method", "certificate" if self._method.artifact is None else "artifact")
        names, data = [column.name for column in groups.columns], self._loaded.config.data
        if isinstance(data, IdxData):
            raise self._loaded.error(
                key, "has a table for each group, from columns: idx files have none"
            )
        for label in (data.label, self._column):
            if label in names:
                reason = f"takes {label!r} for a group: a label cannot be its own group"
                raise self._loaded.error(key, reason)
        return names

    def build(self, setting: Setting) -> Method | Solved:
        """Plain minibatches, or the closed form, on private labels. Raises InputError."""
        whole = setting.dataset.train.rows
        setting = limited_to_users(setting)
        self._require_same_source(setting)
        self._require_noted(setting)
        tables = self._tables(setting)
        private = self._private(setting)
        self._require_outputs(setting, private, tables)
        targets, left = self._targets(setting, private, tables)
        randomized_here = self._method.private_column is None
        source = {SOURCE: np.array(self._certificate.sha256)}
        if tables is not None and (randomized_here or self._reads_tables):
            source |= {TABLES: tables}
        keep = source | {KEPT: as_numpy(private)} if randomized_here else source
        debiased = left is not None or self._correction == "backward"
        statement = self._statement(setting, len(private), whole, debiased=debiased)
        notes = self._notes(left, regression=setting.loss.task.classes is None)
        if self._loaded.config.closed_form:
            ends, shares = self._certificate.ends, self._shares(setting, private, tables)
            return Solved(
                lambda: solve_labels(setting, targets, ends, shares),
                statement,
                keep=keep,
                notes=notes,
            )
        per_example = likelihood_loss if self._correction == "forward" else None
        return minibatch_method(
            setting, targets, statement, per_example=per_example, keep=keep, notes=notes
        )

    def _require_same_source(self, setting: Setting) -> None:
        """The statement and the debiasing weights are those of the file that labels went through.

        Raises RunFolderError.
        """
        found = self._certificate
        if setting.stored is not None and str(setting.stored.get(SOURCE)) != found.sha256:
            raise RunFolderError(
                f"{found.source}: is not the file that the run was started with: put that one "
                "back, or start another run"
            )

    def _require_noted(self, setting: Setting) -> None:
        """What Parquet files note of private labels must be this artifact. Raises DataError.

        Of a certificate's file, the artifact's SHA-256 is not known.
        """
        found = self._certificate
        if self._method.private_column is None or not found.verified:
            return
        for path, metadata in setting.dataset.train.files:
            require_artifact(path, metadata, self._column, found.sha256, Path(found.source))

    def _tables(self, setting: Setting) -> NDArray[np.int64] | None:
        """The number of each row's table; None where rows do not differ.

        Raises InputError; RunFolderError if the run was started with others.
        """
        groups = self._certificate.groups
        if groups is None or groups.columns[0].name not in self.columns:
            return None
        train = setting.dataset.train
        tables = table_of_row(groups, train)
        stored = None if setting.stored is None else setting.stored.get(TABLES)
        if stored is not None and not np.array_equal(stored, tables):
            raise RunFolderError(f"{train.source}: the run was started with other groups")
        return tables

    def _private(self, setting: Setting) -> NDArray[Any] | Cells:
        train, method = setting.dataset.train, self._method
        if method.private_column is not None:
            column = train.columns[method.private_column]
            return column if isinstance(column, Cells) else _storable(as_numpy(column))
        if setting.stored is not None:
            stored = setting.stored.get(KEPT)
            if stored is None or stored.shape != (train.rows,):
                raise unfit(train.source)
            return stored
        key = None if method.key is None else self._loaded.path(method.key)
        context = None if key is None else method.context or self._column
        randomizer = load_randomizer(self._loaded.path(str(method.artifact)), key, context)
        try:
            labels, groups = train.columns[self._column], self._certificate.groups
            require_declared(labels, self._certificate.classes, train.source, self._column)
            columns = None if groups is None else group_columns(groups, train)
            if isinstance(labels, Cells):
                labels = labels_of(randomizer, self._column, labels.values)
            if key is None:
                return _storable(as_numpy(randomizer(labels, columns=columns)))
            ids = train.columns[str(method.id_column)]
            ids = ids.names() if isinstance(ids, Cells) else ids
            version = method.label_version
            private = randomizer(labels, columns=columns, ids=ids, version=version)
            return _storable(as_numpy(private))
        except (LabelError, IdError, GroupError) as error:
            raise DataError(f"{train.source}: {self._column!r}: {error}") from None

    def _require_outputs(
        self,
        setting: Setting,
        private: NDArray[Any] | Cells,
        tables: NDArray[np.int64] | None,
    ) -> None:
        """Whatever is made of them, labels that the artifact never outputs are none of its own.

        Raises DataError.
        """
        if not self._checks_labels:
            return
        assert self._decoded is not None
        if not all_outputs(self._decoded, tables, private):
            raise self._strange(setting)

    def _strange(self, setting: Setting) -> DataError:
        path = self._loaded.path(str(self._method.artifact))
        source = setting.dataset.train.source
        return DataError(f"{source}: {self._column!r} holds labels that {path} never outputs")

    def _targets(
        self,
        setting: Setting,
        private: NDArray[Any] | Cells,
        tables: NDArray[np.int64] | None,
    ) -> tuple[NDArray[Any] | Coded, float | None]:
        """What stands for the true labels, and the bias that is left of numbers, if undone."""
        source = setting.dataset.train.source
        decoded = self._decoded
        if decoded is None or not self._reads_tables:
            return setting.loss.task.targets(private, source, self._column), None
        if setting.loss.task.classes is None:
            try:
                found = debiased_numbers(decoded, tables, private)
            except ValueError:
                raise self._strange(setting) from None
            if found is None:
                return setting.loss.task.targets(private, source, self._column), None
            return found.values, found.bias
        assert self._correction is not None
        coded = corrected(decoded, tables, private, self._order(setting), self._correction)
        if coded is None:
            raise self._strange(setting)
        return coded, None

    def _shares(
        self,
        setting: Setting,
        private: NDArray[Any] | Cells,
        tables: NDArray[np.int64] | None,
    ) -> NDArray[np.float64] | None:
        """About those of the classes, where private labels are debiased; None of a regression."""
        if self._decoded is None or self._correction is None:
            return None
        return class_shares(self._decoded, tables, private, self._order(setting))

    def _order(self, setting: Setting) -> list[int]:
        """Columns stand for the labels of the artifact; the model's outputs for the classes."""
        known, classes = self.classes, setting.loss.task.classes
        assert known is not None and classes is not None
        return [known.index(value) for value in classes]

    def _statement(self, setting: Setting, labels: int, whole: int, *, debiased: bool) -> Statement:
        certificate, method = self._certificate, self._method
        here = method.private_column is None
        where = f"randomized once with {certificate.mechanism} ({certificate.name})"
        if certificate.sets:
            where += ", which answers with the number of a set of classes"
        names = []
        if certificate.groups is not None:
            names = [column.name for column in certificate.groups.columns]
            where += (
                f" by the table of its row's group ({certificate.groups.tables:,} tables; by "
                f"{', '.join(names)})"
            )
        parts = certificate.epsilon_label, certificate.epsilon_prior, certificate.epsilon_total
        label, prior, total = (written(part) for part in parts)
        mechanism = (
            f"each of {labels:,} labels was {where}, ε = {label} a label; the label "
            f"distribution behind it cost ε = {prior} for each compile that read the labels, "
            f"at least {total} in all for a label in both"
        )
        secret = ["the true labels"]
        remarks = [
            "Training only post-processes the private labels and spends nothing more, however "
            "long or often it runs on the same private labels.",
        ]
        most = method.max_examples_per_user
        if most is None:
            remarks.append(SEVERAL_LABELS)
        else:
            remarks.append(
                f"At most {most:,} labels of a user were used, {labels:,} of {whole:,} in "
                f"all: ε is {most:,} times that of a label (group privacy)."
            )
        if here and method.key is None:
            again = written(float(exact(certificate.epsilon_label) * (most or 1)))
            remarks.append(another_run(f"ε = {again}", doing="randomizes again and "))
        if method.key is not None:
            secret.append("the key file: with ids and private labels it undoes the noise")
            remarks.append(
                "Another run with the same key, artifact, ids, label_version and true labels gives "
                "these private labels again and spends nothing; true labels that have changed need "
                f"another label_version, and spend ε = {label} a label again."
            )
        if certificate.epsilon_prior > 0:
            remarks.append(
                f"ε = {prior} of the label distribution is what one compile spent, as the artifact "
                "declares: every further compile on the same labels spends it again, and nothing "
                "here counts them."
            )
        if not here and most is not None:
            remarks.append(
                f"ε is that of the labels that were used: if further ones of "
                f"{method.private_column!r} are released, their users pay for these, too."
            )
        if not here:
            remarks.append(
                f"That {method.private_column!r} was made with this artifact, and that its labels "
                "were randomized once, is declared in the config; nothing here can prove it."
            )
        if names:
            remarks.append(
                "That groups are public and were fixed before any label was seen is declared by "
                f"{DECLARED_BY} of the artifact; nothing here can prove it."
            )
        if not certificate.verified:
            remarks.append("The certificate was believed: labeldp verify proves ε of an artifact.")
        details = {
            "epsilon_label": certificate.epsilon_label,
            "epsilon_prior": certificate.epsilon_prior,
            "artifact_name": certificate.name,
            "artifact_mechanism": certificate.mechanism,
            "certificate_source": "artifact" if method.artifact is not None else "certificate",
            "certificate_source_sha256": certificate.sha256,
            "artifact_verified": certificate.verified,
            "largest_bias": certificate.largest_bias,
            "group_columns": names,
            "randomized_here": here,
            "keyed": method.key is not None,
            "debiased": debiased,
            "correction": self._correction,
            "labels": labels,
            "unit": "label" if most is None else "user",
            "max_examples_per_user": most,
        }
        return Statement(
            method="privatized",
            epsilon=float(exact(certificate.epsilon_total) * (most or 1)),
            delta=0.0,
            mechanism=mechanism,
            details=details,
            released=("the private labels", "the parameters", "metrics on the private labels"),
            secret=tuple(secret),
            not_covered=() if setting.dataset.test is None else (TEST_LABELS,),
            remarks=tuple(remarks),
            adjacency=ADJACENCY if most is None else user_adjacency(most),
        )

    def _notes(self, left: float | None, *, regression: bool) -> tuple[str, ...]:
        certificate, method, notes = self._certificate, self._method, []
        chosen = method.column is not None or method.private_column is not None
        if not chosen and certificate.column != self._column:
            notes.append(
                f"{certificate.name} was compiled for the column {certificate.column!r}, and "
                f"randomizes {self._column!r}: is it the artifact of this label?"
            )
        bias = certificate.largest_bias
        if left is not None and left > _MOST_BIAS_LEFT:
            notes.append(
                f"{certificate.name}: {certificate.mechanism} gives different labels nearly the "
                f"same outputs, and training cannot average that out: predictions of private "
                f"labels are off by {left:.0%} of the labels' standard deviation; goal: training "
                "in the spec avoids that"
            )
        elif regression and left is None and bias is not None and bias > _NEGLIGIBLE_BIAS:
            notes.append(
                f"{certificate.name}: {certificate.mechanism} is biased by up to {bias:.4g}, "
                "which training cannot average out; goal: training in the spec avoids that"
            )
        return tuple(notes)


def _storable(array: NDArray[Any]) -> NDArray[Any]:
    """Text as numpy's own, which needs no pickle."""
    return array.astype(str) if array.dtype == object else array
