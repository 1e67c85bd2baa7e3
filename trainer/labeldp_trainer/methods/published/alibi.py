"""``method: {kind: alibi}``: Laplace noise on one-hot labels and their posterior as soft labels.

With the noisy entries x̂ in lattice steps, Pr[x̂ | class c] ∝ L_c = e^(ε·x̂_c/S)
(``randomize.py``), and the posterior under a prior p is p_c·L_c/Σ p·L. Malek et al. (2021) use the
model's current predictions as prior, without a gradient through them. The cross-entropy with that
posterior has the same gradient as −ln Σ_c p_c·L_c, the negative log-likelihood of the noisy labels.
This is what is minimised here, so that early stopping has a loss to watch. All of this
post-processes x̂.

Measured on ten classes of images (``docs/measured/training-on-sets.md``): 11 to 13 points behind
sets in closed form at ε = 0.5, and ahead of them by 0.5 to 0.9 at ε = 2.
"""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.config import Alibi
from labeldp_trainer.methods.method import Fits, Setting
from labeldp_trainer.methods.minibatch import likelihood_loss, minibatch_method
from labeldp_trainer.methods.published.label_noise import (
    KEPT,
    Arrays,
    LabelNoiseBuilder,
    statement,
)
from labeldp_trainer.methods.published.lp_mst import softmax
from labeldp_trainer.methods.statement import Statement, written
from labeldp_trainer.methods.stepped import Stepped
from labeldp_trainer.methods.true_labels import true_classes
from labeldp_trainer.randomize import STEPS, WORD_BITS, NoisyOneHot, exact


class AlibiBuilder(LabelNoiseBuilder[Alibi]):
    """Builds the method from a config whose method is ``alibi``."""

    def drawn(self, setting: Setting, whole: Setting) -> Arrays:
        """Noisy one-hot labels."""
        randomizer, classes = NoisyOneHot(exact(self.method.epsilon)), setting.loss.task.outputs
        return {KEPT: randomizer.randomize(true_classes(setting), classes)}

    def expected(self, setting: Setting, stored: Arrays) -> Mapping[str, Fits]:
        """One entry per class."""
        return {KEPT: Fits("u", (setting.dataset.train.rows, setting.loss.task.outputs))}

    def trained(self, setting: Setting, kept: Arrays) -> Stepped:
        """Minibatches on noisy labels, or on their posterior."""
        method, noisy = self.method, kept[KEPT]
        uniform, epsilon = method.prior == "uniform", jnp.float32(method.epsilon)

        def per_example(outputs: jax.Array, x: jax.Array) -> jax.Array:
            return noisy_label_loss(outputs, x, epsilon)

        return minibatch_method(
            setting,
            posterior(noisy, method.epsilon) if uniform else noisy,
            _statement(setting, method),
            per_example=None if uniform else per_example,
            mixup=method.mixup,
            keep=kept,
        )


def noisy_label_loss(outputs: jax.Array, noisy: jax.Array, epsilon: jax.Array) -> jax.Array:
    """[b] −ln Σ_c softmax(outputs)_c·L_c, up to a constant, for noisy entries [b, K] in steps."""
    return likelihood_loss(outputs, noisy.astype(jnp.float32) * (epsilon / jnp.float32(STEPS)))


def posterior(noisy: NDArray[np.uint8], epsilon: float) -> NDArray[np.float32]:
    """[n, K] Pr[class | noisy entries] under a uniform prior."""
    return softmax(noisy, STEPS / epsilon).astype(np.float32)


def _statement(setting: Setting, method: Alibi) -> Statement:
    n, classes = setting.dataset.train.rows, setting.loss.task.outputs
    return statement(
        setting,
        epsilon=method.epsilon,
        mechanism=(
            f"each of {n:,} labels was written as {classes} entries 0 and 1, and discrete Laplace "
            f"noise of scale 2/ε = {2 / method.epsilon:.6g} was added to each entry, once; a label "
            f"changes two entries by 1 and spends ε = {written(method.epsilon)}"
        ),
        details={
            "epsilon_label": method.epsilon,
            "l1_sensitivity": 2,
            "noise_scale": 2 / method.epsilon,
            "lattice_steps_per_unit": STEPS,
            "word_bits": WORD_BITS,
            "classes": classes,
            "prior": method.prior,
        },
        released="the noisy one-hot labels",
    )
