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
from pathlib import Path

from labeldp_verify.claims import Certificate, PrivatePriorClaims, rational
from labeldp_verify.console.report import Report
from labeldp_verify.printable import clipped
from labeldp_verify.rounded import up_to

from labeldp_compile.errors import InputError
from labeldp_compile.tools.page.document import text_of

_CURATOR = "TODO: who publishes the data product"
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
    name = _plain(certificate.name)
    # Part by part as the registry makes the address.
    parts = (name, _CURATOR, str(published.year))
    return text_of(
        Path(__file__).with_name("registry.yaml.jinja"),
        _yaml,
        slug="-".join(re.sub(r"[\W_]+", "-", part.lower()) for part in parts),
        name=name,
        curator=_CURATOR,
        published=published.isoformat(),
        domain=_domain(certificate),
        epsilon=_at_least(_epsilon(certificate)),
        epsilon_in_words=_epsilon_in_words(certificate),
        composition=_composition(certificate),
        prior=_prior(certificate),
        mechanism=_mechanism(report, certificate),
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


def _yaml(value: object) -> str:
    """A text or a number in YAML: JSON, which is YAML if nothing in it is a control character."""
    return json.dumps(value, ensure_ascii=False)


def _at_least(value: Fraction) -> float:
    """The least float that is no smaller."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)
