"""A sweep with targets: the ε and the mechanism for a given quality of private labels."""

import math
from collections.abc import Sequence
from pathlib import Path

from labeldp_verify.reading.figures import belief_in_words
from labeldp_verify.rounded import at_most, percent_at_most

from labeldp_compile.cli.output import observing, show, text_table
from labeldp_compile.errors import InputError
from labeldp_compile.sweeps.choice import Choice, choose_spec
from labeldp_compile.sweeps.search import Trial
from labeldp_compile.sweeps.targets import TARGETS, Asked

BEST = "◄"


def print_choice(
    spec: Path,
    targets: Sequence[str],
    rows: int | None,
    *,
    verbose: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find and print the smallest ε, and the mechanism, that meet the targets, as NAME=VALUE.

    Raises InputError for targets that have no meaning, and UnreachedError if no ε meets them.
    """
    asked: dict[str, str] = {}
    for text in targets:
        name, equals, value = text.partition("=")
        if name not in TARGETS or not equals:
            raise InputError(
                f"--target: expected NAME=VALUE, where NAME is {', '.join(TARGETS)}, got {text!r}"
            )
        if TARGETS[name] in asked:
            raise InputError(f"--target: {name} is given more than once")
        asked[TARGETS[name]] = value
    with observing("counting labels", quiet=quiet) as observer:
        choice = choose_spec(spec, Asked(**asked, rows=rows), observer)
    show(as_json, choice.to_json, lambda: _in_words(choice, verbose=verbose))


def _in_words(choice: Choice, *, verbose: bool) -> list[str]:
    """What was asked, the chosen mechanism or all of them, and last the answer."""
    spec, epsilon = choice.spec, f"{float(choice.epsilon):g}"
    prior = "private, treated as uniform: no label was read"
    asked = [target.in_words() for target in choice.wanted.targets]
    if choice.wanted.belief is not None:
        asked.append(choice.wanted.belief.in_words())
    beliefs = [(f"{before:.0%}", percent_at_most(after, 3)) for before, after in choice.beliefs]
    table = _table(choice)
    lines = [
        f"{spec.name}: {spec.domain.size:,} labels, loss: {spec.loss}, goal: {spec.goal}, "
        f"prior: {prior if choice.assumed_uniform else spec.prior.kind}",
        *(f"asked: {one}" for one in asked),
        "",
        *(table if verbose else table[:2]),
    ]
    if verbose:
        if choice.wanted.targets and not all(trial.will_do for trial in choice.standings):
            lines.append("> : misses a target at this ε; its figures are for this ε")
        lines += [f"not usable: {names}: {problem}" for problem, names in _useless(choice).items()]
    elif len(table) > 2:
        others = "other mechanism" if len(table) == 3 else f"other {len(table) - 2} mechanisms"
        lines.append(f"more: --verbose shows the {others}")
    lines += [
        "",
        "lines for the spec:",
        *(f"  {line}" for line in choice.spec_lines()),
        "",
        f"privacy at ε = {epsilon}: for any two labels, output probabilities differ by a factor of "
        f"at most e^ε = {at_most(math.exp(choice.epsilon), 4)}",
        belief_in_words(beliefs),
    ]
    if choice.chosen.unbiased is False:
        title = choice.chosen.mechanism.title
        lines.append(f"private labels of {title} are biased; labeldp estimate corrects this")
    person = spec.privacy.person
    if person is not None:
        lines.append(
            f"a person with {person.labels:,} labels spends ε = {at_most(choice.of_unit)}, the "
            f"prior included; each label has ε = {epsilon} of it"
        )
    elif spec.privacy.labels_per_user is not None:
        labels = spec.privacy.labels_per_user
        total = at_most(labels * choice.epsilon)
        lines.append(f"a user with {labels:,} labels spends ε = {total}")
    return [*lines, _answer(choice, epsilon)]


def _answer(choice: Choice, epsilon: str) -> str:
    title = choice.chosen.mechanism.title
    if not choice.wanted.targets:
        return f"ε = {epsilon} is the largest within the limit; {title} serves the goal best there"
    if choice.missed_at is None:
        return f"ε = {epsilon} is enough, with {title}; smaller ε are not tried"
    return f"ε = {epsilon} is enough, with {title}; ε = {float(choice.missed_at):g} is not"


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
