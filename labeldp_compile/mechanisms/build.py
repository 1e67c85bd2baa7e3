"""From a mechanism's name to its builder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from labeldp_compile.mechanisms import randomized_response, rr_on_bins
from labeldp_compile.randomizer import Domain, WindowRandomizer
from labeldp_compile.randomizer.utility import Loss

Builder = Callable[[Domain, Sequence[int], Fraction, Loss, int | None], WindowRandomizer]

_BUILDERS: dict[str, Builder] = {
    "randomized_response": randomized_response.build,
    "rr_on_bins": rr_on_bins.build,
}


def build_randomizer(
    kind: str,
    domain: Domain,
    weights: Sequence[int],
    epsilon: Fraction,
    loss: Loss,
    word_bits: int | None = None,
) -> WindowRandomizer:
    """The ``epsilon``-DP randomizer of a mechanism, for the prior ``weights`` [k] and the loss.

    ``word_bits`` fixes the size of the random word (tests enumerate small ones); the default is
    the largest that fits.
    """
    return _BUILDERS[kind](domain, weights, epsilon, loss, word_bits)
