"""The prior as a small bar chart in the terminal, and a hint if it looks like a mistake."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TextIO

from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.claims import Prior, PrivatePriorClaims
from labeldp_verify.forms import CategoricalDomain, Domain
from labeldp_verify.printable import at_most, probability

from labeldp_compile.cli.command import can_show, clipped, padded, text_table, width
from labeldp_compile.prior.discrete_laplace import NOISE, deviation
from labeldp_compile.report.facts import overview

SHOWN = 60
_GROUP_COLUMNS = 44


def group_table(decoded: Artifact, shown: int = SHOWN) -> list[str]:
    """A line for each table. Of many tables, those with most rows, and that of all other rows."""
    facts = overview(decoded)
    numeric = facts[0].bias_in_range is not None
    rows = facts
    if len(facts) > shown + 1:  # a line that says so is as long as one more group
        by_rows = sorted(facts[:-1], key=lambda one: (-one.rows, one.table))
        rows = [*by_rows[: shown - 1], facts[-1]]
    header = ["group", "rows", "outputs", "ε of a label", "loss", *(["bias"] if numeric else [])]
    lines = text_table(
        header,
        [
            [
                clipped(one.name, _GROUP_COLUMNS),
                f"{one.rows:,}",
                f"{one.outputs:,}",
                f"≤ {at_most(one.epsilon_bound)}",
                f"{one.loss:.6g}",
                *([] if one.bias_in_range is None else [at_most(one.bias_in_range, 3)]),
            ]
            for one in rows
        ],
    )
    if len(rows) < len(facts):
        lines.append(f"{len(facts) - len(rows):,} more groups, each with fewer rows")
    return lines


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
    names = [clipped(name, _NAME_COLUMNS) for name in names]
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
    label = clipped(str(domain.listed[largest]), _NAME_COLUMNS)
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
