"""Images by wavelets: how strong structures of each angle and size are in each region.

Bruna and Mallat 2013, Invariant scattering convolution networks. First order: |x ∗ ψ| of Morlet
wavelets ψ of ``scales`` sizes and ``angles`` angles. Second order: ||x ∗ ψ| ∗ ψ′| of larger ψ′.
Gaussian windows on a grid average them.

Nothing is learned: the constants depend on the size of images alone. What wavelets of size 2^s
find is kept at every 2^s-th pixel. A convolution is a product of discrete Fourier transforms. These
are products of matrices, which take no longer than fast transforms of sides this short.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float32
from numpy.typing import NDArray
from pydantic import Field, StrictInt

from labeldp_trainer.config.representation import (
    MOST_COLUMNS,
    SMALLEST,
    FeatureSource,
    LearnedKind,
    Learnt,
)
from labeldp_trainer.operators import joined, matmul
from labeldp_trainer.representations.patches import unit

Floats = NDArray[np.float64]
_ANGLES = (8, 6, 4)  # the first that does not give too many columns
_WIDTH, _CENTRE, _SLANT = 0.8, 3 * math.pi / 4, 0.5  # deviation, frequency and shape of wavelets
_WINDOW = 0.4  # deviation of a window, in distances between windows
_FINER = (
    2  # the grid of the pixels themselves has that many times more points on a side than windows
)


class Scattering(LearnedKind):
    """Images: averages of wavelets' moduli, of one or two orders (Bruna and Mallat 2013)."""

    kind: Literal["scattering"]
    chunk: ClassVar[int] = 4
    needs: ClassVar[Literal["images", "table"] | None] = "images"
    orders: Literal[1, 2] = Field(2, description="2 also has wavelets of the moduli of wavelets")
    scales: StrictInt | None = Field(
        None,
        ge=1,
        le=6,
        description="sizes of wavelets, 1, 2, 4, … pixels; default: 2 for images of 8 pixels, 3 "
        "from 23 and 4 from 46 pixels on",
    )
    angles: StrictInt | None = Field(
        None,
        ge=1,
        le=64,
        description="directions of wavelets; default: 8, or 6 or 4 if that gives too many columns",
    )
    pool: StrictInt = Field(4, ge=1, le=32, description="pool × pool windows for the averages")

    def learn(self, source: FeatureSource) -> Learnt:
        """Constants. Raises ConfigError for images that are too small or too large."""
        return _learn(self, source)

    @staticmethod
    def raw(x: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
        """[b, w]."""
        return _averaged(x, arrays)


def _learn(config: Scattering, source: FeatureSource) -> Learnt:
    """Constants for images of this size. Raises ConfigError if they are too small or too large."""
    shape = source.shape.image
    reason = "scattering needs images [n, height, width, channels]"
    source.require(shape is not None, reason, "kind")
    assert shape is not None
    height, width, channels = shape
    side = min(height, width)
    reason = f"scattering needs images of at least {SMALLEST} × {SMALLEST} pixels"
    source.require(side >= SMALLEST, reason, "kind")
    scales = default_scales(side) if config.scales is None else config.scales
    most = int(math.log2(side))
    source.require(scales <= most, f"images of this size allow at most {most}", "scales")
    for angles in _ANGLES if config.angles is None else (config.angles,):
        columns = channels * columns_of(config.orders, scales, angles, config.pool)
        if columns <= MOST_COLUMNS:
            break
    reason = f"scattering gives {columns:,} columns; at most {MOST_COLUMNS:,} are allowed"
    source.require(columns <= MOST_COLUMNS, reason, "kind" if config.angles is None else "angles")
    arrays = arrays_of(height, width, config.orders, scales, angles, config.pool)
    return Learnt({**arrays, "contrast": np.full(channels, 1 / unit(source), np.float32)})


def default_scales(side: int) -> int:
    """2 for sides of 8 pixels, 3 from 23 pixels on, and 4 from 46 pixels on."""
    return min(max(round(math.log2(side)) - 2, 2), 4)


def columns_of(orders: int, scales: int, angles: int, pool: int) -> int:
    """Of a channel."""
    second = angles**2 * scales * (scales - 1) // 2 if orders > 1 else 0
    return pool**2 * (_FINER**2 + scales * angles + second)


def arrays_of(
    height: int, width: int, orders: int, scales: int, angles: int, pool: int
) -> dict[str, NDArray[np.float32]]:
    """All constants, by name. At level r every 2^r-th pixel of the padded image is left.

    rows_mirror, columns_mirror: [n, padded] pads an image by its mirror image. rows_r, columns_r:
    [n, 2n] a Fourier transform, real and imaginary part side by side. rows_back_r, columns_back_r:
    [2, n, 2n] the inverse, of either part. rows_window_r, columns_window_r: [n, pool] averages;
    rows_pixels, columns_pixels: those of the image itself. first_s and second_r_s: [angles,
    height, width] the frequencies of wavelets of size 2^s, of the image and at level r.
    """
    arrays: dict[str, Floats] = {}
    padded = [_padded(side, scales) for side in (height, width)]
    for name, side, whole in zip(("rows", "columns"), (height, width), padded, strict=True):
        arrays[f"{name}_mirror"] = _mirror(side, whole)
        arrays[f"{name}_pixels"] = _windows(whole, _FINER * pool)
        for level in range(scales):
            size = whole >> level
            waves = _fourier(size)
            arrays[f"{name}_{level}"] = np.concatenate([waves.real, waves.imag], axis=1)
            back = waves.conj() / size
            parts = [(back.real, back.imag), (-back.imag, back.real)]
            arrays[f"{name}_back_{level}"] = np.stack(
                [np.concatenate(each, axis=1) for each in parts]
            )
            arrays[f"{name}_window_{level}"] = _windows(size, pool)

    def wavelets(level: int, scale: int) -> Floats:
        height, width = (side >> level for side in padded)
        finer = scale - level
        turned = [_morlet(height, width, finer, math.pi * each / angles) for each in range(angles)]
        # 4^finer frequencies fall on one when only every 2^finer-th pixel is left
        return np.asarray(np.stack(turned) / 4**finer)

    for scale in range(scales):
        arrays[f"first_{scale}"] = wavelets(0, scale)
        for smaller in range(scale if orders > 1 else 0):
            arrays[f"second_{smaller}_{scale}"] = wavelets(smaller, scale)
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def _averaged(images: Any, arrays: Mapping[str, Any]) -> Float32[Any, "b w"]:
    """[b, w]: cube roots of averages of pixels, of the first and of the second order.

    Of powers from 1/4 to 1, the cube root was best on the last 10,000 training rows of MNIST and
    Fashion-MNIST, after learning from the first 8,000. With 1, pixels hide the second order.
    """
    from labeldp_trainer.models.layers import cube_root  # noqa: PLC0415

    height, width = (arrays[f"{name}_mirror"].shape[0] for name in ("rows", "columns"))
    channels = arrays["contrast"].shape[0]
    # each channel on its own, columns before rows
    x = (
        (images * arrays["contrast"][None, None, None, :])
        .transpose(0, 3, 2, 1)
        .reshape(-1, width, height)
    )
    x = _along(x, "mirror", arrays)
    parts = [_averages(x, "pixels", channels, arrays)]
    image, scale = _frequencies(x, 0, arrays), 0
    while f"first_{scale}" in arrays:
        wavelets = arrays[f"first_{scale}"]
        many = channels * wavelets.shape[0]
        first = _moduli(image, wavelets, scale, arrays)
        parts.append(_averages(first, f"window_{scale}", many, arrays))
        larger = scale + 1
        again = _frequencies(first, scale, arrays)
        while f"second_{scale}_{larger}" in arrays:
            wavelets = arrays[f"second_{scale}_{larger}"]
            second = _moduli(again, wavelets, larger, arrays)
            most = many * wavelets.shape[0]
            parts.append(_averages(second, f"window_{larger}", most, arrays))
            larger += 1
        scale += 1
    return cube_root(joined(*parts))


def _along(x: Any, name: str, arrays: Mapping[str, Any]) -> Any:
    """[n, columns, rows] times a matrix for each of both axes."""
    moved = matmul(x, arrays[f"rows_{name}"]).transpose(0, 2, 1)
    return matmul(moved, arrays[f"columns_{name}"]).transpose(0, 2, 1)


def _averages(x: Any, name: str, many: int, arrays: Mapping[str, Any]) -> Any:
    """[b, w] of all ``many`` arrays that belong to an image."""
    windows = arrays[f"rows_{name}"].shape[1] * arrays[f"columns_{name}"].shape[1]
    return _along(x, name, arrays).reshape(-1, many * windows)


def _frequencies(x: Any, level: int, arrays: Mapping[str, Any]) -> tuple[Any, Any]:
    """Real and imaginary part [n, rows, columns] of the transforms of [n, columns, rows]."""
    rows, columns = arrays[f"rows_{level}"], arrays[f"columns_{level}"]
    height, width = rows.shape[0], columns.shape[0]
    both = matmul(matmul(x, rows).transpose(0, 2, 1), columns)
    split = both.reshape(-1, 2, height, 2, width)
    real, imaginary = split[:, 0], split[:, 1]
    return real[:, :, 0] - imaginary[:, :, 1], real[:, :, 1] + imaginary[:, :, 0]


def _moduli(
    frequencies: tuple[Any, Any], wavelets: Any, level: int, arrays: Mapping[str, Any]
) -> Any:
    """[n·angles, columns, rows] how strongly wavelets answer, at a level."""
    from labeldp_trainer.models.layers import sqrt  # noqa: PLC0415

    rows, columns = arrays[f"rows_back_{level}"], arrays[f"columns_back_{level}"]
    height, width = rows.shape[1], columns.shape[1]
    fewer = wavelets.shape[1] // height
    folded = [
        (part[:, None] * wavelets[None]).reshape(-1, fewer, height, fewer, width).sum(1).sum(2)
        for part in frequencies
    ]
    waves = matmul(folded[0], columns[0]) + matmul(folded[1], columns[1])
    turned = waves.reshape(-1, height, 2, width).transpose(0, 3, 2, 1)
    split = matmul(turned.reshape(-1, width, 2 * height), rows.reshape(2 * height, 2 * height))
    squares = (split * split).reshape(-1, width, 2, height).sum(2)
    return sqrt(squares)


def _padded(side: int, scales: int) -> int:
    """A multiple of 2^scales, with a margin of a quarter of that or more at either end."""
    step = 2**scales
    return int(-(-(side + step // 2) // step) * step)


def _mirror(side: int, padded: int) -> Floats:
    """[side, padded]: the image in the middle, and its mirror image around it."""
    places = np.arange(padded) - (padded - side) // 2
    places = np.abs(places)
    places = np.where(places >= side, 2 * (side - 1) - places, places)
    mirror = np.zeros((side, padded))
    mirror[places, np.arange(padded)] = 1
    return mirror


def _fourier(side: int) -> NDArray[np.complex128]:
    steps = np.arange(side)
    return np.asarray(np.exp(-2j * np.pi * (np.outer(steps, steps) % side) / side))


def _windows(side: int, count: int) -> Floats:
    """[side, count]: Gaussian windows at equal distances; each sums to 1."""
    step = side / count
    centres = (np.arange(count) + 0.5) * step - 0.5
    away = (np.arange(side)[:, None] - centres[None, :]) / (_WINDOW * step)
    windows = np.exp(-np.square(away) / 2)
    whole: Floats = windows / windows.sum(axis=0, keepdims=True)
    return whole


def _morlet(height: int, width: int, scale: int, angle: float) -> Floats:
    """[height, width] the frequencies of a wavelet of size 2^scale: none at 0, so that it answers
    to differences only."""
    down, across = np.meshgrid(
        2 * np.pi * np.fft.fftfreq(height), 2 * np.pi * np.fft.fftfreq(width), indexing="ij"
    )
    wide, centre = _WIDTH * 2**scale, _CENTRE / 2**scale

    def gaussian(middle: float) -> Floats:
        total = np.zeros((height, width))
        for up in (-1, 0, 1):  # frequencies repeat
            for left in (-1, 0, 1):
                y, x = down + 2 * np.pi * up, across + 2 * np.pi * left
                along = x * math.cos(angle) + y * math.sin(angle) - middle
                beside = (y * math.cos(angle) - x * math.sin(angle)) / _SLANT
                total += np.exp(-(wide**2) * (along**2 + beside**2) / 2)
        return total

    answer, flat = gaussian(centre), gaussian(0.0)
    wavelet: Floats = answer - flat * answer[0, 0] / flat[0, 0]
    return wavelet
