"""Where a frame's label columns stand, and where their private columns go: for every engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labeldp_runtime.errors import LabelError
from labeldp_runtime.label_columns import PRIVATE_SET
from labeldp_runtime.randomizer import Randomizer

LabelNames = str | Sequence[str] | Mapping[str, str]
"""One column of a frame; or, of a joint label, the artifact's ``label_columns``, or which column of
the frame each of them is where it has another name."""
PrivateNames = str | Mapping[str, str]
"""What to call the private column; or each of those of a joint label, by the label columns."""


@dataclass(frozen=True)
class Layout:
    """The columns of a frame that come out, by position.

    Attributes:
        labels: the artifact's label columns, each with its position.
        is_joint: whether they are taken by their names.
        columns: what comes out: the name; whether it is private; the position, in the frame or
            among the private columns.
    """

    labels: tuple[tuple[str, int], ...]
    is_joint: bool
    columns: tuple[tuple[str, bool, int], ...]

    def given(self, column: Callable[[int], Any]) -> Any:
        """What a randomizer takes; ``column`` gives the frame's columns by their positions."""
        if self.is_joint:
            return {name: column(index) for name, index in self.labels}
        return column(self.labels[0][1])


def label_sources(randomizer: Randomizer, given: LabelNames) -> dict[str, str]:
    """From each of the artifact's label columns to the frame's column that gives it.

    Raises LabelError.
    """
    names = randomizer.label_columns
    if len(randomizer.label_types) == 1:
        if not isinstance(given, str):
            raise LabelError("the label of this artifact is one column: give its name, a text")
        return {given: given}
    if isinstance(given, str):
        raise LabelError(
            f"the label of this artifact has several columns: give {names}, or which column each "
            f"is, as {{{names[0]!r}: …}}"
        )
    sources = dict(given) if isinstance(given, Mapping) else {name: name for name in given}
    if set(sources) != set(names) or len(sources) != len(given):
        raise LabelError(f"expected the artifact's label columns {names}, each once")
    if len(set(sources.values())) < len(sources):
        raise LabelError("two columns of a label cannot be the same column")
    return {name: sources[name] for name in names}


def private_names(
    randomizer: Randomizer, sources: Mapping[str, str], add_as: PrivateNames | None
) -> list[str]:
    """What the private columns are called: ``add_as``, or as the labels that they replace.

    The numbers of sets of combinations are none of the label columns, and called private_label.
    Raises LabelError.
    """
    if len(randomizer.output_types) == 1:
        if isinstance(add_as, Mapping):
            raise LabelError("the private label of this artifact is one column: give its name")
        if add_as is None:
            return [PRIVATE_SET] if len(sources) > 1 else list(sources.values())
        return [add_as]
    if add_as is None:
        return list(sources.values())
    if not isinstance(add_as, Mapping) or set(add_as) != set(sources):
        raise LabelError(f"expected a name for each private column, by {list(sources)}")
    if len(set(add_as.values())) < len(add_as):
        raise LabelError("two private columns cannot have one name")
    return [add_as[name] for name in sources]


def layout_of(
    columns: Sequence[str],
    labels: Sequence[tuple[str, int]],
    private: Sequence[str],
    *,
    added: bool,
) -> Layout:
    """The frame's ``columns`` with ``private`` ones behind them, or in the place of the labels.

    One private column for several labels takes the place of the first.
    """
    new = [(name, True, i) for i, name in enumerate(private)]
    kept = {i: (name, False, i) for i, name in enumerate(columns)}
    if added:
        found = [*kept.values(), *new]
    else:
        places = [index for _, index in labels]
        instead = dict(zip(places, new, strict=False))
        found = [
            instead.get(i, column) for i, column in kept.items() if i in instead or i not in places
        ]
    return Layout(tuple(labels), len(labels) > 1, tuple(found))


def private_columns(answer: Any) -> list[Any]:
    """The private columns of a randomizer's answer, in the order of the labels."""
    return list(answer.values()) if isinstance(answer, dict) else [answer]
