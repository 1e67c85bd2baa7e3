"""Variances of terms from all answers together: of classes, and of terms that share columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float64, Int64
from scipy.linalg import eigh, solve_triangular
from scipy.optimize import minimize

from labeldp_trainer.interactions.evidence import NoisySums, Outputs, Uncertainty, log_likelihood
from labeldp_trainer.interactions.terms import Term
from labeldp_trainer.linear.sums import stable_root

_STEPS = 50
_MOST_DIRECTIONS, _MOST_CLASSES = 256, 100
_LEAST_SEEN = 1e-3  # of what is seen of the first direction
_LEAST = 1e-3  # of the largest variance of a combination: none is 0
_LEAST_NOISE = 1e-3  # of privacy, in a direction


def together(
    evidence: NoisySums,
    variances: Float64[np.ndarray, " w"],
    base: Float64[np.ndarray, " k"],
) -> NoisySums:
    """The evidence with combinations of classes as outputs.

    Args:
        evidence: of more than two classes.
        variances: of the columns of the design.
        base: shares of the classes.
    """
    if len(base) > _MOST_CLASSES:
        return evidence
    label = (np.diag(base) - np.outer(base, base)) / (base * (1 - base)).mean()
    seen, signal, privacy = _directions(evidence, variances)
    if not len(signal):
        return evidence
    own = privacy[:, None, None] * np.eye(len(base)) + (1 - privacy)[:, None, None] * label
    found = _covariance(seen, signal, own, np.diag(label.diagonal()))
    usual = np.average(own, axis=0, weights=signal)
    # combinations in which both coefficients and noise are uncorrelated
    prior, into = eigh(found, usual)
    length = np.linalg.norm(into, axis=0)  # so that the noise of privacy stays the same
    into, prior = into / length, prior / length**2
    noise = np.einsum("kj,kl,lj->j", into, label, into)
    outputs = Outputs(
        np.maximum(prior, _LEAST * prior.max()),
        np.maximum(noise, _LEAST * noise.max()),
        into,
        np.linalg.inv(into),
    )
    return replace(evidence, outputs=outputs)


def _directions(
    evidence: NoisySums, variances: Float64[np.ndarray, " w"]
) -> tuple[Float64[np.ndarray, "i k"], Float64[np.ndarray, " i"], Float64[np.ndarray, " i"]]:
    """Combinations of the statistics, of noise of variance 1: [i, K] what they are, and [i] the
    variance that coefficients of variance v have in them, and the part of noise that is privacy's.
    The constant is not in them."""
    label = evidence.usual_level.label
    seen, first, cross = evidence.whitened(label)
    scaled = cross[:, 1:] * np.sqrt(variances[1:], dtype=np.float32)[None, :]
    constant = first / np.linalg.norm(first)
    apart = scaled - np.outer(constant, constant @ scaled)
    signal, vectors = np.linalg.eigh((apart @ apart.T).astype(np.float64))
    kept = np.flatnonzero(signal > max(_LEAST_SEEN * signal[-1], 0.0))[::-1][:_MOST_DIRECTIONS]
    root = stable_root(evidence.noise_of(label))
    back = solve_triangular(root, vectors[:, kept], lower=True, trans="T")
    privacy = np.einsum("mi,mi->i", back, evidence.noise @ back)
    return vectors[:, kept].T @ seen, signal[kept], np.clip(privacy, _LEAST_NOISE, 1.0)


def _covariance(
    seen: Float64[np.ndarray, "i k"],
    signal: Float64[np.ndarray, " i"],
    noise: Float64[np.ndarray, "i k k"],
    start: Float64[np.ndarray, "k k"],
) -> Float64[np.ndarray, "k k"]:
    """Σ, where ``seen`` is N(0, signal·Σ + noise)."""
    found = start
    for _ in range(_STEPS):
        gain = np.linalg.solve(signal[:, None, None] * found + noise, found[None])
        gain *= np.sqrt(signal)[:, None, None]  # transposed: Σ and noise are symmetric
        mean = np.einsum("ilk,il->ik", gain, seen)
        known = np.einsum("ilk,lj,i->kj", gain, found, np.sqrt(signal))
        found = found + (mean.T @ mean - known) / len(signal)
        found = (found + found.T) / 2
    return np.asarray(found)


# The prior variances of the last fit: large main effects announce large interactions.
#
# Where noise hides most of a term, what was released says little of its variance, and there are
# many terms. So the variance of a pair or a triple is drawn to what the main effects of its columns
# let expect (effect heredity; Chipman 1996), and pairs as a whole, and triples, to a size of their
# own. All of it is post-processing of what was released.

_HEREDITY = 0.5  # how much of the logarithm of main effects an interaction has
_OF_A_TERM, _OF_A_SIZE = 1.4, 2.0  # standard deviations of logarithms of variances
_FURTHEST = 6.0  # standard deviations
_EVALUATIONS = 15  # of which further ones gain little


def variances_by_heredity(
    evidence: NoisySums,
    terms: Sequence[Term],
    term_of: Int64[np.ndarray, " w"],
    start: Float64[np.ndarray, " g"],
    constant: float,
) -> Float64[np.ndarray, " g"]:
    """[G] a prior variance for each term, of largest posterior density.

    The logarithm of a variance is normal around what is expected. For a main effect, that is the
    logarithm of ``start``. For an interaction, it is _HEREDITY times the mean logarithm of its
    columns' main effects, plus what interactions of its size share: so much that their mean
    variance is that of ``start``, and a normal number.
    """
    count, size = len(terms), np.array([term.size for term in terms])
    main = size == 1
    logs = np.log(np.maximum(start, 1e-9 * start.sum()))
    own = {t.columns[0]: log for t, log in zip(terms, logs, strict=True) if t.size == 1}
    least = min(own.values(), default=0.0)
    inherited = np.array([np.mean([own.get(c, least) for c in t.columns]) for t in terms])
    expected = np.where(main, logs, _HEREDITY * inherited)
    alike = [size == interactions for interactions in np.unique(size[~main])]
    for of in alike:
        expected[of] += np.log(start[of].mean() / np.exp(expected[of]).mean())
    # logarithms are linear in standard normal numbers: one of each term, then one of each size
    root = np.concatenate([_OF_A_TERM * np.eye(count), *(_OF_A_SIZE * of[None] for of in alike)])

    def loss(x: Float64[np.ndarray, " p"]) -> tuple[float, Float64[np.ndarray, " p"]]:
        value, slope = log_likelihood(evidence, term_of, np.exp(expected + x @ root), constant)
        return float(x @ x) / 2 - value, x - root @ slope

    first, ends = np.zeros(len(root)), [(-_FURTHEST, _FURTHEST)] * len(root)
    steps = {"maxfun": _EVALUATIONS}
    found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=ends, options=steps)
    return np.asarray(np.exp(expected + found.x @ root))


def expected_variances(
    uncertainty: Uncertainty,
    term_of: Int64[np.ndarray, " w"],
    variances: Float64[np.ndarray, " g"],
) -> Float64[np.ndarray, " g"]:
    """[G] the means of the prior variances, of which ``variances`` are the most likely ones: a
    prediction is less certain than if they were known.

    The logarithm of each is nearly normal. What was released tells of it half the sum of squares of
    the shares by which the variances of its coefficients have become smaller.
    """
    gone = np.einsum("mw,mw->w", uncertainty.gain, uncertainty.gain) / uncertainty.prior
    told = np.bincount(term_of[1:], np.square(gone[1:]), len(variances)) / 2
    return np.asarray(variances * np.exp(0.5 / (_OF_A_TERM**-2 + told)))
