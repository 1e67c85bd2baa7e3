"""Where residuals are clipped: from a noisy histogram of their sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

_LEAST_CLIP = 0.5  # in deviations of residuals
_CUT = 0.012  # what a share of the square that is cut off costs


@dataclass(frozen=True)
class ResidualSizes:
    """Sizes of residuals, by a histogram.

    Attributes:
        edges: [b + 1] of bins; the first is 0.
        shares: [b] of residuals in the bins; their sum is 1.
    """

    edges: Float64[np.ndarray, " e"]
    shares: Float64[np.ndarray, " b"]

    @cached_property
    def _middle(self) -> Float64[np.ndarray, " b"]:
        return (self.edges[1:] + self.edges[:-1]) / 2

    @cached_property
    def _whole(self) -> float:
        return float(self.shares @ self._middle**2)

    @cached_property
    def square(self) -> float:
        """Their mean square, of sizes that are even within a bin."""
        up, down = self.edges[1:], self.edges[:-1]
        return float(self.shares @ (up**2 + up * down + down**2)) / 3

    def slope(self, clip: float) -> float:
        """By how much clipping makes a residual smaller, on average."""
        return float(self.shares @ (np.minimum(self._middle, clip) * self._middle)) / self._whole

    def clip_of_share(self, share: float) -> float:
        """Beyond which there is about this share of residuals, and not far below a deviation."""
        place = int(np.searchsorted(np.cumsum(self.shares), 1 - share))
        up = self.edges[1:]
        return max(float(up[min(place, len(up) - 1)]), _LEAST_CLIP * float(np.sqrt(self.square)))

    def best_clip(self, noise: Callable[[float], float], cost: float = _CUT) -> float:
        """The edge with the least expected error.

        ``noise`` gives the deviation of an estimated mean that noise makes, for a clip. If effects
        are as 1, 1/2, 1/3 …, and m of them share what may be spent, noise makes an error of m²·ν²,
        and the others leave V/m: of the best m it is as V^⅔·ν^⅔. What is cut off moves means where
        residuals are skewed, which adds ``cost`` times its share of the square.
        """

        def error(clip: float) -> float:
            cut = float(self.shares @ np.maximum(self._middle - clip, 0.0) ** 2) / self._whole
            return float((noise(clip) ** 2 / self.square) ** (1 / 3)) + cost * cut

        return min(self.edges[1:].tolist(), key=error)
