"""``labeldp choose``: from what private labels must be good for to an ε and a mechanism."""

from __future__ import annotations

import math
from pathlib import Path

import click
from labeldp_verify.reading.usefulness import belief_in_words
from labeldp_verify.rounded import at_most, percent_at_most

from labeldp_compile.cli.command import command
from labeldp_compile.cli.options import PATH, Whole, json_option, quiet_option
from labeldp_compile.cli.output import observing, show, text_table
from labeldp_compile.tools.choose.choose import Choice, choose_spec
from labeldp_compile.tools.choose.search import Trial
from labeldp_compile.tools.choose.targets import Asked

BEST = "◄"


@command(
    "choose",
    "labeldp choose specs/doctor-visits.yaml --mean-error 0.5 --rows 20190",
    "labeldp choose specs/health-rating.yaml --max-belief 0.2@0.01",
)
@click.argument("spec", type=PATH)
@click.option("--mean-error", metavar="E", help="95% margin of error of a mean (numbers).")
@click.option("--share-error", metavar="E", help="The same of each share (categories).")
@click.option(
    "--label-error",
    metavar="E",
    help="One private label is off by E, root mean square; of categories: Pr[not the true one]. "
    "Assumes the prior.",
)
@click.option("--rows", type=Whole(), metavar="N", help="Of the mean, or of the shares.")
@click.option(
    "--max-belief",
    metavar="B@S",
    help="A belief in a label of share S may rise to B: limits ε, and alone chooses the largest.",
)
@json_option
@quiet_option
def choose_command(
    spec: Path,
    mean_error: str | None,
    share_error: str | None,
    label_error: str | None,
    rows: int | None,
    max_belief: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find the least ε, and the mechanism, that make private labels good enough.

    For the label, loss, goal and prior of SPEC, whose own ε and mechanism play no part. A margin of
    error holds for all labels in the range. No label is read: a private prior is taken as uniform.
    Exit code 1 if no ε up to 20 will do.
    """
    asked = Asked(mean_error, share_error, label_error, rows, max_belief)
    with observing("counting labels", quiet=quiet) as observer:
        choice = choose_spec(spec, asked, observer)
    show(as_json, choice.to_json, lambda: _in_words(choice))


def _in_words(choice: Choice) -> list[str]:
    spec, epsilon = choice.spec, f"{float(choice.epsilon):g}"
    prior = "private, taken as uniform: no label was read"
    lines = [
        f"{spec.name}: {spec.domain.size:,} labels, loss: {spec.loss}, goal: {spec.goal}, "
        f"prior: {prior if choice.assumed_uniform else spec.prior.kind}",
        *(f"asked: {target.in_words()}" for target in choice.wanted.targets),
        *([] if choice.wanted.belief is None else [f"asked: {choice.wanted.belief.in_words()}"]),
        "",
        *_table(choice),
        "",
        *_answer(choice),
    ]
    beliefs = [(f"{before:.0%}", percent_at_most(after, 3)) for before, after in choice.beliefs]
    lines += [
        f"privacy at ε = {epsilon}: an output is at most e^ε = "
        f"{at_most(math.exp(choice.epsilon), 4)} times as likely under one label as under another",
        belief_in_words(beliefs),
        "",
        "in the spec:",
    ]
    return [*lines, *(f"  {line}" for line in choice.spec_lines())]


def _answer(choice: Choice) -> list[str]:
    epsilon, title = f"{float(choice.epsilon):g}", choice.chosen.mechanism.title
    problems = [f"will not do: {names}: {problem}" for problem, names in _useless(choice).items()]
    if choice.chosen.unbiased is False:
        problems.append(f"{title}: labels are off on average, which labeldp estimate undoes")
    if not choice.wanted.targets:
        text = f"ε = {epsilon} is the largest that keeps to it; {title} serves the goal best there"
        return [*problems, text]
    if not all(trial.will_do for trial in choice.standings):
        problems.insert(0, "> : does not reach it at this ε, which its figures are of")
    if choice.missed_at is None:
        return [*problems, f"ε = {epsilon} reaches it, with {title}; less is not tried"]
    missed = f"ε = {float(choice.missed_at):g} does not"
    return [*problems, f"ε = {epsilon} of a label reaches it, with {title}; {missed}"]


def _useless(choice: Choice) -> dict[str, str]:
    """{problem: mechanisms}."""
    together: dict[str, list[str]] = {}
    for trial in choice.standings:
        if trial.problem is not None:
            together.setdefault(trial.problem, []).append(trial.mechanism.title)
    return {problem: "; ".join(names) for problem, names in together.items()}


def _table(choice: Choice) -> list[str]:
    header = ["mechanism", "least ε" if choice.wanted.targets else "ε"]
    header += [column.name for column in choice.wanted.columns] + ["outputs"]
    table = text_table(header, [_cells(choice, trial) for trial in choice.standings])
    width = max(map(len, table))
    return [table[0], f"{table[1]:<{width}} {BEST}", *table[2:]]


def _cells(choice: Choice, trial: Trial) -> list[str]:
    tried = f"{float(trial.tried):g}"
    out = not trial.will_do and bool(choice.wanted.targets)
    return [
        trial.mechanism.title,
        f"> {tried}" if out else tried,
        *("–" if figure is None else at_most(figure, 4) for _, figure in choice.figures_of(trial)),
        "–" if trial.outputs is None else f"{trial.outputs:,}",
    ]
