"""``labeldp runs --coefficients``: coefficients of a finished run, read from its folder."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labeldp_learn.toolkit import CONFIDENCE, Target
from labeldp_verify.printable import clipped

from labeldp_compile.toolkit import text_table
from labeldp_trainer.coefficients import (
    FILE,
    Coefficient,
    KeptCoefficients,
    read_coefficients_file,
)
from labeldp_trainer.config.method import OneRelease, Privatized
from labeldp_trainer.config.model import LINEAR_ONLY
from labeldp_trainer.errors import RunFolderError
from labeldp_trainer.outcomes.runs import Run, all_digits, find_runs
from labeldp_trainer.run import RunFolder

FORMAT_VERSION = "1.0"
INTERCEPT = "(intercept)"
_TWO = 2  # classes
_DIGITS, _CELL = 4, 40
_WHY = {
    "constant": "all rows have the same value",
    "collinear": "collinear with other features",
    "not released": "not released",
    "not finite": "its numbers are too large or too small; rescale the feature",
    "too few rows": "too few rows for an interval",
}


@dataclass(frozen=True)
class RunCoefficients:
    """Least-squares coefficients of a run, without shrinkage, and approximate 95% intervals.

    Attributes:
        run: its method and privacy.
        kept: the coefficients and their margins of error.
        target: whether intervals are for the true labels of these rows, or for the population that
            the rows were drawn from.
    """

    run: Run
    kept: KeptCoefficients
    target: Target

    def interval(self, coefficient: Coefficient, output: int = 0) -> tuple[float, float] | None:
        """The ends for one output; None without an interval. Each is for one coefficient alone."""
        margins = coefficient.margins
        if self.target == "population":
            margins = coefficient.population_margins
        if coefficient.estimates is None or margins is None or coefficient.why_not is not None:
            return None
        value, margin = coefficient.estimates[output], margins[output]
        return value - margin, value + margin

    @property
    def estimand(self) -> str:
        """The estimated quantity, in words."""
        kept = self.kept
        how = "weighted least squares" if kept.weighted else "least squares"
        what = "coefficients" if kept.classes is None else "coefficients of class probabilities"
        whose = f"of the true labels of these {kept.rows:,} rows"
        if self.target == "population":
            whose = f"of the population that these {kept.rows:,} rows were drawn from"
        return f"{how} {what} {whose}, without shrinkage"

    def to_json(self) -> dict[str, Any]:
        """``{format_version, run, label, estimand, target, confidence, …, coefficients}``."""
        kept = self.kept
        return {
            "format_version": FORMAT_VERSION,
            "run": self.run.folder,
            "method": self.run.method,
            "label": kept.label,
            "classes": kept.classes,
            "rows": kept.rows,
            "weighted": kept.weighted,
            "estimand": self.estimand,
            "target": self.target,
            "confidence": CONFIDENCE,
            "epsilon": self.run.epsilon,
            "delta": self.run.delta,
            "protects": self.run.protects,
            "coefficients": [
                {**names, "class": self._class(output), **self._numbers(coefficient, output)}
                for coefficient in kept.coefficients
                for names in [coefficient.model_dump(include={"feature", "category", "reference"})]
                for output in self._outputs()
            ],
        }

    def text(self) -> list[str]:
        """Lines for a terminal."""
        kept, several = self.kept, len(self._outputs()) > 1
        header = ["feature", *(["class"] if several else []), "estimate", "low", "high", ""]
        rows = []
        for coefficient in kept.coefficients:
            for output in self._outputs():
                own = self._numbers(coefficient, output)
                numbers = [_shown(own[name]) for name in ("estimate", "low", "high")]
                why = _WHY.get(str(coefficient.why_not), "")
                name = clipped(str(self._class(output)), _CELL)
                rows.append([_name(coefficient), *([name] if several else []), *numbers, why])
        left = (0, 1, 5) if several else (0, 4)
        label = clipped(kept.label, _CELL)
        if kept.classes is not None and not several:
            label += f" = {clipped(str(self._class(self._outputs()[0])), _CELL)}"
        return [
            f"{label}: {self.estimand}",
            *text_table(header, rows, left=left),
            *self._conditions(),
        ]

    def _conditions(self) -> Iterator[str]:
        kept, run = self.kept, self.run
        yield (
            "approximate 95% intervals, each for one coefficient alone; they include the noise of "
            "privacy"
        )
        other = "beyond the declared range count as its ends"
        if kept.classes is not None:
            other = "that are not among the classes count as the default"
        yield f"labels {other}"
        if self.target == "population" and kept.users:
            yield "rows of a user are counted together"
        if kept.weighted:
            yield "rows that are far from the others in their features have less weight, publicly"
        if any(each.reference is not None for each in kept.coefficients):
            yield "categories: difference from the most frequent one, which stands after vs."
        if any(each.why_not == "not released" for each in kept.coefficients):
            yield "not released: the noise was shaped for predictions; goal: coefficients avoids it"
        spent = f"ε = {all_digits(run.epsilon)}"
        if run.delta:
            spent += f", δ = {all_digits(run.delta)}"
        yield f"post-processing of what {spent} made private: this spends nothing more"

    def _outputs(self) -> list[int]:
        """Those that are shown: of two classes only the second, whose negative is the first."""
        count = 1 if self.kept.classes is None else len(self.kept.classes)
        return [1] if count == _TWO else list(range(count))

    def _class(self, output: int) -> int | str | None:
        return None if self.kept.classes is None else self.kept.classes[output]

    def _numbers(self, coefficient: Coefficient, output: int) -> dict[str, Any]:
        ends = self.interval(coefficient, output)
        low, high = (None, None) if ends is None else ends
        value = None if coefficient.estimates is None else coefficient.estimates[output]
        return {"estimate": value, "low": low, "high": high, "why_not": coefficient.why_not}


def read_coefficients(path: Path, target: Target = "rows") -> RunCoefficients:
    """RunCoefficients of the finished run in a folder. Raises InputError if it has none.

    It must be of method ``one_release`` or ``privatized`` in closed form, and its representation
    must be linear in the features. ``population`` needs private labels: a release has no residuals.
    """
    folder = RunFolder(path)
    folder.facts()
    config = folder.config().config
    method = config.method
    if not isinstance(method, OneRelease | Privatized) or not config.closed_form:
        raise RunFolderError(
            f"{path}: coefficients need method one_release, or privatized without model, optimizer "
            "and training"
        )
    if config.interactions is not None or not config.linear_in_features:
        kind = getattr(config.representation, "kind", "none")
        raise RunFolderError(
            f"{path}: coefficients need representation: {{kind: pca}}, {LINEAR_ONLY}; this run "
            f"has {kind}"
        )
    run = find_runs([path])[0]
    if run.status != "done":
        raise RunFolderError(run.reason or f"{path}: is not finished")
    kept = read_coefficients_file(path / FILE)
    if kept.refused is not None:
        raise RunFolderError(f"{path}: has no coefficients: {kept.refused}")
    if target == "population" and not kept.population:
        raise RunFolderError(
            f"{path}: a release has no residuals, so it says nothing about how the population "
            "scatters; use --target rows, or private labels"
        )
    return RunCoefficients(run, kept, target)


def _name(coefficient: Coefficient) -> str:
    if coefficient.feature is None:
        return INTERCEPT
    name = clipped(coefficient.feature, _CELL)
    if coefficient.category is None:
        return name
    category, reference = coefficient.category, str(coefficient.reference)
    return f"{name}: {clipped(category, _CELL)} vs. {clipped(reference, _CELL)}"


def _shown(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.{_DIGITS}g}"
