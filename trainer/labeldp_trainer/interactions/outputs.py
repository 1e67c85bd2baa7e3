"""The outputs of a model that are independent: its own, or combinations of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64


class OutputLevel(NamedTuple):
    """What outputs have that are about alike; powers of 2.

    Attributes:
        prior: variance of their coefficients, relative to others.
        label: that of their labels.
    """

    prior: float
    label: float


@dataclass(frozen=True)
class Outputs:
    """K independent outputs, of which the K outputs of a model are made.

    Attributes:
        prior: [K] variances of coefficients, relative to one another.
        label: [K] likewise, of what the model does not explain of labels.
        into: [K, K] from outputs of the model to these.
        back: [K, K] from these to outputs of the model.
    """

    prior: Float64[np.ndarray, " k"]
    label: Float64[np.ndarray, " k"]
    into: Float64[np.ndarray, "k k"]
    back: Float64[np.ndarray, "k k"]

    @classmethod
    def of_model(cls, scales: Float64[np.ndarray, " k"]) -> Outputs:
        """Its own: [K] variances, both of coefficients and of labels."""
        return cls(scales, scales, np.eye(len(scales)), np.eye(len(scales)))

    @property
    def scales(self) -> Float64[np.ndarray, " k"]:
        """Variances of the model's own outputs, relative to one another."""
        return np.asarray(self.prior @ np.square(self.back))

    def levels(self) -> list[tuple[OutputLevel, Int64[np.ndarray, " c"]]]:
        """And the outputs that are nearest to each of them."""
        powers = np.round(np.log2(np.stack([self.prior, self.label], axis=1)))
        return [
            (OutputLevel(*(2.0**level).tolist()), np.flatnonzero((powers == level).all(axis=1)))
            for level in np.unique(powers, axis=0)
        ]
