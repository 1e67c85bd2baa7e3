"""The draws of ``randomize``, and the ledger in which it books them before anybody sees them.

A folder of parts has one history: the parts that its ledger has booked, each with its digest. Its
manifest must list exactly these, so no copy of a folder, and no folder from a backup, goes on
beside the other one. Whether it does is decided in the transaction that books the next part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from labeldp_verify.printable import at_most

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.book import OUTPUT, Ledger, in_transaction
from labeldp_compile.ledger.entries import Entry, require_name
from labeldp_compile.ledger.store import Store
from labeldp_compile.tabular.persons import PersonBound
from labeldp_compile.tabular.provenance import ListedPart, PartsFolder

Unit = Literal["label", "person"]
_MAX_NOTE = 1000
_DRAWN_BY = ("part", "artifact_sha256", "key", "context", "version")


@dataclass(frozen=True)
class Draw:
    """One output, or one part of a folder.

    Attributes:
        data_set: whose total it adds to.
        column: the label columns, as ``key_of`` names them.
        artifact_sha256: of the artifact that draws.
        key, context, version: what the draw is bound to; empty, empty and 0 without a key.
        unit, epsilon: whose ε this is, exactly, for all that the artifact draws of one unit.
        epsilon_label: of one label.
        folder, part: the folder by the name in its manifest ("" if it is none), and the output.
        digest: 16 hexadecimal digits for what was drawn; empty where the name says enough.
        note: who, and why.
    """

    data_set: str
    column: str
    artifact_sha256: str
    key: str
    context: str
    version: int
    unit: Unit
    epsilon: Fraction
    epsilon_label: Fraction
    folder: str
    part: str
    digest: str = ""
    note: str = ""

    def facts(self) -> dict[str, Any]:
        """As the ledger keeps them."""
        exact = {"epsilon": str(self.epsilon), "epsilon_label": str(self.epsilon_label)}
        return {**asdict(self), **exact}


class History:
    """The parts of a folder that a ledger has booked, in their order."""

    def __init__(self, ledger: str, draw: Draw, entries: Iterable[Entry]) -> None:
        """``draw`` is that of the next part. Raises InputError if the data set is another one."""
        self._ledger, self._draw = ledger, draw
        self._booked = [e for e in entries if e.kind == "draw" and e.facts["folder"] == draw.folder]
        for name in {entry.facts["data_set"] for entry in self._booked} - {draw.data_set}:
            raise InputError(
                f"{ledger}: the parts of this folder are booked for the data set {name!r}: give "
                f"--data-set {name}"
            )

    def is_settled(self, name: str, part: ListedPart) -> bool:
        """Whether a part that is listed is booked, or was listed without a ledger."""
        return part.data_set is None or (name, part.digest) in map(_identity, self._booked)

    def require_like(self, listed: Mapping[str, ListedPart]) -> None:
        """Raise InputError unless the next part can follow those that a manifest lists.

        The first part that the manifest lacks may be drawn again, by the same artifact and key.
        """
        lacking, facts = self._lacking(listed), self._draw.facts()
        if lacking and any(lacking[0].facts[name] != facts[name] for name in _DRAWN_BY):
            raise self._fork(lacking[0])

    def require_before(self, listed: Mapping[str, ListedPart]) -> None:
        """Raise InputError unless all listed parts but the one that is drawn are booked."""
        others = {name: part for name, part in listed.items() if name != self._draw.part}
        if lacking := self._lacking(others):
            raise self._fork(lacking[0])

    def _lacking(self, listed: Mapping[str, ListedPart]) -> list[Entry]:
        """The entries of parts that are not listed. Raises InputError if one is not booked."""
        for name, part in listed.items():
            if not self.is_settled(name, part):
                raise InputError(
                    f"{self._ledger}: has not booked the part {name!r} of this folder. Another "
                    "ledger has booked it, or this one before it was restored from a backup: give "
                    "the ledger that has booked all parts. If it is lost, go on in a new folder"
                )
        there = {(name, part.digest) for name, part in listed.items()}
        return [entry for entry in self._booked if _identity(entry) not in there]

    def _fork(self, lacking: Entry) -> InputError:
        return InputError(
            f"{self._ledger}: entry {lacking.number} has booked the part {lacking.facts['part']!r} "
            "of this folder, but its manifest lists no such part: the folder is a copy, or was "
            "restored from a backup. Nothing was added to it. Go on with the folder that has the "
            "part. If there is none, repeat the run of that part with the same table, artifact and "
            "key: this restores it and spends nothing. Otherwise go on in a new folder, where rows "
            "that TABLE still has are drawn and booked again"
        )


def _identity(entry: Entry) -> tuple[str, str]:
    return entry.facts["part"], entry.facts["digest"]


@dataclass(frozen=True)
class Drawing:
    """One run: the draw, and the ledger in which it is booked.

    Attributes:
        draw: what draws which columns; its data set is empty without a ledger.
        ledger: None if nothing is booked.
        bound: what counts the persons of the table, if anything does.
        said: lines for people, about what was booked.
    """

    draw: Draw
    ledger: Store | None
    bound: PersonBound | None = None
    said: list[str] = field(default_factory=list)

    def listed(self, private: list[str], id_column: str) -> ListedPart:
        """The part in the manifest, before its digest and rows are known."""
        draw = self.draw
        return ListedPart(
            sha256="",
            digest="",
            rows=0,
            columns=private,
            id_column=id_column,
            artifact_sha256=draw.artifact_sha256,
            key=draw.key,
            context=draw.context,
            version=draw.version,
            data_set=None if self.ledger is None else draw.data_set,
        )

    def settle(self, folder: PartsFolder, say: Callable[[str], None]) -> None:
        """Have a folder, its manifest and the ledger agree before the next part is drawn.

        A part that a killed run left gets its name if it is booked, and otherwise leaves the list.
        Parts from before there was a ledger are booked. ``say`` gets lines about both. Raises
        InputError if the ledger and the manifest have other histories.
        """
        self._require_booked_like(folder.listed.values())
        if self.ledger is not None:
            history, last = in_transaction(self.ledger, self._history), folder.unnamed
            is_drawn_again = last is not None and not history.is_settled(last, folder.listed[last])
            history.require_like(
                {n: p for n, p in folder.listed.items() if not (is_drawn_again and n == last)}
            )
            if is_drawn_again and last is not None:
                folder.remove(last)
                say(f"{folder.path / last}: was not booked when a run was killed, and is removed")
        folder.finish(say)
        if self.ledger is not None:
            self._book_earlier_parts(folder, say)

    def _book_earlier_parts(self, folder: PartsFolder, say: Callable[[str], None]) -> None:
        """Book what was drawn without a ledger. Raises InputError if another artifact drew it."""
        earlier = {n: p for n, p in folder.listed.items() if p.data_set is None}
        others = [n for n, p in earlier.items() if p.artifact_sha256 != self.draw.artifact_sha256]
        for name, part in earlier.items():
            if name not in others:
                draw = replace(
                    self.draw,
                    part=name,
                    digest=part.digest,
                    key=part.key,
                    context=part.context,
                    version=part.version,
                )
                say(self._book(draw, part.rows, 0, folder.listed))
                folder.put(name, replace(part, data_set=self.draw.data_set))
        for name in others:
            raise InputError(
                f"{folder.path / name}: was drawn without a ledger, by the artifact with the "
                f"SHA-256 {earlier[name].artifact_sha256[:16]}…: run this with that artifact "
                "first, which books the part"
            )

    def _require_booked_like(self, parts: Iterable[ListedPart]) -> None:
        """Raise InputError if earlier parts of a folder were booked for another data set."""
        for part in parts:
            if part.data_set is not None and (
                self.ledger is None or part.data_set != self.draw.data_set
            ):
                raise InputError(
                    f"the other parts are booked in a ledger for {part.data_set!r}: give --ledger "
                    f"and --data-set {part.data_set}"
                )

    def require(self) -> None:
        """Raise InputError unless the draw can be booked; before anything is drawn."""
        if self.ledger is None:
            return
        require_name("--data-set", self.draw.data_set)
        note = self.draw.note
        if len(note) > _MAX_NOTE or any("\ud800" <= c <= "\udfff" for c in note):
            raise InputError(f"--note: expected at most {_MAX_NOTE:,} characters of valid UTF-8")
        in_transaction(self.ledger, lambda ledger: None)

    def book(
        self, rows: int, digest: str = "", listed: Mapping[str, ListedPart] | None = None
    ) -> None:
        """Book the rows that were drawn, which nobody has seen yet. Raises InputError.

        ``listed`` are the parts of a folder, this one included.
        """
        if self.ledger is not None:
            persons = 0 if self.bound is None else self.bound.persons
            self.said.append(self._book(replace(self.draw, digest=digest), rows, persons, listed))

    def _book(
        self, draw: Draw, rows: int, persons: int, listed: Mapping[str, ListedPart] | None
    ) -> str:
        """Append the draw of these rows, unless the ledger has it; returns a line about it.

        It is on the disk when this returns. Raises InputError.
        """
        assert self.ledger is not None
        name, facts = self.ledger.name, {**draw.facts(), "rows": rows, "persons": persons}

        def append(ledger: Ledger) -> Entry | None:
            of_output = {key: facts[key] for key in OUTPUT}
            for entry in ledger.entries if draw.key else ():
                booked = entry.facts
                if (
                    entry.kind == "draw"
                    and of_output.items() <= booked.items()
                    and (booked["rows"] >= rows and booked["persons"] >= persons)
                ):
                    return None
            if listed is not None:
                History(name, draw, ledger.entries).require_before(listed)
            return ledger.append("draw", facts)

        entry = in_transaction(self.ledger, append)
        if entry is None:
            return f"{name}: this draw is booked already; nothing was added"
        of = f" of {persons:,} persons" if persons else ""
        return (
            f"{name}: entry {entry.number} books {rows:,} rows{of}, ε = {at_most(draw.epsilon)} "
            f"of a {draw.unit}"
        )

    def _history(self, ledger: Ledger) -> History:
        assert self.ledger is not None
        return History(self.ledger.name, self.draw, ledger.entries)
