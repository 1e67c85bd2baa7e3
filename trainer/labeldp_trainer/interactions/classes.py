"""Of many classes: which ones go together.

What raises the probability of one class lowers that of others, and of a few in particular. So the
coefficients of a column of the design are not independent: θ ~ N(0, v·Σ), with the same Σ [K, K]
for all columns (an intrinsic model of coregionalization; Bonilla, Chai and Williams 2008). Σ is
found by expectation and maximisation from what was released, along directions in which the
statistics are independent, nearly. Then a few combinations of the classes hold most of what can be
learned, and the others are mostly noise. All of it is post-processing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float64
from scipy.linalg import eigh, solve_triangular

from labeldp_trainer.interactions.evidence import NoisySums
from labeldp_trainer.interactions.outputs import Outputs
from labeldp_trainer.linear.roots import stable_root

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
    """The same evidence, with combinations of classes as outputs.

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
