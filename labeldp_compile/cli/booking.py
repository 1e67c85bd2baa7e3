"""What one run of ``labeldp randomize`` draws: for the manifest, and for the ledger."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from labeldp_verify.printable import at_most

from labeldp_compile.errors import InputError
from labeldp_compile.ledger.draw_account import Draw, DrawAccount
from labeldp_compile.ledger.store import open_store
from labeldp_compile.tabular.persons import PersonBound
from labeldp_compile.tabular.provenance import ListedPart, PartsFolder


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
    ledger: str | None
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
        if (account := self._account()) is not None:
            history, last = account.history(), folder.unnamed
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
        if (account := self._account()) is not None:
            account.require()

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
        """Book a draw; returns a line about it. Raises InputError."""
        assert self.ledger is not None
        account = DrawAccount(open_store(self.ledger), draw)
        entry, epsilon = account.book(rows, persons, listed), at_most(draw.epsilon)
        if entry is None:
            return f"{account.name}: this draw is booked already; nothing was added"
        of = f" of {persons:,} persons" if persons else ""
        return (
            f"{account.name}: entry {entry.number} books {rows:,} rows{of}, ε = {epsilon} "
            f"of a {draw.unit}"
        )

    def _account(self) -> DrawAccount | None:
        return None if self.ledger is None else DrawAccount(open_store(self.ledger), self.draw)
