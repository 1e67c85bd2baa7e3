"""User-level privacy: all labels of one user are protected together."""

from __future__ import annotations

from typing import Self

from pydantic import Field, StrictInt, StrictStr, model_validator

from labeldp_trainer.config.base import Strict


class UserLevel(Strict):
    """Part of every method that can protect users."""

    user_column: StrictStr | None = Field(None, description="who a row belongs to; public")
    max_examples_per_user: StrictInt | None = Field(
        None, ge=1, le=100_000, description="further rows are left out, without a look at labels"
    )

    @model_validator(mode="after")
    def _together(self) -> Self:
        if (self.user_column is None) != (self.max_examples_per_user is None):
            raise ValueError("user_column and max_examples_per_user belong together")
        return self
