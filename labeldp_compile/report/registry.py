"""An entry for the public registry of deployments of differential privacy, as YAML.

Its schema is that of opendp/deployments-registry-data (a copy is in tests/published). The entry has
what a verified certificate states, and says of each number whether it is proved or declared. What a
person must add is a text that begins with TODO if the schema demands it, and a comment otherwise.

The registry shows texts as Markdown with formulas, and names come from files. So names keep only
letters, digits, spaces, ``_`` and ``-``.
"""

import json
import math
import re
from datetime import date
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

from labeldp_verify.claims import person_epsilon, rational
from labeldp_verify.console.report import Report
from labeldp_verify.printable import clipped, up_to

from labeldp_compile.errors import InputError
from labeldp_compile.page.document import text_of

_MOST_NAME = 100


def read_date(text: str) -> date:
    """A day such as ``2026-01-31``. Raises InputError for anything else."""
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise InputError(f"--published: expected a day such as 2026-01-31, got {text!r}")


def registry_entry(report: Report, published: date) -> str:
    """The entry for a verified file, as YAML. Raises VerificationError if it did not verify.

    ``published`` is the day when the private labels, or results from them, were first published.
    """
    certificate = report.require().certificate
    assert certificate is not None
    exact, person = certificate.exact, person_epsilon(certificate)
    bound, of_prior = rational(exact.epsilon_label_bound), rational(exact.epsilon_prior)
    return text_of(
        Path(__file__).with_name("registry.yaml.jinja"),
        {"slug": lambda text: re.sub(r"[\W_]+", "-", text.lower()), "yaml": _yaml},
        name=_plain(certificate.name),
        curator="TODO: who publishes the data product",
        year=str(published.year),
        published=published.isoformat(),
        domain=certificate.label.domain,
        size=f"{certificate.labels:,}",
        columns=[_plain(column) for column in certificate.label_columns],
        epsilon=_at_least(bound + of_prior),
        bound=up_to(bound),
        of_prior=of_prior and up_to(of_prior),
        labels_per_user=person and f"{person.labels:,}",
        of_user=person and up_to(person.bound + person.prior),
        prior=certificate.prior.kind,
        mechanism=_plain(certificate.mechanism),
        outputs=f"{certificate.outputs:,}",
        version=version("labeldp-verify"),
        sha256=report.sha256,
    )


def _plain(text: str) -> str:
    """The part of a name from a file that is neither Markdown nor a formula."""
    kept = re.sub(r"[^\w -]", "\N{REPLACEMENT CHARACTER}", clipped(text, _MOST_NAME))
    return kept.strip() or "\N{REPLACEMENT CHARACTER}"


def _yaml(text: str) -> str:
    """A text in one line of YAML: JSON without control characters is valid YAML."""
    return json.dumps(" ".join(text.split()), ensure_ascii=False)


def _at_least(value: Fraction) -> float:
    """The smallest float that is at least the value."""
    near = float(value)
    return near if near >= value else math.nextafter(near, math.inf)
