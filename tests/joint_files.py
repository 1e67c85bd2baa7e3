"""Artifacts whose label has several columns, for tests of the runtime and of engines."""

from functools import cache

import numpy as np
from labeldp_verify import check_bytes
from labeldp_verify.decode import read_certificate, read_domain, read_form, read_model, read_sets

from tests.helpers import compile_text

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
SPECS = {
    "mixed": _MIXED,
    "text": _ADS,
    "sets": _SETS,
    "response": _SETS.replace("epsilon: 1", "epsilon: 8").replace("auto", "randomized_response"),
    "large ε": _LARGE,
    "large ε, grid": _LARGE.replace("\nloss", _GRID),
}


@cache
def model(name):
    """The bytes of one of them."""
    return compile_text(SPECS[name]).model


@cache
def integers(name):
    """The domain of one of them, and the form that decodes its file, which verifies."""
    check_bytes(model(name)).require()
    proto = read_model(model(name))
    certificate = read_certificate(proto)
    domain = read_domain(certificate.label.domain)
    sets = read_sets(certificate.sets, domain.size)
    return domain, read_form(certificate.form, proto, domain, sets=sets)


def demanded(name, numbers, words):
    """What the integers demand for combinations [n] and words [n]: columns, or numbers of sets."""
    domain, form = integers(name)
    outputs = form.outputs_of(np.asarray(numbers), np.asarray(words, np.uint64)[:, None])
    if name == "sets":
        return outputs.tolist()
    rows = [domain.combination(number) for number in outputs.tolist()]
    return [list(column) for column in zip(*rows, strict=True)]


def everything(name):
    """A label for each combination, as columns by their names, in the order of their numbers."""
    domain, _ = integers(name)
    rows = [domain.combination(number) for number in range(domain.size)]
    return dict(zip(NAMES[name], map(list, zip(*rows, strict=True)), strict=True))


NAMES = {
    "mixed": ["price", "code", "n"],
    "text": ["converted", "value"],
    "sets": ["converted", "value"],
    "response": ["converted", "value"],
    "large ε": ["converted", "value"],
    "large ε, grid": ["converted", "value", "share"],
}
# Rows that the artifact cannot tell from others: the labels, and the combination that each is.
ODD = {
    "mixed": (
        {
            "price": [None, float("nan"), 99.0, -1e300, 0.1, 2.2500001],
            "code": [None, 8, 12, 7, -3, 2**62],
            "n": [None, 4, -3, 3, -2, float("nan")],
        },
        [(0, 1, 3), (0, 1, 3), (7, 2, 3), (0, 0, 5), (2, 1, 0), (7, 1, 3)],
    ),
    "text": (
        {
            "converted": [None, "ne\u0301", "yes", "", "yes ", "né"],
            "value": [None, 7, 99, -(2**63), 2.5, 3.5],
        },
        [(0, 0), (0, 4), (1, 4), (0, 0), (0, 2), (0, 4)],
    ),
    "sets": (
        {"converted": [None, "NO", "yes", "yes", 7, "no"], "value": [None, 7, 99, -5, "1", 2]},
        [(0, 0), (0, 4), (1, 4), (1, 0), (0, 0), (0, 2)],
    ),
}
