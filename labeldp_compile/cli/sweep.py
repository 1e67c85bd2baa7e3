"""``labeldp sweep``: every mechanism at several ε, or at the smallest ε that meets targets."""

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import click
from labeldp_verify.printable import Marked, at_most
from labeldp_verify.usefulness.figures import belief_in_words

from labeldp_compile.cli.command import (
    command,
    complain,
    observing,
    require_met,
    show,
    text_table,
    using_project,
)
from labeldp_compile.cli.options import (
    PATH,
    Whole,
    json_option,
    overwrite_option,
    quiet_option,
    require_form,
    test_seed_option,
    verbose_option,
)
from labeldp_compile.errors import InputError, require_pages
from labeldp_compile.mechanisms import KINDS as MECHANISMS
from labeldp_compile.spec import Spec
from labeldp_compile.sweeps.choice import Choice, Trial, choose_spec
from labeldp_compile.sweeps.sweep import (
    BEST,
    DEFAULT_EPSILONS,
    FRONTIER_HEADER,
    Sweep,
    exact_epsilons,
    frontier_table,
    sweep_spec,
)
from labeldp_compile.sweeps.targets import TARGETS
from labeldp_compile.whole_file import require_output, write_text

_SCREEN = 16  # points that a screen has room for


_TARGETS, _POINTS = "a search (--target)", "a comparison of mechanisms"
# Names of the options of each form of a sweep.
_FORMS = {
    _TARGETS: ("rows",),
    _POINTS: ("epsilons", "mechanisms", "output", "with_frontier", "spend", "test_seed"),
}


@command(
    "sweep",
    "labeldp sweep specs/doctor-visits.yaml --epsilon 1,4 --spend-prior -o sweep.html",
    "labeldp sweep specs/doctor-visits.yaml --target mean-error=0.5 --rows 20190",
    "labeldp sweep specs/health-rating.yaml --target max-belief=0.2@0.01",
)
@click.argument("spec", type=PATH)
@click.option(
    "--epsilon",
    "epsilons",
    metavar="ε,ε,…",
    help="Values of ε to compare, of a label, or of a person if that is the spec's unit. Default: "
    f"{','.join(DEFAULT_EPSILONS)} and the spec's own.",
)
@click.option(
    "--mechanisms",
    metavar="NAME,…",
    shell_complete=lambda ctx, parameter, start: _mechanisms_after(start),
    help="The mechanisms to compare; rr_top_k:5 has k = 5. Default: all that fit the label and "
    "the loss.",
)
@verbose_option
@json_option
@click.option(
    "-o", "--output", type=PATH, help="Also write a page (.html) with a picture and all tables."
)
@overwrite_option
@click.option(
    "--bias-frontier",
    "with_frontier",
    is_flag=True,
    help="Also show how much loss unbiasedness costs.",
)
@click.option(
    "--spend-prior", "spend", is_flag=True, help="Spend ε₁ on a private prior, once for all points."
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME=VALUE",
    help="Find the smallest ε that meets this target; may be repeated. mean-error=E (numbers) and "
    "share-error=E (categories): the 95% margin of error of a mean or share over --rows rows. "
    "label-error=E: the error of one private label, assuming the prior (root mean square, or the "
    "probability of another label). max-belief=B@S: an observer who was S sure of a label can "
    "become at most B sure; alone, it gives the largest such ε.",
)
@click.option(
    "--rows", type=Whole(), metavar="N", help="For --target: rows of the mean or the shares."
)
@quiet_option
@test_seed_option
def sweep_command(
    spec: Path,
    epsilons: str | None,
    mechanisms: str | None,
    verbose: bool,
    as_json: bool,
    output: Path | None,
    overwrite: bool,
    with_frontier: bool,
    spend: bool,
    targets: tuple[str, ...],
    rows: int | None,
    quiet: bool,
    test_seed: int | None,
) -> None:
    """Compare all mechanisms for the label, loss and prior of SPEC.

    Every point is compiled and verified. Only the file of -o is written. A private prior is
    estimated once for all points, and only with --spend-prior.

    With --target, find the smallest ε, and the mechanism, that make private labels good enough. No
    label is read: a private prior is treated as uniform. A margin of error holds for all labels in
    the range. Exit code 1: no ε up to 20 meets the targets.
    """
    require_form(_TARGETS if targets else _POINTS, _FORMS)
    if targets:
        asked = _targets(targets)
        with observing("counting labels", quiet=quiet) as observer:
            choice = choose_spec(spec, asked, rows, observer)
        show(as_json, choice.to_json, lambda: _choice_in_words(choice, verbose=verbose))
        return
    require_output(output, spec, endings=(".html",), overwrite=overwrite)
    if spend:
        _require_allowed(spec, quiet=quiet)
    if output is not None:
        require_pages()
    with observing("counting labels", quiet=quiet, say=complain) as observer:
        sweep = sweep_spec(
            spec,
            None if epsilons is None else _totals(epsilons),
            None if mechanisms is None else mechanisms.split(","),
            bias_frontier=with_frontier,
            spend_prior=spend,
            test_seed=test_seed,
            observer=observer,
        )
    show(as_json, sweep.to_json, lambda: _sweep_in_words(sweep, verbose=verbose))
    if output is not None:  # last: a full disk must not lose a result that ε was spent on
        # Matplotlib takes half a second to import.
        from labeldp_compile.sweeps.page import sweep_page  # noqa: PLC0415

        write_text(output, sweep_page(sweep))


def _require_allowed(spec: Path, *, quiet: bool) -> None:
    """Raise what the policy of a project file refuses, before anything is spent."""
    # Half a second to import, and most sweeps spend nothing.
    from labeldp_compile.build.plan import plan_spec  # noqa: PLC0415
    from labeldp_compile.check import load_policy  # noqa: PLC0415
    from labeldp_compile.cli.plan import judged_by  # noqa: PLC0415

    project = using_project(spec.parent, quiet=quiet)
    if project is not None and project.policy is not None:
        rules = load_policy(project.policy)
        require_met(judged_by(plan_spec(spec), spec, rules), rules)


def _mechanisms_after(start: str) -> list[str]:
    """Completions of a list of mechanisms: the list with one name more."""
    before, comma, last = start.rpartition(",")
    return [before + comma + name for name in MECHANISMS if name.startswith(last)]


def _totals(text: str) -> list[Fraction]:
    try:
        return exact_epsilons(text.split(","))
    except InputError as error:
        raise InputError(f"--epsilon: {error}") from None


def _targets(texts: Sequence[str]) -> dict[str, str]:
    """Targets by name, from NAME=VALUE."""
    asked: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if name not in TARGETS or not equals:
            raise InputError(
                f"--target: expected NAME=VALUE, where NAME is {', '.join(TARGETS)}, got {text!r}"
            )
        if name in asked:
            raise InputError(f"--target: {name} is given more than once")
        asked[name] = value
    return asked


def _title(spec: Spec, prior: str) -> str:
    return (
        f"{spec.name}: {spec.domain.size:,} labels, loss: {spec.stated_loss}, goal: {spec.goal}, "
        f"prior: {prior}"
    )


def _sweep_in_words(sweep: Sweep, *, verbose: bool) -> list[str]:
    """The tables as far as they fit a screen, and last the best mechanism of each ε."""
    spec, prior = sweep.spec, sweep.prior_in_words
    if sweep.spent:
        of_unit = float(spec.privacy.labels_of_unit * sweep.spent)
        prior += (
            f"; its ε₁ = {of_unit:g} is spent once for all points, by each run that reads the "
            "labels"
        )
    lines = [_title(spec, prior)]
    if sweep.insecure:
        lines.append(Marked(sweep.insecure, "warning"))
    is_whole = verbose or len(sweep.points) <= _SCREEN
    lines += [*(_tables(sweep) if is_whole else []), "", *sweep.notes()]
    absent = [
        *(
            f"not compiled at {sweep.in_words(epsilon)}: {', '.join(names)}: {reason}"
            for epsilon, reason, names in sweep.missing_by_reason()
        ),
        *(f"left out: {mechanism}: {reason}" for mechanism, reason in sweep.left_out),
    ]
    if is_whole:
        lines += absent
    else:
        lines.append(
            f"more: --verbose shows all {len(sweep.points):,} points"
            + (" and what could not be compiled" if absent else "")
        )
    for line in sweep.frontier:
        title, rows = frontier_table(line)
        lines += ["", title, *text_table(FRONTIER_HEADER, rows)]
    return [*lines, "", *_best(sweep)]


def _tables(sweep: Sweep) -> list[str]:
    """All points, a table for each ε."""
    ordered = [(epsilon, p) for epsilon, points in sweep.by_epsilon() for p in points]
    table = text_table([*sweep.columns], [sweep.cells(point) for _, point in ordered])
    width = max(map(len, table))
    lines, shown = [], None
    for text, (epsilon, point) in zip(table[1:], ordered, strict=True):
        if epsilon != shown:
            lines += ["", sweep.in_words(epsilon), table[0]]
            shown = epsilon
        best = f"{BEST} " if point is sweep.best(epsilon) else ""
        lines.append(f"{text:<{width}} {best}{sweep.remark(point)}".rstrip())
    return lines


def _best(sweep: Sweep) -> list[str]:
    """The best mechanism of each ε, or that there is none."""
    best = [(epsilon, sweep.best(epsilon)) for epsilon in sweep.epsilons()]
    if len(best) == 1:
        epsilon, point = best[0]
        name = "no mechanism is useful" if point is None else point.mechanism
        return [f"best for {sweep.spec.goal} at {sweep.in_words(epsilon)}: {name}"]
    header = [*sweep.columns]
    none = ["no mechanism is useful", *["–"] * (len(header) - 1)]
    of_person, unit = sweep.of_person, ["ε of a person"] if sweep.of_person else []
    rows = [
        [
            f"{epsilon:g}",
            *([f"{of_person[epsilon]:g}"] if unit else []),
            *(none if point is None else sweep.cells(point)),
        ]
        for epsilon, point in best
    ]
    heading = ["ε of a label" if unit else "ε", *unit, *header]
    table = text_table(heading, rows, left=(1 + len(unit),))
    return [f"best for {sweep.spec.goal}:", *table]


def _choice_in_words(choice: Choice, *, verbose: bool) -> list[str]:
    """The question, the chosen mechanism or all of them, and last the answer."""
    spec, epsilon = choice.spec, f"{float(choice.epsilon):g}"
    prior = "private, treated as uniform: no label was read"
    table = _standings(choice)
    lines = [
        _title(spec, prior if choice.assumed_uniform else spec.prior.kind),
        *(f"asked: {one}" for one in choice.wanted.in_words()),
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
        *(belief_in_words(before, after, 3) for before, after in choice.beliefs),
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


def _standings(choice: Choice) -> list[str]:
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
