"""What one observed output can tell: a table, and a picture with a slider where scripts run."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

from labeldp_verify.forms import CategoricalDomain

from labeldp_compile.inspection import Decoded, label_at, sample
from labeldp_compile.page.svg import inline_svg
from labeldp_compile.report.markup import figure, name, table
from labeldp_compile.report.numbers import data, data_above, share_data
from labeldp_compile.report.plots.posterior import BELIEF, Geometry, posterior_figure
from labeldp_compile.report.posterior import Posteriors, Seen

SCRIPT = Path(__file__).with_name("posterior.js")
LISTED = 9


def posterior(decoded: Decoded, posteriors: Posteriors) -> list[str]:
    """The bound, the picture, the table."""
    seen = posteriors.seen
    shown = max(range(len(seen)), key=lambda i: seen[i].after - seen[i].before)
    drawn, geometry = posterior_figure(decoded, posteriors, shown)
    svg = inline_svg(drawn, "posterior", "Probabilities of the labels before and after an output")
    ratio = Fraction(decoded.certificate["exact"]["realised_ratio"])
    sentences = [_sentence(decoded, item) for item in seen]
    listed = [seen[i] for i in sample(len(seen), LISTED)]
    return [
        "<p>By Bayes’ rule, under the prior above. Whatever somebody knew before, one output moves "
        "their odds between any two labels by a factor of at most "
        f"{data_above(ratio, 7, field='exact.realised_ratio')}, the e<sup>ε</sup> of a label "
        "(proved). Two outputs made from the same label could move them by that factor twice.</p>",
        *_controls(len(seen), shown, sentences[shown]),
        *figure(
            svg,
            "Filled: what is believed of the label after the output above was seen. Line: before.",
        ),
        *table(
            f"What an output tells ({len(listed)} of "
            f"{data(decoded.certificate['outputs'], 9)} outputs)",
            [
                "output",
                "seen with probability",
                "labels that become likelier",
                "likeliest label then",
                "believed before",
                "believed after",
                "odds move by at most",
            ],
            [_row(decoded, item) for item in listed],
        ),
        _data_block(posteriors, geometry, sentences),
    ]


def _controls(count: int, shown: int, sentence: str) -> list[str]:
    """A slider that only a script makes visible; without one the sentence names the output."""
    return [
        '<p class="slider screen-only" hidden id="output-control"><label for="output-slider">'
        'Move to see another output:</label> <input type="range" id="output-slider" min="0" '
        f'max="{count - 1}" value="{shown}" aria-describedby="output-said"></p>',
        f'<p id="output-said" aria-live="polite">{sentence}</p>',
    ]


def _sentence(decoded: Decoded, seen: Seen) -> str:
    likeliest = name(label_at(decoded.domain, seen.likeliest))
    return (
        f"Output <b>{name(seen.value)}</b>: the likeliest label is then {likeliest} "
        f"({share_data(seen.before)} before, {share_data(seen.after)} after). "
        f"Likelier than before: {_risen(decoded, seen)}."
    )


def _row(decoded: Decoded, seen: Seen) -> list[str]:
    return [
        name(seen.value),
        share_data(seen.probability),
        _risen(decoded, seen),
        name(label_at(decoded.domain, seen.likeliest)),
        share_data(seen.before),
        share_data(seen.after),
        data(seen.ratio),
    ]


def _risen(decoded: Decoded, seen: Seen) -> str:
    first, last, count = seen.risen
    if not count:
        return "none"
    lowest, highest = (name(label_at(decoded.domain, index)) for index in (first, last))
    if count == 1:
        return lowest
    if isinstance(decoded.domain, CategoricalDomain) or count != last - first + 1:
        return f"{count:,} of {decoded.domain.size:,} labels"
    return f"{lowest} … {highest}"


def _data_block(posteriors: Posteriors, geometry: Geometry, sentences: list[str]) -> str:
    """What the script shows; numbers it does not compute."""
    document = {
        "curve": BELIEF,
        "edges": geometry.edges,
        "zero": geometry.zero,
        "one": geometry.one,
        "sentences": sentences,
        "beliefs": [[float(f"{p:.4g}") for p in item.belief.tolist()] for item in posteriors.seen],
    }
    # In a script element only "<" could end it; the sentences are HTML that was escaped before.
    text = json.dumps(document, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="posteriors">{text}</script>'
