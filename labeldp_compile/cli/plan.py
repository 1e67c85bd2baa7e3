"""``labeldp plan``: what compile would do, before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import click
from labeldp_verify.budget import DEFAULT_BUDGET
from labeldp_verify.claims import DECLARED_BY
from labeldp_verify.forms import CategoricalDomain, Domain, RealDomain, columns_of
from labeldp_verify.reading.shortcomings import relevant
from labeldp_verify.reading.usefulness import PRIORS
from labeldp_verify.rounded import at_most

from labeldp_compile.cli.command import command
from labeldp_compile.cli.options import PATH, json_option
from labeldp_compile.cli.output import printable, show
from labeldp_compile.histogram_noise import NOISE
from labeldp_compile.planning import Plan, plan_spec
from labeldp_compile.planning.budget import is_unpaid
from labeldp_compile.planning.forecast import Estimate
from labeldp_compile.spec import Spec

_SECONDS_OF = "estimated for one core of a server, usually within a factor of 3"
_SIZE_OF = "estimated, usually within a factor of 2; never above"
_WIDE = 4  # an estimate is shown as a range if its ends are further apart than this factor


@command("plan", "labeldp plan specs/doctor-visits.yaml")
@click.argument("spec", type=PATH)
@json_option
def plan_command(spec: Path, as_json: bool) -> None:
    """Show what compile would do with SPEC: what it spends, solves and writes.

    Reads no label: of a Parquet file the footer, of a CSV file nothing, and where there are groups
    the columns that they come from. What compile would refuse
    before spending is refused here, with exit code 2 (1 if its ledger is over budget).
    """
    plan = plan_spec(spec)
    show(as_json, plan.to_json, lambda: _in_words(plan))


def _in_words(plan: Plan) -> list[str]:
    spec, budget, forecast = plan.spec, plan.budget, plan.forecast
    most_bytes = _size(plan.most_bytes, at_most)
    lines = [
        f"{spec.name}: what compile would do; no label was read, and nothing is spent",
        *_labels(spec),
        _line("goal", spec.goal),
        _line("loss", spec.loss),
        _line("mechanism", spec.named_mechanism.title),
    ]
    if spec.auto_reason is not None:
        lines.append(_line("", f"auto: {spec.auto_reason}"))
    lines += [
        *_prior(plan),
        *_groups(plan),
        *([] if plan.ledger is None else [_line("ledger", plan.ledger)]),
        _line("ε of the prior", _spent(float(budget.prior), _prior_cost(plan))),
        _line("ε of a label", _spent(float(budget.label), "each time a label is randomized")),
        _line("ε in total", _spent(float(budget.total), "for a label in both, once each")),
        *_use(plan),
        _line("solver", forecast.solver),
        _line("time", f"{_about(forecast.seconds, _time)}; {_SECONDS_OF}"),
        *_verify(plan),
        _line("outputs", _count(forecast.outputs)),
        _line("size", f"{_about(forecast.size, _size)}; {_SIZE_OF} {most_bytes}"),
        _line("writes", f"{spec.name}.onnx, {spec.name}.certificate.json"),
    ]
    return lines


def _labels(spec: Spec) -> list[str]:
    lines = []
    for name, domain in zip(spec.label.names, columns_of(spec.domain), strict=True):
        lines.append(_line("label", f"{printable(name)}: {_domain(domain)}"))
        lines.append(_line("other values", _others(domain)))
    if len(spec.label.names) > 1:
        lines.append(_line("", f"together one label of {spec.domain.size:,} combinations"))
    return lines


def _use(plan: Plan) -> list[str]:
    if plan.use is None:
        return []
    use = plan.use
    whose = f"assuming {PRIORS[use.prior]}"
    return [
        _line("use", f"for goal: {plan.spec.goal}, {whose}:"),
        *(f"  {line}" for line in use.figures.in_words(plan.budget.rows, use.prior)),
        *(_line("warning", found.text) for found in relevant(use.shortcomings, plan.spec.goal)),
    ]


def _line(name: str, text: str) -> str:
    return f"  {name:<16} {text}"


def _prior(plan: Plan) -> list[str]:
    budget, kind = plan.budget, plan.spec.prior.kind
    if budget.data is None:
        return [_line("prior", kind)]
    rows = "number of rows not stated" if budget.rows is None else f"n = {budget.rows:,} rows"
    if is_unpaid(plan.spec, budget):
        lines = [_line("prior", f"uniform: the labels of {budget.data} are not counted ({rows})")]
    else:
        pooled = budget.plan.pooled_cells
        cells = "" if pooled is None else f" over {pooled:,} cells of labels"
        what = f"{kind}: the label histogram of {budget.data}{cells} ({rows})"
        lines = [_line("prior", what)]
    if budget.plan.reason is not None:
        lines.append(_line("", f"split: auto: {budget.plan.reason}"))
    noise = budget.noise
    if noise is not None:
        text = f"{NOISE} of scale {noise.scale:.6g} on each count: sd {noise.deviation:.4g} rows"
        if noise.average_count is not None:
            share = noise.deviation / noise.average_count
            counted = "label" if budget.plan.pooled_cells is None else "cell"
            text += f", {share:.1%} of the average {counted}'s {noise.average_count:,.1f}"
        lines.append(_line("noise", text))
    return lines


def _groups(plan: Plan) -> list[str]:
    groups, spec = plan.budget.groups, plan.spec
    if groups is None or spec.groups is None:
        return []
    names = ", ".join(map(printable, spec.groups.names()))
    tables = "one table for all of them"
    if groups.tables > 1:
        tables = f"{groups.tables:,} tables, the last one for all other rows"
    lines = [
        _line("groups", f"{groups.listed:,} groups by {names}: {tables}"),
        _line("", f"that they are public is declared by {DECLARED_BY}, and not proved"),
        *(_line("warning", text) for text in groups.odd),
    ]
    if groups.noise is not None:
        counted = "label" if groups.cells is None else f"cell of {groups.cells:,}"
        average = groups.noise.average_count or 0
        text = f"{NOISE} of scale {groups.noise.scale:.6g} on each count of a group"
        share = groups.noise.deviation / average
        lines.append(_line("", f"{text}, {share:.1%} of the {average:,.1f} rows a {counted}"))
    return lines


def _verify(plan: Plan) -> list[str]:
    seconds = plan.forecast.verify_seconds
    if seconds is None:
        return []
    text = f"about {_time(seconds)} for anyone who verifies the file, {_SECONDS_OF}"
    if seconds > DEFAULT_BUDGET.seconds / 2:
        ample = math.ceil(4 * seconds)
        text += f": more than is allowed without labeldp verify --budget {ample},8GB"
    return [_line("verify", text)]


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
        shown = ", ".join(printable(str(value)) for value in domain.values[:6])
        more = ", …" if domain.size > 6 else ""
        return f"one of {shown}{more} (k = {domain.size:,})"
    if isinstance(domain, RealDomain):
        how = "at random, so that the mean is kept" if domain.rounding == "unbiased" else "nearest"
        return (
            f"{domain.min:g} … {domain.max:g} on {domain.points:,} points, rounded {how} "
            f"(k = {domain.size:,})"
        )
    return f"the integers {domain.min} … {domain.max} (k = {domain.size:,})"


def _others(domain: Domain) -> str:
    if domain.default is not None:
        return f"become {printable(str(domain.default))}, nulls included"
    assert not isinstance(domain, CategoricalDomain)
    return f"clamped to the nearest end; NaN and nulls become {domain.min:g}"


def _count(outputs: Estimate) -> str:
    if outputs.least == outputs.most:
        return f"{outputs.most:,.0f}"
    return f"at most about {outputs.most:,.0f}, as the prior decides"


def _about(estimate: Estimate, show: Callable[[float], str]) -> str:
    if estimate.most <= _WIDE * estimate.least:
        return f"about {show(estimate.most)}"
    return f"about {show(estimate.least)} to {show(estimate.most)}, as the prior decides"


def _time(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _nearest(number: float, digits: int) -> str:
    return f"{number:.{digits}g}"


def _size(size: float, rounded: Callable[[float, int], str] = _nearest) -> str:
    return f"{rounded(size / 1e3, 3)} kB" if size < 1e6 else f"{rounded(size / 1e6, 3)} MB"
