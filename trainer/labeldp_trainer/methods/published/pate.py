"""PATE: teachers on separate parts of the labels vote with noise, and a student learns from votes.

Malek et al. 2021, on the framework of Papernot et al. 2018. Here a teacher is a closed-form model
on public vectors, and the promise does not depend on the outcome of the votes.

Measured (``benchmarks/notes/public-features.md``): 5.7 to 19 points behind one release on
Fashion-MNIST, and level with it on MNIST from ε = 0.1 to 0.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64
from scipy.sparse import csr_matrix

from labeldp_trainer.config import Pate
from labeldp_trainer.config.method import Head
from labeldp_trainer.data.labels import Coded
from labeldp_trainer.discrete_gaussian.noise import ProvedNoise, noisy
from labeldp_trainer.linear.fit import fitted_labels, label_sums
from labeldp_trainer.linear.sums import with_constant
from labeldp_trainer.methods.closed_form import default_head, linear_params
from labeldp_trainer.methods.method import (
    ClosedForm,
    Method,
    MethodBuilder,
    Setting,
    Stored,
    limited_to_users,
    require_label_type,
    true_classes,
)
from labeldp_trainer.methods.one_release import public_rows
from labeldp_trainer.methods.published.clusters import k_means, principal_components
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
class Sizes:
    """T teachers, Q queries, and the noise on all votes together (Theorem 17), in lattice steps."""

    teachers: int
    queries: int
    noise: ProvedNoise

    @property
    def deviation(self) -> float:
        """Of the noise on a count, in votes."""
        return self.noise.sigma / VOTE


def vote_noise(queries: int, classes: int, epsilon: Fraction, stated: Fraction) -> ProvedNoise:
    """The least that gives (ε, δ). Raises ValueError if no supported noise does."""
    return ProvedNoise.least(squared_sensitivity(queries), queries * classes, epsilon, stated)


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
    one = vote_noise(1, classes, epsilon, delta).sigma / VOTE  # it grows like √Q
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
    sizes = Sizes(teachers, queries, vote_noise(queries, classes, epsilon, delta))
    if sizes.deviation > teachers:
        raise ValueError(
            f"is too small: the noise on each count has a standard deviation of "
            f"{sizes.deviation:,.3g}, but there are only {teachers:,} teachers; raise it, use "
            "fewer queries, or use one_release"
        )
    return sizes


# ``method: {kind: pate}``: noisy votes of teachers, and a student that learns from them alone.

VOTES, QUERIES, TEACHERS, SCALE = "noisy_votes", "voted_rows", "teachers", "noise_scale"


class PateBuilder(MethodBuilder[Pate]):
    """Builds the method from a config whose method is ``pate``."""

    def build(self, setting: Setting) -> Method:
        """Let the teachers vote, or use the stored votes. Raises InputError."""
        method, classes = self.method, setting.loss.task.classes
        assert classes is not None
        if setting.stored is None:
            require_label_type(setting)
        setting = limited_to_users(setting)
        rows = public_rows(setting)
        sizes = self._sizes(rows, len(classes))
        points = _points(rows)

        def fit(votes: Any, queries: Any, rows: PublicRows, points: Any) -> Params:
            voted = probabilities(votes / VOTE, sizes.deviation, sizes.teachers)
            head = default_head(self.loaded)
            weights = fitted_votes(rows, points, queries, voted, method.seed, head)
            return linear_params(self.loaded, *weights, None)

        if setting.stored is None:
            asked = query_rows(points, sizes.queries, method.seed)
            # what can fail after the draw is tried before it, with noise alone
            noise = noisy(np.zeros((len(asked), len(classes)), np.int64), sizes.noise.sigma)
            own = replace(rows, vectors=rows.vectors[asked])
            fit(noise, np.arange(len(asked)), own, points[asked])
            true = true_classes(setting)
            teacher = parts(rows.units, sizes.teachers, method.seed)
            if rows.owners is not None:
                teacher = teacher[rows.owners]
            counts = votes(points, true, teacher, points[asked], len(classes))
            kept: Stored = {
                VOTES: noisy(counts * VOTE, sizes.noise.sigma),
                QUERIES: asked,
                TEACHERS: np.array(sizes.teachers),
                SCALE: np.array(sizes.noise.sigma),
            }
        else:
            kept = setting.stored

        def solve() -> Params:
            return fit(kept[VOTES], kept[QUERIES], rows, points)

        statement = self._statement(sizes, rows.units)
        return ClosedForm(solve=solve, statement=statement, keep=kept)

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

    def _statement(self, sizes: Sizes, units: int) -> Statement:
        method, noise, queries = self.method, sizes.noise, sizes.queries
        unit = "label" if method.max_examples_per_user is None else "user"
        return protected(
            self.loaded.config,
            epsilon=method.epsilon,
            delta=method.delta,
            mechanism=(
                f"{sizes.teachers:,} teachers, each fitted to the labels of its own rows, gave "
                f"each of {queries:,} public rows a vote; all {queries:,} × "
                f"{noise.coordinates // queries:,} counts got discrete Gaussian noise of standard "
                f"deviation {sizes.deviation:.4g} once; a {unit} changes one teacher, which moves "
                f"the counts by at most √{2 * queries:,} for any votes (Theorem 17)"
            ),
            details={
                "units": units,
                "teachers": sizes.teachers,
                "queries": queries,
                "steps_in_a_vote": VOTE,
                **noise.details(exact(method.epsilon)),
            },
            released=(
                "the noisy votes (kept.npz) and everything computed from them and from features, "
                "such as every fit",
            ),
            excess=Excess(*noise.excess(exact(method.epsilon))),
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


# Teachers and linear students.

PENALTIES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""A teacher chooses one of these, times the number of its rows."""
_COMPONENTS = 50  # to cluster by
_SAMPLE, _FOR_EACH = 10_000, 5  # rows to cluster, at least and for each query
_SURE = 1 - 1e-6


def query_rows(
    points: Float32[np.ndarray, "n d"], queries: int, seed: int
) -> Int64[np.ndarray, " q"]:
    """q ≤ n different rows of the points, in order: the nearest to the centres of k-means.

    If clusters are empty, for example because all rows are equal, other rows are taken at random.
    """
    random = np.random.default_rng(seed)
    sample = random.permutation(len(points))[: max(_SAMPLE, _FOR_EACH * queries)]
    near = principal_components(points[sample].astype(np.float64), _COMPONENTS)
    cluster = k_means(near, queries, seed)
    sizes = np.maximum(np.bincount(cluster, minlength=queries), 1)
    centres = np.zeros((queries, near.shape[1]))
    np.add.at(centres, cluster, near)
    away = np.square(near - (centres / sizes[:, None])[cluster]).sum(axis=1)
    order = np.lexsort((away, cluster))
    first = np.unique(cluster[order], return_index=True)[1]
    chosen = sample[order[first]]
    others = np.setdiff1d(sample, chosen)
    more = random.permutation(others)[: queries - len(chosen)]
    return np.sort(np.concatenate([chosen, more])).astype(np.int64)


def parts(units: int, teachers: int, seed: int) -> Int32[np.ndarray, " u"]:
    """[u] the teacher of each of u units, at random, evenly, without reading labels."""
    teacher = np.empty(units, np.int32)
    order = np.random.default_rng(seed).permutation(units)
    teacher[order] = np.arange(units) % teachers
    return teacher


def votes(
    points: Float32[np.ndarray, "n d"],
    labels: Int32[np.ndarray, " n"],
    teacher: Int32[np.ndarray, " n"],
    asked: Float32[np.ndarray, "q d"],
    classes: int,
) -> Int64[np.ndarray, "q k"]:
    """How many teachers answer each of q queries with each class.

    ``teacher`` numbers the teacher of each row; one without rows votes for the first class.
    A teacher's q answers depend on its own rows and labels alone: one vote per query.
    """
    one_hot, order = np.eye(classes), np.argsort(teacher, kind="stable")
    bounds = np.searchsorted(teacher[order], np.arange(teacher.max() + 2))
    counts, queries = np.zeros((len(asked), classes), np.int64), np.arange(len(asked))
    for start, end in pairwise(bounds):
        rows = order[start:end]
        counts[queries, answers(points[rows], one_hot[labels[rows]], asked)] += 1
    return counts


def answers(
    points: Float32[np.ndarray, "m d"],
    targets: Float64[np.ndarray, "m k"],
    asked: Float32[np.ndarray, "q d"],
) -> Int64[np.ndarray, " q"]:
    """The likeliest class of each query according to m rows; of equally likely ones, the first.

    Ridge regression to targets, the probabilities of k classes; the penalty is the one of least
    squared error when each row is predicted from the others (leave one out), which has a closed
    form.
    """
    if not len(points):
        return np.zeros(len(asked), np.int64)
    points = points.astype(np.float64)
    base = targets.mean(axis=0)
    u, values, _ = np.linalg.svd(points, full_matrices=False)
    squares = np.square(values)
    seen = u.T @ (targets - base)
    least, chosen = np.inf, 0.0
    for penalty in (share * len(points) for share in PENALTIES):
        kept = squares / (squares + penalty)
        own = np.minimum(np.square(u) @ kept, _SURE)  # a row's weight in its own prediction
        left = (targets - base - u @ (kept[:, None] * seen)) / (1 - own)[:, None]
        error = float(np.square(left).sum())
        if error < least:
            least, chosen = error, penalty
    weights = points.T @ (u @ (seen / (squares + chosen)[:, None]))
    return np.asarray(np.argmax(asked @ weights + base, axis=1), np.int64)


# Students: a linear model on public vectors, from noisy votes on a few rows. Reads no label.
#
# The votes on a row give a probability of each class: with noise of variance σ² and a winner that
# leads by m votes, the odds of two classes with noisy counts a and b are exp((a − b)·m/σ²). From
# these, every row gets its likeliest class, by a graph of nearest neighbours of all rows. Then a
# model is fitted to all rows.

LEAD = 0.5
"""By how many of all votes a winner leads, roughly."""
_MOST_ROWS = 20_000  # of a graph
_NEIGHBOURS, _COMPONENTS_STUDENT, _SHARPNESS = 10, 100, 3
_KEPT, _ITERATIONS = 0.95, 30
_CHUNK = 256


def probabilities(
    counts: Float64[np.ndarray, "q k"], deviation: float, teachers: int
) -> Float64[np.ndarray, "q k"]:
    """The probability of each class, given noisy counts of the votes of ``teachers`` teachers."""
    odds = counts * (LEAD * teachers / deviation**2)
    odds -= odds.max(axis=1, keepdims=True)
    likelihoods = np.exp(odds)
    return np.asarray(likelihoods / likelihoods.sum(axis=1, keepdims=True))


def fitted_votes(
    public: PublicRows,
    points: Float32[np.ndarray, "n d"],
    queries: Int64[np.ndarray, " q"],
    voted: Float64[np.ndarray, "q k"],
    seed: int,
    head: Head,
) -> tuple[Float32[np.ndarray, "p k"], Float32[np.ndarray, " k"]]:
    """Weights of the vectors' columns, and biases: they give logits.

    ``points`` are the vectors in the metric of the teachers; ``voted`` are the probabilities of the
    classes for the rows ``queries``.
    """
    rows = _with_others(queries, len(points), seed)
    classes = propagated(points[rows].astype(np.float64), voted)
    targets = Coded.one_hot(classes.astype(np.int32), voted.shape[1])
    shares = np.bincount(targets.codes, minlength=voted.shape[1]) / len(rows)
    vectors, groups = public.vectors[rows], public.groups
    return fitted_labels(
        label_sums(vectors, public.spectrum, targets, groups=groups, shares=shares), head
    )


def _with_others(queries: Int64[np.ndarray, " q"], n: int, seed: int) -> Int64[np.ndarray, " r"]:
    """The queries, followed by other random rows, up to the most rows of a graph."""
    others = np.setdiff1d(np.arange(n), queries)
    more = np.random.default_rng(seed).permutation(others)[: max(_MOST_ROWS - len(queries), 0)]
    return np.concatenate([queries, np.sort(more)])


def propagated(
    points: Float64[np.ndarray, "r d"], voted: Float64[np.ndarray, "q k"]
) -> Int64[np.ndarray, " r"]:
    """The likeliest class of each point, of which the first q were voted on.

    F ← α·S·F + (1 − α)·Y with S the normalized graph of nearest neighbours (learning with local and
    global consistency, Zhou et al. 2003). Y is divided by the root of each class's total in the
    votes, so that a frequent class does not spread over the rows of a rare one.
    """
    graph = neighbours(principal_components(points, _COMPONENTS_STUDENT))
    start = np.zeros((len(points), voted.shape[1]))
    start[: len(voted)] = voted / np.sqrt(np.maximum(voted.sum(axis=0), 1))[None, :]
    spread = start.copy()
    for _ in range(_ITERATIONS):
        spread = _KEPT * (graph @ spread) + (1 - _KEPT) * start
    return np.asarray(np.argmax(spread, axis=1), np.int64)


def neighbours(points: Float64[np.ndarray, "r d"]) -> csr_matrix:
    """[r, r] D^−½·A·D^−½ of the graph of nearest neighbours by angle; each side's choice counts."""
    sizes = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300)
    unit, r = (points / sizes).astype(np.float32), len(points)
    count = min(_NEIGHBOURS, r - 1)
    places, near = np.empty((r, count), np.int64), np.empty((r, count))
    for start in range(0, r, _CHUNK):
        cosines = unit[start : start + _CHUNK] @ unit.T
        own = np.arange(len(cosines))
        cosines[own, start + own] = -np.inf
        nearest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        places[start : start + _CHUNK] = nearest
        near[start : start + _CHUNK] = np.take_along_axis(cosines, nearest, axis=1)
    weights = np.maximum(near, 0).ravel() ** _SHARPNESS
    one_way = csr_matrix((weights, (np.repeat(np.arange(r), count), places.ravel())), (r, r))
    both = one_way.maximum(one_way.T)
    degrees = np.maximum(np.asarray(both.sum(axis=1)).ravel(), 1e-12)
    scale = 1 / np.sqrt(degrees)
    return csr_matrix(both.multiply(scale[:, None]).multiply(scale[None, :]))
