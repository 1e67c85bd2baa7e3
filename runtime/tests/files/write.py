"""Writes the artifacts that the runtime's tests read, and facts of the integers in them.

In a clone with everything installed: ``PYTHONPATH=. python runtime/tests/files/write.py``.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from labeldp_verify.analysis.any_form import ColumnLoss
from labeldp_verify.forms import (
    CategoricalDomain,
    GroupedWindows,
    Groups,
    IntegerDomain,
    JointDomain,
    RealDomain,
    WindowRandomizer,
)

from labeldp_compile.rounding.randomized_response import randomized_response
from runtime.tests.helpers import FACTS, path_of
from runtime.tests.set_files import CODES, LOOK_ALIKES
from tests import group_rows
from tests.fixtures.compiled import (
    INTEGER_SPEC,
    REAL_SPEC,
    RESPONSE_SPEC,
    compile_text,
    sets_spec,
)
from verifier.tests.files import DOMAIN, file_of
from verifier.tests.integers import grouped, plain_counts, some_windows, uneven

_TEXT = """
version: 1
name: example
label:
  column: y
  domain: {kind: categorical, values: [red, green, blue]}
  out_of_domain: {default: green}
loss: zero_one
privacy: {epsilon: 1.5}
prior: {kind: uniform}
mechanism: {kind: randomized_response}
"""
# 40 labels of randomized response: independent draws of 64 rows agree with a chance below 1e-70.
_MANY_LABELS = RESPONSE_SPEC.replace("max: 9", "max: 39").replace("1.0", "0.1")
_WIDER = INTEGER_SPEC.replace("max: 9", "max: 10").replace("1, 0]", "1, 0, 0]")
SINGLE = {  # at ε = 40 the private label is the label's own bin, but for a chance below 1e-16
    "integers": INTEGER_SPEC,
    "integers, wider": _WIDER,
    "integers, ε = 40": INTEGER_SPEC.replace("1.0", "40"),
    "integers, 40 labels": _MANY_LABELS,
    "reals": REAL_SPEC,
    "reals, ε = 40": REAL_SPEC.replace("1.0", "40"),
    "reals, response": REAL_SPEC.replace("rr_on_bins", "randomized_response"),
    "text": _TEXT,
    "text, ε = 40": _TEXT.replace("1.5", "40"),
    "response": RESPONSE_SPEC,
}
SMALL = {"integers, 12 bits": INTEGER_SPEC, "response, 12 bits": RESPONSE_SPEC}


def categories(values: list[Any], epsilon: float) -> str:
    """A spec of sets of categories; the last one stands in for what is not listed."""
    listed, default = (json.dumps(value, ensure_ascii=False) for value in (values, values[-1]))
    domain = f"{{kind: categorical, values: {listed}}}"
    return sets_spec(domain, f"{{default: {default}}}", epsilon)


def integers(low: int, high: int, epsilon: float) -> str:
    """A spec of sets of integers, to which others are clamped."""
    return sets_spec(f"{{kind: integer, min: {low}, max: {high}}}", "clamp", epsilon)


SETS = {
    "all subsets of text": categories(LOOK_ALIKES, 1),
    "a design": categories([f"größe {i}" for i in range(31)], 0.5),
    "codes": categories(CODES, 1),
    "integers": integers(-3, 6, 0.5),
    "many sets": categories([f"class {i}" for i in range(70)], 2),
    "large ε, text": categories(LOOK_ALIKES, 8),
    "large ε, codes": categories(CODES, 8),
    "large ε, integers": integers(-3, 6, 8),
}

_MIXED = """
version: 1
name: mixed
label:
  columns:
    - column: price
      domain: {kind: real, min: -1, max: 2.5, points: 8}
      loss: absolute
    - column: code
      domain: {kind: categorical, values: [7, -3, 12]}
      out_of_domain: {default: -3}
      loss: zero_one
    - column: n
      domain: {kind: integer, min: -2, max: 3}
      out_of_domain: {default: 1}
      loss: squared
      weight: 0.25
loss: sum
privacy: {epsilon: 3}
prior: {kind: uniform}
mechanism: {kind: rr_with_prior}
"""
_ADS = """
version: 1
name: ads
label:
  columns:
    - column: converted
      domain: {kind: categorical, values: ["né", "yes"]}
      out_of_domain: {default: "né"}
      loss: zero_one
    - column: value
      domain: {kind: integer, min: 0, max: 4}
      loss: squared
loss: sum
privacy: {epsilon: 2}
prior: {kind: uniform}
mechanism: {kind: randomized_response}
"""
_SETS = """
version: 1
name: pair
label:
  columns:
    - column: converted
      domain: {kind: categorical, values: ["no", "yes"]}
      out_of_domain: {default: "no"}
    - column: value
      domain: {kind: integer, min: 0, max: 4}
loss: zero_one
privacy: {epsilon: 1}
prior: {kind: uniform}
mechanism: {kind: auto}
"""
_GRID = """
    - column: share
      domain: {kind: real, min: 0.1, max: 0.7, points: 4}
loss"""
_LARGE = _SETS.replace("epsilon: 1", "epsilon: 8").replace("auto", "subset_selection")
JOINT = {
    "mixed": _MIXED,
    "text": _ADS,
    "sets": _SETS,
    "response": _SETS.replace("epsilon: 1", "epsilon: 8").replace("auto", "randomized_response"),
    "large ε": _LARGE,
    "large ε, grid": _LARGE.replace("\nloss", _GRID),
}


def by_group() -> dict[str, bytes]:
    """Artifacts with tables by group, from integers."""
    codes = (7, -2, 2**40)
    same = randomized_response([float(y) for y in range(10, 14)], range(4), Fraction(2), 40)
    points = randomized_response([0.0, 1.0, 2.0, 3.0], range(4), Fraction(2), 40)

    def of(values: tuple[Any, ...], windows: tuple[WindowRandomizer, ...]) -> GroupedWindows:
        return GroupedWindows(Groups.of(values, "g"), windows)

    return {
        "codes": file_of(DOMAIN, grouped(codes, 40)),
        "names": file_of(DOMAIN, grouped(("a", "b", "ü"), 40)),
        "numbered": file_of(DOMAIN, grouped((0, 1, 2), 40)),
        "negative": file_of(DOMAIN, grouped((-1, -2, -3), 40)),
        "odd names": file_of(DOMAIN, grouped(("\x7f", "\x7f\x7f", ""), 40)),
        "default": file_of(IntegerDomain(10, 13, 11), grouped(codes, 40)),
        "one table": file_of(DOMAIN, of(codes, (same,) * 4)),
        "two words": file_of(RealDomain(0.0, 3.0, 4, "unbiased"), of(codes, (points,) * 4)),
        "three columns": group_rows.GROUPED,
        "three columns, constants": group_rows.NAMED,
        "none": file_of(DOMAIN, uneven()),
    }


def joint_by_group() -> bytes:
    """A label of two columns, with tables for the groups 7 and −2, which answers ("yes", 0)."""
    domain = JointDomain.of([CategoricalDomain(("no", "yes", "é"), "no"), IntegerDomain(-1, 1)])
    every = tuple(range(domain.size))
    windows = (
        randomized_response(every, every, Fraction(2), 40),
        randomized_response([4], [0] * domain.size, Fraction(2), 40),
        randomized_response(every, every, Fraction(1), 40),
    )
    losses = [ColumnLoss("zero_one", Fraction(1)), ColumnLoss("absolute", Fraction(1))]
    by_group = GroupedWindows(Groups.of((7, -2), "g"), windows)
    return file_of(domain, by_group, loss="sum", columns=["sold", "value"], losses=losses)


def counts(randomizer: WindowRandomizer, rows: tuple[int, ...]) -> dict[str, list[list[Any]]]:
    """By row, how many words lead to each output: pairs of output and number."""
    return {str(row): sorted(map(list, plain_counts(randomizer, row).items())) for row in rows}


def main() -> None:
    """Write all files of this folder."""
    facts: dict[str, Any] = {"values": {}, "counts": {}}
    models: dict[str, bytes] = {}
    for name, text in SINGLE.items():
        artifact = compile_text(text)
        models[name], facts["values"][name] = artifact.model, list(artifact.randomizer.values)
    for name, text in SMALL.items():
        artifact = compile_text(text, word_bits=12)
        models[name] = artifact.model
        facts["counts"][name] = counts(artifact.randomizer, (0, 5, 7, 9))
    windows = some_windows(10)  # the same probabilities as in 40 bits, but for rounding
    for table in (0, 3):
        facts["counts"][f"table {table} of codes"] = counts(windows[table], (2,))
    models |= {f"sets, {name}": compile_text(text).model for name, text in SETS.items()}
    models |= {f"joint, {name}": compile_text(text).model for name, text in JOINT.items()}
    models |= {f"groups, {name}": model for name, model in by_group().items()}
    models["groups, joint labels"] = joint_by_group()
    for name, model in models.items():
        path_of(name).write_bytes(model)
    text = json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
    FACTS.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
