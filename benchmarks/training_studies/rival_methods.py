"""The methods of the study of rivals, all on the same public vectors, with linear models.

Nothing here adds noise of its own: gradients are those of ``dp_sgd`` (Theorem 7), sums those of
``one_release`` (Theorem 13), and private labels come from integer tables.
"""

import functools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from labeldp_learn.inversion import debiased_values
from labeldp_runtime import Randomizer
from labeldp_trainer.config import OneRelease
from labeldp_trainer.data.labels import Coded
from labeldp_trainer.data.users import rows_of_users
from labeldp_trainer.discrete_gaussian.noise import ProvedNoise, noisy
from labeldp_trainer.discrete_gaussian.sample import secret_key
from labeldp_trainer.dp_gradient.accounting import NoisePlan, calibrate_integers, padded_batch
from labeldp_trainer.dp_gradient.step import (
    GradientProblem,
    Randomness,
    StepConfig,
    private_gradient,
)
from labeldp_trainer.linear.fit import fitted_labels, label_sums
from labeldp_trainer.methods.corrections import (
    class_shares,
    corrected,
    debiased_numbers,
    rows_by_table,
)
from labeldp_trainer.one_release.plan import drawn, fitted_release
from labeldp_trainer.one_release.rows import (
    UNIT,
    PublicRows,
    Targets,
    Users,
    Weights,
    squared_sensitivity,
    user_counts,
)
from labeldp_verify.analysis import least_variance_inverse
from training_studies.rival_randomizers import (
    block_rr,
    private_shares,
    rp_with_prior,
    split_for_prior,
    vector_labels,
)

DELTA = 1e-5
STEPS, BATCHES = 100, 10  # of gradient descent: batches in an epoch


@dataclass(frozen=True)
class Rows:
    """What a method learns from.

    vectors [n, p] are whitened components, and ``spectrum`` [p] their variances before. Labels [n]
    are classes 0 … classes − 1, or whole numbers from 0 if ``classes`` is None, with ``ends`` of
    the label itself. ``owners`` [n] number users, of at most ``most`` rows each.
    """

    vectors: np.ndarray
    spectrum: np.ndarray
    labels: np.ndarray
    classes: int | None
    ends: tuple[int, int] | None
    owners: np.ndarray | None = None
    most: int = 1

    @property
    def count(self):
        """Labels of the domain."""
        return self.classes or self.ends[1] - self.ends[0] + 1

    @property
    def head(self):
        """That of the loss."""
        return "ridge" if self.classes is None else "softmax"

    def public(self):
        """For a release."""
        users = None
        if self.owners is not None:
            places = np.arange(len(self.owners))
            users = Users.of("user", self.most, user_counts(self.owners, places))
        return PublicRows(
            count=len(self.vectors),
            vectors=self.vectors,
            spectrum=self.spectrum,
            owners=self.owners,
            users=users,
        )

    def fitted(self, targets, shares):
        """Weights and biases from targets of labels that may be looked at."""
        sums = label_sums(self.vectors, self.spectrum, targets, shares=shares)
        return fitted_labels(sums, self.head)

    def of_numbers(self, values):
        """The same from numbers [n] that count from 0."""
        return self.fitted(Coded.numbers(values + self.ends[0]), None)


def no_privacy(rows, epsilon, choice):
    """The closed form on true labels."""
    if rows.classes is None:
        return rows.of_numbers(rows.labels.astype(float))
    shares = np.bincount(rows.labels, minlength=rows.classes) / len(rows.labels)
    return rows.fitted(Coded.one_hot(rows.labels.astype(np.int32), rows.classes), shares)


def one_release(rows, epsilon, choice):
    """``one_release``."""
    stated = {"kind": "one_release", "epsilon": float(epsilon), "delta": DELTA}
    if rows.classes is None:
        stated["label_range"] = rows.ends
    method, public = OneRelease.model_validate(stated), rows.public()
    classes = None if rows.classes is None else tuple(range(rows.classes))
    labels = rows.labels + (0 if rows.classes is not None else rows.ends[0])
    release = drawn(public, method, classes, "label", labels)
    return fitted_release(release, public, rows.head)


def private_labels(rows, epsilon, choice, artifact=None):
    """The product's own randomizer for training, in closed form; ε is divided among a user's."""
    path, found = artifact(epsilon / rows.most)
    labels = rows.labels + (0 if rows.classes is not None else rows.ends[0])
    private = Randomizer.load(path)(labels)
    parts, _ = rows_by_table(found, None, private)
    if rows.classes is None:
        return rows.fitted(Coded.numbers(debiased_numbers(found.table(0).domain, parts)[0]), None)
    order = range(rows.classes)
    return rows.fitted(corrected(parts, order, "backward"), class_shares(parts, order))


def vlp(rows, epsilon, choice):
    """VLP in closed form."""
    targets = vector_labels(rows.labels, rows.classes, epsilon / rows.most)
    values, codes = np.unique(targets, axis=0, return_inverse=True)
    shares = np.maximum(targets.mean(axis=0), 0) + 1e-9
    return rows.fitted(Coded(codes.astype(np.int32), values), shares / shares.sum())


def blocks(rows, epsilon, choice):
    """BlockRR with σ = 1 and one chosen class, debiased, in closed form."""
    own = epsilon / rows.most
    first, second = split_for_prior(own, rows.count, len(rows.labels))
    prior = private_shares(rows.labels, rows.classes, first)
    table = block_rr(prior, second)
    codes = table.drawn(rows.labels).astype(np.int32)
    inverse = least_variance_inverse(table.chances)
    if inverse is None:
        raise ArithmeticError("several classes have nearly the same outputs")
    return rows.fitted(Coded(codes, inverse), prior)


def rp(rows, epsilon, choice, debiased=False):
    """RPWithPrior with ``choice`` of the range as its distance; as it comes, or debiased."""
    first, second = split_for_prior(epsilon, rows.count, len(rows.labels))
    prior = private_shares(rows.labels, rows.count, first)
    outputs, table = rp_with_prior(prior, second, max(round(choice * rows.count), 1))
    values = outputs.astype(float)
    if debiased:
        values = debiased_values(table.chances, np.arange(rows.count), prior, 1 / len(rows.labels))
    return rows.of_numbers(values[table.drawn(rows.labels)])


def walr(rows, epsilon, choice):
    """WALR: Σ y·x with the same noise on each feature, released once; gradient descent on it.

    Features are the components before they are whitened, and the longest row has length 1. With
    more than two classes, the softmax. ``choice`` is the number of steps: more follow the noise.
    """
    public, p = rows.public(), len(rows.spectrum)
    metric = np.sqrt(np.concatenate([[rows.spectrum.mean()], rows.spectrum])).astype(np.float32)
    weights = Weights(np.arange(p + 1), metric, 1.0, 1.0)
    x = weights.used(rows.vectors) * metric
    longest = float(np.sqrt(np.square(x).sum(axis=1).max()))
    weights = replace(weights, floor=longest, scale=float(UNIT))
    found = public.sums(weights).lengths
    squared = squared_sensitivity(found.longest, classes=True)
    proved = ProvedNoise.least(squared, (p + 1) * rows.classes, epsilon, Fraction(DELTA))
    total = public.sums(weights, Targets(rows.classes, rows.labels)).labels
    sums = noisy(total, proved.sigma) / UNIT
    factors = weights.factors(public) * longest
    solved = _descended(x / longest, factors / factors.sum(), sums / factors.sum(), choice)
    solved *= metric[:, None] / longest
    return solved[1:], solved[0]


def _descended(x, share, goal, steps):
    """Weights after steps on Σ share·log Σ exp(xW) − ⟨W, goal⟩, as long as curvature allows."""
    x, share, goal = (jnp.asarray(part, jnp.float32) for part in (x, share, goal))
    rate = 2 / float(np.linalg.eigvalsh(np.asarray((x * share[:, None]).T @ x))[-1])

    def step(_, weights):
        return weights - rate * (x.T @ (share[:, None] * jax.nn.softmax(x @ weights)) - goal)

    found = jax.lax.fori_loop(0, steps, step, jnp.zeros_like(goal))
    return np.asarray(found, np.float64)


@functools.cache
def noise_multiplier(epsilon, plan, coordinates):
    """σ."""
    return calibrate_integers(epsilon, plan, DELTA, coordinates)


@functools.lru_cache(maxsize=4)
def stepper(plan, clip, classes, users):
    """A jitted step; σ is not in it, only in its draws."""

    def loss(weights, x, y):
        scores = x @ weights
        if classes is None:
            return 0.5 * jnp.square(scores[0] - y)
        return -jax.nn.log_softmax(scores)[y]

    problem = GradientProblem(loss, (), users=users)

    def step(weights, x, y, draws):
        return private_gradient(StepConfig(plan, clip, 1.0), problem, weights, x, y, draws)[0]

    return jax.jit(step)


def descent(rows, epsilon, choice, conditioned):
    """DP-SGD on the components, or with conditioning (Cond-DP) on whitened ones.

    X = UΣVᵀ has the gradient of whitened rows in the coordinates of C = VΣ⁻¹Vᵀ, up to a rotation,
    which changes no norm and no noise. Rows are scaled to a mean square of 1; that needs no label.
    ``choice``: rate, as a multiple of 1 over the largest eigenvalue, and C.
    """
    factor, clip = choice
    scales = np.ones_like(rows.spectrum) if conditioned else np.sqrt(rows.spectrum)
    scales = np.concatenate([[math.sqrt(np.square(scales).mean())], scales]).astype(np.float32)
    size = math.sqrt(float(np.square(scales).sum()))
    scales /= size
    x = np.concatenate([np.ones((len(rows.vectors), 1), np.float32), rows.vectors], axis=1) * scales
    outputs, y = rows.classes or 1, rows.labels.astype(np.int32)
    if rows.classes is None:  # from −1 to 1
        y = (rows.labels / (rows.count - 1) * 2 - 1).astype(np.float32)
    if rows.owners is not None:
        own = rows_of_users(rows.owners, rows.most, 0)
        x, y = (x[own.rows], own.present), y[own.rows]
    units = len(y)
    batch = units // BATCHES
    plan = NoisePlan(units, batch, STEPS, padded_batch(units, batch, STEPS, DELTA, 32))
    sigma = noise_multiplier(float(epsilon), plan, len(scales) * outputs)
    config = StepConfig(plan, clip, sigma)
    randomness = Randomness(secret_key(), config, len(scales) * outputs)
    step = stepper(plan, clip, rows.classes, rows.owners is not None)
    x, y = jax.tree.map(jnp.asarray, (x, y))
    weights = jnp.zeros((len(scales), outputs), jnp.float32)
    rate = factor / float(np.square(scales).max())
    for number in range(STEPS):
        own_rate = rate * 0.5 * (1 + math.cos(math.pi * number / STEPS))
        weights -= own_rate * step(weights, x, y, randomness.step(number))
    solved = np.asarray(weights) * scales[:, None]
    if not np.isfinite(solved).all():
        raise ArithmeticError("training diverged")
    if rows.classes is None:
        half = (rows.count - 1) / 2
        solved = solved * half
        solved[0] += half + rows.ends[0]
    return solved[1:], solved[0]


METHODS = {
    "no privacy": no_privacy,
    "one release": one_release,
    "private labels": private_labels,
    "DP-SGD": functools.partial(descent, conditioned=False),
    "Cond-DP": functools.partial(descent, conditioned=True),
    "WALR": walr,
    "VLP": vlp,
    "BlockRR": blocks,
    "RPWithPrior": rp,
    "RPWithPrior, debiased": functools.partial(rp, debiased=True),
}
CHOICES = {
    "DP-SGD": [(factor, 1.0) for factor in (1.0, 3.0, 10.0, 30.0)],
    "Cond-DP": [(factor, 1.0) for factor in (0.01, 0.03, 0.1, 0.3)],
    "WALR": [3, 30, 300, 1000],
    "RPWithPrior": [0.02, 0.05, 0.15],
    "RPWithPrior, debiased": [0.02, 0.05, 0.15],
}


def fits(name, rows):
    """Whether a method is made for such labels."""
    if name in ("WALR", "VLP", "BlockRR"):
        return rows.classes is not None
    return "RP" not in name or (rows.classes is None and rows.owners is None)
