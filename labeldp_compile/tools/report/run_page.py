"""The report on a training run: its statement in plain words, its numbers, and who approved it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labeldp_verify.printable import clipped
from labeldp_verify.rounded import at_most

from labeldp_compile.check import Judged, LoadedPolicy, judge
from labeldp_compile.check.judging import read_promise, read_run
from labeldp_compile.errors import InputError
from labeldp_compile.tools.page.document import page
from labeldp_compile.tools.report.approval import Approval, found_approval, read_subjects
from labeldp_compile.tools.report.decision import delta_in_words, excess_of, of_run

if TYPE_CHECKING:
    from labeldp_verify.signature import PublicKey

_MOST_TEXT, _MOST_ITEMS = 2_000, 30
_MOST_ON_PAPER = 5_000  # characters of the statement: with more, paper would need a third sheet
_MOST_ROOT = 10**300  # float64 holds it
_LONG_ROOT = re.compile(r"√([0-9]{1,3}(?:,[0-9]{3}){2,})")  # of a whole number from a million


@dataclass(frozen=True)
class RunFindings:
    """What was found in a run folder.

    Attributes:
        path: of the folder.
        run: what the trainer read of it.
        promise: its ``privacy.json``, with exact numbers.
        sha256: of that file.
        approval: who is responsible, if it was stated.
        judged: what the policy says, if there is one.
    """

    path: Path
    run: Any
    promise: dict[str, Any]
    sha256: str
    approval: Approval | None
    judged: Judged | None
    policy: LoadedPolicy | None


def examine_run(
    path: Path,
    policy: LoadedPolicy | None = None,
    approval: Path | None = None,
    approver: PublicKey | None = None,
) -> RunFindings:
    """Read a run folder, whose statement must agree with its config. Raises InputError."""
    subjects = read_subjects(path)
    run = read_run(path)
    data, promise = read_promise(path, run)
    if subjects[0] != data or subjects != read_subjects(path):
        raise InputError(f"{path}: changed while it was read")
    return RunFindings(
        path,
        run,
        promise,
        hashlib.sha256(data).hexdigest(),
        found_approval(path, subjects, approval, approver),
        None if policy is None else judge(path, policy),
        policy,
    )


def run_page(findings: RunFindings) -> str:
    """The page."""
    promise, run, policy = findings.promise, findings.run, findings.policy
    name = "" if policy is None else policy.rules.name or policy.path.name
    decision = of_run(
        promise,
        str(run.label),
        findings.approval,
        findings.judged,
        name,
        units=_units(promise),
        doubts=[_plain(doubt) for doubt in run.doubts[:_MOST_ITEMS]],
    )
    titles = {
        "mechanism": "Mechanism",
        "released": "Released",
        "secret": "Must stay secret",
        "not_covered": "Not covered",
        "limits": "Limits",
    }
    lists = []
    for key, title in titles.items():
        items = promise.get(key) or []
        items = [items] if isinstance(items, str) else items
        if items:
            lists.append((title, [_plain(item) for item in items[:_MOST_ITEMS]]))
    delta, excess = Fraction(promise["delta"] or 0), excess_of(promise)
    return page(
        "report/run.html",
        f"Privacy report: {clipped(str(run.name), 80)}",
        decision=decision,
        approval=findings.approval,
        judged=findings.judged,
        policy=policy,
        run=run,
        promise=promise,
        adjacency=_plain(promise.get("adjacency") or "not stated"),
        sha256=findings.sha256,
        lists=lists,
        fits_paper=sum(len(item) for _, items in lists for item in items) <= _MOST_ON_PAPER,
        delta_words=delta_in_words(delta) if delta else "",
        excess=None if excess is None else at_most(excess, 3),
    )


def _units(promise: dict[str, Any]) -> int | None:
    """How many labels or persons are protected, as the statement says."""
    units = promise["details"].get("units")
    return units if type(units) is int and units > 0 else None


def _plain(text: str) -> str:
    """A sentence of the statement; the root of a long number as a number that is not below it."""
    return _LONG_ROOT.sub(_root, clipped(text, _MOST_TEXT))


def _root(found: re.Match[str]) -> str:
    from labeldp_compile.tools.page.numbers import plain  # noqa: PLC0415

    number = int(found[1].replace(",", ""))
    if number > _MOST_ROOT:
        return found[0]
    root = plain(float(number) ** 0.5 * (1 + 1e-3), 3)
    return f"about {root}"
