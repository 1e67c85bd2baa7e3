"""The picture of the README: test accuracy on Fashion-MNIST against ε, with 95% intervals.

    python benchmarks/accuracy.py [FOLDER]       (docs/images)

Reads the runs that ``images_geometry.py`` left in its results: all 60,000 training rows, default
representation, 5 draws of noise for each ε. An interval is Student's t over these draws. It covers
the noise alone, not another set of images. Draws accuracy.svg into FOLDER.
"""

import json
import math
import sys
from pathlib import Path
from statistics import mean, stdev

from benchmarks.belief import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH
from benchmarks.drawings import ROOT, svg, text

RESULTS = ROOT / "benchmarks" / "results" / "images_geometry.jsonl"
EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "4", "8")
LEAST, MOST = 45, 95  # percent at the ends of the axis
T_OF_FIVE = 2.776  # the 97.5% quantile of Student's t with 4 degrees of freedom
LEGEND = 152, 107  # the left end of its lines, and the base of its first text
CURVES = {  # method in the results: name and dashes
    "no privacy": ("no privacy: {}%", "2 4"),
    "one release": ("one release, δ = 1e-5", "none"),
    "sets": ("private labels (sets), δ = 0", "7 4"),
}


def accuracies(method, epsilon):
    """Test accuracies in percent, one for each draw."""
    wanted = ("fashion-mnist", "joined", method, epsilon, None)
    lines = map(json.loads, RESULTS.read_text(encoding="utf-8").splitlines())
    keys = ("task", "representation", "method", "epsilon", "rows")
    return [line["accuracy"] for line in lines if tuple(line[key] for key in keys) == wanted]


def place(epsilon, percent):
    """Where a point is in the picture; ε is on a logarithmic scale."""
    lowest, highest = float(EPSILONS[0]), float(EPSILONS[-1])
    x = LEFT + (WIDTH - LEFT - RIGHT) * math.log(epsilon / lowest) / math.log(highest / lowest)
    return round(x, 1), round(TOP + (HEIGHT - TOP - BOTTOM) * (MOST - percent) / (MOST - LEAST), 1)


def curve(method):
    """A line over all ε: the points of a method with their intervals."""
    points, marks = [], []
    for epsilon in EPSILONS:
        values = accuracies(method, epsilon)
        if len(values) != 5:
            raise SystemExit(f"{method}, ε = {epsilon}: expected 5 draws, found {len(values)}")
        half = T_OF_FIVE * stdev(values) / math.sqrt(5)
        x, y = place(float(epsilon), mean(values))
        low, high = (place(float(epsilon), mean(values) + sign * half)[1] for sign in (-1, 1))
        points.append(f"{x},{y}")
        marks.append(f'<circle cx="{x}" cy="{y}" r="2.5" fill="currentColor"/>')
        marks.append(f'<path d="M{x - 4:.1f},{low}h8m-4,0V{high}m-4,0h8"/>')
    dashes = CURVES[method][1]
    line = f'<polyline points="{" ".join(points)}" stroke-width="2" stroke-dasharray="{dashes}"/>'
    return [line, *marks]


def picture():
    """The text of an SVG."""
    (best,) = accuracies("no privacy", None)
    lines = []
    for percent in range(50, MOST, 10):
        y = place(1, percent)[1]
        lines += [
            f'<path d="M{LEFT},{y}H{WIDTH - RIGHT}" stroke-opacity="0.25"/>',
            text(LEFT - 6, y + 4, f"{percent}%", ' text-anchor="end"'),
        ]
    for epsilon in EPSILONS:
        x = place(float(epsilon), MOST)[0]
        lines.append(text(x, HEIGHT - BOTTOM + 18, epsilon, ' text-anchor="middle"'))
    left, y = LEGEND
    for name, dashes in CURVES.values():
        sample = f'<path d="M{left},{y - 4}h26" stroke-width="2" stroke-dasharray="{dashes}"/>'
        lines += [sample, text(left + 32, y, name.format(best))]
        y += 13
    level, dashes = place(1, best)[1], CURVES["no privacy"][1]
    lines += [
        f'<path d="M{LEFT},{level}H{WIDTH - RIGHT}" stroke-width="2" stroke-dasharray="{dashes}"/>',
        *curve("one release"),
        *curve("sets"),
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "ε", ' text-anchor="middle"'),
        text(6, TOP - 14, "test accuracy"),
    ]
    title = "Test accuracy on Fashion-MNIST against ε, with 95% intervals"
    return svg(title, WIDTH, HEIGHT, lines)


def main(folder):
    (Path(folder) / "accuracy.svg").write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "images")
