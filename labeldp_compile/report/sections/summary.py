"""The first paragraph, in plain words, and the figures behind it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from labeldp_verify.certificate import PROVED
from labeldp_verify.forms import CategoricalDomain

from labeldp_compile.inspection import Decoded
from labeldp_compile.report.markup import table, text
from labeldp_compile.report.numbers import data, data_above, share_data
from labeldp_compile.report.standing import is_unbiased
from labeldp_compile.report.wording import WORSE, why_no_bound

_TINY_GAP = 1e-6
_FIGURES = (
    ("ε of a label: budget", "privacy.epsilon_label"),
    ("ε of a label: at most", "privacy.epsilon_label_bound"),
    ("ε of the prior", "privacy.epsilon_prior"),
    ("ε in total", "privacy.epsilon_total"),
    ("noisy label loss", "utility.noisy_label_loss"),
    ("its lower bound", "utility.loss_lower_bound"),
    ("largest bias", "utility.largest_bias"),
    ("number of labels", "labels"),
    ("number of outputs", "outputs"),
)


def summary(decoded: Decoded) -> list[str]:
    """How private, against whom, spent on what, how far from the best possible."""
    certificate = decoded.certificate
    sentences = [*_privacy(decoded), *_spending(certificate), *_error(decoded), _best(certificate)]
    return [f'<p class="lead">{" ".join(sentences)}</p>', *_figures(certificate)]


def _privacy(decoded: Decoded) -> list[str]:
    certificate, domain = decoded.certificate, decoded.domain
    column = text(certificate["label"]["column"])
    ratio = Fraction(certificate["exact"]["realised_ratio"])
    if isinstance(domain, CategoricalDomain):
        values = f"one of {data(domain.size, 9)} categories"
    else:
        values = f"{data(domain.min, 6)} to {data(domain.max, 6)}"
    return [
        f"This file replaces a person’s true value of <b>{column}</b> ({values}) by a random one.",
        "Whoever sees only the replacement (a team that trains on it, and everybody after them) "
        "and knows everything else about the person can learn no more of the true value than this: "
        "of two possible values, neither becomes more than "
        f"<b>{data_above(ratio, field='exact.realised_ratio')} times</b> as likely, compared with "
        "the other, as it was before.",
        "Those who hold the true values or the random numbers are not kept out.",
    ]


def _spending(certificate: dict[str, Any]) -> list[str]:
    privacy, prior = certificate["privacy"], certificate["prior"]
    label = data(privacy["epsilon_label"], field="privacy.epsilon_label")
    each = f"Each replacement spends ε = {label} of privacy"
    if prior["kind"] == "uniform":
        return [f"{each}; nothing else was spent, as all values are taken to be equally common."]
    if prior["kind"] == "public":
        return [f"{each}; nothing else was spent, as it is public how common each value is."]
    return [
        f"{each}; ε = {data(privacy['epsilon_prior'], field='privacy.epsilon_prior')} was spent "
        f"once, on a noisy count of how common each value is among {data(prior['rows'], 9)} "
        "records; a value that is in both has spent "
        f"{data(privacy['epsilon_total'], field='privacy.epsilon_total')} in all.",
    ]


def _error(decoded: Decoded) -> list[str]:
    utility = decoded.certificate["utility"]
    loss = utility["noisy_label_loss"]
    unbiased = is_unbiased(decoded)
    start = "Replacements are right on average, but one" if unbiased else "A replacement"
    wrong = []
    if not unbiased and utility["largest_bias"] is not None:
        worst = data(utility["largest_bias"], 3, field="utility.largest_bias")
        wrong = [
            "Replacements are not right on average: for some value the average of many is off by "
            f"{worst}."
        ]
    if utility["loss"] == "squared":
        return [f"{start} is typically off by {data(math.sqrt(2 * loss), 3)}.", *wrong]
    if utility["loss"] == "absolute":
        return [f"{start} is off by {data(loss, 3)} on average.", *wrong]
    if utility["loss"] == "zero_one":
        return [f"The value is changed in {share_data(loss)} of all cases.", *wrong]
    return [f"Their mean loss (Poisson log loss) is {data(loss)}.", *wrong]


def _best(certificate: dict[str, Any]) -> str:
    """How far from the best possible, or why that is not known."""
    utility = certificate["utility"]
    gap = utility["certified_gap"]
    if gap is None:
        reason = text(why_no_bound(certificate))
        return f"How close that is to the best possible is not known: {reason}."
    over = certificate["optimality"]["over"]
    worse = WORSE[over].format(error=_ERRORS[utility["loss"]])
    shown = data(gap, 2, field="utility.certified_gap")
    if gap <= _TINY_GAP:
        return f"That is the best possible: {worse} (the file proves it, to within {shown} of it)."
    return f"The file proves how good that is: {worse} by more than {shown} of it."


_ERRORS = {
    "squared": "a smaller mean squared error",
    "absolute": "a smaller mean error",
    "zero_one": "a smaller share of changed values",
}


def _figures(certificate: dict[str, Any]) -> list[str]:
    """Every headline number, its name in the certificate, and who says so."""
    rows = []
    for what, field in _FIGURES:
        value = certificate
        for key in field.split("."):
            value = value[key]
        if value is not None:
            shown = _shown(certificate, field, value)
            rows.append((what, shown, _by(field), f"<code>{field}</code>"))
    return table(
        "Key figures, as the certificate states them",
        ["figure", "value", "who says so", "field"],
        rows,
        left=True,
    )


def _shown(certificate: dict[str, Any], field: str, value: Any) -> str:
    if field != "privacy.epsilon_label_bound":
        return data(value, 9 if isinstance(value, int) else 7, field=field)
    return data_above(Fraction(certificate["exact"]["epsilon_label_bound"]), 7, field=field)


def _by(field: str) -> str:
    return "proved by the file" if field in PROVED else "only declared"
