"""Fits of linear models: the signal in sums over rows first, then the head.

Labels that may be looked at have sums of their own here; those of a release are its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64
from scipy.linalg import solve_triangular
from scipy.sparse import csr_matrix

from labeldp_trainer.config.method import Head
from labeldp_trainer.data.labels import Coded
from labeldp_trainer.linear.choice import (
    Link,
    Observed,
    least_loss,
    temperature,
    unit_coordinates,
    weighted_gram,
)
from labeldp_trainer.linear.sums import (
    Posterior,
    Sums,
    of_groups,
    posterior,
    stable_root,
    with_constant,
)

_MOST_SCORES = 1 << 23


def fitted(sums: Sums, head: Head) -> Float64[np.ndarray, "d k"]:
    """[d, k] weights of the used columns: they give logits, means, or logarithms of means
    (Poisson).

    Deterministic; reads no label that may not be looked at.
    """
    found = posterior(sums)
    # what the statistic would be without noise, and with the metric taken out of its rows
    clean = sums.cross @ found.mean + sums.total[:, None] * sums.base[None, :]
    clean = clean / sums.metric[:, None]
    if head != "ridge":
        return _least_loss(head, sums, found, clean)
    solved = found.mean.copy()
    if sums.constant:
        solved[0] += sums.base
    if not sums.classes:
        return solved
    used, factors = sums.used(), sums.factors()
    step = -(-len(used) * solved.shape[1] // _MOST_SCORES)  # a regular sample is enough
    share = factors[::step] * np.float32(factors.sum() / factors[::step].sum())
    scores = (used[::step] @ solved).astype(np.float32)
    agreement = float((solved * clean).sum())
    return solved * temperature(scores, np.zeros(solved.shape[1]), share, agreement)


def _least_loss(
    link: Link, sums: Sums, found: Posterior, clean: Float64[np.ndarray, "d k"]
) -> Float64[np.ndarray, "d k"]:
    """From S with the metric taken out of its rows: u = w·x."""
    used, factors, metric = sums.used(), sums.factors(), sums.metric[:, None]
    if sums.every > 1:
        used, factors = _like_all(used, factors, sums.cross / metric, constant=sums.constant)
    noise = sums.noise if sums.classes else found.noise
    unit = unit_coordinates(used, factors)

    def change(
        noise: Float64[np.ndarray, "d k"],
    ) -> tuple[Float64[np.ndarray, "r k"], tuple[Float64[np.ndarray, "r k"]]]:
        return unit.T @ noise, (unit.T @ (sums.cross @ found.response(metric * noise) / metric),)

    observed = Observed(
        link=link,
        rows=used @ unit.astype(np.float32),
        factors=factors,
        sums=clean[0] if sums.constant else None,
        noise=noise / (metric * metric.T),
        seen=unit.T @ (sums.statistic / metric),
        goals=(unit.T @ clean,),
        floor=float(found.noise[0, 0]) ** 0.5 / float(sums.metric[0]),
        # a sum over the sample of a table then has as much noise as one over all rows
        sums_rows=lambda step: used[::step] * factors[::step, None] / np.float32(sums.every**0.5),
        forward=lambda weights: unit @ weights,
        change=change,
        targets=sums.targets,
    )
    weights, offset = least_loss(observed)
    solved: Float64[np.ndarray, "d k"] = unit @ weights
    if sums.constant:
        solved[0] += offset
    return solved


_JITTER = 1e-6  # of the mean square of a column: where hardly any row is, nothing is moved


def _like_all(
    used: Float32[np.ndarray, "s d"],
    factors: Float32[np.ndarray, " s"],
    gram: Float64[np.ndarray, "d d"],
    *,
    constant: bool,
) -> tuple[Float32[np.ndarray, "s d"], Float32[np.ndarray, " s"]]:
    """Rows of a sample, moved a little: Σ w·xᵀx, and Σ w·x if a column is 1, are those of all rows.

    The statistic is one of all rows. A model that reproduces it on a sample as it is would be
    further off than one of the labels of the sample alone.
    """
    own = weighted_gram(used, factors)
    if constant:
        share = gram[0, 0] / own[0, 0]
        own, factors = share * own, np.float32(share) * factors
    jitter = _JITTER * float(np.trace(gram)) / len(gram) * np.eye(len(gram))
    before, after = (stable_root((each + each.T) / 2 + jitter) for each in (own, gram))
    return used @ solve_triangular(before.T, after.T).astype(np.float32), factors


# Sums over labels that are already private, or need no privacy: all rows have equal weight.
#
# An unbiased or debiased private label t̂ equals the true one on average. So Σ x ⊗ t̂ is the
# statistic of the true labels plus noise, whose variance is estimated from the labels themselves.
# t̂ is a function of the private label o, so Σ x ⊗ t̂ = Σ_o (Σ x of the rows with o) ⊗ t̂(o). This
# way, memory never holds n × k numbers.

_CHUNK = 8192
_NOISELESS = 1e-3  # least noise, as a share of the variance of targets
_LEAST = 1e-12  # of the size of targets
_EVENLY = 0.01  # share of labels spread over all classes: a class that seems empty may have some


def fitted_labels(
    sums: Sums, head: Head
) -> tuple[Float32[np.ndarray, "p k"], Float32[np.ndarray, " k"]]:
    """Weights of the vectors' columns, and biases: they give logits, numbers, or logarithms of
    means."""
    solved = fitted(sums, head)
    return solved[1:].astype(np.float32), solved[0].astype(np.float32)


LabelMoments = tuple[
    Float64[np.ndarray, "d d"], Float64[np.ndarray, " d"], Float64[np.ndarray, "d k"]
]
"""Σ x·xᵀ, Σ x and Σ x ⊗ t over rows x, of which the first column is 1."""
OfVectors = Callable[[Float32[np.ndarray, "b p"], slice], LabelMoments]
Streamed = tuple[Int64[np.ndarray, " s"], Callable[[OfVectors], Iterable[LabelMoments]]]
"""The numbers of the rows of a sample, and what gives the sums of some rows after others."""


def label_sums(
    vectors: Float32[np.ndarray, "s p"],
    spectrum: Float64[np.ndarray, " p"] | None,
    targets: Coded,
    *,
    groups: Int32[np.ndarray, " p"] | None = None,
    shares: Float64[np.ndarray, " k"] | None,
    added: float = 0.0,
    streamed: Streamed | None = None,
) -> Sums:
    """The statistic of n targets of k numbers, and its noise: what a first fit leaves unexplained.

    Debiased labels have the same noise for a rare class as for a frequent one, but not the same
    signal: a class's signal is at most the variance p·(1 − p) of its one-hot entry.

    ``groups`` are the numbers of the representations that columns are from. ``shares`` are
    estimates of the classes' shares; None for a regression. ``added`` is about the mean variance
    of a target that comes from randomizing labels, which no features explain. With ``streamed``,
    the vectors are those of a sample.
    """
    (s, p), (n, k) = vectors.shape, (len(targets), targets.rows.shape[1])
    sampled = targets
    gram, total, statistic = _moments(vectors if streamed is None else vectors[:0], targets)
    if streamed is not None:
        sampled = targets.part(streamed[0])
        for of_rows in streamed[1](lambda own, rows: _moments(own, targets.part(rows))):
            for whole, part in zip((gram, total, statistic), of_rows, strict=True):
                np.add(whole, part, out=whole)
    seen_share = np.bincount(targets.codes, minlength=len(targets.rows)) / n
    centre = seen_share @ targets.rows
    base, own = centre, np.ones(k)
    if shares is not None:
        base = (1 - _EVENLY) * shares + _EVENLY / k
        own = base * (1 - base)
    square = float(seen_share @ np.square(targets.rows - base).mean(axis=1))
    least = _LEAST * (1 + float(seen_share @ np.square(targets.rows).mean(axis=1)))
    square = max(square, least)  # labels may be all alike
    sums = Sums(
        statistic=statistic,
        cross=gram,
        total=total,
        noise=np.zeros_like(gram),
        residual=square * gram,
        unexplained=1.0,
        spectrum=with_constant(spectrum, p),
        groups=of_groups(groups, p),
        metric=np.ones(p + 1),
        constant=True,
        variance=square if shares is None else float(own.mean()),
        base=base,
        scales=own / own.mean(),
        classes=shares is not None,
        used=lambda: _with_one(vectors),
        factors=lambda: np.full(s, n / s, np.float32),
        every=n / s,
        targets=sampled,
        between=(min(max(added / square, _NOISELESS), 1.0), 1.0),
    )
    left = 1 - _explained(sums) / (n * k * square)
    return dataclasses.replace(sums, unexplained=min(max(left, sums.between[0]), 1.0))


def _moments(vectors: Float32[np.ndarray, "b p"], targets: Coded) -> LabelMoments:
    d = vectors.shape[1] + 1
    gram, total, statistic = np.zeros((d, d)), np.zeros(d), np.zeros((d, targets.rows.shape[1]))
    for start in range(0, len(vectors), _CHUNK):
        x = _with_one(vectors[start : start + _CHUNK])
        gram += x.T @ x
        total += x.sum(axis=0, dtype=np.float64)
        seen, which = np.unique(targets.codes[start : start + _CHUNK], return_inverse=True)
        statistic += _sums_by_code(x, which, len(seen)).T @ targets.rows[seen]
    return gram, total, statistic


def _sums_by_code(
    x: Float32[np.ndarray, "b d"], which: Int32[np.ndarray, " b"], count: int
) -> Float64[np.ndarray, "u d"]:
    """Σ x of the rows with each code 0 … u − 1."""
    rows = np.arange(len(x))
    members = csr_matrix((np.ones(len(x)), (which, rows)), shape=(count, len(x)))
    return members @ x


def _explained(sums: Sums) -> float:
    """How much a fit reduces the sum of squares of all targets minus their base.

    Σ‖t‖² − Σ‖t − xB‖² = 2·⟨B, Σ x ⊗ t⟩ − ⟨B, Σ xxᵀ·B⟩.
    """
    found = posterior(sums).mean
    goal = sums.statistic - sums.total[:, None] * sums.base[None, :]
    return float((found * (2 * goal - sums.cross @ found)).sum())


def _with_one(vectors: Float32[np.ndarray, "b p"]) -> Float32[np.ndarray, "b p+1"]:
    return np.concatenate([np.ones((len(vectors), 1), np.float32), vectors], axis=1)
