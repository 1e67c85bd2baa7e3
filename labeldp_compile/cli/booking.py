"""What one run of ``labeldp randomize`` draws: for the manifest, and for the ledger."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import click
from labeldp_runtime import Key
from labeldp_verify.claims import Certificate, rational
from labeldp_verify.rounded import at_most

from labeldp_compile.cli.options import Decorated
from labeldp_compile.column_names import key_of
from labeldp_compile.errors import InputError
from labeldp_compile.ledger.draw_account import Draw, DrawAccount
from labeldp_compile.ledger.store import open_store
from labeldp_compile.tabular.parts_folder import ListedPart, PartsFolder
from labeldp_compile.tabular.person_bound import PersonBound


@dataclass(frozen=True)
class Booking:
    """The options: a ledger, the data set whose total it is, who drew it, and why."""

    ledger: str
    data_set: str
    note: str


def ledger_options(command: Decorated) -> Decorated:
    """Adds ``--ledger``, ``--data-set`` and ``--note``, which the command gets as ``booking``."""

    @click.option(
        "--ledger",
        metavar="FILE",
        help="Book ε of the labels that are drawn in this ledger (a file, or postgresql://…), "
        "before the output appears.",
    )
    @click.option("--data-set", metavar="NAME", help="With --ledger: whose total it adds to.")
    @click.option("--note", metavar="TEXT", help="With --ledger: who draws, and why.")
    @functools.wraps(command)
    def with_booking(
        ledger: str | None, data_set: str | None, note: str | None, **others: Any
    ) -> Any:
        if ledger is None:
            if data_set is not None or note is not None:
                raise click.UsageError("--data-set and --note need --ledger")
            return command(booking=None, **others)
        if data_set is None:
            raise click.UsageError("--ledger needs --data-set")
        return command(booking=Booking(ledger, data_set, note or ""), **others)

    return with_booking


@dataclass(frozen=True)
class Drawing:
    """One run: what draws which columns, and where it is booked.

    Attributes:
        artifact_sha256, certificate: of what draws.
        columns: the label columns of the table.
        key, context, version: what the draw is bound to.
        part: the name of the output.
        booking: None if nothing is booked.
        folder: the name of the folder that the output is a part of.
        bound: what counts the persons of the table, if anything does.
        said: lines for people, about what was booked.
    """

    artifact_sha256: str
    certificate: Certificate
    columns: list[str]
    key: Key | None
    context: str
    version: int
    part: str
    booking: Booking | None
    folder: str = ""
    bound: PersonBound | None = None
    said: list[str] = field(default_factory=list)

    def listed(self, private: list[str], id_column: str) -> ListedPart:
        """The part in the manifest, before its digest and rows are known."""
        return ListedPart(
            sha256="",
            digest="",
            rows=0,
            columns=private,
            id_column=id_column,
            artifact_sha256=self.artifact_sha256,
            key="" if self.key is None else self.key.fingerprint,
            context=self.context,
            version=self.version,
            data_set=None if self.booking is None else self.booking.data_set,
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
        if self.booking is not None:
            self._book_earlier_parts(folder, self.booking, say)

    def _book_earlier_parts(
        self, folder: PartsFolder, booking: Booking, say: Callable[[str], None]
    ) -> None:
        """Book what was drawn without a ledger. Raises InputError if another artifact drew it."""
        earlier = {n: p for n, p in folder.listed.items() if p.data_set is None}
        for name, part in earlier.items():
            if part.artifact_sha256 == self.artifact_sha256:
                draw = replace(
                    self._draw(part.digest),
                    part=name,
                    key=part.key,
                    context=part.context,
                    version=part.version,
                )
                say(self._book(draw, part.rows, 0, folder.listed))
                folder.put(name, replace(part, data_set=booking.data_set))
        for name, part in earlier.items():
            if part.artifact_sha256 != self.artifact_sha256:
                raise InputError(
                    f"{folder.path / name}: was drawn without a ledger, by the artifact with the "
                    f"SHA-256 {part.artifact_sha256[:16]}…: run this with that artifact first, "
                    "which books the part"
                )

    def _require_booked_like(self, parts: Iterable[ListedPart]) -> None:
        """Raise InputError if earlier parts of a folder were booked for another data set."""
        own = None if self.booking is None else self.booking.data_set
        for part in parts:
            if part.data_set is not None and part.data_set != own:
                raise InputError(
                    f"the other parts are booked in a ledger for {part.data_set!r}: give --ledger "
                    f"and --data-set {part.data_set}"
                )

    def require(self) -> None:
        """Raise InputError unless the draw can be booked; before anything is drawn."""
        if (account := self._account()) is not None:
            account.require()

    @property
    def naming(self) -> bytes | None:
        """The secret that names the ids of an output, if the ledger must tell outputs apart by
        them.

        Under one key, a row is drawn once, under any name of its output. But a person may have as
        many rows again in an output with other ids.
        """
        names = self.booking is not None and self.certificate.person is not None
        return self.key.secret if names and self.key is not None else None

    def book(
        self, rows: int, digest: str = "", listed: Mapping[str, ListedPart] | None = None
    ) -> None:
        """Book the rows that were drawn, which nobody has seen yet. Raises InputError.

        ``listed`` are the parts of a folder, this one included.
        """
        if self.booking is not None:
            persons = 0 if self.bound is None else self.bound.persons
            self.said.append(self._book(self._draw(digest), rows, persons, listed))

    def _book(
        self, draw: Draw, rows: int, persons: int, listed: Mapping[str, ListedPart] | None
    ) -> str:
        """Book a draw; returns a line about it. Raises InputError."""
        assert self.booking is not None
        account = DrawAccount(open_store(self.booking.ledger), draw)
        entry, epsilon = account.book(rows, persons, listed), at_most(draw.epsilon)
        if entry is None:
            return f"{account.name}: this draw is booked already; nothing was added"
        of = f" of {persons:,} persons" if persons else ""
        return (
            f"{account.name}: entry {entry.number} books {rows:,} rows{of}, ε = {epsilon} "
            f"of a {draw.unit}"
        )

    def _account(self) -> DrawAccount | None:
        if self.booking is None:
            return None
        return DrawAccount(open_store(self.booking.ledger), self._draw())

    def _draw(self, digest: str = "") -> Draw:
        assert self.booking is not None
        label = rational(self.certificate.exact.epsilon_label)
        person = self.certificate.parts.get("person")
        return Draw(
            data_set=self.booking.data_set,
            column=key_of(self.columns),
            artifact_sha256=self.artifact_sha256,
            key="" if self.key is None else self.key.fingerprint,
            context=self.context,
            version=self.version,
            unit="label" if person is None else "person",
            epsilon=label if person is None else rational(person.epsilon_label),
            epsilon_label=label,
            folder=self.folder,
            part=self.part,
            digest=digest,
            note=self.booking.note,
        )
