"""``labeldp audit``: a statistical test of a running randomizer, or of a trained model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from labeldp_verify import Budget
from labeldp_verify.printable import Marked, at_most, down_to

from labeldp_compile.audits.audit import (
    ERROR,
    MIN_SAMPLES,
    AuditClaim,
    AuditReport,
    audit,
    audit_target,
    choose_labels,
)
from labeldp_compile.audits.randomizer import AuditTarget, FunctionTarget, parse_labels
from labeldp_compile.cli.command import command, observing, show, text_table, verified
from labeldp_compile.cli.options import (
    PATH,
    TEXT_FORM,
    Whole,
    budget_option,
    decimal_of,
    group_option,
    json_option,
    overwrite_option,
    quiet_option,
    require_form,
    text_options,
)
from labeldp_compile.errors import InputError, require_pages
from labeldp_compile.tabular.formats import TextForm, format_of
from labeldp_compile.whole_file import require_output, write_text

if TYPE_CHECKING:
    from labeldp_learn.epsilon_bound import Guesses
    from labeldp_learn.model_audit import ModelAudit

    from labeldp_compile.audits.model import Claim

FORMAT_VERSION = "1.0"  # of the audit of a model
DEFAULT_SAMPLES = 10_000_000
_MAX_SAMPLES = 10**10  # more do not fit the memory of most machines
_MAX_EPSILON = 1000.0
_MARKS = {True: "ok    ", False: "FAILED", None: "?     "}
_FILE, _FUNCTION = "an artifact FILE", "--callable without FILE"
_RUN, _TABLE = "a RUN", "a TABLE with --untrained"
_OF_MODEL = ("untrained", "label", "confidence", "output", "overwrite")
# Names of the options of each form of an audit.
_FORMS = {
    _FILE: ("function", "samples", "group", "no_processes", "budget"),
    _FUNCTION: ("function", "labels", "epsilon", "samples", "no_processes"),
    _RUN: ("trained", *_OF_MODEL),
    _TABLE: ("epsilon", "delta", *_OF_MODEL, *TEXT_FORM),
}


@command("audit", "labeldp audit build/doctor-visits.onnx --samples 1000000")
@click.argument("file", required=False, type=PATH)
@click.option(
    "--callable",
    "function",
    metavar="MODULE:FUNCTION",
    help="Audit this function (array of labels → array of outputs) instead of FILE. With FILE, "
    "compare it with the claims of FILE.",
)
@click.option("--labels", metavar="0..52 | a,b,c", help="The labels to try; only without FILE.")
@click.option(
    "--epsilon", metavar="ε", help="The ε that the function, or the model of a TABLE, claims."
)
@click.option(
    "--samples",
    type=Whole(MIN_SAMPLES, _MAX_SAMPLES),
    default=DEFAULT_SAMPLES,
    show_default=True,
    help="The number of labels to randomize.",
)
@group_option
@click.option("--no-processes", is_flag=True, help="Start no other processes.")
@click.option(
    "--trained",
    type=PATH,
    metavar="TABLE",
    help="RUN: the rows that it was trained on, with true labels (default: those of its config).",
)
@click.option(
    "--untrained",
    type=PATH,
    metavar="TABLE",
    help="RUN or TABLE: rows that the model was not trained on (RUN: its test set).",
)
@click.option("--label", metavar="COLUMN", help="RUN or TABLE: the column of true labels.")
@click.option("--delta", metavar="δ", default="0", help="TABLE: the δ that the model claims.")
@click.option(
    "--confidence",
    metavar="SHARE",
    default="0.95",
    show_default=True,
    help="RUN or TABLE: of the bound.",
)
@click.option("-o", "--output", type=PATH, help="RUN or TABLE: also write a picture (.html).")
@overwrite_option
@json_option
@quiet_option
@text_options
@budget_option
def audit_command(
    file: Path | None,
    function: str | None,
    labels: str | None,
    epsilon: str | None,
    samples: int,
    group: str | None,
    no_processes: bool,
    trained: Path | None,
    untrained: Path | None,
    label: str | None,
    delta: str,
    confidence: str,
    output: Path | None,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    form: TextForm,
    budget: Budget,
) -> None:
    """Randomize made-up labels, and test the outputs against the claims of FILE.

    This tests the running randomizer; verify proves the claims of the file. The audit looks for the
    output that reveals most, for rows or processes that share random bits, and for outputs that
    depend on other rows. It needs no real label. If FILE has a table for each group, the audit uses
    the group with most rows, or that of --group.

    With the folder of a RUN of labeldp train in place of FILE, or a TABLE of training rows with
    their true labels and a model's predictions, it tests a trained model. It guesses which of two
    labels a row was trained on, the other being drawn by a stand-in, and bounds the ε that the
    model spent. This reads true labels, so its result is not private.

    Exit code 0: no test failed. Exit code 1: a test failed, which happens for a correct randomizer
    once in a million audits. Exit code 2: the input is wrong.
    """
    if file is None:
        form_of_audit = _FUNCTION
    elif (file / "run.json").is_file():
        form_of_audit = _RUN
    else:
        form_of_audit = _FILE if untrained is None and format_of(file) is None else _TABLE
    require_form(form_of_audit, _FORMS)
    if file is not None and form_of_audit in (_RUN, _TABLE):
        claimed = None if epsilon is None else _claim(epsilon)
        sure, less = float(decimal_of("--confidence", confidence)), decimal_of("--delta", delta)
        if not 0 < sure < 1 or not 0 <= less < 1:
            raise InputError("--confidence and --delta are shares: below 1, and not negative")
        from labeldp_compile.audits.model import (  # noqa: PLC0415  # pyarrow
            Claim,
            audit_predictions,
            audit_run,
        )

        require_output(output, file, trained, untrained, endings=(".html",), overwrite=overwrite)
        if output is not None:
            require_pages()
        stated = Claim(claimed, float(less))
        if form_of_audit == _RUN:
            found, stated = audit_run(file, trained, untrained, label, sure)
        elif untrained is None or label is None:
            raise InputError("a TABLE needs --label, the column of true labels, and --untrained")
        else:
            found = audit_predictions(file, untrained, label, stated, sure, form=form)
        _say_of_model(file, found, stated, output, as_json=as_json)
        sys.exit(1 if found.refuted else 0)
    processes = not no_processes
    with observing("sampling", samples, quiet=quiet) as observer:
        if file is None:
            target, tried, claim = _claimed(function, labels, epsilon)
            report = audit_target(target, tried, claim, samples, observer, processes=processes)
        else:
            with verified(file, ", and is not run"):
                report = audit(
                    file,
                    function,
                    samples=samples,
                    observer=observer,
                    processes=processes,
                    budget=budget,
                    group=group,
                )
    show(as_json, report.to_json, lambda: _in_words(report))
    sys.exit(0 if report.ok else 1)


def _claimed(
    function: str | None, labels: str | None, epsilon: str | None
) -> tuple[AuditTarget, np.ndarray[tuple[int], np.dtype[np.generic]], AuditClaim]:
    if function is None:
        raise InputError("give an artifact FILE or --callable MODULE:FUNCTION")
    if labels is None or epsilon is None:
        raise InputError("--callable needs --labels and --epsilon, or FILE to compare with")
    claimed = _claim(epsilon)
    every = parse_labels(labels)
    tried = every[choose_labels(len(every))]
    return FunctionTarget(function), tried, AuditClaim(claimed, "claimed", len(every))


def _claim(text: str) -> float:
    claimed = float(decimal_of("--epsilon", text))
    if not 0 <= claimed <= _MAX_EPSILON:
        raise InputError(f"--epsilon: expected a number in 0 … {_MAX_EPSILON:g}, got {claimed:g}")
    return claimed


def _in_words(report: AuditReport) -> list[str]:
    tried, every = report.labels
    some = f"{tried:,} of {every:,}" if tried < every else f"{every:,}"
    lines = [
        f"{report.audited}: {report.samples:,} samples of {some} labels; probability of a false "
        f"alarm at most {ERROR:g}",
        *(f"{_MARKS[f.ok]} {f.name:<12} {f.detail}" for f in report.findings),
    ]
    if not report.ok:
        return [*lines, Marked("VIOLATION. Do not use this randomizer.", "failed")]
    return [*lines, "no test failed, but only labeldp verify proves the guarantee"]


def _say_of_model(
    file: Path, found: ModelAudit, claim: Claim, output: Path | None, *, as_json: bool
) -> None:
    """Print the audit of a trained model, and write its page. InputError if it found nothing."""
    if found.bound is None:
        raise InputError(
            f"{file}: the stand-in is too poor, so nothing can be said: {found.poor}. Give more "
            "rows with --untrained, which are drawn like those of training, or more features"
        )
    stated = "none is stated" if claim.epsilon is None else f"stated is {at_most(claim.epsilon)}"
    verdict = "no more than stated was found, which proves nothing: see docs/audit-model.md"
    if claim.epsilon is None:
        verdict = "nothing is stated that this could be compared with: give --epsilon"
    if found.refuted:
        verdict = Marked("VIOLATION. This model spent more than is stated.", "failed")
    steps = [
        [str(number), _share(step.trained), _share(step.others)]
        for number, step in enumerate(found.steps, 1)
    ]
    said: dict[str, Any] = {
        "bound": f"ε ≥ {down_to(found.bound)} with a confidence of {found.confidence:.12g}; "
        f"{stated}",
        "guesses": f"guesses that were right: {_share(found.trained)} about labels of training, "
        f"and {_share(found.others)} about labels that the model never saw",
        "steps": text_table(["how sure", "right, of training", "right, of others"], steps),
        "verdict": verdict,
    }

    def document() -> dict[str, Any]:
        facts = asdict(found)
        facts["steps"] = [{"trained": asdict(a), "others": asdict(b)} for a, b in found.steps]
        facts["epsilon_lower_bound"] = facts.pop("bound")
        del facts["poor"], facts["refuted"]
        return {"format_version": FORMAT_VERSION, "ok": not found.refuted, **asdict(claim), **facts}

    lines = [said["bound"], said["guesses"], "", *said["steps"], "", verdict]
    show(as_json, document, lambda: lines)
    if output is not None:
        write_text(output, _page(file, found, said))


def _page(file: Path, found: ModelAudit, said: Mapping[str, Any]) -> str:
    """The guesses in a picture: wrong ones on the left, right ones on the right, the surest ones
    outside, in steps with about equally many guesses of both kinds together."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # half a second

    from labeldp_compile.page.document import LIGHT, page  # noqa: PLC0415
    from labeldp_compile.page.pictures import INK, inline_svg, picture_settings, tidy  # noqa: PLC0415

    most = len(found.steps)
    with picture_settings():
        axes: Any = Figure(figsize=(5.2, 3), layout="constrained").subplots()
        for kind, name, colour in ((0, "of training", "accent"), (1, "of others", "mark")):
            guesses = [step[kind] for step in found.steps]
            right, wrong = [g.right for g in guesses], [g.made - g.right for g in guesses[::-1]]
            shares = np.array(wrong + right) / max(sum(wrong + right), 1)
            axes.stairs(shares, range(-most, most + 1), label=name, color=LIGHT[colour], lw=1.8)
        sure = np.cumsum([0, *(a.made + b.made for a, b in found.steps[::-1])])
        least = np.interp(found.trained.made + found.others.made, sure, range(most, -1, -1))
        axes.vlines([-least, least], 0, axes.get_ylim()[1], color=INK, lw=1, ls=":")
        axes.set(xlabel="wrong ← how sure → right", ylabel="share of guesses", ylim=0)
        axes.figure.legend(loc="outside upper center", ncols=2, frameon=False, labelcolor=INK)
        tidy(axes)
        svg = inline_svg(axes.figure, "guesses", "how sure right and wrong guesses were")
    return page("audits/model.html", f"Audit of {file.name}", said=said, svg=svg)


def _share(guesses: Guesses) -> str:
    share = "" if not guesses.made else f" ({guesses.right / guesses.made:.0%})"
    return f"{guesses.right:,} of {guesses.made:,}{share}"
