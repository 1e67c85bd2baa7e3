"""Mean, spread and bias of every label, or of categories how often they stay the same."""

from __future__ import annotations

from labeldp_compile.inspection import Decoded, LabelFacts, label_facts, sample
from labeldp_compile.page.svg import inline_svg
from labeldp_compile.report.markup import details, figure, name, table
from labeldp_compile.report.numbers import data, share_data
from labeldp_compile.report.plots.moments import moments_figure
from labeldp_compile.report.standing import is_unbiased, largest_bias

MOST_LABELS = 101


def moments(decoded: Decoded) -> list[str]:
    """The picture, and a table of all labels or of a sample."""
    r, domain = decoded.randomizer, decoded.domain
    facts = label_facts(domain, r, sample(domain.size, MOST_LABELS))
    if facts[0].mean is None:
        return [
            "<p>Categories have no mean; what can be said is how often each stays the same.</p>",
            *_table(decoded, facts),
        ]
    unbiased = is_unbiased(decoded)
    svg = inline_svg(
        moments_figure(decoded, facts, with_bias=not unbiased),
        "moments",
        "Mean output and standard deviation for each true label; the numbers are in the table",
    )
    worst = data(largest_bias(decoded.certificate) or 0.0, field="utility.largest_bias")
    caption = (
        f"The mean output is the label: the largest bias is {worst}, nothing but the rounding of "
        "probabilities to whole counts, which is why no bias is drawn."
        if unbiased
        else f"The largest bias is {worst}. A bias does not average out, however many labels are "
        "averaged; the spread (sd, standard deviation) does."
    )
    return [*figure(svg, caption), *details("All numbers", _table(decoded, facts))]


def _table(decoded: Decoded, facts: list[LabelFacts]) -> list[str]:
    numeric = facts[0].mean is not None
    header = ["label", *(["mean output", "bias", "sd"] if numeric else []), "stays the same"]
    rows = [[name(row.label), *_numbers(row), share_data(row.unchanged)] for row in facts]
    size = decoded.domain.size
    some = "" if len(facts) == size else f" ({len(facts)} of {size:,} labels)"
    return table(f"Moments of the output, by label{some}", header, rows)


def _numbers(facts: LabelFacts) -> list[str]:
    if facts.mean is None or facts.bias is None or facts.deviation is None:
        return []
    return [data(facts.mean, 6), data(facts.bias, 3), data(facts.deviation)]
