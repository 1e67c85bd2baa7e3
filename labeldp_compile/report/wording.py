"""What fields of a certificate mean, in plain words (plain text, not HTML)."""

from __future__ import annotations

from typing import Any

from labeldp_compile.mechanisms.rr_on_bins import MAX_CERTIFIED_LABELS

LOSSES = {
    "squared": "noisy label loss: mean of ½ (output − label)²",
    "absolute": "noisy label loss: mean of |output − label|",
    "poisson": "noisy label loss: mean of output − label · ln output",
    "zero_one": "noisy label loss: share of changed labels",
}
CLASSES = {
    "unbiased": "that is right on average for every label",
    "max": "whose bias stays within the same budget",
    "penalty": "when bias is priced as the spec says",
    "any": "of any kind",
}
WORSE = {
    "unbiased": "no equally private way that is right on average for every value has {error}",
    "max": "no equally private way within the same limit on bias has {error}",
    "penalty": "no equally private way has {error} once bias is charged for as the spec says",
    "any": "no equally private way whatever has {error}",
}
_WITH_BOUND = ("optimal_unbiased", "rr_on_bins", "rr_with_prior", "rr_top_k")


def why_no_bound(certificate: dict[str, Any]) -> str:
    """Why a certificate states no lower bound on the loss."""
    mechanism, loss = certificate["mechanism"], certificate["utility"]["loss"]
    if loss == "poisson":
        return "labeldp proves lower bounds for the squared, absolute and 0-1 loss only"
    if mechanism not in _WITH_BOUND:
        return f"the mechanism {mechanism} comes without a lower bound on the loss"
    if mechanism != "optimal_unbiased" and certificate["labels"] > MAX_CERTIFIED_LABELS:
        return f"beyond {MAX_CERTIFIED_LABELS:,} labels the proof would outweigh the file"
    return "none could be proved for this loss, ε and domain"
