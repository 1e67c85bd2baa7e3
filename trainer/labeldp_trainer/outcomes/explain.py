"""``labeldp explain``: the page and the pictures of what a run learned, and a summary of it."""

from pathlib import Path
from typing import Any

import numpy as np
from labeldp_verify.console.colour import Marked
from labeldp_verify.printable import clipped, printable
from matplotlib.figure import Figure

from labeldp_compile.toolkit import inline_svg, page, picture_settings, plain, text_table
from labeldp_trainer.interactions.effects import Effect
from labeldp_trainer.outcomes.explained import BAND, Explained
from labeldp_trainer.outcomes.explained_folder import PAGE, replaced_when_whole
from labeldp_trainer.outcomes.explained_plots import (
    MOST_BARS,
    MOST_CATEGORIES,
    importance_figure,
    main_figure,
    pair_figure,
    shown_bins,
)

_DPI = 150
_MOST_TERMS, _STRONGEST = 60, 5


def write_explained(explained: Explained, path: Path) -> None:
    """Write the page and its pictures as a folder: whole, or not at all."""
    with picture_settings():
        pictures, text = _drawn(explained)
        with replaced_when_whole(path) as folder:
            (folder / PAGE).write_text(text, encoding="utf-8")
            for name, figure in pictures.items():
                figure.savefig(folder / f"{name}.png", dpi=_DPI, facecolor="white")


def summary(explained: Explained, path: Path, *, verbose: bool) -> list[str]:
    """At most 15 lines with the strongest terms; all of them if ``verbose``."""
    effects, chosen = explained.effects, explained.strongest
    shown = chosen if verbose else chosen[:_STRONGEST]
    run = explained.run
    rows = [
        [
            explained.name(effects.terms[i]),
            plain(float(effects.importance[i]), 3),
            plain(float(effects.error[i]), 3),
        ]
        for i in shown
    ]
    kind: Any = "warning" if run.epsilon is None else "ok"
    return [
        f"{run.name}: {len(chosen):,} term{'s' * (len(chosen) != 1)}, method {run.method}, "
        f"{effects.rows:,} rows, label {explained.label}",
        f"importance {explained.unit}, as the standard deviation of what a term adds (estimated):",
        *(f"  {line}" for line in text_table(["term", "importance", "typical error"], rows)),
        Marked(f"{explained.promise} {explained.publishing}", kind),
        str(path / PAGE),
    ]


def _drawn(explained: Explained) -> tuple[dict[str, Figure], str]:
    """The pictures by name, and the page. Call this inside ``picture_settings``."""
    pictures, inline = {"importance": importance_figure(explained)}, {}
    for i, effect in enumerate(explained.mains, 1):
        pictures[f"effect-{i}"] = main_figure(explained, effect)
    for i, effect in enumerate(explained.pairs, 1):
        pictures[f"pair-{i}"] = pair_figure(explained, effect)
        inline[f"pair-{i}"] = pair_figure(explained, effect, ("light", "dark"))
    labels = {"importance": "Importance of the strongest terms"}
    for kind, shown in (("effect", explained.mains), ("pair", explained.pairs)):
        labels |= {
            f"{kind}-{i}": f"Effect of {explained.name(effect.term)}"
            for i, effect in enumerate(shown, 1)
        }
    svg = {
        name: inline_svg(inline.get(name, figure), name, printable(labels[name]))
        for name, figure in pictures.items()
    }
    effects, order = explained.effects, explained.strongest
    numbers = [
        (explained.name(effects.terms[i]), float(effects.importance[i]), float(effects.error[i]))
        for i in order[:_MOST_TERMS]
    ]
    text = page(
        "explained.html",
        f"What {clipped(str(explained.run.name), 80)} learned",
        folder=Path(__file__).parent,
        explained=explained,
        secret=explained.run.epsilon is None,
        importance=svg["importance"],
        bars=min(len(order), MOST_BARS),
        terms=numbers,
        left_out=max(len(order) - _MOST_TERMS, 0),
        mains=[_main(explained, e, svg[f"effect-{i}"]) for i, e in enumerate(explained.mains, 1)],
        pairs=[_pair(explained, e, svg[f"pair-{i}"]) for i, e in enumerate(explained.pairs, 1)],
        most_categories=MOST_CATEGORIES,
    )
    return pictures, text


def _main(explained: Explained, effect: Effect, svg: str) -> dict[str, Any]:
    bins = explained.bins[effect.term[0]]
    there = [i for i in range(len(bins.names)) if effect.rows[i] > 0]
    shown = len(there) if bins.edges is not None else len(shown_bins(effect.rows))
    lines = [
        (
            bins.names[i],
            float(effect.rows[i]),
            [
                (float(mean), BAND * float(deviation))
                for mean, deviation in zip(effect.mean[i], effect.deviation[i], strict=True)
            ],
        )
        for i in there
    ]
    return {
        "name": explained.name(effect.term),
        "svg": svg,
        "header": [f"effect on {name}" for name in explained.outputs(effect)],
        "lines": lines,
        "shown": shown,
        "hidden": len(there) - shown,
    }


def _pair(explained: Explained, effect: Effect, svg: str) -> dict[str, Any]:
    there = effect.mean[effect.rows > 0]
    return {
        "name": explained.name(effect.term),
        "svg": svg,
        "header": explained.outputs(effect),
        "least": float(np.min(there)),
        "most": float(np.max(there)),
    }
