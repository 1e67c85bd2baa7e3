"""The Coq text about one artifact: its integers, and what they prove.

Only numbers and digests of the artifact get into the text, because a name could end a comment.
"""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from labeldp_verify.artifact import Artifact
from labeldp_verify.claims import rational
from labeldp_verify.forms import RealDomain
from labeldp_verify.graph import tables_digest
from labeldp_verify.kernel import Integers, Window

from labeldp_compile.export.coq import theory
from labeldp_compile.export.coq.terms import form_of, labels, listed, number
from labeldp_compile.tools.page.document import text_of

MAX_INTEGERS = 100_000  # Coq reads about 1,500 a second
MAX_ENTRIES = 10_000  # of a lookup: Coq reads them for seven seconds
_MOST_TERMS = 5_000


@dataclass(frozen=True)
class Proof:
    """A Coq file about one artifact.

    Attributes:
        text: the file.
        epsilon: the ε that it proves for every label.
        theorems: the names of its theorems; Coq prints the assumptions of each.
    """

    text: str
    epsilon: Fraction
    theorems: tuple[str, ...]


def proof_of(
    decoded: Artifact,
    read: Integers,
    *,
    most_entries: int = MAX_ENTRIES,
    ratio: Fraction | None = None,
    self_contained: bool = True,
) -> Proof:
    """The Coq file about a verified artifact.

    Args:
        decoded: the verified file.
        read: its integers, as the kernel reads them.
        most_entries: if the lookup has at most this many entries, the draw of a window is the
            graph's gather from them; otherwise it goes through the segments.
        ratio: the ratio to prove; by default that of the certificate.
        self_contained: whether the theory is in the file; otherwise it needs
            ``-Q proofs LabelDP``.
    """
    certificate = decoded.certificate
    ratio = rational(certificate.exact.realised_ratio) if ratio is None else ratio
    epsilon = rational(certificate.exact.epsilon_label_bound)
    if read.lookup is not None and len(read.lookup.entries) > most_entries:
        read = read._replace(lookup=None)
    grouped, users = certificate.groups is not None, certificate.composition
    file, facts = form_of(read, grouped=grouped)
    files = (file, "Mixtures", "Epsilon")
    theorems = {
        "artifact_is_private": True,
        "private_at_any_offset": isinstance(read.tables[0], Window) and not grouped,
        "rounded_labels_are_private": isinstance(decoded.label, RealDomain)
        and decoded.label.rounding == "unbiased",
        "labels_of_one_person_are_private": users is not None and not grouped,
    }
    proved = tuple(name for name, holds in theorems.items() if holds)
    text = text_of(
        Path(__file__).with_name("artifact.v.jinja"),
        sha256=decoded.sha256,
        tables_sha256=tables_digest(decoded.label, decoded.lookup),
        theory=theory.modules(files) if self_contained else theory.required(files),
        listed=listed,
        number=number,
        ratio=ratio,
        epsilon=epsilon,
        terms=terms(ratio, epsilon),
        labels=labels(read),
        theorems=proved,
        labels_per_user=users and users.labels_per_user,
        **facts,
    )
    return Proof(text, epsilon, proved)


def terms(ratio: Fraction, epsilon: Fraction) -> int:
    """The smallest n for which the ratio is at most Σ εʲ/j! over j ≤ n. Raises ValueError if none.

    The proved ε is at least ln of the ratio, and larger unless the ratio is 1.
    """
    total = term = Fraction(1)
    for n in range(_MOST_TERMS):
        if ratio <= total:
            return n
        term = term * epsilon / (n + 1)
        # Sums are cut to 4,096 bits. Coq uses the exact sums, which are larger.
        total += _cut(term)
        term = _cut(term)
    raise ValueError("the ratio is not a lower bound of e^epsilon")


def _cut(number: Fraction) -> Fraction:
    return Fraction((number.numerator << 4096) // number.denominator, 1 << 4096)
