"""The file ``coefficients.json`` of a run folder: coefficients and their margins of error."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from labeldp_trainer.errors import DAMAGE, RunFolderError
from labeldp_trainer.run.folder import read_json

FILE = "coefficients.json"
MOST = 10_000
"""Coefficients of a run, of all classes together."""
Why = Literal["constant", "collinear", "not released", "not finite", "too few rows"]
_Real = Annotated[float, Field(allow_inf_nan=False)]


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Coefficient(_Kept):
    """A coefficient, for each of k outputs.

    Attributes:
        feature: its name; None for the intercept.
        category: of a categorical feature, compared with ``reference``.
        reference: the category of the feature that has no coefficient.
        why_not: why there is no estimate or, for too few rows, no interval; None otherwise.
        estimates: [k]; None if labels, or what is released of them, do not decide it.
        margins: [k] 95% margins of error for the true labels of these rows.
        population_margins: [k] for the population that these rows were drawn from; None if unknown.
    """

    feature: str | None
    category: str | None = None
    reference: str | None = None
    why_not: Why | None = None
    estimates: list[_Real] | None = None
    margins: list[_Real] | None = None
    population_margins: list[_Real] | None = None


class KeptCoefficients(_Kept):
    """What a run says of coefficients.

    Attributes:
        format_version: of the file.
        refused: why there are none; None if there are.
        label: the column.
        classes: of the outputs; None for numbers.
        rows: that took part.
        users: whether rows of a user were counted together.
        weighted: whether rows have public weights, or are equal.
        population: whether there are margins for a population.
        coefficients: the intercept first.
    """

    format_version: Literal["1.0"] = "1.0"
    refused: str | None = None
    label: str
    classes: list[int | str] | None = None
    rows: int = Field(gt=0)
    users: bool = False
    weighted: bool = False
    population: bool = False
    coefficients: list[Coefficient] = []


def read_coefficients_file(path: Path) -> KeptCoefficients:
    """The file of a run. Raises RunFolderError."""
    try:
        return KeptCoefficients.model_validate(read_json(path))
    except FileNotFoundError:
        raise RunFolderError(f"{path}: is missing; train again") from None
    except DAMAGE:
        raise RunFolderError(f"{path}: is damaged, or of another version; train again") from None
