"""The file ``coefficients.json`` of a run folder: coefficients and their margins of error."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from labeldp_trainer.errors import DAMAGE, RunFolderError
from labeldp_trainer.run.folder import read_json

FILE = "coefficients.json"
MOST = 10_000
"""Coefficients of a run, of all classes together."""
Why = Literal["constant", "collinear", "not released", "not finite", "too few rows"]
_Real = Annotated[float, Field(allow_inf_nan=False)]
_Margin = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Kept(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


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
    margins: list[_Margin] | None = None
    population_margins: list[_Margin] | None = None


class KeptCoefficients(_Kept):
    """What a run says of coefficients; later versions may add keys.

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

    format_version: str = "1.0"
    refused: str | None = None
    label: str
    classes: list[int | str] | None = None
    rows: int = Field(gt=0)
    users: bool = False
    weighted: bool = False
    population: bool = False
    coefficients: list[Coefficient] = []

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        outputs = 1 if self.classes is None else len(self.classes)
        if len(self.coefficients) * outputs > MOST:
            raise ValueError("too many coefficients")
        for each in self.coefficients:
            lists = [each.estimates, each.margins]
            lists += [each.population_margins] if self.population else []
            there = each.why_not in (None, "too few rows")
            if any((own is not None and len(own) == outputs) != there for own in lists):
                raise ValueError("coefficients without estimates")
        return self


_KEPT = TypeAdapter(KeptCoefficients)


def read_coefficients_file(path: Path) -> KeptCoefficients:
    """Read a file that somebody else may have written. Raises RunFolderError."""
    try:
        found = read_json(path)
        if str(found["format_version"]).partition(".")[0] == "1":
            return _KEPT.validate_python(found)
    except FileNotFoundError:
        raise RunFolderError(
            f"{path}: is missing (earlier versions did not write it); train again. To fit a "
            "release again, use --from-release, which spends nothing"
        ) from None
    except DAMAGE:
        raise RunFolderError(f"{path}: is damaged; train again") from None
    raise RunFolderError(f"{path}: has another format; upgrade labeldp-trainer")
