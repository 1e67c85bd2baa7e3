"""The text of a first spec: the user's answers, and comments that say what each key means."""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml

from labeldp_compile.text_form import TextForm

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*")
_WORDS = ("true", "false", "null")

_SPEC = """\
# A spec of labeldp: what is randomized, and how privately. docs/spec.md explains it
# all. Editors complete and check it with the first line
#   # yaml-language-server: $schema=labeldp-spec.schema.json
# and that file beside it (labeldp schema > labeldp-spec.schema.json).
version: 1
name: {name}  # of the files that compile writes

# What the private labels are for:
#   training   a model, or means and shares of many: outputs must be right on average
#   labels     somebody reads single ones: each as close as possible to the true one
goal: {goal}

# The secret column, and every label that it may hold.
{label}

# What an error costs; ŷ is the private label, y the true one:
#   squared    ½(ŷ − y)², for means and regression      absolute   |ŷ − y|, for medians
#   poisson    ŷ − y·ln ŷ, for counts                   zero_one   1 if ŷ ≠ y, for categories
loss: {loss}

# The privacy budget: for any two labels, the probabilities of an output differ by a factor of at
# most e^ε. At ε = 1 that is 2.7, at 4 it is 55, at 8 it is 2,981. Substitution of one label is
# protected; features are taken as public. A person with several labels spends ε for each.
privacy:
  epsilon: {epsilon}  # in total, for a label in the prior's table
{prior}

{which}
mechanism:
  kind: {mechanism}
"""
_PRIVATE = """\
  split: auto

# Which labels are likely: the histogram of the table with noise. Each compile reads it once and
# spends a part of ε on it. split: auto spends the part with the least expected loss for this number
# of rows and labels; with few rows it spends nothing, and the prior is uniform. labeldp plan says
# which.
prior:
  kind: private
  data: {data}"""
_UNIFORM = """\

# Which labels are likely: all alike, which costs nothing. {kind: private, data: FILE} estimates it
# with noise, for a part of ε; {kind: public, weights: […]} states what is no secret.
prior:
  kind: uniform"""
_AUTO = """\
# Which randomizer. auto chooses by the loss and the goal, and says why; labeldp sweep compares all
# of them for this spec."""
_NAMED = """\
# Which randomizer; labeldp sweep compares all of them for this spec."""
_NUMBERS = """\
label:
  column: {column}
  # The range must come from what the label means: the least and the greatest label of a
  # table are secrets. A wide range costs accuracy.{rounded}
  domain: {{kind: {kind}, min: {low}, max: {high}{points}}}
  # Labels outside take the nearest end, nulls the lowest label.
  out_of_domain: clamp"""
_CATEGORIES = """\
label:
  column: {column}
  # A list that everybody may know, whether or not a value occurs.
  domain: {{kind: categorical, values: [{values}]}}
  # Where nulls and values outside the list go: an error would disclose the label.
  out_of_domain: {{default: {default}}}"""


def starter_spec(
    *,
    name: str,
    label: str,
    loss: str,
    epsilon: str,
    mechanism: str,
    goal: str,
    prior: str | None = None,
) -> str:
    """The commented YAML, with the part of the label and of a private prior, if there is one.

    It may still be invalid, where the answers are: parse it.
    """
    return _SPEC.format(
        name=scalar(name),
        label=label,
        loss=loss,
        epsilon=epsilon,
        prior=prior or _UNIFORM,
        goal=goal,
        which=_AUTO if mechanism == "auto" else _NAMED,
        mechanism=mechanism,
    )


def numbers(column: str, kind: str, low: str, high: str, points: int | None = None) -> str:
    """The label's part, of numbers: the ends as they were written."""
    return _NUMBERS.format(
        column=scalar(column),
        kind=kind,
        low=low,
        high=high,
        rounded="\n  # Numbers are rounded to this number of evenly spaced points." * bool(points),
        points=f", points: {points}" if points else "",
    )


def categories(column: str, values: Sequence[str | int], default: str | int) -> str:
    """The label's part, of categories."""
    listed = ", ".join(map(scalar, values))
    return _CATEGORIES.format(column=scalar(column), values=listed, default=scalar(default))


def private_prior(data: str, form: TextForm, rows: int | None, *, is_counted: bool) -> str:
    """The prior's part: ``data`` is relative to the spec; Parquet states its rows itself."""
    lines = [_PRIVATE.format(data=scalar(data))]
    lines += [f"  {key}: {scalar(value)}" for key, value in vars(form).items() if value is not None]
    if rows is not None:
        lines.append(f"  rows: {rows}  # public; lets plan read no CSV file")
    elif not is_counted:
        lines.append("  # rows: N  # state the public number of rows: plan reads no CSV file")
    return "\n".join(lines)


def scalar(value: str | int) -> str:
    """A YAML scalar: text stays text."""
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and value not in _WORDS:
        return value
    quoted: str = yaml.safe_dump(value, allow_unicode=True, default_style='"', width=2**31)
    return quoted.strip()
