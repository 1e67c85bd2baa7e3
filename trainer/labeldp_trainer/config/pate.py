"""``method: {kind: pate}``: teachers vote with noise, and a student learns from the votes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictInt, StrictStr

from labeldp_trainer.config.base import Approximate, Number

MOST_CLASSES = 1_000
"""Whose counts and probabilities of many rows are held at a time."""


class Pate(Approximate):
    """Noisy votes of teachers on disjoint parts of the labels (Malek et al. 2021, on public
    representations); a student learns from them and from all features.
    """

    kind: Literal["pate"]
    epsilon: Annotated[Number, Field(ge=1e-3, le=60)]
    teachers: StrictInt | None = Field(
        None, ge=1, description="T, each with rows of its own; default: by a rule"
    )
    queries: StrictInt | None = Field(
        None, ge=1, le=5_000, description="Q rows that are voted on; default: by a rule"
    )
    teacher: Literal["ridge"] = "ridge"
    student: Literal["ridge", "propagation"] = Field(
        "propagation", description="how the votes reach the rows that are not voted on"
    )
    default: StrictInt | StrictStr | None = Field(
        None, description="what a missing or unknown label counts as; default: the first class"
    )
    seed: StrictInt = Field(0, ge=0, lt=2**32, description="of the parts and of the queries")
