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


def integer_spec(
    labels: int,
    mechanism: str,
    *,
    epsilon: object = 1,
    loss: str = "squared",
    prior: str = "{kind: uniform}",
    name: str = "benchmark",
) -> str:
    """A spec of the integers 0 … labels − 1 in column y; a mechanism is a kind, or YAML."""
    kind = mechanism if mechanism.startswith("{") else f"{{kind: {mechanism}}}"
    return (
        f"version: 1\nname: {name}\ngoal: labels\n"
        f"label: {{column: y, domain: {{kind: integer, min: 0, max: {labels - 1}}}}}\n"
        f"loss: {loss}\nprivacy: {{epsilon: {epsilon}}}\nprior: {prior}\nmechanism: {kind}\n"
    )


def public(weights: object) -> str:
    """A public prior."""
    return f"{{kind: public, weights: {weights}}}"


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


_COLUMNS = """\
  columns:
    - column: sold
      domain: {kind: categorical, values: ["no", "yes", "é"]}
      out_of_domain: {default: "no"}
      LOSS_1
    - column: value
      domain: {kind: integer, min: -1, max: 2}
      LOSS_2
    - column: code
      domain: {kind: categorical, values: [7, -3]}
      out_of_domain: {default: -3}
      LOSS_1
"""
_REAL = """\
    - column: price
      domain: {kind: real, min: -1, max: 2.5, points: 3}
      out_of_domain: {default: 0.5}
      LOSS_3
"""


def joint_spec(
    mechanism: str = "{kind: randomized_response}",
    epsilon: object = 2,
    *,
    loss: str = "sum",
    prior: str = "{kind: uniform}",
    real: bool = False,
) -> str:
    """A spec of a label of three columns, or four with a real one; the arguments are YAML."""
    columns = _COLUMNS + (_REAL if real else "")
    for mark, stated in (
        ("LOSS_1", "loss: zero_one"),
        ("LOSS_2", "loss: absolute\n      weight: 2.5"),
        ("LOSS_3", "loss: squared"),
    ):
        columns = columns.replace(f"      {mark}\n", f"      {stated}\n" if loss == "sum" else "")
    return (
        f"version: 1\nname: joint\nlabel:\n{columns}loss: {loss}\n"
        f"privacy: {{epsilon: {epsilon}}}\nprior: {prior}\nmechanism: {mechanism}\n"
    )
