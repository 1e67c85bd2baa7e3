"""Writes the artifacts that the runtime's tests read, and facts of the integers in them.

In a clone with everything installed: ``PYTHONPATH=. python runtime/tests/files/write.py``.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import yaml
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

from labeldp_compile.rounding.windows import randomized_response
from runtime.tests.helpers import FACTS, path_of
from runtime.tests.set_files import CODES, LOOK_ALIKES
from tests import group_rows
from tests.fixtures.compiled import compile_text
from tests.fixtures.specs import spec
from verifier.tests.files import DOMAIN, file_of
from verifier.tests.integers import grouped, plain_counts, some_windows, uneven

DECAY = {"kind": "public", "weights": [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]}
_RED = {"values": ["red", "green", "blue"], "out_of_domain": {"default": "green"}}
_REAL = "{kind: real, min: 0.0, max: 9.0, points: 10, rounding: unbiased}"

SINGLE = {  # at ε = 40 the private label is the label's own bin, but for a chance below 1e-16
    "integers": spec(prior=DECAY),
    "integers, wider": spec(labels=11, prior={**DECAY, "weights": [*DECAY["weights"], 0]}),
    "integers, ε = 40": spec(prior=DECAY, epsilon=40),
    # Independent draws of 64 rows agree with a chance below 1e-70.
    "integers, 40 labels": spec(labels=40, epsilon="0.1", mechanism="randomized_response"),
    "reals": spec(domain=_REAL, prior=DECAY),
    "reals, ε = 40": spec(domain=_REAL, prior=DECAY, epsilon=40),
    "reals, response": spec(domain=_REAL, prior=DECAY, mechanism="randomized_response"),
    "text": spec(**_RED, epsilon="1.5"),
    "text, ε = 40": spec(**_RED, epsilon=40),
    "response": spec(mechanism="randomized_response"),
}
SMALL = {"integers, 12 bits": SINGLE["integers"], "response, 12 bits": SINGLE["response"]}


def sets(epsilon: float, **label: Any) -> str:
    """A spec of sets of labels."""
    return spec(
        **label, loss="zero_one", epsilon=epsilon, name="sets", mechanism="subset_selection"
    )


def categories(values: list[Any], epsilon: float) -> str:
    """A spec of sets of categories; the last one stands in for what is not listed."""
    return sets(epsilon, values=values, out_of_domain={"default": values[-1]})


def integers(low: int, high: int, epsilon: float) -> str:
    """A spec of sets of integers, to which others are clamped."""
    domain = {"kind": "integer", "min": low, "max": high}
    return sets(epsilon, domain=domain, out_of_domain="clamp")


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


def column(name: str, domain: str, **more: Any) -> dict[str, Any]:
    """A column of a label of several."""
    return {"column": name, "domain": yaml.safe_load(domain), **more}


def pair(no: str, losses: tuple[dict[str, str], dict[str, str]] = ({}, {})) -> list[dict[str, Any]]:
    """The columns of a conversion and its value."""
    default = {"out_of_domain": {"default": no}, **losses[0]}
    return [
        column("converted", f"{{kind: categorical, values: ['{no}', 'yes']}}", **default),
        column("value", "{kind: integer, min: 0, max: 4}", **losses[1]),
    ]


_MIXED = [
    column("price", "{kind: real, min: -1, max: 2.5, points: 8}", loss="absolute"),
    column(
        "code",
        "{kind: categorical, values: [7, -3, 12]}",
        out_of_domain={"default": -3},
        loss="zero_one",
    ),
    column(
        "n",
        "{kind: integer, min: -2, max: 3}",
        out_of_domain={"default": 1},
        loss="squared",
        weight=0.25,
    ),
]
_GRID = [*pair("no"), column("share", "{kind: real, min: 0.1, max: 0.7, points: 4}")]
_ADS = pair("né", ({"loss": "zero_one"}, {"loss": "squared"}))
_PAIR = {"columns": pair("no"), "loss": "zero_one", "name": "pair"}
_LARGE = {**_PAIR, "epsilon": 8, "mechanism": "subset_selection"}
JOINT = {
    "mixed": spec(columns=_MIXED, loss="sum", name="mixed", epsilon=3, mechanism="rr_with_prior"),
    "text": spec(columns=_ADS, loss="sum", name="ads", epsilon=2, mechanism="randomized_response"),
    "sets": spec(**_PAIR, mechanism="auto"),
    "response": spec(**_PAIR, epsilon=8, mechanism="randomized_response"),
    "large ε": spec(**_LARGE),
    "large ε, grid": spec(**{**_LARGE, "columns": _GRID}),
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
