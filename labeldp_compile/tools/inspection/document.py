"""An inspection as JSON, exact where it is small."""

from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis import equally_likely, matrix, row
from labeldp_verify.artifact import Artifact, Table
from labeldp_verify.forms import AdditiveRandomizer
from labeldp_verify.reading.usefulness import sample

from labeldp_compile.tools.inspection.facts import label_facts, noise_facts, output_facts
from labeldp_compile.tools.inspection.overview import overview

FORMAT_VERSION = "1.0"
MAX_EXACT = 20_000  # probabilities as "p/q"
MAX_NUMBERS = 200_000  # probabilities of any kind: about 10 MB
MAX_LISTED = 1_000  # labels or outputs that are listed


def inspection_json(decoded: Table, asked: Sequence[int] = ()) -> dict[str, Any]:
    """``{format_version, ok, name, …, matrix, outputs, labels, noise}``, keys in this order.

    ``asked`` are the indices of the labels to show; by default all, or a sample with both ends if
    there are too many. Probabilities are "p/q" for up to ``MAX_EXACT`` entries, and float64 beyond.
    """
    r, domain, certificate = decoded.randomizer, decoded.domain, decoded.certificate
    rows = list(asked) or sample(domain.size, max(MAX_NUMBERS // r.outputs, 2))
    shown = list(asked) or sample(domain.size, MAX_LISTED)
    noise = noise_facts(r) if isinstance(r, AdditiveRandomizer) else None
    return {
        "format_version": FORMAT_VERSION,
        "ok": True,
        "name": certificate.name,
        "mechanism": certificate.mechanism,
        "form": r.form,
        "number_of_labels": domain.size,
        "number_of_outputs": r.outputs,
        "equally_likely_words": str(equally_likely(r)),
        "epsilon_label_bound": certificate.privacy.epsilon_label_bound,
        "bias_in_range": decoded.bias_in_range,
        "usefulness": decoded.use_to_json(),
        "warnings": [asdict(part) for part in decoded.shortcomings],
        "matrix": _matrix(decoded, rows),
        "outputs": [
            {k: v for k, v in asdict(facts).items() if v is not None or k != "members"}
            for facts in output_facts(domain, r, sample(r.outputs, MAX_LISTED))
        ],
        "labels": [asdict(facts) for facts in label_facts(domain, r, shown)],
        "noise": None if noise is None else asdict(noise),
    }


def groups_json(decoded: Artifact) -> dict[str, Any]:
    """``{format_version, ok, name, mechanism, …, groups}``: the main figures of each table."""
    certificate = decoded.certificate
    return {
        "format_version": FORMAT_VERSION,
        "ok": True,
        "name": certificate.name,
        "mechanism": certificate.mechanism,
        "form": certificate.form,
        "number_of_labels": certificate.labels,
        "number_of_outputs": certificate.outputs,
        "columns": [column.name for column in decoded.groups.columns],
        "epsilon_label_bound": certificate.privacy.epsilon_label_bound,
        "noisy_label_loss": certificate.utility.noisy_label_loss,
        "warnings": [asdict(part) for part in decoded.shortcomings],
        "groups": [asdict(facts) for facts in overview(decoded)],
    }


def _matrix(decoded: Table, rows: list[int]) -> dict[str, Any]:
    r, domain = decoded.randomizer, decoded.domain
    labels = [domain.listed[y] for y in rows]
    note = None if len(rows) == domain.size else "not all labels"
    if len(rows) * r.outputs > 2 * MAX_NUMBERS:
        return {"exact": False, "note": "too large to list", "labels": [], "rows": []}
    if len(rows) * r.outputs <= MAX_EXACT:
        words = equally_likely(r)
        exact = [[str(Fraction(count, words)) for count in row(r, y)] for y in rows]
        return {"exact": True, "note": note, "labels": labels, "rows": exact}
    note = "float64, correct to a few units in the last place" + (f"; {note}" if note else "")
    floats = matrix(r, rows).tolist()
    return {"exact": False, "note": note, "labels": labels, "rows": floats}
