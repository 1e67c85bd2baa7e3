"""The text of a first spec: the user's answers, and comments that say what each key means."""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

from labeldp_compile.text_form import PLAIN, TextForm

_PLAIN = re.compile(r"[A-Za-z_./][A-Za-z0-9_./-]*")
_WORDS = ("true", "false", "null")

_LOSSES = """\
# What an error costs; ŷ is the private label, y the true one:
#   squared    ½(ŷ − y)², for means and regression      absolute   |ŷ − y|, for medians
#   poisson    ŷ − y·ln ŷ, for counts                   zero_one   1 if ŷ ≠ y, for categories"""
_EPSILON = """\
# The privacy budget: no output may be more than e^ε times as probable under one label as under
# another. At ε = 1 that is 2.7, at 4 it is 55, at 8 it is 2,981. Substitution of one label is what
# is protected; features are taken as public. A person with several labels pays for each."""
_PRIVATE = """\
# Which labels are likely: the histogram of the table with noise. Each compile reads it once and
# spends a part of ε on it. split: auto spends what makes the expected loss least, for so many rows
# and labels; of few rows that is nothing, and the prior is uniform. labeldp plan says which."""
_UNIFORM = """\
# Which labels are likely: all alike, which costs nothing. {kind: private, data: FILE} estimates it
# with noise, for a part of ε; {kind: public, weights: […]} states what is no secret."""
_GOAL = """\
# What the private labels are for:
#   training   a model, or means and shares of many: outputs must be right on average
#   labels     somebody reads single ones: each as close as possible to the true one"""
_AUTO = """\
# Which randomizer. auto chooses by the loss and the goal, and says why; labeldp sweep compares all
# of them for this spec."""
_NAMED = """\
# Which randomizer; labeldp sweep compares all of them for this spec."""


@dataclass(frozen=True)
class DomainAnswers:
    """The labels: exactly one of ``ends`` (with ``points`` for real labels) and ``values``.

    Numbers are kept as the text that the user wrote.
    """

    kind: str
    ends: tuple[str, str] | None = None
    points: int | None = None
    values: tuple[str | int, ...] | None = None
    default: str | int | None = None


@dataclass(frozen=True)
class Answers:
    """What a first spec needs to know; ``data`` is relative to the spec, None: uniform prior."""

    name: str
    column: str
    domain: DomainAnswers
    loss: str
    epsilon: str
    mechanism: str
    goal: str
    data: str | None
    rows: int | None = None
    rows_known: bool = True  # Parquet states its number of rows
    form: TextForm = PLAIN


def starter_spec(answers: Answers) -> str:
    """The commented YAML. It may still be invalid, where the answers are: parse it."""
    return "\n".join(
        [
            "# A spec of labeldp: what is randomized, and how privately. docs/spec.md explains it",
            "# all. Editors complete and check it with the first line",
            "#   # yaml-language-server: $schema=labeldp-spec.schema.json",
            "# and that file beside it (labeldp schema > labeldp-spec.schema.json).",
            "version: 1",
            f"name: {scalar(answers.name)}  # of the files that compile writes",
            "",
            _GOAL,
            f"goal: {answers.goal}",
            "",
            *_label(answers.column, answers.domain),
            "",
            _LOSSES,
            f"loss: {answers.loss}",
            "",
            _EPSILON,
            "privacy:",
            f"  epsilon: {answers.epsilon}  # in total, for a label in the prior's table",
            *(["  split: auto"] if answers.data is not None else []),
            "",
            *_prior(answers),
            "",
            _AUTO if answers.mechanism == "auto" else _NAMED,
            "mechanism:",
            f"  kind: {answers.mechanism}",
            "",
        ]
    )


def scalar(value: str | int) -> str:
    """A YAML scalar: text stays text."""
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and value not in _WORDS:
        return value
    quoted: str = yaml.safe_dump(value, allow_unicode=True, default_style='"', width=2**31)
    return quoted.strip()


def _label(column: str, domain: DomainAnswers) -> list[str]:
    lines = ["# The secret column, and every label that it may hold.", "label:"]
    lines.append(f"  column: {scalar(column)}")
    if domain.values is not None:
        values = ", ".join(map(scalar, domain.values))
        lines += [
            "  # A list that everybody may know, whether or not a value occurs.",
            f"  domain: {{kind: categorical, values: [{values}]}}",
            "  # Where nulls and values outside the list go: an error would disclose the label.",
            f"  out_of_domain: {{default: {scalar(domain.default or 0)}}}",
        ]
        return lines
    assert domain.ends is not None
    low, high = domain.ends
    points = "" if domain.points is None else f", points: {domain.points}"
    lines += [
        "  # The range must come from what the label means: the least and the greatest label of a",
        "  # table are secrets. A wide range costs accuracy.",
    ]
    if domain.points is not None:
        lines.append("  # Numbers are rounded to so many evenly spaced points.")
    lines += [
        f"  domain: {{kind: {domain.kind}, min: {low}, max: {high}{points}}}",
        "  # Labels outside take the nearest end, nulls the lowest label.",
        "  out_of_domain: clamp",
    ]
    return lines


def _prior(answers: Answers) -> list[str]:
    if answers.data is None:
        return [_UNIFORM, "prior:", "  kind: uniform"]
    rows = []
    if answers.rows is not None:
        rows = [f"  rows: {answers.rows}  # public; lets plan read no CSV file"]
    elif not answers.rows_known:
        rows = ["  # rows: N  # state the public number of rows: plan reads no CSV file"]
    form = [
        f"  {key}: {scalar(value)}"
        for key, value in vars(answers.form).items()
        if value is not None
    ]
    return [_PRIVATE, "prior:", "  kind: private", f"  data: {scalar(answers.data)}", *form, *rows]
