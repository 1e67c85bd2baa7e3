"""The tables and the picture of docs/choose-epsilon.md: ε, belief, rows and margins of error.

    python benchmarks/belief.py [FOLDER]       (docs/images)

Prints two markdown tables: the most that an observer can believe in a label, and the 95% margin of
error of a mean for all labels in the range, as `labeldp plan` states it for 1,000 rows. Compiles
specs/visits.yaml for each ε (0 … 9, optimal_unbiased, uniform prior). Draws belief.svg into FOLDER.
"""

import math
import sys
from pathlib import Path

from labeldp_verify.printable import at_most, percent_at_most
from labeldp_verify.usefulness.estimates import most_belief

from benchmarks.drawings import ROOT, svg
from labeldp_compile.build.assembly import assemble
from labeldp_compile.prior.obtain import estimate_prior
from labeldp_compile.spec import parse_spec

EPSILONS = ("0.1", "0.5", "1", "2", "4", "8")
SHARES = (0.01, 0.1, 0.5)
ROWS = (1_000, 10_000, 100_000, 1_000_000)
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 360, 286, 44, 12, 30, 44
MOST = 8  # ε at the right end of the picture
DASHES = ("none", "7 4", "2 4")


def margins(epsilon):
    """The margin of error for each number of rows."""
    text = (ROOT / "specs" / "visits.yaml").read_text(encoding="utf-8")
    spec = parse_spec(text.replace("epsilon: 2", f"epsilon: {epsilon}"))
    table = assemble(spec, estimate_prior(spec, ROOT), "0" * 64).only
    return [table.usefulness.margin(rows) for rows in ROWS]


def place(epsilon, belief):
    """Where a point of the curve is in the picture."""
    x = LEFT + (WIDTH - LEFT - RIGHT) * epsilon / MOST
    return f"{x:.1f},{TOP + (HEIGHT - TOP - BOTTOM) * (1 - belief):.1f}"


def picture():
    """Belief after against ε, for three beliefs before, as text of an SVG."""
    lines = []
    for percent in range(0, 101, 25):
        x, y = place(0, percent / 100).split(",")
        lines += [
            f'<path d="M{x},{y}H{WIDTH - RIGHT}" stroke-opacity="0.25"/>',
            f'<text x="{LEFT - 6}" y="{float(y) + 4:.1f}" text-anchor="end">{percent}%</text>',
        ]
    for epsilon in range(0, MOST + 1, 2):
        x = place(epsilon, 0).split(",")[0]
        lines.append(
            f'<text x="{x}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{epsilon}</text>'
        )
    for share, dash in zip(SHARES, DASHES, strict=True):
        steps = [step * MOST / 80 for step in range(81)]
        points = " ".join(place(e, most_belief(math.exp(e), share)) for e in steps)
        lines.append(f'<polyline points="{points}" stroke-width="2" stroke-dasharray="{dash}"/>')
        at = max(math.log((1 - share) / share), 1.8)  # the middle of the curve, beside it
        x, y = map(float, place(at, most_belief(math.exp(at), share)).split(","))
        x, y, anchor = (x + 8, y + 14, "start") if share < 0.5 else (x - 6, y - 8, "end")
        text = f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">from {share:.0%}</text>'
        lines.append(text)
    middle = (LEFT + WIDTH - RIGHT) / 2
    lines += [
        f'<text x="{middle:.0f}" y="{HEIGHT - 6}" text-anchor="middle">ε</text>',
        f'<text x="6" y="{TOP - 14}">belief after, at most</text>',
    ]
    shown = (line.replace("<text ", '<text fill="currentColor" stroke="none" ') for line in lines)
    return svg("The most that an observer can believe in a label, against ε", WIDTH, HEIGHT, shown)


def main(folder):
    print("| ε | e^ε | from 1% | from 10% | from 50% |\n|---:|---:|---:|---:|---:|")
    for epsilon in EPSILONS:
        factor = math.exp(float(epsilon))
        after = " | ".join(percent_at_most(most_belief(factor, share)) for share in SHARES)
        print(f"| {epsilon} | {float(f'{factor:.3g}'):,g} | {after} |")
    print("\n| ε |", " | ".join(f"{rows:,} rows" for rows in ROWS), "|\n|---:|---:|---:|---:|---:|")
    for epsilon in EPSILONS:
        print(
            f"| {epsilon} | {' | '.join(f'±{at_most(margin, 2)}' for margin in margins(epsilon))} |"
        )
    (Path(folder) / "belief.svg").write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "images")
