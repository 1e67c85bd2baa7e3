"""PATE: teachers on separate parts of the labels vote with noise, and a student learns from votes.

Malek et al. 2021, on the framework of Papernot et al. 2018. Here a teacher is a closed-form model
on public vectors, and the promise does not depend on the outcome of the votes.

Measured (``docs/measured/public-features.md``): 5.7 to 19 points behind one release on
Fashion-MNIST, and level with it on MNIST from ε = 0.1 to 0.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Float32, Int64
from numpy.typing import NDArray

from labeldp_trainer.config import Pate
from labeldp_trainer.discrete_gaussian.noise import ProvedNoise, noisy
from labeldp_trainer.linear.sums import with_constant
from labeldp_trainer.methods.closed_form import default_head, linear_params
from labeldp_trainer.methods.method import (
    ClosedForm,
    Fits,
    Method,
    MethodBuilder,
    Setting,
    Stored,
    limited_to_users,
    require_kept,
    require_label_type,
    true_classes,
    unfit,
)
from labeldp_trainer.methods.one_release import public_rows
from labeldp_trainer.methods.published.pate_students import (
    fitted_votes,
    parts,
    probabilities,
    query_rows,
    votes,
)
from labeldp_trainer.methods.statement import Excess, Statement, protected
from labeldp_trainer.models import Params
from labeldp_trainer.one_release.plan import CLASSES
from labeldp_trainer.one_release.rows import PublicRows
from labeldp_trainer.randomize import exact

VOTE = 1 << 20
"""Lattice steps in a vote."""
_TEACHERS_A_NOISE = 5
_ROWS_A_CLASS, _LEAST_ROWS_A_CLASS = 10, 4
_QUERIES_A_CLASS = 3
_MOST_QUERIES, _ROWS_A_QUERY = 3000, 20


def squared_sensitivity(queries: int) -> int:
    """Of the histograms, in squared steps: one teacher moves one vote per query (Theorem 17)."""
    return 2 * queries * VOTE * VOTE


@dataclass(frozen=True)
class VoteNoise:
    """Discrete Gaussian noise on the histograms of all queries together.

    Attributes:
        queries: Q.
        classes: K.
        sigma: in lattice steps.
    """

    queries: int
    classes: int
    sigma: int

    @classmethod
    def least(cls, queries: int, classes: int, epsilon: Fraction, stated: Fraction) -> VoteNoise:
        """The least that gives (ε, δ). Raises ValueError if no supported noise does."""
        squared, coordinates = squared_sensitivity(queries), queries * classes
        return cls(queries, classes, ProvedNoise.least(squared, coordinates, epsilon, stated).sigma)

    @property
    def proved(self) -> ProvedNoise:
        """On all counts together, by Theorem 17."""
        squared, coordinates = squared_sensitivity(self.queries), self.queries * self.classes
        return ProvedNoise(squared, coordinates, self.sigma)

    @property
    def deviation(self) -> float:
        """Of a count, in votes."""
        return self.sigma / VOTE

    def add(self, votes: Int64[np.ndarray, "q k"]) -> Int64[np.ndarray, "q k"]:
        """The votes in lattice steps, with noise from secure randomness."""
        if votes.shape != (self.queries, self.classes):
            raise ValueError("the noise is for other votes")
        return noisy(votes * VOTE, self.sigma)


@dataclass(frozen=True)
class Sizes:
    """T teachers, and the noise on their votes on Q queries."""

    teachers: int
    noise: VoteNoise


def chosen(
    rows: int,
    units: int,
    classes: int,
    epsilon: Fraction,
    delta: Fraction,
    teachers: int | None,
    queries: int | None,
    unit: str = "labels",
) -> Sizes:
    """The given numbers, and the others by the rule. ``units`` are labels or users, as ``unit``
    says.

    Raises ValueError if the noise hides the votes of all teachers together.
    """
    one = VoteNoise.least(1, classes, epsilon, delta).deviation  # it grows like √Q
    heard = _TEACHERS_A_NOISE * one  # teachers for one query
    if teachers is None:
        most = min(_MOST_QUERIES, max(rows // _ROWS_A_QUERY, 1)) if queries is None else queries
        enough = heard * math.sqrt(min(_QUERIES_A_CLASS * classes, most))
        large = max(units / (_ROWS_A_CLASS * classes), enough)
        small = min(units / (_LEAST_ROWS_A_CLASS * classes), heard * math.sqrt(most))
        teachers = max(int(min(large, small)), 1)
    if queries is None:
        most = min(_MOST_QUERIES, max(rows // _ROWS_A_QUERY, classes), rows)
        queries = min(int((teachers / heard) ** 2), most)
        if queries < min(classes, rows):
            raise ValueError(
                f"is too small: the noise hides the votes of at most {teachers:,} teachers "
                f"for {units:,} {unit}, on as many queries as there are classes ({classes:,}); "
                "raise it, or use one_release"
            )
    noise = VoteNoise.least(queries, classes, epsilon, delta)
    if noise.deviation > teachers:
        raise ValueError(
            f"is too small: the noise on each count has a standard deviation of "
            f"{noise.deviation:,.3g}, but there are only {teachers:,} teachers; raise it, use "
            "fewer queries, or use one_release"
        )
    return Sizes(teachers, noise)


# ``method: {kind: pate}``: noisy votes of teachers, and a student that learns from them alone.

VOTES, QUERIES, TEACHERS, SCALE = "noisy_votes", "voted_rows", "teachers", "noise_scale"


class PateBuilder(MethodBuilder[Pate]):
    """Builds the method from a config whose method is ``pate``."""

    def build(self, setting: Setting) -> Method:
        """Let the teachers vote, or use the stored votes. Raises InputError."""
        method, classes = self.method, setting.loss.task.classes
        assert classes is not None
        refine = None
        if self.loaded.config.refine is not None:  # a network needs JAX
            from labeldp_trainer.methods.published.pate_network import refined  # noqa: PLC0415

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
