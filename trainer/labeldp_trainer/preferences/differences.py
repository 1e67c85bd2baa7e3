"""Representation ``differences``: what the first answer of a pair has more than the second.

Bradley and Terry 1952: the odds that one answer is preferred are those of a difference of scores.
With scores that are linear in vectors of answers, they are linear in the difference of vectors.
Differences are not centred: their mean depends on which answer is called the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float32
from pydantic import Field, StrictInt

from labeldp_trainer.config.representation import FeatureSource, Learnt, PrincipalKind
from labeldp_trainer.operators import clip


class Differences(PrincipalKind):
    """Pairs of answers: the vector of the first less that of the second, whitened."""

    kind: Literal["differences"]
    needs: ClassVar[Literal["images", "table", "pairs"] | None] = "pairs"
    centred: ClassVar[bool] = False
    knots: StrictInt | None = Field(
        None,
        ge=0,
        le=256,
        description="knots of a linear spline of each number, at its quantiles; default: 8 of "
        "columns of numbers, and none of arrays and lists",
    )

    def learn(self, source: FeatureSource) -> Learnt:
        """first, second [w]: which columns; low, width [w] of ramps, if there are knots."""
        p = source.shape.numeric // 2
        knots = self.knots
        if knots is None:
            knots = 8 if len(source.loaded.config.data.answers[0]) > 1 else 0  # type: ignore[union-attr]
        places = np.arange(p, dtype=np.int32)
        if not knots:
            return Learnt({"first": places, "second": places + np.int32(p)})
        both = np.concatenate([part.reshape(-1, p) for part in source.features])
        columns, low, width = list[int](), list[np.ndarray](), list[np.ndarray]()
        for j in range(p):
            values = np.unique(both[:, j])
            cuts = np.unique(np.quantile(values, np.linspace(0, 1, knots + 2)).astype(np.float32))
            columns += [j] * (len(cuts) - 1)
            low.append(cuts[:-1])
            width.append(np.diff(cuts))
        source.require(bool(columns), "all answers are alike")
        first = np.array(columns, np.int32)
        ramps = {"low": np.concatenate(low), "width": np.concatenate(width)}
        return Learnt({"first": first, "second": first + np.int32(p), **ramps})

    @staticmethod
    def raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
        """[b, w]."""
        sides = x[:, arrays["first"]], x[:, arrays["second"]]
        if "low" not in arrays:
            return sides[0] - sides[1]
        low, width = arrays["low"][None, :], arrays["width"][None, :]
        one, other = (clip((side - low) / width, 0.0, 1.0) for side in sides)
        return one - other
