"""``method: {kind: pate}``: noisy votes of teachers, and a student that learns from them alone."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray

from labeldp_trainer.config import Pate
from labeldp_trainer.linear.sums import with_constant
from labeldp_trainer.methods.closed_form import default_head, linear_params
from labeldp_trainer.methods.method import (
    ClosedForm,
    Fits,
    Method,
    MethodBuilder,
    Setting,
    Stored,
    require_kept,
    unfit,
)
from labeldp_trainer.methods.one_release import public_rows
from labeldp_trainer.methods.published.pate.release import VOTE, Sizes, chosen
from labeldp_trainer.methods.published.pate.student import fitted_votes, probabilities
from labeldp_trainer.methods.published.pate.teachers import parts, query_rows, votes
from labeldp_trainer.methods.statement import Excess, Statement, protected
from labeldp_trainer.methods.true_labels import require_label_type, true_classes
from labeldp_trainer.methods.users import limited_to_users
from labeldp_trainer.models import Params
from labeldp_trainer.one_release.design import CLASSES
from labeldp_trainer.one_release.rows import PublicRows
from labeldp_trainer.randomize import exact

VOTES, QUERIES, TEACHERS, SCALE = "noisy_votes", "voted_rows", "teachers", "noise_scale"


class PateBuilder(MethodBuilder[Pate]):
    """Builds the method from a config whose method is ``pate``."""

    def build(self, setting: Setting) -> Method:
        """Let the teachers vote, or use the stored votes. Raises InputError."""
        method, classes = self.method, setting.loss.task.classes
        assert classes is not None
        refine = None
        if self.loaded.config.refine is not None:  # a network needs JAX
            from labeldp_trainer.methods.published.pate.network import refined  # noqa: PLC0415

            refine = refined(setting)
        if setting.stored is None:
            require_label_type(setting)
        setting = limited_to_users(setting)
        rows = public_rows(setting)
        sizes = self._sizes(rows, len(classes))
        points = _points(rows)

        def fit(votes: Any, queries: Any, rows: PublicRows, points: Any) -> Params:
            voted = probabilities(votes / VOTE, sizes.noise.deviation, sizes.teachers)
            head = default_head(self.loaded)
            found = fitted_votes(rows, points, queries, voted, method, head)
            return linear_params(self.loaded, *found, None)

        if setting.stored is None:
            asked = query_rows(points, sizes.noise.queries, method.seed)
            # what can fail after the draw is tried before it, with noise alone
            noise = sizes.noise.add(np.zeros((len(asked), len(classes)), np.int64))
            own = replace(rows, vectors=rows.vectors[asked])
            fit(noise, np.arange(len(asked)), own, points[asked])
            true = true_classes(setting)
            teacher = parts(rows.units, sizes.teachers, method.seed)
            if rows.owners is not None:
                teacher = teacher[rows.owners]
            counts = votes(points, true, teacher, points[asked], len(classes))
            kept: dict[str, NDArray[Any]] = {
                VOTES: sizes.noise.add(counts),
                QUERIES: asked,
                TEACHERS: np.array(sizes.teachers),
                SCALE: np.array(sizes.noise.sigma),
            }
        else:
            kept = self._stored(setting.stored, sizes, len(points))

        def solve() -> Params:
            return fit(kept[VOTES], kept[QUERIES], rows, points)

        statement = self._statement(sizes, rows.units)
        linear = ClosedForm(solve=solve, statement=statement, keep=kept)
        return linear if refine is None else refine(linear)

    def _sizes(self, rows: PublicRows, classes: int) -> Sizes:
        method, units = self.method, rows.units
        whose = "labels" if rows.owners is None else "users"
        if method.teachers is not None and method.teachers > units:
            reason = f"{method.teachers:,} teachers are more than the {units:,} {whose}"
            raise self.loaded.error(("method", "teachers"), reason)
        n = len(rows.vectors)
        if method.queries is not None and method.queries > n:
            reason = f"{method.queries:,} queries are more than the {n:,} rows"
            raise self.loaded.error(("method", "queries"), reason)
        promise = exact(method.epsilon), exact(method.delta)
        try:
            return chosen(n, units, classes, *promise, method.teachers, method.queries, whose)
        except ValueError as error:
            raise self.loaded.error(("method", "epsilon"), str(error)) from None

    def _stored(self, stored: Stored, sizes: Sizes, n: int) -> dict[str, NDArray[Any]]:
        """The stored votes of this run, on the rows that were chosen then: another processor might
        choose other rows. Raises RunFolderError if they are damaged.
        """
        noise, source = sizes.noise, self.loaded.source
        expected = {
            VOTES: Fits("i", (noise.queries, noise.classes)),
            QUERIES: Fits("i", (noise.queries,), (0, n)),
            TEACHERS: Fits("i", (), (sizes.teachers, sizes.teachers + 1)),
            SCALE: Fits("i", (), (noise.sigma, noise.sigma + 1)),
        }
        require_kept(stored, expected, source)
        if (np.diff(stored[QUERIES]) <= 0).any():
            raise unfit(source)
        return dict(stored)

    def _statement(self, sizes: Sizes, units: int) -> Statement:
        method, noise = self.method, sizes.noise
        unit = "label" if method.max_examples_per_user is None else "user"
        return protected(
            self.loaded.config,
            epsilon=method.epsilon,
            delta=method.delta,
            mechanism=(
                f"{sizes.teachers:,} teachers, each fitted to the labels of its own rows, gave "
                f"each of {noise.queries:,} public rows a vote; all {noise.queries:,} × "
                f"{noise.classes:,} counts got discrete Gaussian noise of standard deviation "
                f"{noise.deviation:.4g} once; a {unit} changes one teacher, which moves the "
                f"counts by at most √{2 * noise.queries:,} for any votes (Theorem 17)"
            ),
            details={
                "units": units,
                "teachers": sizes.teachers,
                "queries": noise.queries,
                "steps_in_a_vote": VOTE,
                **noise.proved.details(exact(method.epsilon)),
            },
            released=(
                "the noisy votes (kept.npz) and everything computed from them and from features, "
                "such as every fit",
            ),
            excess=Excess(*noise.proved.excess(exact(method.epsilon))),
            again=("lets teachers vote again and ", ""),
        )


def _points(rows: PublicRows) -> Float32[np.ndarray, "n d"]:
    """The vectors, scaled so that the coefficients of all columns are about equally large.

    Their mean squared length is 1.
    """
    spectrum = with_constant(rows.spectrum, rows.vectors.shape[1])[1:]
    points = rows.vectors * np.sqrt(spectrum**CLASSES.power)[None, :].astype(np.float32)
    size = math.sqrt(float(np.square(points, dtype=np.float64).sum(axis=1).mean()))
    return np.asarray(points / np.float32(max(size, 1e-30)), np.float32)
