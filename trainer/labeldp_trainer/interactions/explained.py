"""The file ``explained.npz`` of a run folder: what ``labeldp explain`` shows. It has no labels."""

import io
import json
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from labeldp_trainer.errors import DAMAGE, RunFolderError
from labeldp_trainer.interactions.effects import (
    MOST_MAINS,
    MOST_OUTPUTS,
    MOST_PAIRS,
    Axis,
    Effect,
    Effects,
)
from labeldp_trainer.one_release.release import Whole, arrays_of_archive, require
from labeldp_trainer.one_release.rows import ReleaseText

FILE = "explained.npz"
_MOST_COLUMNS = 1 << 20
_MOST_BINS = 128


class _Shown(ReleaseText):
    term: tuple[int, ...] = Field(min_length=1, max_length=2)
    outputs: tuple[int, ...] = Field(min_length=1, max_length=MOST_OUTPUTS)


class _Facts(ReleaseText):
    """All but the arrays."""

    format_version: Literal["1.0"] = "1.0"
    rows: Whole
    outputs: Whole
    terms: tuple[tuple[int, ...], ...]
    shown: tuple[_Shown, ...] = Field(max_length=MOST_MAINS + MOST_PAIRS)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        require(len(set(self.terms)) == len(self.terms))
        for term in self.terms:
            require(1 <= len(term) <= 3 and list(term) == sorted(set(term)))
            require(term[0] >= 0 and term[-1] < _MOST_COLUMNS)
        shown = [each.term for each in self.shown]
        require(len(set(shown)) == len(shown) and set(shown) <= set(self.terms))
        require(all(0 <= k < self.outputs for each in self.shown for k in each.outputs))
        return self


def to_bytes(effects: Effects) -> bytes:
    """The contents of the file; the same for the same effects."""
    shown = [_Shown(term=effect.term, outputs=effect.outputs) for effect in effects.shown]
    facts = _Facts(
        rows=effects.rows, outputs=effects.outputs, terms=effects.terms, shown=tuple(shown)
    )
    text = json.dumps(facts.model_dump(), allow_nan=False).encode()
    arrays: dict[str, NDArray[Any]] = {
        "facts": np.frombuffer(text, np.uint8),
        "importance": effects.importance,
        "error": effects.error,
    }
    for c, axis in sorted(effects.axes.items()):
        name, bins = ("edges", axis.edges) if axis.codes is None else ("codes", axis.codes)
        assert bins is not None
        arrays[f"columns.{c}.{name}"] = bins
    for i, effect in enumerate(effects.shown):
        for name in ("mean", "deviation", "rows"):
            arrays[f"shown.{i}.{name}"] = getattr(effect, name)
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub: allow_pickle
    return file.getvalue()


def read_effects(path: Path) -> Effects:
    """Read a file that somebody else may have written. Raises RunFolderError."""
    try:
        return _parse(arrays_of_archive(path))
    except FileNotFoundError:
        raise RunFolderError(
            f"{path}: is missing (earlier versions did not write it); train again. To fit a staged "
            "release again, use --from-release, which spends nothing"
        ) from None
    except DAMAGE:
        raise RunFolderError(f"{path}: is damaged; train again") from None


def _parse(arrays: dict[str, NDArray[Any]]) -> Effects:
    facts = _Facts.model_validate_json(arrays["facts"].tobytes())
    count = (len(facts.terms),)
    columns = {c for each in facts.shown for c in each.term}
    axes = {c: _axis(arrays, c) for c in sorted(columns)}
    shown = []
    for i, each in enumerate(facts.shown):
        bins = tuple(axes[c].bins for c in each.term)
        require(max(bins) <= _MOST_BINS)
        cells = (*bins, len(each.outputs))
        mean, rows = _numbers(arrays, f"shown.{i}.mean", cells), f"shown.{i}.rows"
        deviation = _numbers(arrays, f"shown.{i}.deviation", cells, least=0)
        shares = _numbers(arrays, rows, bins, least=0)
        require((shares > 0).any())
        shown.append(Effect(each.term, each.outputs, mean, deviation, shares))
    return Effects(
        facts.rows,
        facts.outputs,
        facts.terms,
        _numbers(arrays, "importance", count, least=0),
        _numbers(arrays, "error", count, least=0),
        axes,
        tuple(shown),
    )


def _axis(arrays: dict[str, NDArray[Any]], column: int) -> Axis:
    codes, edges = (arrays.get(f"columns.{column}.{name}") for name in ("codes", "edges"))
    require((codes is None) != (edges is None))
    if codes is not None:
        require(codes.dtype == np.int32 and codes.ndim == 1 and (codes > 0).all())
        return Axis(None, codes)
    assert edges is not None
    require(edges.ndim == 1 and (np.diff(edges) > 0).all())
    return Axis(_numbers(arrays, f"columns.{column}.edges", edges.shape), None)


def _numbers(
    arrays: dict[str, NDArray[Any]], name: str, shape: tuple[int, ...], least: float = -np.inf
) -> NDArray[np.float32]:
    """Finite ones of this shape. Raises ValueError."""
    found = arrays[name]
    require(found.dtype == np.float32 and found.shape == shape)
    require(np.isfinite(found).all() and (found >= least).all())
    return found
