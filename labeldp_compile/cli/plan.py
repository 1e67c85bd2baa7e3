"""``labeldp plan``: what compile would do, before anything is spent."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click
from labeldp_verify.analysis import LOSSES
from labeldp_verify.budget import DEFAULT_BUDGET
from labeldp_verify.claims import DECLARED_BY, nulls_in_short, nulls_in_words
from labeldp_verify.forms import CategoricalDomain, Domain, GridDomain, RealDomain, columns_of
from labeldp_verify.printable import Marked, at_most
from labeldp_verify.usefulness.shortcomings import relevant

from labeldp_compile.build import PLAN_SUFFIX
from labeldp_compile.build.forecast import Estimate, is_unpaid
from labeldp_compile.build.plan import Plan, plan_spec, save_plan
from labeldp_compile.cli.command import NUMBERS_OF_SETS, command, fact, show, tell, using_project
from labeldp_compile.cli.options import PATH, json_option, overwrite_option, verbose_option
from labeldp_compile.ledger.book import read_entries
from labeldp_compile.ledger_url import is_url
from labeldp_compile.prior.discrete_laplace import NOISE
from labeldp_compile.prior.obtain import form_doubts
from labeldp_compile.spec import Spec
from labeldp_compile.weak_promise import weak_promise
from labeldp_compile.whole_file import require_output

if TYPE_CHECKING:
    from labeldp_compile.check import Judged, LoadedPolicy

_FAR = 2  # times the range of the labels: outputs that span more are warned of
_WIDE = 4  # an estimate is shown as a range if its ends are further apart than this factor


@command(
    "plan",
    "labeldp plan specs/doctor-visits.yaml",
    "labeldp plan visits.yaml --policy policy.yaml --out visits.plan",
)
@click.argument("spec", type=PATH)
@click.option("--policy", type=PATH, help="Exit with 1 if compile would not meet this policy.")
@click.option(
    "--out",
    type=PATH,
    metavar="FILE.plan",
    help="Save the plan. labeldp compile FILE.plan does exactly this, or nothing.",
)
@overwrite_option
@json_option
@verbose_option
def plan_command(
    spec: Path, policy: Path | None, out: Path | None, overwrite: bool, as_json: bool, verbose: bool
) -> None:
    """Preview compile with SPEC: the ε that it spends, the randomizer and the files.

    Reads no label. It reads the footer of a Parquet file, nothing of a CSV file, and the columns of
    groups and persons. Everything that compile refuses before it spends is refused here, with exit
    code 2 (1 if its ledger is over budget, or a policy is not met). --out also reads the names of
    the columns. The policy of a labeldp.yaml beside SPEC must be met, too.
    """
    require_output(out, spec, policy, endings=(PLAN_SUFFIX,), overwrite=overwrite)
    project = using_project(spec.parent)
    stated = {"policy": policy, "project_policy": None if project is None else project.policy}
    policies: dict[str, LoadedPolicy] = {}
    for key, path in stated.items():
        if path is not None:
            from labeldp_compile.check import load_policy  # noqa: PLC0415

            policies[key] = load_policy(path)
    plan = plan_spec(spec)
    document, lines = plan.to_json(), _lines(plan, spec, verbose=verbose)
    judged = {key: judged_by(plan, spec, loaded) for key, loaded in policies.items()}
    for key in sorted(judged, key=lambda key: bool(judged[key].failed)):  # the verdict is last
        document[key] = judged[key].to_json()
        lines += _verdict(judged[key], policies[key])
    show(as_json, lambda: document, lambda: lines)
    if any(one.failed for one in judged.values()):
        sys.exit(1)
    if out is not None:
        met = [{"path": str(one.path), "sha256": one.sha256} for one in policies.values()]
        save_plan(plan, spec, out, next(iter(met), None))
        tell(f"{out}: labeldp compile {out} does exactly this, or nothing")


def _verdict(judged: Judged, policy: LoadedPolicy) -> Iterator[str]:
    """Lines on what a policy leaves open or refuses, and the verdict."""
    from labeldp_compile.check.rules import OPEN  # noqa: PLC0415

    allowed = [one for one in judged.findings if one.ok and one.found == OPEN]
    yield from (Marked(f"open   {one.rule}: {one.text}", "warning") for one in allowed)
    yield from (Marked(f"FAILED {one.rule}: {one.text}", "failed") for one in judged.failed)
    if judged.failed:
        yield Marked(f"NOT ALLOWED by {policy.path}: do not compile this", "failed")
    else:
        yield Marked(f"allowed by {policy.path}, as far as a plan can show", "ok")


def judged_by(plan: Plan, spec: Path, policy: LoadedPolicy) -> Judged:
    """The verdicts of the policy about the plan, and about the ledger that it would spend from."""
    from labeldp_compile.check import judge_plan  # noqa: PLC0415

    entries, where = [], plan.spec.privacy.ledger
    if where is not None and plan.ledger is not None:
        place = where if is_url(where) else spec.parent / where
        entries = read_entries(place, by_spec=True)
    return judge_plan(plan, spec, policy, entries)


def _lines(plan: Plan, path: Path, *, verbose: bool) -> list[str]:
    """The verdict is the last line; before it at most 13 lines without details.

    Warnings and further columns come on top of them.
    """
    spec, budget, forecast = plan.spec, plan.budget, plan.forecast
    auto = "" if spec.auto_reason is None else " (chosen by auto)"
    goal = f"for goal: {spec.goal}, loss: {spec.stated_loss}; answers: {_answers(plan)}"
    lines = [
        f"{spec.name}: a preview of compile; no label was read, and nothing is spent",
        *_labels(spec, verbose=verbose),
        fact("mechanism", f"{spec.named_mechanism.title}{auto}, {goal}"),
    ]
    if verbose and spec.auto_reason is not None:
        lines.append(fact("", f"auto: {spec.auto_reason}"))
    prior, groups = _prior(plan), _groups(plan)
    lines += [*prior, *groups] if verbose else [*prior[:1], *groups[:1]]
    if plan.ledger is not None:
        lines.append(fact("ledger", plan.ledger))
    lines += [
        fact("ε per label", _spent(float(budget.label), "each time a label is randomized")),
        fact("ε of the prior", _spent(float(budget.prior), _prior_cost(plan))),
        *_totals(plan),
    ]
    if plan.use is not None:
        lines += [fact(*line) for line in plan.use.lines(budget.rows, verbose=verbose)]
    lines += _span(plan, verbose=verbose)
    time, size = _about(forecast.seconds, _time), _about(forecast.size, _size)
    one_core, above = "", ""
    if verbose:
        one_core, above = (
            " for one core of a server",
            f", never above {_size(plan.most_bytes, at_most)}",
        )
        count = _count(forecast.outputs)
        lines += [fact("solver", forecast.solver), fact("number of outputs", count)]
    lines += [
        fact("time", f"{time} (estimated{one_core}, usually within a factor of 3)"),
        *(_verify(plan) if verbose else []),
        fact("size", f"{size} (estimated, usually within a factor of 2{above})"),
        *_warnings(plan),
    ]
    if not verbose:
        more = "--verbose shows all figures, the noise of the prior and the limits of the file"
        lines.append(f"more: {more}")
    spends = "spends nothing"
    if budget.prior:
        of_unit = at_most(float(spec.privacy.labels_of_unit * budget.prior))
        spends = f"spends ε = {of_unit} on {budget.data}"
    verdict = f"labeldp compile {path} {spends} and writes {spec.name}.onnx"
    return [*lines, Marked(verdict, "ok")]


def _totals(plan: Plan) -> list[str]:
    """The total ε of a label, and beside it that of a person."""
    budget, unit, users = plan.budget, plan.budget.unit, plan.spec.privacy.labels_per_user
    total, labels = budget.total, users if unit is None else unit.labels
    if labels is None:
        person = "a person with several rows spends this once per row"
        return [fact("total ε", _spent(float(total), f"for one row; {person}"))]
    lines = [fact("total ε", _spent(float(total), "for one row"))]
    whose = f"for {labels:,} labels, of which the prior {at_most(float(labels * budget.prior))}"
    if unit is not None:
        whose += f"; persons are in {unit.column}"
    lines.append(fact("ε per person", _spent(float(labels * total), whose)))
    if unit is not None and (seen := budget.persons) is not None and seen.largest > 1:
        one = f"{seen.persons:,} persons; most rows of one: {seen.largest:,}"
        if seen.extra:
            one += f" ({seen.extra:,} rows are beyond {seen.most:,}: randomize refuses them)"
        if unit.labels > 1:
            one += (
                f". Aggregate to one row per person first (docs/persons.md): its label then has "
                f"ε = {at_most(float(labels * total))} instead of {at_most(float(total))}"
            )
        lines.append(fact("rows of a person", one))
    return lines


def _labels(spec: Spec, *, verbose: bool) -> list[str]:
    lines = []
    for name, domain in zip(spec.label.names, columns_of(spec.domain), strict=True):
        nulls = "" if verbose else f"; {nulls_in_short(domain)}"
        lines.append(fact("label", f"{name}: {_domain(domain)}{nulls}"))
        if verbose:
            lines.append(fact("other values", _others(domain)))
    if verbose:
        if len(spec.label.names) > 1:
            lines.append(fact("", f"together one label of {spec.domain.size:,} combinations"))
        lines.append(fact("nulls", nulls_in_words(spec.domain).removeprefix("nulls ")))
    return lines


def _span(plan: Plan, *, verbose: bool) -> list[str]:
    """Where outputs lie, and a line of warning if that is far beyond the range of the labels."""
    use, domain = plan.use, plan.spec.domain
    wider = None if use is None else use.times_wider(domain)
    if use is None or use.span is None or wider is None:
        return []
    low, high = use.span
    assert not isinstance(domain, CategoricalDomain)
    about = "" if use.settled else "about "
    lines = []
    if verbose:
        ends = f"{domain.min:,g} to {domain.max:,g}"
        lines.append(f"from {about}{low:,.6g} to {high:,.6g}, for labels from {ends}")
    outside = [end for end in (high, low) if not domain.min <= end <= domain.max]
    if outside:
        right = "; averages are still correct" * bool(use.figures.unbiased)
        impossible = f"a private label can lie outside the range, for example {about}"
        lines.insert(0, f"{impossible}{outside[0]:,.6g}{right}")
    lines = [fact("outputs" * (not i), line) for i, line in enumerate(lines)]
    if wider > _FAR:
        warning = (
            f"the outputs span {wider:.2g} times the range of the labels. If most labels lie in a "
            "small part of it, their noise is that of the whole range: choose a narrower range "
            "(labels outside it are clamped), a larger ε, or goal: labels, whose outputs stay "
            "inside the range"
        )
        lines.append(Marked(fact("warning", warning), "warning"))
    return lines


def _warnings(plan: Plan) -> list[str]:
    """Doubts about the spec, what limits the use of the labels, and an ε that hardly protects."""
    spec, groups, use = plan.spec, plan.budget.groups, plan.use
    texts = [*([] if groups is None else groups.odd), *form_doubts(spec)]
    if use is not None:
        condition = "" if use.settled else "if labels are spread evenly: "
        texts += [f"{condition}{one.text}" for one in relevant(use.shortcomings, spec.goal)]
    unit = plan.budget.unit
    labels = (spec.privacy.labels_per_user if unit is None else unit.labels) or 1
    texts += weak_promise(labels * plan.budget.total)
    if spec.named_mechanism.answers == "sets":
        texts.append(NUMBERS_OF_SETS)
    return [Marked(fact("warning", text), "warning") for text in texts]


def _answers(plan: Plan) -> str:
    """Which questions private labels answer, as ``labeldp estimate`` asks them."""
    spec, mechanism = plan.spec, plan.spec.named_mechanism
    numbers = not isinstance(spec.domain, CategoricalDomain)
    shares = None if plan.use is None else plan.use.shares
    if mechanism.answers == "sets" and shares is None:  # no prior changes them
        shares = True
    means = numbers and (mechanism.is_unbiased or bool(shares))
    quantiles = ", quantiles" * numbers
    if shares:
        return "means, " * means + f"shares, histogram{quantiles}"
    to_classes = numbers and LOSSES[spec.loss].needs_numbers
    way_out = " (for these, write loss: zero_one)" * to_classes
    others = f"no shares, histogram{quantiles}"
    if shares is None:
        others = f"shares, histogram{quantiles} only with some priors"
    return "means; " * means + others + way_out


def _prior(plan: Plan) -> list[str]:
    budget, kind = plan.budget, plan.spec.prior.kind
    if budget.data is None:
        return [fact("prior", kind)]
    rows = "number of rows not stated" if budget.rows is None else f"n = {budget.rows:,} rows"
    if is_unpaid(plan.spec, budget):
        lines = [fact("prior", f"uniform: the labels of {budget.data} are not counted ({rows})")]
    else:
        pooled = budget.plan.pooled_cells
        cells = "" if pooled is None else f" over {pooled:,} cells of labels"
        what = f"{kind}: the label histogram of {budget.data}{cells} ({rows})"
        lines = [fact("prior", what)]
    if budget.plan.reason is not None:
        lines.append(fact("", f"split: auto: {budget.plan.reason}"))
    noise = budget.noise
    if noise is not None:
        text = f"{NOISE} of scale {noise.scale:.6g} on each count: sd {noise.deviation:.4g} rows"
        if noise.average_count is not None:
            share = noise.deviation / noise.average_count
            counted = "label" if budget.plan.pooled_cells is None else "cell"
            text += f", {share:.1%} of the average {counted}'s {noise.average_count:,.1f}"
        lines.append(fact("noise", text))
    return lines


def _groups(plan: Plan) -> list[str]:
    groups, spec = plan.budget.groups, plan.spec
    if groups is None or spec.groups is None:
        return []
    names = ", ".join(spec.groups.names())
    tables = "one table for all of them"
    if groups.tables > 1:
        tables = f"{groups.tables:,} tables, the last one for all other rows"
    declared = f"declared by {DECLARED_BY} to be public, not proved"
    lines = [
        fact("groups", f"{groups.listed:,} groups by {names}: {tables}; {declared}"),
    ]
    if groups.noise is not None:
        counted = "label" if groups.cells is None else f"cell of {groups.cells:,}"
        average = groups.noise.average_count or 0
        text = f"{NOISE} of scale {groups.noise.scale:.6g} on each count of a group"
        share = groups.noise.deviation / average
        lines.append(fact("", f"{text}, {share:.1%} of the {average:,.1f} rows a {counted}"))
    return lines


def _verify(plan: Plan) -> list[str]:
    seconds = plan.forecast.verify_seconds
    if seconds is None:
        return []
    text = f"about {_time(seconds)} for anyone who verifies the file (estimated)"
    if seconds > DEFAULT_BUDGET.seconds / 2:
        ample = math.ceil(4 * seconds)
        text += f"; this needs labeldp verify --budget {ample},8GB"
    return [fact("verify", text)]


def _prior_cost(plan: Plan) -> str:
    if plan.budget.noise is None:
        is_free = plan.spec.prior.kind == "private"
        return f"nothing: the prior is {'uniform' if is_free else plan.spec.prior.kind}"
    ways = {"auto": "split: auto", "paper": "√(k/n)", "given": "as given"}
    how = ways[plan.spec.privacy.split_in_words]
    if plan.ledger is not None:
        return f"each time compile runs, unless the ledger recalls it ({how})"
    return f"each time compile runs ({how})"


def _spent(epsilon: float, on: str) -> str:
    return f"{at_most(epsilon):<12} {on}"


def _domain(domain: Domain) -> str:
    if isinstance(domain, CategoricalDomain):
        shown = ", ".join(str(value) for value in domain.values[:6])
        more = ", …" if domain.size > 6 else ""
        return f"one of {shown}{more} (k = {domain.size:,})"
    if isinstance(domain, RealDomain):
        how = "at random, so that the mean is kept" if domain.rounding == "unbiased" else "nearest"
        apart = ""
        if isinstance(domain, GridDomain):
            steps = [high - low for low, high in pairwise(domain.values)]
            apart = f" {min(steps):g} to {max(steps):g} apart,"
        return (
            f"{domain.min:g} … {domain.max:g} on {domain.points:,} points,{apart} rounded {how} "
            f"(k = {domain.size:,})"
        )
    return f"the integers {domain.min} … {domain.max} (k = {domain.size:,})"


def _others(domain: Domain) -> str:
    if domain.default is not None:
        return f"become {domain.default!s}"
    return "clamped to the nearest end"


def _count(outputs: Estimate) -> str:
    if outputs.least == outputs.most:
        return f"{outputs.most:,.0f}"
    return f"at most about {outputs.most:,.0f}, depending on the prior"


def _about(estimate: Estimate, show: Callable[[float], str]) -> str:
    if estimate.most <= _WIDE * estimate.least:
        return f"about {show(estimate.most)}"
    return f"about {show(estimate.least)} to {show(estimate.most)}, depending on the prior"


def _time(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _nearest(number: float, digits: int) -> str:
    return f"{number:.{digits}g}"


def _size(size: float, rounded: Callable[[float, int], str] = _nearest) -> str:
    return f"{rounded(size / 1e3, 3)} kB" if size < 1e6 else f"{rounded(size / 1e6, 3)} MB"
