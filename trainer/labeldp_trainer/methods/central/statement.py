"""The privacy statement of private training in the central model."""

from typing import Any

from labeldp_trainer.config import Config
from labeldp_trainer.config.method import Central
from labeldp_trainer.dp_gradient.accounting import NoisePlan, excess_of_steps
from labeldp_trainer.dp_gradient.integer_sums import LONGEST, STEPS
from labeldp_trainer.dp_gradient.problem import StepConfig
from labeldp_trainer.methods.statement import Excess, Statement, protected

LIMITS = (
    "sampling and noise come from AES-256 in counter mode with a secret key, so the promise is "
    "computational",
    "tuning hyperparameters on the same labels is not counted",
)
_BATCHES = {
    "secret": "each of {units:,} {unit}s takes part with probability q = {rate:.6g} (Poisson "
    "sampling, amplified because batches stay secret)",
    "public": "each of {units:,} {unit}s takes part with probability q = {rate:.6g} (Poisson "
    "sampling, not amplified: batches may be known)",
    "partition": "{batch:,} of {units:,} {unit}s take part, each once per epoch (not amplified: "
    "batches may be known)",
}


def central_statement(
    whole: Config, method: Central, config: StepConfig, coordinates: int, rows: int
) -> Statement:
    """The promise of a run whose σ was calibrated for (ε, δ) and ``config.plan``.

    ``coordinates`` counts the entries of a gradient, ``rows`` the rows that take part.
    """
    plan, lattice = config.plan, config.lattice
    unit = "label" if method.user_column is None else "user"
    amplified = plan.batches == "secret"
    further: dict[str, Any] = {}
    if config.clipping == "label_free":
        further |= {"centre": config.centre, "radius_floor": config.radius_floor}
    if config.denoiser.endswith("conv"):
        further |= {"smoothing": config.smoothing, "tolerance": config.tolerance}
        if config.clipping == "standard":
            further["clip_hull"] = config.clip_hull
    return protected(
        whole,
        epsilon=method.epsilon,
        delta=method.delta,
        mechanism=_mechanism(config, unit),
        details={
            "units": plan.units,
            "noise_multiplier": config.noise_multiplier,
            "clip_norm": config.clip_norm,
            "noise": "discrete Gaussian",
            "coordinates": coordinates,
            "lattice_steps_of_clip_norm": STEPS,
            "largest_length_in_lattice_steps": LONGEST,
            "noise_scale_in_lattice_steps": lattice.sigma,
            "batches": plan.batches,
            "amplified": amplified,
            "sampling_rate": plan.rate,
            "batch_size": plan.batch,
            "max_batch": plan.max_batch,
            "truncation_probability": plan.truncation_probability,
            "steps": plan.steps,
            "times_a_unit_is_used": plan.epochs if plan.batches == "partition" else None,
            "clipping": config.clipping,
            "denoiser": config.denoiser,
            "projection": None if config.denoiser == "noop" else config.projection,
            "rows": rows,
            "label_range": method.label_range,
            **further,
        },
        released=(
            "the parameters after every step",
            "everything computed from these and from features",
        ),
        secret=(
            "the labels",
            "kept.npz, which holds the key of sampling and noise",
            "gradients without noise, and the loss on the training labels",
            "how long steps took",
            *(("which rows were in which batch",) if amplified else ()),
        ),
        excess=Excess(
            excess_of_steps(
                config.noise_multiplier, plan, method.epsilon, method.delta, coordinates
            )
        ),
        again=("", ", because it repeats steps with the same batches and noise"),
        limits=LIMITS,
    )


def _mechanism(config: StepConfig, unit: str) -> str:
    plan, sigma, clip = config.plan, config.noise_multiplier, config.clip_norm
    lattice = config.lattice
    who = _BATCHES[plan.batches].format(
        units=plan.units, unit=unit, rate=plan.rate, batch=plan.batch
    )
    cut = ""
    if plan.truncation_probability > 0:
        cut = (
            f", and samples larger than {plan.max_batch:,} are cut at random (probability "
            f"{plan.truncation_probability:.2g} per step, which ε includes)"
        )
    scaled = "scaled by public numbers and " if config.clipping == "label_free" else ""
    then = "" if config.denoiser == "noop" else f"; {config.denoiser} post-processes the noisy sum"
    return (
        f"in each of {plan.steps:,} steps {who}{cut}; the gradient of each {unit} is {scaled}"
        f"clipped to norm C = {clip:g} and rounded to integers of length at most "
        f"L = {LONGEST:,}, and the sum gets discrete Gaussian noise of scale "
        f"{lattice.sigma:,}, at least σ·L with σ = {sigma:.6g}{then}; ε comes from "
        f"{_accountant(plan)} for a replaced {unit} (sensitivity 2L)"
    )


def _accountant(plan: NoisePlan) -> str:
    if plan.batches == "secret" and plan.batch < plan.units:
        return "privacy loss distributions, always rounded up,"
    return "the exact curve of the Gaussian mechanism"
