"""``method: {kind: one_release}``: one noisy statistic of the labels, and a fit to it alone."""

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from labeldp_trainer.coefficients import CoefficientEstimates, OriginalColumns, ReleasedColumns
from labeldp_trainer.config import LoadedConfig, OneRelease
from labeldp_trainer.config.data import FIRST, SECOND, PairsData
from labeldp_trainer.data.features import all_finite
from labeldp_trainer.discrete_gaussian.noise import NoiseError, noisy
from labeldp_trainer.errors import DataError, RunFolderError, TrainerError
from labeldp_trainer.methods.closed_form import (
    coefficients_of,
    default_head,
    linear_params,
    vectors_of,
)
from labeldp_trainer.methods.method import (
    ClosedForm,
    MethodBuilder,
    Setting,
    Stored,
    limited_to_users,
    require_label_type,
    users_of,
)
from labeldp_trainer.methods.statement import Excess, Statement, protected, written
from labeldp_trainer.models import Params
from labeldp_trainer.one_release.plan import (
    ReleaseCheck,
    checks,
    drawn,
    expected_share,
    fitted_release,
)
from labeldp_trainer.one_release.release import FILE, Release, read_release
from labeldp_trainer.one_release.rows import MOST_ROWS, PublicRows
from labeldp_trainer.randomize import exact
from labeldp_trainer.run import RunFolder

RELEASED = (f"{FILE} and everything computed from it and from features, such as every fit",)
AGAIN = (
    "draws another release and ",
    f". To refit for free: --from-release {FILE}",
)
"""How the statement of a run says that another run spends again, and how to avoid it."""
_GIVEN = "release_was_given"
_ORDER = "which answers were chosen: the order of the columns of the training file"
_DECLARED = (
    "The release was given (--from-release). That its noise was drawn as stated, and from the "
    "labels of these rows, is declared by the one who drew it; nothing here can prove it.",
)
_SUMMED_ELSEWHERE = (
    "Executors of a Spark cluster summed, and sent sums without noise to the driver. That nobody "
    "read these, and that labels did not decide which of several tries of a task counted, is "
    "declared.",
)


def origin(given: Path | None, setting: Setting) -> tuple[Stored, tuple[str, ...]]:
    """The kept origin of a run's release, and the words of its statement about it."""
    if given is None and _GIVEN not in (setting.stored or {}):
        whole = setting.dataset.train.whole
        return {}, _SUMMED_ELSEWHERE if whole is not None and whole.elsewhere else ()
    return {_GIVEN: np.array(1)}, _DECLARED


def release_file(folder: RunFolder | None, release: Path | None) -> Path | None:
    """The release of a run to resume, or the given one. Raises RunFolderError if both are."""
    if folder is not None and release is not None:
        raise RunFolderError(f"{folder.path}: already has a release; remove --from-release")
    return release if folder is None else folder.path / FILE


def require_all(loaded: LoadedConfig, found: Iterable[ReleaseCheck]) -> None:
    """Raise RunFolderError if a check of a release does not hold."""
    for check in found:
        if not check.ok:
            raise RunFolderError(f"{loaded.source}: the release fails this check: {check.words}")


class OneReleaseBuilder(MethodBuilder[OneRelease]):
    """Builds the method from a config whose method is ``one_release``."""

    _release: Release | None = None
    _given: Path | None = None

    def begin(self, folder: RunFolder | None, release: Path | None) -> None:
        """Read an existing release, which needs no labels. Raises InputError."""
        self._given = release
        path = release_file(folder, release)
        if path is not None:
            self._release = read_release(path)
            self.columns = self.columns[1:]

    def build(self, setting: Setting) -> ClosedForm:
        """Draw a release, or use the given or stored one. Raises InputError."""
        label, release = self.loaded.config.data.label, self._release
        method, classes = stated_labels(setting)
        if release is None:  # early, because the next steps take time
            require_label_type(setting)
        whole, setting = setting, limited_to_users(setting)
        rows = public_rows(setting)
        if release is None:
            labels = setting.dataset.train.columns[label]
            if rows.paired:
                labels = (labels == FIRST).astype(float) - (labels == SECOND)

            def rehearse(plan: Release) -> None:  # what can fail after the draw is tried before it
                noise = replace(plan, statistic=noisy(plan.statistic, plan.facts.sigma))
                self._fit(noise, rows.sample())

            try:
                release = drawn(rows, method, classes, label, labels, rehearse)
            except (NoiseError, np.linalg.LinAlgError) as error:
                raise self.loaded.error(("method", "epsilon"), str(error)) from None
        else:
            self._require_fit(release, rows, setting)
        keep, declared = origin(self._given, setting)

        def estimates(columns: OriginalColumns) -> CoefficientEstimates:
            return ReleasedColumns.of(columns, release.weights, rows).estimates(release)

        return ClosedForm(
            solve=lambda: self._fit(release, rows),
            coefficients=lambda: coefficients_of(whole, estimates, weighted=True),
            statement=self._statement(release, rows, declared),
            keep=keep,
            files={FILE: release.to_bytes()},
            notes=_notes(setting, release, rows),
        )

    def _fit(self, release: Release, rows: PublicRows) -> Params:
        """The parameters that a release gives. Raises TrainerError."""
        head = self.method.head or default_head(self.loaded)
        try:
            found = fitted_release(release, rows, head)
        except ValueError:  # linear algebra failed on weights that another program chose
            raise TrainerError(
                f"{self.loaded.source}: the release cannot be fitted: its weights have very "
                "different sizes"
            ) from None
        ends = None if rows.paired else release.facts.label_range
        return linear_params(self.loaded, *found, ends)

    def _require_fit(self, release: Release, rows: PublicRows, setting: Setting) -> None:
        """Check that a release keeps what its statement promises. Raises RunFolderError."""
        (method, classes), label = stated_labels(setting), self.loaded.config.data.label
        require_all(self.loaded, checks(release, rows, method, classes, label))

    def _statement(
        self, release: Release, rows: PublicRows, declared: tuple[str, ...]
    ) -> Statement:
        method, facts = self.method, release.facts
        one = method.max_examples_per_user is None
        moves = "a label moves" if one else "all labels of a user together move"
        what = "class" if facts.classes is not None else "label"
        data = self.loaded.config.data
        ordered = isinstance(data, PairsData) and data.order_is_label
        return protected(
            self.loaded.config,
            epsilon=method.epsilon,
            delta=method.delta,
            mechanism=(
                f"the sum of {facts.rows:,} public integer rows with {len(release.columns):,} "
                "columns, each multiplied by the "
                f"{what} of its row, got discrete Gaussian noise of scale {facts.sigma:,} once; "
                f"{moves} it by at most √{facts.squared_sensitivity:,} (Theorem 13)"
            ),
            details={
                **release.noise.details(exact(method.epsilon)),
                "units": facts.rows if facts.users is None else None,
                "gap_to_the_best_noise_shape": facts.gap,
                "rows_sha256": facts.rows_sha256,
                "users": None if facts.users is None else facts.users.model_dump(),
                "most_shortened_user": _most_shortened(release, rows),
            },
            released=RELEASED,
            secret=(_ORDER if ordered else "the true labels",),
            excess=Excess(*release.noise.excess(exact(method.epsilon))),
            again=AGAIN,
            declared=declared,
        )


def _most_shortened(release: Release, rows: PublicRows) -> dict[str, float] | None:
    """How many rows the user has whose rows were shortened most, and by which factor at most.

    That factor is the bound of what all labels of the user move, over what one row can: √(L·λ) of
    Theorem 13 for L rows of one length, where λ bounds the eigenvalues of their products.
    """
    if rows.owners is None or len(rows.vectors) < rows.count:  # a sample does not say
        return None
    shares = release.weights.shares(rows)
    assert shares is not None
    most = int(shares.argmin())
    factor = math.nextafter(1 / float(shares[most]), math.inf)
    return {"rows": int((rows.owners == rows.owners[most]).sum()), "factor": factor}


def _notes(setting: Setting, release: Release, rows: PublicRows) -> tuple[str, ...]:
    """From features, ε and δ alone, before any label is read: pairs are compared with randomized
    response, and without a test set there is a warning."""
    notes = _against_response(release) if rows.paired and rows.owners is None else ()
    if setting.dataset.test is not None or expected_share(release, rows) < 1:
        return notes
    n, epsilon = release.facts.rows, written(float(release.facts.epsilon))
    return (
        *notes,
        f"the model is expected to be no better than a constant: {n:,} rows are too few for "
        f"the noise of ε = {epsilon}; add a test set to check",
    )


def _against_response(release: Release) -> tuple[str]:
    """Which has less noise in a sum of n rows of length 1 with labels ±½, over all d columns.

    The noise of the release has the variance d·σ², where σ hides a row of length 1. A label that
    is randomized and debiased has the variance e^ε/(e^ε − 1)².
    """
    facts, width = release.facts, len(release.columns)
    growth = 4 * math.sinh(float(facts.epsilon) / 2) ** 2
    least, there = facts.sigma**2 / facts.squared_sensitivity * growth, facts.rows / width
    one, other = "one release has", "randomized response with the same ε"
    less = f"{one} less noise than {other}" if there > least else f"{other} has no more noise"
    return (
        f"estimate from ε, δ, {facts.rows:,} pairs and {width:,} columns: {less}; {one} less from "
        f"{least:,.1f} pairs per column on, and there are {there:,.1f}",
    )


def stated_labels(setting: Setting) -> tuple[OneRelease, tuple[int | str, ...] | None]:
    """The method and the classes that a release states: pairs have labels from −1 to 1."""
    method = setting.loaded.config.method
    assert isinstance(method, OneRelease)
    if isinstance(setting.loaded.config.data, PairsData):
        return method.model_copy(update={"label_range": (-1.0, 1.0)}), None
    return method, setting.loss.task.classes


def public_rows(setting: Setting) -> PublicRows:
    """The vectors of the training part, and the users of the rows. Raises InputError."""
    train = setting.dataset.train
    vectors = vectors_of(setting)
    if not all_finite(vectors):
        raise DataError(
            f"{train.source}: some features are so large that their vectors are infinite; rescale "
            "them"
        )
    kind: type[PublicRows] = PublicRows
    more = row_owners(setting)
    if train.whole is not None:
        from labeldp_trainer.sampled import SampledRows  # noqa: PLC0415

        kind = SampledRows
        more |= {"table": train.whole, "encoder": setting.dataset.encoder}
        more |= {"representation": setting.representation, "steps": setting.steps}
    return kind(
        vectors=vectors,
        spectrum=setting.spectrum,
        groups=setting.groups,
        paired=isinstance(setting.loaded.config.data, PairsData),
        **more,
    )


def row_owners(setting: Setting) -> dict[str, Any]:
    """The fields of ``RowOwners`` for the training part. Raises InputError."""
    loaded, train = setting.loaded, setting.dataset.train
    if train.all_rows > MOST_ROWS:
        raise DataError(f"{train.source}: has more than {MOST_ROWS:,} rows; use fewer")
    found = {"count": train.all_rows, "weights": train.weights}
    return found | {"owners": train.owners, "users": users_of(loaded, train)}
