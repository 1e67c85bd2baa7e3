"""From sums over rows to a linear model: first the signal, then the head."""

import numpy as np
from jaxtyping import Float64

from labeldp_trainer.config.method import Head
from labeldp_trainer.linear.canonical import Link, unit_coordinates
from labeldp_trainer.linear.choice import Observed, least_loss
from labeldp_trainer.linear.sums import Posterior, Sums, posterior
from labeldp_trainer.linear.temperature import temperature

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
        sums_rows=lambda step: used[::step] * factors[::step, None],
        forward=lambda weights: unit @ weights,
        change=change,
        targets=sums.targets,
    )
    weights, offset = least_loss(observed)
    solved: Float64[np.ndarray, "d k"] = unit @ weights
    if sums.constant:
        solved[0] += offset
    return solved
