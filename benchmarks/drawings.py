"""The drawings of the pages: who holds the labels, and which mechanism or method.

    python benchmarks/drawings.py [FOLDER]       (docs/images)

Writes roles.svg and choice.svg into FOLDER: boxes with lines of text, and arrows between them. The
first line of a box is its head.
"""

import sys
from html import escape
from pathlib import Path

from labeldp_compile.page.document import css_variables
from labeldp_compile.page.pictures import inline_svg

ROOT = Path(__file__).parents[1]
STYLE = "<style>svg{color:#1a1a1a}@media(prefers-color-scheme:dark){svg{color:#e9eaec}}</style>"
WIDTH, LINE, PAD = 360, 16, 8
WHOLE, LEFT, RIGHT = (8, 344), (8, 164), (188, 164)  # where a box begins, and its width
DRAWINGS = {
    "roles": (
        "Who holds the labels, the key, the artifact and the ids",
        [
            (WHOLE, 8, ["Owner of the labels", "holds: true labels, key, features, ids"]),
            (LEFT, 88, ["Artifact", "holds: the randomizer", "no label, no key", "proves its ε"]),
            (RIGHT, 88, ["Private table", "features, ids,", "private labels", "no true label"]),
            (LEFT, 206, ["Auditor", "gets: the artifact", "runs: verify"]),
            (RIGHT, 206, ["Training team", "gets: both of these,", "never the key"]),
            (RIGHT, 308, ["Models, averages", "may be public"]),
        ],
        [
            (90, 48, 88, "compile"),
            (270, 48, 88, "randomize"),
            (90, 160, 206, ""),
            (270, 160, 206, ""),
            (270, 262, 308, "train"),
        ],
    ),
    "choice": (
        "Which mechanism or method",
        [
            (WHOLE, 8, ["May those who train see true labels?", "ask the same for averages"]),
            (LEFT, 96, ["Means, regression", "optimal_unbiased"]),
            (LEFT, 152, ["Classes, shares", "subset_selection"]),
            (LEFT, 208, ["Read single numbers", "rr_on_bins"]),
            (LEFT, 264, ["Read single classes", "rr_with_prior"]),
            (RIGHT, 96, ["Table, 1,500+ rows", "staged_release"]),
            (RIGHT, 152, ["Images, small tables", "one_release"]),
            (RIGHT, 208, ["Must be a network", "dp_sgd"]),
            (RIGHT, 264, ["One evaluation", "evaluate --release"]),
        ],
        [(90, 48, 96, "no: private labels"), (270, 48, 96, "yes: releases")],
    ),
}


def text(x, y, words, more=""):
    return f'<text x="{x}" y="{y}" fill="currentColor" stroke="none"{more}>{escape(words)}</text>'


def svg(title, width, height, lines):
    """The text of an SVG in the colour of the page."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="540" '
        'role="img" fill="none" stroke="currentColor" font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, STYLE, f"<title>{title}</title>", *lines, "</svg>"]) + "\n"


def figure_svg(figure, name, title):
    """The text of an SVG of a matplotlib figure, drawn inside ``picture_settings``."""
    head, inner = str(inline_svg(figure, name, title)).split(">", 1)
    return f"{head}><style>{css_variables()}</style>{inner}\n"


def drawing(title, boxes, arrows):
    """The text of an SVG."""
    ends = [y + LINE * len(lines) + 2 * PAD for _, y, lines in boxes]
    lines_of_svg = []
    for ((x, width), y, (head, *lines)), end in zip(boxes, ends, strict=True):
        lines_of_svg += [
            f'<rect x="{x}" y="{y}" width="{width}" height="{end - y - PAD}" rx="5"/>',
            text(x + PAD, y + LINE, head, ' font-weight="bold"'),
            *(text(x + PAD, y + LINE * n, line) for n, line in enumerate(lines, 2)),
        ]
    for x, start, end, words in arrows:
        lines_of_svg += [
            f'<path d="M{x},{start}V{end - 2}M{x - 4},{end - 8}L{x},{end - 2}L{x + 4},{end - 8}"/>',
            text(x + PAD, (start + end) / 2 + 4, words),
        ]
    return svg(title, WIDTH, max(ends), lines_of_svg)


def main(folder):
    for name, parts in DRAWINGS.items():
        (Path(folder) / f"{name}.svg").write_text(drawing(*parts), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "images")
