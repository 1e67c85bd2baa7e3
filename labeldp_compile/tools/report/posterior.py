"""What an observer learns from one output: Bayes' rule with the certificate's prior."""

import math
from dataclasses import dataclass

import numpy as np
from labeldp_verify.analysis import Floats, columns, likely_outputs, value
from labeldp_verify.artifact import Table
from labeldp_verify.forms import Output
from labeldp_verify.reading.usefulness import sample

MAX_OUTPUTS, MAX_BINS = 101, 120
_SHOWN_NOISE = 0.99
_ALMOST = math.nextafter(1, 0)  # of a belief that is not certain, though the nearest float is


@dataclass(frozen=True)
class Seen:
    """What an observer learns from one output.

    Attributes:
        value: the output.
        probability: of the output, under the prior.
        ratio: the largest Pr[output | label] over the smallest: the factor by which the odds
            between two labels can change.
        belief: [bins] the mean posterior probability of the labels in each.
        likeliest: index of the label with the largest posterior; ``before`` and ``after`` are its
            probabilities.
        risen: first, last and number of the indices of labels that became likelier.
    """

    value: Output
    probability: float
    ratio: float
    belief: Floats
    likeliest: int
    before: float
    after: float
    risen: tuple[int, int, int]


@dataclass(frozen=True)
class Posteriors:
    """Several outputs, in their order, on bins of neighbouring labels.

    Attributes:
        starts: [bins + 1] first label index of each bin, and k.
        prior: [bins] the mean prior probability of the labels in each bin.
        seen: the outputs.
    """

    starts: list[int]
    prior: Floats
    seen: list[Seen]


def prior_of(decoded: Table) -> Floats:
    """[k] the certificate's weights as probabilities."""
    weights = decoded.certificate.prior.weights
    total = sum(weights)
    return np.array([weight / total for weight in weights])


def prior_shares(decoded: Table, starts: list[int]) -> Floats:
    """[bins] the mean prior probability of the labels in each bin."""
    return _means(prior_of(decoded), starts)


def bin_starts(labels: int, most: int = MAX_BINS) -> list[int]:
    """First index of each of at most ``most`` bins with equally many labels, and k.

    The last bin may be smaller, so bins are shown by the mean of their labels.
    """
    return [*range(0, labels, -(-labels // most)), labels]


def posteriors(decoded: Table, most: int = MAX_OUTPUTS) -> Posteriors:
    """Posteriors of at most ``most`` outputs, evenly spaced among the likely ones."""
    r, prior = decoded.randomizer, prior_of(decoded)
    starts = bin_starts(decoded.domain.size)
    first, last = likely_outputs(r, _SHOWN_NOISE)
    seen = []
    outputs = [first + i for i in sample(last - first + 1, most)]
    for output, likelihood in zip(outputs, columns(r, outputs), strict=True):
        together = prior * likelihood
        total = float(together.sum())
        belief = together / total
        best = int(belief.argmax())
        risen = np.flatnonzero(likelihood > total * (1 + 1e-9))
        span = (int(risen[0]), int(risen[-1]), len(risen)) if len(risen) else (0, 0, 0)
        seen.append(
            Seen(
                value=value(r, output),
                probability=total,
                ratio=float(likelihood.max() / likelihood.min()),
                belief=_means(belief, starts),
                likeliest=best,
                before=float(prior[best]),
                after=min(float(belief[best]), 1.0 if (together > 0).sum() == 1 else _ALMOST),
                risen=span,
            )
        )
    return Posteriors(starts, prior_shares(decoded, starts), seen)


def most_telling(found: Posteriors) -> int:
    """The index of the output that raises the probability of a label most."""
    return max(range(len(found.seen)), key=lambda i: found.seen[i].after - found.seen[i].before)


def _means(numbers: Floats, starts: list[int]) -> Floats:
    return np.add.reduceat(numbers, starts[:-1]) / np.diff(starts)
