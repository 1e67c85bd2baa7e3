"""``labeldp audit`` of a trained model: what is said of it."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from labeldp_verify.printable import Marked, at_most, down_to

from labeldp_compile.audits.model import Claim, audit_predictions, audit_run
from labeldp_compile.cli.command import show, text_table
from labeldp_compile.errors import InputError
from labeldp_compile.tabular.formats import TextForm
from labeldp_compile.whole_file import write_text

if TYPE_CHECKING:
    from labeldp_learn.model_audit import ModelAudit
    from labeldp_learn.model_audit.bound import Guesses

FORMAT_VERSION = "1.0"


def audit_model(
    file: Path,
    trained: Path | None,
    untrained: Path | None,
    label: str | None,
    claim: Claim | None,
    confidence: float,
    form: TextForm,
    output: Path | None,
    *,
    as_json: bool,
) -> NoReturn:
    """Audit a run of which nothing else is claimed, or the predictions of a table; exits with 1 if
    the claim is refuted. Raises InputError, also if the stand-in is too poor.

    ``output`` is for a page."""
    if claim is None:
        found, claim = audit_run(file, trained, untrained, label, confidence)
    elif untrained is None or label is None:
        raise InputError("a TABLE needs --label, the column of true labels, and --untrained")
    else:
        found = audit_predictions(file, untrained, label, claim, confidence, form=form)
    if found.poor is not None:
        raise InputError(
            f"{file}: the stand-in is too poor, so nothing can be said: {found.poor}. Give more "
            "rows with --untrained, which are drawn like those of training, or more features"
        )
    stated = claim
    show(as_json, lambda: _json(found, stated), lambda: _in_words(found, stated))
    if output is not None:
        write_text(output, _page(file, found, stated))
    sys.exit(1 if found.refuted else 0)


def _json(found: ModelAudit, claim: Claim) -> dict[str, Any]:
    """``{format_version, ok, epsilon, delta, …}``; ``steps`` are guesses by how sure they are."""
    facts = asdict(found)
    facts["steps"] = [{"trained": asdict(a), "others": asdict(b)} for a, b in found.steps]
    facts["epsilon_lower_bound"] = facts.pop("bound")
    del facts["poor"], facts["refuted"]
    return {"format_version": FORMAT_VERSION, "ok": not found.refuted, **asdict(claim), **facts}


class _Words(NamedTuple):
    """The parts of the text about an audit."""

    bound: str
    guesses: str
    steps: list[str]
    verdict: str


def _words(found: ModelAudit, claim: Claim) -> _Words:
    assert found.bound is not None
    stated = "none is stated" if claim.epsilon is None else f"stated is {at_most(claim.epsilon)}"
    steps = [
        [str(number), _share(step.trained), _share(step.others)]
        for number, step in enumerate(found.steps, 1)
    ]
    verdict = "no more than stated was found, which proves nothing: see docs/audit-model.md"
    if claim.epsilon is None:
        verdict = "nothing is stated that this could be compared with: give --epsilon"
    if found.refuted:
        verdict = Marked("VIOLATION. This model spent more than is stated.", "failed")
    return _Words(
        f"ε ≥ {down_to(found.bound)} with a confidence of {found.confidence:.12g}; {stated}",
        f"guesses that were right: {_share(found.trained)} about labels of training, and "
        f"{_share(found.others)} about labels that the model never saw",
        text_table(["how sure", "right, of training", "right, of others"], steps),
        verdict,
    )


def _in_words(found: ModelAudit, claim: Claim) -> list[str]:
    said = _words(found, claim)
    return [said.bound, said.guesses, "", *said.steps, "", said.verdict]


def _page(file: Path, found: ModelAudit, claim: Claim) -> str:
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
    title, said = f"Audit of {file.name}", _words(found, claim)
    return page("audits/model.html", title, said=said, svg=svg)


def _share(guesses: Guesses) -> str:
    share = "" if not guesses.made else f" ({guesses.right / guesses.made:.0%})"
    return f"{guesses.right:,} of {guesses.made:,}{share}"
