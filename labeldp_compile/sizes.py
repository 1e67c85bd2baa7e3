"""Upper bounds on an artifact's bytes, for every prior: known before one is paid for.

Where the tables depend on the prior, the mechanism sees to it that they fit: ``optimal_unbiased``
merges rare outputs, ``rr_on_bins`` and ``rr_with_prior`` take fewer of them.
"""

from __future__ import annotations

import math
from fractions import Fraction

from labeldp_verify import steps
from labeldp_verify.artifact import bucket_grid, canonical_json
from labeldp_verify.artifact.alias_table import column_bits
from labeldp_verify.forms import CategoricalDomain, Domain, WindowRandomizer

from labeldp_compile.mechanisms.additive_noise import label_lattice
from labeldp_compile.mechanisms.rr_on_bins import MAX_CERTIFIED_LABELS
from labeldp_compile.prior.obtain import integer_weights
from labeldp_compile.rounding.additive_noise import MAX_REACH
from labeldp_compile.rounding.rr_top_k import rr_top_k
from labeldp_compile.spec import Spec
from labeldp_compile.spec.mechanism import (
    Exponential,
    Laplace,
    Mechanism,
    OptimalUnbiased,
    RRonBins,
    RRTopK,
    RRWithPrior,
    Staircase,
)
from labeldp_compile.spec.model import PublicPrior, UniformPrior

_ENTRY = 8  # bytes
# Graph, certificate and test vectors at their longest, but for what is counted label by label:
# at most 204, 510 and 680 vectors, and eight fractions of 2,000 digits.
_FIXED = {"window": 45_000, "additive": 90_000, "table": 95_000}
_VECTORS = {"window": 204, "additive": 510, "table": 680}
_FLOAT = 27  # a float64 as text, with quotes and a comma
_CODE = 11  # an int64 in an attribute
_REACH_BITS = 60  # unclipped noise ends where so many bits of the word are used up
_GRID_OF_RESPONSE = 10  # entries for each output of randomized response, at most
_GRID_OF_TOP_K = 36


def known_weights(spec: Spec) -> list[int] | None:
    """The prior, where the spec itself states it."""
    if isinstance(spec.prior, UniformPrior):
        return [1] * spec.domain.size
    if isinstance(spec.prior, PublicPrior) and spec.prior.weights is not None:
        return integer_weights(spec.prior.weights)
    return None


def most_bytes(spec: Spec, epsilon: Fraction, rows: int | None) -> int:
    """The most bytes of the spec's artifact, whatever the prior; ``rows`` is n, if it is known.

    ``epsilon`` is ε₂. Raises ValueError if the artifact could be larger than a verifier reads.
    """
    besides = _besides_tables(spec, rows)
    room = steps.MAX_FILE_BYTES - besides
    tables = _most_tables(spec.named_mechanism, spec.domain, epsilon, room)
    if tables > room:
        raise ValueError(
            f"the file could have {besides + tables:,} bytes, more than the "
            f"{steps.MAX_FILE_BYTES:,} that a verifier reads: use fewer labels, or shorter names"
        )
    return besides + tables


def fits(spec: Spec, rows: int | None, randomizer: WindowRandomizer) -> bool:
    """Whether a file with these tables is small enough for the verifier."""
    tables = bucket_grid.table_bytes(randomizer)
    return tables is not None and _besides_tables(spec, rows) + tables <= steps.MAX_FILE_BYTES


def form_of(mechanism: Mechanism) -> str:
    """The exact form that a mechanism compiles to."""
    if isinstance(mechanism, Laplace | Staircase):
        return "additive"
    return "table" if isinstance(mechanism, Exponential) else "window"


def _besides_tables(spec: Spec, rows: int | None) -> int:
    """Everything but the tables of numbers."""
    domain, form = spec.domain, form_of(spec.named_mechanism)
    column, auto = (_json_bytes(text) for text in (spec.label.column, spec.auto_reason or ""))
    listed = domain.size * _proof_bytes(spec.named_mechanism, spec.loss, domain.size)
    return _FIXED[form] + column + auto + _names(domain, form) + _weights(spec, rows) + listed


def _names(domain: Domain, form: str) -> int:
    """The categories: in the graph's encoder and as outputs, in certificate and test vectors."""
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
    weights = known_weights(spec)
    if weights is not None:
        return sum(len(str(weight)) + 1 for weight in weights)
    most = 2**63 if rows is None else rows
    return math.ceil(spec.domain.size * (math.log10(most + 1) + 2))


def _proof_bytes(mechanism: Mechanism, loss: str, k: int) -> int:
    """Dual values and biases of one label."""
    if isinstance(mechanism, OptimalUnbiased) and mechanism.outputs == "exact":
        return (2 if mechanism.bias is None else 3) * _FLOAT
    certified = isinstance(mechanism, RRonBins | RRTopK | RRWithPrior)
    return 2 * _FLOAT if certified and k <= MAX_CERTIFIED_LABELS else 0


def _most_tables(mechanism: Mechanism, domain: Domain, epsilon: Fraction, room: int) -> int:
    """The most bytes of tables; what adapts to ``room`` takes no more than that."""
    k = domain.size
    if isinstance(mechanism, Laplace | Staircase):
        period = label_lattice(domain, mechanism.lattice).period
        reach = (
            1 if mechanism.clip else max(math.ceil(_REACH_BITS * math.log(2) / float(epsilon)), 2)
        )
        columns = column_bits(2 * min(reach, MAX_REACH) + 2)
        return _ENTRY * ((1 << columns) + (2 << column_bits(period)))
    if isinstance(mechanism, Exponential):
        return _ENTRY * ((k << column_bits(k)) + k)
    if isinstance(mechanism, OptimalUnbiased):
        return _most_unbiased(mechanism, k, room)
    if isinstance(mechanism, RRonBins):
        return _adapted(k, _GRID_OF_RESPONSE * k + 8, 2 * k, room)
    if isinstance(mechanism, RRWithPrior):
        return _adapted(k, _GRID_OF_TOP_K * k + 64, 3 * k, room)
    kept = mechanism.k if isinstance(mechanism, RRTopK) else k
    tables = bucket_grid.table_bytes(rr_top_k(range(k), range(kept), epsilon))
    if tables is None:
        raise ValueError("the lookup tables would be too large; use fewer labels")
    return tables


def _adapted(k: int, grid: int, segments: int, room: int) -> int:
    """One output less often is always possible, down to a single one and a row of offsets."""
    least = _ENTRY * (k + 64)
    grid = min(max(grid, bucket_grid.SINGLE_GRID_ENTRIES), bucket_grid.MAX_ENTRIES)
    return max(min(_ENTRY * (k + grid + segments), room), least)


def _most_unbiased(mechanism: OptimalUnbiased, k: int, room: int) -> int:
    outputs = 2 * k
    if mechanism.outputs != "exact":
        outputs = mechanism.outputs.grid or len(mechanism.outputs.values or [])
    elif mechanism.bias is not None and (
        mechanism.bias.penalty == 0 or mechanism.bias.sample_size == 1
    ):
        return _adapted(k, _GRID_OF_RESPONSE * k + 8, 2 * k, room)
    segments = min(2 * outputs, bucket_grid.COMFORTABLE_ENTRIES + 4)  # a bucket has one end
    return _ENTRY * (k + bucket_grid.COMFORTABLE_ENTRIES + segments)
