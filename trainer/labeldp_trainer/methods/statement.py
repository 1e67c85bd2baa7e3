"""The privacy statement of a run: as JSON, as one line, and as paragraphs with headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from labeldp_verify.printable import one_line, width

from labeldp_trainer.config import Config

FORMAT_VERSION = "1.0"
ADJACENCY = "replacing the label of one row; features and the number of rows are public"
_MAX_CHARACTERS = 20_000
_COLUMNS = 100
_INDENT, _ITEM = "  ", "- "
_TEST_LABELS = "metrics on the test set, which are computed from its true labels"


def another_run(spent: str, *, doing: str = "", free: str = "") -> str:
    """The remark that a promise is one run's; ``free`` goes on with what spends nothing."""
    return f"Starting another run {doing}spends {spent} again; resuming this one does not{free}."


def written(number: float) -> str:
    """ε or δ with all its digits: a rounded one may promise more than is kept."""
    return repr(float(number)).removesuffix(".0")


@dataclass(frozen=True)
class Statement:
    """What a run promises.

    Attributes:
        method: its kind in the config.
        epsilon: of (ε, δ)-DP for one label, or None without privacy.
        delta: 0 for pure DP.
        mechanism: in words.
        details: numbers and digests behind ε.
        released: what the promise covers and may be given away.
        secret: what must not be given away.
        not_covered: what the run writes that the promise does not cover.
        remarks: further sentences of the paragraph.
        adjacency: what may change without being noticed.
        limits: what the proof leaves out.
    """

    method: str
    epsilon: float | None
    delta: float
    mechanism: str
    adjacency: str = ADJACENCY
    details: Mapping[str, Any] = field(default_factory=dict)
    released: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    not_covered: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The contents of ``privacy.json``."""
        facts = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "remarks"}
        return {
            "format_version": FORMAT_VERSION,
            "method": self.method,
            "adjacency": self.adjacency,
            **facts,
            "delta": self.delta if self.epsilon is not None else None,
            "statement": self.paragraph(),
        }

    def paragraph(self) -> str:
        """All of it in one line, whatever names a certificate brought in."""
        if self.epsilon is None:
            promise = self._promise()
        else:
            promise = f"{self._promise()} Mechanism: {self.mechanism}."
        sentences = [f"{title}: {'; '.join(items)}." for title, items in self._lists() if items]
        return one_line(" ".join([promise, *sentences, *self.remarks]), _MAX_CHARACTERS)

    def text(self) -> str:
        """The contents of ``privacy.txt``: short paragraphs, each under its heading.

        Only headings begin a line, and only items have their mark where it stands: whatever names
        a certificate brought in, they stand further to the right.
        """
        parts: list[tuple[str, str, Sequence[str]]] = [("Promise", "", (self._promise(),))]
        if self.epsilon is not None:
            parts.append(("Mechanism", "", (f"{self.mechanism}.",)))
        parts += [(title, _ITEM, items) for title, items in self._lists()]
        parts.append(("Remarks", _ITEM, self.remarks))
        paragraphs = [
            "\n".join([title, *(line for item in items for line in _wrapped(item, mark))])
            for title, mark, items in parts
            if items
        ]
        return "\n\n".join(paragraphs)

    def _promise(self) -> str:
        if self.epsilon is None:
            return f"There is no privacy: {self.mechanism}."
        kind = f"(ε = {written(self.epsilon)}"
        kind += ")-label-DP" if self.delta == 0 else f", δ = {written(self.delta)})-label-DP"
        return f"What is released is {kind} under this adjacency: {self.adjacency}."

    def _lists(self) -> tuple[tuple[str, Sequence[str]], ...]:
        return (
            ("Released", self.released),
            ("Must stay secret", self.secret),
            ("Not covered", self.not_covered),
            ("Limits", self.limits),
        )


def protected(
    config: Config,
    *,
    epsilon: float,
    mechanism: str,
    details: Mapping[str, Any],
    released: tuple[str, ...],
    secret: tuple[str, ...] = ("the true labels",),
    remarks: tuple[str, ...] = (),
    delta: float = 0.0,
    limits: tuple[str, ...] = (),
    again: tuple[str, str] | None = None,
) -> Statement:
    """The promise of a method with privacy, for the unit that its config names.

    ``again``: what another run does, and what is free instead, for the remark on its cost.
    """
    most = config.examples_per_user
    adjacency = ADJACENCY
    if most is None:
        remarks = ("A person with several labels pays for each of them.", *remarks)
    else:
        adjacency = (
            f"replacing all labels of one user, of whose rows at most {most:,} are used, chosen "
            "without looking at labels; features, who owns which row, and the number of rows are "
            "public"
        )
    if again is not None:
        spent = f"ε = {written(epsilon)}"
        spent = spent if delta == 0 else f"({spent}, δ = {written(delta)})"
        remarks = (*remarks, another_run(spent, doing=again[0], free=again[1]))
    return Statement(
        method=config.method.kind,
        epsilon=epsilon,
        delta=delta,
        mechanism=mechanism,
        adjacency=adjacency,
        details={
            **details,
            "unit": "label" if most is None else "user",
            "max_examples_per_user": most,
        },
        released=released,
        secret=secret,
        not_covered=() if config.data.test is None else (_TEST_LABELS,),
        limits=limits,
        remarks=remarks,
    )


def cost_to_users(most: int, used: int, rows: int) -> str:
    """The remark on ``rows`` labels of users, of whom at most ``most`` labels each are used."""
    return (
        f"At most {most:,} labels of a user were used, {used:,} of {rows:,} in all: ε is {most:,} "
        "times that of a label (group privacy)."
    )


def _wrapped(text: str, mark: str) -> list[str]:
    """Lines of at most ``_COLUMNS``, the first of which begins with the mark."""
    room = _COLUMNS - len(_INDENT + mark)
    lines: list[str] = []
    for word in one_line(text, _MAX_CHARACTERS).split():
        for part in _pieces(word, room):
            if lines and width(lines[-1]) + 1 + width(part) <= room:
                lines[-1] += f" {part}"
            else:
                lines.append(part)
    starts = [_INDENT + mark, *[_INDENT + " " * len(mark)] * len(lines)]
    return [start + line for start, line in zip(starts, lines, strict=False)]


def _pieces(word: str, room: int) -> list[str]:
    """The word, or parts of it that are no wider than a line; no character has three columns."""
    if width(word) <= room:
        return [word]
    return [word[i : i + room // 2] for i in range(0, len(word), room // 2)]
