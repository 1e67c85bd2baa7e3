"""The pictures of docs/mechanisms.md: what each mechanism does to a label.

    python benchmarks/pictures.py [FOLDER]       (docs/images)

Compiles (and verifies) every mechanism for doctor visits of the quickstart data, clamped to
0 … 20, with the histogram as a public prior, at ε = 2. Prints a markdown table of what the
certificates say, and draws two pictures from the exact tables into FOLDER.
"""

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
from labeldp_verify.analysis.probabilities import matrix, value
from matplotlib.figure import Figure

from benchmarks.drawings import figure_svg
from labeldp_compile.build.assembly import assemble
from labeldp_compile.page.document import LIGHT
from labeldp_compile.page.pictures import INK, picture_settings, tidy
from labeldp_compile.prior.obtain import estimate_prior
from labeldp_compile.spec import parse_spec

HERE = Path(__file__).parents[1]
EPSILON, MOST = 2, 20
MECHANISMS = {
    "randomized_response": "kind: randomized_response",
    "rr_with_prior": "kind: rr_with_prior",
    "rr_on_bins": "kind: rr_on_bins",
    "exponential": "kind: exponential",
    "staircase, clipped": "kind: staircase, clip: true",
    "optimal_unbiased": "kind: optimal_unbiased",
    "bias at most 1": "kind: optimal_unbiased, bias: {max: 1}",
    "debiased_rr": "kind: debiased_rr",
    "laplace": "kind: laplace",
}
SPEC = """
version: 1
name: visits
label: {{column: mdvis, domain: {{kind: integer, min: 0, max: {most}}}}}
loss: squared
privacy: {{epsilon: {epsilon}}}
prior: {{kind: public, data: specs/data/randhie.parquet}}
mechanism: {{{mechanism}}}
"""
SHOWN = (-30, 50)  # outputs on the axis; what lies beyond is added to the ends


def compiled():
    """For each mechanism its certificate, outputs [m] and probabilities [k, m]."""
    for name, mechanism in MECHANISMS.items():
        spec = parse_spec(SPEC.format(most=MOST, epsilon=EPSILON, mechanism=mechanism))
        artifact = assemble(spec, estimate_prior(spec, HERE), "0" * 64)
        r = artifact.randomizer
        outputs = np.array([float(value(r, i)) for i in range(r.outputs)])
        yield name, artifact.certificate.to_json(), outputs, matrix(r, range(MOST + 1))


def panels(found):
    """A figure with a panel for each mechanism, two in a row."""
    figure = Figure(figsize=(5, 9.5), layout="constrained")
    axes = figure.subplots(5, 2, sharex=True, sharey=True)
    for ax, (name, *_) in zip(axes.flat, found, strict=False):
        tidy(ax, grid=None)
        ax.set_title(name, fontsize=11.5, color=INK)
    axes.flat[-1].set_axis_off()
    axes.flat[-3].tick_params(labelbottom=True)
    return figure, axes


def draw_matrices(found, path):
    """Pr[output | label] with the outputs on a real axis, in cells of one unit."""
    figure, axes = panels(found)
    low, high = SHOWN
    for ax, (_, _, outputs, table) in zip(axes.flat, found, strict=False):
        cells = np.clip(np.rint(outputs), low, high).astype(int) - low
        picture = np.zeros((MOST + 1, high - low + 1))
        for label in range(MOST + 1):
            np.add.at(picture[label], cells, table[label])
        image = ax.imshow(
            np.sqrt(picture),
            origin="lower",
            aspect="auto",
            extent=(low - 0.5, high + 0.5, -0.5, MOST + 0.5),
            cmap="viridis",
            vmin=0,
            vmax=1,
        )
        ax.plot([0, MOST], [0, MOST], color="white", linewidth=0.6, linestyle=":")
    figure.supxlabel("output (those beyond the axis are in its ends)", color=INK, fontsize=11.5)
    figure.supylabel("label", color=INK, fontsize=11.5)
    bar = figure.colorbar(image, ax=axes.flat[-1], orientation="horizontal", fraction=0.3)
    ticks = [0, 0.1, 0.5, 1]
    bar.set_ticks(np.sqrt(ticks), labels=[f"{tick:g}" for tick in ticks])
    bar.set_label("Pr[output | label]", color=INK)
    bar.ax.tick_params(colors=INK)
    words = "Probability of each output for each label, for nine mechanisms"
    path.write_text(figure_svg(figure, "matrices", words), encoding="utf-8")


def draw_moments(found, path):
    """Mean and standard deviation of the output for each label."""
    figure, axes = panels(found)
    labels = np.arange(MOST + 1)
    for ax, (_, _, outputs, table) in zip(axes.flat, found, strict=False):
        mean, sd = moments(outputs, table)
        ax.fill_between(
            labels, mean - sd, mean + sd, color=LIGHT["accent"], alpha=0.25, linewidth=0
        )
        ax.plot(labels, mean, color=LIGHT["accent"])
        ax.plot(labels, labels, color=LIGHT["soft"], linestyle=":", linewidth=1.2)
        ax.set_ylim(-25, 45)
    figure.supxlabel("label", color=INK, fontsize=11.5)
    figure.supylabel("mean ± standard deviation; dotted: the label", color=INK, fontsize=11.5)
    words = "Mean and standard deviation of the output for each label"
    path.write_text(figure_svg(figure, "moments", words), encoding="utf-8")


def moments(outputs, table):
    """[k] mean and [k] standard deviation of the output."""
    mean = table @ outputs
    return mean, np.sqrt(np.maximum(table @ outputs**2 - mean**2, 0))


def main(folder):
    found = list(compiled())
    print(
        "| mechanism | noisy label loss | largest bias | sd at label 0 | sd at label 10 | outputs |"
    )
    print("|---|---:|---:|---:|---:|---:|")
    for name, certificate, outputs, table in found:
        utility, (_, sd) = certificate["utility"], moments(outputs, table)
        bias = Fraction(certificate["exact"]["largest_bias"])
        print(
            f"| {name} | {utility['noisy_label_loss']:.4g} | {float(bias):.2g} | {sd[0]:.3g} "
            f"| {sd[10]:.3g} | {certificate['outputs']} |"
        )
    if folder is not None:
        with picture_settings():
            draw_matrices(found, folder / "matrices.svg")
            draw_moments(found, folder / "moments.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
