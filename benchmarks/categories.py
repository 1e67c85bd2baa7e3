"""Noise of private labels for categories: sets against other mechanisms, and the least possible.

    python benchmarks/categories.py [--plot docs/images/categories.svg]

The total variance of an unbiased one-hot label, for uniform classes: of the best of all ε-DP
mechanisms (exact), of the design that a table of two million entries has room for (exact), and of
its least-variance estimate (it differs where blocks differ in size); of randomized response, bit
flips (e^(ε/2) per bit), optimised unary encoding and Hadamard response, each with its least-
variance estimate. The estimates of their papers, in exact figures, are compared with ours, too, but
not shown. Nothing is drawn at random. Fails if anything is below the bound, or below ours where it
should not be.
"""

import argparse
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from labeldp_verify.analysis.share_noise import least_share_noise
from labeldp_verify.forms.exact_numbers import exp_lower
from matplotlib.figure import Figure
from shared.one_hot_noise import (
    least_bit_flips,
    least_hadamard,
    least_of_sets,
    least_unary,
    natural_bit_flips,
    natural_hadamard,
    natural_unary,
)

from benchmarks.drawings import figure_svg
from labeldp_compile.mechanisms.subset_selection import best_candidate
from labeldp_compile.page.document import LIGHT
from labeldp_compile.page.pictures import INK, picture_settings, tidy
from labeldp_compile.solve.block_designs import noise

CLASSES = (2, 3, 10, 26, 100, 1000)
EPSILONS = ("0.1", "0.25", "0.5", "1", "1.5", "2", "3", "4", "6", "8")
ENTRIES = 1 << 21  # of a table, blocks × classes
ROUNDING = 1e-9  # of the figures in floats
RR, FLIPS, UNARY, HADAMARD = (
    "randomized response", "bit flips", "optimised unary", "Hadamard response",
)  # fmt: skip
# Outputs of optimised unary encoding are k bits, 2^k of them: no table has room for those.
BOUNDED_BY_OURS = (RR, FLIPS, HADAMARD)


@dataclass(frozen=True)
class Line:
    """One k and ε: noise by mechanism; the bound and ours are exact."""

    classes: int
    epsilon: str
    design: str
    blocks: int
    bound: Fraction
    ours: Fraction
    ours_least: float
    others: dict[str, float]
    natural: dict[str, Fraction]

    @property
    def gap(self):
        """How much more noise than the bound."""
        return float(self.ours / self.bound - 1)

    def below(self):
        """Mechanisms with less noise than ours by the same kind of estimate, and how much less."""
        found = {}
        for name, least in self.others.items():
            part = max(1 - least / self.ours_least, float(1 - self.natural[name] / self.ours))
            if part > ROUNDING:
                found[name] = part
        return found

    def below_bound(self):
        """Whether anything is."""
        floats = min(self.ours_least, *self.others.values())
        return min(self.ours, *self.natural.values()) < self.bound or floats < float(self.bound) * (
            1 - ROUNDING
        )


def measure(classes, epsilon):
    ratio, root = exp_lower(Fraction(epsilon)), exp_lower(Fraction(epsilon) / 2)
    design = best_candidate(classes, ratio, most_blocks(classes)).design(classes)
    blocks = len(design.blocks)
    response = noise(classes, classes, 1, 0, ratio)
    return Line(
        classes,
        epsilon,
        design.name,
        blocks,
        least_share_noise(classes, ratio),
        noise(classes, blocks, design.replication, design.pairs, ratio),
        least_of_sets(design.blocks.T, ratio),
        {
            RR: float(response),
            FLIPS: least_bit_flips(classes, root),
            UNARY: least_unary(classes, ratio),
            HADAMARD: least_hadamard(classes, ratio)[0],
        },
        {
            RR: response,
            FLIPS: natural_bit_flips(classes, root),
            UNARY: natural_unary(classes, ratio),
            HADAMARD: natural_hadamard(classes, ratio),
        },
    )


def most_blocks(classes):
    """A power of two, so that outputs are drawn by whole bits."""
    return 1 << (ENTRIES // classes).bit_length() - 1


def show(lines):
    names = list(lines[0].others)
    print(
        "| classes | ε | design | blocks | bound | ours | ours / bound − 1 | least variance | ",
        end="",
    )
    print(" | ".join(names), "|")
    print("|---:|---:|---|---:" + "|---:" * (4 + len(names)) + "|")
    for line in lines:
        cells = " | ".join(f"{float(line.others[name]):.5g}" for name in names)
        print(
            f"| {line.classes} | {line.epsilon} | {line.design} | {line.blocks} "
            f"| {float(line.bound):.5g} | {float(line.ours):.5g} | {line.gap:.2%} "
            f"| {line.ours_least:.5g} | {cells} |"
        )


def conclude(lines):
    """Whether all is as it should be, said in a few lines."""
    under = [line for line in lines if line.below_bound()]
    beaten = [line for line in lines if set(line.below()) & set(BOUNDED_BY_OURS)]
    unary = [line for line in lines if UNARY in line.below()]
    worst = max(lines, key=lambda line: line.gap)
    print(f"\nOurs is within {worst.gap:.2%} of the bound", end="")
    print(f" (worst: {worst.classes} classes, ε = {worst.epsilon}).")
    for line in unary:
        print(
            f"{UNARY.capitalize()}, with 2^{line.classes} outputs, has {line.below()[UNARY]:.2%} "
            f"less noise than ours, with {line.blocks}: {line.classes} classes, ε = {line.epsilon}."
        )
    for line in under + beaten:
        print(f"Not so: {line.classes} classes, ε = {line.epsilon}: {line.below()}.")
    if not under and not beaten:
        print(
            "No mechanism has less noise than the bound, so none has less than ours by more than "
            f"the gap; {', '.join(BOUNDED_BY_OURS)} have less than ours nowhere."
        )
    return not under and not beaten


def draw(lines, path):
    """Noise over the bound against ε, a panel for each number of classes."""
    sizes = sorted({line.classes for line in lines})
    with picture_settings():
        figure = Figure(figsize=(5, 2.3 * -(-len(sizes) // 2) + 1), layout="constrained")
        axes = figure.subplots(-(-len(sizes) // 2), 2, squeeze=False)
        colours = [LIGHT[name] for name in ("accent", "mark", "good", "soft")]
        for ax, k in zip(axes.flat, sizes, strict=False):
            tidy(ax)
            here = [line for line in lines if line.classes == k]
            x = [float(line.epsilon) for line in here]
            ax.plot(x, [1 + line.gap for line in here], "o-", color=INK, label="ours", zorder=3)
            for name, mark, colour in zip(here[0].others, "sD^v", colours, strict=True):
                y = [float(Fraction(line.others[name]) / line.bound) for line in here]
                ax.plot(x, y, f"{mark}-", label=name, markersize=5, linewidth=1.2, color=colour)
            ax.set(xscale="log", yscale="log")
            ax.set_title(f"{k:,} classes", fontsize=11.5, color=INK)
            ax.set_xticks([0.1, 0.5, 2, 8], labels=["0.1", "0.5", "2", "8"])
            ax.minorticks_off()
            most = max(2, ax.get_ylim()[1])
            ticks = [t for t in ((1, 10, 100, 1000) if most > 50 else (1, 2, 5, 10)) if t <= most]
            ax.set_yticks(ticks, labels=[f"{t:g}" for t in ticks])
        for ax in axes[-1]:
            ax.set_xlabel("ε")
        figure.supylabel("noise over the least of all ε-DP mechanisms", color=INK, fontsize=11.5)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        legend = {"ncols": 2, "frameon": False, "labelcolor": INK}
        figure.legend(handles, labels, loc="outside lower center", **legend)
        words = "Noise of private labels over the least possible, against ε"
        path.write_text(figure_svg(figure, "categories", words), encoding="utf-8")


def main():
    """Everything, without arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=CLASSES)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    lines = [measure(k, epsilon) for k in options.classes for epsilon in EPSILONS]
    show(lines)
    if options.plot is not None:
        draw(lines, options.plot)
    return 0 if conclude(lines) else 1


if __name__ == "__main__":
    sys.exit(main())
