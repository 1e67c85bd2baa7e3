"""The file ``explained.npz`` of a run folder: what ``labeldp explain`` shows. It has no labels."""

import io
import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.errors import DAMAGE, RunFolderError
from labeldp_trainer.interactions.effects import Axis, Effect, Effects
from labeldp_trainer.one_release.release import Whole, arrays_of_archive
from labeldp_trainer.one_release.rows import ReleaseText

FILE = "explained.npz"


class _Shown(ReleaseText):
    term: tuple[int, ...]
    outputs: tuple[int, ...]


class _Facts(ReleaseText):
    """All but the arrays."""

    format_version: Literal["1.0"] = "1.0"
    rows: Whole
    outputs: Whole
    terms: tuple[tuple[int, ...], ...]
    shown: tuple[_Shown, ...]


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
    """The file of a run. Raises RunFolderError."""
    try:
        return _parse(arrays_of_archive(path))
    except FileNotFoundError:
        raise RunFolderError(f"{path}: is missing; train again") from None
    except DAMAGE:
        raise RunFolderError(f"{path}: is damaged, or of another version; train again") from None


def _parse(arrays: dict[str, NDArray[Any]]) -> Effects:
    facts = _Facts.model_validate_json(arrays["facts"].tobytes())
    columns = sorted({c for each in facts.shown for c in each.term})
    return Effects(
        facts.rows,
        facts.outputs,
        facts.terms,
        arrays["importance"],
        arrays["error"],
        {
            c: Axis(arrays.get(f"columns.{c}.edges"), arrays.get(f"columns.{c}.codes"))
            for c in columns
        },
        tuple(
            Effect(
                each.term,
                each.outputs,
                *(arrays[f"shown.{i}.{name}"] for name in ("mean", "deviation", "rows")),
            )
            for i, each in enumerate(facts.shown)
        ),
    )
