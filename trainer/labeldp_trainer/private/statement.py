"""What a private training promises, as data and in words."""

import json
from dataclasses import asdict, dataclass
from typing import Literal

from labeldp_trainer.private.accounting import Plan, calibrate, epsilon, lattice

FORMAT_VERSION = "1.0"

_MECHANISMS = {
    "secret": "Gaussian noise on sums over secret, Poisson-sampled batches",
    "public": "Gaussian noise on sums over Poisson-sampled batches that need not stay secret",
    "partition": "Gaussian noise on sums over batches that use each unit once an epoch",
}


@dataclass(frozen=True)
class Statement:
    """The promise of one run: computed together with its σ, so that they cannot disagree.

    `noise_multiplier` is σ: the sum gets noise of standard deviation σ·`clip`. `rate`, `steps`,
    `units`, `max_batch` are those of the plan; `truncation_probability` is that of one step.
    """

    adjacency: str
    mechanism: str
    amplified: bool
    noise_multiplier: float
    clip: float
    rate: float
    steps: int
    units: int
    max_batch: int
    truncation_probability: float
    epsilon: float
    delta: float
    released: tuple[str, ...]
    secret: tuple[str, ...]
    limits: tuple[str, ...]

    def to_json(self) -> str:
        """Return the statement as indented JSON with a `format_version`."""
        return json.dumps(
            {"format_version": FORMAT_VERSION, **asdict(self)}, ensure_ascii=False, indent=2
        )

    def in_words(self) -> str:
        """Return the statement as one paragraph."""
        rate = f"with probability {self.rate:.6g} each"
        if self.mechanism == _MECHANISMS["partition"]:
            rate = "once an epoch each"
        truncated = ""
        if self.truncation_probability > 0:
            truncated = (
                f" A sample of more than {self.max_batch:,} is cut to that size at random "
                f"(probability {self.truncation_probability:.2g} a step), which ε includes."
            )
        return (
            f"The training is (ε = {self.epsilon:.6g}, δ = {self.delta:g})-differentially private "
            f"when {self.adjacency}. In each of {self.steps:,} steps, {self.units:,} units take "
            f"part {rate}; their gradients are clipped to {self.clip:g} and summed, and Gaussian "
            f"noise of standard deviation {self.noise_multiplier:.6g} · {self.clip:g} is added."
            f"{truncated} Released: {', '.join(self.released)}. "
            f"Must stay secret: {', '.join(self.secret)}. Limits: {'; '.join(self.limits)}."
        )


def make_statement(
    plan: Plan,
    *,
    target_epsilon: float,
    delta: float,
    clip: float,
    unit: Literal["label", "user"] = "label",
    max_examples_per_user: int | None = None,
) -> Statement:
    """Calibrate σ for (ε, δ) and state the promise that it keeps.

    Raises ValueError if no σ reaches ε, or if `clip` is not positive.
    """
    if not clip > 0:
        raise ValueError(f"the clipping norm must be positive; it is {clip}")
    if (unit == "user") != (max_examples_per_user is not None):
        raise ValueError("max_examples_per_user belongs to unit = user, and only to it")
    sigma = calibrate(target_epsilon, plan, delta)
    adjacency = "one label is substituted; features and the number of examples are public"
    if unit == "user":
        adjacency = (
            f"all labels of one user are substituted (at most {max_examples_per_user} examples of "
            "a user are used, chosen without looking at labels); features, who owns which example "
            "and the number of users are public"
        )
    amplified = plan.batches == "secret"
    secret = ["the seed of sampling and noise", "gradients before the noise", "the training loss"]
    if amplified:
        secret += [
            "who was in which batch",
            "anything computed on a batch but the noisy sum",
            "how long single steps took",
        ]
    return Statement(
        adjacency=adjacency,
        mechanism=_MECHANISMS[plan.batches],
        amplified=amplified,
        noise_multiplier=sigma,
        clip=clip,
        rate=plan.rate,
        steps=plan.steps,
        units=plan.units,
        max_batch=plan.max_batch,
        truncation_probability=plan.truncation_probability,
        epsilon=target_epsilon,
        delta=delta,
        released=("the parameters after every step", "all that is computed from them and features"),
        secret=tuple(secret),
        limits=(
            "floating-point noise and sums",
            "JAX's generator, which is not cryptographic",
            "hyperparameters tuned on the same labels",
        ),
    )


def verify_statement(statement: Statement, plan: Plan) -> None:
    """Recompute ε from σ and the plan. Raises ValueError if it is more than the stated one."""
    real = epsilon(
        statement.noise_multiplier, plan, statement.delta, interval=lattice(statement.epsilon)
    )
    if not real <= statement.epsilon:
        raise ValueError(
            f"σ = {statement.noise_multiplier:g} gives ε = {real:g}, more than the stated "
            f"{statement.epsilon:g}"
        )
