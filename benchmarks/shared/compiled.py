"""Artifacts that are compiled in memory from the text of a spec."""

from __future__ import annotations

from pathlib import Path

from labeldp_compile.assembly import Artifact, assemble
from labeldp_compile.prior import estimate_prior
from labeldp_compile.spec import parse_spec

INTEGER_SPEC = """
version: 1
name: example
label:
  column: y
  domain: {kind: integer, min: 0, max: 9}
loss: squared
privacy: {epsilon: 1.0}
prior: {kind: public, weights: [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]}
mechanism: {kind: rr_on_bins}
"""
# Randomized response over ten labels at ε = 1: independent draws agree in one row of nine.
RESPONSE_SPEC = INTEGER_SPEC.replace("rr_on_bins", "randomized_response").replace(
    "{kind: public, weights: [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]}", "{kind: uniform}"
)
_SETS_SPEC = """\
version: 1
name: {name}
label:
  column: y
  domain: {domain}
  out_of_domain: {rule}
loss: zero_one
privacy: {{epsilon: {epsilon}}}
prior: {{kind: uniform}}
mechanism: {{kind: subset_selection}}
"""


def sets_spec(domain: str, rule: str, epsilon: object, name: str = "sets") -> str:
    """A spec whose private labels are sets of labels; the arguments are YAML."""
    return _SETS_SPEC.format(name=name, domain=domain, rule=rule, epsilon=epsilon)


def compile_text(text: str, word_bits: int | None = None, directory: Path = Path()) -> Artifact:
    """Compile a spec's text; paths in it are relative to the directory."""
    spec = parse_spec(text)
    return assemble(
        spec,
        estimate_prior(spec, directory),
        "0" * 64,
        word_bits=word_bits,
        labels_per_user=spec.privacy.labels_per_user,
    )
