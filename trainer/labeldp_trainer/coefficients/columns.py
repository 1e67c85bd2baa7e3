"""The columns of a regression on features as they are: numbers, and differences of categories."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

from labeldp_trainer.data import DataPart
from labeldp_trainer.data.features import ArrayEncoder, Encoder

MISSING = "(missing)"
_CHUNK = 4096
_VECTOR, _BYTE = 2, 255.0  # dimensions; what bytes are divided by
Rows = slice | Int64[np.ndarray, " b"]


class OriginalColumn(NamedTuple):
    """What a coefficient is of.

    Attributes:
        feature: its name; None for the intercept.
        category: of a categorical feature, whose labels are compared with those of ``reference``.
        reference: the most frequent category of the feature.
    """

    feature: str | None
    category: str | None = None
    reference: str | None = None


class OriginalColumns:
    """The columns z of a regression: 1, numbers, and indicators of all categories but a reference.

    Of n rows. All but the 1 are centred and have variance 1, so that sums of products are well
    conditioned.

    Attributes:
        columns: [r] what they are of.
        constant: features without a column, because all rows have the same value.
        rows: n.
        to_original: [r, r] from coefficients of z to those of the features.
    """

    def __init__(self, encoder: Encoder, part: DataPart) -> None:
        """Of all rows of an encoded part: a table, or vectors [n, p]."""
        numbers, codes, names = _fields(encoder, part)
        divisors, shifts = _scales(encoder, numbers.shape[1])
        self.rows, self.constant = part.rows, list[OriginalColumn]()
        self.columns, moments, units = [OriginalColumn(None)], [(0.0, 1.0)], [(1.0, 0.0)]
        kept, places = list[int](), list[tuple[int, int]]()
        for j, name in enumerate(names):
            values = numbers[:, j].astype(np.float64)
            if (values == values[0]).all():
                self.constant.append(OriginalColumn(name))
                continue
            kept.append(j)
            self.columns.append(OriginalColumn(name))
            moments.append((float(values.mean()), float(values.std())))
            units.append((divisors[j], shifts[j]))
        for j, stated in enumerate(getattr(encoder, "categorical", ())):
            counts = np.bincount(codes[:, j], minlength=len(stated.vocabulary) + 1)
            texts, reference = [MISSING, *stated.vocabulary], int(counts.argmax())
            others = [code for code in np.flatnonzero(counts).tolist() if code != reference]
            if not others:
                self.constant.append(OriginalColumn(stated.name))
            for code in others:
                share = counts[code] / part.rows
                places.append((j, code))
                self.columns.append(OriginalColumn(stated.name, texts[code], texts[reference]))
                moments.append((share, float(np.sqrt(share * (1 - share)))))
                units.append((1.0, 0.0))
        self._numbers, self._codes = numbers[:, kept], codes
        self._of = np.array([j for j, _ in places], np.int64)
        self._wanted = np.array([code for _, code in places], np.int32)
        self._means, self._deviations = np.array(moments).T
        divided, shifted = np.array(units).T
        slopes = 1 / (self._deviations * divided)
        self.to_original = np.diag(slopes)
        self.to_original[0, 1:] = -(slopes * (self._means * divided + shifted))[1:]

    def values(self, rows: Rows) -> Float64[np.ndarray, "b r"]:
        """z of some rows."""
        numbers = self._numbers[rows].astype(np.float64)
        indicators = self._codes[rows][:, self._of] == self._wanted[None, :]
        ones = np.ones((len(numbers), 1))
        whole = np.concatenate([ones, numbers, indicators.astype(np.float64)], axis=1)
        return np.asarray((whole - self._means[None, :]) / self._deviations[None, :])

    def chunks(self) -> Iterator[tuple[slice, Float64[np.ndarray, "b r"]]]:
        """z of all rows, part by part."""
        for start in range(0, self.rows, _CHUNK):
            rows = slice(start, min(start + _CHUNK, self.rows))
            yield rows, self.values(rows)


def _fields(
    encoder: Encoder, part: DataPart
) -> tuple[NDArray[np.float32], NDArray[np.int32], list[str]]:
    """Encoded numbers [n, p] and codes [n, c], and the names of the numbers."""
    if isinstance(encoder, ArrayEncoder):
        numbers: Any = part.features
        assert numbers.ndim == _VECTOR
        names = [f"column {j}" for j in range(numbers.shape[1])]
        return numbers, np.zeros((part.rows, 0), np.int32), names
    names = [column.name for column in encoder.numeric]
    return part.features["numeric"], part.features["categorical"], names


def _scales(encoder: Encoder, count: int) -> tuple[list[float], list[float]]:
    """What the encoder divided numbers by, after it subtracted what."""
    if isinstance(encoder, ArrayEncoder):
        return [_BYTE if encoder.bytes else 1.0] * count, [0.0] * count
    return [c.deviation for c in encoder.numeric], [c.mean for c in encoder.numeric]
