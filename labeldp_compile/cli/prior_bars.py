"""The prior as a small bar chart in the terminal, and a hint if it looks like a mistake."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TextIO

from labeldp_verify.artifact import Table
from labeldp_verify.claims import Prior, PrivatePriorClaims
from labeldp_verify.forms import CategoricalDomain, Domain
from labeldp_verify.rounded import probability

from labeldp_compile.cli.output import can_show, clipped, padded, printable, width
from labeldp_compile.histogram_noise import NOISE, deviation

MOST_BARS = 12
_COLUMNS, _NAME_COLUMNS = 30, 24
_ALMOST_ALL = 0.99
_BLOCK = "█"


def prior_bars(decoded: Table, stream: TextIO) -> list[str]:
    """Lines of a chart of the certificate's prior; no lines if it is uniform."""
    prior = decoded.certificate.prior
    if prior.kind == "uniform" or not any(prior.weights):
        return []
    names, shares = _bars(decoded.domain, prior.weights)
    names = [clipped(printable(name), _NAME_COLUMNS) for name in names]
    columns, most = max(map(width, names)), max(shares)
    block = _BLOCK if can_show(_BLOCK, stream) else "#"
    return [
        f"{_title(prior)}:",
        *(
            f"  {padded(name, columns)}  {probability(share, 1, '%'):>6}  "
            f"{block * round(_COLUMNS * share / most)}"
            for name, share in zip(names, shares, strict=True)
        ),
    ]


def prior_hints(decoded: Table) -> list[str]:
    """A line if nearly all labels are the same: most often the spec does not fit the data."""
    domain, weights = decoded.domain, decoded.certificate.prior.weights
    total, largest = sum(weights), max(range(len(weights)), key=weights.__getitem__)
    if decoded.certificate.prior.kind == "uniform" or weights[largest] < _ALMOST_ALL * total:
        return []
    label = clipped(printable(str(domain.listed[largest])), _NAME_COLUMNS)
    is_default = domain.default is not None and domain.labels()[largest] == domain.default
    which = "the default for unknown values" if is_default else "one label"
    asked = (
        "check that the categories are spelled as in the data"
        if isinstance(domain, CategoricalDomain)
        else "check the column and the range of its labels"
    )
    share = probability(weights[largest] / total, 1, "%")
    return [f"hint: {share} of the prior is on {label}, {which}: {asked}"]


def _title(prior: Prior) -> str:
    """Where the shares come from, and how much noise they have."""
    if not isinstance(prior, PrivatePriorClaims):
        return "the prior, as declared"
    title = "the noisy prior, as declared"
    if prior.mechanism != NOISE or not prior.rows:
        return title
    rows = deviation(prior.scale)
    share = f"{rows / prior.rows:.2%} of all {prior.rows:,}"
    return f"{title}; each count got noise with an sd of {rows:.3g} rows, {share}"


def _bars(domain: Domain, weights: Sequence[int]) -> tuple[list[str], list[float]]:
    """Categories, the most likely first; numbers in order, with neighbours joined."""
    total, k = sum(weights), domain.size
    if isinstance(domain, CategoricalDomain):
        order = sorted(range(k), key=lambda i: -weights[i])
        shown = order if k <= MOST_BARS else order[: MOST_BARS - 1]
        names = [str(domain.values[i]) for i in shown]
        shares = [weights[i] / total for i in shown]
        if len(shown) < k:
            names.append(f"{k - len(shown):,} others")
            shares.append(max(1 - sum(shares), 0.0))
        return names, shares
    edges = [round(i * k / min(k, MOST_BARS)) for i in range(min(k, MOST_BARS) + 1)]
    runs = list(pairwise(edges))
    shares = [sum(weights[first:last]) / total for first, last in runs]
    return [_run(domain, first, last - 1) for first, last in runs], shares


def _run(domain: Domain, first: int, last: int) -> str:
    ends = [f"{domain.listed[index]:g}" for index in (first, last)]
    return ends[0] if first == last else f"{ends[0]} … {ends[1]}"
