"""Private training in the central model: ``dp_sgd`` and ``labeldp_pro``."""

import hashlib
import hmac
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config import Config, DpSgd, LabelDpPro
from labeldp_trainer.config.method import Central
from labeldp_trainer.data import array_digest
from labeldp_trainer.devices import Devices
from labeldp_trainer.discrete_gaussian.sample import secret_key
from labeldp_trainer.dp_gradient.accounting import (
    NoisePlan,
    calibrate_integers,
    excess_of_steps,
    padded_batch,
)
from labeldp_trainer.dp_gradient.integer_sums import LONGEST, STEPS
from labeldp_trainer.dp_gradient.integer_sums import Loss as ExampleLoss
from labeldp_trainer.dp_gradient.step import (
    GradientProblem,
    Randomness,
    StepConfig,
    StepDraws,
    StepReport,
    private_gradient,
)
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.losses import Loss
from labeldp_trainer.methods.method import (
    MethodBuilder,
    Setting,
    Stored,
    require_label_type,
    true_classes,
    true_numbers,
    user_rows,
)
from labeldp_trainer.methods.statement import Excess, Statement, protected
from labeldp_trainer.methods.stepped import Metrics, Stepped
from labeldp_trainer.models import Model, Params, count_parameters

_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Units:
    """Examples, or users with their examples.

    Attributes:
        x: a pytree of [units, …]; for users (a pytree of [units, examples, …], present).
        y: [units], for users [units, examples].
        examples: most examples of a unit: 1, or those of a user.
        rows: rows of the data that take part.
    """

    x: Any
    y: NDArray[Any]
    examples: int
    rows: int

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.y)


def make_units(setting: Setting, method: Central) -> Units:
    """The training data by unit. Raises InputError."""
    loaded, train = setting.loaded, setting.dataset.train
    require_label_type(setting)
    targets: NDArray[Any]
    if setting.loss.task.classes is not None:
        targets = true_classes(setting)
    else:
        ends = method.label_range or (-_LARGEST, _LARGEST)
        targets = true_numbers(setting, *ends).astype(np.float32)
    own = user_rows(loaded, train)
    if own is None:
        return Units(train.features, targets, 1, train.rows)
    rows, present = own
    x = jax.tree.map(lambda leaf: leaf[rows], train.features)
    return Units((x, present), targets[rows], rows.shape[1], int(present.sum()))


def make_problem(setting: Setting, method: Central) -> GradientProblem:
    """The loss of one example with the labels that span its gradients."""
    task = setting.loss.task
    labels: tuple[float, ...] = ()
    if task.classes is not None:
        labels = tuple(range(len(task.classes)))
    elif method.label_range is not None:
        labels = method.label_range
    loss = _example_loss(setting.model, setting.loss, method.label_range)
    return GradientProblem(loss, labels, users=method.user_column is not None)


def _example_loss(model: Model, loss: Loss, bounds: tuple[float, float] | None) -> ExampleLoss:
    """The loss of one example; with ``bounds``, one that has the gradient at clamped predictions.

    Beyond the label range the gradients of all labels point the same way, and clipping would make
    one vector of them: a hull that has lost the label.
    """

    def whole(params: Params, x: Any, y: jax.Array) -> jax.Array:
        outputs = model.apply(params, jax.tree.map(lambda leaf: leaf[None], x))
        if bounds is None:
            return loss.per_example(outputs, y[None])[0]
        f = loss.predictions(outputs)[0]
        clamped = jnp.clip(f, *(jnp.asarray(end, f.dtype) for end in bounds))
        return jax.lax.stop_gradient(loss.slope(clamped, y)) * f

    return whole


# What a private run keeps to itself: the key of its noise, σ, and how to recognise its labels.
#
# A resumed run does the steps after the last checkpoint again with the same noise. On other
# labels the same noise would cancel in the difference, so that it is refused: the folder keeps a
# keyed hash of the labels.


def kept_arrays(
    stored: Stored | None, labels: Any, calibrate: Callable[[], float]
) -> dict[str, NDArray[Any]]:
    """The kept arrays of a run: fresh secrets and the σ of ``calibrate``, or those ``stored``.

    ``noise_key`` is the key of sampling and noise, ``noise_multiplier`` σ, and ``labels_hash`` a
    hash of the labels under ``labels_key``. Raises RunFolderError if an interrupted run had other
    labels.
    """
    if stored is None:
        key = secrets.token_bytes(32)
        return {
            "noise_key": secret_key(),
            "noise_multiplier": np.array(calibrate()),
            "labels_key": np.frombuffer(key, np.uint8),
            "labels_hash": np.frombuffer(_hash(key, labels), np.uint8),
        }
    known = stored["labels_hash"].tobytes()
    if not hmac.compare_digest(known, _hash(stored["labels_key"].tobytes(), labels)):
        raise RunFolderError(
            "the run was started with other labels; the same noise on both would disclose the "
            "difference. Start another run"
        )
    return dict(stored)


def _hash(key: bytes, labels: Any) -> bytes:
    return hmac.new(key, array_digest(labels).encode(), hashlib.sha256).digest()


# The privacy statement of private training in the central model.

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


_PROJECTIONS = {"noop": None, "self_span": "conjugate gradients"}


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
    if config.denoiser.endswith("conv"):
        further |= {"smoothing": config.smoothing, "tolerance": config.tolerance}
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
            "denoiser": config.denoiser,
            "projection": _PROJECTIONS.get(config.denoiser, "quadratic program"),
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
    then = "" if config.denoiser == "noop" else f"; {config.denoiser} post-processes the noisy sum"
    return (
        f"in each of {plan.steps:,} steps {who}{cut}; the gradient of each {unit} is "
        f"clipped to norm C = {clip:g} and rounded to integers of length at most "
        f"L = {LONGEST:,}, and the sum gets discrete Gaussian noise of scale "
        f"{lattice.sigma:,}, at least σ·L with σ = {sigma:.6g}{then}; ε comes from "
        f"{_accountant(plan)} for a replaced {unit} (sensitivity 2L)"
    )


def _accountant(plan: NoisePlan) -> str:
    if plan.batches == "secret" and plan.batch < plan.units:
        return "privacy loss distributions, always rounded up,"
    return "the exact curve of the Gaussian mechanism"


# ``method: {kind: dp_sgd}`` and ``{kind: labeldp_pro}``: a private step, its noise calibrated.
#
# The published ``labeldp_pro`` projects noisy sums onto what gradients can be. Computing with a
# noisy sum is post-processing, so its promise is that of ``dp_sgd``. Measured on
# images with large learning rates (``benchmarks/notes/projections.md``): ``alt_conv`` with hulls of
# 256 was up to 3 points ahead of DP-SGD on MNIST at a true ε of 0.1 to 0.2, the more the longer
# both trained. It was level there on Fashion-MNIST, and 1 to 3 points behind on both at larger ε.

_DRAWN_BYTES = 1 << 26  # what the batches and noise of steps that are drawn together may take
_HULL_UNITS = 64


class CentralBuilder(MethodBuilder[DpSgd | LabelDpPro]):
    """Builds both methods from a config."""

    def build(self, setting: Setting) -> Stepped:
        """Steps with noise. Raises InputError."""
        method, devices = self.method, Devices.of(setting.loaded)
        units = make_units(setting, method)
        plan, steps_per_epoch = self._plan(units)
        problem = make_problem(setting, method)
        size = count_parameters(jax.eval_shape(setting.model.init, jax.random.key(0)))
        choices = self._choices(plan)
        kept = self._kept(setting, units, plan, size)  # takes seconds: after what may be refused
        config = StepConfig(plan, method.clip_norm, float(kept["noise_multiplier"]), **choices)
        randomness = Randomness(kept["noise_key"], config, size)

        def draw(key: jax.Array, first: int, count: int) -> StepDraws:
            # The loop's key comes from the public seed: no noise may depend on it.
            del key
            return devices.everywhere(randomness.steps(first, count))

        def gradient(
            params: Params, key: jax.Array, drawn: Any, arrays: Any
        ) -> tuple[Params, Metrics]:
            del key
            x, y = arrays
            estimate, report = private_gradient(config, problem, params, x, y, drawn)
            return estimate, _metrics(report, config)

        return Stepped(
            arrays=devices.everywhere((units.x, units.y)),
            steps_per_epoch=steps_per_epoch,
            examples_per_epoch=steps_per_epoch * plan.batch,
            draw=draw,
            steps_at_once=max(1, _DRAWN_BYTES // randomness.bytes_of_step),
            gradient=gradient,
            training_loss=None,
            statement=central_statement(self.loaded.config, method, config, size, units.rows),
            keep=kept,
            notes=self._notes(),
            repeats_noise=True,
            times_are_public=False,  # they follow what the noise is, too
        )

    def _plan(self, units: Units) -> tuple[NoisePlan, int]:
        training, method, n = self.loaded.config.training, self.method, units.count
        batch, most = training.batch_size, method.max_batch
        self.loaded.require_batch(n, "users")
        partition = method.batches == "partition"
        steps_per_epoch = math.ceil(n / batch) if partition else max(1, round(n / batch))
        steps = training.epochs * steps_per_epoch
        if partition:
            most = batch
        elif most is None:
            most = padded_batch(n, batch, steps, method.delta, method.microbatch)
        elif not batch <= most <= n:
            reason = f"must be between the batch size, {batch:,}, and the number of units, {n:,}"
            raise self.loaded.error(("method", "max_batch"), f"{reason}; it is {most:,}")
        return NoisePlan(n, batch, steps, most, method.batches), steps_per_epoch

    def _kept(self, setting: Setting, units: Units, plan: NoisePlan, size: int) -> dict[str, Any]:
        method = self.method

        def noise_multiplier() -> float:
            try:
                return calibrate_integers(method.epsilon, plan, method.delta, size)
            except ValueError as error:
                raise self.loaded.error(("method", "epsilon"), str(error)) from None

        try:
            return kept_arrays(setting.stored, (units.x, units.y), noise_multiplier)
        except RunFolderError as error:
            raise RunFolderError(f"{self.loaded.source}: cannot be resumed: {error}") from None

    def _choices(self, plan: NoisePlan) -> dict[str, Any]:
        """All but the noise. Raises InputError."""
        method, devices, n = self.method, Devices.of(self.loaded), plan.units
        microbatch = min(method.microbatch, plan.max_batch)
        choices = {
            "microbatch": math.ceil(microbatch / devices.count) * devices.count,
            "split": devices.split_if_even,
        }
        if not isinstance(method, LabelDpPro):
            return choices
        hull_units = min(_HULL_UNITS, n) if method.hull_units is None else method.hull_units
        if hull_units > n:
            reason = f"{hull_units:,} is more than the {n:,} units"
            raise self.loaded.error(("method", "hull_units"), reason)
        return choices | {
            "denoiser": method.denoiser,
            "hull_units": hull_units,
            "smoothing": method.smoothing,
            "tolerance": method.tolerance,
        }

    def _notes(self) -> tuple[str, ...]:
        if Devices.of(self.loaded).kind.startswith("cpu"):
            return ()
        return (
            "this run can be resumed only if its steps repeat bit by bit; on a GPU this needs "
            "XLA_FLAGS=--xla_gpu_deterministic_ops=true",
        )


def _metrics(report: StepReport, config: StepConfig) -> Metrics:
    """Functions of the noisy sum and of public data; none where batches must stay secret."""
    if config.plan.batches == "secret":
        return {}
    found = {"noisy_gradient_norm": report.noisy_norm}
    if config.denoiser != "noop":
        found["projection_distance"] = report.distance
        found["projection_certified"] = report.certified.astype(jnp.float32)
    return found
