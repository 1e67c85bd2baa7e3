"""An entry for the public registry of deployments of differential privacy, as YAML.

Its schema is that of opendp/deployments-registry-data (a copy is in tests/published). Filled in is
what a verified certificate knows, and of each number whether the file proves it or only declares
it. Whatever a person must say is a text that begins with TODO where the schema demands one, and a
comment where it does not.

The registry shows texts as Markdown with formulas, and names come from files: of them stay letters,
digits, spaces, ``_`` and ``-``.
"""

from __future__ import annotations

import json
import math
import re
from datetime import date
from fractions import Fraction
from importlib.metadata import version

from labeldp_verify.claims import Certificate, PrivatePriorClaims, rational
from labeldp_verify.console.report import Report
from labeldp_verify.printable import clipped
from labeldp_verify.rounded import up_to

from labeldp_compile.errors import InputError

_TODO = "TODO: "
_MOST_NAME = 100


def read_date(text: str) -> date:
    """A day as ``2026-01-31``; InputError for anything else."""
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise InputError("--published: expected a day, as in 2026-01-31")


def registry_entry(report: Report, published: date) -> str:
    """The entry on a file that verified, as YAML; raises VerificationError unless it did.

    ``published`` is when the private labels, or what was made of them, first went out.
    """
    certificate = report.require().certificate
    assert certificate is not None
    return "\n".join([*_basic(certificate, published), *_privacy(report, certificate), ""])


def _basic(certificate: Certificate, published: date) -> list[str]:
    name, curator = _plain(certificate.name), f"{_TODO}who publishes the data product"
    slug = "-".join(map(_slug, (name, curator, str(published.year))))
    return [
        f"url_slug: {_text(slug)}  # of name, curators and year",
        'status: "Draft"',
        "tier: 1  # TODO: 2 or 3, once the parts below are complete",
        "deployment:",
        "  basic:",
        f"    name: {_text(name)}",
        "    data_curators:",
        f"      - {_text(curator)}",
        f"    intended_use: {_text(f'{_TODO}what it is for')}",
        '    data_product_type: "Dataset"  # TODO: or another, if no private label is published',
        f"    data_product_region: {_text(f'{_TODO}where the people are')}",
        f"    description: {_text(f'{_TODO}what the rows are, who gets the private labels')}",
        f"    publication_date: {_text(published.isoformat())}",
        "    # data_product_sector: TODO",
    ]


def _privacy(report: Report, certificate: Certificate) -> list[str]:
    return [
        "  dp_variant:",
        '    variant_name: "Pure DP"',
        f"    data_domain: {_text(_domain(certificate))}",
        f"    unprotected_quantities: {_text(_UNPROTECTED)}",
        "  privacy_loss:",
        '    privacy_unit: "One label"',
        f"    privacy_unit_details: {_text(_ADJACENT)}",
        "    privacy_parameters:",
        f"      epsilon: {_at_least(_epsilon(certificate))!r}",
        f"    privacy_parameters_details: {_text(_epsilon_in_words(certificate))}",
        "  # deployment_model: TODO, who randomizes the labels, and how often",
        "  #   model_name: Local, Central, Shuffle or Federated",
        "  #   release_type: One release or Many releases",
        "  #   data_source_type: Static or Dynamic",
        "  #   access_type: Interactive or Non-interactive",
        "  accounting:",
        "    # post_processing: TODO",
        f"    composition: {_text(_composition(certificate))}",
        "  implementation:",
        f"    preprocessing_and_hyperparameter_tuning: {_text(_prior(certificate))}",
        f"    mechanisms: {_text(_mechanism(report, certificate))}",
        "    # justification: TODO",
        "  # administrative: TODO",
        "  #   registry_authors:",
        "  #     - who wrote this entry",
    ]


_UNPROTECTED = (
    "Label differential privacy: features, the number of rows and who is in the table are not "
    "protected, only labels are."
)
_ADJACENT = (
    "Two tables are adjacent if they differ in the label of one row, which may be any other label "
    "(substitution); all else is the same."
)


def _domain(certificate: Certificate) -> str:
    columns = ", ".join(map(_plain, certificate.label_columns))
    several = "s" if len(certificate.label_columns) > 1 else ""
    return (
        f"Tables with one label a row, {_labels(certificate)}, in the column{several} {columns} "
        "(as declared). A label outside the domain is read as one of it."
    )


def _labels(certificate: Certificate) -> str:
    domain, size = certificate.label.domain, f"{certificate.labels:,}"
    match domain["kind"]:
        case "integer":
            return f"an integer from {domain['min']} to {domain['max']}"
        case "real":
            low, high = domain["min"], domain["max"]
            return f"a number from {low} to {high} that is rounded to one of {size} points"
        case "joint":
            return f"one of {size} combinations of values, or of points where a column is real"
        case _:
            return f"one of {size} categories"


def _epsilon(certificate: Certificate) -> Fraction:
    """Of one label: what the integers prove of its randomization, and what the prior cost."""
    exact = certificate.exact
    return rational(exact.epsilon_label_bound) + rational(exact.epsilon_prior)


def _epsilon_in_words(certificate: Certificate) -> str:
    exact = certificate.exact
    bound, prior = rational(exact.epsilon_label_bound), rational(exact.epsilon_prior)
    proved = (
        f"One randomization of a label is ε-DP with ε at most {up_to(bound)}, proved from the "
        "integers of the randomizer."
    )
    if not prior:
        return f"{proved} No ε was spent on the prior, as it is declared."
    return (
        f"{proved} ε = {up_to(prior)} was spent on the prior, as it is declared, by each compile "
        "that read the data, of which there was at least one; ε is the sum for one."
    )


def _composition(certificate: Certificate) -> str:
    """Sequential composition; with a number of labels of one user also what they pay."""
    said = (
        "Sequential: the ε of several labels of one person, or of several randomizations of one "
        "label, add up."
    )
    users = certificate.composition
    if users is None:
        return said
    labels = users.labels_per_user
    pays = labels * _epsilon(certificate)
    return f"{said} One person with {labels:,} labels (declared) pays at most ε = {up_to(pays)}."


def _prior(certificate: Certificate) -> str:
    prior = certificate.prior
    if isinstance(prior, PrivatePriorClaims):
        return (
            "The randomizer was made for a histogram of the labels to which noise was added before "
            "anything used it; its ε is counted above. This is declared."
        )
    kind = "a public prior" if prior.kind == "public" else "the uniform prior"
    return f"The randomizer was made for {kind}: no label was read for it. This is declared."


def _mechanism(report: Report, certificate: Certificate) -> str:
    made_by = _plain(certificate.mechanism)
    return (
        f"labeldp, mechanism {made_by} (declared). Each label is replaced by one of "
        f"{certificate.outputs:,} outputs; a random word and tables of integers decide which. "
        f"labeldp-verify {version('labeldp-verify')} proved ε from the file of the randomizer, "
        f"SHA-256 {report.sha256}."
    )


def _plain(text: str) -> str:
    """What of a name of somebody else's is neither Markdown nor a formula."""
    kept = re.sub(r"[^\w -]", "\N{REPLACEMENT CHARACTER}", clipped(text, _MOST_NAME))
    return kept.strip() or "\N{REPLACEMENT CHARACTER}"


def _slug(text: str) -> str:
    """A part of the address, as the registry makes it."""
    return re.sub(r"[\W_]+", "-", text.lower())


def _text(text: str) -> str:
    """A text in YAML: JSON, which is YAML if nothing in it is a control character."""
    return json.dumps(text, ensure_ascii=False)


def _at_least(value: Fraction) -> float:
    """The least float that is no smaller."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)
