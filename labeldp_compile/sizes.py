"""Upper bounds on an artifact's bytes that hold for every prior, so before any ε is spent.

If the tables depend on the prior, the mechanism makes them fit: it merges rare outputs, or uses
fewer.
"""

import math
from fractions import Fraction

from labeldp_verify import steps
from labeldp_verify.forms import CategoricalDomain, Domain, JointDomain, WindowRandomizer
from labeldp_verify.graph import bucket_grid, canonical_json

from labeldp_compile.spec import Spec

# Graph, certificate and test vectors at their longest, without what is counted for each label:
# at most 204, 510 and 680 vectors, and eight fractions of 2,000 digits.
_FIXED = {"window": 45_000, "additive": 90_000, "table": 95_000}
_VECTORS = {"window": 204, "additive": 510, "table": 680}
_FIXED_COLUMN = 25_000  # nodes, and numbers in the vectors, of one column of several
_CLAIMS = 2_000  # of one table of several
_FLOAT = 27  # a float64 as text, with quotes and a comma
_CODE = 11  # an int64 in an attribute


def most_bytes(spec: Spec, epsilon: Fraction, rows: int | None) -> int:
    """The most bytes of the spec's artifact, for any prior; ``rows`` is n, if it is known.

    ``epsilon`` is ε₂. Raises ValueError if the artifact could be larger than a verifier reads.
    """
    besides = _besides_tables(spec, rows)
    room = steps.MAX_FILE_BYTES - besides
    tables = spec.named_mechanism.most_table_bytes(spec.domain, epsilon, room)
    if tables > room:
        raise ValueError(
            f"the file could have {besides + tables:,} bytes, and a verifier reads at most "
            f"{steps.MAX_FILE_BYTES:,}: use fewer labels, or shorter names"
        )
    return besides + tables


def fits(spec: Spec, rows: int | None, randomizer: WindowRandomizer) -> bool:
    """Whether a file with these tables is small enough for the verifier."""
    tables = bucket_grid.table_bytes(randomizer)
    return tables is not None and _besides_tables(spec, rows) + tables <= steps.MAX_FILE_BYTES


def _besides_tables(spec: Spec, rows: int | None) -> int:
    """Everything but the tables of numbers."""
    domain, mechanism = spec.domain, spec.named_mechanism
    column, auto = (_json_bytes(text) for text in (spec.label.key, spec.auto_reason or ""))
    listed = domain.size * _FLOAT * len(mechanism.proof(spec.loss, domain.size))
    return (
        _FIXED[mechanism.form]
        + column
        + auto
        + _names(domain, mechanism.form)
        + _weights(spec, rows)
        + listed
    )


def claims_bytes(spec: Spec, rows: int, *, proved: bool) -> int:
    """The most bytes in a certificate about one table, except for unusually long fractions.

    ``proved`` says whether it lists dual values.
    """
    domain, mechanism = spec.domain, spec.named_mechanism
    lists = len(mechanism.proof(spec.loss, domain.size)) if proved else 0
    return _CLAIMS + _weights(spec, rows) + domain.size * _FLOAT * lists


def _names(domain: Domain, form: str) -> int:
    """The categories: in the graph's encoder and as outputs, in certificate and test vectors."""
    if isinstance(domain, JointDomain):
        # Each column is named in encoder, certificate and vectors as in a file of its own; of
        # numbers the outputs are listed.
        listed = sum(_CODE * part.size for part in domain.parts)
        return listed + sum(_FIXED_COLUMN + _names(part, form) for part in domain.parts)
    if not isinstance(domain, CategoricalDomain):
        return 0
    texts = [_json_bytes(value) for value in domain.values]
    certificate = sum(texts) + len(texts) + _json_bytes(domain.default)
    vectors = 2 * _VECTORS[form] * max(texts)
    if not domain.is_text:
        return certificate + vectors + 2 * _CODE * len(texts)
    raw = sum(len(str(value).encode()) + 6 for value in domain.values)
    # Of RRTop-k an output has three segments: base, own and even.
    return certificate + vectors + _CODE * len(texts) + 4 * raw


def _json_bytes(value: object) -> int:
    return len(canonical_json(value).encode("utf-8", "surrogatepass"))


def _weights(spec: Spec, rows: int | None) -> int:
    """The prior as text. The mean of its k integers is at most n, and log is concave."""
    weights = spec.known_weights
    if weights is not None:
        return sum(len(str(weight)) + 1 for weight in weights)
    most = 2**63 if rows is None else rows
    return math.ceil(spec.domain.size * (math.log10(most + 1) + 2))
