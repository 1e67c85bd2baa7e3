"""The effects of a model of interactions, with the names of columns, bins and classes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64
from labeldp_verify.printable import clipped, one_line

from labeldp_compile.toolkit import plain
from labeldp_trainer.config import LoadedConfig
from labeldp_trainer.data.encoders import TableEncoder
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.interactions.effects import FILE, Axis, Effect, Effects, read_effects
from labeldp_trainer.methods.statement import spent
from labeldp_trainer.outcomes.runs import Run, find_runs
from labeldp_trainer.run import RunFolder

BAND = 1.96
"""Deviations on either side of a mean, for 95%."""
_TWO = 2  # classes
_NAME_COLUMNS = 40
_MOST_STATEMENT = 20_000
_DAYS = ": days since 1970"  # how the name of such a feature of a date ends
_MOST_DAYS = 700_000  # from 1970 on, or before, a date is written as one


@dataclass(frozen=True)
class Bins:
    """The bins of a column, for people.

    Attributes:
        column: its name.
        edges: [e] between the bins of numbers, which come before that of missing ones; None for
            categories.
        names: of all bins.
        days: whether the numbers are days since 1970.
    """

    column: str
    edges: Float64[np.ndarray, " e"] | None
    names: tuple[str, ...]
    days: bool = False

    def number(self, value: float, digits: int = 5) -> str:
        """An edge as text, with at most ``digits`` significant ones."""
        if self.days and abs(value) < _MOST_DAYS:
            return str(date(1970, 1, 1) + timedelta(days=round(value)))
        return plain(value, digits)


@dataclass(frozen=True)
class Explained:
    """The effects of a run.

    Attributes:
        run: its method, label and privacy.
        loaded: its config.
        effects: what was learned.
        columns: names of all columns of the model.
        bins: of the columns whose effects are shown.
        classes: their names; None for numbers.
        statement: of privacy, in one paragraph.
    """

    run: Run
    loaded: LoadedConfig
    effects: Effects
    columns: tuple[str, ...]
    bins: dict[int, Bins]
    classes: tuple[str, ...] | None
    statement: str

    @property
    def mains(self) -> list[Effect]:
        """Those of columns, the strongest first."""
        return [effect for effect in self.effects.shown if len(effect.term) == 1]

    @property
    def pairs(self) -> list[Effect]:
        """Those of pairs, the strongest first; each of a single output."""
        return [
            replace(
                effect,
                outputs=(k,),
                mean=effect.mean[..., [i]],
                deviation=effect.deviation[..., [i]],
            )
            for effect in self.effects.shown
            if len(effect.term) > 1
            for i, k in enumerate(effect.outputs)
        ]

    @property
    def strongest(self) -> list[int]:
        """The numbers of all terms by importance."""
        return np.argsort(-self.effects.importance, kind="stable").tolist()

    def name(self, term: tuple[int, ...]) -> str:
        """A term by its columns."""
        return " × ".join(clipped(self.columns[c], _NAME_COLUMNS) for c in term)

    @property
    def label(self) -> str:
        """The label column."""
        return clipped(str(self.run.label), _NAME_COLUMNS)

    @property
    def unit(self) -> str:
        """Of effects and importance."""
        if self.logistic:
            return "in log-odds"
        return f"in units of {self.label}" if self.classes is None else "in probability"

    @property
    def logistic(self) -> bool:
        """Whether terms add up to the log-odds of the second of two classes."""
        return len(self.classes or ()) == _TWO

    def outputs(self, effect: Effect) -> list[str]:
        """The quantity of an effect's numbers."""
        if self.classes is None:
            return [self.label]
        if self.logistic:
            return [f"log-odds of {self.class_name(1)}"]
        return [f"Pr[{self.class_name(k)}]" for k in effect.outputs]

    def class_name(self, number: int) -> str:
        """A class, as a page may show it."""
        assert self.classes is not None
        return clipped(self.classes[number], _NAME_COLUMNS)

    @property
    def promise(self) -> str:
        """ε and δ, and whose labels they protect."""
        epsilon, delta = self.run.epsilon, self.run.delta
        if epsilon is None:
            return "There is no privacy."
        kind = f"({spent(epsilon, delta or 0.0)})-label-DP"
        if self.run.protects == "user":
            most = self.loaded.config.examples_per_user or 1
            whose = f"for all labels of a user together; at most {most:,} rows of each user count"
        else:
            whose = "for each label; a person with several labels spends ε for each of them"
        return f"{kind} {whose}."

    @property
    def publishing(self) -> str:
        """The disclosure of publishing the effects."""
        return _PUBLISHING[str(self.run.method)]

    @property
    def noise(self) -> str:
        """The meaning of the bands."""
        return _NOISE[str(self.run.method)]


_PUBLISHING = {
    "staged_release": "This page is computed from the release (release.npz) and public features. "
    "Publishing it spends nothing more.",
    "privatized": "This page is computed from private labels and public features. Publishing it "
    "spends nothing more.",
    "none": "This page is computed from the true labels, and is not private. Keep it as secret as "
    "the labels.",
}
_NOISE = {
    "staged_release": "Bands include the noise of privacy and the scatter of the labels.",
    "privatized": "Bands include the noise that made the labels private and the scatter of the "
    "labels.",
    "none": "Bands include the scatter of the labels. There is no noise of privacy.",
}


def open_explained(path: Path) -> Explained:
    """The effects of the finished run in a folder. Raises InputError if it cannot be explained."""
    folder = RunFolder(path)
    folder.facts()
    loaded = folder.config()
    if loaded.config.interactions is None:
        raise RunFolderError(
            f"{path}: explain needs a model of interactions: method staged_release, or model: "
            "{kind: interactions}"
        )
    run = find_runs([path])[0]
    if run.status != "done":
        raise RunFolderError(run.reason or f"{path}: is not finished")
    stated = folder.encoder()
    encoder, effects = stated.features, _to_draw(read_effects(path / FILE))
    classes = None if stated.classes is None else tuple(map(str, stated.classes))
    assert isinstance(encoder, TableEncoder)
    columns = tuple(column.name for column in (*encoder.numeric, *encoder.categorical))
    bins = {c: _bins(encoder, c, axis) for c, axis in effects.axes.items()}
    found = folder.document("privacy.json", f"{path}: privacy.json is damaged; train again")
    statement = one_line(str(found.get("statement", "")), _MOST_STATEMENT)
    return Explained(run, loaded, effects, columns, bins, classes, statement)


def _to_draw(effects: Effects) -> Effects:
    """In float64: sums and differences of the largest float32 overflow."""

    def wide(of: Effect | Effects, *names: str) -> dict[str, Any]:
        return {name: getattr(of, name).astype(np.float64) for name in names}

    shown = (replace(each, **wide(each, "mean", "deviation", "rows")) for each in effects.shown)
    return replace(effects, shown=tuple(shown), **wide(effects, "importance", "error"))


def _bins(encoder: TableEncoder, column: int, axis: Axis) -> Bins:
    """Raises IndexError if the encoder has no such column or category, or it is of another kind,
    or if an edge is larger than any number that can be learned from."""
    place = column - len(encoder.numeric)
    if (place >= 0) != (axis.edges is None):
        raise IndexError
    if axis.edges is None:
        stated = encoder.categorical[place]
        assert axis.codes is not None
        names = [clipped(stated.vocabulary[code - 1], _NAME_COLUMNS) for code in axis.codes]
        return Bins(stated.name, None, ("other", *_told_apart(names)))
    numeric = encoder.numeric[column]
    edges = axis.edges.astype(np.float64) * numeric.deviation + numeric.mean
    bins = Bins(numeric.name, edges, (), numeric.name.endswith(_DAYS))
    texts = list(map(bins.number, edges.tolist()))
    inner = [f"{a} … {b}" for a, b in pairwise(texts)]
    outer = ([f"< {texts[0]}"], [f"≥ {texts[-1]}"]) if texts else ([], ["any number"])
    names = [*outer[0], *inner, *outer[1], "missing"]
    return Bins(bins.column, edges, tuple(names), bins.days)


def _told_apart(names: Sequence[str]) -> list[str]:
    """A category that is called "other" is not the bin of the others."""
    return ['"other"' if name == "other" else name for name in names]
