"""``labeldp ledger total``: the total ε of one user's labels in several artifacts."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from labeldp_verify import Budget
from labeldp_verify.analysis import MAX_LABELS_PER_USER
from labeldp_verify.artifact import Artifact
from labeldp_verify.claims import person_epsilon
from labeldp_verify.opening import open_artifact
from labeldp_verify.printable import at_most

from labeldp_compile.cli.command import clipped, show, text_table, verified
from labeldp_compile.cli.options import decimal_of
from labeldp_compile.composition import Composition, compose
from labeldp_compile.errors import InputError

FORMAT_VERSION = "1.0"
_LEAST_DELTA = Decimal("1e-12")
_NAME_COLUMNS = 60


@dataclass(frozen=True)
class _Use:
    """How many labels of the user the artifact of this file randomizes."""

    file: Path
    labels: int
    decoded: Artifact

    def epsilon(self, part: str) -> Fraction:
        """ε₁ (``prior``) or ε₂ (``label``), as the certificate states it."""
        return Fraction(getattr(self.decoded.certificate.exact, f"epsilon_{part}"))

    @property
    def bounds_prior(self) -> bool:
        """Whether its prior counted no more labels of one person than are counted here."""
        person = self.decoded.certificate.person
        return person is not None and person.labels_per_person <= self.labels


def print_total(
    files: tuple[str, ...], labels: int | None, delta: str, *, as_json: bool, budget: Budget
) -> None:
    """Verify FILEs, each FILE or FILE:L, and print the total ε of a user's labels in them.

    Raises DoesNotHoldError if one does not verify, and InputError for what cannot be read.
    """
    if labels is not None and labels > MAX_LABELS_PER_USER:
        raise InputError(f"--labels-per-user: a user has 1 … {MAX_LABELS_PER_USER:,} labels")
    at = _delta(delta)
    named = [_split(text, labels) for text in files]
    uses = []
    for file, count in named:
        with verified(file):
            decoded = open_artifact(file, budget)
        uses.append(_Use(file, count or _certified(file, decoded), decoded))
    composition = compose([use.decoded.tables for use in uses], [use.labels for use in uses])
    document = _document(uses, composition, at)
    show(as_json, lambda: document, lambda: _in_words(document))


def _delta(text: str) -> Decimal:
    delta = decimal_of("--delta", text)
    if not _LEAST_DELTA <= delta < 1:
        raise InputError(f"--delta: {text} is not between {_LEAST_DELTA:e} and 1")
    return delta


def _certified(file: Path, decoded: Artifact) -> int:
    """The labels of one user that the certificate states. Raises InputError if it states none."""
    stated = person_epsilon(decoded.certificate)
    if stated is None:
        raise InputError(
            f"{file}: its certificate states no labels_per_user, and no labels_per_person: say how "
            "many labels a user has with --labels-per-user L, or FILE:L"
        )
    return stated.labels


def _split(text: str, labels: int | None) -> tuple[Path, int | None]:
    """FILE:L or FILE. If a file exists whose name ends in :L, that file is meant."""
    name, colon, number = text.rpartition(":")
    if colon and number.isascii() and number.isdigit() and not Path(text).exists():
        if not 1 <= int(number[:9]) <= MAX_LABELS_PER_USER or len(number) > 9:
            raise InputError(f"{text}: a user has 1 … {MAX_LABELS_PER_USER:,} labels")
        return Path(name), int(number)
    return Path(text), labels


def _document(uses: list[_Use], composition: Composition, delta: Decimal) -> dict[str, Any]:
    found = composition.epsilon(delta)
    prior = sum((use.labels * use.epsilon("prior") for use in uses), Fraction(0))
    pure = sum((use.labels * use.epsilon("label") for use in uses), Fraction(0))
    if found is not None and found >= pure:
        found = None
    return {
        "format_version": FORMAT_VERSION,
        "files": [
            {
                "file": str(use.file),
                "name": use.decoded.certificate.name,
                "labels_per_user": use.labels,
                "epsilon_label": float(use.epsilon("label")),
                "epsilon_pure": float(use.labels * use.epsilon("label")),
                "epsilon_prior": float(use.labels * use.epsilon("prior")),
            }
            for use in uses
        ],
        "labels_per_user": sum(use.labels for use in uses),
        "epsilon_pure": float(pure),
        "delta": float(delta),
        "epsilon_at_delta": float(pure if found is None else found),
        "smaller_with_delta": found is not None,
        "pair": "table" if composition.exact.own_tables else "randomized response",
        "epsilon_prior": float(prior),
        "bounded_priors": all(use.bounds_prior for use in uses),
        "epsilon_total": float(pure + prior),
        "exact": {"epsilon_pure": str(pure), "epsilon_prior": str(prior)},
    }


def _in_words(document: dict[str, Any]) -> list[str]:
    rows = [
        [
            clipped(item["file"], _NAME_COLUMNS),
            f"{item['labels_per_user']:,}",
            at_most(item["epsilon_label"]),
            at_most(item["epsilon_pure"]),
        ]
        for item in document["files"]
    ]
    labels, delta = document["labels_per_user"], document["delta"]
    pure, approximate = document["epsilon_pure"], document["epsilon_at_delta"]
    shown = at_most(pure)
    rows.append(["together", f"{labels:,}", "", shown])
    lines = [
        *text_table(["verified file", "labels", "ε of a label", "ε of all"], rows),
        "",
        f"A user with {labels:,} labels spends ε = {shown} in total: if any of these labels "
        "change, output",
        "probabilities change by a factor of at most e^ε.",
    ]
    if document["smaller_with_delta"]:
        lines.append(
            f"At δ = {delta:g} it is ε = {at_most(approximate)}, and the integers prove it."
        )
    else:
        lines.append(f"At δ = {delta:g} no smaller ε is proved.")
    if document["pair"] != "table":
        lines.append(
            "A table was too large to compose: this is the bound for randomized response at its ε."
        )
    if document["epsilon_prior"] and document["bounded_priors"]:
        lines.append(
            f"With the private priors, which count as many labels of a person, it is ε = "
            f"{at_most(document['epsilon_total'])} (declared)."
        )
    elif document["epsilon_prior"]:
        lines.append(
            f"Not counted: the private priors. If these labels were also counted for them, they "
            f"add at least ε = {at_most(document['epsilon_prior'])} (declared)."
        )
    return lines
